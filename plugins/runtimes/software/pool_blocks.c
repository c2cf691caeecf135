/* SPDX-License-Identifier: MIT */
/* pool_blocks.c: the blocks of a pool. A chunk is memory that the pool has reserved from a heap. It is cut into blocks,
 * which are allocated or idle; a request takes a part of an idle block, and idle neighbours are merged again. Called by
 * pool.c and pool_order.c, which decide what may be reused. No function here waits or submits.
 *
 * An idle block has a marker, the point in the order of its stream from which on its memory is free. A merged block has one
 * marker too. So two blocks of one stream are merged at once, with the later marker, and blocks of different streams are
 * merged when the frees of both have executed. */
#include "pool.h"
#include <stdlib.h>

/* The key of the tree is the first field. */
static struct software_pool_block *pool_blocks_after(const struct software_pool *pool, uintptr_t bytes, uintptr_t start)
{
  return (struct software_pool_block *)key_tree_at_least(pool->idle, bytes, start);
}

bool software_pool_block_is_ready(const struct software_pool_block *block)
{
  return !block->freed || block->freed->done;
}

struct software_pool_block *software_pool_next_idle(const struct software_pool *pool, size_t bytes,
                                                    const struct software_pool_block *block)
{
  return block ? pool_blocks_after(pool, block->by_size.major, block->by_size.minor + 1)
               : pool_blocks_after(pool, bytes, 0);
}

static void pool_blocks_insert(struct software_pool *pool, struct software_pool_block *block)
{
  block->is_idle = true;
  pool->idle_bytes += block->by_size.major;
  key_tree_insert(&pool->idle, &block->by_size);
}

static void pool_blocks_remove(struct software_pool *pool, struct software_pool_block *block)
{
  block->is_idle = false;
  pool->idle_bytes -= block->by_size.major;
  key_tree_remove(&pool->idle, &block->by_size);
}

/* ---- Chunks ---------------------------------------------------------------------------------------------------- */

hipError_t software_pool_reserve(struct software_pool *pool, size_t bytes, struct software_pool_block **block_out)
{
  if (bytes > pool->max_bytes - pool->reserved_bytes) return hipErrorOutOfMemory;
  struct software_pool_block *block = calloc(1, sizeof *block);
  if (!block) return hipErrorOutOfMemory;
  hipError_t error = software_heap_allocate(pool->heap, bytes, &block->chunk);
  if (error != hipSuccess) {
    free(block);
    return error;
  }
  block->by_size.major = software_block_bytes(block->chunk);
  block->by_size.minor = block->chunk->by_address.major;
  pool->reserved_bytes += block->by_size.major;
  if (pool->reserved_bytes > pool->reserved_high) pool->reserved_high = pool->reserved_bytes;
  *block_out = block;
  return hipSuccess;
}

/* Whether `first`, the first block of its chunk, and all others of the chunk can be released. */
static bool pool_blocks_is_unused(const struct software_pool_block *first)
{
  for (const struct software_pool_block *block = first; block; block = block->next)
    if (!block->is_idle || !software_pool_block_is_ready(block)) return false;
  return true;
}

static void pool_blocks_release(struct software_pool *pool, struct software_pool_block *first)
{
  struct software_block *chunk = first->chunk;
  while (first) {
    struct software_pool_block *block = first;
    first = block->next;
    pool_blocks_remove(pool, block);
    software_marker_unreference(block->freed);
    free(block);
  }
  pool->reserved_bytes -= software_block_bytes(chunk);
  software_heap_free(pool->heap, chunk);
}

/* The blocks are visited by their keys, since a release removes other blocks too. */
void software_pool_trim(struct software_pool *pool, uint64_t keep_bytes)
{
  struct software_pool_block *block = pool_blocks_after(pool, 0, 0);
  while (block && pool->reserved_bytes > keep_bytes) {
    uintptr_t bytes = block->by_size.major, start = block->by_size.minor;
    if (!block->previous && pool_blocks_is_unused(block)) pool_blocks_release(pool, block);
    block = pool_blocks_after(pool, bytes, start + 1);
  }
}

/* ---- Cutting and merging --------------------------------------------------------------------------------------- */

/* The rest stays idle. Without memory for its record, the whole block is taken. */
static void pool_blocks_cut(struct software_pool *pool, struct software_pool_block *block, size_t bytes)
{
  struct software_pool_block *rest = block->by_size.major > bytes ? calloc(1, sizeof *rest) : NULL;
  if (!rest) return;
  rest->chunk = block->chunk;
  rest->by_size = (struct key_tree_node){.major = block->by_size.major - bytes, .minor = block->by_size.minor + bytes};
  rest->queue = block->queue;
  rest->freed = block->freed ? software_marker_reference(block->freed) : NULL;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next) rest->next->previous = rest;
  block->next = rest;
  block->by_size.major = bytes;
  pool_blocks_insert(pool, rest);
}

void software_pool_cut(struct software_pool *pool, struct software_pool_block *block, size_t bytes)
{
  pool_blocks_remove(pool, block);
  pool_blocks_cut(pool, block, bytes);
  software_marker_unreference(block->freed);
  block->freed = NULL;
}

static bool pool_blocks_can_merge(const struct software_pool *pool, const struct software_pool_block *left)
{
  const struct software_pool_block *right = left->next;
  if (!left->is_idle || !right || !right->is_idle) return false;
  if (left->queue && left->queue == right->queue) return true;
  return pool->allow_opportunistic && software_pool_block_is_ready(left) && software_pool_block_is_ready(right);
}

/* Merges an idle block with the idle block to its right. */
static void pool_blocks_merge(struct software_pool *pool, struct software_pool_block *left)
{
  struct software_pool_block *right = left->next;
  bool is_right_later = right->freed && (!left->freed || right->freed->sequence > left->freed->sequence);
  pool_blocks_remove(pool, left);
  pool_blocks_remove(pool, right);
  software_marker_unreference(is_right_later ? left->freed : right->freed);
  if (is_right_later) left->freed = right->freed;
  if (left->queue != right->queue) left->queue = NULL;
  left->by_size.major += right->by_size.major;
  left->next = right->next;
  if (left->next) left->next->previous = left;
  free(right);
  pool_blocks_insert(pool, left);
}

void software_pool_add_idle(struct software_pool *pool, struct software_pool_block *block)
{
  pool_blocks_insert(pool, block);
  if (pool_blocks_can_merge(pool, block)) pool_blocks_merge(pool, block);
  if (block->previous && pool_blocks_can_merge(pool, block->previous)) pool_blocks_merge(pool, block->previous);
}

bool software_pool_merge_idle(struct software_pool *pool, size_t bytes)
{
  bool has_merged = false;
  struct software_pool_block *block = pool->idle_bytes >= bytes ? pool_blocks_after(pool, 0, 0) : NULL;
  while (block) {
    uintptr_t size = block->by_size.major, start = block->by_size.minor;
    while (pool_blocks_can_merge(pool, block)) {
      pool_blocks_merge(pool, block);
      has_merged = true;
    }
    block = pool_blocks_after(pool, size, start + 1);
  }
  return has_merged;
}
