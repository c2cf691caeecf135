/* SPDX-License-Identifier: MIT */
/* driver.h: the functions of CUDA's driver API that this plugin calls, as a table of pointers that driver.c fills when
 * the driver is first needed. The signatures are written out here, since a symbol is requested for a certain version of
 * CUDA (symbols.c) and must have the signature of that version whatever cuda.h the plugin is built with.
 *
 * A function that is optional in symbols.c may be NULL: the driver is too old, or not NVIDIA's. */
#ifndef HIPMM_PLUGINS_RUNTIMES_NVIDIA_DRIVER_H
#define HIPMM_PLUGINS_RUNTIMES_NVIDIA_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct nvidia_driver {
  CUresult (*Init)(unsigned int flags);
  CUresult (*DriverGetVersion)(int *version);
  CUresult (*GetErrorName)(CUresult result, const char **name);
  CUresult (*GetErrorString)(CUresult result, const char **text);

  CUresult (*DeviceGetCount)(int *count);
  CUresult (*DeviceGetAttribute)(int *value, CUdevice_attribute attribute, CUdevice device);
  CUresult (*DeviceGetName)(char *name, int length, CUdevice device);
  CUresult (*DeviceGetPCIBusId)(char *id, int length, CUdevice device);
  CUresult (*DeviceGetByPCIBusId)(CUdevice *device, const char *id);
  CUresult (*DeviceGetUuid)(CUuuid *uuid, CUdevice device);
  CUresult (*DeviceTotalMem)(size_t *bytes, CUdevice device);
  CUresult (*DeviceCanAccessPeer)(int *can_access, CUdevice device, CUdevice peer);

  CUresult (*DevicePrimaryCtxRetain)(CUcontext *context, CUdevice device);
  CUresult (*DevicePrimaryCtxGetState)(CUdevice device, unsigned int *flags, int *is_active);
  CUresult (*DevicePrimaryCtxSetFlags)(CUdevice device, unsigned int flags);
  CUresult (*CtxGetCurrent)(CUcontext *context);
  CUresult (*CtxSetCurrent)(CUcontext context);
  CUresult (*CtxPushCurrent)(CUcontext context);
  CUresult (*CtxPopCurrent)(CUcontext *context);
  CUresult (*CtxGetDevice)(CUdevice *device);
  CUresult (*CtxSynchronize)(void);
  CUresult (*CtxGetStreamPriorityRange)(int *least, int *greatest);
  CUresult (*CtxGetLimit)(size_t *value, CUlimit limit);
  CUresult (*CtxSetLimit)(CUlimit limit, size_t value);
  CUresult (*CtxEnablePeerAccess)(CUcontext peer, unsigned int flags);
  CUresult (*CtxDisablePeerAccess)(CUcontext peer);

  CUresult (*MemGetInfo)(size_t *free_bytes, size_t *total_bytes);
  CUresult (*MemAlloc)(CUdeviceptr *address, size_t bytes);
  CUresult (*MemAllocPitch)(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned int element_bytes);
  CUresult (*MemFree)(CUdeviceptr address);
  CUresult (*MemGetAddressRange)(CUdeviceptr *base, size_t *bytes, CUdeviceptr address);
  CUresult (*PointerGetAttributes)(unsigned int count, CUpointer_attribute *attributes, void **values,
                                   CUdeviceptr address);

  CUresult (*MemHostAlloc)(void **ptr, size_t bytes, unsigned int flags);
  CUresult (*MemFreeHost)(void *ptr);
  CUresult (*MemHostRegister)(void *ptr, size_t bytes, unsigned int flags);
  CUresult (*MemHostUnregister)(void *ptr);
  CUresult (*MemHostGetDevicePointer)(CUdeviceptr *address, void *ptr, unsigned int flags);
  CUresult (*MemHostGetFlags)(unsigned int *flags, void *ptr);

  CUresult (*MemAllocManaged)(CUdeviceptr *address, size_t bytes, unsigned int flags);
  CUresult (*MemAdvise)(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device);
  CUresult (*MemPrefetchAsync)(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream);
  CUresult (*MemAdviseAt)(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location);
  CUresult (*MemPrefetchAsyncTo)(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags,
                                 CUstream stream);
  CUresult (*MemRangeGetAttribute)(void *data, size_t data_bytes, CUmem_range_attribute attribute, CUdeviceptr address,
                                   size_t bytes);

  CUresult (*MemRangeGetAttributes)(void **data, size_t *data_bytes, CUmem_range_attribute *attributes,
                                    size_t n_attributes, CUdeviceptr address, size_t bytes);
  CUresult (*StreamAttachMemAsync)(CUstream stream, CUdeviceptr address, size_t bytes, unsigned int flags);

  CUresult (*Memcpy)(CUdeviceptr to, CUdeviceptr from, size_t bytes);
  CUresult (*MemcpyAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*MemcpyPeer)(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes);
  CUresult (*MemcpyPeerAsync)(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t bytes, CUstream stream);
  CUresult (*MemsetD8)(CUdeviceptr address, unsigned char value, size_t count);
  CUresult (*MemsetD8Async)(CUdeviceptr address, unsigned char value, size_t count, CUstream stream);
  CUresult (*MemsetD16)(CUdeviceptr address, unsigned short value, size_t count);
  CUresult (*MemsetD16Async)(CUdeviceptr address, unsigned short value, size_t count, CUstream stream);
  CUresult (*MemsetD32)(CUdeviceptr address, unsigned int value, size_t count);
  CUresult (*MemsetD32Async)(CUdeviceptr address, unsigned int value, size_t count, CUstream stream);

  CUresult (*StreamCreate)(CUstream *stream, unsigned int flags);
  CUresult (*StreamCreateWithPriority)(CUstream *stream, unsigned int flags, int priority);
  CUresult (*StreamDestroy)(CUstream stream);
  CUresult (*StreamSynchronize)(CUstream stream);
  CUresult (*StreamQuery)(CUstream stream);
  CUresult (*StreamWaitEvent)(CUstream stream, CUevent event, unsigned int flags);
  CUresult (*StreamGetFlags)(CUstream stream, unsigned int *flags);
  CUresult (*StreamGetPriority)(CUstream stream, int *priority);
  CUresult (*StreamGetCtx)(CUstream stream, CUcontext *context);
  CUresult (*StreamGetId)(CUstream stream, unsigned long long *id);
  CUresult (*StreamIsCapturing)(CUstream stream, CUstreamCaptureStatus *status);
  CUresult (*ThreadExchangeStreamCaptureMode)(CUstreamCaptureMode *mode);
  CUresult (*StreamAddCallback)(CUstream stream, CUstreamCallback callback, void *argument, unsigned int flags);
  CUresult (*LaunchHostFunc)(CUstream stream, CUhostFn function, void *argument);

  CUresult (*EventCreate)(CUevent *event, unsigned int flags);
  CUresult (*EventDestroy)(CUevent event);
  CUresult (*EventRecord)(CUevent event, CUstream stream);
  CUresult (*EventQuery)(CUevent event);
  CUresult (*EventSynchronize)(CUevent event);
  CUresult (*EventElapsedTime)(float *milliseconds, CUevent start, CUevent stop);

  CUresult (*MemAllocAsync)(CUdeviceptr *address, size_t bytes, CUstream stream);
  CUresult (*MemAllocFromPoolAsync)(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);
  CUresult (*MemFreeAsync)(CUdeviceptr address, CUstream stream);
  CUresult (*MemPoolCreate)(CUmemoryPool *pool, const CUmemPoolProps *properties);
  CUresult (*MemPoolDestroy)(CUmemoryPool pool);
  CUresult (*MemPoolSetAttribute)(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
  CUresult (*MemPoolGetAttribute)(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
  CUresult (*MemPoolTrimTo)(CUmemoryPool pool, size_t keep_bytes);
  CUresult (*MemPoolSetAccess)(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count);
  CUresult (*MemPoolGetAccess)(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location);
  CUresult (*MemPoolExportToShareableHandle)(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type,
                                             unsigned long long flags);
  CUresult (*MemPoolImportFromShareableHandle)(CUmemoryPool *pool, void *handle, CUmemAllocationHandleType type,
                                               unsigned long long flags);
  CUresult (*MemPoolExportPointer)(CUmemPoolPtrExportData *data, CUdeviceptr address);
  CUresult (*MemPoolImportPointer)(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data);
  CUresult (*DeviceGetDefaultMemPool)(CUmemoryPool *pool, CUdevice device);
  CUresult (*DeviceGetMemPool)(CUmemoryPool *pool, CUdevice device);
  CUresult (*DeviceSetMemPool)(CUdevice device, CUmemoryPool pool);

  CUresult (*MemGetDefaultMemPool)(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type);
  CUresult (*MemGetMemPool)(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type);
  CUresult (*MemSetMemPool)(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool);

  CUresult (*MemGetAllocationGranularity)(size_t *bytes, const CUmemAllocationProp *properties,
                                          CUmemAllocationGranularity_flags option);
  CUresult (*MemAddressReserve)(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish,
                                unsigned long long flags);
  CUresult (*MemAddressFree)(CUdeviceptr address, size_t bytes);
  CUresult (*MemCreate)(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties,
                        unsigned long long flags);
  CUresult (*MemRelease)(CUmemGenericAllocationHandle handle);
  CUresult (*MemRetainAllocationHandle)(CUmemGenericAllocationHandle *handle, void *ptr);
  CUresult (*MemGetAllocationPropertiesFromHandle)(CUmemAllocationProp *properties,
                                                   CUmemGenericAllocationHandle handle);
  CUresult (*MemMap)(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                     unsigned long long flags);
  CUresult (*MemUnmap)(CUdeviceptr address, size_t bytes);
  CUresult (*MemSetAccess)(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
  CUresult (*MemGetAccess)(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address);
  CUresult (*MemExportToShareableHandle)(void *shareable, CUmemGenericAllocationHandle handle,
                                         CUmemAllocationHandleType type, unsigned long long flags);
  CUresult (*MemImportFromShareableHandle)(CUmemGenericAllocationHandle *handle, void *shareable,
                                           CUmemAllocationHandleType type);

  CUresult (*MemGetHandleForAddressRange)(void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
                                          unsigned long long flags);
  CUresult (*IpcGetMemHandle)(CUipcMemHandle *handle, CUdeviceptr address);
  CUresult (*IpcOpenMemHandle)(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags);
  CUresult (*IpcCloseMemHandle)(CUdeviceptr address);
  CUresult (*IpcGetEventHandle)(CUipcEventHandle *handle, CUevent event);
  CUresult (*IpcOpenEventHandle)(CUevent *event, CUipcEventHandle handle);
};

/* Valid once nvidia_ready() (nvidia.h) has returned true; constant from then on. */
extern struct nvidia_driver nvidia_cuda;

/* A symbol of the driver, the version of CUDA whose signature it must have, and where its address goes. */
struct nvidia_symbol {
  const char *name;
  void *slot;
  int version;
  bool optional;
};

extern const struct nvidia_symbol nvidia_symbols[];
extern const size_t nvidia_n_symbols;

#endif
