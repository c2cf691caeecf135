/* SPDX-License-Identifier: MIT */
/* cudart.c: a stand-in for CUDA's runtime: its functions, in terms of the software device's. The device is opened by
 * the path in HIPMM_RUNTIME, so that hipmm has the same one. A stream can be said to be captured, and functions call
 * each other by way of the loader, as a runtime may. */
#include "cudart.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *function_called(const char *name)
{
  static void *library;
  const char *file = getenv("HIPMM_RUNTIME");
  if (!library) library = dlopen(file ? file : "", RTLD_NOW | RTLD_LOCAL);
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) fprintf(stderr, "%s: no %s\n", file ? file : "HIPMM_RUNTIME", name);
  if (!function) exit(99);
  return function;
}

static cudaStream_t captured;

void fake_capture(cudaStream_t stream)
{
  captured = stream;
}

/* ---- Memory ---- */

int cudaMalloc(void **ptr, size_t bytes)
{
  int (*function)(void **, size_t) = function_called("hipMalloc");
  return function(ptr, bytes);
}

int cudaFree(void *ptr)
{
  int (*function)(void *) = function_called("hipFree");
  return function(ptr);
}

/* In a capture the memory would be the graph's; any will do here. */
int cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream)
{
  int (*function)(void **, size_t, cudaStream_t) = function_called("hipMallocAsync");
  return function(ptr, bytes, stream);
}

int cudaMallocAsync_ptsz(void **ptr, size_t bytes, cudaStream_t stream)
{
  return cudaMallocAsync(ptr, bytes, stream ? stream : (cudaStream_t)2);
}

int cudaFreeAsync(void *ptr, cudaStream_t stream)
{
  int (*function)(void *, cudaStream_t) = function_called("hipFreeAsync");
  return function(ptr, stream);
}

int cudaFreeAsync_ptsz(void *ptr, cudaStream_t stream)
{
  return cudaFreeAsync(ptr, stream ? stream : (cudaStream_t)2);
}

int cudaMallocFromPoolAsync(void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
  int (*function)(void **, size_t, cudaMemPool_t, cudaStream_t) = function_called("hipMallocFromPoolAsync");
  return function(ptr, bytes, pool, stream);
}

int cudaMallocFromPoolAsync_ptsz(void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
  return cudaMallocFromPoolAsync(ptr, bytes, pool, stream ? stream : (cudaStream_t)2);
}

int cudaMallocManaged(void **ptr, size_t bytes, unsigned flags)
{
  int (*function)(void **, size_t, unsigned) = function_called("hipMallocManaged");
  return function(ptr, bytes, flags);
}

int cudaHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
  int (*function)(void **, size_t, unsigned) = function_called("hipHostMalloc");
  return function(ptr, bytes, flags);
}

int cudaMallocHost(void **ptr, size_t bytes)
{
  return cudaHostAlloc(ptr, bytes, 0);
}

int cudaFreeHost(void *ptr)
{
  int (*function)(void *) = function_called("hipHostFree");
  return function(ptr);
}

/* ---- Queries ---- */

int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  int (*function)(size_t *, size_t *) = function_called("hipMemGetInfo");
  return function(free_bytes, total_bytes);
}

/* The total alone, where CUDA has it. */
int cudaGetDeviceProperties(void *properties, int device)
{
  size_t total = 0;
  int (*function)(size_t *, int) = function_called("hipDeviceTotalMem");
  int code = function(&total, device);
  if (!code) memcpy((char *)properties + 288, &total, sizeof total);
  return code;
}

int cudaGetDeviceProperties_v2(void *properties, int device)
{
  return cudaGetDeviceProperties(properties, device);
}

int cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
  int (*function)(void *, void *) = function_called("hipIpcGetMemHandle");
  return function(handle, ptr);
}

int cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned flags)
{
  int (*function)(void **, cudaIpcMemHandle_t, unsigned) = function_called("hipIpcOpenMemHandle");
  return function(ptr, handle, flags);
}

int cudaIpcCloseMemHandle(void *ptr)
{
  int (*function)(void *) = function_called("hipIpcCloseMemHandle");
  return function(ptr);
}

int cudaMemPoolExportPointer(void *data, void *ptr)
{
  int (*function)(void *, void *) = function_called("hipMemPoolExportPointer");
  return function(data, ptr);
}

int cudaGetLastError(void)
{
  int (*function)(void) = function_called("hipGetLastError");
  return function();
}

int cudaPeekAtLastError(void)
{
  int (*function)(void) = function_called("hipPeekAtLastError");
  return function();
}

/* ---- Devices, pools, streams ---- */

int cudaGetDevice(int *device)
{
  int (*function)(int *) = function_called("hipGetDevice");
  return function(device);
}

int cudaSetDevice(int device)
{
  int (*function)(int) = function_called("hipSetDevice");
  return function(device);
}

int cudaDeviceSynchronize(void)
{
  int (*function)(void) = function_called("hipDeviceSynchronize");
  return function();
}

int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
  int (*function)(int, unsigned) = function_called("hipDeviceEnablePeerAccess");
  return function(peer, flags);
}

int cudaDeviceDisablePeerAccess(int peer)
{
  int (*function)(int) = function_called("hipDeviceDisablePeerAccess");
  return function(peer);
}

int cudaDeviceReset(void)
{
  int (*function)(void) = function_called("hipDeviceReset");
  return function();
}

int cudaMemPoolCreate(cudaMemPool_t *pool, const void *props)
{
  int (*function)(cudaMemPool_t *, const void *) = function_called("hipMemPoolCreate");
  return function(pool, props);
}

int cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
  int (*function)(cudaMemPool_t, size_t) = function_called("hipMemPoolTrimTo");
  return function(pool, keep_bytes);
}

int cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
  int (*function)(cudaMemPool_t, int, void *) = function_called("hipMemPoolGetAttribute");
  return function(pool, attribute, value);
}

int cudaMemPoolDestroy(cudaMemPool_t pool)
{
  int (*function)(cudaMemPool_t) = function_called("hipMemPoolDestroy");
  return function(pool);
}

int cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
  int (*function)(cudaMemPool_t *, int) = function_called("hipDeviceGetDefaultMemPool");
  return function(pool, device);
}

int cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
  int (*function)(cudaMemPool_t *, int) = function_called("hipDeviceGetMemPool");
  return function(pool, device);
}

int cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
  int (*function)(cudaStream_t *, unsigned, int) = function_called("hipStreamCreateWithPriority");
  return function(stream, flags, priority);
}

int cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

int cudaStreamCreate(cudaStream_t *stream)
{
  return cudaStreamCreateWithFlags(stream, 0);
}

int cudaStreamDestroy(cudaStream_t stream)
{
  int (*function)(cudaStream_t) = function_called("hipStreamDestroy");
  return function(stream);
}

int cudaStreamSynchronize(cudaStream_t stream)
{
  int (*function)(cudaStream_t) = function_called("hipStreamSynchronize");
  return function(stream);
}

int cudaStreamIsCapturing(cudaStream_t stream, int *state)
{
  *state = captured && stream == captured;
  return 0;
}

/* ---- Work ---- */

int cudaMemsetAsync(void *ptr, int value, size_t bytes, cudaStream_t stream)
{
  int (*function)(void *, int, size_t, cudaStream_t) = function_called("hipMemsetAsync");
  return function(ptr, value, bytes, stream);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
{
  int (*function)(void *, const void *, size_t, int, cudaStream_t) = function_called("hipMemcpyAsync");
  return function(to, from, bytes, kind, stream);
}
