/* SPDX-License-Identifier: MIT */
/* hooks.h: the functions of runtimes and of NVIDIA's driver that the preload object hooks, with what they do and their
 * counts; what is known of the calling thread; and messages. A function that is not in these lists can neither be counted
 * nor found.
 *
 * A new hook is a row here, and for a function of NVIDIA's driver its release in `since` of exports.c. The row's operation
 * is in allocate.c, release.c, query.c, pools.c, share.c, past.c, access.c or streams.c. */
#ifndef HIPMM_TOOLS_PRELOAD_HOOKS_H
#define HIPMM_TOOLS_PRELOAD_HOOKS_H

#include <hipmm/plugin.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rows, from which exports.c makes the functions. HIP's and CUDA's own headers cannot be included together, so error
 * codes and enumerations are int here, and structures are void.
 *
 *   Y(api, name, operation, (parameters), (arguments))  calls the operation with its own number and these, and is in the report
 *   X(api, name, operation, (parameters), (arguments))  the same, but is not in the report
 *   P(api, name, (parameters), (arguments))             is passed on after the software device was set up
 *   R(api, name, (parameters), (arguments))             the same, and repeated once after a shortage (shortage.h)
 *   F(api, name)                                        is not hooked, only called
 *
 * W is told further down. */
/* clang-format off */
#define HOOKS_OF_BOTH(Y, X, F, api) \
  Y(api, Malloc, allocate_device, (void **ptr, size_t bytes), (ptr, bytes)) \
  Y(api, Free, release_device, (void *ptr), (ptr)) \
  Y(api, MallocAsync, allocate_device_on, (void **ptr, size_t bytes, hipmm_stream_t stream), \
    (ptr, bytes, stream)) \
  Y(api, MallocFromPoolAsync, allocate_device_from_pool, \
    (void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream), (ptr, bytes, pool, stream)) \
  Y(api, FreeAsync, release_device_on, (void *ptr, hipmm_stream_t stream), (ptr, stream)) \
  Y(api, MallocManaged, allocate_managed, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
  Y(api, HostAlloc, allocate_pinned_with_flags, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
  Y(api, MallocHost, allocate_pinned, (void **ptr, size_t bytes), (ptr, bytes)) \
  Y(api, FreeHost, release_pinned, (void *ptr), (ptr)) \
  Y(api, MemGetInfo, query_memory_info, (size_t *free_bytes, size_t *total_bytes), (free_bytes, total_bytes)) \
  Y(api, PointerGetAttributes, query_attributes, (void *attributes, const void *ptr), (attributes, ptr)) \
  Y(api, IpcGetMemHandle, share_get, (void *handle, void *ptr), (handle, ptr)) \
  Y(api, IpcOpenMemHandle, share_open, (void **ptr, struct ipc_handle handle, unsigned flags), \
    (ptr, handle, flags)) \
  Y(api, IpcCloseMemHandle, share_close, (void *ptr), (ptr)) \
  Y(api, MemPoolExportPointer, share_export, (void *data, void *ptr), (data, ptr)) \
  Y(api, MemPoolCreate, pools_create, (hipmm_hip_mempool_t *pool, const void *props), (pool, props)) \
  Y(api, MemPoolDestroy, pools_destroy, (hipmm_hip_mempool_t pool), (pool)) \
  Y(api, StreamCreate, streams_create, (hipmm_stream_t *stream), (stream)) \
  Y(api, StreamCreateWithFlags, streams_create_with_flags, (hipmm_stream_t *stream, unsigned flags), \
    (stream, flags)) \
  Y(api, StreamCreateWithPriority, streams_create_with_priority, \
    (hipmm_stream_t *stream, unsigned flags, int priority), (stream, flags, priority)) \
  Y(api, StreamDestroy, streams_destroy, (hipmm_stream_t stream), (stream)) \
  Y(api, DeviceReset, release_reset_device, (void), ()) \
  X(api, DeviceGetDefaultMemPool, pools_of_device, (hipmm_hip_mempool_t *pool, int device), (pool, device)) \
  X(api, DeviceGetMemPool, pools_of_device, (hipmm_hip_mempool_t *pool, int device), (pool, device)) \
  X(api, DeviceSetMemPool, pools_set_current, (int device, hipmm_hip_mempool_t pool), (device, pool)) \
  X(api, MemPoolGetAttribute, pools_get_attribute, (hipmm_hip_mempool_t pool, int attribute, void *value), \
    (pool, attribute, value)) \
  X(api, MemPoolSetAttribute, pools_set_attribute, (hipmm_hip_mempool_t pool, int attribute, void *value), \
    (pool, attribute, value)) \
  X(api, MemPoolSetAccess, access_set, (hipmm_hip_mempool_t pool, const void *access, size_t count), \
    (pool, access, count)) \
  X(api, MemPoolTrimTo, pools_trim, (hipmm_hip_mempool_t pool, size_t keep_bytes), (pool, keep_bytes)) \
  X(api, GetLastError, failure_last, (void), ()) \
  X(api, PeekAtLastError, failure_last, (void), ()) \
  X(api, SetDevice, streams_set_device, (int device), (device)) \
  X(api, GetDeviceProperties, query_properties, (void *properties, int device), (properties, device)) \
  X(api, DeviceEnablePeerAccess, access_enable_peer, (int peer, unsigned flags), (peer, flags)) \
  X(api, DeviceDisablePeerAccess, access_disable_peer, (int peer), (peer)) \
  F(api, StreamIsCapturing)

/* Physical memory that the program creates and maps itself. */
#define HOOKS_OF_MAPPED(Y, X, api) \
  Y(api, MemCreate, past_create, (uint64_t *handle, size_t bytes, const void *properties, uint64_t flags), \
    (handle, bytes, properties, flags)) \
  Y(api, MemRelease, past_release, (uint64_t handle), (handle)) \
  X(api, MemRetainAllocationHandle, past_retain, (uint64_t *handle, void *ptr), (handle, ptr)) \
  X(api, MemMap, past_map, (void *ptr, size_t bytes, size_t offset, uint64_t handle, uint64_t flags), \
    (ptr, bytes, offset, handle, flags)) \
  X(api, MemUnmap, past_unmap, (void *ptr, size_t bytes), (ptr, bytes))

/* Since ROCm 6.3 the C++ form of hipHostMalloc() calls hipExtHostAlloc(). */
#define HOOKS_OF_HIP(Y, X, P) \
  Y(hip, ExtMallocWithFlags, allocate_device_with_flags, (void **ptr, size_t bytes, unsigned flags), \
    (ptr, bytes, flags)) \
  Y(hip, HostMalloc, allocate_pinned_with_flags, (void **ptr, size_t bytes, unsigned flags), \
    (ptr, bytes, flags)) \
  Y(hip, ExtHostAlloc, allocate_pinned_with_flags, (void **ptr, size_t bytes, unsigned flags), \
    (ptr, bytes, flags)) \
  Y(hip, MemAllocHost, allocate_pinned, (void **ptr, size_t bytes), (ptr, bytes)) \
  Y(hip, HostFree, release_pinned, (void *ptr), (ptr)) \
  Y(hip, MemGetAddressRange, query_address_range, (void **base, size_t *bytes, void *ptr), (base, bytes, ptr)) \
  Y(hip, MemPtrGetInfo, query_size, (void *ptr, size_t *bytes), (ptr, bytes)) \
  Y(hip, HostGetFlags, query_host_flags, (unsigned *flags, void *ptr), (flags, ptr)) \
  Y(hip, PointerGetAttribute, query_attribute, (void *data, int attribute, void *ptr), (data, attribute, ptr)) \
  Y(hip, DrvPointerGetAttributes, query_attribute_list, (unsigned count, int *attributes, void **data, void *ptr), \
    (count, attributes, data, ptr)) \
  X(hip, GetProcAddress, exports_find, (const char *name, void **function, int version, uint64_t flags, int *status), \
    (name, function, version, flags, status)) \
  P(hip, Init, (unsigned flags), (flags)) \
  P(hip, GetDevice, (int *device), (device)) \
  P(hip, GetDeviceCount, (int *count), (count)) \
  P(hip, DeviceGet, (int *device, int ordinal), (device, ordinal)) \
  P(hip, DeviceGetAttribute, (int *value, int attribute, int device), (value, attribute, device)) \
  P(hip, DeviceGetName, (char *name, int length, int device), (name, length, device)) \
  HOOKS_OF_LOCATIONS(X, hip) \
  HOOKS_OF_MAPPED(Y, X, hip) \
  X(hip, DeviceTotalMem, query_total, (size_t *bytes, int device), (bytes, device)) \
  X(hip, GetDevicePropertiesR0600, query_properties, (void *properties, int device), (properties, device)) \
  X(hip, GetDevicePropertiesR0000, query_properties, (void *properties, int device), (properties, device))

/* Since CUDA 13 and HIP 7.2, a device's pools by its location. */
#define HOOKS_OF_LOCATIONS(X, api) \
  X(api, MemGetDefaultMemPool, pools_of_location, (hipmm_hip_mempool_t *pool, const void *location, int type), \
    (pool, location, type)) \
  X(api, MemGetMemPool, pools_of_location, (hipmm_hip_mempool_t *pool, const void *location, int type), \
    (pool, location, type)) \
  X(api, MemSetMemPool, pools_set_for_location, (const void *location, int type, hipmm_hip_mempool_t pool), \
    (location, type, pool))

/* A program that was compiled for per-thread default streams calls the functions whose names end in _ptsz. */
#define HOOKS_OF_CUDA(Y, X, F) \
  HOOKS_OF_LOCATIONS(X, cuda) \
  X(cuda, GetDeviceProperties_v2, query_properties, (void *properties, int device), (properties, device)) \
  Y(cuda, MallocAsync_ptsz, allocate_device_on, (void **ptr, size_t bytes, hipmm_stream_t stream), \
    (ptr, bytes, stream)) \
  Y(cuda, MallocFromPoolAsync_ptsz, allocate_device_from_pool, \
    (void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream), (ptr, bytes, pool, stream)) \
  Y(cuda, FreeAsync_ptsz, release_device_on, (void *ptr, hipmm_stream_t stream), (ptr, stream)) \
  F(cuda, GetDevice)

/* NVIDIA's driver, which a runtime that is linked statically calls, and so do JAX and others. CUdeviceptr is a pointer
 * here, and a CUdevice is its number. Where the name has no "_v2" and another row has, it is the older release's. */
#define HOOKS_OF_DRIVER(Y, X, F) \
  Y(cu, MemAlloc_v2, allocate_device, (void **ptr, size_t bytes), (ptr, bytes)) \
  Y(cu, MemAllocPitch_v2, allocate_pitch, \
    (void **ptr, size_t *pitch, size_t width, size_t height, unsigned element_bytes), \
    (ptr, pitch, width, height, element_bytes)) \
  Y(cu, MemFree_v2, release_device, (void *ptr), (ptr)) \
  Y(cu, MemAllocAsync, allocate_device_on, (void **ptr, size_t bytes, hipmm_stream_t stream), \
    (ptr, bytes, stream)) \
  Y(cu, MemAllocAsync_ptsz, allocate_device_on, (void **ptr, size_t bytes, hipmm_stream_t stream), \
    (ptr, bytes, stream)) \
  Y(cu, MemAllocFromPoolAsync, allocate_device_from_pool, \
    (void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream), (ptr, bytes, pool, stream)) \
  Y(cu, MemAllocFromPoolAsync_ptsz, allocate_device_from_pool, \
    (void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream), (ptr, bytes, pool, stream)) \
  Y(cu, MemFreeAsync, release_device_on, (void *ptr, hipmm_stream_t stream), (ptr, stream)) \
  Y(cu, MemFreeAsync_ptsz, release_device_on, (void *ptr, hipmm_stream_t stream), (ptr, stream)) \
  Y(cu, MemAllocManaged, allocate_managed, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
  Y(cu, MemHostAlloc, allocate_pinned_with_flags, (void **ptr, size_t bytes, unsigned flags), \
    (ptr, bytes, flags)) \
  Y(cu, MemAllocHost_v2, allocate_pinned, (void **ptr, size_t bytes), (ptr, bytes)) \
  Y(cu, MemFreeHost, release_pinned, (void *ptr), (ptr)) \
  Y(cu, MemGetInfo_v2, query_memory_info, (size_t *free_bytes, size_t *total_bytes), (free_bytes, total_bytes)) \
  Y(cu, MemGetAddressRange_v2, query_address_range, (void **base, size_t *bytes, void *ptr), (base, bytes, ptr)) \
  Y(cu, MemHostGetFlags, query_host_flags, (unsigned *flags, void *ptr), (flags, ptr)) \
  Y(cu, PointerGetAttribute, query_attribute, (void *data, int attribute, void *ptr), (data, attribute, ptr)) \
  Y(cu, PointerGetAttributes, query_attribute_list, (unsigned count, int *attributes, void **data, void *ptr), \
    (count, attributes, data, ptr)) \
  Y(cu, IpcGetMemHandle, share_get, (void *handle, void *ptr), (handle, ptr)) \
  Y(cu, IpcOpenMemHandle_v2, share_open, (void **ptr, struct ipc_handle handle, unsigned flags), \
    (ptr, handle, flags)) \
  Y(cu, IpcOpenMemHandle, share_open, (void **ptr, struct ipc_handle handle, unsigned flags), \
    (ptr, handle, flags)) \
  Y(cu, IpcCloseMemHandle, share_close, (void *ptr), (ptr)) \
  Y(cu, MemPoolExportPointer, share_export, (void *data, void *ptr), (data, ptr)) \
  Y(cu, MemPoolCreate, pools_create, (hipmm_hip_mempool_t *pool, const void *props), (pool, props)) \
  Y(cu, MemPoolDestroy, pools_destroy, (hipmm_hip_mempool_t pool), (pool)) \
  Y(cu, StreamCreate, streams_create_with_flags, (hipmm_stream_t *stream, unsigned flags), (stream, flags)) \
  Y(cu, StreamCreateWithPriority, streams_create_with_priority, \
    (hipmm_stream_t *stream, unsigned flags, int priority), (stream, flags, priority)) \
  Y(cu, StreamDestroy_v2, streams_destroy, (hipmm_stream_t stream), (stream)) \
  Y(cu, StreamDestroy, streams_destroy, (hipmm_stream_t stream), (stream)) \
  Y(cu, DevicePrimaryCtxReset_v2, release_reset_primary, (int device), (device)) \
  Y(cu, DevicePrimaryCtxReset, release_reset_primary, (int device), (device)) \
  X(cu, DevicePrimaryCtxRetain, streams_retain_context, (void **context, int device), (context, device)) \
  X(cu, DeviceGetDefaultMemPool, pools_of_device, (hipmm_hip_mempool_t *pool, int device), (pool, device)) \
  X(cu, DeviceGetMemPool, pools_of_device, (hipmm_hip_mempool_t *pool, int device), (pool, device)) \
  X(cu, DeviceSetMemPool, pools_set_current, (int device, hipmm_hip_mempool_t pool), (device, pool)) \
  X(cu, MemPoolGetAttribute, pools_get_attribute, (hipmm_hip_mempool_t pool, int attribute, void *value), \
    (pool, attribute, value)) \
  X(cu, MemPoolSetAttribute, pools_set_attribute, (hipmm_hip_mempool_t pool, int attribute, void *value), \
    (pool, attribute, value)) \
  X(cu, MemPoolSetAccess, access_set, (hipmm_hip_mempool_t pool, const void *access, size_t count), \
    (pool, access, count)) \
  X(cu, MemPoolTrimTo, pools_trim, (hipmm_hip_mempool_t pool, size_t keep_bytes), (pool, keep_bytes)) \
  HOOKS_OF_LOCATIONS(X, cu) \
  HOOKS_OF_MAPPED(Y, X, cu) \
  X(cu, DeviceTotalMem_v2, query_total, (size_t *bytes, int device), (bytes, device)) \
  X(cu, CtxEnablePeerAccess, access_enable_context, (void *peer, unsigned flags), (peer, flags)) \
  X(cu, CtxDisablePeerAccess, access_disable_context, (void *peer), (peer)) \
  X(cu, GetProcAddress_v2, exports_find_in_driver, \
    (const char *name, void **function, int version, uint64_t flags, int *status), \
    (name, function, version, flags, status)) \
  X(cu, GetProcAddress, exports_find_in_old_driver, (const char *name, void **function, int version, uint64_t flags), \
    (name, function, version, flags)) \
  F(cu, CtxGetCurrent) \
  F(cu, CtxSetCurrent) \
  F(cu, DevicePrimaryCtxGetState) \
  F(cu, DevicePrimaryCtxRelease_v2) \
  F(cu, DeviceGetAttribute) \
  F(cu, DeviceGetCount) \
  F(cu, StreamGetCtx) \
  F(cu, StreamIsCapturing)

/* Work, and its order: passed on, and told to the race detector if `hipmm run --check-streams` has started it (checks.h).
 *
 *   W(api, name, (parameters), (arguments), before, after)  `before` is told at the call, `after` when it has succeeded */
#define HOOKS_OF_WORK(W, api) \
  W(api, Memcpy, (void *to, const void *from, size_t bytes, int kind), (to, from, bytes, kind), \
    checks_copy(hook, to, from, bytes, NULL), checks_host_after_stream(hook, NULL)) \
  W(api, MemcpyAsync, (void *to, const void *from, size_t bytes, int kind, hipmm_stream_t stream), \
    (to, from, bytes, kind, stream), checks_copy(hook, to, from, bytes, stream), \
    checks_host_after_copy(hook, to, stream)) \
  W(api, MemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes), \
    (to, to_device, from, from_device, bytes), checks_copy(hook, to, from, bytes, NULL), \
    checks_host_after_stream(hook, NULL)) \
  W(api, MemcpyPeerAsync, \
    (void *to, int to_device, const void *from, int from_device, size_t bytes, hipmm_stream_t stream), \
    (to, to_device, from, from_device, bytes, stream), checks_copy(hook, to, from, bytes, stream), (void)0) \
  W(api, Memcpy2D, \
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind), \
    (to, to_pitch, from, from_pitch, width, height, kind), \
    checks_copy_rows(hook, to, to_pitch, from, from_pitch, width, height, NULL), checks_host_after_stream(hook, NULL)) \
  W(api, Memcpy2DAsync, \
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind, \
     hipmm_stream_t stream), \
    (to, to_pitch, from, from_pitch, width, height, kind, stream), \
    checks_copy_rows(hook, to, to_pitch, from, from_pitch, width, height, stream), \
    checks_host_after_copy(hook, to, stream)) \
  W(api, Memset, (void *ptr, int value, size_t bytes), (ptr, value, bytes), \
    checks_copy(hook, ptr, NULL, bytes, NULL), (void)0) \
  W(api, MemsetAsync, (void *ptr, int value, size_t bytes, hipmm_stream_t stream), (ptr, value, bytes, stream), \
    checks_copy(hook, ptr, NULL, bytes, stream), (void)0) \
  W(api, DeviceSynchronize, (void), (), (void)0, checks_host_after_device(hook)) \
  HOOKS_OF_ORDER(W, api) \
  W(api, EventDestroy, (hipmm_hip_event_t event), (event), checks_end_event(event), (void)0)

/* A host function may tell any thread that the stream is over up to it, which cannot be seen: so the host counts as after the
 * stream from its launch on. */
#define HOOKS_OF_ORDER(W, api) \
  W(api, EventRecord, (hipmm_hip_event_t event, hipmm_stream_t stream), (event, stream), (void)0, \
    checks_record(hook, event, stream)) \
  W(api, EventRecordWithFlags, (hipmm_hip_event_t event, hipmm_stream_t stream, unsigned flags), \
    (event, stream, flags), (void)0, checks_record(hook, event, stream)) \
  W(api, EventQuery, (hipmm_hip_event_t event), (event), (void)0, checks_host_after_event(event)) \
  W(api, EventSynchronize, (hipmm_hip_event_t event), (event), (void)0, checks_host_after_event(event)) \
  W(api, StreamWaitEvent, (hipmm_stream_t stream, hipmm_hip_event_t event, unsigned flags), (stream, event, flags), \
    (void)0, checks_wait(hook, stream, event)) \
  W(api, EventElapsedTime, (float *ms, hipmm_hip_event_t start, hipmm_hip_event_t end), (ms, start, end), (void)0, \
    checks_host_after_events(start, end)) \
  W(api, LaunchHostFunc, (hipmm_stream_t stream, void (*function)(void *), void *argument), \
    (stream, function, argument), checks_host_after_stream(hook, stream), (void)0) \
  W(api, StreamAddCallback, \
    (hipmm_stream_t stream, void (*function)(hipmm_stream_t, int, void *), void *argument, unsigned flags), \
    (stream, function, argument, flags), checks_host_after_stream(hook, stream), (void)0) \
  W(api, StreamSynchronize, (hipmm_stream_t stream), (stream), (void)0, checks_host_after_stream(hook, stream)) \
  W(api, StreamQuery, (hipmm_stream_t stream), (stream), (void)0, checks_host_after_stream(hook, stream))

/* The same for programs that were compiled for per-thread default streams. */
#define HOOKS_OF_THREAD_ORDER(W, api, suffix) \
  W(api, EventRecord_##suffix, (hipmm_hip_event_t event, hipmm_stream_t stream), (event, stream), (void)0, \
    checks_record(hook, event, stream)) \
  W(api, StreamWaitEvent_##suffix, (hipmm_stream_t stream, hipmm_hip_event_t event, unsigned flags), \
    (stream, event, flags), (void)0, checks_wait(hook, stream, event)) \
  W(api, LaunchHostFunc_##suffix, (hipmm_stream_t stream, void (*function)(void *), void *argument), \
    (stream, function, argument), checks_host_after_stream(hook, stream), (void)0) \
  W(api, StreamAddCallback_##suffix, \
    (hipmm_stream_t stream, void (*function)(hipmm_stream_t, int, void *), void *argument, unsigned flags), \
    (stream, function, argument, flags), checks_host_after_stream(hook, stream), (void)0) \
  W(api, StreamSynchronize_##suffix, (hipmm_stream_t stream), (stream), (void)0, \
    checks_host_after_stream(hook, stream)) \
  W(api, StreamQuery_##suffix, (hipmm_stream_t stream), (stream), (void)0, checks_host_after_stream(hook, stream))

#define HOOKS_OF_THREAD_WORK(W, api, suffix, suffix_of_waiting) \
  W(api, Memcpy_##suffix_of_waiting, (void *to, const void *from, size_t bytes, int kind), (to, from, bytes, kind), \
    checks_copy(hook, to, from, bytes, NULL), checks_host_after_stream(hook, NULL)) \
  W(api, MemcpyAsync_##suffix, (void *to, const void *from, size_t bytes, int kind, hipmm_stream_t stream), \
    (to, from, bytes, kind, stream), checks_copy(hook, to, from, bytes, stream), \
    checks_host_after_copy(hook, to, stream)) \
  W(api, Memset_##suffix_of_waiting, (void *ptr, int value, size_t bytes), (ptr, value, bytes), \
    checks_copy(hook, ptr, NULL, bytes, NULL), (void)0) \
  W(api, MemsetAsync_##suffix, (void *ptr, int value, size_t bytes, hipmm_stream_t stream), \
    (ptr, value, bytes, stream), checks_copy(hook, ptr, NULL, bytes, stream), (void)0) \
  HOOKS_OF_THREAD_ORDER(W, api, suffix)

#define HOOKS_OF_HIP_WORK(W) \
  HOOKS_OF_WORK(W, hip) \
  HOOKS_OF_THREAD_WORK(W, hip, spt, spt) \
  W(hip, MemcpyWithStream, (void *to, const void *from, size_t bytes, int kind, hipmm_stream_t stream), \
    (to, from, bytes, kind, stream), checks_copy(hook, to, from, bytes, stream), \
    checks_host_after_stream(hook, stream)) \
  W(hip, MemcpyHtoD, (void *to, const void *from, size_t bytes), (to, from, bytes), \
    checks_copy(hook, to, from, bytes, NULL), checks_host_after_stream(hook, NULL)) \
  W(hip, MemcpyHtoDAsync, (void *to, const void *from, size_t bytes, hipmm_stream_t stream), \
    (to, from, bytes, stream), checks_copy(hook, to, from, bytes, stream), (void)0) \
  W(hip, MemcpyDtoH, (void *to, void *from, size_t bytes), (to, from, bytes), \
    checks_copy(hook, to, from, bytes, NULL), checks_host_after_stream(hook, NULL)) \
  W(hip, MemcpyDtoHAsync, (void *to, void *from, size_t bytes, hipmm_stream_t stream), (to, from, bytes, stream), \
    checks_copy(hook, to, from, bytes, stream), checks_host_after_copy(hook, to, stream)) \
  W(hip, MemcpyDtoD, (void *to, void *from, size_t bytes), (to, from, bytes), \
    checks_copy(hook, to, from, bytes, NULL), (void)0) \
  W(hip, MemcpyDtoDAsync, (void *to, void *from, size_t bytes, hipmm_stream_t stream), (to, from, bytes, stream), \
    checks_copy(hook, to, from, bytes, stream), (void)0) \
  W(hip, MemsetD8, (void *ptr, unsigned char value, size_t count), (ptr, value, count), \
    checks_copy(hook, ptr, NULL, count, NULL), (void)0) \
  W(hip, MemsetD8Async, (void *ptr, unsigned char value, size_t count, hipmm_stream_t stream), \
    (ptr, value, count, stream), checks_copy(hook, ptr, NULL, count, stream), (void)0) \
  W(hip, MemsetD32, (void *ptr, int value, size_t count), (ptr, value, count), \
    checks_copy(hook, ptr, NULL, 4 * count, NULL), (void)0) \
  W(hip, MemsetD32Async, (void *ptr, int value, size_t count, hipmm_stream_t stream), (ptr, value, count, stream), \
    checks_copy(hook, ptr, NULL, 4 * count, stream), (void)0)

/* Of the driver the order alone: that of programs with a CUDA runtime that is linked statically. */
#define HOOKS_OF_DRIVER_ORDER(W) \
  HOOKS_OF_ORDER(W, cu) \
  HOOKS_OF_THREAD_ORDER(W, cu, ptsz) \
  W(cu, EventRecordWithFlags_ptsz, (hipmm_hip_event_t event, hipmm_stream_t stream, unsigned flags), \
    (event, stream, flags), (void)0, checks_record(hook, event, stream)) \
  W(cu, EventElapsedTime_v2, (float *ms, hipmm_hip_event_t start, hipmm_hip_event_t end), (ms, start, end), (void)0, \
    checks_host_after_events(start, end)) \
  W(cu, EventDestroy_v2, (hipmm_hip_event_t event), (event), (void)0, checks_end_event(event)) \
  W(cu, CtxSynchronize, (void), (), (void)0, checks_host_after_device(hook))

/* What takes device memory for itself, or addresses whose tables lie there. CUDA's runtime takes it from the driver. A module
 * that is loaded lazily takes its memory when its first function is asked for, or launched. */
#define HOOKS_OF_SHORTAGE(R, api) \
  R(api, MemSetAccess, (void *ptr, size_t bytes, const void *access, size_t count), (ptr, bytes, access, count)) \
  R(api, MemImportFromShareableHandle, (uint64_t *handle, void *shareable, int type), (handle, shareable, type)) \
  R(api, MipmappedArrayCreate, (void **array, const void *format, unsigned levels), (array, format, levels)) \
  R(api, ModuleLoad, (void **module, const char *file), (module, file)) \
  R(api, ModuleLoadData, (void **module, const void *image), (module, image)) \
  R(api, ModuleLoadDataEx, (void **module, const void *image, unsigned count, int *options, void **values), \
    (module, image, count, options, values)) \
  R(api, ModuleLoadFatBinary, (void **module, const void *image), (module, image)) \
  R(api, ModuleGetFunction, (void **function, void *module, const char *name), (function, module, name)) \
  R(api, LibraryLoadData, \
    (void **library, const void *image, int *options, void **values, unsigned count, int *library_options, \
     void **library_values, unsigned library_count), \
    (library, image, options, values, count, library_options, library_values, library_count)) \
  R(api, LibraryLoadFromFile, \
    (void **library, const char *file, int *options, void **values, unsigned count, int *library_options, \
     void **library_values, unsigned library_count), \
    (library, file, options, values, count, library_options, library_values, library_count)) \
  R(api, GraphInstantiate, (void **executable, void *graph, void **node, char *log, size_t bytes), \
    (executable, graph, node, log, bytes)) \
  R(api, GraphInstantiateWithFlags, (void **executable, void *graph, uint64_t flags), (executable, graph, flags)) \
  R(api, GraphInstantiateWithParams, (void **executable, void *graph, void *parameters), \
    (executable, graph, parameters)) \
  R(api, GraphUpload, (void *executable, hipmm_stream_t stream), (executable, stream)) \
  R(api, GraphLaunch, (void *executable, hipmm_stream_t stream), (executable, stream))

#define HOOKS_OF_HIP_SHORTAGE(R) \
  HOOKS_OF_SHORTAGE(R, hip) \
  R(hip, MallocPitch, (void **ptr, size_t *pitch, size_t width, size_t height), (ptr, pitch, width, height)) \
  R(hip, MemAllocPitch, (void **ptr, size_t *pitch, size_t width, size_t height, unsigned element_bytes), \
    (ptr, pitch, width, height, element_bytes)) \
  R(hip, Malloc3D, (void *pitched, struct extent extent), (pitched, extent)) \
  R(hip, MallocArray, (void **array, const void *format, size_t width, size_t height, unsigned flags), \
    (array, format, width, height, flags)) \
  R(hip, Malloc3DArray, (void **array, const void *format, struct extent extent, unsigned flags), \
    (array, format, extent, flags)) \
  R(hip, MallocMipmappedArray, \
    (void **array, const void *format, struct extent extent, unsigned levels, unsigned flags), \
    (array, format, extent, levels, flags)) \
  R(hip, ArrayCreate, (void **array, const void *format), (array, format)) \
  R(hip, Array3DCreate, (void **array, const void *format), (array, format)) \
  R(hip, HostRegister, (void *ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
  R(hip, EventCreate, (hipmm_hip_event_t *event), (event)) \
  R(hip, EventCreateWithFlags, (hipmm_hip_event_t *event, unsigned flags), (event, flags)) \
  R(hip, ExtStreamCreateWithCUMask, (hipmm_stream_t *stream, uint32_t count, const uint32_t *mask), \
    (stream, count, mask)) \
  R(hip, DeviceSetLimit, (int limit, size_t value), (limit, value)) \
  R(hip, GraphLaunch_spt, (void *executable, hipmm_stream_t stream), (executable, stream)) \
  R(hip, LaunchKernel, \
    (const void *function, struct blocks3 grid, struct blocks3 block, void **arguments, size_t shared_bytes, \
     hipmm_stream_t stream), \
    (function, grid, block, arguments, shared_bytes, stream)) \
  R(hip, LaunchKernel_spt, \
    (const void *function, struct blocks3 grid, struct blocks3 block, void **arguments, size_t shared_bytes, \
     hipmm_stream_t stream), \
    (function, grid, block, arguments, shared_bytes, stream)) \
  R(hip, ModuleLaunchKernel, \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, hipmm_stream_t stream, void **parameters, void **extra), \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra))

#define HOOKS_OF_DRIVER_SHORTAGE(R) \
  HOOKS_OF_SHORTAGE(R, cu) \
  R(cu, ArrayCreate_v2, (void **array, const void *format), (array, format)) \
  R(cu, Array3DCreate_v2, (void **array, const void *format), (array, format)) \
  R(cu, MemHostRegister_v2, (void *ptr, size_t bytes, unsigned flags), (ptr, bytes, flags)) \
  R(cu, EventCreate, (hipmm_hip_event_t *event, unsigned flags), (event, flags)) \
  R(cu, CtxCreate_v2, (void **context, unsigned flags, int device), (context, flags, device)) \
  R(cu, CtxCreate_v3, (void **context, void *affinity, int count, unsigned flags, int device), \
    (context, affinity, count, flags, device)) \
  R(cu, CtxCreate_v4, (void **context, void *parameters, unsigned flags, int device), \
    (context, parameters, flags, device)) \
  R(cu, GreenCtxCreate, (void **context, void *description, int device, unsigned flags), \
    (context, description, device, flags)) \
  R(cu, CtxSetLimit, (int limit, size_t value), (limit, value)) \
  R(cu, ModuleGetGlobal_v2, (void **ptr, size_t *bytes, void *module, const char *name), (ptr, bytes, module, name)) \
  R(cu, LibraryGetModule, (void **module, void *library), (module, library)) \
  R(cu, LibraryGetGlobal, (void **ptr, size_t *bytes, void *library, const char *name), (ptr, bytes, library, name)) \
  R(cu, KernelGetFunction, (void **function, void *kernel), (function, kernel)) \
  R(cu, FuncLoad, (void *function), (function)) \
  R(cu, MulticastCreate, (uint64_t *handle, const void *properties), (handle, properties)) \
  R(cu, MulticastBindMem, \
    (uint64_t multicast, size_t offset, uint64_t memory, size_t memory_offset, size_t bytes, uint64_t flags), \
    (multicast, offset, memory, memory_offset, bytes, flags)) \
  R(cu, MulticastBindAddr, (uint64_t multicast, size_t offset, void *ptr, size_t bytes, uint64_t flags), \
    (multicast, offset, ptr, bytes, flags)) \
  R(cu, GraphInstantiate_v2, (void **executable, void *graph, void **node, char *log, size_t bytes), \
    (executable, graph, node, log, bytes)) \
  R(cu, GraphInstantiateWithParams_ptsz, (void **executable, void *graph, void *parameters), \
    (executable, graph, parameters)) \
  R(cu, GraphUpload_ptsz, (void *executable, hipmm_stream_t stream), (executable, stream)) \
  R(cu, GraphLaunch_ptsz, (void *executable, hipmm_stream_t stream), (executable, stream)) \
  HOOKS_OF_LAUNCHES(R, ) \
  HOOKS_OF_LAUNCHES(R, _ptsz)

#define HOOKS_OF_LAUNCHES(R, suffix) \
  R(cu, LaunchKernel##suffix, \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, hipmm_stream_t stream, void **parameters, void **extra), \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, extra)) \
  R(cu, LaunchKernelEx##suffix, (const void *settings, void *function, void **parameters, void **extra), \
    (settings, function, parameters, extra)) \
  R(cu, LaunchCooperativeKernel##suffix, \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, hipmm_stream_t stream, void **parameters), \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters))

#define HOOKS(Y, X, P, R, W, F) \
  HOOKS_OF_BOTH(Y, X, F, hip) \
  HOOKS_OF_HIP(Y, X, P) \
  HOOKS_OF_HIP_SHORTAGE(R) \
  HOOKS_OF_HIP_WORK(W) \
  HOOKS_OF_BOTH(Y, X, F, cuda) \
  HOOKS_OF_CUDA(Y, X, F) \
  HOOKS_OF_WORK(W, cuda) \
  HOOKS_OF_THREAD_WORK(W, cuda, ptsz, ptds) \
  W(cuda, EventRecordWithFlags_ptsz, (hipmm_hip_event_t event, hipmm_stream_t stream, unsigned flags), \
    (event, stream, flags), (void)0, checks_record(hook, event, stream)) \
  HOOKS_OF_DRIVER(Y, X, F) \
  HOOKS_OF_DRIVER_SHORTAGE(R) \
  HOOKS_OF_DRIVER_ORDER(W)
/* clang-format on */

/* hipIpcMemHandle_t and cudaIpcMemHandle_t. */
struct ipc_handle {
  unsigned char bytes[64];
};

/* hipExtent. */
struct extent {
  size_t width, height, depth;
};

/* dim3. */
struct blocks3 {
  unsigned x, y, z;
};

#define HOOK_VALUE(api, name, ...) HOOK_##api##name,
enum hook { HOOKS(HOOK_VALUE, HOOK_VALUE, HOOK_VALUE, HOOK_VALUE, HOOK_VALUE, HOOK_VALUE) HOOK_COUNT };

/* The API that a function belongs to. */
enum family { FAMILY_HIP, FAMILY_CUDA, FAMILY_DRIVER, FAMILY_COUNT };

static inline enum family hook_family(enum hook hook)
{
  if (hook < HOOK_cudaMalloc) return FAMILY_HIP;
  return hook < HOOK_cuMemAlloc_v2 ? FAMILY_CUDA : FAMILY_DRIVER;
}

const char *hook_name(enum hook hook);
bool hook_is_reported(enum hook hook);
bool hook_is_of_work(enum hook hook); /* told to the race detector, and else passed on */

/* The hook of this name; HOOK_COUNT if there is none. */
enum hook hook_find(const char *name);

/* How a call ended: served by hipmm, passed on to the runtime, or failed in hipmm. */
enum outcome { OUTCOME_SERVED, OUTCOME_PASSED, OUTCOME_FAILED };

struct hook_counts {
  uint64_t calls, passed, failed;
};

void hook_count(enum hook hook, enum outcome outcome);
struct hook_counts hook_counts(enum hook hook);
void hook_reset_counts(void);

/* ---- The calling thread ---- */

/* For variables of a thread: they are found without a call of the loader, which a launch of a kernel would notice. That wants an
 * object that is loaded with the program, as this one is. */
#define HOOK_STATIC_TLS __attribute__((tls_model("initial-exec")))

/* Every hook begins with enter and ends with leave. In between, each hooked function that the thread calls is passed on:
 * hipmm calls it itself, or the runtime calls a function that it exports. enter returns false if the thread was inside
 * already; leave must follow in that case too. */
bool reentry_enter(void);
void reentry_leave(void);

/* Leaves, and counts the call if the program made it. Returns `code`. */
int reentry_finish(enum hook hook, enum outcome outcome, int code);

/* How often the thread has entered and not yet left. */
unsigned reentry_depth(void);

/* The last error of hipmm, for hipGetLastError() and cudaGetLastError(); 0: none. */
void reentry_set_error(enum family family, int code);
int reentry_error(enum family family);

/* ---- Messages for the user, on standard error ---- */

/* Writes "hipmm: …" as one line, with one write(), control characters shown as "?". */
void message_write(const char *format, ...) HIPMM_PRINTF(1, 2);

/* The same, but only the first time that it is called with this flag, which starts as false. */
void message_write_once(atomic_bool *is_written, const char *format, ...) HIPMM_PRINTF(2, 3);

#endif
