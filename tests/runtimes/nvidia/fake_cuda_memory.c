/* SPDX-License-Identifier: MIT */
/* fake_cuda_memory.c: memory of the fake driver: device, host, managed, pools, virtual memory, other processes. */
#include "fake_cuda.h"
#include <string.h>

static CUresult get_info(size_t *free_bytes, size_t *total_bytes)
{
  *free_bytes = 600;
  *total_bytes = 1000;
  return fake_call(false, "cuMemGetInfo", 0, 0, 0, 0, 0);
}

static CUresult alloc(CUdeviceptr *address, size_t bytes)
{
  *address = FAKE_ADDRESS;
  return fake_call(false, "cuMemAlloc", bytes, 0, 0, 0, 0);
}

static CUresult alloc_pitch(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element_bytes)
{
  *address = FAKE_ADDRESS;
  *pitch = 512;
  return fake_call(false, "cuMemAllocPitch", width, height, element_bytes, 0, 0);
}

static CUresult free_memory(CUdeviceptr address)
{
  return fake_call(false, "cuMemFree", address, 0, 0, 0, 0);
}

static CUresult get_address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
  *base = FAKE_ADDRESS;
  *bytes = 4096;
  return fake_call(false, "cuMemGetAddressRange", address, 0, 0, 0, 0);
}

/* Addresses near FAKE_HOST are pinned, FAKE_HANDLE managed, FAKE_ADDRESS of device 1; others are unknown. */
static CUresult pointer_get_attributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                       CUdeviceptr address)
{
  bool is_host = address >> 16 == FAKE_HOST >> 16, is_managed = address >> 16 == FAKE_HANDLE >> 16;
  bool is_known = is_host || is_managed || address >> 16 == FAKE_ADDRESS >> 16;
  for (unsigned i = 0; i < count; i++) {
    if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
      *(unsigned *)values[i] = !is_known ? 0 : is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *(int *)values[i] = is_known ? 1 : -2;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED) *(unsigned *)values[i] = is_managed;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) *(CUdeviceptr *)values[i] = is_known ? address : 0;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
      *(void **)values[i] = is_host || is_managed ? (void *)(uintptr_t)address : NULL;
  }
  return fake_call(false, "cuPointerGetAttributes", address, 0, 0, 0, 0);
}

/* ---- Host ------------------------------------------------------------------------------------------------------ */

static CUresult host_alloc(void **ptr, size_t bytes, unsigned flags)
{
  *ptr = (void *)(uintptr_t)FAKE_HOST;
  return fake_call(false, "cuMemHostAlloc", bytes, flags, 0, 0, 0);
}

static CUresult free_host(void *ptr)
{
  return fake_call(false, "cuMemFreeHost", (uintptr_t)ptr, 0, 0, 0, 0);
}

static CUresult host_register(void *ptr, size_t bytes, unsigned flags)
{
  return fake_call(false, "cuMemHostRegister", (uintptr_t)ptr, bytes, flags, 0, 0);
}

static CUresult host_unregister(void *ptr)
{
  return fake_call(false, "cuMemHostUnregister", (uintptr_t)ptr, 0, 0, 0, 0);
}

static CUresult host_get_device_pointer(CUdeviceptr *address, void *ptr, unsigned flags)
{
  *address = (uintptr_t)ptr;
  return fake_call(false, "cuMemHostGetDevicePointer", (uintptr_t)ptr, flags, 0, 0, 0);
}

static CUresult host_get_flags(unsigned *flags, void *ptr)
{
  *flags = CU_MEMHOSTALLOC_PORTABLE;
  return fake_call(false, "cuMemHostGetFlags", (uintptr_t)ptr, 0, 0, 0, 0);
}

/* ---- Managed --------------------------------------------------------------------------------------------------- */

static CUresult alloc_managed(CUdeviceptr *address, size_t bytes, unsigned flags)
{
  *address = FAKE_ADDRESS;
  return fake_call(false, "cuMemAllocManaged", bytes, flags, 0, 0, 0);
}

static CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
  return fake_call(false, "cuMemAdvise", address, bytes, (uint64_t)advice, (uint64_t)device, 0);
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
  return fake_call(false, "cuMemPrefetchAsync", address, bytes, (uint64_t)device, (uintptr_t)stream, 0);
}

static CUresult advise_at(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
  return fake_call(false, "cuMemAdvise_v2", address, bytes, (uint64_t)advice, (uint64_t)location.type,
                   (uint64_t)location.id);
}

static CUresult prefetch_to(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream)
{
  return fake_call(false, "cuMemPrefetchAsync_v2", address, bytes,
                   (uint64_t)location.type << 32 | (uint64_t)location.id, flags, (uintptr_t)stream);
}

static CUresult range_get_attribute(void *data, size_t data_bytes, CUmem_range_attribute attribute, CUdeviceptr address,
                                    size_t bytes)
{
  memset(data, 0, data_bytes);
  return fake_call(false, "cuMemRangeGetAttribute", data_bytes, (uint64_t)attribute, address, bytes, 0);
}

static CUresult range_get_attributes(void **data, size_t *data_bytes, CUmem_range_attribute *attributes, size_t n,
                                     CUdeviceptr address, size_t bytes)
{
  for (size_t i = 0; i < n; i++) memset(data[i], (int)attributes[i], data_bytes[i]);
  return fake_call(false, "cuMemRangeGetAttributes", n, address, bytes, 0, 0);
}

static CUresult attach(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags)
{
  return fake_call(false, "cuStreamAttachMemAsync", (uintptr_t)stream, address, bytes, flags, 0);
}

/* ---- Copies and fills ------------------------------------------------------------------------------------------ */

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
  return fake_call(false, "cuMemcpy", to, from, bytes, 0, 0);
}

/* Whether the range lies in two neighbouring mappings. */
static bool crosses_border(CUdeviceptr address, size_t bytes)
{
  return address < FAKE_BORDER && address + bytes > FAKE_BORDER;
}

/* A stream is enough for a context, but a range over two mappings, which are of device 1, is valid only in its context. */
static CUresult copy_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
  bool bare = (uintptr_t)stream == FAKE_STREAM;
  if (!bare && !fake_cuda_current()) return CUDA_ERROR_INVALID_CONTEXT;
  if (fake_cuda_current() != (CUcontext)(uintptr_t)FAKE_CONTEXT(1) &&
      (crosses_border(to, bytes) || crosses_border(from, bytes)))
    return CUDA_ERROR_INVALID_VALUE;
  return fake_call(bare, "cuMemcpyAsync", to, from, bytes, (uintptr_t)stream, 0);
}

static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
  return fake_call(false, "cuMemcpyPeer", to, (uintptr_t)to_context, from, (uintptr_t)from_context, bytes);
}

static CUresult copy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t bytes, CUstream stream)
{
  CUresult result =
      fake_call(false, "cuMemcpyPeerAsync", to, (uintptr_t)to_context, from, (uintptr_t)from_context, bytes);
  fake_data(&stream, sizeof stream);
  return result;
}

static CUresult set_d8(CUdeviceptr address, unsigned char value, size_t count)
{
  return fake_call(false, "cuMemsetD8", address, value, count, 0, 0);
}

static CUresult set_d8_async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream)
{
  return fake_call(false, "cuMemsetD8Async", address, value, count, (uintptr_t)stream, 0);
}

static CUresult set_d16(CUdeviceptr address, unsigned short value, size_t count)
{
  return fake_call(false, "cuMemsetD16", address, value, count, 0, 0);
}

static CUresult set_d16_async(CUdeviceptr address, unsigned short value, size_t count, CUstream stream)
{
  return fake_call(false, "cuMemsetD16Async", address, value, count, (uintptr_t)stream, 0);
}

static CUresult set_d32(CUdeviceptr address, unsigned value, size_t count)
{
  return fake_call(false, "cuMemsetD32", address, value, count, 0, 0);
}

static CUresult set_d32_async(CUdeviceptr address, unsigned value, size_t count, CUstream stream)
{
  return fake_call(false, "cuMemsetD32Async", address, value, count, (uintptr_t)stream, 0);
}

/* ---- Pools ----------------------------------------------------------------------------------------------------- */

static CUresult alloc_async(CUdeviceptr *address, size_t bytes, CUstream stream)
{
  *address = FAKE_ADDRESS;
  return fake_call(false, "cuMemAllocAsync", bytes, (uintptr_t)stream, 0, 0, 0);
}

static CUresult alloc_from_pool(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
  *address = FAKE_ADDRESS;
  return fake_call(false, "cuMemAllocFromPoolAsync", bytes, (uintptr_t)pool, (uintptr_t)stream, 0, 0);
}

static CUresult free_async(CUdeviceptr address, CUstream stream)
{
  return fake_call(false, "cuMemFreeAsync", address, (uintptr_t)stream, 0, 0, 0);
}

static CUresult pool_create(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
  *pool = (CUmemoryPool)(uintptr_t)FAKE_POOL;
  CUresult result = fake_call(true, "cuMemPoolCreate", 0, 0, 0, 0, 0);
  fake_data(properties, sizeof *properties);
  return result;
}

static CUresult pool_destroy(CUmemoryPool pool)
{
  return fake_call(true, "cuMemPoolDestroy", (uintptr_t)pool, 0, 0, 0, 0);
}

static CUresult pool_set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
  return fake_call(true, "cuMemPoolSetAttribute", (uintptr_t)pool, (uint64_t)attribute, (uintptr_t)value, 0, 0);
}

static CUresult pool_get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
  return fake_call(true, "cuMemPoolGetAttribute", (uintptr_t)pool, (uint64_t)attribute, (uintptr_t)value, 0, 0);
}

static CUresult pool_trim(CUmemoryPool pool, size_t keep_bytes)
{
  return fake_call(true, "cuMemPoolTrimTo", (uintptr_t)pool, keep_bytes, 0, 0, 0);
}

static CUresult pool_set_access(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
  CUresult result = fake_call(true, "cuMemPoolSetAccess", (uintptr_t)pool, count, 0, 0, 0);
  fake_data(access, count * sizeof *access);
  return result;
}

static CUresult pool_get_access(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return fake_call(true, "cuMemPoolGetAccess", (uintptr_t)pool, (uint64_t)location->type, (uint64_t)location->id, 0, 0);
}

static CUresult pool_export(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags)
{
  *(int *)handle = 5;
  return fake_call(true, "cuMemPoolExportToShareableHandle", (uintptr_t)pool, (uint64_t)type, flags, 0, 0);
}

static CUresult pool_import(CUmemoryPool *pool, void *handle, CUmemAllocationHandleType type, unsigned long long flags)
{
  *pool = (CUmemoryPool)(uintptr_t)FAKE_POOL;
  return fake_call(true, "cuMemPoolImportFromShareableHandle", (uintptr_t)handle, (uint64_t)type, flags, 0, 0);
}

static CUresult pool_export_pointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
  memset(data, 'x', sizeof *data);
  return fake_call(true, "cuMemPoolExportPointer", address, 0, 0, 0, 0);
}

static CUresult pool_import_pointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
  *address = FAKE_ADDRESS;
  CUresult result = fake_call(true, "cuMemPoolImportPointer", (uintptr_t)pool, 0, 0, 0, 0);
  fake_data(data, sizeof *data);
  return result;
}

static CUresult get_default_pool(CUmemoryPool *pool, CUdevice device)
{
  *pool = (CUmemoryPool)(uintptr_t)FAKE_POOL;
  return fake_call(true, "cuDeviceGetDefaultMemPool", (uint64_t)device, 0, 0, 0, 0);
}

static CUresult get_pool(CUmemoryPool *pool, CUdevice device)
{
  *pool = (CUmemoryPool)(uintptr_t)FAKE_POOL;
  return fake_call(true, "cuDeviceGetMemPool", (uint64_t)device, 0, 0, 0, 0);
}

static CUresult set_pool(CUdevice device, CUmemoryPool pool)
{
  return fake_call(true, "cuDeviceSetMemPool", (uint64_t)device, (uintptr_t)pool, 0, 0, 0);
}

static CUresult get_default_pool_at(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
  *pool = (CUmemoryPool)(uintptr_t)FAKE_POOL;
  return fake_call(true, "cuMemGetDefaultMemPool", (uint64_t)location->type, (uint64_t)location->id, (uint64_t)type, 0,
                   0);
}

static CUresult get_pool_at(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
  *pool = (CUmemoryPool)(uintptr_t)FAKE_POOL;
  return fake_call(true, "cuMemGetMemPool", (uint64_t)location->type, (uint64_t)location->id, (uint64_t)type, 0, 0);
}

static CUresult set_pool_at(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
  return fake_call(true, "cuMemSetMemPool", (uint64_t)location->type, (uint64_t)location->id, (uint64_t)type,
                   (uintptr_t)pool, 0);
}

/* ---- Virtual memory -------------------------------------------------------------------------------------------- */

static CUresult granularity(size_t *bytes, const CUmemAllocationProp *properties,
                            CUmemAllocationGranularity_flags option)
{
  *bytes = 2 << 20;
  CUresult result = fake_call(true, "cuMemGetAllocationGranularity", (uint64_t)option, 0, 0, 0, 0);
  fake_data(properties, sizeof *properties);
  return result;
}

static CUresult reserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish,
                        unsigned long long flags)
{
  *address = FAKE_ADDRESS;
  return fake_call(true, "cuMemAddressReserve", bytes, alignment, wish, flags, 0);
}

static CUresult address_free(CUdeviceptr address, size_t bytes)
{
  return fake_call(true, "cuMemAddressFree", address, bytes, 0, 0, 0);
}

static unsigned char created_for_rdma; /* the last memory */

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                       unsigned long long flags)
{
  *handle = FAKE_HANDLE;
  created_for_rdma = properties->allocFlags.gpuDirectRDMACapable && !fake_cuda()->ignores_rdma;
  CUresult result = fake_call(true, "cuMemCreate", bytes, flags, 0, 0, 0);
  fake_data(properties, sizeof *properties);
  return result;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
  return fake_call(true, "cuMemRelease", handle, 0, 0, 0, 0);
}

static CUresult retain_handle(CUmemGenericAllocationHandle *handle, void *ptr)
{
  *handle = FAKE_HANDLE;
  return fake_call(true, "cuMemRetainAllocationHandle", (uintptr_t)ptr, 0, 0, 0, 0);
}

static CUresult get_properties(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
  *properties =
      (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32_KMT,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 3},
                            .allocFlags = {.compressionType = 1, .gpuDirectRDMACapable = created_for_rdma, .usage = 9}};
  return fake_call(true, "cuMemGetAllocationPropertiesFromHandle", handle, 0, 0, 0, 0);
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags)
{
  return fake_call(true, "cuMemMap", address, bytes, offset, handle, flags);
}

static CUresult unmap(CUdeviceptr address, size_t bytes)
{
  return fake_call(true, "cuMemUnmap", address, bytes, 0, 0, 0);
}

static CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
  CUresult result = fake_call(true, "cuMemSetAccess", address, bytes, count, 0, 0);
  fake_data(access, count * sizeof *access);
  return result;
}

static CUresult get_access(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  return fake_call(true, "cuMemGetAccess", address, (uint64_t)location->type, (uint64_t)location->id, 0, 0);
}

static CUresult export_handle(void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                              unsigned long long flags)
{
  *(int *)shareable = 6;
  return fake_call(true, "cuMemExportToShareableHandle", handle, (uint64_t)type, flags, 0, 0);
}

static CUresult import_handle(CUmemGenericAllocationHandle *handle, void *shareable, CUmemAllocationHandleType type)
{
  *handle = FAKE_HANDLE;
  return fake_call(true, "cuMemImportFromShareableHandle", (uintptr_t)shareable, (uint64_t)type, 0, 0, 0);
}

/* ---- Other processes ------------------------------------------------------------------------------------------- */

static CUresult ipc_get(CUipcMemHandle *handle, CUdeviceptr address)
{
  memset(handle, 'm', sizeof *handle);
  return fake_call(false, "cuIpcGetMemHandle", address, 0, 0, 0, 0);
}

static CUresult ipc_open(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
  *address = FAKE_ADDRESS;
  CUresult result = fake_call(false, "cuIpcOpenMemHandle", flags, 0, 0, 0, 0);
  fake_data(&handle, sizeof handle);
  return result;
}

static CUresult ipc_close(CUdeviceptr address)
{
  return fake_call(false, "cuIpcCloseMemHandle", address, 0, 0, 0, 0);
}

static CUresult get_handle(void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
                           unsigned long long flags)
{
  *(int *)handle = 8;
  return fake_call(false, "cuMemGetHandleForAddressRange", address, bytes, (uint64_t)type, flags, 0);
}

static CUresult wrong_variant(void)
{
  return fake_call(true, "a variant of another version", 0, 0, 0, 0, 0);
}

const struct fake_symbol fake_memory_symbols[] = {
    {"cuMemGetInfo", 2000, wrong_variant},
    {"cuMemGetInfo", 3020, get_info},
    {"cuMemAlloc", 2000, wrong_variant},
    {"cuMemAlloc", 3020, alloc},
    {"cuMemAllocPitch", 2000, wrong_variant},
    {"cuMemAllocPitch", 3020, alloc_pitch},
    {"cuMemFree", 2000, wrong_variant},
    {"cuMemFree", 3020, free_memory},
    {"cuMemGetAddressRange", 3020, get_address_range},
    {"cuPointerGetAttributes", 7000, pointer_get_attributes},
    {"cuMemHostAlloc", 2020, host_alloc},
    {"cuMemFreeHost", 2000, free_host},
    {"cuMemHostRegister", 4000, wrong_variant},
    {"cuMemHostRegister", 6050, host_register},
    {"cuMemHostUnregister", 4000, host_unregister},
    {"cuMemHostGetDevicePointer", 3020, host_get_device_pointer},
    {"cuMemHostGetFlags", 2030, host_get_flags},
    {"cuMemAllocManaged", 6000, alloc_managed},
    {"cuMemAdvise", 8000, advise},
    {"cuMemAdvise", 12020, advise_at},
    {"cuMemPrefetchAsync", 8000, prefetch},
    {"cuMemPrefetchAsync", 12020, prefetch_to},
    {"cuMemRangeGetAttribute", 8000, range_get_attribute},
    {"cuMemRangeGetAttributes", 8000, range_get_attributes},
    {"cuStreamAttachMemAsync", 6000, attach},
    {"cuMemcpy", 4000, copy},
    {"cuMemcpyAsync", 4000, copy_async},
    {"cuMemcpyPeer", 4000, copy_peer},
    {"cuMemcpyPeerAsync", 4000, copy_peer_async},
    {"cuMemsetD8", 2000, wrong_variant},
    {"cuMemsetD8", 3020, set_d8},
    {"cuMemsetD8Async", 3020, set_d8_async},
    {"cuMemsetD16", 3020, set_d16},
    {"cuMemsetD16Async", 3020, set_d16_async},
    {"cuMemsetD32", 3020, set_d32},
    {"cuMemsetD32Async", 3020, set_d32_async},
    {"cuMemAllocAsync", 11020, alloc_async},
    {"cuMemAllocFromPoolAsync", 11020, alloc_from_pool},
    {"cuMemFreeAsync", 11020, free_async},
    {"cuMemPoolCreate", 11020, pool_create},
    {"cuMemPoolDestroy", 11020, pool_destroy},
    {"cuMemPoolSetAttribute", 11020, pool_set_attribute},
    {"cuMemPoolGetAttribute", 11020, pool_get_attribute},
    {"cuMemPoolTrimTo", 11020, pool_trim},
    {"cuMemPoolSetAccess", 11020, pool_set_access},
    {"cuMemPoolGetAccess", 11020, pool_get_access},
    {"cuMemPoolExportToShareableHandle", 11020, pool_export},
    {"cuMemPoolImportFromShareableHandle", 11020, pool_import},
    {"cuMemPoolExportPointer", 11020, pool_export_pointer},
    {"cuMemPoolImportPointer", 11020, pool_import_pointer},
    {"cuDeviceGetDefaultMemPool", 11020, get_default_pool},
    {"cuDeviceGetMemPool", 11020, get_pool},
    {"cuDeviceSetMemPool", 11020, set_pool},
    {"cuMemGetDefaultMemPool", 13000, get_default_pool_at},
    {"cuMemGetMemPool", 13000, get_pool_at},
    {"cuMemSetMemPool", 13000, set_pool_at},
    {"cuMemGetAllocationGranularity", 10020, granularity},
    {"cuMemAddressReserve", 10020, reserve},
    {"cuMemAddressFree", 10020, address_free},
    {"cuMemCreate", 10020, create},
    {"cuMemRelease", 10020, release},
    {"cuMemRetainAllocationHandle", 11000, retain_handle},
    {"cuMemGetAllocationPropertiesFromHandle", 10020, get_properties},
    {"cuMemMap", 10020, map},
    {"cuMemUnmap", 10020, unmap},
    {"cuMemSetAccess", 10020, set_access},
    {"cuMemGetAccess", 10020, get_access},
    {"cuMemExportToShareableHandle", 10020, export_handle},
    {"cuMemImportFromShareableHandle", 10020, import_handle},
    {"cuMemGetHandleForAddressRange", 11070, get_handle},
    {"cuIpcGetMemHandle", 4010, ipc_get},
    {"cuIpcOpenMemHandle", 4010, wrong_variant},
    {"cuIpcOpenMemHandle", 11000, ipc_open},
    {"cuIpcCloseMemHandle", 4010, ipc_close},
    {NULL, 0, NULL},
};
