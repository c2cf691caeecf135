/* SPDX-License-Identifier: MIT */
/* stream_registry.h: the streams that hipmm created and has not destroyed yet, by handle. */
#ifndef HIPMM_CORE_STACK_STREAM_REGISTRY_H
#define HIPMM_CORE_STACK_STREAM_REGISTRY_H

#include <hipmm/hipmm.h>

#include <stdbool.h>
#include <stdint.h>

enum stream_owner { STREAM_OF_PROGRAM = 1, STREAM_OF_POOL };

/* False when there is no host memory. */
bool stream_registry_add(hipmm_stream_t stream, int device, enum stream_owner owner);

/* The owner and the device; 0 for a stream that hipmm did not create. Takes no lock. */
enum stream_owner stream_registry_find(hipmm_stream_t stream, int *device_out);

/* A number that no other stream ever has, even one with the same handle; 0 for a stream that hipmm did not create. Takes
 * no lock. */
uint64_t stream_registry_number(hipmm_stream_t stream);

/* Destroys a stream that was removed, and tells the stacks. */
typedef void stream_end_later(hipmm_stream_t stream, int device, enum stream_owner owner);

/* STREAM_UNKNOWN: there is no stream of this owner, so that of two threads one succeeds. STREAM_LEFT_TO_VISITOR: a visitor
 * has the stream, and calls `end` when it is done; the caller does not wait, since it may hold a lock that the visitor
 * needs. */
enum stream_removal { STREAM_UNKNOWN, STREAM_REMOVED, STREAM_LEFT_TO_VISITOR };
enum stream_removal stream_registry_remove(hipmm_stream_t stream, enum stream_owner owner, stream_end_later *end);

/* Calls `visit` for each stream of a device, which is valid until `visit` returns. Streams that are created or removed
 * meanwhile may be passed over. */
void stream_registry_visit(int device, void (*visit)(void *closure, hipmm_stream_t stream), void *closure);

#endif
