/* SPDX-License-Identifier: MIT */
/* virtual.c: virtual memory management: reservations of addresses, physical memory behind handles, and mappings of the
 * one in the other. Called by applications. */
#include "nvidia.h"

/* HIP's handle is a pointer, CUDA's a number of the same width. */
static CUmemGenericAllocationHandle virtual_handle(hipMemGenericAllocationHandle_t handle)
{
  return (CUmemGenericAllocationHandle)(uintptr_t)handle;
}

static hipMemGenericAllocationHandle_t virtual_handle_back(CUmemGenericAllocationHandle handle)
{
  return (hipMemGenericAllocationHandle_t)(uintptr_t)handle;
}

/* ---- Properties ------------------------------------------------------------------------------------------------ */

/* HIP 5.3 adopted CUDA's layout; before, the flags had fields of their own. */
static CUmemAllocationProp virtual_properties(const hipMemAllocationProp *given)
{
  CUmemAllocationProp properties = {
      .type = (CUmemAllocationType)given->type,
      .requestedHandleTypes = (CUmemAllocationHandleType)given->requestedHandleType,
      .location = {.type = (CUmemLocationType)given->location.type, .id = given->location.id},
      .win32HandleMetaData = given->win32HandleMetaData,
  };
#if HIP_VERSION >= 50300000
  properties.allocFlags.compressionType = given->allocFlags.compressionType;
  properties.allocFlags.gpuDirectRDMACapable = given->allocFlags.gpuDirectRDMACapable;
  properties.allocFlags.usage = given->allocFlags.usage;
#else
  properties.allocFlags.compressionType = given->compressionType;
  properties.allocFlags.usage = given->usage;
#endif
  return properties;
}

static hipMemAllocationProp virtual_properties_back(const CUmemAllocationProp *found)
{
  hipMemAllocationProp properties = {
      .type = (hipMemAllocationType)found->type,
      .requestedHandleType = (hipMemAllocationHandleType)found->requestedHandleTypes,
      .location = {.type = (hipMemLocationType)found->location.type, .id = found->location.id},
      .win32HandleMetaData = found->win32HandleMetaData,
  };
#if HIP_VERSION >= 50300000
  properties.allocFlags.compressionType = found->allocFlags.compressionType;
  properties.allocFlags.gpuDirectRDMACapable = found->allocFlags.gpuDirectRDMACapable;
  properties.allocFlags.usage = found->allocFlags.usage;
#else
  properties.compressionType = found->allocFlags.compressionType;
  properties.usage = found->allocFlags.usage;
#endif
  return properties;
}

hipError_t hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *given,
                                          hipMemAllocationGranularity_flags option)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!granularity || !given) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemGetAllocationGranularity) return nvidia_fail(hipErrorNotSupported);
  CUmemAllocationProp properties = virtual_properties(given);
  return nvidia_end(
      nvidia_cuda.MemGetAllocationGranularity(granularity, &properties, (CUmemAllocationGranularity_flags)option));
}

hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *properties,
                                                   hipMemGenericAllocationHandle_t handle)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!properties) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemGetAllocationPropertiesFromHandle) return nvidia_fail(hipErrorNotSupported);
  CUmemAllocationProp found;
  CUresult result = nvidia_cuda.MemGetAllocationPropertiesFromHandle(&found, virtual_handle(handle));
  if (result == CUDA_SUCCESS) *properties = virtual_properties_back(&found);
  return nvidia_end(result);
}

/* ---- Addresses ------------------------------------------------------------------------------------------------- */

hipError_t hipMemAddressReserve(void **pointer, size_t bytes, size_t alignment, void *wish, unsigned long long flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemAddressReserve) return nvidia_fail(hipErrorNotSupported);
  CUdeviceptr address = 0;
  CUresult result = nvidia_cuda.MemAddressReserve(&address, bytes, alignment, nvidia_address(wish), flags);
  if (result == CUDA_SUCCESS) *pointer = nvidia_pointer(address);
  return nvidia_end(result);
}

hipError_t hipMemAddressFree(void *pointer, size_t bytes)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemAddressFree) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_cuda.MemAddressFree(nvidia_address(pointer), bytes));
}

/* ---- Physical memory ------------------------------------------------------------------------------------------- */

/* A network card can read and write all of AMD's memory. NVIDIA's driver wants to be asked for it; without the flag, a transfer
 * fails or goes through the host. */
static void virtual_ask_for_rdma(CUmemAllocationProp *properties)
{
  int can = 0;
  CUresult result = nvidia_cuda.DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                                                   properties->location.id);
  if (result == CUDA_SUCCESS && can) properties->allocFlags.gpuDirectRDMACapable = 1;
}

/* The flag is a request: memory that has it tells. */
bool virtual_has_rdma(int device)
{
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
  CUmemGenericAllocationHandle handle;
  size_t granularity = 0;
  if (!nvidia_cuda.MemCreate || !nvidia_cuda.MemGetAllocationGranularity ||
      !nvidia_cuda.MemGetAllocationPropertiesFromHandle)
    return false;
  virtual_ask_for_rdma(&properties);
  if (nvidia_cuda.MemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ||
      nvidia_cuda.MemCreate(&handle, granularity, &properties, 0))
    return false;
  CUresult result = nvidia_cuda.MemGetAllocationPropertiesFromHandle(&properties, handle);
  nvidia_cuda.MemRelease(handle);
  return result == CUDA_SUCCESS && properties.allocFlags.gpuDirectRDMACapable;
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes, const hipMemAllocationProp *given,
                        unsigned long long flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!handle || !given) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemCreate) return nvidia_fail(hipErrorNotSupported);
  CUmemAllocationProp properties = virtual_properties(given);
  CUmemGenericAllocationHandle created = 0;
  if (given->location.type == hipMemLocationTypeDevice) virtual_ask_for_rdma(&properties);
  CUresult result = nvidia_call(nvidia_cuda.MemCreate(&created, bytes, &properties, flags));
  if (result == CUDA_SUCCESS) *handle = virtual_handle_back(created);
  return nvidia_end(result);
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemRelease) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_cuda.MemRelease(virtual_handle(handle)));
}

hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!handle || !pointer) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemRetainAllocationHandle) return nvidia_fail(hipErrorNotSupported);
  CUmemGenericAllocationHandle found = 0;
  CUresult result = nvidia_cuda.MemRetainAllocationHandle(&found, pointer);
  if (result == CUDA_SUCCESS) *handle = virtual_handle_back(found);
  return nvidia_end(result);
}

hipError_t hipMemExportToShareableHandle(void *shareable, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!shareable) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemExportToShareableHandle) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_cuda.MemExportToShareableHandle(shareable, virtual_handle(handle),
                                                           (CUmemAllocationHandleType)type, flags));
}

/* In CUDA the value of the pointer is the descriptor, in ROCm the pointer points to it. By default, Linux has descriptors
 * up to 2^20, and no address that low. */
static void *virtual_descriptor(void *shareable, hipMemAllocationHandleType type)
{
  const uintptr_t limit = 1 << 20;
  bool is_address = type == hipMemHandleTypePosixFileDescriptor && (uintptr_t)shareable >= limit;
  return is_address ? (void *)(intptr_t) * (const int *)shareable : shareable;
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *shareable,
                                           hipMemAllocationHandleType type)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!handle) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemImportFromShareableHandle) return nvidia_fail(hipErrorNotSupported);
  CUmemGenericAllocationHandle imported = 0;
  void *descriptor = virtual_descriptor(shareable, type);
  CUresult result =
      nvidia_call(nvidia_cuda.MemImportFromShareableHandle(&imported, descriptor, (CUmemAllocationHandleType)type));
  if (result == CUDA_SUCCESS) *handle = virtual_handle_back(imported);
  return nvidia_end(result);
}

/* ---- Mappings -------------------------------------------------------------------------------------------------- */

hipError_t hipMemMap(void *pointer, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemMap) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(
      nvidia_call(nvidia_cuda.MemMap(nvidia_address(pointer), bytes, offset, virtual_handle(handle), flags)));
}

hipError_t hipMemUnmap(void *pointer, size_t bytes)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemUnmap) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemUnmap(nvidia_address(pointer), bytes)));
}

hipError_t hipMemSetAccess(void *pointer, size_t bytes, const hipMemAccessDesc *access, size_t count)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!access || count == 0) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemSetAccess) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(
      nvidia_call(nvidia_cuda.MemSetAccess(nvidia_address(pointer), bytes, nvidia_access(access), count)));
}

hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location, void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!flags || !location) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemGetAccess) return nvidia_fail(hipErrorNotSupported);
  CUmemLocation where = nvidia_location(*location);
  return nvidia_end(nvidia_call(nvidia_cuda.MemGetAccess(flags, &where, nvidia_address(pointer))));
}
