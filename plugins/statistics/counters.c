/* SPDX-License-Identifier: MIT */
/* counters.c: see counters.h. Locks are taken in the order: the counters', then the shares' by number. */
#include "counters.h"

enum { MOST_IDLE = 16 };

static const struct amount closed = {INT64_MIN, INT64_MIN};

/* ---- Locks ---- */

/* Takes the lowest share out of a set. */
static uint32_t counters_next_of(uint64_t *set)
{
  uint32_t index = (uint32_t)__builtin_ctzll(*set);
  *set &= *set - 1;
  return index;
}

void counters_stop(struct counters *counters)
{
  spin_lock(&counters->lock);
  for (uint64_t rest = counters->open; rest;) spin_lock(&counters->shares[counters_next_of(&rest)].busy);
}

void counters_go(struct counters *counters)
{
  for (uint64_t rest = counters->open; rest;) spin_unlock(&counters->shares[counters_next_of(&rest)].busy);
  spin_unlock(&counters->lock);
}

/* ---- Sums; all is stopped ---- */

struct sums counters_read(const struct counters *counters)
{
  struct sums sums = {counters->now, counters->peak, counters->total};
  for (uint64_t rest = counters->open; rest;) {
    const struct share *share = &counters->shares[counters_next_of(&rest)];
    sums.now = amount_sum(sums.now, share->now);
    sums.total = amount_sum(sums.total, share->total);
  }
  return sums;
}

/* The shares begin at 0, and may not rise until there has been a dealing. */
void counters_set(struct counters *counters, struct sums sums)
{
  counters->now = sums.now;
  counters->peak = sums.peak;
  counters->total = sums.total;
  for (uint64_t rest = counters->open; rest;) {
    struct share *share = &counters->shares[counters_next_of(&rest)];
    share->now = share->total = share->bound = (struct amount){0, 0};
  }
}

/* ---- Opening and closing shares ---- */

void counters_open(struct counters *counters)
{
  for (uint32_t i = 0; i < THREAD_SLOTS; i++) counters->shares[i].bound = closed;
}

/* Its lock is held, and stays so. */
static void counters_open_share(struct counters *counters, struct share *share)
{
  counters->open |= 1ull << (share - counters->shares);
  share->bound = (struct amount){0, 0};
}

/* Threads that count no more are not asked for ever. Its lock is let go. */
static void counters_close_share(struct counters *counters, struct share *share)
{
  counters->open &= ~(1ull << (share - counters->shares));
  counters->now = amount_sum(counters->now, share->now);
  counters->total = amount_sum(counters->total, share->total);
  share->now = share->total = (struct amount){0, 0};
  share->bound = closed;
  spin_unlock(&share->busy);
}

static void counters_close_idle(struct counters *counters)
{
  for (uint64_t rest = counters->open; rest;) {
    struct share *share = &counters->shares[counters_next_of(&rest)];
    share->idle = share->used ? 0 : (uint8_t)(share->idle + 1);
    share->used = false;
    if (share->idle > MOST_IDLE) counters_close_share(counters, share);
  }
}

/* ---- Dealing ---- */

static void counters_raise_to(int64_t *peak, int64_t value)
{
  if (value > *peak) *peak = value;
}

static int64_t counters_smaller(int64_t one, int64_t other)
{
  return one < other ? one : other;
}

/* A share keeps what it had room for, but no more than half of what is left. */
static void counters_deal_to(int64_t now, int64_t *bound, int64_t *left)
{
  int64_t kept = counters_smaller(*bound - now, *left / 2);
  *bound = now + kept;
  *left -= kept;
}

/* Deals out what lies between the sum and the peak; the rest is for `taker`. */
static void counters_deal(struct counters *counters, struct share *taker)
{
  struct amount now = counters_read(counters).now;
  counters_raise_to(&counters->peak.bytes, now.bytes);
  counters_raise_to(&counters->peak.count, now.count);
  struct amount left = {counters->peak.bytes - now.bytes, counters->peak.count - now.count};
  for (uint64_t rest = counters->open; rest;) {
    struct share *share = &counters->shares[counters_next_of(&rest)];
    if (share == taker) continue;
    counters_deal_to(share->now.bytes, &share->bound.bytes, &left.bytes);
    counters_deal_to(share->now.count, &share->bound.count, &left.count);
  }
  taker->bound = amount_sum(taker->now, left);
}

/* A share that is not open is found so under the counters' lock, without which none opens. */
static void counters_stop_with(struct counters *counters, struct share *share)
{
  counters_stop(counters);
  if (counters->open >> (share - counters->shares) & 1) return;
  spin_lock(&share->busy);
  counters_open_share(counters, share);
}

void counters_add_slowly(struct counters *counters, struct share *share, struct amount change, bool is_new)
{
  counters_stop_with(counters, share);
  share_apply(share, change, is_new);
  counters_close_idle(counters);
  counters_deal(counters, share);
  counters_go(counters);
}
