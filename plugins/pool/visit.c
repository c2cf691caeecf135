/* SPDX-License-Identifier: MIT */
/* visit.c: shows what the pool holds, for introspection: first what the heaps of threads hold, then the other blocks of
 * each range or segment in the order of addresses, then what spans have committed. Holds the pool's lock and pauses the caches meanwhile. */
#include "allocate.h"

struct visit {
  struct pool *pool;
  void (*visitor)(void *closure, const struct hipmm_extent *extent);
  void *closure;
  uint32_t barrier; /* HIPMM_EXTENT_BARRIER if the next extent cannot merge with the last one; else 0 */
};

static void visit_show(struct visit *visit, uint64_t start, uint64_t bytes, struct hipmm_extent extent, uint32_t stream)
{
  const struct streams *streams = &visit->pool->heap.streams;
  if (!bytes) return;
  extent.ptr = (const void *)(uintptr_t)start;
  extent.bytes = bytes;
  extent.flags |= visit->barrier;
  if (stream != STREAM_READY) extent.stream = stream_of(streams, stream)->handle;
  visit->visitor(visit->closure, &extent);
  visit->barrier = 0;
}

/* Ready memory: its whole granules can be mapped elsewhere. */
static void visit_show_ready(struct visit *visit, uint64_t start, uint64_t end)
{
  const struct hipmm_extent fixed = {.state = HIPMM_EXTENT_FREE};
  const struct hipmm_extent movable = {.state = HIPMM_EXTENT_FREE, .flags = HIPMM_EXTENT_MOVABLE};
  uint64_t granule_bytes = visit->pool->backing.ops->moves ? visit->pool->heap.blocks.granule_bytes : UINT64_MAX;
  uint64_t first = end - start < granule_bytes ? end : sizes_round_up(start, granule_bytes);
  uint64_t last = end / granule_bytes * granule_bytes;
  if (first >= last) first = last = end;
  visit_show(visit, start, first - start, fixed, STREAM_READY);
  visit_show(visit, first, last - first, movable, STREAM_READY);
  visit_show(visit, last, end - last, fixed, STREAM_READY);
}

static void visit_show_committed(struct visit *visit, const struct block *block, uint64_t start, uint64_t end)
{
  const struct hipmm_extent pending = {.state = HIPMM_EXTENT_PENDING};
  if (block->stream == STREAM_READY)
    visit_show_ready(visit, start, end);
  else
    visit_show(visit, start, end - start, pending, block->stream);
}

/* The committed parts of a free block. */
static void visit_show_free(struct visit *visit, const struct block *block)
{
  const struct granules *granules = &visit->pool->backing.granules;
  uint64_t end = block->start + block->bytes, start = block->start, stop;
  while (block->uncommitted && start < end) {
    stop = granules_first(granules, start, end, false);
    visit_show_committed(visit, block, start, stop);
    if (stop < end) visit->barrier = HIPMM_EXTENT_BARRIER;
    start = granules_first(granules, stop, end, true);
  }
  if (!block->uncommitted) visit_show_committed(visit, block, start, end);
}

static void visit_show_block(struct visit *visit, const struct block *block)
{
  const struct hipmm_extent live = {.state = HIPMM_EXTENT_LIVE, .stream = block->handle};
  const struct hipmm_extent cached = {.state = HIPMM_EXTENT_CACHED};
  switch (block_state(block)) {
  case BLOCK_FREE: visit_show_free(visit, block); break;
  case BLOCK_LIVE: visit_show(visit, block->start, block->requested, live, STREAM_READY); break;
  case BLOCK_CACHED: visit_show(visit, block->start, block->bytes, cached, block->stream); break;
  default: break;
  }
}

static void visit_show_all(struct visit *visit)
{
  const struct heap *heap = &visit->pool->heap;
  for (uint32_t first = BLOCK_NONE; (first = heap_next_region(heap, first));) {
    visit->barrier = HIPMM_EXTENT_BARRIER;
    for (uint32_t id = first; id; id = heap_block(heap, id)->after) visit_show_block(visit, heap_block(heap, id));
  }
}

static void visit_show_spans(struct visit *visit)
{
  const struct hipmm_extent live = {.state = HIPMM_EXTENT_LIVE};
  const struct spans *spans = &visit->pool->spans;
  for (uint32_t i = 0; i < spans->n; i++) {
    uint64_t start, end = spans->items[i].start;
    while (span_next_run(visit->pool, &spans->items[i], &start, &end)) {
      visit->barrier = HIPMM_EXTENT_BARRIER;
      visit_show(visit, start, end - start, live, STREAM_READY);
    }
  }
}

enum hipmm_status pool_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                             void *closure)
{
  struct visit visit = {.pool = self, .visitor = visitor, .closure = closure};
  void *arena = thread_heaps_arena(&visit.pool->heaps);
  enum hipmm_status status = arena ? thread_heaps_ops()->visit(arena, visitor, closure) : HIPMM_OK;
  if (!status) status = biased_lock_enter(&visit.pool->lock, visit.pool->services);
  if (status) return status;
  caches_pause(&visit.pool->caches, &visit.pool->heap);
  visit_show_all(&visit);
  visit_show_spans(&visit);
  caches_resume(&visit.pool->caches);
  biased_lock_release(&visit.pool->lock);
  return HIPMM_OK;
}
