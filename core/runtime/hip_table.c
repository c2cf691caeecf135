/* SPDX-License-Identifier: MIT */
/* hip_table.c: fills the table of HIP functions from a shared library that exports them, and adapts the few functions
 * whose structs or numbers changed between HIP's releases. Called by hip.c, which chooses the library. The only file of
 * the core that includes HIP's headers. */
#include "../base/hip_layout.h"
#include "../base/own_symbol.h"
#include "hip.h"
#include "peer_access.h"

#include <fcntl.h>
#include <hip/hip_runtime_api.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* The numbers in plugin.h must be those of HIP's header. */
#define SAME(ours, hips) _Static_assert((int)(ours) == (int)(hips), #hips)
SAME(HIPMM_HIP_SUCCESS, hipSuccess);
SAME(HIPMM_HIP_ERROR_INVALID_VALUE, hipErrorInvalidValue);
SAME(HIPMM_HIP_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME(HIPMM_HIP_ERROR_NO_DEVICE, hipErrorNoDevice);
SAME(HIPMM_HIP_ERROR_INVALID_DEVICE, hipErrorInvalidDevice);
SAME(HIPMM_HIP_ERROR_INVALID_HANDLE, hipErrorInvalidHandle);
SAME(HIPMM_HIP_ERROR_NOT_READY, hipErrorNotReady);
SAME(HIPMM_HIP_ERROR_PEER_ACCESS_ALREADY_ENABLED, hipErrorPeerAccessAlreadyEnabled);
SAME(HIPMM_HIP_ERROR_PEER_ACCESS_NOT_ENABLED, hipErrorPeerAccessNotEnabled);
SAME(HIPMM_HIP_ERROR_NOT_SUPPORTED, hipErrorNotSupported);
SAME(HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED, hipErrorStreamCaptureUnsupported);
SAME(HIPMM_HIP_ERROR_STREAM_CAPTURE_IMPLICIT, hipErrorStreamCaptureImplicit);
SAME(HIPMM_HIP_EVENT_DISABLE_TIMING, hipEventDisableTiming);
SAME(HIPMM_HIP_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(HIPMM_HIP_HOST_MALLOC_PORTABLE, hipHostMallocPortable);
SAME(HIPMM_HIP_HOST_REGISTER_PORTABLE, hipHostRegisterPortable);
SAME(HIPMM_HIP_MEM_ATTACH_GLOBAL, hipMemAttachGlobal);
SAME(HIPMM_HIP_MEMCPY_DEFAULT, hipMemcpyDefault);
SAME(HIPMM_HIP_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, hipMemPoolReuseFollowEventDependencies);
SAME(HIPMM_HIP_POOL_REUSE_ALLOW_OPPORTUNISTIC, hipMemPoolReuseAllowOpportunistic);
SAME(HIPMM_HIP_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, hipMemPoolReuseAllowInternalDependencies);
SAME(HIPMM_HIP_POOL_RELEASE_THRESHOLD, hipMemPoolAttrReleaseThreshold);
SAME(HIPMM_HIP_POOL_RESERVED_CURRENT, hipMemPoolAttrReservedMemCurrent);
SAME(HIPMM_HIP_POOL_RESERVED_HIGH, hipMemPoolAttrReservedMemHigh);
SAME(HIPMM_HIP_POOL_USED_CURRENT, hipMemPoolAttrUsedMemCurrent);
SAME(HIPMM_HIP_POOL_USED_HIGH, hipMemPoolAttrUsedMemHigh);
SAME(HIPMM_HIP_HANDLE_POSIX_FD, hipMemHandleTypePosixFileDescriptor);
SAME(HIPMM_HIP_ACCESS_NONE, hipMemAccessFlagsProtNone);
SAME(HIPMM_HIP_ACCESS_READ, hipMemAccessFlagsProtRead);
SAME(HIPMM_HIP_ACCESS_READ_WRITE, hipMemAccessFlagsProtReadWrite);
SAME(HIPMM_HIP_ADVISE_READ_MOSTLY, hipMemAdviseSetReadMostly);
SAME(HIPMM_HIP_ADVISE_PREFERRED_LOCATION, hipMemAdviseSetPreferredLocation);
SAME(HIPMM_HIP_ADVISE_ACCESSED_BY, hipMemAdviseSetAccessedBy);
SAME(HIPMM_HIP_ADVISE_COARSE_GRAIN, hipMemAdviseSetCoarseGrain);
SAME(HIPMM_HIP_CPU_DEVICE, hipCpuDeviceId);
SAME(HIPMM_HIP_POINTER_BYTES, sizeof(hipMemPoolPtrExportData));
SAME(HIPMM_HIP_DEVICE_CONCURRENT_MANAGED_ACCESS, hipDeviceAttributeConcurrentManagedAccess);
SAME(HIPMM_HIP_DEVICE_MANAGED_MEMORY, hipDeviceAttributeManagedMemory);
SAME(HIPMM_HIP_DEVICE_PAGEABLE_MEMORY_ACCESS, hipDeviceAttributePageableMemoryAccess);
SAME(HIPMM_HIP_DEVICE_MEMORY_POOLS, hipDeviceAttributeMemoryPoolsSupported);
#if HIP_VERSION >= 50300000
SAME(HIPMM_HIP_DEVICE_VIRTUAL_MEMORY, hipDeviceAttributeVirtualMemoryManagementSupported);
#endif

_Static_assert(sizeof(hipMemLocation) == sizeof(struct hip_layout_location) &&
                   sizeof(hipMemAllocationProp) == (HIP_VERSION < HIP_LAYOUT_5_3 ? sizeof(struct hip_layout_prop_5_2)
                                                                                 : sizeof(struct hip_layout_prop_5_3)),
               "hipMemAllocationProp has changed again");

struct hipmm_hip hip_table_functions;

static int runtime_version;

/* The calls that HIP forbids to every thread while one thread captures a graph, unless the calling thread relaxes its
 * capture mode: NAME, whether it is REQUIRED of a runtime, PARAMETERS, ARGUMENTS. A program that captures cannot know when
 * its allocator makes such a call. */
#define UNSAFE_IN_CAPTURE(X)                                                                                      \
  X(DeviceSynchronize, true, (void), ())                                                                          \
  X(Malloc, true, (void **ptr, size_t bytes), (ptr, bytes))                                                       \
  X(Free, true, (void *ptr), (ptr))                                                                               \
  X(MallocManaged, false, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags))                        \
  X(MemAdvise, false, (const void *ptr, size_t bytes, int advice, int device), (ptr, bytes, advice, device))      \
  X(HostMalloc, false, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags))                           \
  X(HostFree, false, (void *ptr), (ptr))                                                                          \
  X(HostRegister, false, (void *ptr, size_t bytes, unsigned flags), (ptr, bytes, flags))                          \
  X(HostUnregister, false, (void *ptr), (ptr))                                                                    \
  X(MallocAsync, false, (void **ptr, size_t bytes, hipmm_stream_t stream), (ptr, bytes, stream))                  \
  X(MallocFromPoolAsync, false, (void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream),      \
    (ptr, bytes, pool, stream))                                                                                   \
  X(FreeAsync, false, (void *ptr, hipmm_stream_t stream), (ptr, stream))                                          \
  X(DeviceSetMemPool, false, (int device, hipmm_hip_mempool_t pool), (device, pool))                              \
  X(MemPoolDestroy, false, (hipmm_hip_mempool_t pool), (pool))                                                    \
  X(MemPoolSetAttribute, false, (hipmm_hip_mempool_t pool, int attribute, void *value), (pool, attribute, value)) \
  X(MemPoolGetAttribute, false, (hipmm_hip_mempool_t pool, int attribute, void *value), (pool, attribute, value)) \
  X(MemPoolTrimTo, false, (hipmm_hip_mempool_t pool, size_t bytes), (pool, bytes))                                \
  X(StreamSynchronize, true, (hipmm_stream_t stream), (stream))                                                   \
  X(StreamQuery, true, (hipmm_stream_t stream), (stream))                                                         \
  X(EventQuery, true, (hipmm_hip_event_t event), (event))                                                         \
  X(EventSynchronize, true, (hipmm_hip_event_t event), (event))

/* The functions behind the adapted entries of the table. */
static struct {
  int (*MemPoolSetAccess)(hipmm_hip_mempool_t pool, const hipMemAccessDesc *access, size_t count);
  int (*MemPoolGetAccess)(hipMemAccessFlags *access, hipmm_hip_mempool_t pool, hipMemLocation *location);
  int (*MemPoolExport)(void *handle, hipmm_hip_mempool_t pool, int handle_type, unsigned flags);
  int (*MemPoolImport)(hipmm_hip_mempool_t *pool, void *handle, int handle_type, unsigned flags);
  int (*MemPoolCreate)(hipmm_hip_mempool_t *pool, const hipMemPoolProps *props);
  int (*MemGetAllocationGranularity)(size_t *bytes, const void *prop, int option);
  int (*MemAddressReserve)(void **ptr, size_t bytes, size_t alignment, void *address, unsigned long long flags);
  int (*MemCreate)(hipmm_hip_chunk_t *handle, size_t bytes, const void *prop, unsigned long long flags);
  int (*MemExport)(void *shareable, hipmm_hip_chunk_t handle, int handle_type, unsigned long long flags);
  int (*MemImport)(hipmm_hip_chunk_t *handle, void *shareable, int handle_type);
  int (*MemMap)(void *ptr, size_t bytes, size_t offset, hipmm_hip_chunk_t handle, unsigned long long flags);
  int (*MemSetAccess)(void *ptr, size_t bytes, const hipMemAccessDesc *access, size_t count);
  int (*DeviceEnablePeerAccess)(int peer, unsigned flags);
  int (*ThreadExchangeStreamCaptureMode)(hipStreamCaptureMode *mode);
#define MEMBER(name, required, parameters, arguments) int(*name) parameters;
  UNSAFE_IN_CAPTURE(MEMBER)
#undef MEMBER
} raw;

/* ---- Captures ---- */

enum { MODE_UNCHANGED = -1 };

/* Sets hipStreamCaptureModeRelaxed for the calling thread. Returns the mode before; MODE_UNCHANGED if it could not be
 * changed. */
static int hip_table_relax(void)
{
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  if (!raw.ThreadExchangeStreamCaptureMode) return MODE_UNCHANGED;
  if (!raw.ThreadExchangeStreamCaptureMode(&mode)) return (int)mode;
  hip_table_functions.GetLastError();
  return MODE_UNCHANGED;
}

/* Restores the mode, which is the program's: a failed call is tried twice. */
static void hip_table_restore(int before)
{
  hipStreamCaptureMode exchanged = (hipStreamCaptureMode)before;
  if (before == MODE_UNCHANGED || !raw.ThreadExchangeStreamCaptureMode(&exchanged)) return;
  exchanged = (hipStreamCaptureMode)before;
  raw.ThreadExchangeStreamCaptureMode(&exchanged);
  hip_table_functions.GetLastError();
}

#define RELAXED(name, required, parameters, arguments) \
  static int relaxed_##name parameters                 \
  {                                                    \
    int before = hip_table_relax();                    \
    int code = raw.name arguments;                     \
    hip_table_restore(before);                         \
    return code;                                       \
  }
UNSAFE_IN_CAPTURE(RELAXED)

static bool (*_Atomic any_captured)(int device);

void hip_guard_waits(bool (*function)(int device))
{
  atomic_store_explicit(&any_captured, function, memory_order_relaxed);
}

/* The wait would end the captures. Of the default stream the runtime tells whether a stream is captured that it waits
 * for. */
static int guarded_DeviceSynchronize(void)
{
  int device;
  bool (*function)(int) = atomic_load_explicit(&any_captured, memory_order_relaxed);
  if (hipmm_stream_is_captured(&hip_table_functions, NULL)) return HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (function && !hip_table_functions.GetDevice(&device) && function(device))
    return HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return relaxed_DeviceSynchronize();
}

/* The call would end the stream's capture. */
#define SPARED(name)                                                                                               \
  static int guarded_##name(hipmm_stream_t stream)                                                                 \
  {                                                                                                                \
    if (hipmm_stream_is_captured(&hip_table_functions, stream)) return HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED; \
    return relaxed_##name(stream);                                                                                 \
  }
SPARED(StreamSynchronize)
SPARED(StreamQuery)

/* ---- Physical memory ---- */

static bool (*_Atomic claim_memory)(int device, int64_t bytes);

void hip_guard_memory(bool (*function)(int device, int64_t bytes))
{
  atomic_store_explicit(&claim_memory, function, memory_order_relaxed);
}

/* `bytes` below 0: the call has failed. */
static bool hip_table_claim(int64_t bytes)
{
  int device;
  bool (*function)(int, int64_t) = atomic_load_explicit(&claim_memory, memory_order_relaxed);
  return !function || hip_table_functions.GetDevice(&device) || function(device, bytes);
}

static int hip_table_end_claim(int code)
{
  if (code) hip_table_claim(-1);
  return code;
}

/* A pool of the driver's may serve a block from what it has reserved, so its calls do not ask. */
static int guarded_Malloc(void **ptr, size_t bytes)
{
  if (!hip_table_claim((int64_t)bytes)) return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
  return hip_table_end_claim(relaxed_Malloc(ptr, bytes));
}

/* ---- Structs and numbers ---- */

static union hip_layout_prop hip_table_allocation_prop(int device, int handle_type)
{
  struct hip_layout_location location = {.type = hipMemLocationTypeDevice, .id = device};
  union hip_layout_prop prop;
  memset(&prop, 0, sizeof prop);
  if (runtime_version < HIP_LAYOUT_5_3) {
    prop.up_to_5_2.type = hipMemAllocationTypePinned;
    prop.up_to_5_2.location = location;
    prop.up_to_5_2.handle_type = handle_type;
  } else {
    prop.from_5_3.type = hipMemAllocationTypePinned;
    prop.from_5_3.location = location;
    prop.from_5_3.handle_type = handle_type;
  }
  return prop;
}

/* The struct ends in reserved bytes, to some of which later releases gave a meaning. */
static int hip_table_create_pool_at(hipmm_hip_mempool_t *pool, struct hip_layout_location location, int allocation_type,
                                    int handle_type)
{
  hipMemPoolProps props;
  memset(&props, 0, sizeof props);
  props.allocType = (hipMemAllocationType)allocation_type;
  props.handleTypes = (hipMemAllocationHandleType)handle_type;
  props.location.type = (hipMemLocationType)location.type;
  props.location.id = location.id;
  int before = hip_table_relax();
  int code = raw.MemPoolCreate(pool, &props);
  hip_table_restore(before);
  return code;
}

static int hip_table_create_pool(hipmm_hip_mempool_t *pool, int device, int handle_type)
{
  struct hip_layout_location location = {.type = hipMemLocationTypeDevice, .id = device};
  return hip_table_create_pool_at(pool, location, hipMemAllocationTypePinned, handle_type);
}

static int hip_table_create_managed_pool(hipmm_hip_mempool_t *pool, int device)
{
  const int managed = 2; /* hipMemAllocationTypeManaged, of HIP 7.2 */
  struct hip_layout_location location = {.type = hipMemLocationTypeDevice, .id = device};
  int code = hip_table_create_pool_at(pool, location, managed, HIPMM_HIP_HANDLE_NONE);
  return code == hipErrorInvalidValue ? hipErrorNotSupported : code;
}

static int hip_table_create_host_pool(hipmm_hip_mempool_t *pool, int numa_node)
{
  enum { HOST = 2, HOST_NUMA = 3 }; /* hipMemLocationTypeHost and …HostNuma, of HIP 7 */
  struct hip_layout_location location = {.type = numa_node < 0 ? HOST : HOST_NUMA, .id = numa_node < 0 ? 0 : numa_node};
  int code = hip_table_create_pool_at(pool, location, hipMemAllocationTypePinned, HIPMM_HIP_HANDLE_NONE);
  return code == hipErrorInvalidValue || code == hipErrorInvalidDevice ? hipErrorNotSupported : code;
}

static int hip_table_set_pool_access(hipmm_hip_mempool_t pool, int device, int access)
{
  hipMemAccessDesc desc = {.location = {.type = hipMemLocationTypeDevice, .id = device},
                           .flags = (hipMemAccessFlags)access};
  return raw.MemPoolSetAccess(pool, &desc, 1);
}

static int hip_table_get_pool_access(int *access, hipmm_hip_mempool_t pool, int device)
{
  hipMemLocation location = {.type = hipMemLocationTypeDevice, .id = device};
  hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
  int code = raw.MemPoolGetAccess(&flags, pool, &location);
  if (!code) *access = (int)flags;
  return code;
}

/* HIP writes the descriptor into a handle of a pointer's size. ROCm up to 5.4 returns success and does nothing, here
 * and in the import. */
static int hip_table_export_pool(int *fd, hipmm_hip_mempool_t pool)
{
  union {
    int fd;
    void *pointer;
  } handle = {.pointer = NULL};
  handle.fd = -1;
  int code = raw.MemPoolExport(&handle, pool, hipMemHandleTypePosixFileDescriptor, 0);
  if (!code && handle.fd < 0) return hipErrorNotSupported;
  if (!code) *fd = handle.fd;
  return code;
}

/* A descriptor that is passed as a pointer's value, of which NULL is refused: descriptor 0 is duplicated. The caller closes
 * the copy. -1: there is none. */
static int hip_table_copy_descriptor(int fd)
{
  return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int hip_table_import_pool(hipmm_hip_mempool_t *pool, int fd)
{
  int copy = hip_table_copy_descriptor(fd);
  if (copy < 0) return hipErrorInvalidValue;
  hipmm_hip_mempool_t imported = NULL;
  int code = raw.MemPoolImport(&imported, (void *)(intptr_t)copy, hipMemHandleTypePosixFileDescriptor, 0);
  close(copy);
  if (!code && !imported) return hipErrorNotSupported;
  if (!code) *pool = imported;
  return code;
}

static int hip_table_allocation_granularity(size_t *bytes, int device)
{
  union hip_layout_prop prop = hip_table_allocation_prop(device, hipMemHandleTypeNone);
  return raw.MemGetAllocationGranularity(bytes, &prop, hipMemAllocationGranularityMinimum);
}

static int hip_table_reserve_addresses(void **ptr, size_t bytes, size_t alignment)
{
  return raw.MemAddressReserve(ptr, bytes, alignment, NULL, 0);
}

static int hip_table_create_chunk(hipmm_hip_chunk_t *handle, size_t bytes, int device, int handle_type)
{
  union hip_layout_prop prop = hip_table_allocation_prop(device, handle_type);
  if (!hip_table_claim((int64_t)bytes)) return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
  return hip_table_end_claim(raw.MemCreate(handle, bytes, &prop, 0));
}

static int hip_table_create_memory(hipmm_hip_chunk_t *handle, size_t bytes, int device)
{
  return hip_table_create_chunk(handle, bytes, device, hipMemHandleTypeNone);
}

static int hip_table_create_shared_memory(hipmm_hip_chunk_t *handle, size_t bytes, int device)
{
  return hip_table_create_chunk(handle, bytes, device, hipMemHandleTypePosixFileDescriptor);
}

static int hip_table_export_memory(int *fd, hipmm_hip_chunk_t handle)
{
  return raw.MemExport(fd, handle, hipMemHandleTypePosixFileDescriptor, 0);
}

static int hip_table_import_memory(hipmm_hip_chunk_t *handle, int fd)
{
  if (runtime_version < HIP_LAYOUT_7_1) return raw.MemImport(handle, &fd, hipMemHandleTypePosixFileDescriptor);
  int copy = hip_table_copy_descriptor(fd);
  if (copy < 0) return hipErrorInvalidValue;
  int code = raw.MemImport(handle, (void *)(intptr_t)copy, hipMemHandleTypePosixFileDescriptor);
  close(copy);
  return code;
}

static int hip_table_map_memory(void *ptr, size_t bytes, hipmm_hip_chunk_t handle)
{
  return raw.MemMap(ptr, bytes, 0, handle, 0);
}

static int hip_table_set_access_as(void *ptr, size_t bytes, int device, hipMemAccessFlags flags)
{
  hipMemAccessDesc access = {.location = {.type = hipMemLocationTypeDevice, .id = device}, .flags = flags};
  return raw.MemSetAccess(ptr, bytes, &access, 1);
}

static int hip_table_set_access(void *ptr, size_t bytes, int device)
{
  return hip_table_set_access_as(ptr, bytes, device, hipMemAccessFlagsProtReadWrite);
}

static int hip_table_set_access_read(void *ptr, size_t bytes, int device)
{
  return hip_table_set_access_as(ptr, bytes, device, hipMemAccessFlagsProtRead);
}

static int hip_table_enable_peer_access(int peer, unsigned flags)
{
  int device, code = raw.DeviceEnablePeerAccess(peer, flags);
  bool is_enabled = !code || code == hipErrorPeerAccessAlreadyEnabled;
  if (is_enabled && !hip_table_functions.GetDevice(&device)) peer_access_record(device, peer);
  return code;
}

/* A symbol of HIP and where its address goes. Those of UNSAFE_IN_CAPTURE follow behind the others. */
struct symbol {
  const char *name;
  void *slot;
  bool required;
};

static const struct symbol symbols[] = {
    {"hipGetDeviceCount", &hip_table_functions.GetDeviceCount, true},
    {"hipGetDevice", &hip_table_functions.GetDevice, true},
    {"hipSetDevice", &hip_table_functions.SetDevice, true},
    {"hipDeviceGetAttribute", &hip_table_functions.DeviceGetAttribute, true},
    {"hipDeviceGetName", &hip_table_functions.DeviceGetName, true},
    {"hipMemGetInfo", &hip_table_functions.MemGetInfo, true},
    {"hipRuntimeGetVersion", &hip_table_functions.RuntimeGetVersion, true},
    {"hipGetLastError", &hip_table_functions.GetLastError, true},
    {"hipGetErrorName", &hip_table_functions.GetErrorName, true},
    {"hipGetErrorString", &hip_table_functions.GetErrorString, true},
    {"hipMemPrefetchAsync", &hip_table_functions.MemPrefetchAsync, false},
    {"hipMemcpy", &hip_table_functions.Memcpy, true},
    {"hipMemcpyAsync", &hip_table_functions.MemcpyAsync, true},
    {"hipMemsetAsync", &hip_table_functions.MemsetAsync, true},
    {"hipLaunchHostFunc", &hip_table_functions.LaunchHostFunc, false},
    {"hipStreamCreateWithFlags", &hip_table_functions.StreamCreateWithFlags, true},
    {"hipStreamDestroy", &hip_table_functions.StreamDestroy, true},
    {"hipStreamWaitEvent", &hip_table_functions.StreamWaitEvent, true},
    {"hipStreamGetId", &hip_table_functions.StreamGetId, false},
    {"hipStreamGetDevice", &hip_table_functions.StreamGetDevice, false},
    {"hipStreamIsCapturing", &hip_table_functions.StreamIsCapturing, false},
    {"hipThreadExchangeStreamCaptureMode", &raw.ThreadExchangeStreamCaptureMode, false},
    {"hipMemcpyPeerAsync", &hip_table_functions.MemcpyPeerAsync, false},
    {"hipDriverGetVersion", &hip_table_functions.DriverGetVersion, false},
    {"hipDeviceCanAccessPeer", &hip_table_functions.DeviceCanAccessPeer, false},
    {"hipDeviceEnablePeerAccess", &raw.DeviceEnablePeerAccess, false},
    {"hipEventCreateWithFlags", &hip_table_functions.EventCreateWithFlags, true},
    {"hipEventDestroy", &hip_table_functions.EventDestroy, true},
    {"hipEventRecord", &hip_table_functions.EventRecord, true},
    {"hipMemPoolCreate", &raw.MemPoolCreate, false},
    {"hipDeviceGetDefaultMemPool", &hip_table_functions.DeviceGetDefaultMemPool, false},
    {"hipDeviceGetMemPool", &hip_table_functions.DeviceGetMemPool, false},
    {"hipMemPoolSetAccess", &raw.MemPoolSetAccess, false},
    {"hipMemPoolGetAccess", &raw.MemPoolGetAccess, false},
    {"hipMemPoolExportToShareableHandle", &raw.MemPoolExport, false},
    {"hipMemPoolImportFromShareableHandle", &raw.MemPoolImport, false},
    {"hipMemPoolExportPointer", &hip_table_functions.MemPoolExportPointer, false},
    {"hipMemPoolImportPointer", &hip_table_functions.MemPoolImportPointer, false},
    {"hipMemGetAllocationGranularity", &raw.MemGetAllocationGranularity, false},
    {"hipMemAddressReserve", &raw.MemAddressReserve, false},
    {"hipMemAddressFree", &hip_table_functions.MemAddressFree, false},
    {"hipMemCreate", &raw.MemCreate, false},
    {"hipMemRelease", &hip_table_functions.MemRelease, false},
    {"hipMemExportToShareableHandle", &raw.MemExport, false},
    {"hipMemImportFromShareableHandle", &raw.MemImport, false},
    {"hipMemMap", &raw.MemMap, false},
    {"hipMemUnmap", &hip_table_functions.MemUnmap, false},
    {"hipMemSetAccess", &raw.MemSetAccess, false},
    {"hipStreamCreateWithPriority", &hip_table_functions.StreamCreateWithPriority, false},
    {"hipDeviceGetUuid", &hip_table_functions.DeviceGetUuid, false},
    {"hipDeviceGetStreamPriorityRange", &hip_table_functions.DeviceGetStreamPriorityRange, false},
    {"hipMemGetAddressRange", &hip_table_functions.MemGetAddressRange, false},
#define SYMBOL(name, required, parameters, arguments) {"hip" #name, &raw.name, required},
    UNSAFE_IN_CAPTURE(SYMBOL)
#undef SYMBOL
};

static const char *hip_table_find_symbols(void *library)
{
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *address = own_symbol(library, symbols[i].name);
    if (!address && symbols[i].required) return symbols[i].name;
    memcpy(symbols[i].slot, &address, sizeof address);
  }
  return NULL;
}

static void hip_table_put_adapters(void)
{
  hip_table_functions.struct_size = sizeof hip_table_functions;
  hip_table_functions.MemPoolCreate = raw.MemPoolCreate ? hip_table_create_pool : NULL;
  hip_table_functions.MemPoolCreateManaged = raw.MemPoolCreate ? hip_table_create_managed_pool : NULL;
  hip_table_functions.MemPoolCreateHost = raw.MemPoolCreate ? hip_table_create_host_pool : NULL;
  hip_table_functions.MemPoolSetAccess = raw.MemPoolSetAccess ? hip_table_set_pool_access : NULL;
  hip_table_functions.MemPoolGetAccess = raw.MemPoolGetAccess ? hip_table_get_pool_access : NULL;
  hip_table_functions.MemPoolExport = raw.MemPoolExport ? hip_table_export_pool : NULL;
  hip_table_functions.MemPoolImport = raw.MemPoolImport ? hip_table_import_pool : NULL;
  hip_table_functions.MemGetAllocationGranularity =
      raw.MemGetAllocationGranularity ? hip_table_allocation_granularity : NULL;
  hip_table_functions.MemAddressReserve = raw.MemAddressReserve ? hip_table_reserve_addresses : NULL;
  hip_table_functions.MemCreate = raw.MemCreate ? hip_table_create_memory : NULL;
  hip_table_functions.MemCreateShared = raw.MemCreate ? hip_table_create_shared_memory : NULL;
  hip_table_functions.MemExport = raw.MemExport ? hip_table_export_memory : NULL;
  hip_table_functions.MemImport = raw.MemImport ? hip_table_import_memory : NULL;
  hip_table_functions.MemMap = raw.MemMap ? hip_table_map_memory : NULL;
  hip_table_functions.MemSetAccess = raw.MemSetAccess ? hip_table_set_access : NULL;
  hip_table_functions.MemSetAccessRead = raw.MemSetAccess ? hip_table_set_access_read : NULL;
  hip_table_functions.DeviceEnablePeerAccess = raw.DeviceEnablePeerAccess ? hip_table_enable_peer_access : NULL;
#define PUT_RELAXED(name, required, parameters, arguments) hip_table_functions.name = raw.name ? relaxed_##name : NULL;
  UNSAFE_IN_CAPTURE(PUT_RELAXED)
  hip_table_functions.DeviceSynchronize = guarded_DeviceSynchronize;
  hip_table_functions.StreamSynchronize = guarded_StreamSynchronize;
  hip_table_functions.StreamQuery = guarded_StreamQuery;
#undef PUT_RELAXED
  hip_table_functions.Malloc = guarded_Malloc;
}

const char *hip_table_find(void *library)
{
  const char *missing = hip_table_find_symbols(library);
  if (!missing) hip_table_put_adapters();
  return missing;
}

int hip_table_read_version(void)
{
  return hip_table_functions.RuntimeGetVersion(&runtime_version);
}

int hip_table_version(void)
{
  return runtime_version;
}
