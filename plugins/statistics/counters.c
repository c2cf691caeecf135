/* SPDX-License-Identifier: MIT */
/* counters.c: see counters.h. Locks are taken in the order: the counters', then the shards' by number. */
#include "counters.h"

enum { MOST_IDLE = 16 };

static const struct amount closed = {INT64_MIN, INT64_MIN};

/* ---- Locks ---- */

/* Removes the lowest shard from a set. */
static uint32_t counters_next_shard(uint64_t *set)
{
  uint32_t index = (uint32_t)__builtin_ctzll(*set);
  *set &= *set - 1;
  return index;
}

void counters_stop(struct counters *counters)
{
  spin_lock(&counters->lock);
  for (uint64_t rest = counters->open; rest;) spin_lock(&counters->shards[counters_next_shard(&rest)].busy);
}

void counters_resume(struct counters *counters)
{
  for (uint64_t rest = counters->open; rest;) spin_unlock(&counters->shards[counters_next_shard(&rest)].busy);
  spin_unlock(&counters->lock);
}

/* ---- Sums; all is stopped ---- */

struct sums counters_read(const struct counters *counters)
{
  struct sums sums = {counters->now, counters->peak, counters->total};
  for (uint64_t rest = counters->open; rest;) {
    const struct counter_shard *shard = &counters->shards[counters_next_shard(&rest)];
    sums.now = amount_sum(sums.now, shard->now);
    sums.total = amount_sum(sums.total, shard->total);
  }
  return sums;
}

/* The shards begin at 0 with bounds of 0, so the next allocation distributes the bounds again. */
void counters_set(struct counters *counters, struct sums sums)
{
  counters->now = sums.now;
  counters->peak = sums.peak;
  counters->total = sums.total;
  for (uint64_t rest = counters->open; rest;) {
    struct counter_shard *shard = &counters->shards[counters_next_shard(&rest)];
    shard->now = shard->total = shard->bound = (struct amount){0, 0};
  }
}

/* ---- Opening and closing shards ---- */

void counters_open(struct counters *counters)
{
  for (uint32_t i = 0; i < THREAD_SLOTS; i++) counters->shards[i].bound = closed;
}

/* The shard's lock is held before and after. */
static void counters_open_shard(struct counters *counters, struct counter_shard *shard)
{
  counters->open |= 1ull << (shard - counters->shards);
  shard->bound = (struct amount){0, 0};
}

/* Shards of threads that no longer count need not be summed up. Releases the shard's lock. */
static void counters_close_shard(struct counters *counters, struct counter_shard *shard)
{
  counters->open &= ~(1ull << (shard - counters->shards));
  counters->now = amount_sum(counters->now, shard->now);
  counters->total = amount_sum(counters->total, shard->total);
  shard->now = shard->total = (struct amount){0, 0};
  shard->bound = closed;
  spin_unlock(&shard->busy);
}

static void counters_close_idle(struct counters *counters)
{
  for (uint64_t rest = counters->open; rest;) {
    struct counter_shard *shard = &counters->shards[counters_next_shard(&rest)];
    shard->idle = shard->used ? 0 : (uint8_t)(shard->idle + 1);
    shard->used = false;
    if (shard->idle > MOST_IDLE) counters_close_shard(counters, shard);
  }
}

/* ---- Distributing ---- */

static void counters_raise_to(int64_t *peak, int64_t value)
{
  if (value > *peak) *peak = value;
}

static int64_t counters_smaller(int64_t one, int64_t other)
{
  return one < other ? one : other;
}

/* A shard keeps its unused bound, but at most half of what is left. */
static void counters_distribute_to(int64_t now, int64_t *bound, int64_t *left)
{
  int64_t kept = counters_smaller(*bound - now, *left / 2);
  *bound = now + kept;
  *left -= kept;
}

/* Distributes the difference between sum and peak among the bounds; the rest is for `receiver`. */
static void counters_distribute(struct counters *counters, struct counter_shard *receiver)
{
  struct amount now = counters_read(counters).now;
  counters_raise_to(&counters->peak.bytes, now.bytes);
  counters_raise_to(&counters->peak.count, now.count);
  struct amount left = {counters->peak.bytes - now.bytes, counters->peak.count - now.count};
  for (uint64_t rest = counters->open; rest;) {
    struct counter_shard *shard = &counters->shards[counters_next_shard(&rest)];
    if (shard == receiver) continue;
    counters_distribute_to(shard->now.bytes, &shard->bound.bytes, &left.bytes);
    counters_distribute_to(shard->now.count, &shard->bound.count, &left.count);
  }
  receiver->bound = amount_sum(receiver->now, left);
}

/* Opens the shard if it is closed. The counters' lock is held, so no other thread opens it. */
static void counters_stop_with(struct counters *counters, struct counter_shard *shard)
{
  counters_stop(counters);
  if (counters->open >> (shard - counters->shards) & 1) return;
  spin_lock(&shard->busy);
  counters_open_shard(counters, shard);
}

void counters_add_slow(struct counters *counters, struct counter_shard *shard, struct amount change, bool is_new)
{
  counters_stop_with(counters, shard);
  counter_shard_apply(shard, change, is_new);
  counters_close_idle(counters);
  counters_distribute(counters, shard);
  counters_resume(counters);
}
