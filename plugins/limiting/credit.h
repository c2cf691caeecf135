/* SPDX-License-Identifier: MIT */
/* credit.h: the bytes that may still be allocated, in shards so that threads seldom meet. A thread acquires bytes from
 * its own shard and releases bytes into it; the rest is in the reserve. A thread whose shard has too few bytes turns to
 * the reserve, and if the reserve has too few, all shards are collected into it first. So a refused request did not fit,
 * whatever other threads were doing.
 *
 * The limit may change at any time. What is allocated above a lowered limit is the excess. Released bytes reduce the
 * excess first; until it is 0 the shards stay closed.
 *
 * Invariant: reserve + shards + allocated == limit + excess, and the reserve is empty while there is an excess. Amounts
 * are multiples of HIPMM_ALIGNMENT, so one bit of a shard can say that the shard is closed: nothing is acquired from a
 * closed shard, but bytes may be released into it. */
#ifndef HIPMM_PLUGINS_LIMITING_CREDIT_H
#define HIPMM_PLUGINS_LIMITING_CREDIT_H

#include "../common/thread_slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { CREDIT_CLOSED = 1 };

struct credit_shard {
  _Alignas(THREAD_SLOT_LINE_BYTES) atomic_uint_fast64_t bytes;
};

struct credit {
  struct credit_shard shards[THREAD_SLOTS];
  _Alignas(THREAD_SLOT_LINE_BYTES) pthread_mutex_t lock; /* all below, and the closing of shards */
  uint64_t used;                                         /* shards in use, one bit each */
  uint64_t reserve_bytes, excess_bytes, limit_bytes;
};

/* The state at one moment. */
struct credit_state {
  uint64_t used_bytes, limit_bytes;
};

void credit_open(struct credit *credit, uint64_t bytes);
void credit_close(struct credit *credit);

/* The new limit may be below what is allocated. */
void credit_set_limit(struct credit *credit, uint64_t limit_bytes);

struct credit_state credit_read(struct credit *credit);

/* What credit_acquire() does when the thread's shard has too few bytes. False if the limit does not allow them; then
 * `state_out` has the state. */
bool credit_acquire_slow(struct credit *credit, uint64_t bytes, struct credit_state *state_out);

/* What credit_release() does after it found the shard closed. */
void credit_open_shard(struct credit *credit, struct credit_shard *shard);

static inline bool credit_acquire(struct credit *credit, uint64_t bytes, struct credit_state *state_out)
{
  struct credit_shard *shard = &credit->shards[thread_slot_now()];
  uint_fast64_t has = atomic_load_explicit(&shard->bytes, memory_order_relaxed);
  while (has >= bytes && !(has & CREDIT_CLOSED))
    if (atomic_compare_exchange_weak_explicit(&shard->bytes, &has, has - bytes, memory_order_relaxed,
                                              memory_order_relaxed))
      return true;
  return credit_acquire_slow(credit, bytes, state_out);
}

static inline void credit_release(struct credit *credit, uint64_t bytes)
{
  struct credit_shard *shard = &credit->shards[thread_slot_now()];
  uint_fast64_t had = atomic_fetch_add_explicit(&shard->bytes, bytes, memory_order_relaxed);
  if (__builtin_expect(had & CREDIT_CLOSED, 0)) credit_open_shard(credit, shard);
}

#endif
