/* SPDX-License-Identifier: MIT */
/* visit.c: the values of an arena, and a visit of every extent of its memory in the order of addresses. Changes
 * nothing. */
#include "arena.h"

/* Sums over all local arenas. */
struct totals {
  int64_t live_count, live_bytes;
  uint64_t bytes, largest;
  uint32_t n_superblocks;
};

static struct totals arena_visit_totals_of_locals(const struct arena *arena)
{
  struct totals totals = {0};
  for (uint32_t number = 1; number < arena->n_locals; number++) {
    struct local *local = arena_local(arena, number);
    local_acquire(local, &arena->heap.blocks);
    uint64_t largest = free_index_largest(&local->ready, &arena->heap.blocks);
    if (largest > totals.largest) totals.largest = largest;
    totals.live_count += local->live_count;
    totals.live_bytes += local->live_bytes;
    totals.bytes += local->bytes;
    totals.n_superblocks += local->n_superblocks;
    biased_lock_release(&local->lock);
  }
  return totals;
}

int64_t arena_live_count(const struct arena *arena, int64_t *bytes_out)
{
  struct totals totals = arena_visit_totals_of_locals(arena);
  *bytes_out = totals.live_bytes + arena->large_bytes;
  return totals.live_count + arena->large_count;
}

/* ---- Extents ---- */

/* If it is free, work of `stream` may still use it. */
static struct hipmm_extent arena_visit_extent_of(const struct arena *arena, const struct block *block, uint32_t stream)
{
  struct hipmm_extent extent = {.ptr = (const void *)(uintptr_t)block->start, .bytes = block->bytes};
  enum block_state state = block_state(block);
  if (state == BLOCK_LIVE || state == BLOCK_CACHED) {
    extent.bytes = block->requested;
    extent.state = HIPMM_EXTENT_LIVE;
    extent.stream = block->handle;
    return extent;
  }
  extent.state = stream == STREAM_READY ? HIPMM_EXTENT_FREE : HIPMM_EXTENT_PENDING;
  if (state == BLOCK_QUICK) extent.state = HIPMM_EXTENT_CACHED;
  if (stream != STREAM_READY) extent.stream = stream_of(&arena->heap.streams, stream)->handle;
  return extent;
}

static void arena_visit_superblock(const struct arena *arena, const struct block *superblock,
                                   void (*visitor)(void *, const struct hipmm_extent *), void *closure)
{
  struct local *local = arena_local(arena, superblock->arena);
  local_acquire(local, &arena->heap.blocks);
  for (uint32_t id = superblock->first; id; id = heap_block(&arena->heap, id)->after) {
    const struct block *block = heap_block(&arena->heap, id);
    uint32_t stream = block_state(block) == BLOCK_PENDING ? block->stream : local->stream;
    struct hipmm_extent extent = arena_visit_extent_of(arena, block, stream);
    if (id == superblock->first) extent.flags = HIPMM_EXTENT_BARRIER;
    visitor(closure, &extent);
  }
  biased_lock_release(&local->lock);
}

/* Free blocks merge within a superblock, free memory between superblocks. A barrier says that neither can. */
static void arena_visit_region(const struct arena *arena, uint32_t first,
                               void (*visitor)(void *, const struct hipmm_extent *), void *closure)
{
  uint32_t apart = HIPMM_EXTENT_BARRIER;
  for (uint32_t id = first; id; id = heap_block(&arena->heap, id)->after) {
    const struct block *block = heap_block(&arena->heap, id);
    if (block_state(block) == BLOCK_ON_LOAN) {
      arena_visit_superblock(arena, block, visitor, closure);
      apart = HIPMM_EXTENT_BARRIER;
      continue;
    }
    struct hipmm_extent extent = arena_visit_extent_of(arena, block, block->stream);
    extent.flags = apart;
    apart = 0;
    visitor(closure, &extent);
  }
}

static void arena_visit_all(const struct arena *arena, void (*visitor)(void *, const struct hipmm_extent *),
                            void *closure)
{
  for (uint32_t first = BLOCK_NONE; (first = heap_next_region(&arena->heap, first));)
    arena_visit_region(arena, first, visitor, closure);
}

enum hipmm_status arena_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                              void *closure)
{
  struct arena *arena = self;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  arena_visit_all(arena, visitor, closure);
  biased_lock_release(&arena->lock);
  return HIPMM_OK;
}

/* ---- Values ---- */

/* The visit adds up free extents: reserved less live bytes would count the rounding of live blocks as free. */
static void arena_visit_add_free(void *closure, const struct hipmm_extent *extent)
{
  if (extent->state != HIPMM_EXTENT_LIVE) *(uint64_t *)closure += extent->bytes;
}

uint64_t arena_free_bytes(const struct arena *arena)
{
  uint64_t bytes = 0;
  arena_visit_all(arena, arena_visit_add_free, &bytes);
  return bytes;
}

static uint64_t arena_visit_larger(uint64_t one, uint64_t other)
{
  return one > other ? one : other;
}

uint64_t arena_largest_free(const struct arena *arena)
{
  return arena_visit_larger(arena_visit_totals_of_locals(arena).largest, heap_largest_free(&arena->heap));
}

static uint64_t arena_visit_metadata_bytes(const struct arena *arena)
{
  return sizeof *arena + heap_metadata_bytes(&arena->heap) + arena->n_locals * sizeof(struct local) +
         arena->backing.segments.count * sizeof(struct segment) +
         arena->heap.streams.count * sizeof *arena->first_local;
}

static int64_t arena_visit_value_of(const struct arena *arena, enum arena_value value)
{
  const struct totals totals = arena_visit_totals_of_locals(arena);
  switch (value) {
  case ARENA_RESERVED_BYTES: return (int64_t)arena->backing.held->bytes;
  case ARENA_PEAK_RESERVED_BYTES: return (int64_t)arena->backing.held->peak_bytes;
  case ARENA_LIVE_BYTES: return totals.live_bytes + arena->large_bytes;
  case ARENA_LIVE_COUNT: return totals.live_count + arena->large_count;
  case ARENA_FREE_BYTES: return (int64_t)arena_free_bytes(arena);
  case ARENA_LARGEST_FREE_BYTES: return (int64_t)arena_visit_larger(totals.largest, heap_largest_free(&arena->heap));
  case ARENA_FRAGMENTED_BYTES: return (int64_t)fragments_bytes(&arena->backing, &arena->heap);
  case ARENA_CHUNKS: return (int64_t)backing_count(&arena->backing);
  case ARENA_SUPERBLOCKS: return totals.n_superblocks;
  case ARENA_SUPERBLOCK_BYTES_HELD: return (int64_t)totals.bytes;
  case ARENA_LOCALS: return arena->n_locals - 1;
  case ARENA_COLLECTIONS: return (int64_t)arena->collections;
  case ARENA_STREAM_WAITS: return (int64_t)arena->heap.streams.waits;
  case ARENA_METADATA_BYTES: return (int64_t)arena_visit_metadata_bytes(arena);
  case ARENA_N_VALUES: break;
  }
  return 0;
}

enum hipmm_status arena_perform(void *self, size_t index, int64_t *values_out)
{
  struct arena *arena = self;
  (void)index; /* there is one action */
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  for (size_t i = 0; i < ARENA_N_VALUES; i++) values_out[i] = arena_visit_value_of(arena, (enum arena_value)i);
  arena->backing.held->peak_bytes = arena->backing.held->bytes;
  biased_lock_release(&arena->lock);
  return HIPMM_OK;
}

enum hipmm_status arena_query(void *self, size_t index, int64_t *value_out)
{
  struct arena *arena = self;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  *value_out = arena_visit_value_of(arena, (enum arena_value)index);
  biased_lock_release(&arena->lock);
  return HIPMM_OK;
}
