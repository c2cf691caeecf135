/* SPDX-License-Identifier: MIT */
/* pool_api.c: the calls on stream-ordered pools: their life, attributes and access, and which is a device's current
 * one. Called by applications; pool.c does the work. */
#include "pool.h"
#include <string.h>

hipError_t software_pool_begin(enum software_call call)
{
  hipError_t error = software_begin(call);
  return error == hipSuccess && !software.config.memory_pools ? hipErrorNotSupported : error;
}

hipError_t software_pool_find(hipMemPool_t handle, struct software_pool **pool_out)
{
  if (!software_handle_is_live(&software_pool_handles, handle)) return hipErrorInvalidValue;
  *pool_out = (struct software_pool *)handle;
  return software.devices[(*pool_out)->device].fault;
}

/* ---- Allocation ------------------------------------------------------------------------------------------------ */

static hipError_t pool_api_allocate(struct software_pool *pool, size_t bytes, struct software_queue *queue,
                                    enum software_call call, void **pointer_out)
{
  if (!pool) return hipErrorOutOfMemory;
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
    error = pool_api_allocate(software_pool_current(queue->device), bytes, queue, SOFTWARE_hipMallocAsync, pointer);
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
  if (error == hipSuccess && pool->imported_fd > 0) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = pool_api_allocate(pool, bytes, queue, SOFTWARE_hipMallocFromPoolAsync, pointer);
  return software_end(error);
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

/* hipMemAllocationTypeManaged, of HIP 7.2. Such a pool cannot be exported. */
static bool pool_api_is_managed(const hipMemPoolProps *properties)
{
  return (int)properties->allocType == 2;
}

static hipError_t pool_api_check_properties(const hipMemPoolProps *properties)
{
  if (!properties || properties->location.type != hipMemLocationTypeDevice ||
      !software_device_exists(properties->location.id))
    return hipErrorInvalidValue;
  if (pool_api_is_managed(properties)) {
    if (!software.config.managed_memory) return hipErrorNotSupported;
    if (properties->handleTypes != hipMemHandleTypeNone) return hipErrorInvalidValue;
  } else if (properties->allocType != hipMemAllocationTypePinned) {
    return hipErrorInvalidValue;
  }
  bool is_known =
      properties->handleTypes == hipMemHandleTypeNone || properties->handleTypes == hipMemHandleTypePosixFileDescriptor;
  return is_known ? software.devices[properties->location.id].fault : hipErrorNotSupported;
}

/* What HIP 6 made of the first of the bytes that HIP 5 reserves, and demands to be 0; 0 is no limit. */
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
    struct software_pool *pool = software_pool_create(properties->location.id, properties->handleTypes);
    if (pool && pool_api_is_managed(properties)) software_pool_make_managed(pool);
    if (pool) pool->max_bytes = pool_api_max_bytes(properties);
    if (pool) *handle = (hipMemPool_t)pool;
    if (!pool) error = hipErrorOutOfMemory;
  }
  return software_end(error);
}

/* What was allocated from it stays valid; the pool goes with the last of it. */
hipError_t hipMemPoolDestroy(hipMemPool_t handle)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolDestroy);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && pool == software.devices[pool->device].default_pool) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    struct software_device *device = &software.devices[pool->device];
    if (device->pool == pool) device->pool = NULL;
    pool->handle.live = false;
    pool->is_destroyed = true;
    software_pool_settle(pool);
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

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static int *pool_api_reuse(struct software_pool *pool, hipMemPoolAttr attribute)
{
  switch ((int)attribute) {
  case hipMemPoolReuseFollowEventDependencies: return &pool->follow_event_dependencies;
  case hipMemPoolReuseAllowOpportunistic: return &pool->allow_opportunistic;
  case hipMemPoolReuseAllowInternalDependencies: return &pool->allow_internal_dependencies;
  default: return NULL;
  }
}

static uint64_t *pool_api_amount(struct software_pool *pool, hipMemPoolAttr attribute)
{
  switch ((int)attribute) {
  case hipMemPoolAttrReleaseThreshold: return &pool->release_threshold;
  case hipMemPoolAttrReservedMemCurrent: return &pool->reserved_bytes;
  case hipMemPoolAttrReservedMemHigh: return &pool->reserved_high;
  case hipMemPoolAttrUsedMemCurrent: return &pool->used_bytes;
  case hipMemPoolAttrUsedMemHigh: return &pool->used_high;
  default: return NULL;
  }
}

static hipError_t pool_api_get_attribute(struct software_pool *pool, hipMemPoolAttr attribute, void *value)
{
  const int *reuse = pool_api_reuse(pool, attribute);
  const uint64_t *amount = pool_api_amount(pool, attribute);
  if (!value || (!reuse && !amount)) return hipErrorInvalidValue;
  memcpy(value, reuse ? (const void *)reuse : (const void *)amount, reuse ? sizeof *reuse : sizeof *amount);
  return hipSuccess;
}

/* The marks can only be taken back, to what is in force now. */
static hipError_t pool_api_set_amount(struct software_pool *pool, hipMemPoolAttr attribute, uint64_t amount)
{
  switch ((int)attribute) {
  case hipMemPoolAttrReleaseThreshold: pool->release_threshold = amount; return hipSuccess;
  case hipMemPoolAttrReservedMemHigh:
    if (amount != 0) return hipErrorInvalidValue;
    pool->reserved_high = pool->reserved_bytes;
    return hipSuccess;
  case hipMemPoolAttrUsedMemHigh:
    if (amount != 0) return hipErrorInvalidValue;
    pool->used_high = pool->used_bytes;
    return hipSuccess;
  default: return hipErrorInvalidValue;
  }
}

static hipError_t pool_api_set_attribute(struct software_pool *pool, hipMemPoolAttr attribute, const void *value)
{
  int *reuse = pool_api_reuse(pool, attribute);
  uint64_t amount;
  if (!value) return hipErrorInvalidValue;
  if (reuse) {
    memcpy(reuse, value, sizeof *reuse);
    return hipSuccess;
  }
  if (!pool_api_amount(pool, attribute)) return hipErrorInvalidValue;
  memcpy(&amount, value, sizeof amount);
  return pool_api_set_amount(pool, attribute, amount);
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute, void *value)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolSetAttribute);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  return software_end(error != hipSuccess ? error : pool_api_set_attribute(pool, attribute, value));
}

hipError_t hipMemPoolGetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute, void *value)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolGetAttribute);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  return software_end(error != hipSuccess ? error : pool_api_get_attribute(pool, attribute, value));
}

/* ---- Access ---------------------------------------------------------------------------------------------------- */

/* Copies reach every device's memory without; what is set can be asked for. As ROCm's, access cannot be revoked. */
static hipError_t pool_api_set_access(struct software_pool *pool, const hipMemAccessDesc *access, size_t count)
{
  if (count > (size_t)software.config.devices) return hipErrorInvalidDevice;
  for (size_t i = 0; i < count; i++) {
    if (access[i].location.type != hipMemLocationTypeDevice) return hipErrorInvalidValue;
    if (!software_device_exists(access[i].location.id) || access[i].flags == hipMemAccessFlagsProtNone)
      return hipErrorInvalidDevice;
    if (!software_device_reaches(access[i].location.id, pool->device)) return hipErrorInvalidDevice;
    if (access[i].flags != hipMemAccessFlagsProtRead && access[i].flags != hipMemAccessFlagsProtReadWrite)
      return hipErrorInvalidValue;
  }
  for (size_t i = 0; i < count; i++) pool->access[access[i].location.id] = access[i].flags;
  return hipSuccess;
}

bool software_pool_allows(const struct software_pool *pool, int device)
{
  return pool->access[device] == hipMemAccessFlagsProtReadWrite;
}

hipError_t hipMemPoolSetAccess(hipMemPool_t handle, const hipMemAccessDesc *access, size_t count)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolSetAccess);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && (!access || count == 0)) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : pool_api_set_access(pool, access, count));
}

hipError_t hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t handle, hipMemLocation *location)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolGetAccess);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && (!flags || !location || location->type != hipMemLocationTypeDevice))
    error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(location->id)) error = hipErrorInvalidValue;
  if (error == hipSuccess) *flags = pool->access[location->id];
  return software_end(error);
}

/* ---- A device's pools ------------------------------------------------------------------------------------------ */

static hipError_t pool_api_of_device(int device, bool is_default, hipMemPool_t *handle_out)
{
  if (!handle_out) return hipErrorInvalidValue;
  /* HIP tells the two calls' errors apart. */
  if (!software_device_exists(device)) return is_default ? hipErrorInvalidDevice : hipErrorInvalidValue;
  struct software_pool *pool = is_default ? software_pool_default(device) : software_pool_current(device);
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
  if (error == hipSuccess && pool->imported_fd > 0) error = hipErrorInvalidValue;
  if (error == hipSuccess) software.devices[device].pool = pool;
  return software_end(error);
}
