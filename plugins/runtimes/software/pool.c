/* SPDX-License-Identifier: MIT */
/* pool.c: stream-ordered allocation. Called by applications (the calls on pools themselves are in pool_api.c), and by
 * every synchronisation, after which pools give back what they hold above their threshold.
 *
 * A pool keeps blocks whole, as ROCm's does up to release 6: a freed block is idle in the pool, still charged to the
 * device, and serves a later request that is at most an eighth smaller. The stream that freed it may have it at once;
 * another when the free has executed; and, when the device has nothing else left, at the price of waiting in the stream
 * for the free, or in the call for all of the device's frees. An allocation is born, and a free takes effect, when the
 * stream comes to it: who touches the memory before or after makes a fault. */
#include "pool.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct software_handles software_pool_handles = {.object_bytes = sizeof(struct software_pool)};

struct software_pool *software_pool_create(int device, hipMemAllocationHandleType handle_type)
{
  struct software_pool *pool = software_handle_take(&software_pool_handles);
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

/* Managed memory is the host's, so it is charged to no device's capacity. */
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

/* ---- Idle blocks ----------------------------------------------------------------------------------------------- */

static bool pool_block_is_ready(const struct software_pool_block *block)
{
  return !block->freed || block->freed->done;
}

static void pool_add_idle(struct software_pool *pool, struct software_pool_block *block)
{
  block->by_size.major = software_block_bytes(block->block);
  block->by_size.minor = block->block->by_address.major;
  address_tree_insert(&pool->idle, &block->by_size);
}

static void pool_remove_idle(struct software_pool *pool, struct software_pool_block *block)
{
  address_tree_remove(&pool->idle, &block->by_size);
  software_marker_unreference(block->freed);
  block->freed = NULL;
}

static void pool_release(struct software_pool *pool, struct software_pool_block *block)
{
  pool_remove_idle(pool, block);
  pool->reserved_bytes -= software_block_bytes(block->block);
  software_heap_give(pool->heap, block->block);
  free(block);
}

static void pool_drop(struct software_pool *pool)
{
  struct software_pool **link = &software.devices[pool->device].pools;
  while (*link != pool) link = &(*link)->next;
  *link = pool->next;
  software_heap_close(&pool->own_heap);
  if (pool->imported_fd > 0) close(pool->imported_fd);
  software_handle_give(&software_pool_handles, pool);
}

void software_pool_trim(struct software_pool *pool, uint64_t keep_bytes)
{
  struct address_tree_node *next = address_tree_at_least(pool->idle, 0, 0);
  while (next && pool->reserved_bytes > keep_bytes) {
    struct software_pool_block *block = (struct software_pool_block *)next;
    next = address_tree_next(pool->idle, next);
    if (pool_block_is_ready(block)) pool_release(pool, block);
  }
}

/* A destroyed pool goes when all that came from it is back. */
void software_pool_settle(struct software_pool *pool)
{
  if (!pool->is_destroyed) return;
  software_pool_trim(pool, 0);
  if (pool->n_allocations == 0 && !pool->idle) pool_drop(pool);
}

void software_pools_trim(int device, const size_t *keep_bytes)
{
  for (struct software_pool *pool = software.devices[device].pools; pool; pool = pool->next)
    if (pool->idle) software_pool_trim(pool, keep_bytes ? *keep_bytes : pool->release_threshold);
}

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

static struct software_pool_block *pool_take_idle(struct software_pool *pool, size_t bytes,
                                                  const struct software_queue *queue)
{
  size_t largest = bytes + bytes / 8;
  struct address_tree_node *node = address_tree_at_least(pool->idle, bytes, 0);
  for (; node && node->major <= largest; node = address_tree_next(pool->idle, node)) {
    struct software_pool_block *block = (struct software_pool_block *)node;
    bool is_own = block->queue == queue;
    if (!is_own && !(pool->allow_opportunistic && pool_block_is_ready(block))) continue;
    pool_remove_idle(pool, block);
    return block;
  }
  return NULL;
}

static struct software_pool_block *pool_take_fresh(struct software_pool *pool, size_t bytes)
{
  if (bytes > pool->max_bytes - pool->reserved_bytes) return NULL;
  struct software_pool_block *block = calloc(1, sizeof *block);
  if (!block) return NULL;
  block->block = software_heap_take(pool->heap, bytes);
  if (!block->block) {
    free(block);
    return NULL;
  }
  pool->reserved_bytes += software_block_bytes(block->block);
  if (pool->reserved_bytes > pool->reserved_high) pool->reserved_high = pool->reserved_bytes;
  return block;
}

/* The last resort: an idle block whose free another stream has yet to come to; ours waits for it. */
static struct software_pool_block *pool_take_later(struct software_pool *pool, size_t bytes,
                                                   struct software_queue *queue, enum software_call call)
{
  struct address_tree_node *node = address_tree_at_least(pool->idle, bytes, 0);
  if (!node || !pool->allow_internal_dependencies) return NULL;
  struct software_pool_block *block = (struct software_pool_block *)node;
  if (block->queue != queue && !pool_block_is_ready(block)) {
    struct software_operation *operation = software_operation_new(SOFTWARE_WAIT, call);
    if (!operation) return NULL;
    operation->marker = software_marker_reference(block->freed);
    if (software_submit(queue, operation) != hipSuccess) return NULL;
  }
  pool_remove_idle(pool, block);
  return block;
}

/* And after that: all idle blocks of the device, when their frees have executed. */
static struct software_pool_block *pool_take_drained(struct software_pool *pool, size_t bytes)
{
  struct software_pool_block *block = NULL;
  if (!pool->allow_internal_dependencies) return NULL;
  pool->n_allocations++; /* keeps the pool, which another thread may destroy meanwhile */
  if (software_pools_drain(pool->device)) block = pool_take_fresh(pool, bytes);
  pool->n_allocations--;
  if (!block) software_pool_settle(pool);
  return block;
}

static struct software_pool_block *pool_take(struct software_pool *pool, size_t bytes, struct software_queue *queue,
                                             enum software_call call)
{
  const size_t nothing = 0;
  size_t rounded = software_align_up(bytes, SOFTWARE_PAGE_BYTES);
  size_t capacity = pool->is_managed ? software.config.host_memory_bytes : software.config.memory_bytes;
  if (rounded == 0 || rounded > capacity || rounded > pool->max_bytes) return NULL;
  struct software_pool_block *block = pool_take_idle(pool, rounded, queue);
  if (!block) block = pool_take_fresh(pool, rounded);
  if (block) return block;
  software_pools_trim(pool->device, &nothing);
  block = pool_take_fresh(pool, rounded);
  if (!block) block = pool_take_later(pool, rounded, queue, call);
  return block ? block : pool_take_drained(pool, rounded);
}

/* Used are the bytes that the application asked for. */
static void pool_count_used(struct software_pool *pool, size_t bytes)
{
  pool->n_allocations++;
  pool->used_bytes += bytes;
  if (pool->used_bytes > pool->used_high) pool->used_high = pool->used_bytes;
}

static void pool_put(struct software_pool *pool, struct software_pool_block *block, size_t bytes)
{
  pool->n_allocations--;
  pool->used_bytes -= bytes;
  pool_add_idle(pool, block);
}

/* Tells the stream that the allocation is born when it comes here. */
static hipError_t pool_submit_birth(struct software_allocation *allocation, struct software_queue *queue,
                                    enum software_call call)
{
  struct software_operation *operation = software_operation_new(SOFTWARE_BIRTH, call);
  if (!operation) return hipErrorOutOfMemory;
  allocation->born = false;
  allocation->references++;
  operation->allocation = allocation;
  return software_submit(queue, operation);
}

hipError_t software_pool_allocate(struct software_pool *pool, size_t bytes, struct software_queue *queue,
                                  enum software_call call, void **pointer_out)
{
  struct software_pool_block *block = pool_take(pool, bytes, queue, call);
  if (!block) return hipErrorOutOfMemory;
  pool_count_used(pool, bytes);
  struct software_allocation *allocation;
  void *start = (void *)block->block->by_address.major;
  hipError_t error = software_allocation_enter(SOFTWARE_POOLED, pool->device, start, bytes, &allocation);
  if (error == hipSuccess) {
    allocation->pool = pool;
    allocation->pool_block = block;
    error = pool_submit_birth(allocation, queue, call);
    if (error != hipSuccess) {
      software_allocation_close(allocation);
      software_allocation_end(allocation);
    }
  }
  if (error == hipSuccess)
    *pointer_out = start;
  else
    pool_put(pool, block, bytes);
  return error;
}

/* ---- Free ------------------------------------------------------------------------------------------------------ */

void software_pool_bury(struct software_operation *operation)
{
  struct software_allocation *allocation = operation->allocation;
  struct software_pool *pool = allocation->pool;
  void *opened = (void *)allocation->by_address.major;
  size_t opened_bytes = allocation->mapped_bytes;
  operation->allocation = NULL;
  software_allocation_end(allocation);
  if (opened_bytes > 0) munmap(opened, opened_bytes);
  if (opened_bytes > 0) pool->n_allocations--;
  software_marker_finish(operation->marker);
  software_pool_settle(pool);
}

bool software_pool_is_managed(const struct software_allocation *allocation)
{
  return allocation->kind == SOFTWARE_POOLED && allocation->pool && allocation->pool->is_managed;
}

void software_pool_free(struct software_allocation *allocation)
{
  struct software_pool *pool = allocation->pool;
  struct software_pool_block *block = allocation->pool_block;
  size_t bytes = allocation->by_address.minor;
  software_allocation_close(allocation);
  software_allocation_end(allocation);
  block->queue = NULL;
  pool_put(pool, block, bytes);
  software_pool_settle(pool);
}

void software_pool_forget(struct software_allocation *allocation)
{
  if (!allocation->pool) return;
  allocation->pool->n_allocations--;
  allocation->pool = NULL;
}

static struct software_operation *pool_death(enum software_call call)
{
  struct software_operation *operation = software_operation_new(SOFTWARE_DEATH, call);
  struct software_marker *marker = operation ? software_marker_new() : NULL;
  if (operation && !marker) software_operation_free(operation);
  if (!marker) return NULL;
  operation->marker = marker;
  return operation;
}

/* The block is idle from here on, for this stream at once; the free itself takes its place in the stream. */
static hipError_t pool_free_async(struct software_allocation *allocation, struct software_queue *queue)
{
  struct software_pool *pool = allocation->pool;
  struct software_pool_block *block = allocation->pool_block;
  size_t bytes = allocation->by_address.minor;
  struct software_operation *operation = pool_death(SOFTWARE_hipFreeAsync);
  if (!operation) return hipErrorOutOfMemory;
  software_allocation_close(allocation);
  operation->allocation = allocation;
  allocation->references++; /* ours, until it is known that the operation was taken */
  if (block) {
    block->queue = queue;
    block->freed = software_marker_reference(operation->marker);
    pool_put(pool, block, bytes);
  }
  hipError_t error = software_submit(queue, operation);
  if (error != hipSuccess) {
    if (block) pool_remove_idle(pool, block);
    if (block) pool_count_used(pool, bytes);
    software_allocation_reopen(allocation);
    return error;
  }
  software_allocation_unreference(allocation);
  return hipSuccess;
}

/* As HIP: what no pool gave is freed as by hipFree, after the work of its device. */
hipError_t hipFreeAsync(void *pointer, hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_begin(SOFTWARE_hipFreeAsync);
  if (error == hipSuccess && !software.config.memory_pools) error = hipErrorNotSupported;
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  struct software_allocation *allocation = software_allocation_at(pointer);
  if (error == hipSuccess && !allocation) error = hipErrorInvalidValue;
  if (error == hipSuccess)
    error = allocation->pool ? pool_free_async(allocation, queue) : software_free(pointer, SOFTWARE_FREEABLE);
  return software_end(error);
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
    software_pool_settle(pool);
  }
}
