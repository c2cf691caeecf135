/* SPDX-License-Identifier: MIT */
/* reentry.h: what is known of the calling thread: whether it is inside of hipmm, and the error that it has not asked
 * for. */
#ifndef HIPMM_PRELOAD_REENTRY_H
#define HIPMM_PRELOAD_REENTRY_H

#include "hooks.h"

/* Between enter and leave every routed function that the thread calls is meant for the real one: hipmm's own calls, and
 * those that a runtime makes of functions that it exports. enter returns false when the thread was inside already;
 * leave is owed in any case. */
bool reentry_enter(void);
void reentry_leave(void);

/* The end of a routed call: leaves, and counts the call if it is the program's own. Returns `code`. */
int reentry_finish(enum hook hook, enum outcome outcome, int code);

/* How often the thread has entered and not left. */
unsigned reentry_depth(void);

/* The error that hipGetLastError has to tell; 0: none of ours. One for each family. */
void reentry_set_error(enum family family, int code);
int reentry_error(enum family family);

#endif
