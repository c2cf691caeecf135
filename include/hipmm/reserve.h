/* SPDX-License-Identifier: MIT */
/* hipmm/reserve.h: reservations. A task reserves memory before it allocates, so that tasks that do not fit together run one
 * after the other.
 *
 * A resource of the type `reserving` (`hipmm describe reserving`) has a limit, of which tasks reserve parts. A reservation is a
 * resource: blocks, buffers and streams allocate from it, and hipmm_resource_set_current() makes it current. A reservation owns
 * what its blocks use and what it may still spend. Allocations from the `reserving` resource itself get memory that nobody has
 * reserved.
 *
 * The conventions of hipmm.h hold. All functions are thread-safe. */
#ifndef HIPMM_RESERVE_H
#define HIPMM_RESERVE_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

/* A request for a reservation. The caller sets struct_size = sizeof(struct hipmm_reserve_request). A field that is 0 or NULL
 * has its default. Later releases may add fields. */
struct hipmm_reserve_request {
  size_t struct_size;
  struct hipmm_resource *resource; /* the nearest `reserving` at or below; NULL: the device's current resource */
  size_t bytes;
  int64_t timeout_ns; /* 0: fail at once if there is no room; below 0: wait for ever */
  int64_t priority;   /* the highest goes first; equal priorities go in the order of their calls */
  const char *name;   /* for messages; no other live created resource may have it. NULL: a name from the type */
};

/* Reserves memory. The caller owns a reference to `reservation_out`. The call waits for its turn. It does not wait for a
 * device's work, and takes no memory from other resources. HIPMM_E_LIMIT: the request is above the limit, and the call fails at
 * once; or there was no room in time, and the message names the holders. If no request is granted and no memory is given back
 * for `progress_timeout`, the smallest request is granted above the limit ("when_stuck": "overbook"), or fails with
 * HIPMM_E_LIMIT ("fail"). HIPMM_E_ARGUMENT: neither the resource nor one below it is `reserving`. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_reserve(const struct hipmm_reserve_request *request,
                                                 struct hipmm_resource **reservation_out);

/* Changes a reservation's bytes, and never waits. HIPMM_E_LIMIT: fewer bytes than are in use, or there is no room, or other
 * requests wait. Nothing has changed then. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_reservation_resize(struct hipmm_resource *reservation, size_t bytes);

/* Gives back what the reservation has not spent, and the caller's reference. hipmm_resource_release() of the last reference
 * does the same. Blocks stay, and keep what they use until they are freed. They are freed through the reservation, as long as
 * something such as a buffer refers to it, or through the `reserving` resource. HIPMM_E_STATE: the reservation was released
 * before, and nothing has changed. */
enum hipmm_status hipmm_reservation_release(struct hipmm_resource *reservation);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
