/* SPDX-License-Identifier: MIT */
/* pool_attribute.c: the attributes of stream-ordered pools, and access to their memory. Called by applications. */
#include "pool.h"
#include <string.h>

/* ---- Attributes ------------------------------------------------------------------------------------------------ */

static int *pool_attribute_reuse(struct software_pool *pool, hipMemPoolAttr attribute)
{
  switch ((int)attribute) {
  case hipMemPoolReuseFollowEventDependencies: return &pool->follow_event_dependencies;
  case hipMemPoolReuseAllowOpportunistic: return &pool->allow_opportunistic;
  case hipMemPoolReuseAllowInternalDependencies: return &pool->allow_internal_dependencies;
  default: return NULL;
  }
}

static uint64_t *pool_attribute_amount(struct software_pool *pool, hipMemPoolAttr attribute)
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

static hipError_t pool_attribute_get(struct software_pool *pool, hipMemPoolAttr attribute, void *value)
{
  const int *reuse = pool_attribute_reuse(pool, attribute);
  const uint64_t *amount = pool_attribute_amount(pool, attribute);
  if (!value || (!reuse && !amount)) return hipErrorInvalidValue;
  memcpy(value, reuse ? (const void *)reuse : (const void *)amount, reuse ? sizeof *reuse : sizeof *amount);
  return hipSuccess;
}

/* The marks can only be taken back, to what is in force now. */
static hipError_t pool_attribute_set_amount(struct software_pool *pool, hipMemPoolAttr attribute, uint64_t amount)
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

static hipError_t pool_attribute_set(struct software_pool *pool, hipMemPoolAttr attribute, const void *value)
{
  int *reuse = pool_attribute_reuse(pool, attribute);
  uint64_t amount;
  if (!value) return hipErrorInvalidValue;
  if (reuse) {
    memcpy(reuse, value, sizeof *reuse);
    return hipSuccess;
  }
  if (!pool_attribute_amount(pool, attribute)) return hipErrorInvalidValue;
  memcpy(&amount, value, sizeof amount);
  return pool_attribute_set_amount(pool, attribute, amount);
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute, void *value)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolSetAttribute);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  return software_end(error != hipSuccess ? error : pool_attribute_set(pool, attribute, value));
}

hipError_t hipMemPoolGetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute, void *value)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolGetAttribute);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  return software_end(error != hipSuccess ? error : pool_attribute_get(pool, attribute, value));
}

/* ---- Access ---------------------------------------------------------------------------------------------------- */

/* Copies reach every device's memory without; what is set can be asked for. As ROCm's, access cannot be revoked. */
static hipError_t pool_attribute_set_access(struct software_pool *pool, const hipMemAccessDesc *access, size_t count)
{
  if (count > (size_t)software.config.devices) return hipErrorInvalidDevice;
  for (size_t i = 0; i < count; i++) {
    if (access[i].location.type != hipMemLocationTypeDevice) return hipErrorInvalidValue;
    if (!software_device_exists(access[i].location.id) || access[i].flags == hipMemAccessFlagsProtNone)
      return hipErrorInvalidDevice;
    if (!pool->is_host && !software_device_reaches(access[i].location.id, pool->device)) return hipErrorInvalidDevice;
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
  return software_end(error != hipSuccess ? error : pool_attribute_set_access(pool, access, count));
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
