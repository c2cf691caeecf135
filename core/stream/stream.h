/* SPDX-License-Identifier: MIT */
/* stream.h: what the core does with streams, beside the public functions of hipmm/stream.h. */
#ifndef HIPMM_CORE_STREAM_STREAM_H
#define HIPMM_CORE_STREAM_STREAM_H

#include "../stack/stream_registry.h"

#include <hipmm/stream.h>

/* HIPMM_E_ARGUMENT if the stream is known to be of another device, or to be none. Costs no HIP call for the default
 * streams and for those that hipmm made. */
enum hipmm_status stream_check(int device, hipStream_t stream);

/* hipmm_stream_create() and _destroy() for both owners, and their check. */
enum hipmm_status stream_check_flags(unsigned flags);
enum hipmm_status stream_make(int device, unsigned flags, enum stream_owner owner, hipStream_t *stream_out);
enum hipmm_status stream_unmake(hipStream_t stream, int device, enum stream_owner owner);

/* Waits for a stream of a device that is current already. */
enum hipmm_status stream_wait_here(hipStream_t stream);

/* Makes what `stream` is given from now on wait for what `other` has been given; nothing here waits. Both are known to
 * be of their devices. */
enum hipmm_status stream_order(int device, hipStream_t stream, int other_device, hipStream_t other);

/* The handle for HIP's functions: HIP before 6.2 knows the legacy stream by NULL alone. */
static inline hipStream_t stream_for_hip(hipStream_t stream)
{
  return stream == HIPMM_LEGACY_STREAM ? NULL : stream;
}

static inline bool stream_is_by_name(hipStream_t stream)
{
  return (uintptr_t)stream <= (uintptr_t)HIPMM_PER_THREAD_STREAM;
}

#endif
