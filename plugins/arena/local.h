/* SPDX-License-Identifier: MIT */
/* local.h: the arena of one thread on one stream. It splits superblocks of the global arena into blocks. A block freed
 * on the arena's stream, by any thread, is ready again at once. A block freed on another stream is pending until the
 * work of that stream is known to come first. An arena whose thread or stream is gone is used for the next one.
 *
 * The arena's own lock protects all fields but those under the global lock; the global lock is taken first. */
#ifndef HIPMM_PLUGINS_ARENA_LOCAL_H
#define HIPMM_PLUGINS_ARENA_LOCAL_H

#include "../common/biased_lock.h"
#include "range.h"

enum {
  LOCAL_QUICK_UNITS = 128, /* blocks of up to so many units are kept in quick lists when freed, unmerged */
  LOCAL_MOST_QUICK_BYTES = 1 << 20,
};

struct local {
  _Alignas(128) struct biased_lock lock;
  bool is_open; /* `handle` alone identifies the stream: a call needs no global lock */
  hipmm_stream_t handle;
  uint64_t stream_thread; /* of a per-thread default stream: its thread; 0 otherwise */
  uint32_t number;        /* of this arena, from 1 */
  uint16_t stream;        /* STREAM_READY: no work uses the ready blocks. Written under the global lock too */
  int64_t live_count, live_bytes;
  uint64_t bytes, idle_bytes; /* of its superblocks; of the wholly free ones */
  uint32_t n_superblocks;
  uint32_t idle;                        /* list of wholly free superblocks */
  uint32_t pending_first, pending_last; /* list in the order of frees */
  uint32_t unused, n_unused;            /* list of unused records */
  uint64_t pending_bytes, quick_bytes;
  uint32_t next_quick; /* the quick list to empty next */
  uint32_t quick[LOCAL_QUICK_UNITS + 1];
  struct tlsf ready;

  /* Under the global lock. */
  uint64_t thread;         /* its thread; 0: none. The thread itself may set it to 0 without a lock */
  uint32_t next_of_stream; /* the next arena of the same stream, or without one */
};

/* A thread has finished with its arena before others read 0 here. */
static inline uint64_t local_thread(const struct local *local)
{
  return __atomic_load_n(&local->thread, __ATOMIC_ACQUIRE);
}

static inline void local_set_thread(struct local *local, uint64_t thread)
{
  __atomic_store_n(&local->thread, thread, __ATOMIC_RELEASE);
}

/* ---- The caller holds the arena's lock ---- */

/* A block of `bytes`, a multiple of HIPMM_ALIGNMENT; local_make_live() must follow. RANGE_NONE if there is none, or no
 * unused record for the rest; with `without_cut` the block keeps the rest then. */
uint32_t local_allocate(struct local *local, struct arena_ranges *ranges, uint64_t bytes, bool without_cut);

/* Frees a live block of this arena on the stream of this arena. */
void local_free(struct local *local, struct arena_ranges *ranges, uint32_t id);

/* The same on another stream: the block has its `stream` and `epoch`. */
void local_free_pending(struct local *local, struct arena_ranges *ranges, uint32_t id);

/* Makes a pending block ready. */
void local_end_pending(struct local *local, struct arena_ranges *ranges, uint32_t id);

/* Merges the blocks of the quick lists. */
void local_empty_quick(struct local *local, struct arena_ranges *ranges);

/* Adds a superblock. Needs an unused record. */
void local_add_superblock(struct local *local, struct arena_ranges *ranges, uint32_t range);

/* Removes a superblock that is wholly free: `idle_bytes` says that there is one. */
uint32_t local_remove_idle(struct local *local, struct arena_ranges *ranges);

/* After local_allocate(), and before local_free(). */
static inline void local_make_live(struct local *local, struct arena_range *block, uint64_t requested,
                                   hipmm_stream_t handle)
{
  range_set_live(block, requested, handle);
  local->live_count++;
  local->live_bytes += (int64_t)requested;
}

static inline void local_end_live(struct local *local, const struct arena_range *block)
{
  local->live_count--;
  local->live_bytes -= (int64_t)block->requested;
}

/* Whether so much is wholly free that superblocks should be returned. */
static inline bool local_has_surplus(const struct local *local)
{
  return local->idle_bytes > (4u << 20) && local->idle_bytes > local->bytes / 4;
}

static inline void local_push_unused(struct local *local, struct arena_ranges *ranges, uint32_t id)
{
  range_set_state(range_of(ranges, id), RANGE_RESERVED);
  range_of(ranges, id)->next = local->unused;
  local->unused = id;
  local->n_unused++;
}

static inline uint32_t local_pop_unused(struct local *local, struct arena_ranges *ranges)
{
  uint32_t id = local->unused;
  if (id) {
    local->unused = range_of(ranges, id)->next;
    local->n_unused--;
  }
  return id;
}

#endif
