/* SPDX-License-Identifier: MIT */
/* visit.c: shows what the pool holds, for introspection: blocks in the order of their addresses in each range or
 * segment. The pool stands still meanwhile. */
#include "allocate.h"

struct look {
  struct pool *pool;
  void (*see)(void *closure, const struct hipmm_extent *extent);
  void *closure;
  uint32_t apart; /* HIPMM_EXTENT_BARRIER if what comes next is; else 0 */
};

static void pool_visit_show(struct look *look, uint64_t start, uint64_t bytes, struct hipmm_extent extent,
                            uint32_t stream)
{
  const struct streams *streams = &look->pool->heap.streams;
  if (!bytes) return;
  extent.ptr = (const void *)(uintptr_t)start;
  extent.bytes = bytes;
  extent.flags |= look->apart;
  if (stream != STREAM_CLEAN) extent.stream = stream_of(streams, stream)->handle;
  look->see(look->closure, &extent);
  look->apart = 0;
}

/* Memory that nobody uses: its whole granules can be put under other addresses. */
static void pool_visit_show_clean(struct look *look, uint64_t start, uint64_t end)
{
  const struct hipmm_extent fixed = {.state = HIPMM_EXTENT_FREE};
  const struct hipmm_extent movable = {.state = HIPMM_EXTENT_FREE, .flags = HIPMM_EXTENT_MOVABLE};
  uint64_t granule_bytes = look->pool->ground.mapped ? look->pool->heap.blocks.granule_bytes : UINT64_MAX;
  uint64_t first = end - start < granule_bytes ? end : sizes_round_up(start, granule_bytes);
  uint64_t last = end / granule_bytes * granule_bytes;
  if (first >= last) first = last = end;
  pool_visit_show(look, start, first - start, fixed, STREAM_CLEAN);
  pool_visit_show(look, first, last - first, movable, STREAM_CLEAN);
  pool_visit_show(look, last, end - last, fixed, STREAM_CLEAN);
}

static void pool_visit_show_backed(struct look *look, const struct block *block, uint64_t start, uint64_t end)
{
  const struct hipmm_extent pending = {.state = HIPMM_EXTENT_PENDING};
  if (block->stream == STREAM_CLEAN)
    pool_visit_show_clean(look, start, end);
  else
    pool_visit_show(look, start, end - start, pending, block->stream);
}

/* The parts of a free block that have memory. */
static void pool_visit_show_free(struct look *look, const struct block *block)
{
  uint64_t end = block->start + block->bytes, start = block->start, stop;
  while (block->vacant && start < end) {
    stop = ground_first_vacant(&look->pool->ground, start, end);
    pool_visit_show_backed(look, block, start, stop);
    if (stop < end) look->apart = HIPMM_EXTENT_BARRIER;
    start = ground_first_backed(&look->pool->ground, stop, end);
  }
  if (!block->vacant) pool_visit_show_backed(look, block, start, end);
}

static void pool_visit_show_block(struct look *look, const struct block *block)
{
  const struct hipmm_extent live = {.state = HIPMM_EXTENT_LIVE}, cached = {.state = HIPMM_EXTENT_CACHED};
  switch (block_state(block)) {
  case BLOCK_FREE: pool_visit_show_free(look, block); break;
  case BLOCK_LIVE: pool_visit_show(look, block->start, block->requested, live, block->stream); break;
  case BLOCK_CACHED: pool_visit_show(look, block->start, block->bytes, cached, block->stream); break;
  default: break;
  }
}

static void pool_visit_show_all(struct look *look)
{
  const struct blocks *blocks = &look->pool->heap.blocks;
  for (uint32_t first = 1; first < blocks->count; first++) {
    const struct block *block = block_of(blocks, first);
    if (block_state(block) == BLOCK_UNUSED || block->before) continue; /* no region begins here */
    look->apart = HIPMM_EXTENT_BARRIER;
    for (uint32_t id = first; id; id = block_of(blocks, id)->after) pool_visit_show_block(look, block_of(blocks, id));
  }
}

enum hipmm_status pool_visit(void *self, void (*see)(void *closure, const struct hipmm_extent *extent), void *closure)
{
  struct look look = {.pool = self, .see = see, .closure = closure};
  enum hipmm_status status = biased_lock_enter(&look.pool->lock, look.pool->services);
  if (status) return status;
  caches_stop(&look.pool->caches, &look.pool->heap);
  pool_visit_show_all(&look);
  caches_go_on(&look.pool->caches);
  biased_lock_release(&look.pool->lock);
  return HIPMM_OK;
}
