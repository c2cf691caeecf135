/* SPDX-License-Identifier: MIT */
/* find_memory.c: where an allocation comes from that the thread's own arena does not have at hand. What costs least is tried
 * first: superblocks that are ready, work that has passed, other streams that can be waited for, new memory; and before
 * it fails, every arena is asked for what it does not use. The global lock is held in all of it. */
#include "arena.h"

enum {
  LEAST_REMNANT_BYTES = 64 << 10, /* of a superblock that is smaller than usual, before the upstream is asked */
  LARGEST_SUPERBLOCK_BYTES = 16 << 20,
};

/* ---- Ranges ---- */

/* Free memory of streams whose handles may be gone comes back through the device, if there is enough to matter. */
static uint32_t find_memory_take_withheld(struct arena *arena, const struct request *request)
{
  if (global_withheld_bytes(&arena->global, request->stream) < request->bytes) return PIECE_NONE;
  return arena_synchronize(arena, request->stream) ? PIECE_NONE : global_take_ready(&arena->global, request);
}

static uint32_t find_memory_take_held_range(struct arena *arena, const struct request *request)
{
  struct global *global = &arena->global;
  uint32_t id = global_take_ready(global, request);
  if (id || global->streams.active < 2) return id;
  id = global_take_passed(global, request);
  if (!id) id = global_take_waiting(global, request);
  return id ? id : find_memory_take_withheld(arena, request);
}

static enum hipmm_status find_memory_grow(struct arena *arena, const struct request *request, bool exactly)
{
  enum hipmm_status status = global_grow(&arena->global, request, exactly);
  if (status) arena->refusal = status;
  return status;
}

static uint32_t find_memory_take_new_range(struct arena *arena, const struct request *request,
                                           enum hipmm_status *status)
{
  *status = find_memory_grow(arena, request, false);
  return *status ? PIECE_NONE : global_take_ready(&arena->global, request);
}

/* ---- Small allocations ---- */

static uint32_t find_memory_take_block(struct arena *arena, struct local *local, const struct arena_wish *wish)
{
  struct pieces *pieces = &arena->global.pieces;
  biased_lock_take(&local->lock);
  arena_supply(arena, local);
  uint32_t id = local_take(local, pieces, wish->bytes, true);
  if (id) local_make_live(local, piece_of(pieces, id), wish->requested, wish->handle);
  biased_lock_release(&local->lock);
  return id;
}

/* Lends a range and takes the block from it. */
static uint32_t find_memory_take_from_range(struct arena *arena, struct local *local, uint32_t range,
                                            const struct arena_wish *wish)
{
  struct pieces *pieces = &arena->global.pieces;
  uint32_t id = PIECE_NONE;
  if (!range) return PIECE_NONE;
  biased_lock_take(&local->lock);
  arena_supply(arena, local);
  if (local->unused) {
    piece_set_state(piece_of(pieces, range), PIECE_LENT);
    local_add_superblock(local, pieces, range);
    id = local_take(local, pieces, wish->bytes, true);
    local_make_live(local, piece_of(pieces, id), wish->requested, wish->handle);
  }
  biased_lock_release(&local->lock);
  if (!id) global_give(&arena->global, range, wish->stream, stream_note_free(&arena->global.streams, wish->stream));
  return id;
}

/* Larger ones for an arena that has much, so that little is left over at their ends. */
static struct request find_memory_superblock_for(const struct local *local, const struct arena_wish *wish)
{
  uint64_t bytes = sizes_round_up(local->bytes / 4, ARENA_SUPERBLOCK_BYTES);
  if (bytes < ARENA_SUPERBLOCK_BYTES) bytes = ARENA_SUPERBLOCK_BYTES;
  if (bytes > LARGEST_SUPERBLOCK_BYTES) bytes = LARGEST_SUPERBLOCK_BYTES;
  return (struct request){.bytes = ARENA_SUPERBLOCK_BYTES,
                          .most_bytes = bytes,
                          .least_rest = ARENA_SUPERBLOCK_BYTES,
                          .alignment = HIPMM_ALIGNMENT,
                          .stream = wish->stream};
}

static uint32_t find_memory_take_from_remnant(struct arena *arena, struct local *local,
                                              const struct request *superblock, const struct arena_wish *wish)
{
  struct request request = *superblock;
  request.bytes = request.most_bytes = wish->bytes > LEAST_REMNANT_BYTES ? wish->bytes : LEAST_REMNANT_BYTES;
  return find_memory_take_from_range(arena, local, global_take_ready(&arena->global, &request), wish);
}

static uint32_t find_memory_take_own(struct arena *arena, struct local *local, const struct arena_wish *wish)
{
  uint32_t id = find_memory_take_block(arena, local, wish);
  if (id || !local->pending_bytes) return id;
  arena_end_passed(arena, local);
  return find_memory_take_block(arena, local, wish);
}

static uint32_t find_memory_take_held(struct arena *arena, struct local *local, const struct request *superblock,
                                      const struct arena_wish *wish)
{
  uint32_t id = find_memory_take_own(arena, local, wish);
  if (!id) id = find_memory_take_from_range(arena, local, global_take_ready(&arena->global, superblock), wish);
  if (!id && local->pending_bytes) {
    arena_wait_for_pending(arena, local);
    id = find_memory_take_block(arena, local, wish);
  }
  if (!id) id = find_memory_take_from_range(arena, local, find_memory_take_held_range(arena, superblock), wish);
  return id ? id : find_memory_take_from_remnant(arena, local, superblock, wish);
}

/* Whether there is no more to be had of the upstream, and all arenas may be asked what they do not use. */
static bool find_memory_may_collect(const struct arena *arena, enum hipmm_status status, const struct arena_wish *wish)
{
  return hipmm_is_out_of_memory(status) && !streams_any_captured(&arena->global.streams, wish->stream);
}

/* All arenas give back what they do not use. */
static enum hipmm_status find_memory_take_collected(struct arena *arena, struct local *local,
                                                    const struct request *superblock, const struct arena_wish *wish,
                                                    uint32_t *id_out)
{
  enum hipmm_status status = arena_collect(arena, wish->stream);
  if (status) return status;
  *id_out = find_memory_take_held(arena, local, superblock, wish);
  if (!*id_out) *id_out = arena_take_elsewhere(arena, local, wish);
  return HIPMM_OK;
}

static enum hipmm_status find_memory_allocate_small(struct arena *arena, struct local *local,
                                                    const struct arena_wish *wish, uint32_t *id_out)
{
  enum hipmm_status status = HIPMM_OK;
  struct request superblock = find_memory_superblock_for(local, wish);
  *id_out = find_memory_take_held(arena, local, &superblock, wish);
  if (*id_out) return HIPMM_OK;
  *id_out = find_memory_take_from_range(arena, local, find_memory_take_new_range(arena, &superblock, &status), wish);
  if (hipmm_is_out_of_memory(status)) { /* less than a superblock may be left */
    superblock.bytes = superblock.most_bytes = wish->bytes;
    *id_out = find_memory_take_from_range(arena, local, find_memory_take_new_range(arena, &superblock, &status), wish);
  }
  superblock = find_memory_superblock_for(local, wish);
  if (find_memory_may_collect(arena, status, wish))
    return find_memory_take_collected(arena, local, &superblock, wish, id_out);
  return hipmm_is_out_of_memory(status) ? HIPMM_OK : status;
}

/* ---- Large allocations ---- */

static enum hipmm_status find_memory_allocate_large(struct arena *arena, const struct arena_wish *wish,
                                                    uint32_t *id_out)
{
  struct global *global = &arena->global;
  enum hipmm_status status = HIPMM_OK;
  const struct request request = {.bytes = wish->bytes,
                                  .most_bytes = wish->bytes,
                                  .least_rest = HIPMM_ALIGNMENT,
                                  .alignment = wish->alignment,
                                  .stream = wish->stream};
  uint32_t id = find_memory_take_held_range(arena, &request);
  if (!id) id = find_memory_take_new_range(arena, &request, &status);
  if (find_memory_may_collect(arena, status, wish)) status = arena_collect(arena, wish->stream);
  if (hipmm_is_out_of_memory(status)) status = HIPMM_OK;
  if (!id && !status) id = global_take_ready(global, &request);
  if (!id && !status && !global_release_idle(global, 0)) { /* chunks that are too small make room for one that is not */
    status = find_memory_grow(arena, &request, true);
    if (!status) id = global_take_ready(global, &request);
    if (hipmm_is_out_of_memory(status)) status = HIPMM_OK;
  }
  if (!id) return status;
  piece_set_live(piece_of(&global->pieces, id), wish->requested, wish->handle);
  address_map_set(&global->pieces.starts, piece_of(&global->pieces, id)->start, id);
  global->live_count++;
  global->live_bytes += (int64_t)wish->requested;
  *id_out = id;
  return HIPMM_OK;
}

enum hipmm_status arena_take(struct arena *arena, const struct arena_wish *wish, uint32_t *id_out)
{
  bool is_small = wish->bytes <= ARENA_SMALL_BYTES && wish->alignment == HIPMM_ALIGNMENT;
  struct local *local = is_small ? arena_enter_local(arena, wish->handle, wish->stream) : NULL;
  return local ? find_memory_allocate_small(arena, local, wish, id_out)
               : find_memory_allocate_large(arena, wish, id_out);
}
