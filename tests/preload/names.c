/* SPDX-License-Identifier: MIT */
/* names.c: a library that gives itself CUDA's functions, made of HIP's, as CuPy for ROCm does; for opener.c. One function is
 * found by dlsym(), and one is nowhere. */
#include "cudart.h"

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

int use(void);
int cudaDeviceReset(void) __attribute__((weak));

#pragma GCC visibility push(default)

int cudaMalloc(void **ptr, size_t bytes)
{
  return (int)hipMalloc(ptr, bytes);
}

int cudaFree(void *ptr)
{
  return (int)hipFree(ptr);
}

int cudaMemsetAsync(void *ptr, int value, size_t bytes, cudaStream_t stream)
{
  return (int)hipMemsetAsync(ptr, value, bytes, (hipStream_t)stream);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
{
  return (int)hipMemcpyAsync(to, from, bytes, (hipMemcpyKind)kind, (hipStream_t)stream);
}

int cudaDeviceSynchronize(void)
{
  return (int)hipDeviceSynchronize();
}

int cudaGetLastError(void)
{
  return (int)hipGetLastError();
}

/* A name of the driver. */
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
  return (int)hipMemGetInfo(free_bytes, total_bytes);
}

/* 0, or the number of the first call that goes wrong. The last call may be compiled as a jump. */
int use(void)
{
  enum { BYTES = 4096, MEMORY = 2, UNSUPPORTED = 801 };
  unsigned char bytes[BYTES];
  size_t free_bytes = 0, total_bytes = 0;
  void *memory, *none = NULL;
  int (*get_info)(size_t *, size_t *) = NULL;
  *(void **)&get_info = dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2");
  if (cudaMalloc(&memory, BYTES)) return 1;
  if (cudaMemsetAsync(memory, 6, BYTES, NULL) || cudaMemcpyAsync(bytes, memory, BYTES, 2, NULL)) return 2;
  if (cudaDeviceSynchronize() || bytes[0] != 6 || bytes[BYTES - 1] != 6) return 3;
  if (!get_info || get_info(&free_bytes, &total_bytes) || !total_bytes) return 4;
  if (cudaMalloc(&none, (size_t)1 << 60) != MEMORY || none || cudaGetLastError() != MEMORY) return 5;
  if (cudaDeviceReset && cudaDeviceReset() != UNSUPPORTED) return 6;
  return cudaFree(memory);
}

#pragma GCC visibility pop
