/* SPDX-License-Identifier: MIT */
/* pool.c: stream-ordered memory and the pools that it comes from. Called by applications. pool_share.c shares pools
 * with other processes. layouts.c checks the numbers and structs that are passed on unchanged. */
#include "nvidia.h"

static CUmemoryPool pool_of(hipMemPool_t pool)
{
  return (CUmemoryPool)pool;
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

hipError_t hipMallocAsync(void **pointer, size_t bytes, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemAllocAsync) return nvidia_fail(hipErrorNotSupported);
  CUdeviceptr address = 0;
  CUresult result = CUDA_SUCCESS;
  if (bytes > 0) result = nvidia_call(nvidia_cuda.MemAllocAsync(&address, bytes, nvidia_stream(stream)));
  if (result == CUDA_SUCCESS) *pointer = nvidia_pointer(address);
  return nvidia_end(result);
}

hipError_t hipMallocFromPoolAsync(void **pointer, size_t bytes, hipMemPool_t pool, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer || !pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemAllocFromPoolAsync) return nvidia_fail(hipErrorNotSupported);
  CUdeviceptr address = 0;
  CUresult result = CUDA_SUCCESS;
  if (bytes > 0)
    result = nvidia_call(nvidia_cuda.MemAllocFromPoolAsync(&address, bytes, pool_of(pool), nvidia_stream(stream)));
  if (result == CUDA_SUCCESS) *pointer = nvidia_pointer(address);
  return nvidia_end(result);
}

hipError_t hipFreeAsync(void *pointer, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemFreeAsync) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemFreeAsync(nvidia_address(pointer), nvidia_stream(stream))));
}

/* ---- Pools ----------------------------------------------------------------------------------------------------- */

static CUmemPoolProps pool_properties(const hipMemPoolProps *given)
{
  CUmemPoolProps properties = {
    .allocType = (CUmemAllocationType)given->allocType,
    .handleTypes = (CUmemAllocationHandleType)given->handleTypes,
    .location = {.type = (CUmemLocationType)given->location.type, .id = given->location.id},
    .win32SecurityAttributes = given->win32SecurityAttributes,
#if HIP_VERSION >= 60200000 && CUDA_VERSION >= 12020
    .maxSize = given->maxSize,
#endif
  };
  return properties;
}

hipError_t hipMemPoolCreate(hipMemPool_t *pool, const hipMemPoolProps *given)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool || !given) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolCreate) return nvidia_fail(hipErrorNotSupported);
  CUmemPoolProps properties = pool_properties(given);
  CUmemoryPool created = NULL;
  CUresult result = nvidia_call(nvidia_cuda.MemPoolCreate(&created, &properties));
  if (result == CUDA_SUCCESS) *pool = (hipMemPool_t)created;
  return nvidia_end(result);
}

hipError_t hipMemPoolDestroy(hipMemPool_t pool)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolDestroy) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemPoolDestroy(pool_of(pool))));
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool || !value) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolSetAttribute) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemPoolSetAttribute(pool_of(pool), (CUmemPool_attribute)attribute, value)));
}

hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool || !value) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolGetAttribute) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemPoolGetAttribute(pool_of(pool), (CUmemPool_attribute)attribute, value)));
}

hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t keep_bytes)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolTrimTo) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemPoolTrimTo(pool_of(pool), keep_bytes)));
}

hipError_t hipMemPoolSetAccess(hipMemPool_t pool, const hipMemAccessDesc *access, size_t count)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool || (!access && count > 0)) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolSetAccess) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemPoolSetAccess(pool_of(pool), nvidia_access(access), count)));
}

hipError_t hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t pool, hipMemLocation *location)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!flags || !pool || !location) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolGetAccess) return nvidia_fail(hipErrorNotSupported);
  CUmemLocation where = nvidia_location(*location);
  CUmemAccess_flags found = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  CUresult result = nvidia_call(nvidia_cuda.MemPoolGetAccess(&found, pool_of(pool), &where));
  if (result == CUDA_SUCCESS) *flags = (hipMemAccessFlags)found;
  return nvidia_end(result);
}

/* ---- The pools of a device ------------------------------------------------------------------------------------- */

hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.DeviceGetDefaultMemPool) return nvidia_fail(hipErrorNotSupported);
  CUmemoryPool found = NULL;
  CUresult result = nvidia_cuda.DeviceGetDefaultMemPool(&found, device);
  if (result == CUDA_SUCCESS) *pool = (hipMemPool_t)found;
  return nvidia_end(result);
}

hipError_t hipDeviceGetMemPool(hipMemPool_t *pool, int device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.DeviceGetMemPool) return nvidia_fail(hipErrorNotSupported);
  CUmemoryPool found = NULL;
  CUresult result = nvidia_cuda.DeviceGetMemPool(&found, device);
  if (result == CUDA_SUCCESS) *pool = (hipMemPool_t)found;
  return nvidia_end(result);
}

hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.DeviceSetMemPool) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_cuda.DeviceSetMemPool(device, pool_of(pool)));
}

/* ---- The pools of a location: of a device, of the host, of a node of it ------------------------------------------ */

hipError_t hipMemGetDefaultMemPool(hipMemPool_t *pool, hipMemLocation *location, hipMemAllocationType type)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool || !location) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemGetDefaultMemPool) return nvidia_fail(hipErrorNotSupported);
  CUmemoryPool found = NULL;
  CUmemLocation where = nvidia_location(*location);
  CUresult result = nvidia_cuda.MemGetDefaultMemPool(&found, &where, (CUmemAllocationType)type);
  if (result == CUDA_SUCCESS) *pool = (hipMemPool_t)found;
  return nvidia_end(result);
}

hipError_t hipMemGetMemPool(hipMemPool_t *pool, hipMemLocation *location, hipMemAllocationType type)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool || !location) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemGetMemPool) return nvidia_fail(hipErrorNotSupported);
  CUmemoryPool found = NULL;
  CUmemLocation where = nvidia_location(*location);
  CUresult result = nvidia_cuda.MemGetMemPool(&found, &where, (CUmemAllocationType)type);
  if (result == CUDA_SUCCESS) *pool = (hipMemPool_t)found;
  return nvidia_end(result);
}

hipError_t hipMemSetMemPool(hipMemLocation *location, hipMemAllocationType type, hipMemPool_t pool)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!location || !pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemSetMemPool) return nvidia_fail(hipErrorNotSupported);
  CUmemLocation where = nvidia_location(*location);
  return nvidia_end(nvidia_cuda.MemSetMemPool(&where, (CUmemAllocationType)type, pool_of(pool)));
}
