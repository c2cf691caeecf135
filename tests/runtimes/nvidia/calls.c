/* SPDX-License-Identifier: MIT */
/* calls.c: the calls of calls.h, and what they are given. */
#include "calls.h"

/* Where the results go, and what the calls are given. */
static char text[64];
static int number;
static unsigned bits;
static unsigned long long wide;
static size_t size, sizes[] = {sizeof number};
static float milliseconds;
static void *pointer, *values[] = {&number};
static hipUUID uuid;
static hipStream_t stream;
static hipEvent_t event;
static hipMemPool_t pool;
static hipStreamCaptureStatus capture_status;
static hipStreamCaptureMode capture_mode;
static hipPointerAttribute_t attributes;
static hipMemRangeAttribute range_attributes[] = {hipMemRangeAttributeReadMostly};
static hipIpcMemHandle_t memory_handle;
static hipIpcEventHandle_t event_handle;
static hipMemGenericAllocationHandle_t generic;
static hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned};
static hipMemPoolProps pool_properties = {.allocType = hipMemAllocationTypePinned};
static hipMemPoolPtrExportData export_data;
static hipMemLocation device_0 = {.type = hipMemLocationTypeDevice};
static hipMemAccessDesc access_of_0 = {.location = {.type = hipMemLocationTypeDevice}};
static hipMemAccessFlags access_flags;

#define DEVICE_MEMORY POINTER(FAKE_ADDRESS)
#define HOST_MEMORY   POINTER(FAKE_HOST)
#define A_STREAM      POINTER(FAKE_STREAM)
#define AN_EVENT      POINTER(FAKE_EVENT)
#define A_POOL        POINTER(FAKE_POOL)
#define A_HANDLE      POINTER(FAKE_HANDLE)
#define DESCRIPTOR    hipMemHandleTypePosixFileDescriptor

static void do_nothing(void *argument)
{
  (void)argument;
}

static void do_nothing_back(hipStream_t of, hipError_t error, void *argument)
{
  (void)of;
  (void)error;
  (void)argument;
}

/* The function, the driver's function that it needs and that a driver may lack, and the arguments. */
#define CALLS_OF_DEVICES(CALL)                                                             \
  CALL(hipInit, NULL, (0))                                                                 \
  CALL(hipDriverGetVersion, NULL, (&number))                                               \
  CALL(hipGetDeviceCount, NULL, (&number))                                                 \
  CALL(hipDeviceGet, NULL, (&number, 0))                                                   \
  CALL(hipGetDevice, NULL, (&number))                                                      \
  CALL(hipSetDevice, NULL, (0))                                                            \
  CALL(hipDeviceGetAttribute, NULL, (&number, hipDeviceAttributeWarpSize, 0))              \
  CALL(hipDeviceGetName, NULL, (text, sizeof text, 0))                                     \
  CALL(hipDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (text, sizeof text, 0))                \
  CALL(hipDeviceGetByPCIBusId, "cuDeviceGetByPCIBusId", (&number, "0000:17:00.0"))         \
  CALL(hipDeviceGetUuid, "cuDeviceGetUuid", (&uuid, 0))                                    \
  CALL(hipDeviceTotalMem, NULL, (&size, 0))                                                \
  CALL(hipDeviceSynchronize, NULL, ())                                                     \
  CALL(hipDeviceGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (&number, &number)) \
  CALL(hipGetDeviceFlags, NULL, (&bits))                                                   \
  CALL(hipSetDeviceFlags, "cuDevicePrimaryCtxSetFlags", (0))                               \
  CALL(hipDeviceGetLimit, "cuCtxGetLimit", (&size, hipLimitMallocHeapSize))                \
  CALL(hipDeviceSetLimit, "cuCtxSetLimit", (hipLimitMallocHeapSize, 1))                    \
  CALL(hipDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (&number, 0, 1))                   \
  CALL(hipDeviceEnablePeerAccess, "cuCtxEnablePeerAccess", (1, 0))                         \
  CALL(hipDeviceDisablePeerAccess, "cuCtxDisablePeerAccess", (1))                          \
  CALL(hipDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", (&pool, 0))                \
  CALL(hipDeviceGetMemPool, "cuDeviceGetMemPool", (&pool, 0))                              \
  CALL(hipDeviceSetMemPool, "cuDeviceSetMemPool", (0, A_POOL))

#define CALLS_OF_MEMORY(CALL)                                                                                         \
  CALL(hipMalloc, NULL, (&pointer, 8))                                                                                \
  CALL(hipExtMallocWithFlags, NULL, (&pointer, 8, hipDeviceMallocFinegrained))                                        \
  CALL(hipMallocPitch, "cuMemAllocPitch", (&pointer, &size, 8, 8))                                                    \
  CALL(hipFree, NULL, (DEVICE_MEMORY))                                                                                \
  CALL(hipMemGetInfo, NULL, (&size, &size))                                                                           \
  CALL(hipMemGetAddressRange, "cuMemGetAddressRange", (&pointer, &size, DEVICE_MEMORY))                               \
  CALL(hipMemPtrGetInfo, "cuMemGetAddressRange", (DEVICE_MEMORY, &size))                                              \
  CALL(hipPointerGetAttributes, "cuPointerGetAttributes", (&attributes, DEVICE_MEMORY))                               \
  CALL(hipPointerGetAttribute, "cuPointerGetAttributes", (&number, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, DEVICE_MEMORY)) \
  CALL(hipHostMalloc, "cuMemHostAlloc", (&pointer, 8, 0))                                                             \
  CALL(hipHostFree, "cuMemFreeHost", (HOST_MEMORY))                                                                   \
  CALL(hipHostRegister, "cuMemHostRegister", (HOST_MEMORY, 8, 0))                                                     \
  CALL(hipHostUnregister, "cuMemHostUnregister", (HOST_MEMORY))                                                       \
  CALL(hipHostGetDevicePointer, "cuMemHostGetDevicePointer", (&pointer, HOST_MEMORY, 0))                              \
  CALL(hipHostGetFlags, "cuMemHostGetFlags", (&bits, HOST_MEMORY))                                                    \
  CALL(hipMallocManaged, "cuMemAllocManaged", (&pointer, 8, hipMemAttachGlobal))                                      \
  CALL(hipMemAdvise, "cuMemAdvise", (DEVICE_MEMORY, 8, hipMemAdviseSetReadMostly, 0))                                 \
  CALL(hipMemPrefetchAsync, "cuMemPrefetchAsync", (DEVICE_MEMORY, 8, 0, A_STREAM))                                    \
  CALL(hipMemAdvise_v2, "cuMemAdvise_v2", (DEVICE_MEMORY, 8, hipMemAdviseSetReadMostly, device_0))                    \
  CALL(hipMemPrefetchAsync_v2, "cuMemPrefetchAsync_v2", (DEVICE_MEMORY, 8, device_0, 0, A_STREAM))                    \
  CALL(hipMemRangeGetAttribute, "cuMemRangeGetAttribute",                                                             \
       (&number, sizeof number, hipMemRangeAttributeReadMostly, DEVICE_MEMORY, 8))                                    \
  CALL(hipMemRangeGetAttributes, "cuMemRangeGetAttributes", (values, sizes, range_attributes, 1, DEVICE_MEMORY, 8))   \
  CALL(hipStreamAttachMemAsync, "cuStreamAttachMemAsync", (A_STREAM, DEVICE_MEMORY, 0, hipMemAttachSingle))

#define CALLS_OF_COPIES(CALL)                                                             \
  CALL(hipMemcpy, NULL, (DEVICE_MEMORY, HOST_MEMORY, 8, hipMemcpyDefault))                \
  CALL(hipMemcpyAsync, NULL, (DEVICE_MEMORY, HOST_MEMORY, 8, hipMemcpyDefault, A_STREAM)) \
  CALL(hipMemcpyPeer, NULL, (DEVICE_MEMORY, 0, HOST_MEMORY, 1, 8))                        \
  CALL(hipMemcpyPeerAsync, NULL, (DEVICE_MEMORY, 0, HOST_MEMORY, 1, 8, A_STREAM))         \
  CALL(hipMemsetD8, NULL, (DEVICE_MEMORY, 1, 8))                                          \
  CALL(hipMemsetD8Async, NULL, (DEVICE_MEMORY, 1, 8, A_STREAM))                           \
  CALL(hipMemsetD16, "cuMemsetD16", (DEVICE_MEMORY, 1, 8))                                \
  CALL(hipMemsetD16Async, "cuMemsetD16Async", (DEVICE_MEMORY, 1, 8, A_STREAM))            \
  CALL(hipMemsetD32, "cuMemsetD32", (DEVICE_MEMORY, 1, 8))                                \
  CALL(hipMemsetD32Async, "cuMemsetD32Async", (DEVICE_MEMORY, 1, 8, A_STREAM))

#define CALLS_OF_STREAMS(CALL)                                                                   \
  CALL(hipStreamCreateWithFlags, NULL, (&stream, 0))                                             \
  CALL(hipStreamCreateWithPriority, "cuStreamCreateWithPriority", (&stream, 0, 0))               \
  CALL(hipStreamDestroy, NULL, (A_STREAM))                                                       \
  CALL(hipStreamSynchronize, NULL, (A_STREAM))                                                   \
  CALL(hipStreamQuery, NULL, (A_STREAM))                                                         \
  CALL(hipStreamWaitEvent, NULL, (A_STREAM, AN_EVENT, 0))                                        \
  CALL(hipStreamGetFlags, "cuStreamGetFlags", (A_STREAM, &bits))                                 \
  CALL(hipStreamGetPriority, "cuStreamGetPriority", (A_STREAM, &number))                         \
  CALL(hipStreamGetDevice, "cuStreamGetCtx", (A_STREAM, &number))                                \
  CALL(hipStreamGetId, "cuStreamGetId", (A_STREAM, &wide))                                       \
  CALL(hipStreamIsCapturing, "cuStreamIsCapturing", (A_STREAM, &capture_status))                 \
  CALL(hipThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (&capture_mode)) \
  CALL(hipLaunchHostFunc, "cuLaunchHostFunc", (A_STREAM, do_nothing, NULL))                      \
  CALL(hipEventCreateWithFlags, NULL, (&event, 0))                                               \
  CALL(hipEventDestroy, NULL, (AN_EVENT))                                                        \
  CALL(hipEventRecord, NULL, (AN_EVENT, A_STREAM))                                               \
  CALL(hipEventQuery, NULL, (AN_EVENT))                                                          \
  CALL(hipEventSynchronize, NULL, (AN_EVENT))                                                    \
  CALL(hipEventElapsedTime, "cuEventElapsedTime", (&milliseconds, AN_EVENT, AN_EVENT))

#define CALLS_OF_POOLS(CALL)                                                                                          \
  CALL(hipMallocAsync, "cuMemAllocAsync", (&pointer, 8, A_STREAM))                                                    \
  CALL(hipMallocFromPoolAsync, "cuMemAllocFromPoolAsync", (&pointer, 8, A_POOL, A_STREAM))                            \
  CALL(hipFreeAsync, "cuMemFreeAsync", (DEVICE_MEMORY, A_STREAM))                                                     \
  CALL(hipMemPoolCreate, "cuMemPoolCreate", (&pool, &pool_properties))                                                \
  CALL(hipMemPoolDestroy, "cuMemPoolDestroy", (A_POOL))                                                               \
  CALL(hipMemPoolSetAttribute, "cuMemPoolSetAttribute", (A_POOL, hipMemPoolAttrReleaseThreshold, &wide))              \
  CALL(hipMemPoolGetAttribute, "cuMemPoolGetAttribute", (A_POOL, hipMemPoolAttrReleaseThreshold, &wide))              \
  CALL(hipMemPoolTrimTo, "cuMemPoolTrimTo", (A_POOL, 0))                                                              \
  CALL(hipMemPoolSetAccess, "cuMemPoolSetAccess", (A_POOL, &access_of_0, 1))                                          \
  CALL(hipMemPoolGetAccess, "cuMemPoolGetAccess", (&access_flags, A_POOL, &access_of_0.location))                     \
  CALL(hipMemPoolExportToShareableHandle, "cuMemPoolExportToShareableHandle", (&number, A_POOL, DESCRIPTOR, 0))       \
  CALL(hipMemPoolImportFromShareableHandle, "cuMemPoolImportFromShareableHandle", (&pool, POINTER(5), DESCRIPTOR, 0)) \
  CALL(hipMemPoolExportPointer, "cuMemPoolExportPointer", (&export_data, DEVICE_MEMORY))                              \
  CALL(hipMemPoolImportPointer, "cuMemPoolImportPointer", (&pointer, A_POOL, &export_data))                           \
  CALL(hipMemGetDefaultMemPool, "cuMemGetDefaultMemPool", (&pool, &device_0, hipMemAllocationTypePinned))             \
  CALL(hipMemGetMemPool, "cuMemGetMemPool", (&pool, &device_0, hipMemAllocationTypePinned))                           \
  CALL(hipMemSetMemPool, "cuMemSetMemPool", (&device_0, hipMemAllocationTypePinned, A_POOL))                          \
  CALL(hipMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange",                                               \
       (&number, DEVICE_MEMORY, 8, hipMemRangeHandleTypeDmaBufFd, 0))                                                 \
  CALL(hipIpcGetMemHandle, "cuIpcGetMemHandle", (&memory_handle, DEVICE_MEMORY))                                      \
  CALL(hipIpcOpenMemHandle, "cuIpcOpenMemHandle", (&pointer, memory_handle, 1))                                       \
  CALL(hipIpcCloseMemHandle, "cuIpcCloseMemHandle", (DEVICE_MEMORY))                                                  \
  CALL(hipIpcGetEventHandle, "cuIpcGetEventHandle", (&event_handle, AN_EVENT))                                        \
  CALL(hipIpcOpenEventHandle, "cuIpcOpenEventHandle", (&event, event_handle))

#define CALLS_OF_VIRTUAL_MEMORY(CALL)                                                                              \
  CALL(hipMemGetAllocationGranularity, "cuMemGetAllocationGranularity", (&size, &properties, 0))                   \
  CALL(hipMemGetAllocationPropertiesFromHandle, "cuMemGetAllocationPropertiesFromHandle", (&properties, A_HANDLE)) \
  CALL(hipMemAddressReserve, "cuMemAddressReserve", (&pointer, 8, 0, NULL, 0))                                     \
  CALL(hipMemAddressFree, "cuMemAddressFree", (DEVICE_MEMORY, 8))                                                  \
  CALL(hipMemCreate, "cuMemCreate", (&generic, 8, &properties, 0))                                                 \
  CALL(hipMemRelease, "cuMemRelease", (A_HANDLE))                                                                  \
  CALL(hipMemRetainAllocationHandle, "cuMemRetainAllocationHandle", (&generic, DEVICE_MEMORY))                     \
  CALL(hipMemExportToShareableHandle, "cuMemExportToShareableHandle", (&number, A_HANDLE, DESCRIPTOR, 0))          \
  CALL(hipMemImportFromShareableHandle, "cuMemImportFromShareableHandle", (&generic, POINTER(6), DESCRIPTOR))      \
  CALL(hipMemMap, "cuMemMap", (DEVICE_MEMORY, 8, 0, A_HANDLE, 0))                                                  \
  CALL(hipMemUnmap, "cuMemUnmap", (DEVICE_MEMORY, 8))                                                              \
  CALL(hipMemSetAccess, "cuMemSetAccess", (DEVICE_MEMORY, 8, &access_of_0, 1))                                     \
  CALL(hipMemGetAccess, "cuMemGetAccess", (&wide, &access_of_0.location, DEVICE_MEMORY))

#define CALLS(CALL)      \
  CALLS_OF_DEVICES(CALL) \
  CALLS_OF_MEMORY(CALL)  \
  CALLS_OF_COPIES(CALL)  \
  CALLS_OF_STREAMS(CALL) \
  CALLS_OF_POOLS(CALL)   \
  CALLS_OF_VIRTUAL_MEMORY(CALL)

#define DEFINE_CALL(function, needed, arguments) \
  static hipError_t call_##function(void)        \
  {                                              \
    return function arguments;                   \
  }
CALLS(DEFINE_CALL)

/* The record of the callback stays in the driver, which calls it back. */
static hipError_t call_hipStreamAddCallback(void)
{
  fake->callback = NULL;
  hipError_t error = hipStreamAddCallback(A_STREAM, do_nothing_back, NULL, 0);
  if (fake->callback) fake->callback(A_STREAM, CUDA_SUCCESS, fake->argument);
  return error;
}

#define CALL_ROW(function, needed, arguments) {#function, needed, call_##function},
const struct call calls[] = {CALLS(CALL_ROW){"hipStreamAddCallback", "cuStreamAddCallback", call_hipStreamAddCallback}};

const size_t n_calls = sizeof calls / sizeof *calls;
