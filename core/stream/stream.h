/* SPDX-License-Identifier: MIT */
/* stream.h: the functions on streams that the core uses, beside the public ones of hipmm/stream.h. */
#ifndef HIPMM_CORE_STREAM_STREAM_H
#define HIPMM_CORE_STREAM_STREAM_H

#include "../runtime/hip.h"
#include "../stack/stream_registry.h"

#include <hipmm/stream.h>

/* HIPMM_E_ARGUMENT if the stream is known to be of another device, or not to be a stream. No HIP call for the default
 * streams and for streams that hipmm created. */
enum hipmm_status stream_check(int device, hipmm_stream_t stream);

/* Create and destroy a stream for both owners; the check is of hipmm_stream_create(). `priority` NULL: the usual
 * one. */
enum hipmm_status stream_check_flags(unsigned flags);
enum hipmm_status stream_create(int device, unsigned flags, const int *priority, enum stream_owner owner,
                                hipmm_stream_t *stream_out);
enum hipmm_status stream_destroy(hipmm_stream_t stream, int device, enum stream_owner owner);

/* Waits for a stream of the current device. */
enum hipmm_status stream_wait_here(hipmm_stream_t stream);

/* Whether all work is done, by the code of a query of HIP's `function`. */
enum hipmm_status stream_answer(int code, const char *function, int *done_out);

/* Makes work that `stream` is given from now on wait for the work that `other` has been given. The calling thread does not
 * wait. The caller has checked both streams. */
enum hipmm_status stream_order(int device, hipmm_stream_t stream, int other_device, hipmm_stream_t other);

/* An event of the work that a stream has been given, for the caller to drop; NULL if it fails. The work is over when the event is;
 * other streams can be made to wait for it, as stream_order() does. */
enum hipmm_status stream_event_take(int device, hipmm_stream_t stream, hipmm_hip_event_t *event_out);
enum hipmm_status stream_event_wait_on(int device, hipmm_stream_t stream, hipmm_hip_event_t event);
bool stream_event_is_over(hipmm_hip_event_t event);
void stream_event_drop(hipmm_hip_event_t event); /* NULL: nothing happens */

/* The handle for functions of HIP, which before 6.2 names the legacy stream by NULL alone. */
static inline hipmm_stream_t stream_for_hip(hipmm_stream_t stream)
{
  return stream == HIPMM_LEGACY_STREAM ? NULL : stream;
}

/* Has `watcher` called whenever a stream is retired or about to be destroyed, while it still can be waited for. For the
 * frameworks, which are two. */
typedef void stream_end_watcher(int device, hipmm_stream_t stream);
void stream_watch_ends(stream_end_watcher *watcher);

static inline bool stream_is_by_name(hipmm_stream_t stream)
{
  return (uintptr_t)stream <= (uintptr_t)HIPMM_PER_THREAD_STREAM;
}

#endif
