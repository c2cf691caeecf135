/* SPDX-License-Identifier: MIT */
/* counters.h: current, peak and total of bytes and allocations, counted by many threads at once and yet exact.
 *
 * Each thread counts in its own shard. A shard has a bound up to which it may rise without a look at the others, and the
 * sum of all bounds is at most the peak so far: no counting within the bounds can be a new peak. A thread that would
 * exceed its bound stops all shards, sums them up, raises the peak if the sum is larger, and distributes the difference
 * between sum and peak among the bounds again. So counting takes a lock without contention, except while the sum is at
 * its peak; an exact peak costs that.
 *
 * Invariant: base.now + the bounds of the open shards <= peak, unless stopped. */
#ifndef HIPMM_PLUGINS_STATISTICS_COUNTERS_H
#define HIPMM_PLUGINS_STATISTICS_COUNTERS_H

#include "../common/spin_lock.h"
#include "../common/thread_slot.h"

#include <stdatomic.h>
#include <stdbool.h>

struct amount {
  int64_t bytes, count;
};

/* The counts of a thread; `busy` protects them all. */
struct counter_shard {
  _Alignas(THREAD_SLOT_LINE_BYTES) atomic_flag busy;
  bool used;           /* since the last distribution */
  uint8_t idle;        /* distributions since its last use */
  struct amount now;   /* allocated minus freed; may be negative */
  struct amount bound; /* the most that `now` may be; far below 0 in a closed shard */
  struct amount total; /* allocated */
};

/* Call counters_open() on zeroed memory. */
struct counters {
  struct counter_shard shards[THREAD_SLOTS];
  _Alignas(THREAD_SLOT_LINE_BYTES) atomic_flag lock; /* all below, and the opening of shards */
  uint64_t open;                                     /* one bit for each shard */
  struct amount now, total;                          /* of closed shards */
  struct amount peak;
};

void counters_open(struct counters *counters);

/* No thread counts between stop and resume. In between, counters_read() gives the sums and counters_set() sets them. */
struct sums {
  struct amount now, peak, total;
};

void counters_stop(struct counters *counters);
struct sums counters_read(const struct counters *counters);
void counters_set(struct counters *counters, struct sums sums);
void counters_resume(struct counters *counters);

/* Counts a change that exceeds the shard's bound. */
void counters_add_slow(struct counters *counters, struct counter_shard *shard, struct amount change, bool is_new);

/* ---- Counting ---- */

/* Impossible sizes wrap around, and wrap back when the upstream has refused them. */
static inline struct amount amount_sum(struct amount one, struct amount other)
{
  return (struct amount){(int64_t)((uint64_t)one.bytes + (uint64_t)other.bytes), one.count + other.count};
}

/* The shard's lock is held. */
static inline void counter_shard_apply(struct counter_shard *shard, struct amount change, bool is_new)
{
  shard->now = amount_sum(shard->now, change);
  if (is_new) shard->total = amount_sum(shard->total, change);
  shard->used = true;
}

/* `is_new`: an allocation, which also counts in the totals; not a free, nor the undoing of a free. */
static inline void counters_add(struct counters *counters, struct amount change, bool is_new)
{
  struct counter_shard *shard = &counters->shards[thread_slot_now()];
  spin_lock(&shard->busy);
  struct amount after = amount_sum(shard->now, change);
  bool fits = after.bytes <= shard->bound.bytes && after.count <= shard->bound.count;
  if (__builtin_expect(fits, 1)) counter_shard_apply(shard, change, is_new);
  spin_unlock(&shard->busy);
  if (__builtin_expect(!fits, 0)) counters_add_slow(counters, shard, change, is_new);
}

#endif
