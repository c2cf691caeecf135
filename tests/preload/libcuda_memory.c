/* SPDX-License-Identifier: MIT */
/* libcuda_memory.c: the memory of the stand-in for NVIDIA's driver, and its pools. */
#include "libcuda_own.h"

#include <stdatomic.h>

static atomic_uint allocations, frees;

unsigned fake_allocations(void)
{
  return allocations;
}

unsigned fake_frees(void)
{
  return frees;
}

PASS(cuMemGetInfo_v2, hipMemGetInfo, (size_t * free_bytes, size_t *total_bytes), (free_bytes, total_bytes))

FUNCTION(cuMemAlloc_v2)(CUdeviceptr *address, size_t bytes)
{
  READY();
  if (!bytes || !address) return INVALID;
  allocations++;
  return SOFTWARE("hipMalloc", (CUdeviceptr *, size_t))(address, bytes);
}

/* The functions of other releases are not called in the tests. */
FUNCTION(cuMemAlloc)(unsigned *address, unsigned bytes)
{
  (void)address;
  (void)bytes;
  return UNSUPPORTED;
}

FUNCTION(cuMemAlloc_v3)(CUdeviceptr *address, size_t bytes, int kind)
{
  (void)address;
  (void)bytes;
  (void)kind;
  return UNSUPPORTED;
}

FUNCTION(cuMemAllocPitch_v2)(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element_bytes)
{
  READY();
  if (!width || !height || (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)) return INVALID;
  *pitch = (width + 511) / 512 * 512;
  return own_cuMemAlloc_v2(address, *pitch * height);
}

FUNCTION(cuMemFree_v2)(CUdeviceptr address)
{
  READY();
  frees += address != 0;
  return SOFTWARE("hipFree", (CUdeviceptr))(address);
}

PASS(cuMemCreate, hipMemCreate, (uint64_t * handle, size_t bytes, const void *properties, uint64_t flags),
     (handle, bytes, properties, flags))
PASS(cuMemRelease, hipMemRelease, (uint64_t handle), (handle))

PASS(cuMemGetAllocationGranularity, hipMemGetAllocationGranularity,
     (size_t * bytes, const void *properties, int option), (bytes, properties, option))
PASS(cuMemAddressReserve, hipMemAddressReserve,
     (CUdeviceptr * address, size_t bytes, size_t alignment, CUdeviceptr wanted, uint64_t flags),
     (address, bytes, alignment, wanted, flags))
PASS(cuMemAddressFree, hipMemAddressFree, (CUdeviceptr address, size_t bytes), (address, bytes))
PASS(cuMemMap, hipMemMap, (CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle, uint64_t flags),
     (address, bytes, offset, handle, flags))
PASS(cuMemUnmap, hipMemUnmap, (CUdeviceptr address, size_t bytes), (address, bytes))
PASS(cuMemRetainAllocationHandle, hipMemRetainAllocationHandle, (uint64_t * handle, CUdeviceptr address),
     (handle, address))

/* Takes 48 MiB for a moment, of what memory there is. */
static int be_hungry(void)
{
  CUdeviceptr memory;
  READY();
  int code = SOFTWARE("hipMalloc", (CUdeviceptr *, size_t))(&memory, (size_t)48 << 20);
  return code ? code : SOFTWARE("hipFree", (CUdeviceptr))(memory);
}

FUNCTION(cuGraphInstantiateWithFlags)(void **executable, void *graph, uint64_t flags)
{
  if (flags) return INVALID;
  int code = be_hungry();
  if (!code) *executable = graph;
  return code;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define HUNGRY(name, base, since, parameters, arguments) \
  FUNCTION(name) parameters                              \
  {                                                      \
    return be_hungry();                                  \
  }
HUNGRY_FUNCTIONS(HUNGRY)
#pragma GCC diagnostic pop

PASS(cuMemGetAddressRange_v2, hipMemGetAddressRange, (CUdeviceptr * base, size_t *bytes, CUdeviceptr address),
     (base, bytes, address))

/* Of device memory, as if all were of the current context. */
FUNCTION(cuPointerGetAttribute)(void *data, int attribute, CUdeviceptr address)
{
  CUdeviceptr base = 0;
  size_t bytes = 0;
  const uint32_t device_memory = 2;
  READY();
  if (SOFTWARE("hipMemGetAddressRange", (CUdeviceptr *, size_t *, CUdeviceptr))(&base, &bytes, address)) return INVALID;
  if (attribute == 1) memcpy(data, &fake_current, sizeof fake_current);
  if (attribute == 2) memcpy(data, &device_memory, sizeof device_memory);
  if (attribute == 11) memcpy(data, &base, sizeof base);
  if (attribute == 12) memcpy(data, &bytes, sizeof bytes);
  return 0;
}

FUNCTION(cuPointerGetAttributes)(unsigned count, int *attributes, void **data, CUdeviceptr address)
{
  READY();
  for (unsigned i = 0; i < count; i++)
    if (own_cuPointerGetAttribute(data[i], attributes[i], address)) memset(data[i], 0, 4);
  return 0;
}

PASS(cuMemHostAlloc, hipHostMalloc, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags))

FUNCTION(cuMemAllocHost_v2)(void **ptr, size_t bytes)
{
  return own_cuMemHostAlloc(ptr, bytes, 0);
}

PASS(cuMemFreeHost, hipHostFree, (void *ptr), (ptr))
PASS(cuMemHostGetFlags, hipHostGetFlags, (unsigned *flags, void *ptr), (flags, ptr))
PASS(cuMemAllocManaged, hipMallocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags),
     (address, bytes, flags))
PASS(cuIpcGetMemHandle, hipIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr address), (handle, address))
PASS(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle, (CUdeviceptr * address, CUipcMemHandle handle, unsigned flags),
     (address, handle, flags))
PASS(cuIpcCloseMemHandle, hipIpcCloseMemHandle, (CUdeviceptr address), (address))

/* ---- Pools ---- */

PASS(cuMemAllocAsync, hipMallocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream), (address, bytes, stream))

FUNCTION(cuMemAllocAsync_ptsz)(CUdeviceptr *address, size_t bytes, CUstream stream)
{
  return own_cuMemAllocAsync(address, bytes, stream ? stream : (CUstream)2);
}

PASS(cuMemAllocFromPoolAsync, hipMallocFromPoolAsync,
     (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream), (address, bytes, pool, stream))
PASS(cuMemFreeAsync, hipFreeAsync, (CUdeviceptr address, CUstream stream), (address, stream))

FUNCTION(cuMemFreeAsync_ptsz)(CUdeviceptr address, CUstream stream)
{
  return own_cuMemFreeAsync(address, stream ? stream : (CUstream)2);
}

FUNCTION(cuMemPoolCreate)(CUmemoryPool *pool, const void *properties)
{
  return SOFTWARE("hipMemPoolCreate", (CUmemoryPool *, const void *))(pool, properties);
}

FUNCTION(cuMemPoolDestroy)(CUmemoryPool pool)
{
  return SOFTWARE("hipMemPoolDestroy", (CUmemoryPool))(pool);
}

FUNCTION(cuMemPoolGetAttribute)(CUmemoryPool pool, int attribute, void *value)
{
  return SOFTWARE("hipMemPoolGetAttribute", (CUmemoryPool, int, void *))(pool, attribute, value);
}

FUNCTION(cuMemPoolTrimTo)(CUmemoryPool pool, size_t keep_bytes)
{
  return SOFTWARE("hipMemPoolTrimTo", (CUmemoryPool, size_t))(pool, keep_bytes);
}

FUNCTION(cuDeviceGetDefaultMemPool)(CUmemoryPool *pool, int device)
{
  return SOFTWARE("hipDeviceGetDefaultMemPool", (CUmemoryPool *, int))(pool, device);
}

FUNCTION(cuDeviceGetMemPool)(CUmemoryPool *pool, int device)
{
  return SOFTWARE("hipDeviceGetMemPool", (CUmemoryPool *, int))(pool, device);
}

/* A location is a type, of which 1 is a device, and a number. */
static bool is_device(const void *location, int type, int *device_out)
{
  int parts[2];
  memcpy(parts, location, sizeof parts);
  *device_out = parts[1];
  return parts[0] == 1 && type == 1;
}

FUNCTION(cuMemGetDefaultMemPool)(CUmemoryPool *pool, const void *location, int type)
{
  int device;
  return is_device(location, type, &device) ? own_cuDeviceGetDefaultMemPool(pool, device) : UNSUPPORTED;
}

FUNCTION(cuMemSetMemPool)(const void *location, int type, CUmemoryPool pool)
{
  int device;
  if (!is_device(location, type, &device)) return UNSUPPORTED;
  return SOFTWARE("hipDeviceSetMemPool", (int, CUmemoryPool))(device, pool);
}
