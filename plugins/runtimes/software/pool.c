/* SPDX-License-Identifier: MIT */
/* pool.c: the life of a stream-ordered pool, from its creation to its end. Called by pool_order.c (allocation and free), by
 * the calls on pools (pool_api.c, pool_attribute.c, pool_share.c), by execute.c, and by every synchronisation, after which
 * pools free what they hold above their threshold.
 *
 * What a pool has reserved is charged to the device. It is freed to the heap only after the stream-ordered frees in it have
 * executed. No function here waits or submits. */
#include "pool.h"
#include <sys/mman.h>
#include <unistd.h>

struct software_handles software_pool_handles = {.object_bytes = sizeof(struct software_pool)};

struct software_pool *software_pool_create(int device, hipMemAllocationHandleType handle_type)
{
  struct software_pool *pool = software_handle_allocate(&software_pool_handles);
  if (!pool) return NULL;
  pool->device = device;
  pool->handle_type = handle_type;
  pool->own_heap.device = device;
  pool->heap = handle_type == hipMemHandleTypeNone ? &software.devices[device].heap : &pool->own_heap;
  pool->follow_event_dependencies = 1;
  pool->allow_opportunistic = 1;
  pool->allow_internal_dependencies = 1;
  pool->max_bytes = UINT64_MAX;
  pool->access[device] = hipMemAccessFlagsProtReadWrite;
  pool->next = software.devices[device].pools;
  software.devices[device].pools = pool;
  return pool;
}

/* Managed memory is memory of the host, so it is not charged to the capacity of a device. */
void software_pool_make_managed(struct software_pool *pool)
{
  pool->is_managed = true;
  pool->heap = &software.host_heap;
}

/* As in CUDA, a device has no access until it is given. */
void software_pool_make_host(struct software_pool *pool)
{
  pool->is_host = true;
  pool->heap = &software.host_heap;
  pool->access[pool->device] = hipMemAccessFlagsProtNone;
}

struct software_pool *software_pool_default(int device, bool is_managed)
{
  struct software_pool **pool = &software.devices[device].default_pool[is_managed];
  if (!*pool && (*pool = software_pool_create(device, hipMemHandleTypeNone)) && is_managed)
    software_pool_make_managed(*pool);
  return *pool;
}

struct software_pool *software_pool_current(int device, bool is_managed)
{
  struct software_pool *pool = software.devices[device].pool[is_managed];
  return pool ? pool : software_pool_default(device, is_managed);
}

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

/* ---- End ------------------------------------------------------------------------------------------------------- */

static void pool_destroy(struct software_pool *pool)
{
  struct software_pool **link = &software.devices[pool->device].pools;
  while (*link != pool) link = &(*link)->next;
  *link = pool->next;
  software_heap_close(&pool->own_heap);
  software_file_close(&pool->imported);
  software_handle_free(&software_pool_handles, pool);
}

void software_pool_destroy_if_unused(struct software_pool *pool)
{
  if (!pool->is_destroyed) return;
  software_pool_trim(pool, 0);
  if (pool->n_allocations == 0 && !pool->idle) pool_destroy(pool);
}

void software_pools_trim(int device, const size_t *keep_bytes)
{
  for (struct software_pool *pool = software.devices[device].pools; pool; pool = pool->next)
    if (pool->idle) software_pool_trim(pool, keep_bytes ? *keep_bytes : pool->release_threshold);
}

void software_pool_free_visible(struct software_operation *operation)
{
  struct software_allocation *allocation = operation->allocation;
  struct software_pool *pool = allocation->pool;
  void *opened = (void *)allocation->by_address.major;
  size_t opened_bytes = allocation->mapped_bytes;
  operation->allocation = NULL;
  software_allocation_invalidate(allocation);
  if (opened_bytes > 0) munmap(opened, opened_bytes);
  if (opened_bytes > 0) pool->n_allocations--;
  software_marker_finish(operation->marker);
  software_pool_destroy_if_unused(pool);
}

/* ---- Reset ----------------------------------------------------------------------------------------------------- */

void software_pools_reset(int device)
{
  struct software_device *owner = &software.devices[device];
  for (int is_managed = 0; is_managed < 2; is_managed++)
    owner->default_pool[is_managed] = owner->pool[is_managed] = NULL;
  owner->graph_pool = NULL;
  struct software_pool *next = owner->pools;
  while (next) {
    struct software_pool *pool = next;
    next = pool->next;
    pool->handle.live = false;
    pool->is_destroyed = true;
    software_pool_destroy_if_unused(pool);
  }
}
