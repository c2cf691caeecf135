/* SPDX-License-Identifier: MIT */
/* memory.c: device memory, and queries about any memory. Called by applications. As in HIP, and unlike the driver,
 * zero bytes are a NULL pointer and no error. */
#include "nvidia.h"

#include <string.h>

hipError_t hipMalloc(void **pointer, size_t bytes)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer) return nvidia_fail(hipErrorInvalidValue);
  CUdeviceptr address = 0;
  CUresult result = CUDA_SUCCESS;
  if (bytes > 0) result = nvidia_call(nvidia_cuda.MemAlloc(&address, bytes));
  if (result == CUDA_SUCCESS) *pointer = nvidia_pointer(address);
  return nvidia_end(result);
}

/* NVIDIA's device memory is of one kind. */
hipError_t hipExtMallocWithFlags(void **pointer, size_t bytes, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (flags == hipDeviceMallocDefault) return hipMalloc(pointer, bytes);
  bool is_known = flags == hipDeviceMallocFinegrained || flags == hipMallocSignalMemory;
  return nvidia_fail(is_known ? hipErrorNotSupported : hipErrorInvalidValue);
}

/* In rows that are aligned for accesses of any width. */
hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
  const unsigned widest_access = 16;
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer || !pitch) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemAllocPitch) return nvidia_fail(hipErrorNotSupported);
  CUdeviceptr address = 0;
  CUresult result = CUDA_SUCCESS;
  if (width > 0 && height > 0) {
    size_t row_bytes = 0;
    result = nvidia_call(nvidia_cuda.MemAllocPitch(&address, &row_bytes, width, height, widest_access));
    if (result == CUDA_SUCCESS) *pitch = row_bytes;
  }
  if (result == CUDA_SUCCESS) *pointer = nvidia_pointer(address);
  return nvidia_end(result);
}

hipError_t hipFree(void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  CUresult result = CUDA_SUCCESS;
  if (!pointer) { /* gives the thread a context: programs free NULL to initialise the device */
    nvidia_bind_thread(&result);
    return nvidia_end(result);
  }
  return nvidia_end(nvidia_call(nvidia_cuda.MemFree(nvidia_address(pointer))));
}

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!free_bytes || !total_bytes) return nvidia_fail(hipErrorInvalidValue);
  return nvidia_end(nvidia_call(nvidia_cuda.MemGetInfo(free_bytes, total_bytes)));
}

/* ---- Queries --------------------------------------------------------------------------------------------------- */

static CUresult memory_range(const void *pointer, CUdeviceptr *base_out, size_t *bytes_out)
{
  if (!nvidia_cuda.MemGetAddressRange) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult result = nvidia_call(nvidia_cuda.MemGetAddressRange(base_out, bytes_out, nvidia_address(pointer)));
  return result;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!base && !bytes) return nvidia_fail(hipErrorInvalidValue);
  CUdeviceptr start = 0;
  size_t length = 0;
  CUresult result = memory_range(pointer, &start, &length);
  if (result != CUDA_SUCCESS) return nvidia_end(result);
  if (base) *base = nvidia_pointer(start);
  if (bytes) *bytes = length;
  return hipSuccess;
}

hipError_t hipMemPtrGetInfo(void *pointer, size_t *bytes)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!bytes) return nvidia_fail(hipErrorInvalidValue);
  CUdeviceptr start = 0;
  size_t length = 0;
  CUresult result = memory_range(pointer, &start, &length);
  if (result != CUDA_SUCCESS) return nvidia_end(result);
  if (start != nvidia_address(pointer)) return nvidia_fail(hipErrorInvalidValue);
  *bytes = length;
  return hipSuccess;
}

/* What the driver knows of a pointer; type is 0 if nothing. */
struct memory_facts {
  CUmemorytype type;
  int device;
  unsigned is_managed;
  CUdeviceptr device_address;
  void *host_pointer;
};

static CUresult memory_find(const void *pointer, struct memory_facts *facts_out)
{
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                      CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void *values[] = {&facts_out->type, &facts_out->device, &facts_out->is_managed, &facts_out->device_address,
                    &facts_out->host_pointer};
  *facts_out = (struct memory_facts){.device = -1};
  if (!nvidia_cuda.PointerGetAttributes) return CUDA_ERROR_NOT_SUPPORTED;
  return nvidia_call(
      nvidia_cuda.PointerGetAttributes(sizeof values / sizeof *values, attributes, values, nvidia_address(pointer)));
}

static unsigned memory_host_flags(void *pointer)
{
  unsigned flags = 0;
  if (nvidia_cuda.MemHostGetFlags && nvidia_cuda.MemHostGetFlags(&flags, pointer) != CUDA_SUCCESS) flags = 0;
  return flags;
}

static hipMemoryType memory_type(const struct memory_facts *facts)
{
#if HIP_VERSION >= 60000000
  if (facts->is_managed) return hipMemoryTypeManaged;
  if (!facts->type) return hipMemoryTypeUnregistered;
#endif
  return facts->type == CU_MEMORYTYPE_HOST && !facts->is_managed ? hipMemoryTypeHost : hipMemoryTypeDevice;
}

/* In the layout and with the numbers of the headers that this file is compiled with: HIP 6 changed both. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!attributes || !pointer) return nvidia_fail(hipErrorInvalidValue);
  struct memory_facts facts;
  CUresult result = memory_find(pointer, &facts);
  if (result != CUDA_SUCCESS) return nvidia_end(result);
  if (HIP_VERSION < 60000000 && !facts.type) return nvidia_fail(hipErrorInvalidValue);
  bool is_host = facts.type == CU_MEMORYTYPE_HOST && !facts.is_managed;
  *attributes = (hipPointerAttribute_t)
  {
#if HIP_VERSION >= 60000000
    .type = memory_type(&facts),
#else
    .memoryType = memory_type(&facts),
#endif
    .device = facts.device, .devicePointer = nvidia_pointer(facts.device_address), .hostPointer = facts.host_pointer,
    .isManaged = facts.is_managed != 0, .allocationFlags = is_host ? memory_host_flags(facts.host_pointer) : 0,
  };
  return hipSuccess;
}

/* The attributes with one value that both HIP and the driver support, in as many bytes as HIP writes. */
hipError_t hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!data || !pointer) return nvidia_fail(hipErrorInvalidValue);
  struct memory_facts facts;
  CUresult result = memory_find(pointer, &facts);
  if (result != CUDA_SUCCESS) return nvidia_end(result);
  if (!facts.type) return nvidia_fail(hipErrorInvalidValue);
  uint32_t number = 0;
  void *address = nvidia_pointer(facts.device_address);
  bool truth = attribute == HIP_POINTER_ATTRIBUTE_MAPPED || facts.is_managed;
  switch (attribute) {
  case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE: number = (uint32_t)memory_type(&facts); break;
  case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL: number = (uint32_t)facts.device; break;
  case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
  case HIP_POINTER_ATTRIBUTE_MAPPED: memcpy(data, &truth, sizeof truth); return hipSuccess;
  case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
    address = facts.host_pointer;
    if (!address) return nvidia_fail(hipErrorInvalidValue);
  /* fall through */
  case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER: memcpy(data, &address, sizeof address); return hipSuccess;
  default: return nvidia_fail(hipErrorNotSupported);
  }
  memcpy(data, &number, sizeof number);
  return hipSuccess;
}
