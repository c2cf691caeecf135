/* SPDX-License-Identifier: MIT */
/* trust.h: which files that lead to code may be used: graphs, plugins, runtimes, what `hipmm run` preloads. A file that the
 * user named is the user's choice, unless the process has raised rights. A file that was found must be one that no other user
 * can change. Thread-safe as long as no thread changes the environment. */
#ifndef HIPMM_CORE_BASE_TRUST_H
#define HIPMM_CORE_BASE_TRUST_H

#include <hipmm/hipmm.h>
#include <stdbool.h>

/* In a privileged process: HIPMM_E_PLUGIN, with the thread's error set, if anyone but root and the effective user can
 * change `file` or a folder on its path. HIPMM_OK in every other process. */
enum hipmm_status trust_check_named(const char *file);

/* Whether a file or folder that lies where hipmm is installed may be used: nobody but root, the effective user, and those who
 * can write the folder of this code itself can write it. A warning says why not. */
bool trust_installed(const char *path);

/* Writes the file that this code was loaded from, without links; `file` has PATH_MAX bytes. */
bool trust_find_own_file(char *file);

/* The default graph file: HIPMM_CONFIG, ./hipmm.json, or the system's. Writes its name into `buffer` and returns it;
 * NULL if there is none. HIPMM_CONFIG is returned whether or not the file exists. The other two are passed over, with a
 * warning, where another user than root owns or can write the file or its folder. */
const char *trust_find_config(char *buffer, size_t bytes);

#endif
