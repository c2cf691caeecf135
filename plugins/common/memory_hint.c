/* SPDX-License-Identifier: MIT */
/* memory_hint.c: checks the device, judges and counts hints, and provides the ops and values of such adaptors. */
#include "memory_hint.h"

enum hipmm_status memory_hint_device_can(const struct hipmm_services *services, int device, bool *can_out)
{
  int value = 0;
  int code = services->hip->DeviceGetAttribute(&value, HIPMM_HIP_DEVICE_CONCURRENT_MANAGED_ACCESS, device);
  if (code) return services->refuse_hip(services, "hipDeviceGetAttribute", code, 0);
  *can_out = value == 1;
  return HIPMM_OK;
}

enum hipmm_status memory_hint_open(struct memory_hint *hint, const struct hipmm_services *services,
                                   struct hipmm_resource *upstream, const char *call, bool has_call)
{
  bool can = false;
  enum hipmm_status status = memory_hint_device_can(services, services->device, &can);
  if (status) return status;
  if (can && !has_call)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "this runtime does not export %s", call);
  if (!can)
    services->log(services, HIPMM_LOG_INFO,
                  "does nothing: device %d cannot move managed memory while it is in use "
                  "(hipDeviceAttributeConcurrentManagedAccess is 0)",
                  services->device);
  hint->services = services;
  hint->upstream = upstream;
  hint->call = call;
  hint->is_on = can;
  return HIPMM_OK;
}

void memory_hint_validate(const struct hipmm_validation *validation, const char *call)
{
  if (validation->is_device_memory(validation))
    validation->warn(validation, NULL, "does nothing: %s applies to managed memory, and all memory below is a device's",
                     call);
}

static void memory_hint_count(atomic_uint_fast64_t *counter, uint64_t amount)
{
  atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* Logged once: nothing else shows that the adaptor has no effect. */
static void memory_hint_ignore(struct memory_hint *hint)
{
  memory_hint_count(&hint->ignored, 1);
  if (!atomic_exchange_explicit(&hint->has_logged, true, memory_order_relaxed))
    hint->services->log(hint->services, HIPMM_LOG_INFO,
                        "%s does not apply to memory of its upstream: it is not managed", hint->call);
}

enum hipmm_status memory_hint_classify(struct memory_hint *hint, int code, size_t bytes)
{
  if (code && code != HIPMM_HIP_ERROR_INVALID_VALUE)
    return hint->services->refuse_hip(hint->services, hint->call, code, bytes);
  if (code) {
    hint->services->hip->GetLastError();
    memory_hint_ignore(hint);
  } else {
    memory_hint_count(&hint->given, 1);
    memory_hint_count(&hint->given_bytes, bytes);
  }
  return HIPMM_OK;
}

enum hipmm_status memory_hint_release(const struct memory_hint *hint, enum hipmm_status status,
                                      struct hipmm_block block, size_t alignment, hipmm_stream_t stream)
{
  if (hipmm_upstream_deallocate(hint->upstream, block.ptr, block.bytes, alignment, stream))
    hint->services->log(hint->services, HIPMM_LOG_ERROR, "%p could not be released after %s failed: it is lost",
                        block.ptr, hint->call);
  return status;
}

enum hipmm_status memory_hint_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct memory_hint *hint = self;
  return hipmm_upstream_deallocate(hint->upstream, ptr, bytes, alignment, stream);
}

enum hipmm_status memory_hint_query(void *self, size_t index, int64_t *value_out)
{
  struct memory_hint *hint = self;
  switch (index) {
  case MEMORY_HINT_IS_ON: *value_out = hint->is_on; break;
  case MEMORY_HINT_GIVEN: *value_out = (int64_t)atomic_load_explicit(&hint->given, memory_order_relaxed); break;
  case MEMORY_HINT_GIVEN_BYTES:
    *value_out = (int64_t)atomic_load_explicit(&hint->given_bytes, memory_order_relaxed);
    break;
  default: *value_out = (int64_t)atomic_load_explicit(&hint->ignored, memory_order_relaxed);
  }
  return HIPMM_OK;
}
