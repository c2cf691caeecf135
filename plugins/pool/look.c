/* SPDX-License-Identifier: MIT */
/* look.c: shows what the pool holds, for introspection: blocks in the order of their addresses in each range or segment.
 * The pool stands still meanwhile. */
#include "serve.h"

struct look {
  struct pool *pool;
  void (*see)(void *closure, const struct hipmm_extent *extent);
  void *closure;
};

static void show(const struct look *look, uint64_t start, uint64_t bytes, uint32_t state, uint32_t stream)
{
  const struct streams *streams = &look->pool->heap.streams;
  struct hipmm_extent extent = {.ptr = (const void *)(uintptr_t)start, .bytes = bytes, .state = state};
  if (stream != STREAM_CLEAN) extent.stream = stream_of(streams, stream)->handle;
  look->see(look->closure, &extent);
}

/* The parts of a free block that have memory. */
static void show_free(const struct look *look, const struct block *block)
{
  uint32_t state = block->stream == STREAM_CLEAN ? HIPMM_EXTENT_FREE : HIPMM_EXTENT_PENDING;
  uint64_t end = block->start + block->bytes, start = block->start, stop;
  while (block->vacant && start < end) {
    stop = ground_first_vacant(&look->pool->ground, start, end);
    if (stop > start) show(look, start, stop - start, state, block->stream);
    start = ground_first_backed(&look->pool->ground, stop, end);
  }
  if (!block->vacant) show(look, start, end - start, state, block->stream);
}

static void show_block(const struct look *look, const struct block *block)
{
  switch (block_state(block)) {
  case BLOCK_FREE: show_free(look, block); break;
  case BLOCK_LIVE: show(look, block->start, block->requested, HIPMM_EXTENT_LIVE, block->stream); break;
  case BLOCK_CACHED: show(look, block->start, block->bytes, HIPMM_EXTENT_CACHED, block->stream); break;
  default: break;
  }
}

static void show_all(const struct look *look)
{
  const struct blocks *blocks = &look->pool->heap.blocks;
  for (uint32_t first = 1; first < blocks->count; first++) {
    const struct block *block = block_of(blocks, first);
    if (block_state(block) == BLOCK_UNUSED || block->before) continue; /* no region begins here */
    for (uint32_t id = first; id; id = block_of(blocks, id)->after) show_block(look, block_of(blocks, id));
  }
}

enum hipmm_status pool_visit(void *self, void (*see)(void *closure, const struct hipmm_extent *extent), void *closure)
{
  struct look look = {.pool = self, .see = see, .closure = closure};
  pthread_mutex_lock(&look.pool->lock);
  caches_stop(&look.pool->caches, &look.pool->heap);
  show_all(&look);
  caches_go_on(&look.pool->caches);
  pthread_mutex_unlock(&look.pool->lock);
  return HIPMM_OK;
}
