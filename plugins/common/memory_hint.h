/* SPDX-License-Identifier: MIT */
/* memory_hint.h: the common part of the adaptors that give HIP a hint about memory after its allocation (prefetch, advise).
 * A hint that does not apply is no failure: a hint about memory that is not managed, or on a device that cannot move
 * managed memory while it is in use. If a hint fails, the memory is released. */
#ifndef HIPMM_PLUGINS_COMMON_MEMORY_HINT_H
#define HIPMM_PLUGINS_COMMON_MEMORY_HINT_H

#include <hipmm/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

/* The first member of such an adaptor. */
struct memory_hint {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const char *call; /* the HIP function */
  bool is_on;       /* the device can: hipDeviceAttributeConcurrentManagedAccess */
  atomic_bool has_logged;
  atomic_uint_fast64_t given, given_bytes, ignored;
};

/* Warns if the hint applies to no memory below. */
void memory_hint_validate(const struct hipmm_validation *validation, const char *call);

/* Called on creation. `has_call`: the runtime exports the function. */
enum hipmm_status memory_hint_open(struct memory_hint *hint, const struct hipmm_services *services,
                                   struct hipmm_resource *upstream, const char *call, bool has_call);

/* Whether `device` can move managed memory while it is in use. */
enum hipmm_status memory_hint_device_can(const struct hipmm_services *services, int device, bool *can_out);

/* Counts a hint about `bytes` by HIP's result. Returns a failure that is not harmless. */
enum hipmm_status memory_hint_classify(struct memory_hint *hint, int code, size_t bytes);

/* Releases a block to the upstream after its allocation, since a hint about it failed with `status`. Returns `status`. */
enum hipmm_status memory_hint_release(const struct memory_hint *hint, enum hipmm_status status,
                                      struct hipmm_block block, size_t alignment, hipmm_stream_t stream);

/* Ops and values that are the same for all. `self` begins with a struct memory_hint. */
enum hint_value {
  MEMORY_HINT_IS_ON,
  MEMORY_HINT_GIVEN,
  MEMORY_HINT_GIVEN_BYTES,
  MEMORY_HINT_IGNORED,
  MEMORY_HINT_VALUES
};

enum hipmm_status memory_hint_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
enum hipmm_status memory_hint_query(void *self, size_t index, int64_t *value_out);

#endif
