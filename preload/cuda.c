/* SPDX-License-Identifier: MIT */
/* cuda.c: the hooks of the functions of CUDA's runtime, libcudart, as in hip.c. A program that was compiled for per-thread
 * default streams calls the functions whose names end in _ptsz. */
#include "devices.h"
#include "exports.h"
#include "failure.h"
#include "operations.h"
#include "pools.h"
#include "streams.h"

/* ---- Device memory ---- */

int cudaMalloc(void **ptr, size_t bytes)
{
  return allocate_device(HOOK_cudaMalloc, ptr, bytes);
}

int cudaFree(void *ptr)
{
  return release_device(HOOK_cudaFree, ptr);
}

int cudaMallocAsync(void **ptr, size_t bytes, hipmm_stream_t stream)
{
  return allocate_device_on(HOOK_cudaMallocAsync, ptr, bytes, stream);
}

int cudaMallocAsync_ptsz(void **ptr, size_t bytes, hipmm_stream_t stream)
{
  return allocate_device_on(HOOK_cudaMallocAsync_ptsz, ptr, bytes, stream);
}

int cudaMallocFromPoolAsync(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream)
{
  return allocate_device_from_pool(HOOK_cudaMallocFromPoolAsync, ptr, bytes, pool, stream);
}

int cudaMallocFromPoolAsync_ptsz(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream)
{
  return allocate_device_from_pool(HOOK_cudaMallocFromPoolAsync_ptsz, ptr, bytes, pool, stream);
}

int cudaFreeAsync(void *ptr, hipmm_stream_t stream)
{
  return release_device_on(HOOK_cudaFreeAsync, ptr, stream);
}

int cudaFreeAsync_ptsz(void *ptr, hipmm_stream_t stream)
{
  return release_device_on(HOOK_cudaFreeAsync_ptsz, ptr, stream);
}

/* ---- Managed and pinned memory ---- */

int cudaMallocManaged(void **ptr, size_t bytes, unsigned flags)
{
  return allocate_managed(HOOK_cudaMallocManaged, ptr, bytes, flags);
}

int cudaMallocHost(void **ptr, size_t bytes)
{
  return allocate_pinned(HOOK_cudaMallocHost, ptr, bytes);
}

int cudaHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
  return allocate_pinned_with_flags(HOOK_cudaHostAlloc, ptr, bytes, flags);
}

int cudaFreeHost(void *ptr)
{
  return release_pinned(HOOK_cudaFreeHost, ptr);
}

/* ---- Questions ---- */

int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  return query_memory_info(HOOK_cudaMemGetInfo, free_bytes, total_bytes);
}

int cudaIpcGetMemHandle(void *handle, void *ptr)
{
  return query_share(HOOK_cudaIpcGetMemHandle, handle, ptr);
}

int cudaMemPoolExportPointer(void *data, void *ptr)
{
  return query_share(HOOK_cudaMemPoolExportPointer, data, ptr);
}

int cudaGetLastError(void)
{
  return failure_last(HOOK_cudaGetLastError, true);
}

int cudaPeekAtLastError(void)
{
  return failure_last(HOOK_cudaPeekAtLastError, false);
}

/* ---- Devices, pools, streams ---- */

int cudaMemPoolCreate(hipmm_hip_mempool_t *pool, const void *props)
{
  return pools_create(HOOK_cudaMemPoolCreate, pool, props);
}

int cudaMemPoolDestroy(hipmm_hip_mempool_t pool)
{
  return pools_destroy(HOOK_cudaMemPoolDestroy, pool);
}

int cudaDeviceGetDefaultMemPool(hipmm_hip_mempool_t *pool, int device)
{
  return pools_of_device(HOOK_cudaDeviceGetDefaultMemPool, pool, device);
}

int cudaDeviceGetMemPool(hipmm_hip_mempool_t *pool, int device)
{
  return pools_of_device(HOOK_cudaDeviceGetMemPool, pool, device);
}

int cudaDeviceSetMemPool(int device, hipmm_hip_mempool_t pool)
{
  return pools_set_current(HOOK_cudaDeviceSetMemPool, device, pool);
}

int cudaMemPoolGetAttribute(hipmm_hip_mempool_t pool, int attribute, void *value)
{
  return pools_get_attribute(HOOK_cudaMemPoolGetAttribute, pool, attribute, value);
}

int cudaMemPoolSetAttribute(hipmm_hip_mempool_t pool, int attribute, void *value)
{
  return pools_set_attribute(HOOK_cudaMemPoolSetAttribute, pool, attribute, value);
}

int cudaMemPoolSetAccess(hipmm_hip_mempool_t pool, const void *access, size_t count)
{
  return pools_set_access(HOOK_cudaMemPoolSetAccess, pool, access, count);
}

int cudaMemPoolTrimTo(hipmm_hip_mempool_t pool, size_t keep_bytes)
{
  return pools_trim(HOOK_cudaMemPoolTrimTo, pool, keep_bytes);
}

int cudaStreamCreate(hipmm_stream_t *stream)
{
  return streams_create(HOOK_cudaStreamCreate, stream);
}

int cudaStreamCreateWithFlags(hipmm_stream_t *stream, unsigned flags)
{
  return streams_create_with_flags(HOOK_cudaStreamCreateWithFlags, stream, flags);
}

int cudaStreamCreateWithPriority(hipmm_stream_t *stream, unsigned flags, int priority)
{
  return streams_create_with_priority(HOOK_cudaStreamCreateWithPriority, stream, flags, priority);
}

int cudaStreamDestroy(hipmm_stream_t stream)
{
  return streams_destroy(HOOK_cudaStreamDestroy, stream);
}

int cudaSetDevice(int device)
{
  return streams_set_device(HOOK_cudaSetDevice, device);
}

int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
  return peers_enable(HOOK_cudaDeviceEnablePeerAccess, peer, flags);
}

int cudaDeviceDisablePeerAccess(int peer)
{
  return peers_disable(HOOK_cudaDeviceDisablePeerAccess, peer);
}

int cudaDeviceReset(void)
{
  return release_reset_device(HOOK_cudaDeviceReset);
}
