/* SPDX-License-Identifier: MIT */
/* at_hand.h: what a local arena serves. An allocation that the thread's own local arena can serve takes only that arena's lock. So
 * does the thread's free of the arena's block on the arena's stream. Another thread's free on that stream takes no lock.
 * Everything else takes the global lock first (allocate.c). The caller holds no lock. */
#ifndef HIPMM_PLUGINS_ARENA_AT_HAND_H
#define HIPMM_PLUGINS_ARENA_AT_HAND_H

#include "arena.h"

/* ---- allocate.c ---- */

/* Called from the upstream, the thread has the global lock already: a surplus stays until a later call. BLOCK_NONE elsewhere. */
uint32_t arena_allocate_from_upstream(struct arena *arena, struct local *local, size_t bytes, hipmm_stream_t handle);

/* Gives the surplus back, unless the thread has the global lock already. */
void arena_return_surplus(struct arena *arena, struct local *local);

/* Frees a block in another thread's arena. That thread may never allocate again, so once there are enough messages, the arena's
 * surplus is given back here. False if the global lock is needed. */
bool arena_free_remotely(struct arena *arena, struct local *local, uint32_t id, hipmm_stream_t handle);

/* Takes the global lock. */
enum hipmm_status arena_free_slow_path(struct arena *arena, uint32_t id, hipmm_stream_t handle);

/* ---- Here ---- */

/* The caller holds the arena's lock. */
static inline bool arena_is_for(const struct local *local, hipmm_stream_t handle)
{
  return local->is_open && local->handle == handle &&
         (!local->stream_thread || local->stream_thread == thread_number());
}

/* A block of the caller's own arena; BLOCK_NONE if the global lock is needed. */
static inline uint32_t arena_allocate_locally(struct arena *arena, struct local *local, size_t bytes,
                                              hipmm_stream_t handle, bool without_cut)
{
  struct blocks *blocks = &arena->heap.blocks;
  uint32_t id = BLOCK_NONE;
  biased_lock_acquire(&local->lock);
  if (arena_is_for(local, handle))
    id = local_allocate(local, blocks, sizes_round_up(bytes, HIPMM_ALIGNMENT), without_cut);
  if (id) local_make_live(local, block_of(blocks, id), bytes, handle);
  biased_lock_release(&local->lock);
  return id;
}

/* A live block of the arena that the thread remembers for the stream; BLOCK_NONE if the global lock is needed. `bytes` is not 0. */
static inline uint32_t arena_allocate_at_hand(struct arena *arena, size_t bytes, hipmm_stream_t handle)
{
  struct local *local = thread_recall(arena->serial, handle);
  uint32_t id = local ? arena_allocate_locally(arena, local, bytes, handle, false) : BLOCK_NONE;
  if (__builtin_expect(!id && local, 0)) id = arena_allocate_from_upstream(arena, local, bytes, handle);
  return id;
}

/* Frees a claimed block, if its arena is for the stream of this call. The caller holds the arena's lock, which is released. */
static inline bool arena_free_locally(struct arena *arena, struct local *local, uint32_t id, hipmm_stream_t handle)
{
  const struct blocks *blocks = &arena->heap.blocks;
  bool is_for = arena_is_for(local, handle), has_surplus = false;
  if (__builtin_expect(is_for, 1)) {
    local_end_live(local, block_of(blocks, id));
    local_free(local, blocks, id);
    has_surplus = local_has_surplus(local);
  }
  biased_lock_release(&local->lock);
  if (__builtin_expect(has_surplus, 0)) arena_return_surplus(arena, local);
  return is_for;
}

/* Frees a block that the caller has claimed. If the free fails, the block is live again. */
static inline enum hipmm_status arena_free_claimed(struct arena *arena, uint32_t id, hipmm_stream_t handle)
{
  uint32_t number = heap_block(&arena->heap, id)->arena;
  bool is_free = false;
  if (__builtin_expect(number != 0, 1)) {
    struct local *local = arena_local(arena, number);
    if (__builtin_expect(local_is_of_caller(local), 1)) {
      biased_lock_acquire(&local->lock);
      is_free = arena_free_locally(arena, local, id, handle);
    } else {
      is_free = arena_free_remotely(arena, local, id, handle);
    }
  }
  return __builtin_expect(is_free, 1) ? HIPMM_OK : arena_free_slow_path(arena, id, handle);
}

#endif
