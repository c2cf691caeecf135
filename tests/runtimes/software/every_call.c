/* SPDX-License-Identifier: MIT */
/* every_call.c: a program that knows HIP's headers only, and calls each function of the software device with success; for
 * every_call.sh, which compiles it with several releases of the headers. So the compiler compares all prototypes, and
 * calls.h cannot have a function that is not here. */
#include "../../../plugins/runtimes/software/calls.h"

#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Programs still call functions that HIP has renamed. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* What the headers do not have yet. */
hipError_t hipMemGetDefaultMemPool(hipMemPool_t *pool, hipMemLocation *location, hipMemAllocationType type);
hipError_t hipMemGetMemPool(hipMemPool_t *pool, hipMemLocation *location, hipMemAllocationType type);
hipError_t hipMemSetMemPool(hipMemLocation *location, hipMemAllocationType type, hipMemPool_t pool);
hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *id);
hipError_t hipExtHostAlloc(void **pointer, size_t bytes, unsigned int flags);
#if HIP_VERSION_MAJOR < 7
typedef int hipMemRangeHandleType;
enum { hipMemRangeHandleTypeDmaBufFd = 1, hipMemLocationTypeHost, hipMemLocationTypeHostNuma };
hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t pointer, size_t bytes,
                                          hipMemRangeHandleType type, unsigned long long flags);
hipError_t hipMemAdvise_v2(const void *pointer, size_t bytes, hipMemoryAdvise advice, hipMemLocation location);
hipError_t hipMemPrefetchAsync_v2(const void *pointer, size_t bytes, hipMemLocation location, unsigned int flags,
                                  hipStream_t stream);
typedef struct {
  int order;
  hipMemLocation from, to;
  unsigned int flags;
} hipMemcpyAttributes;
hipError_t hipMemcpyBatchAsync(void **to, void **from, size_t *bytes, size_t count, hipMemcpyAttributes *attributes,
                               size_t *first_copies, size_t n_attributes, size_t *failed_out, hipStream_t stream);
hipError_t hipMemsetD2D8(hipDeviceptr_t to, size_t pitch, unsigned char value, size_t width, size_t height);
hipError_t hipMemsetD2D8Async(hipDeviceptr_t to, size_t pitch, unsigned char value, size_t width, size_t height,
                              hipStream_t stream);
hipError_t hipMemsetD2D16(hipDeviceptr_t to, size_t pitch, unsigned short value, size_t width, size_t height);
hipError_t hipMemsetD2D16Async(hipDeviceptr_t to, size_t pitch, unsigned short value, size_t width, size_t height,
                               hipStream_t stream);
hipError_t hipMemsetD2D32(hipDeviceptr_t to, size_t pitch, unsigned int value, size_t width, size_t height);
hipError_t hipMemsetD2D32Async(hipDeviceptr_t to, size_t pitch, unsigned int value, size_t width, size_t height,
                               hipStream_t stream);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
hipError_t hipDeviceSetLimit(enum hipLimit_t limit, size_t value);
typedef int hipDriverProcAddressQueryResult;
hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status);
hipError_t hipGetDevicePropertiesR0600(void *properties, int device);
#endif
#if HIP_VERSION < 50300000
typedef struct {
  hipMemPoolProps poolProps;
  const hipMemAccessDesc *accessDescs;
  size_t accessDescCount, bytesize;
  void *dptr;
} hipMemAllocNodeParams;
typedef int hipGraphMemAttributeType;
enum { hipGraphMemAttrUsedMemHigh = 1 };
hipError_t hipGraphAddMemAllocNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after,
                                   hipMemAllocNodeParams *params);
hipError_t hipGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after,
                                  void *pointer);
hipError_t hipDeviceGraphMemTrim(int device);
hipError_t hipDeviceGetGraphMemAttribute(int device, hipGraphMemAttributeType attribute, void *value);
hipError_t hipDeviceSetGraphMemAttribute(int device, hipGraphMemAttributeType attribute, void *value);
#endif

/* Of the device; see plugins/runtimes/software/software.h. */
uint64_t hipmm_software_calls(const char *name);

enum { BYTES = 64 << 10, GRANULE = 2 << 20, ROW = 256, ROWS = 16 };

#define GOOD(call)       check((int)(call), #call, __LINE__)
#define CHECK(condition) ((condition) ? (void)0 : complain(#condition, __LINE__))

static void complain(const char *what, int line)
{
  fprintf(stderr, "every_call.c:%d: %s\n", line, what);
  exit(1);
}

static void check(int code, const char *call, int line)
{
  if (!code) return;
  fprintf(stderr, "code %d\n", code);
  complain(call, line);
}

static unsigned char host[BYTES];

/* Whether device memory holds the value, as far as a copy of the host tells. */
static bool holds(const void *memory, unsigned char value, size_t bytes)
{
  GOOD(hipMemcpy(host, memory, bytes, hipMemcpyDeviceToHost));
  for (size_t i = 0; i < bytes; i++)
    if (host[i] != value) return false;
  return true;
}

static void nothing(void *argument)
{
  (void)argument;
}

static void nothing_of_a_stream(hipStream_t stream, hipError_t error, void *argument)
{
  (void)stream, (void)error, (void)argument;
}

/* ---- Devices ---- */

static void use_devices(void)
{
  int number;
  unsigned flags;
  size_t bytes;
  char text[256];
  hipDevice_t device;
  hipUUID uuid;
  hipDeviceProp_t properties;
  void *function = NULL;
  hipDriverProcAddressQueryResult status;
  GOOD(hipInit(0));
  GOOD(hipDriverGetVersion(&number));
  GOOD(hipRuntimeGetVersion(&number));
  CHECK(number / 10000000 == HIP_VERSION_MAJOR);
  GOOD(hipGetDeviceCount(&number));
  CHECK(number == 2);
  GOOD(hipGetDevice(&number));
  GOOD(hipSetDevice(0));
  GOOD(hipDeviceGet(&device, 0));
  GOOD(hipDeviceGetAttribute(&number, hipDeviceAttributeWarpSize, 0));
  GOOD(hipDeviceGetName(text, sizeof text, device));
  GOOD(hipDeviceGetPCIBusId(text, sizeof text, 1));
  GOOD(hipDeviceGetByPCIBusId(&number, text));
  CHECK(number == 1);
  GOOD(hipDeviceGetUuid(&uuid, device));
  GOOD(hipDeviceGetLimit(&bytes, hipLimitMallocHeapSize));
  GOOD(hipDeviceSetLimit(hipLimitMallocHeapSize, bytes));
  GOOD(hipGetDeviceFlags(&flags));
  GOOD(hipSetDeviceFlags(flags));
  GOOD(hipDeviceTotalMem(&bytes, device));
  GOOD(hipGetDeviceProperties(&properties, 0));
  CHECK(properties.totalGlobalMem == bytes);
  char old[4096], today[4096]; /* larger than either */
  GOOD(hipGetProcAddress("hipGetDeviceProperties", &function, 500, 0, &status));
  GOOD(((hipError_t(*)(void *, int))function)(old, 0));
  GOOD(hipGetProcAddress("hipGetDeviceProperties", &function, 600, 0, &status));
  GOOD(((hipError_t(*)(void *, int))function)(today, 0));
  CHECK(!strcmp(old, today)); /* both begin with the name */
  GOOD(hipDeviceCanAccessPeer(&number, 0, 1));
  CHECK(number == 1);
  GOOD(hipDeviceEnablePeerAccess(1, 0));
  GOOD(hipDeviceDisablePeerAccess(1));
  GOOD(hipDeviceGetStreamPriorityRange(&number, &number));
  CHECK(hipSetDevice(7) == hipErrorInvalidDevice);
  CHECK(hipPeekAtLastError() == hipErrorInvalidDevice);
  CHECK(hipGetLastError() == hipErrorInvalidDevice);
  CHECK(!strcmp(hipGetErrorName(hipErrorInvalidDevice), "hipErrorInvalidDevice"));
  CHECK(hipGetErrorString(hipErrorInvalidDevice) != NULL);
  GOOD(hipDeviceSynchronize());
}

/* ---- Memory ---- */

static void use_device_memory(void)
{
  void *memory, *base;
  size_t bytes, all, pitch;
  int type;
  hipPointerAttribute_t attributes;
  hipPitchedPtr volume;
  GOOD(hipMalloc(&memory, BYTES));
  GOOD(hipMemGetInfo(&bytes, &all));
  CHECK(bytes == all - BYTES);
  GOOD(hipMemGetAddressRange(&base, &bytes, (char *)memory + 100));
  CHECK(base == memory && bytes == BYTES);
  GOOD(hipMemPtrGetInfo(memory, &bytes));
  GOOD(hipPointerGetAttributes(&attributes, memory));
  CHECK(attributes.device == 0 && attributes.devicePointer == memory);
  GOOD(hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  CHECK(type == hipMemoryTypeDevice);
  GOOD(hipFree(memory));
  GOOD(hipExtMallocWithFlags(&memory, BYTES, hipDeviceMallocFinegrained));
  GOOD(hipFree(memory));
  GOOD(hipMallocPitch(&memory, &pitch, 100, ROWS));
  GOOD(hipFree(memory));
  GOOD(hipMemAllocPitch(&memory, &pitch, 100, ROWS, 4));
  CHECK(pitch >= 100);
  GOOD(hipFree(memory));
  GOOD(hipMalloc3D(&volume, (hipExtent){100, 4, 4}));
  CHECK(volume.pitch >= 100 && volume.ysize == 4);
  GOOD(hipFree(volume.ptr));
}

static void use_host_memory(void)
{
  void *memory, *device;
  unsigned flags;
  GOOD(hipHostMalloc(&memory, BYTES, hipHostMallocDefault));
  GOOD(hipHostGetDevicePointer(&device, memory, 0));
  GOOD(hipHostGetFlags(&flags, memory));
  GOOD(hipHostFree(memory));
  GOOD(hipHostAlloc(&memory, BYTES, 0));
  GOOD(hipFreeHost(memory));
  GOOD(hipExtHostAlloc(&memory, BYTES, 0));
  GOOD(hipHostFree(memory));
  GOOD(hipMallocHost(&memory, BYTES));
  GOOD(hipHostFree(memory));
  GOOD(hipMemAllocHost(&memory, BYTES));
  GOOD(hipHostFree(memory));
  GOOD(hipHostRegister(host, sizeof host, hipHostRegisterDefault));
  GOOD(hipHostUnregister(host));
}

static void use_managed_memory(void)
{
  void *memory;
  int value = 0, values[2];
  void *outs[] = {&values[0], &values[1]};
  size_t sizes[] = {sizeof value, sizeof value};
  hipMemRangeAttribute both[] = {hipMemRangeAttributeReadMostly, hipMemRangeAttributePreferredLocation};
  const hipMemLocation on_host = {.type = (hipMemLocationType)hipMemLocationTypeHost},
                       on_device = {.type = hipMemLocationTypeDevice, .id = 1};
  GOOD(hipMallocManaged(&memory, BYTES, hipMemAttachGlobal));
  GOOD(hipMemAdvise(memory, BYTES, hipMemAdviseSetReadMostly, 0));
  GOOD(hipMemAdvise_v2(memory, BYTES, hipMemAdviseSetPreferredLocation, on_host));
  GOOD(hipMemRangeGetAttributes(outs, sizes, both, 2, memory, BYTES));
  CHECK(values[0] == 1 && values[1] == hipCpuDeviceId);
  GOOD(hipMemPrefetchAsync(memory, BYTES, 0, NULL));
  GOOD(hipMemPrefetchAsync_v2(memory, BYTES, on_device, 0, NULL));
  GOOD(hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeLastPrefetchLocation, memory, BYTES));
  CHECK(value == 1);
  GOOD(hipStreamAttachMemAsync(NULL, memory, 0, hipMemAttachGlobal));
  GOOD(hipDeviceSynchronize());
  GOOD(hipFree(memory));
}

/* ---- Copies and fills ---- */

static void use_copies(void)
{
  unsigned char *to, *from;
  GOOD(hipMalloc((void **)&to, BYTES));
  GOOD(hipMalloc((void **)&from, BYTES));
  memset(host, 7, sizeof host);
  GOOD(hipMemcpy(from, host, BYTES, hipMemcpyHostToDevice));
  GOOD(hipMemcpyAsync(to, from, BYTES, hipMemcpyDeviceToDevice, NULL));
  GOOD(hipMemcpyWithStream(to, from, BYTES, hipMemcpyDeviceToDevice, NULL));
  GOOD(hipMemcpyHtoD(to, host, BYTES));
  GOOD(hipMemcpyHtoDAsync(to, host, BYTES, NULL));
  GOOD(hipMemcpyDtoH(host, to, BYTES));
  GOOD(hipMemcpyDtoHAsync(host, to, BYTES, NULL));
  GOOD(hipMemcpyDtoD(to, from, BYTES));
  GOOD(hipMemcpyDtoDAsync(to, from, BYTES, NULL));
  GOOD(hipMemcpyPeer(to, 0, from, 0, BYTES));
  GOOD(hipMemcpyPeerAsync(to, 0, from, 0, BYTES, NULL));
  CHECK(holds(to, 7, BYTES));
  GOOD(hipMemset(from, 1, BYTES));
  GOOD(hipMemcpy2D(to, ROW, from, ROW, ROW, ROWS, hipMemcpyDeviceToDevice));
  GOOD(hipMemcpy2DAsync(to, ROW, from, ROW, ROW, ROWS, hipMemcpyDeviceToDevice, NULL));
  CHECK(holds(to, 1, ROW * ROWS));
  hipMemcpy3DParms volume = {.srcPtr = {from, ROW, ROW, ROWS}, .dstPtr = {to, ROW, ROW, ROWS}};
  volume.extent = (hipExtent){ROW, ROWS, 4};
  volume.kind = hipMemcpyDeviceToDevice;
  GOOD(hipMemset(from, 2, BYTES));
  GOOD(hipMemcpy3D(&volume));
  GOOD(hipMemcpy3DAsync(&volume, NULL));
  CHECK(holds(to, 2, ROW * ROWS * 4));
  hip_Memcpy2D rows = {.srcMemoryType = hipMemoryTypeDevice, .dstMemoryType = hipMemoryTypeDevice};
  rows.srcDevice = from;
  rows.dstDevice = to;
  rows.srcPitch = rows.dstPitch = rows.WidthInBytes = ROW;
  rows.Height = ROWS;
  GOOD(hipMemset(from, 3, BYTES));
  GOOD(hipMemcpyParam2D(&rows));
  GOOD(hipMemcpyParam2DAsync(&rows, NULL));
  CHECK(holds(to, 3, ROW * ROWS));
  void *tos[] = {to, to + ROW}, *froms[] = {from, from};
  size_t sizes[] = {ROW, 2 * ROW}, first = 0, failed;
  hipMemcpyAttributes attributes;
  memset(&attributes, 0, sizeof attributes);
  GOOD(hipMemset(from, 4, BYTES));
  GOOD(hipMemcpyBatchAsync(tos, froms, sizes, 2, &attributes, &first, 1, &failed, NULL));
  CHECK(holds(to, 4, 3 * ROW));
  GOOD(hipFree(to));
  GOOD(hipFree(from));
}

static void use_fills(void)
{
  hipDeviceptr_t memory;
  GOOD(hipMalloc((void **)&memory, BYTES));
  GOOD(hipMemset(memory, 1, BYTES));
  GOOD(hipMemsetAsync(memory, 1, BYTES, NULL));
  GOOD(hipMemsetD8(memory, 1, BYTES));
  GOOD(hipMemsetD8Async(memory, 1, BYTES, NULL));
  GOOD(hipMemsetD16(memory, 0x0101, BYTES / 2));
  GOOD(hipMemsetD16Async(memory, 0x0202, BYTES / 2, NULL));
  CHECK(holds(memory, 2, BYTES));
  GOOD(hipMemsetD32(memory, 0x03030303, BYTES / 4));
  GOOD(hipMemsetD32Async(memory, 0x03030303, BYTES / 4, NULL));
  CHECK(holds(memory, 3, BYTES));
  GOOD(hipMemset2D(memory, ROW, 4, ROW, ROWS));
  GOOD(hipMemset2DAsync(memory, ROW, 4, ROW, ROWS, NULL));
  CHECK(holds(memory, 4, ROW * ROWS));
  hipPitchedPtr volume = {memory, ROW, ROW, ROWS};
  GOOD(hipMemset3D(volume, 5, (hipExtent){ROW, ROWS, 2}));
  GOOD(hipMemset3DAsync(volume, 5, (hipExtent){ROW, ROWS, 2}, NULL));
  CHECK(holds(memory, 5, ROW * ROWS * 2));
  GOOD(hipMemsetD2D8(memory, ROW, 6, ROW, ROWS));
  GOOD(hipMemsetD2D8Async(memory, ROW, 6, ROW, ROWS, NULL));
  CHECK(holds(memory, 6, ROW * ROWS));
  GOOD(hipMemsetD2D16(memory, ROW, 0x0707, ROW / 2, ROWS));
  GOOD(hipMemsetD2D16Async(memory, ROW, 0x0707, ROW / 2, ROWS, NULL));
  CHECK(holds(memory, 7, ROW * ROWS));
  GOOD(hipMemsetD2D32(memory, ROW, 0x08080808, ROW / 4, ROWS));
  GOOD(hipMemsetD2D32Async(memory, ROW, 0x08080808, ROW / 4, ROWS, NULL));
  CHECK(holds(memory, 8, ROW * ROWS));
  GOOD(hipFree(memory));
}

/* ---- Streams and graphs ---- */

static void use_streams(void)
{
  hipStream_t stream, other;
  hipEvent_t start, end;
  float milliseconds;
  unsigned flags;
  int number;
  hipDevice_t device;
  unsigned long long id;
  GOOD(hipStreamCreate(&stream));
  GOOD(hipStreamDestroy(stream));
  GOOD(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  GOOD(hipStreamCreateWithPriority(&other, hipStreamNonBlocking, 0));
  GOOD(hipEventCreate(&start));
  GOOD(hipEventCreateWithFlags(&end, hipEventDefault));
  GOOD(hipEventRecord(start, stream));
  GOOD(hipLaunchHostFunc(stream, nothing, NULL));
  GOOD(hipStreamAddCallback(stream, nothing_of_a_stream, NULL, 0));
  GOOD(hipEventRecord(end, stream));
  GOOD(hipStreamWaitEvent(other, end, 0));
  GOOD(hipStreamSynchronize(other));
  GOOD(hipEventSynchronize(end));
  GOOD(hipEventQuery(end));
  GOOD(hipStreamQuery(stream));
  GOOD(hipEventElapsedTime(&milliseconds, start, end));
  GOOD(hipStreamGetFlags(stream, &flags));
  GOOD(hipStreamGetPriority(stream, &number));
  GOOD(hipStreamGetDevice(stream, &device));
  CHECK(flags == hipStreamNonBlocking && device == 0);
  GOOD(hipStreamGetId(stream, &id));
  GOOD(hipEventDestroy(start));
  GOOD(hipEventDestroy(end));
  GOOD(hipStreamDestroy(stream));
  GOOD(hipStreamDestroy(other));
}

/* Launches the graph, and destroys it. */
static void run_graph(hipGraph_t graph)
{
  hipGraphExec_t one, other;
  GOOD(hipGraphInstantiate(&one, graph, NULL, NULL, 0));
  GOOD(hipGraphLaunch(one, NULL));
  GOOD(hipStreamSynchronize(NULL));
  GOOD(hipGraphExecDestroy(one));
  GOOD(hipGraphInstantiateWithFlags(&other, graph, 0));
  GOOD(hipGraphExecDestroy(other));
  GOOD(hipGraphDestroy(graph));
}

static void capture(void *memory)
{
  hipStream_t stream;
  hipGraph_t graph, capturing;
  hipStreamCaptureStatus status;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  unsigned long long id;
  const hipGraphNode_t *nodes;
  size_t count;
  GOOD(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  GOOD(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  GOOD(hipMemsetAsync(memory, 9, BYTES, stream));
  GOOD(hipThreadExchangeStreamCaptureMode(&mode));
  GOOD(hipStreamIsCapturing(stream, &status));
  CHECK(status == hipStreamCaptureStatusActive);
  GOOD(hipStreamGetCaptureInfo(stream, &status, &id));
  GOOD(hipStreamGetCaptureInfo_v2(stream, &status, &id, &capturing, &nodes, &count));
  CHECK(count == 1);
  GOOD(hipThreadExchangeStreamCaptureMode(&mode));
  GOOD(hipStreamEndCapture(stream, &graph));
  run_graph(graph);
  CHECK(holds(memory, 9, BYTES));
  GOOD(hipStreamDestroy(stream));
}

static void use_graphs(void)
{
  unsigned char *memory;
  hipGraph_t graph, child;
  hipGraphNode_t nodes[8], found[8];
  size_t count = 8;
  GOOD(hipMalloc((void **)&memory, BYTES));
  capture(memory);
  hipHostNodeParams function = {.fn = nothing};
  hipMemsetParams fill = {.dst = memory, .value = 3, .elementSize = 1, .width = ROW, .height = 1};
  hipMemcpy3DParms copy = {.srcPtr = {memory, ROW, ROW, 1}, .dstPtr = {memory + ROW, ROW, ROW, 1}};
  copy.extent = (hipExtent){ROW, 1, 1};
  copy.kind = hipMemcpyDeviceToDevice;
  GOOD(hipGraphCreate(&child, 0));
  GOOD(hipGraphAddEmptyNode(&nodes[0], child, NULL, 0));
  GOOD(hipGraphCreate(&graph, 0));
  GOOD(hipGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &fill));
  GOOD(hipGraphAddMemcpyNode(&nodes[1], graph, nodes, 1, &copy));
  GOOD(hipGraphAddMemcpyNode1D(&nodes[2], graph, nodes + 1, 1, memory + 2 * ROW, memory, ROW, hipMemcpyDeviceToDevice));
  GOOD(hipGraphAddHostNode(&nodes[3], graph, NULL, 0, &function));
  GOOD(hipGraphAddDependencies(graph, nodes + 2, nodes + 3, 1));
  GOOD(hipGraphAddChildGraphNode(&nodes[4], graph, nodes + 3, 1, child));
  hipMemAllocNodeParams own = {.bytesize = BYTES};
  own.poolProps.allocType = hipMemAllocationTypePinned;
  own.poolProps.location.type = hipMemLocationTypeDevice;
  GOOD(hipGraphAddMemAllocNode(&nodes[5], graph, nodes + 4, 1, &own));
  GOOD(hipGraphAddMemFreeNode(&nodes[6], graph, nodes + 5, 1, own.dptr));
  GOOD(hipGraphGetNodes(graph, found, &count));
  CHECK(count == 7);
  GOOD(hipGraphGetRootNodes(graph, found, &count));
  CHECK(count == 1);
  run_graph(graph);
  CHECK(holds(memory, 3, 3 * ROW));
  GOOD(hipGraphDestroy(child));
  uint64_t bytes = 0;
  GOOD(hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &bytes));
  CHECK(bytes >= BYTES);
  bytes = 0;
  GOOD(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &bytes));
  GOOD(hipDeviceGraphMemTrim(0));
  GOOD(hipFree(memory));
}

/* ---- Pools ---- */

static void use_pools(void)
{
  hipMemPool_t pool, own;
  void *memory;
  uint64_t bytes = 1 << 20;
  hipMemAccessFlags flags;
  hipMemLocation here = {.type = hipMemLocationTypeDevice};
  hipMemAccessDesc access = {.location = {hipMemLocationTypeDevice, 1}, .flags = hipMemAccessFlagsProtReadWrite};
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned, .location = here};
  GOOD(hipMallocAsync(&memory, BYTES, NULL));
  GOOD(hipFreeAsync(memory, NULL));
  GOOD(hipDeviceGetDefaultMemPool(&pool, 0));
  GOOD(hipMemGetDefaultMemPool(&own, &here, hipMemAllocationTypePinned));
  CHECK(own == pool);
  GOOD(hipMemPoolCreate(&own, &properties));
  GOOD(hipDeviceSetMemPool(0, own));
  GOOD(hipMemSetMemPool(&here, hipMemAllocationTypePinned, pool));
  GOOD(hipDeviceGetMemPool(&pool, 0));
  GOOD(hipMemSetMemPool(&here, hipMemAllocationTypePinned, own));
  GOOD(hipMemGetMemPool(&pool, &here, hipMemAllocationTypePinned));
  CHECK(pool == own);
  GOOD(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &bytes));
  GOOD(hipMallocFromPoolAsync(&memory, BYTES, pool, NULL));
  GOOD(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &bytes));
  CHECK(bytes == BYTES);
  GOOD(hipMemPoolSetAccess(pool, &access, 1));
  GOOD(hipMemPoolGetAccess(&flags, pool, &access.location));
  CHECK(flags == hipMemAccessFlagsProtReadWrite);
  GOOD(hipFreeAsync(memory, NULL));
  GOOD(hipStreamSynchronize(NULL));
  GOOD(hipMemPoolTrimTo(pool, 0));
  GOOD(hipMemPoolDestroy(pool));
}

/* ---- Virtual memory ---- */

static void map_at(char *start, hipMemGenericAllocationHandle_t memory, hipMemLocation location)
{
  hipMemAccessDesc access = {.location = location, .flags = hipMemAccessFlagsProtReadWrite};
  unsigned long long flags = 0;
  GOOD(hipMemMap(start, GRANULE, 0, memory, 0));
  GOOD(hipMemSetAccess(start, GRANULE, &access, 1));
  GOOD(hipMemGetAccess(&flags, &access.location, start));
  CHECK(flags == hipMemAccessFlagsProtReadWrite);
}

static void use_virtual_memory(void)
{
  void *start;
  size_t granule;
  int fd = -1;
  hipMemGenericAllocationHandle_t memory, again;
  const hipMemLocation device = {.type = hipMemLocationTypeDevice},
                       node = {.type = (hipMemLocationType)hipMemLocationTypeHostNuma};
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned, .location = device};
  hipMemAllocationProp found;
  properties.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
  GOOD(hipMemGetAllocationGranularity(&granule, &properties, hipMemAllocationGranularityMinimum));
  CHECK(granule == GRANULE);
  GOOD(hipMemAddressReserve(&start, 2 * GRANULE, 0, NULL, 0));
  GOOD(hipMemCreate(&memory, GRANULE, &properties, 0));
  GOOD(hipMemGetAllocationPropertiesFromHandle(&found, memory));
  CHECK(found.location.type == hipMemLocationTypeDevice);
  map_at(start, memory, device);
  GOOD(hipMemset(start, 5, BYTES));
  GOOD(hipMemGetHandleForAddressRange(&fd, start, BYTES, hipMemRangeHandleTypeDmaBufFd, 0));
  CHECK(read(fd, host, BYTES) == BYTES && host[0] == 5 && host[BYTES - 1] == 5);
  close(fd);
  GOOD(hipMemRetainAllocationHandle(&again, start));
  CHECK(again == memory);
  GOOD(hipMemRelease(again));
  GOOD(hipMemExportToShareableHandle(&fd, memory, hipMemHandleTypePosixFileDescriptor, 0));
  void *shareable = HIP_VERSION >= 70100000 ? (void *)(intptr_t)fd : &fd;
  GOOD(hipMemImportFromShareableHandle(&again, shareable, hipMemHandleTypePosixFileDescriptor));
  close(fd);
  map_at((char *)start + GRANULE, again, device);
  CHECK(holds((char *)start + GRANULE, 5, BYTES));
  GOOD(hipMemRelease(again));
  GOOD(hipMemUnmap(start, 2 * GRANULE));
  GOOD(hipMemRelease(memory));
  properties.location = node;
  GOOD(hipMemCreate(&memory, GRANULE, &properties, 0));
  map_at(start, memory, node);
  memset(start, 6, BYTES);
  GOOD(hipMemUnmap(start, GRANULE));
  map_at(start, memory, device);
  CHECK(holds(start, 6, BYTES));
  GOOD(hipMemUnmap(start, GRANULE));
  GOOD(hipMemRelease(memory));
  GOOD(hipMemAddressFree(start, 2 * GRANULE));
}

/* ---- Other processes ---- */

/* Forked before the first call. */
static int open_shared(int from_parent)
{
  hipIpcMemHandle_t handle;
  void *memory;
  if (read(from_parent, &handle, sizeof handle) != sizeof handle) return 1;
  GOOD(hipIpcOpenMemHandle(&memory, handle, hipIpcMemLazyEnablePeerAccess));
  CHECK(holds(memory, 11, BYTES));
  GOOD(hipIpcCloseMemHandle(memory));
  return 0;
}

static void use_sharing(int to_child)
{
  hipIpcMemHandle_t handle;
  hipMemPoolPtrExportData data;
  void *memory, *pooled, *imported_memory;
  hipMemPool_t pool, imported;
  int fd = -1;
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned,
                                .handleTypes = hipMemHandleTypePosixFileDescriptor,
                                .location = {.type = hipMemLocationTypeDevice}};
  GOOD(hipMalloc(&memory, BYTES));
  GOOD(hipMemset(memory, 11, BYTES));
  GOOD(hipDeviceSynchronize());
  GOOD(hipIpcGetMemHandle(&handle, memory));
  GOOD(hipMemPoolCreate(&pool, &properties));
  GOOD(hipMallocFromPoolAsync(&pooled, BYTES, pool, NULL));
  GOOD(hipMemsetAsync(pooled, 12, BYTES, NULL));
  GOOD(hipStreamSynchronize(NULL));
  GOOD(hipMemPoolExportToShareableHandle(&fd, pool, hipMemHandleTypePosixFileDescriptor, 0));
  GOOD(hipMemPoolExportPointer(&data, pooled));
  GOOD(hipMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, hipMemHandleTypePosixFileDescriptor, 0));
  GOOD(hipMemPoolImportPointer(&imported_memory, imported, &data));
  CHECK(holds(imported_memory, 12, BYTES));
  GOOD(hipFreeAsync(imported_memory, NULL));
  GOOD(hipStreamSynchronize(NULL));
  close(fd);
  CHECK(write(to_child, &handle, sizeof handle) == sizeof handle);
  int status;
  CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  GOOD(hipFree(pooled));
  GOOD(hipMemPoolDestroy(imported));
  GOOD(hipMemPoolDestroy(pool));
  GOOD(hipFree(memory));
}

#define CALL_NAME(name, flags) #name,
static const char *const names[] = {SOFTWARE_CALLS(CALL_NAME)};

int main(void)
{
  int ends[2], missing = 0;
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    return open_shared(ends[0]);
  }
  use_devices();
  use_device_memory();
  use_host_memory();
  use_managed_memory();
  use_copies();
  use_fills();
  use_streams();
  use_graphs();
  use_pools();
  use_virtual_memory();
  use_sharing(ends[1]);
  GOOD(hipDeviceReset());
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    bool is_childs = !strcmp(names[i], "hipIpcOpenMemHandle") || !strcmp(names[i], "hipIpcCloseMemHandle");
    if (is_childs || hipmm_software_calls(names[i]) > 0) continue;
    fprintf(stderr, "every_call.c does not call %s\n", names[i]);
    missing++;
  }
  if (!missing)
    printf("%zu functions, HIP %d.%d\n", sizeof names / sizeof *names, HIP_VERSION_MAJOR, HIP_VERSION_MINOR);
  return missing != 0;
}
