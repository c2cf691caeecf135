/* SPDX-License-Identifier: MIT */
/* init.h: whether hipmm serves this process. That is decided when the program first allocates. */
#ifndef HIPMM_TOOLS_PRELOAD_INIT_H
#define HIPMM_TOOLS_PRELOAD_INIT_H

#include "hooks.h"

/* Whether calls of this API are served. The first call initialises hipmm. If that fails, one message says why and all
 * calls are passed on from then on; with HIPMM_RUN_STRICT the process exits with status 2 instead. */
bool init_ready(enum family family);

/* The same, but false while another thread initialises hipmm. For functions that constructors of libraries call: they have the
 * loader's lock, for which that thread may wait. */
bool init_ready_without_wait(enum family family);

/* Whether it is decided already that calls of this API are not served. */
bool init_is_off(enum family family);

/* The same for calls of frameworks that use hipmm's own functions (frameworks.h). */
bool init_ready_for_python(void);

/* Tells where plugins are: before hipmm is initialised. */
void init_set_places(void);

/* Whether HIPMM_RUNTIME asks for the software device. */
bool init_is_for_software(void);

/* As reentry_enter(), for a function that a program may call before it allocates: the software device is set up here,
 * since its settings cannot change once the device is in use. */
bool init_enter(void);

/* Whether this process was forked after hipmm was initialised. A GPU cannot be used in such a process, and the blocks are
 * the parent's. */
bool init_is_forked(void);

/* Whether hipmm ever served the process. */
bool init_was_ready(void);

/* The graph in force: a file's name, or "<built in>"; "" before hipmm is initialised. */
const char *init_graph(void);

/* Whether the process owns its memory. False in a child of vfork(), which runs in its parent's memory. */
bool init_is_own_process(void);

/* `function` is called each time that hipmm was initialised, by any thread. */
void init_when_ready(void (*function)(void));

/* Finalises hipmm. The next allocation initialises it again. */
void init_close(void);

/* Writes the message `what`; with HIPMM_RUN_STRICT exits. */
void init_refuse(const char *what);

#endif
