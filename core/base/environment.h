/* SPDX-License-Identifier: MIT */
/* environment.h: environment variables, and whether the process may trust them. Thread-safe as long as no thread changes the
 * environment. */
#ifndef HIPMM_CORE_BASE_ENVIRONMENT_H
#define HIPMM_CORE_BASE_ENVIRONMENT_H

#include <stdbool.h>

/* A variable of the environment; NULL if unset, and always NULL in a privileged process. */
const char *environment_get(const char *name);

/* Whether the process has more rights than its user, such as a set-user-id program. */
bool environment_is_privileged(void);

#endif
