/* SPDX-License-Identifier: MIT */
/* pool_order.c: allocation from pools and free to pools, in the order of streams. Called by pool_api.c, and by memory.c
 * where device memory is exhausted.
 *
 * A request takes the smallest idle block that fits and may be reused. The stream that freed a block may reuse it at once;
 * another stream may, if it is ordered after the free by events or the default stream, or when the free has executed. When
 * the device has no other memory left, the stream waits for the free, or the call waits for all frees of the device. An
 * allocation becomes visible, and a free takes effect, when the stream executes it: an operation that touches the memory
 * before or after is a fault. */
#include "pool.h"

bool software_pools_drain(int device)
{
  const size_t nothing = 0;
  bool has_idle = false;
  for (const struct software_pool *pool = software.devices[device].pools; pool; pool = pool->next)
    has_idle = has_idle || pool->idle;
  if (has_idle) software_wait_device(device, software.sequence);
  if (has_idle) software_pools_trim(device, &nothing);
  return has_idle;
}

/* ---- Allocation ------------------------------------------------------------------------------------------------ */

/* Whether the next operation of the queue may use the idle block without waiting for its free. */
static bool pool_order_may_reuse(const struct software_pool *pool, const struct software_pool_block *block,
                                 const struct software_queue *queue)
{
  if (block->queue == queue) return true;
  if (pool->allow_opportunistic && software_pool_block_is_ready(block)) return true;
  return pool->follow_event_dependencies && block->freed && software_order_is_after(queue, block->freed);
}

static struct software_pool_block *pool_order_find_idle(struct software_pool *pool, size_t bytes,
                                                        const struct software_queue *queue)
{
  struct software_pool_block *block = NULL;
  do {
    while ((block = software_pool_next_idle(pool, bytes, block))) {
      if (!pool_order_may_reuse(pool, block, queue)) continue;
      software_pool_cut(pool, block, bytes);
      return block;
    }
  } while (software_pool_merge_idle(pool, bytes));
  return NULL;
}

/* An idle block whose free another stream has not executed yet: `queue` waits for that free. */
static struct software_pool_block *pool_order_reuse_after_wait(struct software_pool *pool, size_t bytes,
                                                               struct software_queue *queue, enum software_call call)
{
  struct software_pool_block *block = software_pool_next_idle(pool, bytes, NULL);
  if (!block || !pool->allow_internal_dependencies) return NULL;
  if (block->queue != queue && !software_pool_block_is_ready(block)) {
    struct software_operation *operation = software_operation_new(SOFTWARE_WAIT, call);
    if (!operation) return NULL;
    operation->marker = software_marker_reference(block->freed);
    if (software_submit(queue, operation) != hipSuccess) return NULL;
  }
  software_pool_cut(pool, block, bytes);
  return block;
}

/* The last resort: waits for the frees of all idle blocks of the device, and frees the blocks. `error` is that of the last
 * try, and is returned where there is nothing to wait for. */
static hipError_t pool_order_allocate_after_drain(struct software_pool *pool, size_t bytes, hipError_t error,
                                                  struct software_pool_block **block_out)
{
  if (!pool->allow_internal_dependencies) return error;
  pool->n_allocations++; /* retains the pool, which another thread may destroy meanwhile */
  if (software_pools_drain(pool->device)) error = software_pool_reserve(pool, bytes, block_out);
  pool->n_allocations--;
  if (error != hipSuccess) software_pool_destroy_if_unused(pool);
  return error;
}

static hipError_t pool_order_find_block(struct software_pool *pool, size_t bytes, struct software_queue *queue,
                                        enum software_call call, struct software_pool_block **block_out)
{
  const size_t nothing = 0;
  size_t rounded = software_align_up(bytes, SOFTWARE_PAGE_BYTES);
  size_t capacity =
      pool->heap == &software.host_heap ? software.config.host_memory_bytes : software.config.memory_bytes;
  if (rounded == 0 || rounded > capacity || rounded > pool->max_bytes) return hipErrorOutOfMemory;
  *block_out = pool_order_find_idle(pool, rounded, queue);
  if (*block_out || software_pool_reserve(pool, rounded, block_out) == hipSuccess) return hipSuccess;
  software_pools_trim(pool->device, &nothing);
  hipError_t error = software_pool_reserve(pool, rounded, block_out);
  if (error == hipSuccess) return hipSuccess;
  *block_out = pool_order_reuse_after_wait(pool, rounded, queue, call);
  return *block_out ? hipSuccess : pool_order_allocate_after_drain(pool, rounded, error, block_out);
}

/* The bytes that the application requested count as used. */
static void pool_order_count_used(struct software_pool *pool, size_t bytes)
{
  pool->n_allocations++;
  pool->used_bytes += bytes;
  if (pool->used_bytes > pool->used_high) pool->used_high = pool->used_bytes;
}

/* The block is idle from here on; the marker is of its free in the queue, NULL if that has executed. */
static void pool_order_return(struct software_pool *pool, struct software_pool_block *block, size_t bytes,
                              const struct software_queue *queue, struct software_marker *freed)
{
  pool->n_allocations--;
  pool->used_bytes -= bytes;
  block->queue = queue;
  block->freed = freed ? software_marker_reference(freed) : NULL;
  software_pool_add_idle(pool, block);
}

/* The allocation becomes visible when the stream executes this operation. */
static hipError_t pool_order_submit_visible(struct software_allocation *allocation, struct software_queue *queue,
                                            enum software_call call)
{
  struct software_operation *operation = software_operation_new(SOFTWARE_ALLOC_VISIBLE, call);
  if (!operation) return hipErrorOutOfMemory;
  allocation->is_visible = false;
  allocation->references++;
  operation->allocation = allocation;
  return software_submit(queue, operation);
}

hipError_t software_pool_allocate(struct software_pool *pool, size_t bytes, struct software_queue *queue,
                                  enum software_call call, void **pointer_out)
{
  struct software_pool_block *block;
  hipError_t error = pool_order_find_block(pool, bytes, queue, call, &block);
  if (error != hipSuccess) return error;
  pool_order_count_used(pool, bytes);
  struct software_allocation *allocation;
  void *start = (void *)block->by_size.minor;
  error = software_allocation_add(SOFTWARE_POOLED, pool->device, start, bytes, &allocation);
  if (error == hipSuccess) {
    allocation->pool = pool;
    allocation->is_managed = pool->is_managed;
    allocation->is_host = pool->is_host;
    allocation->pool_block = block;
    error = pool_order_submit_visible(allocation, queue, call);
    if (error != hipSuccess) {
      software_allocation_remove(allocation);
      software_allocation_invalidate(allocation);
    }
  }
  if (error == hipSuccess)
    *pointer_out = start;
  else
    pool_order_return(pool, block, bytes, queue, NULL);
  return error;
}

/* ---- Free ------------------------------------------------------------------------------------------------------ */

void software_pool_free(struct software_allocation *allocation)
{
  struct software_pool *pool = allocation->pool;
  struct software_pool_block *block = allocation->pool_block;
  size_t bytes = allocation->by_address.minor;
  software_allocation_remove(allocation);
  software_allocation_invalidate(allocation);
  pool_order_return(pool, block, bytes, NULL, NULL);
  software_pool_destroy_if_unused(pool);
}

void software_pool_forget(struct software_allocation *allocation)
{
  if (!allocation->pool) return;
  allocation->pool->n_allocations--;
  allocation->pool = NULL;
}

static struct software_operation *pool_order_new_free(enum software_call call)
{
  struct software_operation *operation = software_operation_new(SOFTWARE_FREE_VISIBLE, call);
  struct software_marker *marker = operation ? software_marker_new() : NULL;
  if (operation && !marker) software_operation_free(operation);
  if (!marker) return NULL;
  operation->marker = marker;
  return operation;
}

/* The block is idle after the call, and this stream may reuse it at once. The free itself takes effect when the stream
 * executes it. */
hipError_t software_pool_free_async(struct software_allocation *allocation, struct software_queue *queue)
{
  struct software_pool *pool = allocation->pool;
  struct software_pool_block *block = allocation->pool_block;
  size_t bytes = allocation->by_address.minor;
  struct software_operation *operation = pool_order_new_free(SOFTWARE_hipFreeAsync);
  if (!operation) return hipErrorOutOfMemory;
  struct software_marker *freed = software_marker_reference(operation->marker);
  software_allocation_remove(allocation);
  operation->allocation = allocation;
  allocation->references++; /* until the operation is submitted */
  hipError_t error = software_submit(queue, operation);
  if (error != hipSuccess) {
    software_allocation_restore(allocation);
  } else {
    if (block) pool_order_return(pool, block, bytes, queue, freed);
    if (block) software_pool_destroy_if_unused(pool);
    software_allocation_unreference(allocation);
  }
  software_marker_unreference(freed);
  return error;
}
