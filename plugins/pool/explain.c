/* SPDX-License-Identifier: MIT */
/* explain.c: why an allocation failed, in numbers. By then the pool has done what it could: all streams were waited
 * for, what is free was merged, idle memory was given back and asked for anew. So what is told is what the most would
 * be that could be had, and what stands in the way of more. Called once for each failure, on no other path. */
#include "allocate.h"
#include "idle.h"

/* What a request could have of the memory that is held. */
static uint64_t explain_available_bytes(const struct pool *pool)
{
  const struct heap *heap = &pool->heap;
  uint64_t bytes = 0;
  if (!pool->backing.mapped) return heap_largest_free(heap);
  for (uint32_t id = 1; id < heap->blocks.count; id++) {
    const struct block *block = block_of(&heap->blocks, id);
    if (block_state(block) == BLOCK_FREE) bytes += idle_bytes_in(&pool->backing.granules.chunks, block);
  }
  return bytes;
}

/* What the maximum allows beyond what is held. */
static uint64_t explain_headroom(const struct backing *backing)
{
  return sizes_headroom(backing_maximum_bytes(backing), backing_bytes(backing));
}

static enum hipmm_status explain_maximum(const struct pool *pool, const struct request *request)
{
  const struct hipmm_services *services = pool->services;
  uint64_t headroom = explain_headroom(&pool->backing), available = explain_available_bytes(pool);
  /* A segment of its own does not join what is free elsewhere. */
  uint64_t most = pool->backing.mapped ? available + headroom : available > headroom ? available : headroom;
  enum hipmm_status status =
      services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                       "cannot allocate {0:bytes}: maximum_size {1:bytes} is reached, with {2:bytes} of it free",
                       request->requested, backing_maximum_bytes(&pool->backing), pool_free_bytes(pool) + headroom);
  return services->explain(services, status,
                           pool->backing.mapped
                               ? "all streams were waited for; {0:bytes} are held, {1:bytes} of it in idle pieces that "
                                 "can be put together, {2:bytes} more are allowed: {3:bytes} can be had now"
                               : "all streams were waited for and what is free was merged; {0:bytes} are held, "
                                 "{1:bytes} of it free in one piece, {2:bytes} more are allowed: {3:bytes} can "
                                 "be had now",
                           backing_bytes(&pool->backing), available, headroom, most);
}

static enum hipmm_status explain_upstream(const struct pool *pool, enum hipmm_status status,
                                          const struct request *request)
{
  return pool->services->explain(
      pool->services, status,
      pool->backing.mapped
          ? "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it free, {3:bytes} in idle pieces that can be "
            "put together now that all streams were waited for, and the upstream has not enough more"
          : "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it free, {3:bytes} in one piece now that all "
            "streams were waited for and what is free was merged, and the upstream has not enough more",
      request->requested, backing_bytes(&pool->backing), pool_free_bytes(pool), explain_available_bytes(pool));
}

enum hipmm_status explain_exhausted_records(const struct pool *pool, const struct request *request)
{
  const struct blocks *blocks = &pool->heap.blocks;
  const struct hipmm_services *services = pool->services;
  enum hipmm_status status =
      services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                       "cannot allocate {0:bytes}: {1} blocks are allocated, and with the free ones between them the "
                       "pool has records for {2} and no more; free some, or allocate fewer and larger blocks",
                       request->requested, blocks->live, blocks->most - 1);
  return services->explain(services, status, "{0:bytes} are held, {1:bytes} of it free", backing_bytes(&pool->backing),
                           pool_free_bytes(pool), 0, 0);
}

enum hipmm_status explain_failure(const struct pool *pool, enum hipmm_status status, const struct request *request)
{
  if (status == HIPMM_E_LIMIT &&
      (pool->backing.mapped || request_fit_bytes(request) > explain_headroom(&pool->backing)))
    return explain_maximum(pool, request);
  return hipmm_is_out_of_memory(status) ? explain_upstream(pool, status, request) : status;
}
