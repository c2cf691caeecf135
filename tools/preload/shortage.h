/* SPDX-License-Identifier: MIT */
/* shortage.h: a shortage of device memory in a call that hipmm does not serve. Idle memory that hipmm keeps must not make such a
 * call fail. */
#ifndef HIPMM_TOOLS_PRELOAD_SHORTAGE_H
#define HIPMM_TOOLS_PRELOAD_SHORTAGE_H

#include "hooks.h"

/* Whether to make the call that ended with `code` once more: the runtime had no memory for it, and hipmm has given its idle
 * memory back. The runtime's last error is then cleared. A CUDA runtime may hold its locks here, so giving back must call
 * nothing but the driver. */
bool shortage_is_relieved(enum hook hook, int code);

/* Makes the call, and once more after a shortage. Within another hooked call, that call decides. */
#define SHORTAGE_REPEAT(hook, is_outermost, code, call)                                 \
  do {                                                                                  \
    code = call;                                                                        \
    if (__builtin_expect(code == HIPMM_HIP_ERROR_OUT_OF_MEMORY, 0) && (is_outermost) && \
        shortage_is_relieved(hook, code))                                               \
      code = call;                                                                      \
  } while (0)

#endif
