/* SPDX-License-Identifier: MIT */
/* stream_registry.h: the streams that last, by handle: those that hipmm created and has not destroyed yet, and those that
 * the program has retained and not retired. No wait for a device ends the capture of one. */
#ifndef HIPMM_CORE_STACK_STREAM_REGISTRY_H
#define HIPMM_CORE_STACK_STREAM_REGISTRY_H

#include <hipmm/hipmm.h>

#include <stdbool.h>
#include <stdint.h>

enum stream_owner { STREAM_OF_PROGRAM = 1, STREAM_OF_POOL, STREAM_OF_OTHERS };

/* False when there is no host memory. */
bool stream_registry_add(hipmm_stream_t stream, int device, enum stream_owner owner);

/* Adds a stream that the program retains, and forgets it: no function but the last below knows such streams. A stream that
 * hipmm created stays as it is. Without host memory the stream is not added. */
void stream_registry_retain(hipmm_stream_t stream, int device);
void stream_registry_retire(hipmm_stream_t stream);
void stream_registry_retire_all(void);

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
