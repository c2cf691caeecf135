/* SPDX-License-Identifier: MIT */
/* counters.h: what is allocated now, at its peak and in all, in bytes and in allocations, counted by many threads at
 * once and exact all the same.
 *
 * Each thread counts in a share of its own. A share may rise up to its own bound without telling anybody, and the
 * bounds together do not exceed the peak so far: so whatever the threads do within them cannot be a new peak. Who would
 * rise above stops all shares, adds up what there is, raises the peak if that is more, and deals out anew what lies
 * between the sum and the peak. Counting thus costs a lock that nobody else wants, save where the sum is at its highest
 * ever, and there the price is for knowing exactly.
 *
 * Invariant: base.now + the bounds of the open shares <= peak, unless stopped. */
#ifndef HIPMM_STATISTICS_COUNTERS_H
#define HIPMM_STATISTICS_COUNTERS_H

#include "../common/spin_lock.h"
#include "../common/thread_slot.h"

#include <stdatomic.h>
#include <stdbool.h>

struct amount {
  int64_t bytes, count;
};

/* What a thread has counted; all of it under `busy`. */
struct share {
  _Alignas(THREAD_SLOT_LINE_BYTES) atomic_flag busy;
  bool used;           /* since the last dealing */
  uint8_t idle;        /* dealings since it was used */
  struct amount now;   /* allocated less freed, may be below 0 */
  struct amount bound; /* of `now`; far below 0 in a share that is not open */
  struct amount total; /* allocated */
};

/* Zeroed memory, then counters_open. */
struct counters {
  struct share shares[THREAD_SLOTS];
  _Alignas(THREAD_SLOT_LINE_BYTES) atomic_flag lock; /* all below, and which shares are open */
  uint64_t open;                                     /* a bit for each share */
  struct amount now, total;                          /* of shares that are not open */
  struct amount peak;
};

void counters_open(struct counters *counters);

/* Nobody counts from stop to go. In between, read gives the sums and set makes them these. */
struct sums {
  struct amount now, peak, total;
};

void counters_stop(struct counters *counters);
struct sums counters_read(const struct counters *counters);
void counters_set(struct counters *counters, struct sums sums);
void counters_go(struct counters *counters);

/* Counts where the share's bound does not allow it. */
void counters_add_slowly(struct counters *counters, struct share *share, struct amount change, bool is_new);

/* ---- Counting ---- */

/* Sizes that no memory has wrap round, and back when the upstream has refused them. */
static inline struct amount amount_sum(struct amount one, struct amount other)
{
  return (struct amount){(int64_t)((uint64_t)one.bytes + (uint64_t)other.bytes), one.count + other.count};
}

/* The share's lock is held. */
static inline void share_apply(struct share *share, struct amount change, bool is_new)
{
  share->now = amount_sum(share->now, change);
  if (is_new) share->total = amount_sum(share->total, change);
  share->used = true;
}

/* `is_new`: an allocation, which the totals have too; not so a free, and a free that is taken back. */
static inline void counters_add(struct counters *counters, struct amount change, bool is_new)
{
  struct share *share = &counters->shares[thread_slot_now()];
  spin_lock(&share->busy);
  struct amount after = amount_sum(share->now, change);
  bool fits = after.bytes <= share->bound.bytes && after.count <= share->bound.count;
  if (__builtin_expect(fits, 1)) share_apply(share, change, is_new);
  spin_unlock(&share->busy);
  if (__builtin_expect(!fits, 0)) counters_add_slowly(counters, share, change, is_new);
}

#endif
