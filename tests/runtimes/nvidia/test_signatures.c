/* SPDX-License-Identifier: MIT */
/* test_signatures.c: each function of the driver has the signature that CUDA's own list of versions gives it. The
 * compiler checks it; the test only runs. */
#include "runtime.h"

#if defined(__has_include)
#if __has_include(<cudaTypedefs.h>)
#include <cudaTypedefs.h>
#define HAVE_TYPEDEFS 1
#endif
#endif

#ifdef HAVE_TYPEDEFS
#define SAME(field, type) \
  _Static_assert(__builtin_types_compatible_p(__typeof__(nvidia_cuda.field), type), #type " is not " #field)

SAME(Init, PFN_cuInit_v2000);
SAME(DriverGetVersion, PFN_cuDriverGetVersion_v2020);
SAME(GetErrorName, PFN_cuGetErrorName_v6000);
SAME(GetErrorString, PFN_cuGetErrorString_v6000);
SAME(DeviceGetCount, PFN_cuDeviceGetCount_v2000);
SAME(DeviceGetAttribute, PFN_cuDeviceGetAttribute_v2000);
SAME(DeviceGetName, PFN_cuDeviceGetName_v2000);
SAME(DeviceGetPCIBusId, PFN_cuDeviceGetPCIBusId_v4010);
SAME(DeviceGetByPCIBusId, PFN_cuDeviceGetByPCIBusId_v4010);
SAME(DeviceGetUuid, PFN_cuDeviceGetUuid_v9020);
SAME(DeviceTotalMem, PFN_cuDeviceTotalMem_v3020);
SAME(DeviceCanAccessPeer, PFN_cuDeviceCanAccessPeer_v4000);
SAME(DevicePrimaryCtxRetain, PFN_cuDevicePrimaryCtxRetain_v7000);
SAME(DevicePrimaryCtxGetState, PFN_cuDevicePrimaryCtxGetState_v7000);
SAME(DevicePrimaryCtxSetFlags, PFN_cuDevicePrimaryCtxSetFlags_v11000);
SAME(CtxGetCurrent, PFN_cuCtxGetCurrent_v4000);
SAME(CtxSetCurrent, PFN_cuCtxSetCurrent_v4000);
SAME(CtxPushCurrent, PFN_cuCtxPushCurrent_v4000);
SAME(CtxPopCurrent, PFN_cuCtxPopCurrent_v4000);
SAME(CtxGetDevice, PFN_cuCtxGetDevice_v2000);
SAME(CtxSynchronize, PFN_cuCtxSynchronize_v2000);
SAME(CtxGetStreamPriorityRange, PFN_cuCtxGetStreamPriorityRange_v5050);
SAME(CtxGetLimit, PFN_cuCtxGetLimit_v3010);
SAME(CtxSetLimit, PFN_cuCtxSetLimit_v3010);
SAME(CtxEnablePeerAccess, PFN_cuCtxEnablePeerAccess_v4000);
SAME(CtxDisablePeerAccess, PFN_cuCtxDisablePeerAccess_v4000);
SAME(MemGetInfo, PFN_cuMemGetInfo_v3020);
SAME(MemAlloc, PFN_cuMemAlloc_v3020);
SAME(MemAllocPitch, PFN_cuMemAllocPitch_v3020);
SAME(MemFree, PFN_cuMemFree_v3020);
SAME(MemGetAddressRange, PFN_cuMemGetAddressRange_v3020);
SAME(PointerGetAttributes, PFN_cuPointerGetAttributes_v7000);
SAME(MemHostAlloc, PFN_cuMemHostAlloc_v2020);
SAME(MemFreeHost, PFN_cuMemFreeHost_v2000);
SAME(MemHostRegister, PFN_cuMemHostRegister_v6050);
SAME(MemHostUnregister, PFN_cuMemHostUnregister_v4000);
SAME(MemHostGetDevicePointer, PFN_cuMemHostGetDevicePointer_v3020);
SAME(MemHostGetFlags, PFN_cuMemHostGetFlags_v2030);
SAME(MemAllocManaged, PFN_cuMemAllocManaged_v6000);
SAME(MemAdvise, PFN_cuMemAdvise_v8000);
SAME(MemPrefetchAsync, PFN_cuMemPrefetchAsync_v8000);
SAME(MemAdviseAt, PFN_cuMemAdvise_v12020);
SAME(MemPrefetchAsyncTo, PFN_cuMemPrefetchAsync_v12020);
SAME(MemRangeGetAttribute, PFN_cuMemRangeGetAttribute_v8000);
SAME(MemRangeGetAttributes, PFN_cuMemRangeGetAttributes_v8000);
SAME(StreamAttachMemAsync, PFN_cuStreamAttachMemAsync_v6000);
SAME(Memcpy, PFN_cuMemcpy_v4000);
SAME(MemcpyAsync, PFN_cuMemcpyAsync_v4000);
SAME(MemcpyPeer, PFN_cuMemcpyPeer_v4000);
SAME(MemcpyPeerAsync, PFN_cuMemcpyPeerAsync_v4000);
SAME(MemsetD8, PFN_cuMemsetD8_v3020);
SAME(MemsetD8Async, PFN_cuMemsetD8Async_v3020);
SAME(MemsetD16, PFN_cuMemsetD16_v3020);
SAME(MemsetD16Async, PFN_cuMemsetD16Async_v3020);
SAME(MemsetD32, PFN_cuMemsetD32_v3020);
SAME(MemsetD32Async, PFN_cuMemsetD32Async_v3020);
SAME(StreamCreate, PFN_cuStreamCreate_v2000);
SAME(StreamCreateWithPriority, PFN_cuStreamCreateWithPriority_v5050);
SAME(StreamDestroy, PFN_cuStreamDestroy_v4000);
SAME(StreamSynchronize, PFN_cuStreamSynchronize_v2000);
SAME(StreamQuery, PFN_cuStreamQuery_v2000);
SAME(StreamWaitEvent, PFN_cuStreamWaitEvent_v3020);
SAME(StreamGetFlags, PFN_cuStreamGetFlags_v5050);
SAME(StreamGetPriority, PFN_cuStreamGetPriority_v5050);
SAME(StreamGetCtx, PFN_cuStreamGetCtx_v9020);
SAME(StreamGetId, PFN_cuStreamGetId_v12000);
SAME(StreamIsCapturing, PFN_cuStreamIsCapturing_v10000);
SAME(ThreadExchangeStreamCaptureMode, PFN_cuThreadExchangeStreamCaptureMode_v10010);
SAME(StreamAddCallback, PFN_cuStreamAddCallback_v5000);
SAME(LaunchHostFunc, PFN_cuLaunchHostFunc_v10000);
SAME(EventCreate, PFN_cuEventCreate_v2000);
SAME(EventDestroy, PFN_cuEventDestroy_v4000);
SAME(EventRecord, PFN_cuEventRecord_v2000);
SAME(EventQuery, PFN_cuEventQuery_v2000);
SAME(EventSynchronize, PFN_cuEventSynchronize_v2000);
SAME(EventElapsedTime, PFN_cuEventElapsedTime_v2000);
SAME(MemAllocAsync, PFN_cuMemAllocAsync_v11020);
SAME(MemAllocFromPoolAsync, PFN_cuMemAllocFromPoolAsync_v11020);
SAME(MemFreeAsync, PFN_cuMemFreeAsync_v11020);
SAME(MemPoolCreate, PFN_cuMemPoolCreate_v11020);
SAME(MemPoolDestroy, PFN_cuMemPoolDestroy_v11020);
SAME(MemPoolSetAttribute, PFN_cuMemPoolSetAttribute_v11020);
SAME(MemPoolGetAttribute, PFN_cuMemPoolGetAttribute_v11020);
SAME(MemPoolTrimTo, PFN_cuMemPoolTrimTo_v11020);
SAME(MemPoolSetAccess, PFN_cuMemPoolSetAccess_v11020);
SAME(MemPoolGetAccess, PFN_cuMemPoolGetAccess_v11020);
SAME(MemPoolExportToShareableHandle, PFN_cuMemPoolExportToShareableHandle_v11020);
SAME(MemPoolImportFromShareableHandle, PFN_cuMemPoolImportFromShareableHandle_v11020);
SAME(MemPoolExportPointer, PFN_cuMemPoolExportPointer_v11020);
SAME(MemPoolImportPointer, PFN_cuMemPoolImportPointer_v11020);
SAME(DeviceGetDefaultMemPool, PFN_cuDeviceGetDefaultMemPool_v11020);
SAME(DeviceGetMemPool, PFN_cuDeviceGetMemPool_v11020);
SAME(DeviceSetMemPool, PFN_cuDeviceSetMemPool_v11020);
#if CUDA_VERSION >= 13000
SAME(MemGetDefaultMemPool, PFN_cuMemGetDefaultMemPool_v13000);
SAME(MemGetMemPool, PFN_cuMemGetMemPool_v13000);
SAME(MemSetMemPool, PFN_cuMemSetMemPool_v13000);
#endif
SAME(MemGetAllocationGranularity, PFN_cuMemGetAllocationGranularity_v10020);
SAME(MemAddressReserve, PFN_cuMemAddressReserve_v10020);
SAME(MemAddressFree, PFN_cuMemAddressFree_v10020);
SAME(MemCreate, PFN_cuMemCreate_v10020);
SAME(MemRelease, PFN_cuMemRelease_v10020);
SAME(MemRetainAllocationHandle, PFN_cuMemRetainAllocationHandle_v11000);
SAME(MemGetAllocationPropertiesFromHandle, PFN_cuMemGetAllocationPropertiesFromHandle_v10020);
SAME(MemMap, PFN_cuMemMap_v10020);
SAME(MemUnmap, PFN_cuMemUnmap_v10020);
SAME(MemSetAccess, PFN_cuMemSetAccess_v10020);
SAME(MemGetAccess, PFN_cuMemGetAccess_v10020);
SAME(MemExportToShareableHandle, PFN_cuMemExportToShareableHandle_v10020);
SAME(MemImportFromShareableHandle, PFN_cuMemImportFromShareableHandle_v10020);
SAME(MemGetHandleForAddressRange, PFN_cuMemGetHandleForAddressRange_v11070);
SAME(IpcGetMemHandle, PFN_cuIpcGetMemHandle_v4010);
SAME(IpcOpenMemHandle, PFN_cuIpcOpenMemHandle_v11000);
SAME(IpcCloseMemHandle, PFN_cuIpcCloseMemHandle_v4010);
SAME(IpcGetEventHandle, PFN_cuIpcGetEventHandle_v4010);
SAME(IpcOpenEventHandle, PFN_cuIpcOpenEventHandle_v4010);
#endif

static void every_symbol_has_a_place_of_its_own(void **state)
{
  (void)state;
  assert_int_equal(nvidia_n_symbols, sizeof nvidia_cuda / sizeof nvidia_cuda.Init);
  for (size_t i = 0; i < nvidia_n_symbols; i++) {
    assert_ptr_equal(nvidia_symbols[i].slot, (char *)&nvidia_cuda + i * sizeof nvidia_cuda.Init);
    assert_in_range(nvidia_symbols[i].version, 2000, 13000);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_symbol_has_a_place_of_its_own),
  };
  return cmocka_run_group_tests_name("nvidia: signatures", tests, NULL, NULL);
}
