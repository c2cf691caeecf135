/* SPDX-License-Identifier: MIT */
/* environment.h: environment variables and default files, and whether the process may trust them. Thread-safe as long
 * as no thread changes the environment. */
#ifndef HIPMM_CORE_BASE_ENVIRONMENT_H
#define HIPMM_CORE_BASE_ENVIRONMENT_H

#include <hipmm/hipmm.h>
#include <stdbool.h>

/* A variable of the environment; NULL if unset, and always NULL in a privileged process. */
const char *environment_get(const char *name);

/* Whether the process has more rights than its user, such as a set-user-id program. */
bool environment_is_privileged(void);

/* In a privileged process: HIPMM_E_PLUGIN, with the thread's error set, if anyone but root and the effective user can
 * change `file` or a folder on its path. HIPMM_OK in every other process. */
enum hipmm_status environment_check_trusted(const char *file);

/* The default graph file: HIPMM_CONFIG, ./hipmm.json, or the system's. Writes its name into `buffer` and returns it;
 * NULL if there is none. HIPMM_CONFIG is returned whether or not the file exists. */
const char *environment_find_config(char *buffer, size_t bytes);

#endif
