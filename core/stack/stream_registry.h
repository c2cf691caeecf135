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

/* Removes a stream of this owner. False if there is none, so that of two threads one succeeds. */
bool stream_registry_remove(hipmm_stream_t stream, enum stream_owner owner);

/* Calls `visit` for each stream of a device. None is removed meanwhile. */
void stream_registry_visit(int device, void (*visit)(void *closure, hipmm_stream_t stream), void *closure);

#endif
