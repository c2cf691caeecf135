/* SPDX-License-Identifier: MIT */
/* request.h: the program's calls that allocate and free, brought into one form each. */
#ifndef HIPMM_PRELOAD_REQUEST_H
#define HIPMM_PRELOAD_REQUEST_H

#include "devices.h"
#include "hooks.h"

/* What a function takes besides the pointer and the size. */
enum takes { TAKES_NOTHING, TAKES_FLAGS, TAKES_STREAM, TAKES_POOL };

struct request {
  enum hook hook;
  enum takes takes;
  void **ptr;
  size_t bytes;
  enum kind kind;
  unsigned flags, flags_served; /* with other flags than these it is passed on */
  hipStream_t stream;           /* as given */
  hipStream_t order;            /* the stream that it means: another one for 0 in a per-thread variant */
  hipMemPool_t pool;
};

/* Serves the request, or passes it on; a HIP or CUDA error code. */
int request_serve(const struct request *request);

/* Frees what may be of one of `kinds` (bits) once all work is done, as hipFree() does. */
int request_free(enum hook hook, void *ptr, unsigned kinds);

/* Frees after the work on a stream. `stream` is as given, `order` the one that it means. */
int request_free_on(enum hook hook, void *ptr, hipStream_t stream, hipStream_t order);

/* Whether the call is the runtime's own, made inside of one that we passed on, without end: it reaches us again and
 * again. */
bool request_runs_away(enum hook hook);

#endif
