/* SPDX-License-Identifier: MIT */
/* local.h: the arena of one thread on one stream. It splits superblocks, which are blocks of the heap, into blocks. A block freed
 * on the arena's stream, by any thread, is ready again at once. A block freed on another stream is pending until the
 * work of that stream is known to come first. An arena whose thread or stream is gone is used for the next one.
 *
 * Invariant: the list `after` from the first block of a superblock has each byte once, in the order of addresses. `before` of the
 * first block is the superblock. When two blocks merge, the record of the lower one stays, so the first block stays the first.
 *
 * Another thread that frees a block on the arena's stream takes no lock: it leaves the block in the arena's messages, as in
 * mimalloc (Leijen, Zorn, de Moura 2019). local_acquire() frees them, and so does the arena's thread when it finds no block
 * of a size.
 *
 * The arena's own lock protects all fields but the messages and those under the global lock; the global lock is taken first. */
#ifndef HIPMM_PLUGINS_ARENA_LOCAL_H
#define HIPMM_PLUGINS_ARENA_LOCAL_H

#include "../common/biased_lock.h"
#include "../heap/free_index.h"

#include <stdatomic.h>

enum {
  LOCAL_QUICK_UNITS = 128, /* blocks of up to so many units are kept in quick lists when freed, unmerged */
  LOCAL_MOST_QUICK_BYTES = 1 << 20,
};

/* Claimed blocks that were freed on the stream, a list through `next`. `word` has the first one's number, their units in all,
 * whether blocks may be added, and how often that ended: a thread that adds a block compares all of it, so the arena is still
 * the stream's. All other changes are under the arena's lock. */
struct messages {
  _Alignas(128) _Atomic uint64_t word;
  _Atomic(hipmm_stream_t) handle;
};

enum { MESSAGES_MOST_BYTES = 1 << 20 }; /* as much as quick lists keep unmerged */

static const uint64_t MESSAGES_FIRST = (UINT64_C(1) << 28) - 1, MESSAGES_UNIT = UINT64_C(1) << 28,
                      MESSAGES_OPEN = UINT64_C(1) << 41; /* added again, it carries into the count behind it */

_Static_assert(MESSAGES_MOST_BYTES >> UNIT_BITS < 1 << 13, "the units in front of MESSAGES_OPEN");

/* Of blocks, in the order in which they were added. */
struct local_list {
  uint32_t first, last;
};

struct local {
  struct messages messages;
  _Alignas(128) struct biased_lock lock;
  bool is_open; /* `handle` alone identifies the stream: a call needs no global lock */
  hipmm_stream_t handle;
  uint64_t stream_thread; /* of a per-thread default stream: its thread; 0 otherwise */
  uint32_t number;        /* of this arena, from 1 */
  uint16_t stream;        /* STREAM_READY: no work uses the ready blocks. Written under the global lock too */
  int64_t live_count, live_bytes;
  uint64_t bytes, idle_bytes; /* of its superblocks; of the wholly free ones */
  uint32_t n_superblocks;
  struct local_list idle;    /* wholly free superblocks */
  struct local_list pending; /* in the order of frees */
  uint32_t unused, n_unused; /* list of unused records */
  uint64_t pending_bytes, quick_bytes;
  uint32_t next_quick; /* the quick list to empty next */
  uint32_t quick[LOCAL_QUICK_UNITS + 1];
  struct free_index ready;

  /* Under the global lock. */
  _Alignas(128) uint64_t thread;  /* its thread; 0: none. The thread itself may set it to 0 without a lock */
  _Atomic(const void *) memories; /* thread_memories of the last thread. Any thread reads it */
  uint32_t next_of_stream;        /* the next arena of the same stream, or without one */
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

/* Whether the calling thread is the one that is expected to use the arena's lock. */
static inline bool local_is_of_caller(const struct local *local)
{
  return atomic_load_explicit(&local->memories, memory_order_relaxed) == thread_memories;
}

/* ---- Messages ---- */

/* Leaves a claimed block that was freed on the stream of this handle. False if the arena is not for only that stream, or has
 * enough messages: then its lock is needed. A larger block is no message: it would keep those beside it from merging, in an
 * arena whose thread may do nothing for long. */
static inline bool local_send(struct local *local, const struct blocks *blocks, uint32_t id, hipmm_stream_t handle)
{
  struct messages *messages = &local->messages;
  struct block *block = block_of(blocks, id);
  uint64_t word = atomic_load_explicit(&messages->word, memory_order_acquire), units = block->bytes >> UNIT_BITS, sent;
  if (units > LOCAL_QUICK_UNITS) return false;
  do {
    uint64_t sum = (word & (MESSAGES_OPEN - 1)) / MESSAGES_UNIT + units;
    if (!(word & MESSAGES_OPEN) || sum > MESSAGES_MOST_BYTES >> UNIT_BITS ||
        atomic_load_explicit(&messages->handle, memory_order_acquire) != handle)
      return false;
    block->next = (uint32_t)(word & MESSAGES_FIRST);
    sent = ((word & ~MESSAGES_FIRST) + units * MESSAGES_UNIT) | id;
  } while (
      !atomic_compare_exchange_weak_explicit(&messages->word, &word, sent, memory_order_release, memory_order_acquire));
  return true;
}

static inline bool local_has_messages(const struct local *local)
{
  return atomic_load_explicit(&local->messages.word, memory_order_relaxed) & MESSAGES_FIRST;
}

/* ---- The caller holds the arena's lock ---- */

/* Opens the messages for blocks that are freed on the stream of this handle, or closes them. */
void local_open_messages(struct local *local, hipmm_stream_t handle);
void local_close_messages(struct local *local);

/* Frees the blocks in the messages. */
void local_receive(struct local *local, const struct blocks *blocks);

/* A block of `bytes`, a multiple of HIPMM_ALIGNMENT; local_make_live() must follow. BLOCK_NONE if there is none, or no
 * unused record for the rest; with `without_cut`, once messages were received, the block keeps the rest then. BLOCK_NONE
 * without it also where messages of other threads, whoever received them, have made a surplus. */
uint32_t local_allocate(struct local *local, const struct blocks *blocks, uint64_t bytes, bool without_cut);

/* Frees a live block of this arena on the stream of this arena. */
void local_free(struct local *local, const struct blocks *blocks, uint32_t id);

/* The same on another stream: the block has its `stream` and `epoch`. */
void local_free_pending(struct local *local, const struct blocks *blocks, uint32_t id);

/* Makes a pending block ready. */
void local_end_pending(struct local *local, const struct blocks *blocks, uint32_t id);

/* Merges the blocks of the quick lists. */
void local_empty_quick(struct local *local, const struct blocks *blocks);

/* Adds a superblock, a block of the heap. Needs an unused record. */
void local_add_superblock(struct local *local, const struct blocks *blocks, uint32_t superblock);

/* Removes a superblock that is wholly free: `idle_bytes` says that there is one. */
uint32_t local_remove_idle(struct local *local, const struct blocks *blocks);

/* After local_allocate(), and before local_free(). */
static inline void local_make_live(struct local *local, struct block *block, uint64_t requested, hipmm_stream_t handle)
{
  block->requested = requested;
  block->handle = handle;
  block_set_state(block, BLOCK_LIVE);
  local->live_count++;
  local->live_bytes += (int64_t)requested;
}

static inline void local_end_live(struct local *local, const struct block *block)
{
  local->live_count--;
  local->live_bytes -= (int64_t)block->requested;
}

/* Whether so much is wholly free that superblocks should be returned. */
static inline bool local_has_surplus(const struct local *local)
{
  return local->idle_bytes > (4u << 20) && local->idle_bytes > local->bytes / 4;
}

static inline void local_push_unused(struct local *local, const struct blocks *blocks, uint32_t id)
{
  block_set_state(block_of(blocks, id), BLOCK_RESERVED);
  block_of(blocks, id)->next = local->unused;
  local->unused = id;
  local->n_unused++;
}

static inline uint32_t local_pop_unused(struct local *local, const struct blocks *blocks)
{
  uint32_t id = local->unused;
  if (id) {
    local->unused = block_of(blocks, id)->next;
    local->n_unused--;
  }
  return id;
}

/* Acquires the arena's lock. The blocks that other threads have freed so far are free then. */
static inline void local_acquire(struct local *local, const struct blocks *blocks)
{
  biased_lock_acquire(&local->lock);
  if (local_has_messages(local)) local_receive(local, blocks);
}

#endif
