/* SPDX-License-Identifier: MIT */
/* hip.c: the hooks of HIP's functions. Each calls the operation that does the work (operations.h, pools.h, streams.h). */
#include "devices.h"
#include "exports.h"
#include "failure.h"
#include "operations.h"
#include "pools.h"
#include "streams.h"

/* ---- Device memory ---- */

int hipMalloc(void **ptr, size_t bytes)
{
  return allocate_device(HOOK_hipMalloc, ptr, bytes);
}

int hipExtMallocWithFlags(void **ptr, size_t bytes, unsigned flags)
{
  return allocate_device_with_flags(HOOK_hipExtMallocWithFlags, ptr, bytes, flags);
}

int hipFree(void *ptr)
{
  return release_device(HOOK_hipFree, ptr);
}

int hipMallocAsync(void **ptr, size_t bytes, hipmm_stream_t stream)
{
  return allocate_device_on(HOOK_hipMallocAsync, ptr, bytes, stream);
}

int hipMallocFromPoolAsync(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream)
{
  return allocate_device_from_pool(HOOK_hipMallocFromPoolAsync, ptr, bytes, pool, stream);
}

int hipFreeAsync(void *ptr, hipmm_stream_t stream)
{
  return release_device_on(HOOK_hipFreeAsync, ptr, stream);
}

/* ---- Managed and pinned memory ---- */

int hipMallocManaged(void **ptr, size_t bytes, unsigned flags)
{
  return allocate_managed(HOOK_hipMallocManaged, ptr, bytes, flags);
}

int hipHostMalloc(void **ptr, size_t bytes, unsigned flags)
{
  return allocate_pinned_with_flags(HOOK_hipHostMalloc, ptr, bytes, flags);
}

int hipHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
  return allocate_pinned_with_flags(HOOK_hipHostAlloc, ptr, bytes, flags);
}

/* Since ROCm 6.3 the C++ form of hipHostMalloc() calls this one. */
int hipExtHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
  return allocate_pinned_with_flags(HOOK_hipExtHostAlloc, ptr, bytes, flags);
}

int hipMallocHost(void **ptr, size_t bytes)
{
  return allocate_pinned(HOOK_hipMallocHost, ptr, bytes);
}

int hipMemAllocHost(void **ptr, size_t bytes)
{
  return allocate_pinned(HOOK_hipMemAllocHost, ptr, bytes);
}

int hipHostFree(void *ptr)
{
  return release_pinned(HOOK_hipHostFree, ptr);
}

int hipFreeHost(void *ptr)
{
  return release_pinned(HOOK_hipFreeHost, ptr);
}

/* ---- Questions ---- */

int hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  return query_memory_info(HOOK_hipMemGetInfo, free_bytes, total_bytes);
}

int hipMemGetAddressRange(void **base, size_t *bytes, void *ptr)
{
  return query_address_range(HOOK_hipMemGetAddressRange, base, bytes, ptr);
}

int hipMemPtrGetInfo(void *ptr, size_t *bytes)
{
  return query_size(HOOK_hipMemPtrGetInfo, ptr, bytes);
}

int hipHostGetFlags(unsigned *flags, void *ptr)
{
  return query_host_flags(HOOK_hipHostGetFlags, flags, ptr);
}

int hipPointerGetAttribute(void *data, int attribute, void *ptr)
{
  return query_attribute(HOOK_hipPointerGetAttribute, data, attribute, ptr);
}

int hipIpcGetMemHandle(void *handle, void *ptr)
{
  return query_share(HOOK_hipIpcGetMemHandle, handle, ptr);
}

int hipMemPoolExportPointer(void *data, void *ptr)
{
  return query_share(HOOK_hipMemPoolExportPointer, data, ptr);
}

int hipGetLastError(void)
{
  return failure_last(HOOK_hipGetLastError, true);
}

int hipPeekAtLastError(void)
{
  return failure_last(HOOK_hipPeekAtLastError, false);
}

/* ---- Devices, pools, streams ---- */

int hipMemPoolCreate(hipmm_hip_mempool_t *pool, const void *props)
{
  return pools_create(HOOK_hipMemPoolCreate, pool, props);
}

int hipMemPoolDestroy(hipmm_hip_mempool_t pool)
{
  return pools_destroy(HOOK_hipMemPoolDestroy, pool);
}

int hipDeviceGetDefaultMemPool(hipmm_hip_mempool_t *pool, int device)
{
  return pools_of_device(HOOK_hipDeviceGetDefaultMemPool, pool, device);
}

int hipDeviceGetMemPool(hipmm_hip_mempool_t *pool, int device)
{
  return pools_of_device(HOOK_hipDeviceGetMemPool, pool, device);
}

int hipDeviceSetMemPool(int device, hipmm_hip_mempool_t pool)
{
  return pools_set_current(HOOK_hipDeviceSetMemPool, device, pool);
}

int hipMemPoolGetAttribute(hipmm_hip_mempool_t pool, int attribute, void *value)
{
  return pools_get_attribute(HOOK_hipMemPoolGetAttribute, pool, attribute, value);
}

int hipMemPoolSetAttribute(hipmm_hip_mempool_t pool, int attribute, void *value)
{
  return pools_set_attribute(HOOK_hipMemPoolSetAttribute, pool, attribute, value);
}

int hipMemPoolSetAccess(hipmm_hip_mempool_t pool, const void *access, size_t count)
{
  return pools_set_access(HOOK_hipMemPoolSetAccess, pool, access, count);
}

int hipMemPoolTrimTo(hipmm_hip_mempool_t pool, size_t keep_bytes)
{
  return pools_trim(HOOK_hipMemPoolTrimTo, pool, keep_bytes);
}

int hipStreamCreate(hipmm_stream_t *stream)
{
  return streams_create(HOOK_hipStreamCreate, stream);
}

int hipStreamCreateWithFlags(hipmm_stream_t *stream, unsigned flags)
{
  return streams_create_with_flags(HOOK_hipStreamCreateWithFlags, stream, flags);
}

int hipStreamCreateWithPriority(hipmm_stream_t *stream, unsigned flags, int priority)
{
  return streams_create_with_priority(HOOK_hipStreamCreateWithPriority, stream, flags, priority);
}

int hipStreamDestroy(hipmm_stream_t stream)
{
  return streams_destroy(HOOK_hipStreamDestroy, stream);
}

int hipSetDevice(int device)
{
  return streams_set_device(HOOK_hipSetDevice, device);
}

int hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
  return peers_enable(HOOK_hipDeviceEnablePeerAccess, peer, flags);
}

int hipDeviceDisablePeerAccess(int peer)
{
  return peers_disable(HOOK_hipDeviceDisablePeerAccess, peer);
}

int hipDeviceReset(void)
{
  return release_reset_device(HOOK_hipDeviceReset);
}
