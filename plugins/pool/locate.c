/* SPDX-License-Identifier: MIT */
/* locate.c: the ops that find a block. What the pool does not know may be in a heap of a thread. */
#include "allocate.h"

enum hipmm_status pool_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct pool *pool = self;
  void *arena = thread_heaps_arena(&pool->heaps);
  uint32_t id = block_at(&pool->heap.blocks, ptr, 0);
  if (!id) return arena ? thread_heaps_ops()->find(arena, ptr, block_out) : pool_refuse_pointer(pool, ptr);
  *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, block_of(&pool->heap.blocks, id)->requested};
  return HIPMM_OK;
}

/* Mapped memory is no block of the upstream. */
int pool_covers(void *self, const void *ptr)
{
  struct pool *pool = self;
  if (pool->backing.ops->moves || biased_lock_enter(&pool->lock, pool->services)) return 0;
  bool covers = segments_contain(&pool->backing.segments, ptr);
  biased_lock_release(&pool->lock);
  return covers;
}

enum hipmm_status pool_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  struct pool *pool = self;
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  uint32_t id = block_at(&pool->heap.blocks, ptr, 0);
  if (id) {
    const struct block *block = block_of(&pool->heap.blocks, id);
    location_out->usable_bytes = block->bytes;
    location_out->stream = block->handle;
    location_out->has_stream = 1;
  }
  biased_lock_release(&pool->lock);
  if (id) return HIPMM_OK;
  void *arena = thread_heaps_arena(&pool->heaps);
  return arena ? thread_heaps_ops()->locate(arena, ptr, location_out) : pool_refuse_pointer(pool, ptr);
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
  const struct chunks *chunks = &pool->backing.granules.chunks;
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  for (uint32_t id = 1; id < chunks->count; id++)
    if (chunk_of(chunks, id)->current) pool_show_chunk(chunks, id, chunk_address(chunks, id), visitor, closure);
  biased_lock_release(&pool->lock);
  return HIPMM_OK;
}

/* The chunks of a live block are mapped without a gap. A block that is exported stays marked until it is freed. It has chunks
 * of its own (whole_bytes), so that it is in no cache of a thread, nor a part of a block that was lent to a heap. */
enum hipmm_status pool_visit_chunks(void *self, const void *ptr,
                                    int (*visitor)(void *closure, const struct hipmm_chunk *chunk), void *closure)
{
  struct pool *pool = self;
  const struct chunks *chunks = &pool->backing.granules.chunks;
  struct hipmm_location location = {.struct_size = sizeof location};
  bool is_exported = false;
  if (!pool->backing.ops->moves) return HIPMM_OK;
  if (!ptr) return pool_visit_all_chunks(pool, visitor, closure);
  enum hipmm_status status = pool_locate(self, ptr, &location);
  if (!status) status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  uint64_t at = (uintptr_t)ptr, end = at + location.usable_bytes, begin;
  for (uint32_t id; (id = chunks_next(chunks, &at, end, &begin));)
    if (pool_show_chunk(chunks, id, begin, visitor, closure)) is_exported = true;
  uint32_t exported = is_exported ? block_at(&pool->heap.blocks, ptr, 0) : BLOCK_NONE;
  if (exported && !block_of(&pool->heap.blocks, exported)->exported)
    block_of(&pool->heap.blocks, exported)->exported = BLOCK_EXPORTED;
  biased_lock_release(&pool->lock);
  return HIPMM_OK;
}
