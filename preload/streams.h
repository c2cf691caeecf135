/* SPDX-License-Identifier: MIT */
/* streams.h: the streams that the program made, so that hipmm knows that they last, and until when. */
#ifndef HIPMM_PRELOAD_STREAMS_H
#define HIPMM_PRELOAD_STREAMS_H

#include "hooks.h"
#include <hipmm/plugin.h>

/* Make a stream with the real function, and note it. */
int streams_create(enum hook hook, hipStream_t *stream);
int streams_create_with_flags(enum hook hook, hipStream_t *stream, unsigned flags);
int streams_create_with_priority(enum hook hook, hipStream_t *stream, unsigned flags, int priority);

/* Tells hipmm that the stream ends, then ends it with the real function. */
int streams_destroy(enum hook hook, hipStream_t stream);

/* Promises the streams of a device that has just begun to be served. */
void streams_promise_known(int device);

/* Whether no stream of the device that the program made, nor the default stream, has work or is being captured. Does
 * not wait. */
bool streams_are_idle(int device);

/* The stream that the caller of the function means: a program that was compiled for per-thread default streams means
 * the thread's own by 0. */
hipStream_t streams_meant(enum hook hook, hipStream_t stream);

/* The device of a stream; the current device for the default streams and where nobody can tell. */
int streams_device(enum family family, hipStream_t stream);

#endif
