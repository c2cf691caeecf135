/* SPDX-License-Identifier: MIT */
/* pool_api.c: the calls that allocate from pools and free to pools, that create and destroy pools, and that choose the
 * pool of a device. Called by applications. pool_order.c and pool.c do the work. */
#include "graph.h"
#include "pool.h"
#include <string.h>

/* ---- Allocation ------------------------------------------------------------------------------------------------ */

static hipError_t pool_api_allocate(struct software_pool *pool, size_t bytes, struct software_queue *queue,
                                    enum software_call call, void **pointer_out)
{
  if (!pool) return hipErrorOutOfMemory;
  if (bytes > 0 && queue->capture) return software_capture_allocate(queue, bytes, call, pointer_out);
  hipError_t error = software_check_captures();
  if (error != hipSuccess) return error;
  if (bytes > 0) return software_pool_allocate(pool, bytes, queue, call, pointer_out);
  *pointer_out = NULL;
  return hipSuccess;
}

hipError_t hipMallocAsync(void **pointer, size_t bytes, hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_pool_begin(SOFTWARE_hipMallocAsync);
  if (error == hipSuccess && !pointer) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  if (error == hipSuccess)
    error =
        pool_api_allocate(software_pool_current(queue->device, false), bytes, queue, SOFTWARE_hipMallocAsync, pointer);
  return software_end(error);
}

hipError_t hipMallocFromPoolAsync(void **pointer, size_t bytes, hipMemPool_t handle, hipStream_t stream)
{
  struct software_queue *queue;
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMallocFromPoolAsync);
  if (error == hipSuccess && !pointer) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && pool->imported.fd > 0) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = pool_api_allocate(pool, bytes, queue, SOFTWARE_hipMallocFromPoolAsync, pointer);
  return software_end(error);
}

/* The address stays that of the node, and may become live again. */
static hipError_t pool_api_free_of_graph(struct software_allocation *allocation, struct software_queue *queue)
{
  if (!allocation->graph->is_live) return hipErrorInvalidValue;
  if (!software_submit_prepare(queue)) return hipErrorOutOfMemory;
  struct software_operation *operation = software_graph_memory_new_free(allocation, SOFTWARE_hipFreeAsync);
  if (!operation) return hipErrorOutOfMemory;
  allocation->graph->is_live = false;
  return software_submit(queue, operation);
}

static hipError_t pool_api_free(struct software_allocation *allocation, struct software_queue *queue)
{
  if (queue->capture) return software_capture_free(queue, allocation);
  hipError_t error = software_check_captures();
  if (error == hipSuccess) error = software_capture_check(queue);
  if (error != hipSuccess) return error;
  if (allocation->graph) return pool_api_free_of_graph(allocation, queue);
  return allocation->pool ? software_pool_free_async(allocation, queue)
                          : software_free((void *)allocation->by_address.major, SOFTWARE_FREEABLE);
}

/* As in HIP, memory of no pool is freed as by hipFree, after the work of its device. */
hipError_t hipFreeAsync(void *pointer, hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_begin(SOFTWARE_hipFreeAsync);
  if (error == hipSuccess && !software.config.memory_pools) error = hipErrorNotSupported;
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  struct software_allocation *allocation = software_allocation_at(pointer);
  if (error == hipSuccess && !allocation) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = pool_api_free(allocation, queue);
  return software_end(error);
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

/* hipMemAllocationTypeManaged, of HIP 7.2. Such a pool cannot be exported. */
static bool pool_api_is_managed(hipMemAllocationType type)
{
  return (int)type == 2;
}

/* As in CUDA 12.9: pinned memory of the host, which cannot be exported. */
static hipError_t pool_api_check_host(const hipMemPoolProps *properties)
{
  const struct software_location location = {.type = (int)properties->location.type, .id = properties->location.id};
  int device;
  if (!software_location_device(location, &device) || properties->allocType != hipMemAllocationTypePinned ||
      properties->handleTypes != hipMemHandleTypeNone)
    return hipErrorInvalidValue;
  return hipSuccess;
}

static hipError_t pool_api_check_properties(const hipMemPoolProps *properties)
{
  if (!properties) return hipErrorInvalidValue;
  if (properties->location.type != hipMemLocationTypeDevice) return pool_api_check_host(properties);
  if (!software_device_exists(properties->location.id)) return hipErrorInvalidValue;
  if (pool_api_is_managed(properties->allocType)) {
    if (!software.config.managed_memory) return hipErrorNotSupported;
    if (properties->handleTypes != hipMemHandleTypeNone) return hipErrorInvalidValue;
  } else if (properties->allocType != hipMemAllocationTypePinned) {
    return hipErrorInvalidValue;
  }
  bool is_known =
      properties->handleTypes == hipMemHandleTypeNone || properties->handleTypes == hipMemHandleTypePosixFileDescriptor;
  return is_known ? software.devices[properties->location.id].fault : hipErrorNotSupported;
}

/* maxSize of HIP 6, which is among the bytes that HIP 5 reserves and requires to be 0; 0 is no limit. */
static uint64_t pool_api_max_bytes(const hipMemPoolProps *properties)
{
  size_t bytes;
  const size_t offset = offsetof(hipMemPoolProps, win32SecurityAttributes) + sizeof(void *);
  memcpy(&bytes, (const char *)properties + offset, sizeof bytes);
  size_t rounded = software_align_up(bytes, SOFTWARE_PAGE_BYTES);
  return rounded == 0 ? UINT64_MAX : rounded;
}

hipError_t hipMemPoolCreate(hipMemPool_t *handle, const hipMemPoolProps *properties)
{
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolCreate);
  if (error == hipSuccess && !handle) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = pool_api_check_properties(properties);
  if (error == hipSuccess) {
    bool is_host = properties->location.type != hipMemLocationTypeDevice;
    struct software_pool *pool =
        software_pool_create(is_host ? software_current_device() : properties->location.id, properties->handleTypes);
    if (pool && is_host) software_pool_make_host(pool);
    if (pool && pool_api_is_managed(properties->allocType)) software_pool_make_managed(pool);
    if (pool) pool->max_bytes = pool_api_max_bytes(properties);
    if (pool) *handle = (hipMemPool_t)pool;
    if (!pool) error = hipErrorOutOfMemory;
  }
  return software_end(error);
}

/* Allocations from the pool stay valid; the pool is freed with the last of them. */
hipError_t hipMemPoolDestroy(hipMemPool_t handle)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolDestroy);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && pool == software.devices[pool->device].default_pool[pool->is_managed])
    error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    struct software_device *device = &software.devices[pool->device];
    for (int is_managed = 0; is_managed < 2; is_managed++)
      if (device->pool[is_managed] == pool) device->pool[is_managed] = NULL;
    pool->handle.live = false;
    pool->is_destroyed = true;
    software_pool_destroy_if_unused(pool);
  }
  return software_end(error);
}

hipError_t hipMemPoolTrimTo(hipMemPool_t handle, size_t keep_bytes)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolTrimTo);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess) software_pool_trim(pool, keep_bytes);
  return software_end(error);
}

/* ---- A device's pools ------------------------------------------------------------------------------------------ */

static hipError_t pool_api_of_device(int device, bool is_default, hipMemPool_t *handle_out)
{
  if (!handle_out) return hipErrorInvalidValue;
  /* In HIP the two calls have different errors. */
  if (!software_device_exists(device)) return is_default ? hipErrorInvalidDevice : hipErrorInvalidValue;
  struct software_pool *pool = is_default ? software_pool_default(device, false) : software_pool_current(device, false);
  if (!pool) return hipErrorOutOfMemory;
  *handle_out = (hipMemPool_t)pool;
  return software.devices[device].fault;
}

hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *handle, int device)
{
  hipError_t error = software_pool_begin(SOFTWARE_hipDeviceGetDefaultMemPool);
  return software_end(error != hipSuccess ? error : pool_api_of_device(device, true, handle));
}

hipError_t hipDeviceGetMemPool(hipMemPool_t *handle, int device)
{
  hipError_t error = software_pool_begin(SOFTWARE_hipDeviceGetMemPool);
  return software_end(error != hipSuccess ? error : pool_api_of_device(device, false, handle));
}

hipError_t hipDeviceSetMemPool(int device, hipMemPool_t handle)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipDeviceSetMemPool);
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && pool->device != device) error = hipErrorInvalidDevice;
  if (error == hipSuccess && (pool->imported.fd > 0 || pool->is_host)) error = hipErrorInvalidValue;
  if (error == hipSuccess) software.devices[device].pool[0] = pool;
  return software_end(error);
}

/* ---- The pools of a location ----------------------------------------------------------------------------------- */

/* As in HIP, only devices have pools: one of pinned memory, which is that of the functions above, and one of managed memory. */
static hipError_t pool_api_check_location(const hipMemLocation *location, hipMemAllocationType type)
{
  bool is_managed = pool_api_is_managed(type);
  if (!location || location->type != hipMemLocationTypeDevice || !software_device_exists(location->id))
    return hipErrorInvalidValue;
  if (!is_managed && type != hipMemAllocationTypePinned) return hipErrorInvalidValue;
  if (is_managed && !software.config.managed_memory) return hipErrorNotSupported;
  return software.devices[location->id].fault;
}

static hipError_t pool_api_of_location(enum software_call call, const hipMemLocation *location,
                                       hipMemAllocationType type, hipMemPool_t *handle_out)
{
  hipError_t error = software_pool_begin(call);
  if (error == hipSuccess && !handle_out) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = pool_api_check_location(location, type);
  if (error == hipSuccess) {
    bool is_managed = pool_api_is_managed(type), is_default = call == SOFTWARE_hipMemGetDefaultMemPool;
    struct software_pool *pool =
        is_default ? software_pool_default(location->id, is_managed) : software_pool_current(location->id, is_managed);
    if (pool) *handle_out = (hipMemPool_t)pool;
    if (!pool) error = hipErrorOutOfMemory;
  }
  return software_end(error);
}

hipError_t hipMemGetDefaultMemPool(hipMemPool_t *handle, hipMemLocation *location, hipMemAllocationType type)
{
  return pool_api_of_location(SOFTWARE_hipMemGetDefaultMemPool, location, type, handle);
}

hipError_t hipMemGetMemPool(hipMemPool_t *handle, hipMemLocation *location, hipMemAllocationType type)
{
  return pool_api_of_location(SOFTWARE_hipMemGetMemPool, location, type, handle);
}

hipError_t hipMemSetMemPool(hipMemLocation *location, hipMemAllocationType type, hipMemPool_t handle)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemSetMemPool);
  if (error == hipSuccess) error = pool_api_check_location(location, type);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && (pool->device != location->id || pool->is_managed != pool_api_is_managed(type)))
    error = hipErrorInvalidValue;
  if (error == hipSuccess && (pool->imported.fd > 0 || pool->is_host)) error = hipErrorInvalidValue;
  if (error == hipSuccess) software.devices[location->id].pool[pool->is_managed] = pool;
  return software_end(error);
}
