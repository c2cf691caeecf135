// SPDX-License-Identifier: MIT
// CUDA's runtime over the software device, for RMM's own tests and for the allocators of RMM and PyTorch on a machine without a
// GPU: each function that they call is the function of HIP. The device is opened by the path in CUDART_RUNTIME, or else in
// HIPMM_RUNTIME, so that hipmm has the same one.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace
{

void *function_called(const char *name)
{
  static void *const library = [] {
    const char *file = std::getenv("CUDART_RUNTIME");
    if (!file) file = std::getenv("HIPMM_RUNTIME");
    return file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
  }();
  void *function = library ? dlsym(library, name) : nullptr;
  if (function) return function;
  std::fprintf(stderr, "CUDART_RUNTIME or HIPMM_RUNTIME must be the path of software.so: no %s\n", name);
  std::exit(99);
}

/* The codes of errors that both have are the same. */
template <typename... Arguments> cudaError_t call(const char *name, Arguments... arguments)
{
  return reinterpret_cast<cudaError_t (*)(Arguments...)>(function_called(name))(arguments...);
}

/* The numbers in HIP; -1: it has none. */
int hip_attribute(cudaDeviceAttr attribute)
{
  switch (attribute) {
  case cudaDevAttrConcurrentManagedAccess: return 9;
  case cudaDevAttrIntegrated: return 16;
  case cudaDevAttrPageableMemoryAccess: return 65;
  case cudaDevAttrMemoryPoolsSupported: return 88;
  default: return -1;
  }
}

/* Of a device's properties PyTorch's allocator needs the memory; the rest is zero. */
template <typename Properties> cudaError_t properties_of(Properties *properties)
{
  std::size_t free_bytes = 0;
  *properties = {};
  return call("hipMemGetInfo", &free_bytes, &properties->totalGlobalMem);
}

/* A pointer's attribute by its number in HIP; whether the runtime knows the pointer. */
template <typename Value> bool has_attribute(Value *value, int attribute, const void *ptr)
{
  return call("hipPointerGetAttribute", static_cast<void *>(value), attribute, ptr) == cudaSuccess;
}

constexpr int hip_device_pointer = 3, hip_host_pointer = 4, hip_is_managed = 8;

} // namespace

extern "C" {

/* ---- Devices ---- */

cudaError_t cudaGetDevice(int *device)
{
  return call("hipGetDevice", device);
}
cudaError_t cudaSetDevice(int device)
{
  return call("hipSetDevice", device);
}
cudaError_t cudaGetDeviceCount(int *count)
{
  return call("hipGetDeviceCount", count);
}
cudaError_t cudaDeviceCanAccessPeer(int *can_access, int device, int peer)
{
  return call("hipDeviceCanAccessPeer", can_access, device, peer);
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
  return call("hipDeviceEnablePeerAccess", peer, flags);
}
cudaError_t cudaDeviceSynchronize()
{
  return call("hipDeviceSynchronize");
}
cudaError_t cudaMemGetInfo(std::size_t *free_bytes, std::size_t *total_bytes)
{
  return call("hipMemGetInfo", free_bytes, total_bytes);
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
  *value = 0;
  const int number = hip_attribute(attribute);
  return number < 0 ? cudaSuccess : call("hipDeviceGetAttribute", value, number, device);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
  return properties_of(properties);
}
cudaError_t cudaDriverGetVersion(int *version)
{
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
  *version = CUDART_VERSION;
  return cudaSuccess;
}

/* ---- Errors ---- */

cudaError_t cudaGetLastError()
{
  return call("hipGetLastError");
}
cudaError_t cudaPeekAtLastError()
{
  return call("hipPeekAtLastError");
}
const char *cudaGetErrorName(cudaError_t error)
{
  return reinterpret_cast<const char *(*)(cudaError_t)>(function_called("hipGetErrorName"))(error);
}
const char *cudaGetErrorString(cudaError_t error)
{
  return reinterpret_cast<const char *(*)(cudaError_t)>(function_called("hipGetErrorString"))(error);
}

/* ---- Memory ---- */

cudaError_t cudaMalloc(void **ptr, std::size_t bytes)
{
  return call("hipMalloc", ptr, bytes);
}
cudaError_t cudaFree(void *ptr)
{
  return call("hipFree", ptr);
}
cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind)
{
  return call("hipMemcpy", to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
  return call("hipMemcpyAsync", to, from, bytes, kind, stream);
}
cudaError_t cudaMemsetAsync(void *ptr, int value, std::size_t bytes, cudaStream_t stream)
{
  return call("hipMemsetAsync", ptr, value, bytes, stream);
}
cudaError_t cudaMallocManaged(void **ptr, std::size_t bytes, unsigned flags)
{
  return call("hipMallocManaged", ptr, bytes, flags);
}
cudaError_t cudaHostAlloc(void **ptr, std::size_t bytes, unsigned flags)
{
  return call("hipHostMalloc", ptr, bytes, flags);
}
cudaError_t cudaFreeHost(void *ptr)
{
  return call("hipHostFree", ptr);
}
cudaError_t cudaMallocFromPoolAsync(void **ptr, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
  return call("hipMallocFromPoolAsync", ptr, bytes, pool, stream);
}
cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
  return call("hipFreeAsync", ptr, stream);
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties)
{
  return call("hipMemPoolCreate", pool, properties);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
  return call("hipMemPoolDestroy", pool);
}
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, cudaMemLocation *location, cudaMemAllocationType)
{
  return call("hipDeviceGetDefaultMemPool", pool, location->id);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
  return call("hipMemPoolSetAttribute", pool, attribute, value);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
  return call("hipMemPoolGetAttribute", pool, attribute, value);
}
cudaError_t cudaMemAdvise(const void *ptr, std::size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location)
{
  return call("hipMemAdvise_v2", ptr, bytes, advice, location);
}
cudaError_t cudaMemPrefetchAsync(const void *ptr, std::size_t bytes, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream)
{
  return call("hipMemPrefetchAsync_v2", ptr, bytes, location, flags, stream);
}
cudaError_t cudaMemRangeGetAttribute(void *value, std::size_t value_bytes, cudaMemRangeAttribute attribute,
                                     const void *ptr, std::size_t bytes)
{
  return call("hipMemRangeGetAttribute", value, value_bytes, attribute, ptr, bytes);
}

/* As CUDA tells it: memory that is not the runtime's has no device pointer, unless kernels can use the host's memory. */
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *ptr)
{
  *attributes = {};
  void *host = nullptr;
  bool is_managed = false;
  if (!has_attribute(&attributes->devicePointer, hip_device_pointer, ptr)) {
    static_cast<void>(cudaGetLastError());
    int device = 0, is_pageable = 0;
    static_cast<void>(cudaGetDevice(&device));
    static_cast<void>(cudaDeviceGetAttribute(&is_pageable, cudaDevAttrPageableMemoryAccess, device));
    attributes->devicePointer = is_pageable ? const_cast<void *>(ptr) : nullptr;
    return cudaSuccess;
  }
  has_attribute(&host, hip_host_pointer, ptr);
  has_attribute(&is_managed, hip_is_managed, ptr);
  attributes->type = is_managed ? cudaMemoryTypeManaged : host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  return cudaSuccess;
}

/* ---- Streams and events ---- */

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
  return call("hipStreamCreate", stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
  return call("hipStreamCreateWithFlags", stream, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
  return call("hipStreamCreateWithPriority", stream, flags, priority);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
  return call("hipDeviceGetStreamPriorityRange", least, greatest);
}
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
  return call("hipStreamQuery", stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
  return call("hipStreamDestroy", stream);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
  return call("hipStreamSynchronize", stream);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
  return call("hipStreamGetFlags", stream, flags);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
  return call("hipStreamGetId", stream, id);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
  return call("hipStreamWaitEvent", stream, event, flags);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
  return call("hipStreamIsCapturing", stream, status);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *,
                                     cudaGraph_t *, const cudaGraphNode_t **, const cudaGraphEdgeData **, std::size_t *)
{
  return call("hipStreamIsCapturing", stream, status);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
  return call("hipThreadExchangeStreamCaptureMode", mode);
}
cudaError_t cudaEventQuery(cudaEvent_t event)
{
  return call("hipEventQuery", event);
}
cudaError_t cudaEventCreate(cudaEvent_t *event)
{
  return call("hipEventCreate", event);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
  return call("hipEventCreateWithFlags", event, flags);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
  return call("hipEventRecord", event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
  return call("hipEventSynchronize", event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
  return call("hipEventDestroy", event);
}

/* ---- What PyTorch's library names, and its allocator calls only for what is not measured ---- */

cudaError_t cudart_lacks()
{
  return cudaErrorNotSupported;
}

/* ---- The driver's functions, for PyTorch's expandable segments: HIP's by another name ---- */

/* CUDA's struct is that of HIP since 5.3; before, the members had another order. A failure of the driver is no error of the
 * runtime: PyTorch tries several handle types. */
static cudaError_t cudart_create(CUmemGenericAllocationHandle *handle, std::size_t bytes,
                                 const CUmemAllocationProp *properties, unsigned long long flags)
{
  struct {
    unsigned char compression;
    CUmemLocation location;
    CUmemAllocationHandleType handle_type;
    CUmemAllocationType type;
    unsigned short usage;
    void *unused;
  } before{0, properties->location, properties->requestedHandleTypes, properties->type, 0, nullptr};
  int version = 0;
  static_cast<void>(call("hipRuntimeGetVersion", &version));
  const void *given = version < 50300000 ? static_cast<const void *>(&before) : properties;
  const cudaError_t error = call("hipMemCreate", handle, bytes, given, flags);
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return error;
}

/* Devices have the same numbers, and none of the attributes. */
static cudaError_t cudart_device(int *device, int number)
{
  *device = number;
  return cudaSuccess;
}
static cudaError_t cudart_attribute(int *value, int, int)
{
  *value = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status)
{
  static const struct {
    const char *symbol;
    void *function;
  } own[] = {{"cuMemCreate", reinterpret_cast<void *>(cudart_create)},
             {"cuDeviceGet", reinterpret_cast<void *>(cudart_device)},
             {"cuDeviceGetAttribute", reinterpret_cast<void *>(cudart_attribute)}};
  static const char *const same[] = {"cuMemAddressReserve", "cuMemAddressFree", "cuMemRelease", "cuMemMap",
                                     "cuMemUnmap",          "cuMemSetAccess"};
  if (status) *status = cudaDriverEntryPointSuccess;
  *function = reinterpret_cast<void *>(cudart_lacks);
  for (const auto &row : own)
    if (!std::strcmp(symbol, row.symbol)) *function = row.function;
  for (const char *name : same)
    if (!std::strcmp(symbol, name)) *function = function_called(("hip" + std::string{name + 2}).c_str());
  return cudaSuccess;
}

} // extern "C"

#define LACKS(name) __asm__(".globl " #name "\n.set " #name ", cudart_lacks")
LACKS(cudaDeviceGetDefaultMemPool);
LACKS(cudaEventElapsedTime);
LACKS(cudaGraphNodeGetDependencies);
LACKS(cudaIpcCloseMemHandle);
LACKS(cudaIpcGetMemHandle);
LACKS(cudaIpcOpenMemHandle);
LACKS(cudaMallocAsync);
LACKS(cudaMemPoolSetAccess);
LACKS(cudaMemPoolTrimTo);
LACKS(cudaMemcpyPeerAsync);
