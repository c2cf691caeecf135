/* SPDX-License-Identifier: MIT */
/* init.h: whether hipmm serves this process, found out when the program first asks for memory. */
#ifndef HIPMM_PRELOAD_INIT_H
#define HIPMM_PRELOAD_INIT_H

#include "hooks.h"

/* Whether calls of this API are served; hipmm is initialised if nobody has. If it cannot be, one line says why, once,
 * and from then on everything is passed on; with HIPMM_RUN_STRICT the process ends with status 2 instead. */
bool init_ready(enum family family);

/* As reentry_enter(), for a function that programs may call first: the software device is set up then, since its
 * settings cannot change once it is in use. */
bool init_enter(void);

/* In the child of a fork that was made after hipmm was set up: a GPU cannot be used there, and the parent's memory is
 * not its own. */
bool init_is_forked(void);

/* Whether the process was ever served. */
bool init_was_ready(void);

/* Lets go of hipmm; the next allocation sets it up again. */
void init_close(void);

/* Says `what`; with HIPMM_RUN_STRICT it ends the process. */
void init_refuse(const char *what);

#endif
