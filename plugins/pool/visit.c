/* SPDX-License-Identifier: MIT */
/* visit.c: shows what the pool holds, for introspection: all blocks, what spans have committed, and the chunks of a block. */
#include "allocate.h"

static void pool_visit_spans(const struct pool *pool, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                             void *closure)
{
  for (const struct key_tree_node *span = NULL; (span = spans_next(&pool->spans, span));) {
    uint64_t start, end = 0;
    while (span_next_run(pool, span, &start, &end))
      visitor(closure, &(struct hipmm_extent){.ptr = (const void *)(uintptr_t)start,
                                              .bytes = end - start,
                                              .state = HIPMM_EXTENT_LIVE,
                                              .flags = HIPMM_EXTENT_BARRIER});
  }
}

/* No thread uses its cache meanwhile. */
enum hipmm_status pool_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                             void *closure)
{
  struct pool *pool = self;
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (status) return status;
  caches_pause(&pool->caches, &pool->arena.heap);
  arena_visit_blocks(&pool->arena, visitor, closure);
  pool_visit_spans(pool, visitor, closure);
  caches_resume(&pool->caches);
  biased_lock_release(&pool->arena.lock);
  return HIPMM_OK;
}

static int pool_show_chunk(const struct chunks *chunks, uint32_t id, uint64_t address,
                           int (*visitor)(void *closure, const struct hipmm_chunk *chunk), void *closure)
{
  const struct chunk *chunk = chunk_of(chunks, id);
  return visitor(closure, &(struct hipmm_chunk){chunk->is_away ? NULL : chunk->handle, (const void *)(uintptr_t)address,
                                                chunk_bytes(chunks, id)});
}

static enum hipmm_status pool_visit_all_chunks(struct pool *pool,
                                               int (*visitor)(void *closure, const struct hipmm_chunk *chunk),
                                               void *closure)
{
  const struct chunks *chunks = &pool->arena.backing.granules.chunks;
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (status) return status;
  for (uint32_t id = 1; id < chunks->count; id++)
    if (chunk_of(chunks, id)->current) pool_show_chunk(chunks, id, chunk_address(chunks, id), visitor, closure);
  biased_lock_release(&pool->arena.lock);
  return HIPMM_OK;
}

/* The chunks of a live block are mapped without a gap. A block that is exported stays marked until it is freed. It has chunks
 * of its own (whole_bytes), so that it is in no cache of a thread, nor of a local arena. */
enum hipmm_status pool_visit_chunks(void *self, const void *ptr,
                                    int (*visitor)(void *closure, const struct hipmm_chunk *chunk), void *closure)
{
  struct pool *pool = self;
  const struct chunks *chunks = &pool->arena.backing.granules.chunks;
  struct hipmm_location location = {.struct_size = sizeof location};
  bool is_exported = false;
  if (!pool->arena.backing.ops->moves) return HIPMM_OK;
  if (!ptr) return pool_visit_all_chunks(pool, visitor, closure);
  enum hipmm_status status = arena_locate(self, ptr, &location);
  if (!status) status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (status) return status;
  uint64_t at = (uintptr_t)ptr, end = at + location.usable_bytes, begin;
  for (uint32_t id; (id = chunks_next(chunks, &at, end, &begin));)
    if (pool_show_chunk(chunks, id, begin, visitor, closure)) is_exported = true;
  uint32_t exported = is_exported ? block_at(&pool->arena.heap.blocks, ptr, 0) : BLOCK_NONE;
  if (exported && !block_of(&pool->arena.heap.blocks, exported)->exported)
    block_of(&pool->arena.heap.blocks, exported)->exported = BLOCK_EXPORTED;
  biased_lock_release(&pool->arena.lock);
  return HIPMM_OK;
}
