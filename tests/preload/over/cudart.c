/* SPDX-License-Identifier: MIT */
/* cudart.c: a CUDA runtime over NVIDIA's driver, as NVIDIA's own is: it opens libcuda.so.1 at the first call, takes
 * cuGetProcAddress() from there, asks that for each function in the release that brought it, and makes the primary context of
 * device 0 current. A program has it as a shared library, or linked into it (STATIC), where no function of it can be hooked. */
#include "cudart.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef int lookup_function(const char *, void **, int, unsigned long, int *);

static void *driver_function(const char *name, int since, unsigned long flags)
{
  static lookup_function *lookup;
  void *found = NULL;
  int status = 0;
  if (!lookup) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    lookup_function *first = library ? (lookup_function *)dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (!first || first("cuGetProcAddress", &found, 12000, 0, &status)) exit(98);
    lookup = (lookup_function *)found;
  }
  if (lookup(name, &found, since, flags, &status) || !found) exit(97);
  return found;
}

#define DRIVER(name, since, parameters) ((int(*) parameters)driver_function(name, since, 0))

static int start(void)
{
  static _Thread_local int is_started;
  void *context = NULL;
  if (is_started) return 0;
  int code = DRIVER("cuInit", 2000, (unsigned))(0);
  if (!code) code = DRIVER("cuDevicePrimaryCtxRetain", 7000, (void **, int))(&context, 0);
  if (!code) code = DRIVER("cuCtxSetCurrent", 4000, (void *))(context);
  is_started = !code;
  return code;
}

/* A function of the driver's with the same parameters. */
#define CALL(name, driver, since, parameters, arguments)              \
  RUNTIME(name) parameters                                            \
  {                                                                   \
    int code = start();                                               \
    return code ? code : DRIVER(driver, since, parameters) arguments; \
  }

CALL(cudaMalloc, "cuMemAlloc", 3020, (void **ptr, size_t bytes), (ptr, bytes))
CALL(cudaFree, "cuMemFree", 3020, (void *ptr), (ptr))
CALL(cudaMallocAsync, "cuMemAllocAsync", 11020, (void **ptr, size_t bytes, void *stream), (ptr, bytes, stream))
CALL(cudaFreeAsync, "cuMemFreeAsync", 11020, (void *ptr, void *stream), (ptr, stream))
CALL(cudaMemGetInfo, "cuMemGetInfo", 3020, (size_t * free_bytes, size_t *total_bytes), (free_bytes, total_bytes))
CALL(cudaMemset, "cuMemsetD8", 3020, (void *ptr, unsigned char value, size_t bytes), (ptr, value, bytes))
CALL(cudaMemcpy, "cuMemcpy", 4000, (void *to, const void *from, size_t bytes), (to, from, bytes))
CALL(cudaStreamCreateWithFlags, "cuStreamCreate", 2000, (void **stream, unsigned flags), (stream, flags))
CALL(cudaStreamDestroy, "cuStreamDestroy", 4000, (void *stream), (stream))
CALL(cudaStreamIsCapturing, "cuStreamIsCapturing", 10000, (void *stream, int *state), (stream, state))
CALL(cudaDeviceSynchronize, "cuCtxSynchronize", 2000, (void), ())
CALL(cudaGetDevice, "cuCtxGetDevice", 2000, (int *device), (device))

/* Not hooked by hipmm; and called for a thread's own default stream. */
RUNTIME(cudaMallocPitch)(void **ptr, size_t *pitch, size_t width, size_t height)
{
  typedef int pitch_function(void **, size_t *, size_t, size_t, unsigned);
  int code = start();
  return code ? code : ((pitch_function *)driver_function("cuMemAllocPitch", 3020, 0))(ptr, pitch, width, height, 16);
}

RUNTIME(cudaMallocAsync_ptsz)(void **ptr, size_t bytes, void *stream)
{
  int code = start();
  return code ? code
              : ((int (*)(void **, size_t, void *))driver_function("cuMemAllocAsync", 11020, 2))(ptr, bytes, stream);
}

RUNTIME(cudaGetLastError)(void)
{
  return 0;
}

RUNTIME(cudaDeviceReset)(void)
{
  return DRIVER("cuDevicePrimaryCtxReset", 11000, (int))(0);
}
