/* SPDX-License-Identifier: MIT */
/* environment.h: what the process was told from outside, and whether that may be trusted. */
#ifndef HIPMM_CORE_BASE_ENVIRONMENT_H
#define HIPMM_CORE_BASE_ENVIRONMENT_H

#include <hipmm/hipmm.h>
#include <stdbool.h>

/* A variable of the environment; NULL if unset, and always in a process that runs set-user-id or the like. */
const char *environment_get(const char *name);

/* Whether the process runs with more rights than its user has. */
bool environment_is_privileged(void);

/* In a privileged process: HIPMM_E_PLUGIN (with the thread's error set) if `file`, or a folder on the way to it, can be
 * changed by anyone but root and the effective user. Elsewhere always HIPMM_OK. */
enum hipmm_status environment_check_trusted(const char *file);

/* The graph file that holds when none is named: HIPMM_CONFIG, ./hipmm.json, the system's. Writes its name into
 * `buffer` and returns it, or NULL when there is none. HIPMM_CONFIG is returned whether or not the file exists. */
const char *environment_find_config(char *buffer, size_t bytes);

#endif
