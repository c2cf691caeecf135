/* SPDX-License-Identifier: MIT */
/* failure.h: errors of hipmm as error codes of the API that the program called. */
#ifndef HIPMM_TOOLS_PRELOAD_FAILURE_H
#define HIPMM_TOOLS_PRELOAD_FAILURE_H

#include "hooks.h"
#include <hipmm/plugin.h>
#include <stddef.h>

/* These set the last error, for hipGetLastError() and cudaGetLastError(), and return its code; NVIDIA's driver has no last
 * error. The text of the first failure of the process is stored for the report. */

/* For the thread's last failed call of hipmm, which asked for `bytes` (0: for none). A message says it once, unless it
 * is out of memory. */
int failure_of_hipmm(enum hook hook, size_t bytes);

/* For a HIP call that returned `code`. */
int failure_of_call(enum hook hook, int code);

/* For a call that hipmm itself refuses. A message says the reason, once for each hook. */
int failure_refuse(enum hook hook, int code, const char *format, ...) HIPMM_PRINTF(3, 4);

/* For an error that the runtime would have found too: not in the report. */
int failure_set(enum family family, int code);

/* The text of the first failure; NULL if there was none. */
const char *failure_first(void);

/* hipGetLastError() and its like: the runtime's error if it has one, since that came later; else hipmm's. */
int failure_last(enum hook hook);

#endif
