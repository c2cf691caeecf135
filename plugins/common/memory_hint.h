/* SPDX-License-Identifier: MIT */
/* memory_hint.h: what the adaptors have in common that tell HIP something about memory after it was allocated (prefetch,
 * advise). Compiled into both. A hint that does not apply is no failure: to memory that is not managed, or on a device
 * that cannot move managed memory while it is in use. Where a hint fails, the memory goes back. */
#ifndef HIPMM_PLUGINS_COMMON_MEMORY_HINT_H
#define HIPMM_PLUGINS_COMMON_MEMORY_HINT_H

#include <hipmm/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

/* What such an adaptor begins with. */
struct memory_hint {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const char *call; /* the HIP function */
  bool is_on;       /* the device can: hipDeviceAttributeConcurrentManagedAccess */
  atomic_bool has_told;
  atomic_uint_fast64_t given, given_bytes, ignored;
};

/* For create. `has_call`: the runtime exports the function. */
enum hipmm_status memory_hint_open(struct memory_hint *hint, const struct hipmm_services *services,
                                   struct hipmm_resource *upstream, const char *call, bool has_call);

/* Whether `device` can. */
enum hipmm_status memory_hint_device_can(const struct hipmm_services *services, int device, bool *can_out);

/* Judges what HIP answered to a hint about `bytes`, and counts it. */
enum hipmm_status memory_hint_judge(struct memory_hint *hint, int code, size_t bytes);

/* A block that was just allocated goes back to the upstream, since a hint about it failed with `status`, which is
 * returned. */
enum hipmm_status memory_hint_give_back(const struct memory_hint *hint, enum hipmm_status status,
                                        struct hipmm_block block, size_t alignment, hipStream_t stream);

/* Ops and values that are the same for all. `self` begins with a struct memory_hint. */
enum hint_value {
  MEMORY_HINT_IS_ON,
  MEMORY_HINT_GIVEN,
  MEMORY_HINT_GIVEN_BYTES,
  MEMORY_HINT_IGNORED,
  MEMORY_HINT_VALUES
};

enum hipmm_status memory_hint_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream);
enum hipmm_status memory_hint_query(void *self, size_t index, int64_t *value_out);

#endif
