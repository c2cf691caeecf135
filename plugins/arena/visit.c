/* SPDX-License-Identifier: MIT */
/* visit.c: sums over an arena, its values, and a visit of every extent of its memory. Changes nothing. */
#include "arena.h"

/* ---- Sums ---- */

static void arena_add_local(const struct arena *arena, struct local *local, struct locals_totals *totals)
{
  local_acquire(local, &arena->heap.blocks);
  uint64_t largest = free_index_largest(&local->ready, &arena->heap.blocks);
  if (largest > totals->largest) totals->largest = largest;
  totals->live_count += local->live_count;
  totals->live_bytes += local->live_bytes;
  totals->bytes += local->bytes;
  totals->free_bytes += free_index_bytes(&local->ready, &arena->heap.blocks, UINT64_MAX);
  totals->free_bytes += local->quick_bytes + local->pending_bytes;
  totals->n_superblocks += local->n_superblocks;
  biased_lock_release(&local->lock);
}

struct locals_totals arena_totals(const struct arena *arena)
{
  struct locals_totals totals = {0};
  for (uint32_t number = 1; number < arena->n_locals; number++)
    arena_add_local(arena, arena_local(arena, number), &totals);
  return totals;
}

int64_t arena_live_count(const struct arena *arena, int64_t *bytes_out)
{
  struct locals_totals totals = arena_totals(arena);
  *bytes_out = totals.live_bytes + (int64_t)arena->heap.requested_bytes;
  return totals.live_count + arena->heap.blocks.live;
}

uint64_t arena_free_bytes(const struct arena *arena)
{
  return arena_totals(arena).free_bytes + backing_free_bytes(&arena->backing, &arena->heap);
}

uint64_t arena_largest_free(const struct arena *arena)
{
  uint64_t in_locals = arena_totals(arena).largest, in_heap = heap_largest_free(&arena->heap);
  return in_locals > in_heap ? in_locals : in_heap;
}

uint64_t arena_metadata_bytes(const struct arena *arena)
{
  uint64_t locals_bytes =
      (arena->n_locals - 1) * sizeof(struct local) + arena->heap.streams.count * sizeof *arena->locals->first;
  return sizeof *arena + heap_metadata_bytes(&arena->heap) + (arena->locals ? locals_bytes : 0) +
         arena->backing.segments.count * sizeof(struct segment);
}

/* ---- Extents ---- */

struct visit {
  const struct arena *arena;
  void (*visitor)(void *closure, const struct hipmm_extent *extent);
  void *closure;
  uint32_t barrier; /* HIPMM_EXTENT_BARRIER if the next extent cannot merge with the last one; else 0 */
};

static void visit_show(struct visit *visit, uint64_t start, uint64_t bytes, struct hipmm_extent extent, uint32_t stream)
{
  const struct streams *streams = &visit->arena->heap.streams;
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
  uint64_t granule_bytes = visit->arena->backing.ops->moves ? visit->arena->heap.blocks.granule_bytes : UINT64_MAX;
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
  const struct backing *backing = &visit->arena->backing;
  uint64_t end = block->start + block->bytes, start = block->start, stop;
  while (block->uncommitted && start < end) {
    stop = backing->ops->first(backing->self, start, end, false);
    visit_show_committed(visit, block, start, stop);
    if (stop < end) visit->barrier = HIPMM_EXTENT_BARRIER;
    start = backing->ops->first(backing->self, stop, end, true);
  }
  if (!block->uncommitted) visit_show_committed(visit, block, start, end);
}

/* A block of a local arena, which is of a stream, or of none. */
static void visit_show_local(struct visit *visit, const struct block *block, uint32_t stream)
{
  enum block_state state = block_state(block);
  const struct hipmm_extent live = {.state = HIPMM_EXTENT_LIVE, .stream = block->handle};
  struct hipmm_extent free = {.state = stream == STREAM_READY ? HIPMM_EXTENT_FREE : HIPMM_EXTENT_PENDING};
  if (state == BLOCK_QUICK) free.state = HIPMM_EXTENT_CACHED;
  if (state == BLOCK_LIVE || state == BLOCK_CACHED)
    visit_show(visit, block->start, block->requested, live, STREAM_READY);
  else
    visit_show(visit, block->start, block->bytes, free, state == BLOCK_PENDING ? block->stream : stream);
}

static void visit_show_superblock(struct visit *visit, const struct block *superblock)
{
  const struct heap *heap = &visit->arena->heap;
  struct local *local = arena_local(visit->arena, superblock->arena);
  local_acquire(local, &heap->blocks);
  visit->barrier = HIPMM_EXTENT_BARRIER;
  for (uint32_t id = superblock->first; id; id = heap_block(heap, id)->after)
    visit_show_local(visit, heap_block(heap, id), local->stream);
  visit->barrier = HIPMM_EXTENT_BARRIER;
  biased_lock_release(&local->lock);
}

static void visit_show_block(struct visit *visit, const struct block *block)
{
  const struct hipmm_extent live = {.state = HIPMM_EXTENT_LIVE, .stream = block->handle};
  const struct hipmm_extent cached = {.state = HIPMM_EXTENT_CACHED};
  switch (block_state(block)) {
  case BLOCK_FREE: visit_show_free(visit, block); break;
  case BLOCK_LIVE: visit_show(visit, block->start, block->requested, live, STREAM_READY); break;
  case BLOCK_CACHED: visit_show(visit, block->start, block->bytes, cached, block->stream); break;
  case BLOCK_ON_LOAN: visit_show_superblock(visit, block); break;
  default: break;
  }
}

/* Free blocks merge within a superblock, and outside of superblocks. A barrier says that two extents cannot. */
void arena_visit_blocks(const struct arena *arena, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                        void *closure)
{
  struct visit visit = {.arena = arena, .visitor = visitor, .closure = closure};
  const struct heap *heap = &arena->heap;
  for (uint32_t first = BLOCK_NONE; (first = heap_next_region(heap, first));) {
    visit.barrier = HIPMM_EXTENT_BARRIER;
    for (uint32_t id = first; id; id = heap_block(heap, id)->after) visit_show_block(&visit, heap_block(heap, id));
  }
}

/* ---- Values ---- */

enum hipmm_status arena_perform(void *self, size_t index, int64_t *values_out)
{
  struct arena *arena = self;
  (void)index; /* there is one action */
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  for (size_t i = 0; i < arena->type->n_values; i++) values_out[i] = arena->type->value(arena, i);
  arena->backing.held->peak_bytes = arena->backing.held->bytes;
  biased_lock_release(&arena->lock);
  return HIPMM_OK;
}

enum hipmm_status arena_query(void *self, size_t index, int64_t *value_out)
{
  struct arena *arena = self;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  *value_out = arena->type->value(arena, index);
  biased_lock_release(&arena->lock);
  return HIPMM_OK;
}
