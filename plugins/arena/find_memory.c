/* SPDX-License-Identifier: MIT */
/* find_memory.c: memory for an allocation that the fast path of allocate.c cannot serve. In order of cost: superblocks
 * that are ready, memory whose work has completed, streams that can be waited for, a new chunk; before the allocation
 * fails, every arena returns its free superblocks. The caller holds the global lock throughout. */
#include "arena.h"

enum {
  LEAST_REMNANT_BYTES = 64 << 10, /* of a smaller superblock, before the upstream is asked */
  LARGEST_SUPERBLOCK_BYTES = 16 << 20,
};

/* ---- Ranges ---- */

/* Free memory of streams whose handles may be gone becomes ready when the device was waited for. Waits only if there is
 * enough of it. */
static uint32_t find_memory_without_event(struct arena *arena, const struct arena_request *request)
{
  if (!global_has_without_event(&arena->global, request->stream, request->bytes)) return RANGE_NONE;
  return arena_synchronize(arena, request->stream) ? RANGE_NONE : global_find_ready(&arena->global, request);
}

static uint32_t find_memory_held_range(struct arena *arena, const struct arena_request *request)
{
  struct global *global = &arena->global;
  uint32_t id = global_find_ready(global, request);
  if (id || global->streams.active < 2) return id;
  id = global_find_completed(global, request);
  if (!id) id = global_find_waiting(global, request);
  return id ? id : find_memory_without_event(arena, request);
}

static enum hipmm_status find_memory_grow(struct arena *arena, const struct arena_request *request, bool exactly)
{
  enum hipmm_status status = global_grow(&arena->global, request, exactly);
  if (status) arena->refusal = status;
  return status;
}

static uint32_t find_memory_new_range(struct arena *arena, const struct arena_request *request,
                                      enum hipmm_status *status)
{
  *status = find_memory_grow(arena, request, false);
  return *status ? RANGE_NONE : global_find_ready(&arena->global, request);
}

/* ---- Small allocations ---- */

static uint32_t find_memory_block(struct arena *arena, struct local *local, const struct arena_allocation *allocation)
{
  struct arena_ranges *ranges = &arena->global.ranges;
  biased_lock_acquire(&local->lock);
  arena_supply(arena, local);
  uint32_t id = local_allocate(local, ranges, allocation->bytes, true);
  if (id) local_make_live(local, range_of(ranges, id), allocation->requested, allocation->handle);
  biased_lock_release(&local->lock);
  return id;
}

/* Makes the range a superblock and allocates the block in it. */
static uint32_t find_memory_from_range(struct arena *arena, struct local *local, uint32_t range,
                                       const struct arena_allocation *allocation)
{
  struct arena_ranges *ranges = &arena->global.ranges;
  uint32_t id = RANGE_NONE;
  if (!range) return RANGE_NONE;
  biased_lock_acquire(&local->lock);
  arena_supply(arena, local);
  if (local->unused) {
    range_set_state(range_of(ranges, range), RANGE_SUPERBLOCK);
    local_add_superblock(local, ranges, range);
    stream_set_add(&arena->holding, local->number);
    id = local_allocate(local, ranges, allocation->bytes, true);
    local_make_live(local, range_of(ranges, id), allocation->requested, allocation->handle);
  }
  biased_lock_release(&local->lock);
  if (!id)
    global_free(&arena->global, range, allocation->stream,
                stream_record_free(&arena->global.streams, allocation->stream));
  return id;
}

/* A large arena gets larger superblocks, so that less is lost at their ends. */
static struct arena_request find_memory_superblock_request(const struct local *local,
                                                           const struct arena_allocation *allocation)
{
  uint64_t least = sizes_round_up(allocation->bytes, ARENA_SUPERBLOCK_BYTES);
  uint64_t most = sizes_round_up(local->bytes / 4, ARENA_SUPERBLOCK_BYTES);
  if (most > LARGEST_SUPERBLOCK_BYTES) most = LARGEST_SUPERBLOCK_BYTES;
  return (struct arena_request){.bytes = least,
                                .most_bytes = most > least ? most : least,
                                .least_rest = ARENA_SUPERBLOCK_BYTES,
                                .alignment = HIPMM_ALIGNMENT,
                                .stream = allocation->stream};
}

static uint32_t find_memory_from_remnant(struct arena *arena, struct local *local,
                                         const struct arena_request *superblock,
                                         const struct arena_allocation *allocation)
{
  struct arena_request request = *superblock;
  request.bytes = request.most_bytes =
      allocation->bytes > LEAST_REMNANT_BYTES ? allocation->bytes : LEAST_REMNANT_BYTES;
  return find_memory_from_range(arena, local, global_find_ready(&arena->global, &request), allocation);
}

static uint32_t find_memory_own(struct arena *arena, struct local *local, const struct arena_allocation *allocation)
{
  uint32_t id = find_memory_block(arena, local, allocation);
  if (id || !local->pending_bytes) return id;
  arena_end_completed(arena, local);
  return find_memory_block(arena, local, allocation);
}

static uint32_t find_memory_held(struct arena *arena, struct local *local, const struct arena_request *superblock,
                                 const struct arena_allocation *allocation)
{
  uint32_t id = find_memory_own(arena, local, allocation);
  if (!id) id = find_memory_from_range(arena, local, global_find_ready(&arena->global, superblock), allocation);
  if (!id && local->pending_bytes) {
    arena_wait_for_pending(arena, local);
    id = find_memory_block(arena, local, allocation);
  }
  if (!id) id = find_memory_from_range(arena, local, find_memory_held_range(arena, superblock), allocation);
  return id ? id : find_memory_from_remnant(arena, local, superblock, allocation);
}

/* Whether the upstream has no more, and the device may be waited for. */
static bool find_memory_may_collect(const struct arena *arena, enum hipmm_status status,
                                    const struct arena_allocation *allocation)
{
  return hipmm_is_out_of_memory(status) && !streams_any_captured(&arena->global.streams, allocation->stream);
}

/* After every arena has returned its free superblocks. */
static enum hipmm_status find_memory_collected(struct arena *arena, struct local *local,
                                               const struct arena_request *superblock,
                                               const struct arena_allocation *allocation, uint32_t *id_out)
{
  enum hipmm_status refusal = arena->refusal, status = arena_collect(arena, allocation->stream, refusal);
  if (status) return status;
  *id_out = find_memory_held(arena, local, superblock, allocation);
  if (!*id_out && hipmm_may_wait(arena->services, refusal)) *id_out = arena_find_elsewhere(arena, allocation);
  return HIPMM_OK;
}

static enum hipmm_status find_memory_small(struct arena *arena, struct local *local,
                                           const struct arena_allocation *allocation, uint32_t *id_out)
{
  enum hipmm_status status = HIPMM_OK;
  struct arena_request superblock = find_memory_superblock_request(local, allocation);
  *id_out = find_memory_held(arena, local, &superblock, allocation);
  if (*id_out) return HIPMM_OK;
  *id_out = find_memory_from_range(arena, local, find_memory_new_range(arena, &superblock, &status), allocation);
  if (hipmm_is_out_of_memory(status)) { /* less than a superblock may be left */
    superblock.bytes = superblock.most_bytes = allocation->bytes;
    *id_out = find_memory_from_range(arena, local, find_memory_new_range(arena, &superblock, &status), allocation);
  }
  superblock = find_memory_superblock_request(local, allocation);
  if (find_memory_may_collect(arena, status, allocation))
    return find_memory_collected(arena, local, &superblock, allocation, id_out);
  return hipmm_is_out_of_memory(status) ? HIPMM_OK : status;
}

/* ---- Large allocations ---- */

static enum hipmm_status find_memory_large(struct arena *arena, const struct arena_allocation *allocation,
                                           uint32_t *id_out)
{
  struct global *global = &arena->global;
  enum hipmm_status status = HIPMM_OK;
  const struct arena_request request = {.bytes = allocation->bytes,
                                        .most_bytes = allocation->bytes,
                                        .least_rest = HIPMM_ALIGNMENT,
                                        .alignment = allocation->alignment,
                                        .stream = allocation->stream};
  uint32_t id = find_memory_held_range(arena, &request);
  if (!id) id = find_memory_new_range(arena, &request, &status);
  if (find_memory_may_collect(arena, status, allocation)) status = arena_collect(arena, allocation->stream, status);
  if (hipmm_is_out_of_memory(status)) status = HIPMM_OK;
  if (!id && !status) id = global_find_ready(global, &request);
  if (!id && !status && !global_release_idle(global, 0)) { /* exchange small chunks for a large one */
    status = find_memory_grow(arena, &request, true);
    if (!status) id = global_find_ready(global, &request);
    if (hipmm_is_out_of_memory(status)) status = HIPMM_OK;
  }
  if (!id) return status;
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
  return local ? find_memory_small(arena, local, allocation, id_out) : find_memory_large(arena, allocation, id_out);
}
