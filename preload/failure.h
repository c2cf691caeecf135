/* SPDX-License-Identifier: MIT */
/* failure.h: what went wrong in hipmm, in the terms of the API that the program called. */
#ifndef HIPMM_PRELOAD_FAILURE_H
#define HIPMM_PRELOAD_FAILURE_H

#include "hooks.h"
#include <hipmm/plugin.h>
#include <stddef.h>

/* The code of the thread's last failed call of hipmm. It is kept for hipGetLastError(), and the story of the process's
 * first failure for the report. What is no want of memory is also said once. */
int failure_of_hipmm(enum hook hook, size_t bytes);

/* The same for a HIP call that returned `code`, and for a call that hipmm itself refuses, whose reason is said. */
int failure_of_call(enum hook hook, int code);
int failure_refuse(enum hook hook, int code, const char *format, ...) HIPMM_PRINTF(3, 4);

/* Keeps a code that the runtime itself would have come to, without a story. Returns it. */
int failure_set(enum family family, int code);

/* The story of the first failure; NULL if there was none. */
const char *failure_first(void);

/* hipGetLastError() and its like: the runtime's error if there is one, since it came later than ours, or ours. */
int failure_last(enum hook hook, bool clear);

#endif
