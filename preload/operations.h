/* SPDX-License-Identifier: MIT */
/* operations.h: the program's calls that allocate and free, the same for HIP and CUDA. */
#ifndef HIPMM_PRELOAD_OPERATIONS_H
#define HIPMM_PRELOAD_OPERATIONS_H

#include "hooks.h"
#include <hipmm/plugin.h>
#include <stddef.h>

/* Each serves the call that `hook` names, or passes it on; a HIP or CUDA error code. */
int request_device(enum hook hook, void **ptr, size_t bytes);
int request_device_with_flags(enum hook hook, void **ptr, size_t bytes, unsigned flags);
int request_device_on(enum hook hook, void **ptr, size_t bytes, hipStream_t stream);
int request_device_from(enum hook hook, void **ptr, size_t bytes, hipMemPool_t pool, hipStream_t stream);
int request_managed(enum hook hook, void **ptr, size_t bytes, unsigned flags);
int request_pinned(enum hook hook, void **ptr, size_t bytes);
int request_pinned_with_flags(enum hook hook, void **ptr, size_t bytes, unsigned flags);

/* The same for those that free: once all work is done, or after the work on a stream. */
int request_free_device(enum hook hook, void *ptr);
int request_free_device_on(enum hook hook, void *ptr, hipStream_t stream);
int request_free_pinned(enum hook hook, void *ptr);

/* Whether the call is the runtime's own, made inside of one that we passed on, without end: it reaches us again and
 * again. */
bool request_runs_away(enum hook hook);

#endif
