/* SPDX-License-Identifier: MIT */
/* hip.c: the one place that knows HIP. Fills the table of HIP functions from a shared library that exports them, and
 * adapts the few whose structs changed between HIP's releases. libhipmm links no HIP: the library is chosen when the
 * process starts to use hipmm. */
#include "hip.h"
#include "environment.h"
#include "log.h"
#include "runtime.h"

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <string.h>

/* What plugin.h says of HIP's numbers, held against HIP's header. */
#define SAME(ours, hips) _Static_assert((int)(ours) == (int)(hips), #hips)
SAME(HIPMM_HIP_SUCCESS, hipSuccess);
SAME(HIPMM_HIP_ERROR_INVALID_VALUE, hipErrorInvalidValue);
SAME(HIPMM_HIP_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME(HIPMM_HIP_ERROR_NO_DEVICE, hipErrorNoDevice);
SAME(HIPMM_HIP_ERROR_INVALID_DEVICE, hipErrorInvalidDevice);
SAME(HIPMM_HIP_ERROR_NOT_READY, hipErrorNotReady);
SAME(HIPMM_HIP_ERROR_NOT_SUPPORTED, hipErrorNotSupported);
SAME(HIPMM_HIP_EVENT_DISABLE_TIMING, hipEventDisableTiming);
SAME(HIPMM_HIP_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(HIPMM_HIP_HOST_MALLOC_PORTABLE, hipHostMallocPortable);
SAME(HIPMM_HIP_MEM_ATTACH_GLOBAL, hipMemAttachGlobal);
SAME(HIPMM_HIP_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, hipMemPoolReuseFollowEventDependencies);
SAME(HIPMM_HIP_POOL_REUSE_ALLOW_OPPORTUNISTIC, hipMemPoolReuseAllowOpportunistic);
SAME(HIPMM_HIP_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, hipMemPoolReuseAllowInternalDependencies);
SAME(HIPMM_HIP_POOL_RELEASE_THRESHOLD, hipMemPoolAttrReleaseThreshold);
SAME(HIPMM_HIP_POOL_RESERVED_CURRENT, hipMemPoolAttrReservedMemCurrent);
SAME(HIPMM_HIP_POOL_RESERVED_HIGH, hipMemPoolAttrReservedMemHigh);
SAME(HIPMM_HIP_POOL_USED_CURRENT, hipMemPoolAttrUsedMemCurrent);
SAME(HIPMM_HIP_POOL_USED_HIGH, hipMemPoolAttrUsedMemHigh);
SAME(HIPMM_HIP_HANDLE_POSIX_FD, hipMemHandleTypePosixFileDescriptor);
SAME(HIPMM_HIP_DEVICE_CONCURRENT_MANAGED_ACCESS, hipDeviceAttributeConcurrentManagedAccess);
SAME(HIPMM_HIP_DEVICE_MANAGED_MEMORY, hipDeviceAttributeManagedMemory);
SAME(HIPMM_HIP_DEVICE_PAGEABLE_MEMORY_ACCESS, hipDeviceAttributePageableMemoryAccess);
SAME(HIPMM_HIP_DEVICE_MEMORY_POOLS, hipDeviceAttributeMemoryPoolsSupported);
#if HIP_VERSION >= 50300000
SAME(HIPMM_HIP_DEVICE_VIRTUAL_MEMORY, hipDeviceAttributeVirtualMemoryManagementSupported);
#endif

/* hipMemAllocationProp as HIP up to 5.2 declares it, and from 5.3 on. Which one a library takes is told by its version,
 * not by the header that we are built with. */
struct allocation_prop_5_2 {
  unsigned char compression_type;
  hipMemLocation location;
  int handle_type;
  int type;
  unsigned short usage;
  void *win32_handle_meta_data;
};

struct allocation_prop_5_3 {
  int type;
  int handle_type;
  hipMemLocation location;
  void *win32_handle_meta_data;
  struct {
    unsigned char compression_type, gpu_direct_rdma_capable;
    unsigned short usage;
  } flags;
};

union allocation_prop {
  struct allocation_prop_5_2 up_to_5_2;
  struct allocation_prop_5_3 from_5_3;
};

enum { VERSION_5_3 = 50300000 };

_Static_assert(sizeof(hipMemAllocationProp) == (HIP_VERSION < VERSION_5_3 ? sizeof(struct allocation_prop_5_2)
                                                                          : sizeof(struct allocation_prop_5_3)),
               "hipMemAllocationProp has changed again");

static struct hipmm_hip table;
static const char *name_in_use;
static int runtime_version;

/* The functions behind the adapted entries of the table. */
static struct {
  int (*MemPoolCreate)(hipMemPool_t *pool, const hipMemPoolProps *props);
  int (*MemGetAllocationGranularity)(size_t *bytes, const void *prop, int option);
  int (*MemAddressReserve)(void **ptr, size_t bytes, size_t alignment, void *address, unsigned long long flags);
  int (*MemCreate)(hipMemGenericAllocationHandle_t *handle, size_t bytes, const void *prop, unsigned long long flags);
  int (*MemMap)(void *ptr, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
                unsigned long long flags);
  int (*MemSetAccess)(void *ptr, size_t bytes, const hipMemAccessDesc *access, size_t count);
} raw;

static union allocation_prop memory_of(int device)
{
  hipMemLocation location = {.type = hipMemLocationTypeDevice, .id = device};
  union allocation_prop prop;
  memset(&prop, 0, sizeof prop);
  if (runtime_version < VERSION_5_3) {
    prop.up_to_5_2.type = hipMemAllocationTypePinned;
    prop.up_to_5_2.location = location;
  } else {
    prop.from_5_3.type = hipMemAllocationTypePinned;
    prop.from_5_3.location = location;
  }
  return prop;
}

static int create_pool(hipMemPool_t *pool, int device, int handle_type)
{
  hipMemPoolProps props;
  memset(&props, 0, sizeof props);
  props.allocType = hipMemAllocationTypePinned;
  props.handleTypes = (hipMemAllocationHandleType)handle_type;
  props.location.type = hipMemLocationTypeDevice;
  props.location.id = device;
  return raw.MemPoolCreate(pool, &props);
}

static int allocation_granularity(size_t *bytes, int device)
{
  union allocation_prop prop = memory_of(device);
  return raw.MemGetAllocationGranularity(bytes, &prop, hipMemAllocationGranularityMinimum);
}

static int reserve_addresses(void **ptr, size_t bytes, size_t alignment)
{
  return raw.MemAddressReserve(ptr, bytes, alignment, NULL, 0);
}

static int create_memory(hipMemGenericAllocationHandle_t *handle, size_t bytes, int device)
{
  union allocation_prop prop = memory_of(device);
  return raw.MemCreate(handle, bytes, &prop, 0);
}

static int map_memory(void *ptr, size_t bytes, hipMemGenericAllocationHandle_t handle)
{
  return raw.MemMap(ptr, bytes, 0, handle, 0);
}

static int set_access(void *ptr, size_t bytes, int device)
{
  hipMemAccessDesc access = {.location = {.type = hipMemLocationTypeDevice, .id = device},
                             .flags = hipMemAccessFlagsProtReadWrite};
  return raw.MemSetAccess(ptr, bytes, &access, 1);
}

/* A symbol of HIP and where its address goes. */
struct symbol {
  const char *name;
  void *slot;
  bool required;
};

static const struct symbol symbols[] = {
    {"hipGetDeviceCount", &table.GetDeviceCount, true},
    {"hipGetDevice", &table.GetDevice, true},
    {"hipSetDevice", &table.SetDevice, true},
    {"hipDeviceGetAttribute", &table.DeviceGetAttribute, true},
    {"hipDeviceGetName", &table.DeviceGetName, true},
    {"hipDeviceSynchronize", &table.DeviceSynchronize, true},
    {"hipMemGetInfo", &table.MemGetInfo, true},
    {"hipRuntimeGetVersion", &table.RuntimeGetVersion, true},
    {"hipGetLastError", &table.GetLastError, true},
    {"hipGetErrorName", &table.GetErrorName, true},
    {"hipGetErrorString", &table.GetErrorString, true},
    {"hipMalloc", &table.Malloc, true},
    {"hipFree", &table.Free, true},
    {"hipMallocManaged", &table.MallocManaged, false},
    {"hipHostMalloc", &table.HostMalloc, false},
    {"hipHostFree", &table.HostFree, false},
    {"hipMemAdvise", &table.MemAdvise, false},
    {"hipMemPrefetchAsync", &table.MemPrefetchAsync, false},
    {"hipMemcpy", &table.Memcpy, true},
    {"hipMemcpyAsync", &table.MemcpyAsync, true},
    {"hipMemsetAsync", &table.MemsetAsync, true},
    {"hipLaunchHostFunc", &table.LaunchHostFunc, false},
    {"hipStreamCreateWithFlags", &table.StreamCreateWithFlags, true},
    {"hipStreamDestroy", &table.StreamDestroy, true},
    {"hipStreamSynchronize", &table.StreamSynchronize, true},
    {"hipStreamQuery", &table.StreamQuery, true},
    {"hipStreamWaitEvent", &table.StreamWaitEvent, true},
    {"hipStreamGetId", &table.StreamGetId, false},
    {"hipEventCreateWithFlags", &table.EventCreateWithFlags, true},
    {"hipEventDestroy", &table.EventDestroy, true},
    {"hipEventRecord", &table.EventRecord, true},
    {"hipEventQuery", &table.EventQuery, true},
    {"hipEventSynchronize", &table.EventSynchronize, true},
    {"hipMallocAsync", &table.MallocAsync, false},
    {"hipFreeAsync", &table.FreeAsync, false},
    {"hipMallocFromPoolAsync", &table.MallocFromPoolAsync, false},
    {"hipMemPoolCreate", &raw.MemPoolCreate, false},
    {"hipMemPoolDestroy", &table.MemPoolDestroy, false},
    {"hipMemPoolSetAttribute", &table.MemPoolSetAttribute, false},
    {"hipMemPoolGetAttribute", &table.MemPoolGetAttribute, false},
    {"hipMemPoolTrimTo", &table.MemPoolTrimTo, false},
    {"hipDeviceGetDefaultMemPool", &table.DeviceGetDefaultMemPool, false},
    {"hipMemGetAllocationGranularity", &raw.MemGetAllocationGranularity, false},
    {"hipMemAddressReserve", &raw.MemAddressReserve, false},
    {"hipMemAddressFree", &table.MemAddressFree, false},
    {"hipMemCreate", &raw.MemCreate, false},
    {"hipMemRelease", &table.MemRelease, false},
    {"hipMemMap", &raw.MemMap, false},
    {"hipMemUnmap", &table.MemUnmap, false},
    {"hipMemSetAccess", &raw.MemSetAccess, false},
};

static const char *find_symbols(void *library)
{
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *address = dlsym(library, symbols[i].name);
    if (!address && symbols[i].required) return symbols[i].name;
    memcpy(symbols[i].slot, &address, sizeof address);
  }
  return NULL;
}

static void put_adapters(void)
{
  table.struct_size = sizeof table;
  table.MemPoolCreate = raw.MemPoolCreate ? create_pool : NULL;
  table.MemGetAllocationGranularity = raw.MemGetAllocationGranularity ? allocation_granularity : NULL;
  table.MemAddressReserve = raw.MemAddressReserve ? reserve_addresses : NULL;
  table.MemCreate = raw.MemCreate ? create_memory : NULL;
  table.MemMap = raw.MemMap ? map_memory : NULL;
  table.MemSetAccess = raw.MemSetAccess ? set_access : NULL;
}

static enum hipmm_status use_library(void *library, const char *name)
{
  const char *missing = find_symbols(library);
  if (missing)
    return error_set(HIPMM_E_NOT_SUPPORTED, "runtime %s: it does not export %s, which hipmm needs", name, missing);
  put_adapters();
  int count = 0, code = table.GetDeviceCount(&count);
  if (code || count < 1) {
    table.GetLastError();
    return error_set(HIPMM_E_NO_DEVICE, "runtime %s: no device (hipGetDeviceCount: %s)", name,
                     code ? table.GetErrorName(code) : "0 devices");
  }
  table.RuntimeGetVersion(&runtime_version);
  return HIPMM_OK;
}

/* Opens the library of one runtime and makes it the one in use if it has a device. */
static enum hipmm_status try_runtime(const struct graph *graph, const char *name)
{
  void *library;
  enum hipmm_status status = runtime_load(graph, name, &library);
  return status ? status : use_library(library, name);
}

static enum hipmm_status try_each(const struct graph *graph, const char **name_out)
{
  static const char *const order[] = {"amd", "nvidia", "software"};
  char reasons[1024] = "";
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    bool last = i + 1 == sizeof order / sizeof *order;
    enum hipmm_status status = try_runtime(graph, order[i]);
    if (!status && last)
      log_line(HIPMM_LOG_WARNING, NULL,
               "no GPU found, using the software device (HIPMM_RUNTIME=software silences this; "
               "HIPMM_LOG=info says why)");
    if (!status) {
      *name_out = order[i];
      return HIPMM_OK;
    }
    log_line(HIPMM_LOG_INFO, "runtime", "not %s: %s", order[i], hipmm_last_error_message());
    size_t used = strlen(reasons);
    snprintf(reasons + used, sizeof reasons - used, "%s%s", used ? "; " : "", hipmm_last_error_message());
  }
  return error_set(HIPMM_E_NO_DEVICE, "no runtime has a device: %s", reasons);
}

enum hipmm_status hip_open(const struct graph *graph)
{
  const char *wanted = environment_get("HIPMM_RUNTIME"), *name = NULL;
  if (!wanted || !*wanted) wanted = graph->runtime;
  enum hipmm_status status = HIPMM_OK;
  bool automatic = !strcmp(wanted, "auto");
  if (name_in_use) {
    /* The table is constant once in use; the runtime itself may be configured anew. */
    if (!automatic && strcmp(wanted, name_in_use))
      return error_set(HIPMM_E_STATE, "runtime %s: this process already uses %s, and a process can use only one",
                       wanted, name_in_use);
    void *library;
    return runtime_load(graph, name_in_use, &library);
  }
  if (automatic)
    status = try_each(graph, &name);
  else if (!(status = try_runtime(graph, wanted)))
    name = strdup(wanted);
  if (status) return status;
  if (!name) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  name_in_use = name;
  log_line(HIPMM_LOG_INFO, "runtime", "%s, HIP %d.%d (%s)", name, runtime_version / 10000000,
           runtime_version / 100000 % 100, automatic ? "auto: the first that has a device" : "as asked for");
  return HIPMM_OK;
}

const struct hipmm_hip *hip_table(void)
{
  return &table;
}

const char *hip_name(void)
{
  return name_in_use;
}

static void set_device(int device)
{
  if (!table.SetDevice(device)) return;
  table.SetDevice(device);
  table.GetLastError();
}

int hip_enter_device(int device)
{
  int previous;
  bool known = !table.GetDevice(&previous);
  if (!known) {
    known = !table.GetDevice(&previous);
    table.GetLastError();
  }
  if (!known || previous != device) set_device(device);
  return known ? previous : device;
}

void hip_leave_device(int device, int previous)
{
  if (previous != device) set_device(previous);
}

enum hipmm_status hip_status(int code)
{
  switch (code) {
  case hipSuccess: return HIPMM_OK;
  case hipErrorOutOfMemory: return HIPMM_E_OUT_OF_MEMORY;
  case hipErrorNotSupported: return HIPMM_E_NOT_SUPPORTED;
  case hipErrorNoDevice:
  case hipErrorInvalidDevice: return HIPMM_E_NO_DEVICE;
  default: return HIPMM_E_HIP;
  }
}
