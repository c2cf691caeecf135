/* SPDX-License-Identifier: MIT */
/* local.h: the arena of one thread on one stream. It has superblocks of the global arena and cuts them into blocks.
 * What is freed on its stream, by whichever thread, it may use again at once; what is freed on another stream is
 * pending until that stream's work is known to come first. An arena whose thread or stream is gone waits for a new one.
 *
 * All but what is said to be the global lock's is under its own lock, which is taken after that one. */
#ifndef HIPMM_ARENA_LOCAL_H
#define HIPMM_ARENA_LOCAL_H

#include "../common/biased_lock.h"
#include "tlsf.h"

enum {
  LOCAL_QUICK_UNITS = 128, /* blocks of up to so many units are kept in quick lists when freed, unmerged */
  LOCAL_MOST_QUICK_BYTES = 1 << 20,
};

struct local {
  _Alignas(128) struct biased_lock lock;
  bool is_open; /* `handle` alone says that a call is for this arena's stream: no need of the global lock */
  hipStream_t handle;
  uint64_t stream_thread; /* of a per-thread default stream: whose; 0 otherwise */
  uint32_t number;        /* which arena it is, from 1 */
  uint16_t stream;        /* STREAM_CLEAN: no work uses what is ready here. Changes under the global lock too */
  int64_t live_count, live_bytes;
  uint64_t bytes, idle_bytes; /* of its superblocks; of those wholly free */
  uint32_t n_superblocks;
  uint32_t idle;                        /* list of the wholly free ones */
  uint32_t pending_first, pending_last; /* list in the order of frees */
  uint32_t unused, n_unused;            /* list of unused ranges */
  uint64_t pending_bytes, quick_bytes;
  uint32_t next_quick; /* list to be emptied when there must be room */
  uint32_t quick[LOCAL_QUICK_UNITS + 1];
  struct tlsf ready;

  /* The global lock's. */
  uint64_t thread;         /* whose; 0: nobody's. The thread itself may set it to 0 without a lock */
  uint32_t next_of_stream; /* arena of the same stream, or next that has none */
};

/* A thread that leaves its arena has done with it before this is 0 for others. */
static inline uint64_t local_thread(const struct local *local)
{
  return __atomic_load_n(&local->thread, __ATOMIC_ACQUIRE);
}

static inline void local_set_thread(struct local *local, uint64_t thread)
{
  __atomic_store_n(&local->thread, thread, __ATOMIC_RELEASE);
}

/* ---- With its own lock held ---- */

/* A block of `bytes`, a multiple of HIPMM_ALIGNMENT, live, which is for its caller to tell of. RANGE_NONE if it has
 * none, or no range to stand for what is left over, which `without_cut` gives away. */
uint32_t local_allocate(struct local *local, struct ranges *ranges, uint64_t bytes, bool without_cut);

/* Takes back a live block of its own that was freed on its stream. */
void local_free(struct local *local, struct ranges *ranges, uint32_t id);

/* The same of another stream: `stream` and `epoch` are said by the range. */
void local_free_pending(struct local *local, struct ranges *ranges, uint32_t id);

/* Makes a pending block ready. */
void local_end_pending(struct local *local, struct ranges *ranges, uint32_t id);

/* Merges what is in the quick lists. */
void local_empty_quick(struct local *local, struct ranges *ranges);

/* Takes a range that is lent to it. It needs an unused range. */
void local_add_superblock(struct local *local, struct ranges *ranges, uint32_t range);

/* A superblock that is wholly free, which is no longer the arena's: RANGE_NONE if there is none. */
uint32_t local_remove_idle(struct local *local, struct ranges *ranges);

/* A block that was taken is allocated now; one that is live is about to be given. */
static inline void local_make_live(struct local *local, struct range *block, uint64_t requested, hipStream_t handle)
{
  range_set_live(block, requested, handle);
  local->live_count++;
  local->live_bytes += (int64_t)requested;
}

static inline void local_end_live(struct local *local, const struct range *block)
{
  local->live_count--;
  local->live_bytes -= (int64_t)block->requested;
}

/* More is wholly free than should be kept from others. */
static inline bool local_has_surplus(const struct local *local)
{
  return local->idle_bytes > (4u << 20) && local->idle_bytes > local->bytes / 4;
}

static inline void local_put_spare(struct local *local, struct ranges *ranges, uint32_t id)
{
  range_set_state(range_of(ranges, id), RANGE_SPARE);
  range_of(ranges, id)->next = local->unused;
  local->unused = id;
  local->n_unused++;
}

static inline uint32_t local_take_spare(struct local *local, struct ranges *ranges)
{
  uint32_t id = local->unused;
  if (id) {
    local->unused = range_of(ranges, id)->next;
    local->n_unused--;
  }
  return id;
}

#endif
