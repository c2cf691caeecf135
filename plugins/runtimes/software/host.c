/* SPDX-License-Identifier: MIT */
/* host.c: memory that the host and all devices share: pinned, registered, managed. Called by applications. It is
 * charged to the capacity of the host and not of a device, since managed memory may be larger than any device. advice.c
 * has the advice for managed memory. */
#include "internal.h"
#include <string.h>

/* Frees what managed pools hold in reserve; false if there was nothing. */
static bool host_drain_pools(void)
{
  bool has_drained = false;
  for (int device = 0; device < software.config.devices; device++) has_drained |= software_pools_drain(device);
  return has_drained;
}

static hipError_t host_allocate(enum software_memory_kind kind, int device, size_t bytes, unsigned flags,
                                void **pointer_out)
{
  struct software_allocation *allocation;
  if (bytes == 0) {
    *pointer_out = NULL;
    return hipSuccess;
  }
  hipError_t error = software_allocation_create(kind, device, bytes, &allocation);
  if (error != hipSuccess && bytes <= software.config.host_memory_bytes && host_drain_pools())
    error = software_allocation_create(kind, device, bytes, &allocation);
  if (error != hipSuccess) return error;
  allocation->flags = flags;
  *pointer_out = (void *)allocation->by_address.major;
  return hipSuccess;
}

/* ---- Pinned ---------------------------------------------------------------------------------------------------- */

static hipError_t host_pinned(enum software_call call, void **pointer, size_t bytes, unsigned flags)
{
  const unsigned known = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined |
                         hipHostMallocNumaUser | hipHostMallocCoherent | hipHostMallocNonCoherent;
  int device;
  hipError_t error = software_begin_on_device(call, &device);
  bool is_both = (flags & hipHostMallocCoherent) && (flags & hipHostMallocNonCoherent);
  if (error == hipSuccess && (!pointer || (flags & ~known) || is_both)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = host_allocate(SOFTWARE_PINNED, device, bytes, flags, pointer);
  return software_end(error);
}

hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned int flags)
{
  return host_pinned(SOFTWARE_hipHostMalloc, pointer, bytes, flags);
}

hipError_t hipHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
  return host_pinned(SOFTWARE_hipHostAlloc, pointer, bytes, flags);
}

hipError_t hipExtHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
  return host_pinned(SOFTWARE_hipExtHostAlloc, pointer, bytes, flags);
}

hipError_t hipMemAllocHost(void **pointer, size_t bytes)
{
  return host_pinned(SOFTWARE_hipMemAllocHost, pointer, bytes, hipHostMallocDefault);
}

hipError_t hipMallocHost(void **pointer, size_t bytes)
{
  return host_pinned(SOFTWARE_hipMallocHost, pointer, bytes, hipHostMallocDefault);
}

static hipError_t host_free(enum software_call call, void *pointer)
{
  hipError_t error = software_begin(call);
  return software_end(error != hipSuccess ? error : software_free(pointer, 1U << SOFTWARE_PINNED));
}

hipError_t hipHostFree(void *pointer)
{
  return host_free(SOFTWARE_hipHostFree, pointer);
}

hipError_t hipFreeHost(void *pointer)
{
  return host_free(SOFTWARE_hipFreeHost, pointer);
}

/* ---- Registered ------------------------------------------------------------------------------------------------ */

static bool host_is_taken(uintptr_t start, size_t bytes)
{
  const struct key_tree_node *last = key_tree_at_most(software.allocations, start + bytes - 1);
  return last && last->major + last->minor > start;
}

static hipError_t host_register(int device, void *pointer, size_t bytes, unsigned flags)
{
  const unsigned known = hipHostRegisterPortable | hipHostRegisterMapped | hipExtHostRegisterCoarseGrained;
  uintptr_t start = (uintptr_t)pointer;
  if (bytes == 0 || bytes > UINTPTR_MAX - start || (flags & ~known)) return hipErrorInvalidValue;
  if (host_is_taken(start, bytes)) return hipErrorHostMemoryAlreadyRegistered;
  struct software_span span;
  hipError_t error = software_span_open(pointer, bytes, true, device, &span);
  if (error != hipSuccess) return error;
  bool is_host = software_span_is_host(&span);
  software_span_close(&span);
  if (!is_host) return hipErrorInvalidValue;
  struct software_allocation *allocation;
  error = software_allocation_add(SOFTWARE_REGISTERED, device, pointer, bytes, &allocation);
  if (error == hipSuccess) allocation->flags = flags;
  return error;
}

hipError_t hipHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipHostRegister, &device);
  return software_end(error != hipSuccess ? error : host_register(device, pointer, bytes, flags));
}

hipError_t hipHostUnregister(void *pointer)
{
  hipError_t error = software_begin(SOFTWARE_hipHostUnregister);
  if (error == hipSuccess && !pointer) error = hipErrorInvalidValue;
  const struct software_allocation *allocation = software_allocation_at(pointer);
  if (error == hipSuccess && (!allocation || allocation->kind != SOFTWARE_REGISTERED))
    error = hipErrorHostMemoryNotRegistered;
  return software_end(error != hipSuccess ? error : software_free(pointer, 1U << SOFTWARE_REGISTERED));
}

static bool host_is_pinned(const struct software_allocation *allocation)
{
  return allocation && (allocation->kind == SOFTWARE_PINNED || allocation->kind == SOFTWARE_REGISTERED);
}

hipError_t hipHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned int flags)
{
  hipError_t error = software_begin(SOFTWARE_hipHostGetDevicePointer);
  bool is_valid = device_pointer && flags == 0 && host_is_pinned(software_allocation_holding(host_pointer));
  if (error == hipSuccess && !is_valid) error = hipErrorInvalidValue;
  if (error == hipSuccess) *device_pointer = host_pointer;
  return software_end(error);
}

hipError_t hipHostGetFlags(unsigned int *flags, void *pointer)
{
  hipError_t error = software_begin(SOFTWARE_hipHostGetFlags);
  const struct software_allocation *allocation = software_allocation_holding(pointer);
  if (error == hipSuccess && (!flags || !host_is_pinned(allocation))) error = hipErrorInvalidValue;
  if (error == hipSuccess) *flags = allocation->flags;
  return software_end(error);
}

/* ---- Managed --------------------------------------------------------------------------------------------------- */

hipError_t hipMallocManaged(void **pointer, size_t bytes, unsigned int flags)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipMallocManaged, &device);
  if (error == hipSuccess && !software.config.managed_memory) error = hipErrorNotSupported;
  if (error == hipSuccess && (!pointer || bytes == 0 || (flags != hipMemAttachGlobal && flags != hipMemAttachHost)))
    error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : host_allocate(SOFTWARE_MANAGED, device, bytes, flags, pointer));
}
