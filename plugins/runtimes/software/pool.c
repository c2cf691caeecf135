/* SPDX-License-Identifier: MIT */
/* pool.c: a stream-ordered pool and its idle blocks. Called by pool_order.c (allocation and free), by the calls on pools
 * (pool_api.c, pool_attribute.c, pool_share.c), by execute.c, and by every synchronisation, after which pools free what
 * they hold above their threshold.
 *
 * A pool never splits a block, like ROCm's pools up to release 6: a freed block is idle in the pool, still charged to the
 * device. It is freed to the heap only after its stream-ordered free has executed. No function here waits or submits. */
#include "pool.h"
#include <stdlib.h>
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

struct software_pool *software_pool_default(int device)
{
  struct software_device *owner = &software.devices[device];
  if (!owner->default_pool) owner->default_pool = software_pool_create(device, hipMemHandleTypeNone);
  return owner->default_pool;
}

struct software_pool *software_pool_current(int device)
{
  struct software_pool *pool = software.devices[device].pool;
  return pool ? pool : software_pool_default(device);
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

/* ---- Idle blocks ----------------------------------------------------------------------------------------------- */

bool software_pool_block_is_ready(const struct software_pool_block *block)
{
  return !block->freed || block->freed->done;
}

void software_pool_add_idle(struct software_pool *pool, struct software_pool_block *block)
{
  block->by_size.major = software_block_bytes(block->block);
  block->by_size.minor = block->block->by_address.major;
  address_tree_insert(&pool->idle, &block->by_size);
}

void software_pool_remove_idle(struct software_pool *pool, struct software_pool_block *block)
{
  address_tree_remove(&pool->idle, &block->by_size);
  software_marker_unreference(block->freed);
  block->freed = NULL;
}

static void pool_release(struct software_pool *pool, struct software_pool_block *block)
{
  software_pool_remove_idle(pool, block);
  pool->reserved_bytes -= software_block_bytes(block->block);
  software_heap_free(pool->heap, block->block);
  free(block);
}

static void pool_destroy(struct software_pool *pool)
{
  struct software_pool **link = &software.devices[pool->device].pools;
  while (*link != pool) link = &(*link)->next;
  *link = pool->next;
  software_heap_close(&pool->own_heap);
  if (pool->imported_fd > 0) close(pool->imported_fd);
  software_handle_free(&software_pool_handles, pool);
}

void software_pool_trim(struct software_pool *pool, uint64_t keep_bytes)
{
  struct address_tree_node *next = address_tree_at_least(pool->idle, 0, 0);
  while (next && pool->reserved_bytes > keep_bytes) {
    struct software_pool_block *block = (struct software_pool_block *)next;
    next = address_tree_next(pool->idle, next);
    if (software_pool_block_is_ready(block)) pool_release(pool, block);
  }
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
  owner->default_pool = NULL;
  owner->pool = NULL;
  struct software_pool *next = owner->pools;
  while (next) {
    struct software_pool *pool = next;
    next = pool->next;
    pool->handle.live = false;
    pool->is_destroyed = true;
    software_pool_destroy_if_unused(pool);
  }
}
