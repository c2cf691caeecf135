/* SPDX-License-Identifier: MIT */
/* exports.h: the hooks, which the preload object exports under the names of the runtime's functions. HIP's and CUDA's own
 * headers cannot be included together, so error codes and enumerations are int here, and structures are void. */
#ifndef HIPMM_PRELOAD_EXPORTS_H
#define HIPMM_PRELOAD_EXPORTS_H

#include <hipmm/plugin.h>

#pragma GCC visibility push(default)

int hipMalloc(void **ptr, size_t bytes);
int hipExtMallocWithFlags(void **ptr, size_t bytes, unsigned flags);
int hipFree(void *ptr);
int hipMallocAsync(void **ptr, size_t bytes, hipmm_stream_t stream);
int hipMallocFromPoolAsync(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream);
int hipFreeAsync(void *ptr, hipmm_stream_t stream);
int hipMallocManaged(void **ptr, size_t bytes, unsigned flags);
int hipHostMalloc(void **ptr, size_t bytes, unsigned flags);
int hipHostAlloc(void **ptr, size_t bytes, unsigned flags);
int hipExtHostAlloc(void **ptr, size_t bytes, unsigned flags);
int hipMallocHost(void **ptr, size_t bytes);
int hipMemAllocHost(void **ptr, size_t bytes);
int hipHostFree(void *ptr);
int hipFreeHost(void *ptr);
int hipMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int hipMemGetAddressRange(void **base, size_t *bytes, void *ptr);
int hipMemPtrGetInfo(void *ptr, size_t *bytes);
int hipHostGetFlags(unsigned *flags, void *ptr);
int hipPointerGetAttribute(void *data, int attribute, void *ptr);
int hipIpcGetMemHandle(void *handle, void *ptr);
int hipMemPoolExportPointer(void *data, void *ptr);
int hipMemPoolCreate(hipmm_hip_mempool_t *pool, const void *props);
int hipMemPoolDestroy(hipmm_hip_mempool_t pool);
int hipDeviceGetDefaultMemPool(hipmm_hip_mempool_t *pool, int device);
int hipDeviceGetMemPool(hipmm_hip_mempool_t *pool, int device);
int hipDeviceSetMemPool(int device, hipmm_hip_mempool_t pool);
int hipMemPoolGetAttribute(hipmm_hip_mempool_t pool, int attribute, void *value);
int hipMemPoolSetAttribute(hipmm_hip_mempool_t pool, int attribute, void *value);
int hipMemPoolSetAccess(hipmm_hip_mempool_t pool, const void *access, size_t count);
int hipMemPoolTrimTo(hipmm_hip_mempool_t pool, size_t keep_bytes);
int hipStreamCreate(hipmm_stream_t *stream);
int hipStreamCreateWithFlags(hipmm_stream_t *stream, unsigned flags);
int hipStreamCreateWithPriority(hipmm_stream_t *stream, unsigned flags, int priority);
int hipStreamDestroy(hipmm_stream_t stream);
int hipDeviceReset(void);
int hipGetProcAddress(const char *name, void **function, int version, uint64_t flags, int *status);
int hipGetLastError(void);
int hipPeekAtLastError(void);
int hipSetDevice(int device);
int hipDeviceEnablePeerAccess(int peer, unsigned flags);
int hipDeviceDisablePeerAccess(int peer);
int hipGetDevice(int *device);
int hipInit(unsigned flags);
int hipGetDeviceCount(int *count);
int hipDeviceGet(int *device, int ordinal);
int hipDeviceGetAttribute(int *value, int attribute, int device);
int hipDeviceGetName(char *name, int length, int device);
int hipDeviceTotalMem(size_t *bytes, int device);
int hipGetDeviceProperties(void *properties, int device);
int hipDeviceSynchronize(void);
int hipEventCreate(hipmm_hip_event_t *event);
int hipEventCreateWithFlags(hipmm_hip_event_t *event, unsigned flags);

int cudaMalloc(void **ptr, size_t bytes);
int cudaFree(void *ptr);
int cudaMallocAsync(void **ptr, size_t bytes, hipmm_stream_t stream);
int cudaMallocAsync_ptsz(void **ptr, size_t bytes, hipmm_stream_t stream);
int cudaMallocFromPoolAsync(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream);
int cudaMallocFromPoolAsync_ptsz(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream);
int cudaFreeAsync(void *ptr, hipmm_stream_t stream);
int cudaFreeAsync_ptsz(void *ptr, hipmm_stream_t stream);
int cudaMallocManaged(void **ptr, size_t bytes, unsigned flags);
int cudaMallocHost(void **ptr, size_t bytes);
int cudaHostAlloc(void **ptr, size_t bytes, unsigned flags);
int cudaFreeHost(void *ptr);
int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int cudaIpcGetMemHandle(void *handle, void *ptr);
int cudaMemPoolExportPointer(void *data, void *ptr);
int cudaMemPoolCreate(hipmm_hip_mempool_t *pool, const void *props);
int cudaMemPoolDestroy(hipmm_hip_mempool_t pool);
int cudaDeviceGetDefaultMemPool(hipmm_hip_mempool_t *pool, int device);
int cudaDeviceGetMemPool(hipmm_hip_mempool_t *pool, int device);
int cudaDeviceSetMemPool(int device, hipmm_hip_mempool_t pool);
int cudaMemPoolGetAttribute(hipmm_hip_mempool_t pool, int attribute, void *value);
int cudaMemPoolSetAttribute(hipmm_hip_mempool_t pool, int attribute, void *value);
int cudaMemPoolSetAccess(hipmm_hip_mempool_t pool, const void *access, size_t count);
int cudaMemPoolTrimTo(hipmm_hip_mempool_t pool, size_t keep_bytes);
int cudaStreamCreate(hipmm_stream_t *stream);
int cudaStreamCreateWithFlags(hipmm_stream_t *stream, unsigned flags);
int cudaStreamCreateWithPriority(hipmm_stream_t *stream, unsigned flags, int priority);
int cudaStreamDestroy(hipmm_stream_t stream);
int cudaDeviceReset(void);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaSetDevice(int device);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaDeviceDisablePeerAccess(int peer);

#pragma GCC visibility pop

#endif
