/* SPDX-License-Identifier: MIT */
/* memory.c: device memory, and questions about any memory. Called by applications. Freeing waits for the work of the
 * memory's device, as HIP up to release 6 does; allocating waits only when memory that pools hold must be had back. */
#include "internal.h"

static hipError_t memory_allocate(int device, size_t bytes, void **pointer_out)
{
  if (!pointer_out) return hipErrorInvalidValue;
  struct software_allocation *allocation;
  if (bytes == 0) {
    *pointer_out = NULL;
    return hipSuccess;
  }
  hipError_t error = software_allocation_create(SOFTWARE_DEVICE_MEMORY, device, bytes, &allocation);
  if (error == hipErrorOutOfMemory && bytes <= software.config.memory_bytes && software_pools_drain(device))
    error = software_allocation_create(SOFTWARE_DEVICE_MEMORY, device, bytes, &allocation);
  if (error == hipSuccess) *pointer_out = (void *)allocation->by_address.major;
  return error;
}

hipError_t hipMalloc(void **pointer, size_t bytes)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipMalloc, &device);
  return software_end(error != hipSuccess ? error : memory_allocate(device, bytes, pointer));
}

hipError_t hipExtMallocWithFlags(void **pointer, size_t bytes, unsigned int flags)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipExtMallocWithFlags, &device);
  bool is_known = flags == hipDeviceMallocDefault || flags == hipDeviceMallocFinegrained ||
                  (flags == hipMallocSignalMemory && bytes == 8);
  if (error == hipSuccess && !is_known) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : memory_allocate(device, bytes, pointer));
}

hipError_t software_free(void *pointer, unsigned kinds)
{
  if (!pointer) return hipSuccess;
  struct software_allocation *allocation = software_allocation_at(pointer);
  if (!allocation || !(kinds & (1U << allocation->kind))) return hipErrorInvalidValue;
  int device = allocation->device;
  bool is_device_memory = allocation->kind == SOFTWARE_DEVICE_MEMORY || allocation->kind == SOFTWARE_POOLED;
  allocation->closing = true;
  software_wait_device(is_device_memory ? device : -1, software.sequence);
  if (allocation->kind == SOFTWARE_POOLED)
    software_pool_free(allocation);
  else
    software_allocation_destroy(allocation);
  return software.devices[device].fault;
}

hipError_t hipFree(void *pointer)
{
  const unsigned kinds = 1U << SOFTWARE_DEVICE_MEMORY | 1U << SOFTWARE_POOLED | 1U << SOFTWARE_MANAGED;
  hipError_t error = software_begin(SOFTWARE_hipFree);
  return software_end(error != hipSuccess ? error : software_free(pointer, kinds));
}

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipMemGetInfo, &device);
  if (error == hipSuccess && (!free_bytes || !total_bytes)) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    *free_bytes = software.config.memory_bytes - software.devices[device].used_bytes;
    *total_bytes = software.config.memory_bytes;
  }
  return software_end(error);
}

/* ---- Questions ------------------------------------------------------------------------------------------------- */

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t pointer)
{
  hipError_t error = software_begin(SOFTWARE_hipMemGetAddressRange);
  const struct software_allocation *allocation = software_allocation_holding(pointer);
  if (error == hipSuccess && !base && !bytes) error = hipErrorInvalidValue;
  if (error == hipSuccess && !allocation) error = hipErrorInvalidDevicePointer;
  if (error == hipSuccess && base) *base = (hipDeviceptr_t)allocation->by_address.major;
  if (error == hipSuccess && bytes) *bytes = allocation->by_address.minor;
  return software_end(error);
}

hipError_t hipMemPtrGetInfo(void *pointer, size_t *bytes)
{
  hipError_t error = software_begin(SOFTWARE_hipMemPtrGetInfo);
  const struct software_allocation *allocation = software_allocation_at(pointer);
  if (error == hipSuccess && (!bytes || !allocation)) error = hipErrorInvalidValue;
  if (error == hipSuccess) *bytes = allocation->by_address.minor;
  return software_end(error);
}

static void memory_set_type(hipPointerAttribute_t *attributes, hipMemoryType type)
{
#if HIP_VERSION_MAJOR < 6
  attributes->memoryType = type;
#else
  attributes->type = type;
#endif
}

static hipError_t memory_attributes(const void *pointer, hipPointerAttribute_t *attributes_out)
{
  const struct software_allocation *allocation = software_allocation_holding(pointer);
  int device = 0;
  if (!allocation && !software_virtual_device(pointer, &device)) return hipErrorInvalidValue;
  bool is_host = allocation && (allocation->kind == SOFTWARE_PINNED || allocation->kind == SOFTWARE_REGISTERED);
  bool is_managed = allocation && (allocation->kind == SOFTWARE_MANAGED || software_pool_is_managed(allocation));
  *attributes_out = (hipPointerAttribute_t){.device = allocation ? allocation->device : device,
                                            .devicePointer = (void *)(uintptr_t)pointer,
                                            .hostPointer = is_host || is_managed ? (void *)(uintptr_t)pointer : NULL,
                                            .isManaged = is_managed,
                                            .allocationFlags = allocation ? allocation->flags : 0};
  memory_set_type(attributes_out, is_host ? hipMemoryTypeHost : hipMemoryTypeDevice);
  return hipSuccess;
}

/* In the layout of the headers that this file is compiled with: it changed with HIP 6. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer)
{
  hipError_t error = software_begin(SOFTWARE_hipPointerGetAttributes);
  if (error == hipSuccess && (!attributes || !pointer)) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : memory_attributes(pointer, attributes));
}
