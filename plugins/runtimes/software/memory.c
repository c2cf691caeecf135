/* SPDX-License-Identifier: MIT */
/* memory.c: device memory, and queries about any memory. Called by applications. A free waits for the work of the device
 * of the memory, as HIP up to release 6 does. An allocation waits only when it needs memory that pools hold. */
#include "../../../core/base/hip_layout.h"
#include "graph.h"
#include <string.h>

static hipError_t memory_allocate(int device, size_t bytes, unsigned flags, void **pointer_out)
{
  if (!pointer_out) return hipErrorInvalidValue;
  struct software_allocation *allocation;
  if (bytes == 0) {
    *pointer_out = NULL;
    return hipSuccess;
  }
  hipError_t error = software_allocation_create(SOFTWARE_DEVICE_MEMORY, device, bytes, &allocation);
  if (error != hipSuccess && bytes <= software.config.memory_bytes && software_pools_drain(device))
    error = software_allocation_create(SOFTWARE_DEVICE_MEMORY, device, bytes, &allocation);
  if (error != hipSuccess) return error;
  allocation->flags = flags;
  *pointer_out = (void *)allocation->by_address.major;
  return hipSuccess;
}

hipError_t hipMalloc(void **pointer, size_t bytes)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipMalloc, &device);
  return software_end(error != hipSuccess ? error : memory_allocate(device, bytes, hipDeviceMallocDefault, pointer));
}

static hipError_t memory_allocate_rows(int device, size_t width, size_t height, void **pointer_out, size_t *pitch_out)
{
  size_t pitch = software_align_up(width, SOFTWARE_PITCH_ALIGNMENT);
  if (!pointer_out || !pitch_out || (width > 0 && pitch == 0)) return hipErrorInvalidValue;
  if (pitch > 0 && height > SIZE_MAX / pitch) return hipErrorOutOfMemory;
  hipError_t error = memory_allocate(device, pitch * height, hipDeviceMallocDefault, pointer_out);
  if (error == hipSuccess && pitch * height > 0) *pitch_out = pitch;
  return error;
}

hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipMallocPitch, &device);
  return software_end(error != hipSuccess ? error : memory_allocate_rows(device, width, height, pointer, pitch));
}

/* The pitch suits elements of 4, 8 and 16 bytes. */
hipError_t hipMemAllocPitch(hipDeviceptr_t *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element_bytes)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipMemAllocPitch, &device);
  if (error == hipSuccess &&
      (width == 0 || height == 0 || (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)))
    error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : memory_allocate_rows(device, width, height, pointer, pitch));
}

hipError_t hipMalloc3D(hipPitchedPtr *memory, hipExtent extent)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipMalloc3D, &device);
  if (error == hipSuccess && !memory) error = hipErrorInvalidValue;
  if (error == hipSuccess && extent.depth > 0 && extent.height > SIZE_MAX / extent.depth) error = hipErrorOutOfMemory;
  if (error != hipSuccess) return software_end(error);
  hipPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
  error = memory_allocate_rows(device, extent.width, extent.height * extent.depth, &made.ptr, &made.pitch);
  if (error == hipSuccess) *memory = made;
  return software_end(error);
}

#define MEMORY_CONTIGUOUS 4 /* hipDeviceMallocContiguous, of HIP 6, and the largest flag */

/* All device memory is of one kind; the flags are stored. */
hipError_t hipExtMallocWithFlags(void **pointer, size_t bytes, unsigned int flags)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipExtMallocWithFlags, &device);
  bool is_known = flags <= MEMORY_CONTIGUOUS && (flags != hipMallocSignalMemory || bytes == 8);
  if (error == hipSuccess && !is_known) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : memory_allocate(device, bytes, flags, pointer));
}

/* The address stays that of the node, and may become live again. */
static hipError_t memory_free_of_graph(struct software_allocation *allocation)
{
  int device = allocation->device;
  if (!allocation->graph->is_live) return hipErrorInvalidValue;
  allocation->graph->is_live = false;
  software_graph_memory_use(allocation);
  software_wait_device(device, software.sequence);
  allocation->is_visible = false;
  software_graph_memory_unuse(allocation);
  return software.devices[device].fault;
}

hipError_t software_free(void *pointer, unsigned kinds)
{
  if (!pointer) return hipSuccess;
  struct software_allocation *allocation = software_allocation_at(pointer);
  if (!allocation || !(kinds & (1U << allocation->kind))) return hipErrorInvalidValue;
  if (allocation->graph) return memory_free_of_graph(allocation);
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
  hipError_t error = software_begin(SOFTWARE_hipFree);
  return software_end(error != hipSuccess ? error : software_free(pointer, SOFTWARE_FREEABLE));
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

/* ---- Queries --------------------------------------------------------------------------------------------------- */

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t pointer)
{
  hipError_t error = software_begin(SOFTWARE_hipMemGetAddressRange);
  const struct software_allocation *allocation = software_allocation_holding(pointer);
  if (error == hipSuccess && !base && !bytes) error = hipErrorInvalidValue;
  if (error == hipSuccess && !allocation) error = hipErrorNotFound;
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

/* What is known of a pointer. */
struct memory_facts {
  const struct software_allocation *allocation; /* NULL for mapped memory */
  int device;
  bool is_host, is_managed;
};

static bool memory_find(const void *pointer, struct memory_facts *facts_out)
{
  const struct software_allocation *allocation = software_allocation_holding(pointer);
  struct memory_facts facts = {.allocation = allocation, .device = hipInvalidDeviceId};
  if (!allocation && !software_virtual_device(pointer, &facts.device, &facts.is_host)) return false;
  if (allocation) {
    facts.device = allocation->device;
    facts.is_host = allocation->is_host;
    facts.is_managed = allocation->is_managed;
  }
  *facts_out = facts;
  return true;
}

/* hipMemoryType, by its numbers up to HIP 5 and from HIP 6 on. */
static int memory_type(const struct memory_facts *facts)
{
  enum { HOST, DEVICE, UNREGISTERED_6 = 0, HOST_6, DEVICE_6, MANAGED_6 };
  if (software_version() < HIP_LAYOUT_6_0) return facts->is_host ? HOST : DEVICE;
  if (facts->is_managed) return MANAGED_6;
  return facts->is_host ? HOST_6 : DEVICE_6;
}

/* hipPointerAttribute_t, whose first member HIP 6 renamed. */
struct memory_attributes {
  int type, device;
  void *device_pointer, *host_pointer;
  int is_managed;
  unsigned flags;
};

_Static_assert(sizeof(struct memory_attributes) == sizeof(hipPointerAttribute_t), "hipPointerAttribute_t has changed");

/* From HIP 6 on, memory of the application itself has a type, too: 0. */
static hipError_t memory_attributes(const void *pointer, struct memory_attributes *attributes_out)
{
  struct memory_facts facts;
  if (!memory_find(pointer, &facts)) {
    if (software_version() < HIP_LAYOUT_6_0) return hipErrorInvalidValue;
    *attributes_out = (struct memory_attributes){.device = hipInvalidDeviceId};
    return hipSuccess;
  }
  void *address = (void *)(uintptr_t)pointer;
  *attributes_out = (struct memory_attributes){.type = memory_type(&facts),
                                               .device = facts.device,
                                               .device_pointer = address,
                                               .host_pointer = facts.is_host || facts.is_managed ? address : NULL,
                                               .is_managed = facts.is_managed,
                                               .flags = facts.allocation ? facts.allocation->flags : 0};
  return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer)
{
  hipError_t error = software_begin(SOFTWARE_hipPointerGetAttributes);
  if (error == hipSuccess && (!attributes || !pointer)) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : memory_attributes(pointer, (struct memory_attributes *)attributes));
}

/* The value of one attribute, in as many bytes as HIP writes. */
union memory_attribute_value {
  bool truth;
  uint32_t number;
  const void *pointer;
};

static hipError_t memory_allocation_attribute(hipPointer_attribute attribute,
                                              const struct software_allocation *allocation,
                                              union memory_attribute_value *value_out, size_t *bytes_out)
{
  if (!allocation) return hipErrorInvalidValue;
  *bytes_out = sizeof value_out->number;
  switch (attribute) {
  case HIP_POINTER_ATTRIBUTE_BUFFER_ID: value_out->number = allocation->id; break;
  case HIP_POINTER_ATTRIBUTE_RANGE_SIZE: value_out->number = (uint32_t)allocation->by_address.minor; break;
  case HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS: value_out->number = allocation->flags; break;
  case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    value_out->pointer = (const void *)allocation->by_address.major;
    *bytes_out = sizeof value_out->pointer;
    break;
  default: return hipErrorInvalidValue;
  }
  return hipSuccess;
}

static hipError_t memory_attribute(hipPointer_attribute attribute, const void *pointer,
                                   union memory_attribute_value *value_out, size_t *bytes_out)
{
  struct memory_facts facts;
  if (!memory_find(pointer, &facts)) return hipErrorInvalidValue;
  switch (attribute) {
  case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *value_out = (union memory_attribute_value){.number = (uint32_t)memory_type(&facts)};
    *bytes_out = sizeof value_out->number;
    return hipSuccess;
  case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *value_out = (union memory_attribute_value){.number = (uint32_t)facts.device};
    *bytes_out = sizeof value_out->number;
    return hipSuccess;
  case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
    if (!facts.is_host && !facts.is_managed) return hipErrorInvalidValue;
  /* fall through */
  case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *value_out = (union memory_attribute_value){.pointer = pointer};
    *bytes_out = sizeof value_out->pointer;
    return hipSuccess;
  case HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS:
  case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
  case HIP_POINTER_ATTRIBUTE_MAPPED:
    value_out->truth = attribute == HIP_POINTER_ATTRIBUTE_MAPPED ||
                       (attribute == HIP_POINTER_ATTRIBUTE_IS_MANAGED && facts.is_managed);
    *bytes_out = sizeof value_out->truth;
    return hipSuccess;
  default: return memory_allocation_attribute(attribute, facts.allocation, value_out, bytes_out);
  }
}

/* The attributes that HIP names and does not support. */
static bool memory_is_unsupported(hipPointer_attribute attribute)
{
  return attribute == HIP_POINTER_ATTRIBUTE_CONTEXT || attribute == HIP_POINTER_ATTRIBUTE_P2P_TOKENS ||
         attribute == HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE ||
         attribute == HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES ||
         attribute == HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE ||
         attribute == HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
}

hipError_t hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t pointer)
{
  union memory_attribute_value value;
  size_t bytes = 0;
  hipError_t error = software_begin(SOFTWARE_hipPointerGetAttribute);
  if (error == hipSuccess && (!data || !pointer)) error = hipErrorInvalidValue;
  if (error == hipSuccess && memory_is_unsupported(attribute)) error = hipErrorNotSupported;
  if (error == hipSuccess) error = memory_attribute(attribute, pointer, &value, &bytes);
  if (error == hipSuccess) memcpy(data, &value, bytes);
  return software_end(error);
}
