/* SPDX-License-Identifier: MIT */
/* streams.h: the streams that the program creates, so that hipmm knows that they last, and until when; and the devices
 * that the program uses, so that their work can be waited for; and sets of handles, for streams and for pools. */
#ifndef HIPMM_TOOLS_PRELOAD_STREAMS_H
#define HIPMM_TOOLS_PRELOAD_STREAMS_H

#include "hooks.h"
#include <pthread.h>

/* These call the runtime's function and record the stream. */
int streams_create(enum hook hook, hipmm_stream_t *stream);
int streams_create_with_flags(enum hook hook, hipmm_stream_t *stream, unsigned flags);
int streams_create_with_priority(enum hook hook, hipmm_stream_t *stream, unsigned flags, int priority);

/* Tells hipmm that the stream ends, then calls the runtime's function. */
int streams_destroy(enum hook hook, hipmm_stream_t stream);

/* hipSetDevice() and cudaSetDevice(), and cuDevicePrimaryCtxRetain(). */
int streams_set_device(enum hook hook, int device);
int streams_retain_context(enum hook hook, void **context, int device);

/* The program has reset the device: its streams are no more. */
void streams_forget(int device);

/* Retains the known streams of a device that hipmm has begun to serve, and from then on each new one; until
 * streams_retain_no_more(). */
void streams_retain_known(int device);
void streams_retain_no_more(int device);

/* The stream that the caller of the function means: 0 is the thread's own default stream for a program that was
 * compiled for per-thread default streams. */
hipmm_stream_t streams_of_caller(enum hook hook, hipmm_stream_t stream);

/* The device of a stream; the current device for a default stream, and where the runtime cannot tell. */
int streams_device(enum family family, hipmm_stream_t stream);

/* Whether no stream of the device that the program created, nor the default stream, has work or is being captured. Does
 * not wait. */
bool streams_are_idle(int device);

/* Records that the program uses the device. */
void streams_mark_used(int device);

/* Waits for all work on the devices that the program uses. A HIP error code. */
int streams_synchronize_devices(void);

/* ---- Sets of handles that the program got from its runtime, each with its device. Thread-safe. ---- */

struct program_handle {
  void *handle;
  int device;
  struct pool_account *account; /* of a pool that hipmm may serve; NULL for others */
};

struct handle_set {
  pthread_mutex_t lock;
  struct program_handle *items;
  size_t count, capacity;
};

#define HANDLES_EMPTY                 \
  {                                   \
    .lock = PTHREAD_MUTEX_INITIALIZER \
  }

/* Adds the handle, or replaces the one with the same value. It stays unknown if there is no host memory for it. */
void handle_set_add(struct handle_set *handles, struct program_handle handle);
bool handle_set_find(struct handle_set *handles, const void *handle, struct program_handle *found_out);
bool handle_set_remove(struct handle_set *handles, const void *handle, struct program_handle *found_out);

#endif
