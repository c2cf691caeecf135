/* SPDX-License-Identifier: MIT */
/* cudart.h: the functions of CUDA's runtime API that the tests need, for machines without CUDA's headers. */
#ifndef HIPMM_TESTS_PRELOAD_CUDART_H
#define HIPMM_TESTS_PRELOAD_CUDART_H

#include <stddef.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;

#pragma GCC visibility push(default)

int cudaMalloc(void **ptr, size_t bytes);
int cudaFree(void *ptr);
int cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream);
int cudaMallocAsync_ptsz(void **ptr, size_t bytes, cudaStream_t stream);
int cudaFreeAsync(void *ptr, cudaStream_t stream);
int cudaFreeAsync_ptsz(void *ptr, cudaStream_t stream);
int cudaMallocFromPoolAsync(void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
int cudaMallocFromPoolAsync_ptsz(void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
int cudaMallocManaged(void **ptr, size_t bytes, unsigned flags);
int cudaHostAlloc(void **ptr, size_t bytes, unsigned flags);
int cudaMallocHost(void **ptr, size_t bytes);
int cudaFreeHost(void *ptr);
int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int cudaGetDeviceProperties(void *properties, int device);
int cudaGetDeviceProperties_v2(void *properties, int device);
typedef struct {
  char reserved[64];
} cudaIpcMemHandle_t;

int cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr);
int cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned flags);
int cudaIpcCloseMemHandle(void *ptr);
int cudaMemPoolExportPointer(void *data, void *ptr);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaDeviceSynchronize(void);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaDeviceDisablePeerAccess(int peer);
int cudaDeviceReset(void);
int cudaMemPoolCreate(cudaMemPool_t *pool, const void *props);
int cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes);
int cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value);
int cudaMemPoolDestroy(cudaMemPool_t pool);
int cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
int cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
int cudaStreamCreate(cudaStream_t *stream);
int cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
int cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
int cudaStreamDestroy(cudaStream_t stream);
int cudaStreamSynchronize(cudaStream_t stream);
int cudaStreamIsCapturing(cudaStream_t stream, int *state);
int cudaMemsetAsync(void *ptr, int value, size_t bytes, cudaStream_t stream);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream);

/* Not of CUDA: from now on this stream is being captured; NULL: none. */
void fake_capture(cudaStream_t stream);

#pragma GCC visibility pop

#endif
