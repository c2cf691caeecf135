/* SPDX-License-Identifier: MIT */
/* find_memory.c: memory for an allocation that the fast path of allocate.c cannot serve: from the thread's own arena, from the
 * global arena by the attempts of ../heap/miss.c, and before the allocation fails, from any arena. The caller holds the
 * global lock throughout. */
#include "arena.h"

enum {
  LEAST_REMNANT_BYTES = 64 << 10, /* of a smaller superblock, before the upstream is asked */
  MOST_SUPERBLOCK_BYTES = 16 << 20
};

/* ---- Memory of the global arena ---- */

static enum hipmm_status find_memory_synchronize(void *arena, uint32_t user)
{
  return arena_synchronize(arena, user);
}

static enum hipmm_status find_memory_collect(void *arena, uint32_t user, enum hipmm_status refusal)
{
  return arena_collect(arena, user, refusal);
}

static const struct miss_ops find_memory_ops = {.synchronize = find_memory_synchronize, .collect = find_memory_collect};

static struct request find_memory_request(uint64_t bytes, const struct arena_allocation *allocation)
{
  return (struct request){
      .bytes = bytes, .alignment = allocation->alignment, .requested = bytes, .stream = allocation->stream};
}

/* A free block of that size that the stream may use at once. */
static uint32_t find_memory_ready(struct arena *arena, uint64_t bytes, const struct arena_allocation *allocation)
{
  const struct request request = find_memory_request(bytes, allocation);
  return heap_allocate_ready(&arena->global.heap, &request);
}

/* The same by the attempts up to a stage. */
static uint32_t find_memory_attempt(struct arena *arena, uint64_t bytes, const struct arena_allocation *allocation,
                                    enum stage last, enum hipmm_status *status_out)
{
  const struct request request = find_memory_request(bytes, allocation);
  struct miss miss = {.ops = &find_memory_ops,
                      .self = arena,
                      .heap = &arena->global.heap,
                      .backing = &arena->global.backing,
                      .request = &request};
  miss_run(&miss, last);
  if (miss.status) arena->refusal = miss.status;
  *status_out = miss.id || hipmm_is_out_of_memory(miss.status) ? HIPMM_OK : miss.status;
  return miss.id;
}

/* What is idle in the arenas of any stream, after a wait for the device. */
static uint32_t find_memory_elsewhere(struct arena *arena, const struct arena_allocation *allocation)
{
  bool may_wait = hipmm_is_out_of_memory(arena->refusal) && hipmm_may_wait(arena->services, arena->refusal) &&
                  !streams_any_captured(&arena->global.heap.streams, allocation->stream);
  return may_wait && allocation->alignment == HIPMM_ALIGNMENT ? arena_find_elsewhere(arena, allocation) : RANGE_NONE;
}

/* Host memory or records are short, which no upstream has said. Returns no range. */
static uint32_t find_memory_refuse_records(struct arena *arena, const struct arena_allocation *allocation)
{
  const struct hipmm_services *services = arena->services;
  arena->refusal = services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                                    "no host memory left for records of {0:bytes} more", allocation->bytes, 0, 0);
  return RANGE_NONE;
}

/* Makes a block of the global arena a range. */
static uint32_t find_memory_lend(struct arena *arena, uint32_t block, const struct arena_allocation *allocation)
{
  uint32_t range = global_lend(&arena->global, block, allocation->stream);
  return range ? range : find_memory_refuse_records(arena, allocation);
}

/* ---- Small allocations ---- */

static uint32_t find_memory_block(struct arena *arena, struct local *local, const struct arena_allocation *allocation)
{
  struct arena_ranges *ranges = &arena->global.ranges;
  local_acquire(local, &arena->global.ranges);
  arena_supply(arena, local);
  uint32_t id = local_allocate(local, ranges, allocation->bytes, true);
  if (id) local_make_live(local, range_of(ranges, id), allocation->requested, allocation->handle);
  bool has_surplus = local_has_surplus(local); /* other threads have freed, and may free no more */
  biased_lock_release(&local->lock);
  if (has_surplus) arena_return_idle(arena, local, ARENA_SUPERBLOCK_BYTES);
  return id;
}

/* Makes a block of the global arena a superblock and allocates in it. */
static uint32_t find_memory_in_superblock(struct arena *arena, struct local *local, uint32_t block,
                                          const struct arena_allocation *allocation)
{
  struct arena_ranges *ranges = &arena->global.ranges;
  struct streams *streams = &arena->global.heap.streams;
  uint32_t range = block ? find_memory_lend(arena, block, allocation) : RANGE_NONE, id = RANGE_NONE;
  if (!range) return RANGE_NONE;
  local_acquire(local, &arena->global.ranges);
  arena_supply(arena, local);
  if (local->unused) {
    range_set_state(range_of(ranges, range), RANGE_SUPERBLOCK);
    local_add_superblock(local, ranges, range);
    stream_set_add(&arena->holding, local->number);
    id = local_allocate(local, ranges, allocation->bytes, true);
    local_make_live(local, range_of(ranges, id), allocation->requested, allocation->handle);
  }
  biased_lock_release(&local->lock);
  if (id) return id;
  global_take_back(&arena->global, range, allocation->stream, stream_record_free(streams, allocation->stream));
  return find_memory_refuse_records(arena, allocation);
}

static uint32_t find_memory_own(struct arena *arena, struct local *local, const struct arena_allocation *allocation)
{
  uint32_t id = find_memory_block(arena, local, allocation);
  if (id || !local->pending_bytes) return id;
  arena_end_completed(arena, local);
  return find_memory_block(arena, local, allocation);
}

/* The least size of a superblock for the allocation, and the wanted size: a large arena gets larger superblocks, so that less is
 * lost at their ends. */
static uint64_t find_memory_least(const struct arena_allocation *allocation)
{
  return sizes_round_up(allocation->bytes, ARENA_SUPERBLOCK_BYTES);
}

static uint64_t find_memory_most(const struct local *local, const struct arena_allocation *allocation)
{
  uint64_t bytes = sizes_round_up(local->bytes / 4, ARENA_SUPERBLOCK_BYTES), least = find_memory_least(allocation);
  if (bytes > MOST_SUPERBLOCK_BYTES) bytes = MOST_SUPERBLOCK_BYTES;
  return bytes > least ? bytes : least;
}

/* A free block for a smaller superblock, which is better than to ask the upstream. Where the maximum allows no more, any
 * that fits is: the next attempts wait. */
static uint32_t find_memory_remnant(struct arena *arena, const struct arena_allocation *allocation)
{
  const struct held *held = arena->global.backing.held;
  bool is_full = sizes_headroom(held->maximum_bytes, held->bytes) < ARENA_SUPERBLOCK_BYTES;
  uint64_t bytes = allocation->bytes > LEAST_REMNANT_BYTES ? allocation->bytes : LEAST_REMNANT_BYTES;
  uint32_t block = find_memory_ready(arena, bytes, allocation);
  while (!block && is_full && bytes > allocation->bytes) {
    bytes = sizes_smaller_step(bytes, allocation->bytes);
    block = find_memory_ready(arena, bytes, allocation);
  }
  return block;
}

/* The steps in the order of their cost. */
static uint32_t find_memory_superblock(struct arena *arena, struct local *local,
                                       const struct arena_allocation *allocation, enum hipmm_status *status_out)
{
  uint64_t most = find_memory_most(local, allocation), least = find_memory_least(allocation);
  uint32_t block = find_memory_attempt(arena, least, allocation, STAGE_HELD, status_out);
  if (!block) block = find_memory_remnant(arena, allocation);
  if (!block) block = find_memory_attempt(arena, most, allocation, STAGE_NEW, status_out);
  if (!block && !*status_out && most > least)
    block = find_memory_attempt(arena, least, allocation, STAGE_NEW, status_out);
  if (!block && !*status_out) block = find_memory_attempt(arena, allocation->bytes, allocation, STAGE_LAST, status_out);
  return find_memory_in_superblock(arena, local, block, allocation);
}

static enum hipmm_status find_memory_small(struct arena *arena, struct local *local,
                                           const struct arena_allocation *allocation, uint32_t *id_out)
{
  enum hipmm_status status = HIPMM_OK;
  uint32_t id = find_memory_own(arena, local, allocation), block = RANGE_NONE;
  if (!id) block = find_memory_ready(arena, find_memory_most(local, allocation), allocation);
  if (!id && !block) block = find_memory_ready(arena, find_memory_least(allocation), allocation);
  if (block) id = find_memory_in_superblock(arena, local, block, allocation);
  if (!id && local->pending_bytes) {
    arena_wait_for_pending(arena, local);
    id = find_memory_block(arena, local, allocation);
  }
  if (!id) id = find_memory_superblock(arena, local, allocation, &status);
  if (!id && !status) id = find_memory_block(arena, local, allocation); /* what became ready meanwhile */
  if (!id && !status) id = find_memory_elsewhere(arena, allocation);
  *id_out = id;
  return id ? HIPMM_OK : status;
}

/* ---- Large allocations ---- */

static enum hipmm_status find_memory_large(struct arena *arena, const struct arena_allocation *allocation,
                                           uint32_t *id_out)
{
  struct global *global = &arena->global;
  enum hipmm_status status = HIPMM_OK;
  if (global->heap.streams.active > 1) heap_poll(&global->heap); /* where it goes decides how well the rest packs */
  uint32_t block = find_memory_ready(arena, allocation->bytes, allocation);
  if (!block) block = find_memory_attempt(arena, allocation->bytes, allocation, STAGE_LAST, &status);
  uint32_t id = block ? find_memory_lend(arena, block, allocation) : RANGE_NONE;
  if (!id) {
    *id_out = status ? RANGE_NONE : find_memory_elsewhere(arena, allocation);
    return status;
  }
  range_set_live(range_of(&global->ranges, id), allocation->requested, allocation->handle);
  address_map_set(&global->ranges.starts, range_of(&global->ranges, id)->start, id);
  global->live_count++;
  global->live_bytes += (int64_t)allocation->requested;
  *id_out = id;
  return HIPMM_OK;
}

enum hipmm_status arena_find_memory(struct arena *arena, const struct arena_allocation *allocation, uint32_t *id_out)
{
  bool is_small = allocation->bytes <= arena->small_bytes && allocation->alignment == HIPMM_ALIGNMENT;
  struct local *local = is_small ? arena_enter_local(arena, allocation->handle, allocation->stream) : NULL;
  arena->refusal = HIPMM_OK; /* of this allocation */
  return local ? find_memory_small(arena, local, allocation, id_out) : find_memory_large(arena, allocation, id_out);
}
