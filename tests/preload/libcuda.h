/* SPDX-License-Identifier: MIT */
/* libcuda.h: the functions of NVIDIA's driver that the tests' stand-in has, for machines without CUDA's headers. */
#ifndef HIPMM_TESTS_PRELOAD_LIBCUDA_H
#define HIPMM_TESTS_PRELOAD_LIBCUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct {
  char reserved[64];
} CUipcMemHandle;

/* What takes 48 MiB of device memory for a moment here, whatever the arguments are. */
/* clang-format off */
#define HUNGRY_FUNCTIONS(X) \
  X(cuGraphInstantiate, cuGraphInstantiate, 10000, (void **executable, void *graph, void **node, char *log, size_t bytes), \
    (executable, graph, node, log, bytes)) \
  X(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, \
    (void **executable, void *graph, void **node, char *log, size_t bytes), (executable, graph, node, log, bytes)) \
  X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, \
    (void **executable, void *graph, void *parameters), (executable, graph, parameters)) \
  X(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, \
    (void **executable, void *graph, void *parameters), (executable, graph, parameters)) \
  X(cuGraphUpload, cuGraphUpload, 11010, (void *executable, CUstream stream), (executable, stream)) \
  X(cuGraphUpload_ptsz, cuGraphUpload, 11010, (void *executable, CUstream stream), (executable, stream)) \
  X(cuGraphLaunch, cuGraphLaunch, 10000, (void *executable, CUstream stream), (executable, stream)) \
  X(cuGraphLaunch_ptsz, cuGraphLaunch, 10000, (void *executable, CUstream stream), (executable, stream)) \
  X(cuArrayCreate_v2, cuArrayCreate, 3020, (void **array, const void *format), (array, format)) \
  X(cuArray3DCreate_v2, cuArray3DCreate, 3020, (void **array, const void *format), (array, format)) \
  X(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000, (void **array, const void *format, unsigned levels), \
    (array, format, levels)) \
  X(cuMemHostRegister_v2, cuMemHostRegister, 6050, (void *ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
  X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, \
    (uint64_t *handle, void *shareable, int type), (handle, shareable, type)) \
  X(cuMulticastCreate, cuMulticastCreate, 12010, (uint64_t *handle, const void *properties), (handle, properties)) \
  X(cuMulticastBindMem, cuMulticastBindMem, 12010, \
    (uint64_t multicast, size_t offset, uint64_t memory, size_t memory_offset, size_t bytes, uint64_t flags), \
    (multicast, offset, memory, memory_offset, bytes, flags)) \
  X(cuMulticastBindAddr, cuMulticastBindAddr, 12010, \
    (uint64_t multicast, size_t offset, CUdeviceptr ptr, size_t bytes, uint64_t flags), \
    (multicast, offset, ptr, bytes, flags)) \
  X(cuCtxCreate_v3, cuCtxCreate, 11040, (CUcontext *context, void *affinity, int count, unsigned flags, int device), \
    (context, affinity, count, flags, device)) \
  X(cuCtxCreate_v4, cuCtxCreate, 12050, (CUcontext *context, void *parameters, unsigned flags, int device), \
    (context, parameters, flags, device)) \
  X(cuGreenCtxCreate, cuGreenCtxCreate, 12040, (void **context, void *description, int device, unsigned flags), \
    (context, description, device, flags)) \
  X(cuCtxSetLimit, cuCtxSetLimit, 3010, (int limit, size_t value), (limit, value)) \
  X(cuModuleLoad, cuModuleLoad, 2000, (void **module, const char *file), (module, file)) \
  X(cuModuleLoadData, cuModuleLoadData, 2000, (void **module, const void *image), (module, image)) \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, \
    (void **module, const void *image, unsigned count, int *options, void **values), \
    (module, image, count, options, values)) \
  X(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, (void **module, const void *image), (module, image)) \
  X(cuModuleGetFunction, cuModuleGetFunction, 2000, (void **function, void *module, const char *name), \
    (function, module, name)) \
  X(cuModuleGetGlobal_v2, cuModuleGetGlobal, 3020, \
    (CUdeviceptr *ptr, size_t *bytes, void *module, const char *name), (ptr, bytes, module, name)) \
  X(cuLibraryLoadData, cuLibraryLoadData, 12000, \
    (void **library, const void *image, int *options, void **values, unsigned count, int *library_options, \
     void **library_values, unsigned library_count), \
    (library, image, options, values, count, library_options, library_values, library_count)) \
  X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, \
    (void **library, const char *file, int *options, void **values, unsigned count, int *library_options, \
     void **library_values, unsigned library_count), \
    (library, file, options, values, count, library_options, library_values, library_count)) \
  X(cuLibraryGetModule, cuLibraryGetModule, 12000, (void **module, void *library), (module, library)) \
  X(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000, \
    (CUdeviceptr *ptr, size_t *bytes, void *library, const char *name), (ptr, bytes, library, name)) \
  X(cuKernelGetFunction, cuKernelGetFunction, 12000, (void **function, void *kernel), (function, kernel)) \
  X(cuFuncLoad, cuFuncLoad, 12040, (void *function), (function)) \
  HUNGRY_LAUNCHES(X, ) \
  HUNGRY_LAUNCHES(X, _ptsz)

#define HUNGRY_LAUNCHES(X, suffix) \
  X(cuLaunchKernel##suffix, cuLaunchKernel, (sizeof #suffix > 1 ? 7000 : 4000), \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra), \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra)) \
  X(cuLaunchKernelEx##suffix, cuLaunchKernelEx, 11060, \
    (const void *settings, void *function, void **parameters, void **extra), (settings, function, parameters, extra)) \
  X(cuLaunchCooperativeKernel##suffix, cuLaunchCooperativeKernel, 9000, \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters), \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters))
/* clang-format on */

/* X(name, the name that cuGetProcAddress() takes, the release that brought the function, parameters, arguments) */
/* clang-format off */
#define DRIVER_FUNCTIONS(X) \
  X(cuInit, cuInit, 2000, (unsigned flags), (flags)) \
  X(cuDriverGetVersion, cuDriverGetVersion, 2020, (int *version), (version)) \
  X(cuGetErrorName, cuGetErrorName, 6000, (int code, const char **text), (code, text)) \
  X(cuGetErrorString, cuGetErrorString, 6000, (int code, const char **text), (code, text)) \
  X(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *count), (count)) \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int *value, int attribute, int device), (value, attribute, device)) \
  X(cuDeviceGetName, cuDeviceGetName, 2000, (char *name, int length, int device), (name, length, device)) \
  X(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020, (size_t *bytes, int device), (bytes, device)) \
  X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, (int *can, int device, int peer), (can, device, peer)) \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext *context, int device), (context, device)) \
  X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, (int device), (device)) \
  X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, (int device), (device)) \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, (int device, unsigned *flags, int *is_active), \
    (device, flags, is_active)) \
  X(cuCtxCreate_v2, cuCtxCreate, 3020, (CUcontext *context, unsigned flags, int device), (context, flags, device)) \
  X(cuCtxDestroy_v2, cuCtxDestroy, 4000, (CUcontext context), (context)) \
  X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext *context), (context)) \
  X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext context), (context)) \
  X(cuCtxGetDevice, cuCtxGetDevice, 2000, (int *device), (device)) \
  X(cuCtxSynchronize, cuCtxSynchronize, 2000, (void), ()) \
  X(cuMemGetInfo_v2, cuMemGetInfo, 3020, (size_t *free_bytes, size_t *total_bytes), (free_bytes, total_bytes)) \
  X(cuMemAlloc_v2, cuMemAlloc, 3020, (CUdeviceptr *address, size_t bytes), (address, bytes)) \
  X(cuMemAlloc, cuMemAlloc, 2000, (unsigned *address, unsigned bytes), (address, bytes)) \
  X(cuMemAlloc_v3, cuMemAlloc, 99000, (CUdeviceptr *address, size_t bytes, int kind), (address, bytes, kind)) \
  X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, \
    (CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element_bytes), \
    (address, pitch, width, height, element_bytes)) \
  X(cuMemFree_v2, cuMemFree, 3020, (CUdeviceptr address), (address)) \
  X(cuMemCreate, cuMemCreate, 10020, (uint64_t *handle, size_t bytes, const void *properties, uint64_t flags), \
    (handle, bytes, properties, flags)) \
  X(cuMemRelease, cuMemRelease, 10020, (uint64_t handle), (handle)) \
  X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020, \
    (size_t *bytes, const void *properties, int option), (bytes, properties, option)) \
  X(cuMemAddressReserve, cuMemAddressReserve, 10020, \
    (CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted, uint64_t flags), \
    (address, bytes, alignment, wanted, flags)) \
  X(cuMemAddressFree, cuMemAddressFree, 10020, (CUdeviceptr address, size_t bytes), (address, bytes)) \
  X(cuMemMap, cuMemMap, 10020, (CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle, uint64_t flags), \
    (address, bytes, offset, handle, flags)) \
  X(cuMemUnmap, cuMemUnmap, 10020, (CUdeviceptr address, size_t bytes), (address, bytes)) \
  X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000, (uint64_t *handle, CUdeviceptr address), \
    (handle, address)) \
  HUNGRY_FUNCTIONS(X) \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiate, 12000, (void **executable, void *graph, uint64_t flags), \
    (executable, graph, flags)) \
  X(cuMemGetAddressRange_v2, cuMemGetAddressRange, 3020, (CUdeviceptr *base, size_t *bytes, CUdeviceptr address), \
    (base, bytes, address)) \
  X(cuPointerGetAttribute, cuPointerGetAttribute, 4000, (void *data, int attribute, CUdeviceptr address), \
    (data, attribute, address)) \
  X(cuPointerGetAttributes, cuPointerGetAttributes, 7000, \
    (unsigned count, int *attributes, void **data, CUdeviceptr address), (count, attributes, data, address)) \
  X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
  X(cuMemAllocHost_v2, cuMemAllocHost, 3020, (void **ptr, size_t bytes), (ptr, bytes)) \
  X(cuMemFreeHost, cuMemFreeHost, 2000, (void *ptr), (ptr)) \
  X(cuMemHostGetFlags, cuMemHostGetFlags, 2030, (unsigned *flags, void *ptr), (flags, ptr)) \
  X(cuMemAllocManaged, cuMemAllocManaged, 6000, (CUdeviceptr *address, size_t bytes, unsigned flags), \
    (address, bytes, flags)) \
  X(cuMemcpy, cuMemcpy, 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
  X(cuMemcpyAsync, cuMemcpyAsync, 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), \
    (to, from, bytes, stream)) \
  X(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
  X(cuMemsetD8_v2, cuMemsetD8, 3020, (CUdeviceptr address, unsigned char value, size_t count), (address, value, count)) \
  X(cuMemsetD8Async, cuMemsetD8Async, 3020, \
    (CUdeviceptr address, unsigned char value, size_t count, CUstream stream), (address, value, count, stream)) \
  X(cuMemsetD32Async, cuMemsetD32Async, 3020, \
    (CUdeviceptr address, unsigned value, size_t count, CUstream stream), (address, value, count, stream)) \
  X(cuStreamCreate, cuStreamCreate, 2000, (CUstream *stream, unsigned flags), (stream, flags)) \
  X(cuStreamDestroy_v2, cuStreamDestroy, 4000, (CUstream stream), (stream)) \
  X(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream), (stream)) \
  X(cuStreamQuery, cuStreamQuery, 2000, (CUstream stream), (stream)) \
  X(cuStreamWaitEvent, cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned flags), \
    (stream, event, flags)) \
  X(cuStreamGetCtx, cuStreamGetCtx, 9020, (CUstream stream, CUcontext *context), (stream, context)) \
  X(cuStreamIsCapturing, cuStreamIsCapturing, 10000, (CUstream stream, int *state), (stream, state)) \
  X(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, (CUstream stream, int mode), (stream, mode)) \
  X(cuStreamEndCapture, cuStreamEndCapture, 10000, (CUstream stream, void **graph), (stream, graph)) \
  X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, (int *mode), (mode)) \
  X(cuGraphDestroy, cuGraphDestroy, 10000, (void *graph), (graph)) \
  X(cuEventCreate, cuEventCreate, 2000, (CUevent *event, unsigned flags), (event, flags)) \
  X(cuEventDestroy_v2, cuEventDestroy, 4000, (CUevent event), (event)) \
  X(cuEventRecord, cuEventRecord, 2000, (CUevent event, CUstream stream), (event, stream)) \
  X(cuEventQuery, cuEventQuery, 2000, (CUevent event), (event)) \
  X(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent event), (event)) \
  X(cuMemAllocAsync, cuMemAllocAsync, 11020, (CUdeviceptr *address, size_t bytes, CUstream stream), \
    (address, bytes, stream)) \
  X(cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020, (CUdeviceptr *address, size_t bytes, CUstream stream), \
    (address, bytes, stream)) \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, \
    (CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream), (address, bytes, pool, stream)) \
  X(cuMemFreeAsync, cuMemFreeAsync, 11020, (CUdeviceptr address, CUstream stream), (address, stream)) \
  X(cuMemFreeAsync_ptsz, cuMemFreeAsync, 11020, (CUdeviceptr address, CUstream stream), (address, stream)) \
  X(cuMemPoolCreate, cuMemPoolCreate, 11020, (CUmemoryPool *pool, const void *properties), (pool, properties)) \
  X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (CUmemoryPool pool), (pool)) \
  X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, (CUmemoryPool pool, int attribute, void *value), \
    (pool, attribute, value)) \
  X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, (CUmemoryPool pool, size_t keep_bytes), (pool, keep_bytes)) \
  X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool *pool, int device), (pool, device)) \
  X(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000, (CUmemoryPool *pool, const void *location, int type), \
    (pool, location, type)) \
  X(cuMemSetMemPool, cuMemSetMemPool, 13000, (const void *location, int type, CUmemoryPool pool), \
    (location, type, pool)) \
  X(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020, (CUmemoryPool *pool, int device), (pool, device)) \
  X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, (CUipcMemHandle *handle, CUdeviceptr address), (handle, address)) \
  X(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle, 11000, (CUdeviceptr *address, CUipcMemHandle handle, unsigned flags), \
    (address, handle, flags)) \
  X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, (CUdeviceptr address), (address)) \
  X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, (CUcontext peer, unsigned flags), (peer, flags)) \
  X(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000, (CUcontext peer), (peer)) \
  X(cuGetProcAddress, cuGetProcAddress, 11030, (const char *name, void **function, int version, uint64_t flags), \
    (name, function, version, flags)) \
  X(cuGetProcAddress_v2, cuGetProcAddress, 12000, \
    (const char *name, void **function, int version, uint64_t flags, int *status), \
    (name, function, version, flags, status))
/* clang-format on */

#pragma GCC visibility push(default)

#define DRIVER_DECLARE(name, base, since, parameters, arguments) int name parameters;
DRIVER_FUNCTIONS(DRIVER_DECLARE)
#undef DRIVER_DECLARE

/* Not of the driver: from now on this stream is said to be captured, though nothing is; NULL: none. Whether the driver's own
 * cuStreamSynchronize() was called for a stream. How often the driver's own cuMemAlloc() and cuMemFree() were called. */
void fake_capture(CUstream stream);
bool fake_waited_for(CUstream stream);
CUcontext fake_synchronized(void); /* the context of the thread's last cuCtxSynchronize() */
unsigned fake_allocations(void);
unsigned fake_frees(void);

#pragma GCC visibility pop

#endif
