/* SPDX-License-Identifier: MIT */
/* credit.c: see credit.h. */
#include "credit.h"

/* A shard is refilled from the reserve in multiples of this. */
enum { UNIT_BYTES = 256 };

/* Removes the lowest shard from a set. */
static struct credit_shard *credit_next_shard(struct credit *credit, uint64_t *set)
{
  uint32_t index = (uint32_t)__builtin_ctzll(*set);
  *set &= *set - 1;
  return &credit->shards[index];
}

/* Closes the shards and empties them into the reserve. The second round collects what was released into a shard before
 * the last shard was closed: at that moment no more was available than the reserve has now. */
static void credit_collect(struct credit *credit)
{
  for (int round = 0; round < 2; round++)
    for (uint64_t rest = credit->used; rest;)
      credit->reserve_bytes +=
          atomic_exchange_explicit(&credit_next_shard(credit, &rest)->bytes, CREDIT_CLOSED, memory_order_relaxed) &
          ~(uint64_t)CREDIT_CLOSED;
}

static void credit_reopen(struct credit *credit)
{
  for (uint64_t rest = credit->excess_bytes ? 0 : credit->used; rest;)
    atomic_fetch_and_explicit(&credit_next_shard(credit, &rest)->bytes, ~(uint_fast64_t)CREDIT_CLOSED,
                              memory_order_relaxed);
}

/* A shard is closed until its first use, and while there is an excess. The lock is held. */
static void credit_open_shard_locked(struct credit *credit, struct credit_shard *shard)
{
  credit->used |= 1ull << (shard - credit->shards);
  if (!credit->excess_bytes)
    atomic_fetch_and_explicit(&shard->bytes, ~(uint_fast64_t)CREDIT_CLOSED, memory_order_relaxed);
}

static void credit_settle_excess(struct credit *credit)
{
  uint64_t paid = credit->excess_bytes < credit->reserve_bytes ? credit->excess_bytes : credit->reserve_bytes;
  credit->excess_bytes -= paid;
  credit->reserve_bytes -= paid;
}

/* All shards are collected. */
static struct credit_state credit_state_of(const struct credit *credit)
{
  return (struct credit_state){credit->limit_bytes + credit->excess_bytes - credit->reserve_bytes, credit->limit_bytes};
}

/* Half of the reserve stays in it; the other half is for all shards in equal parts. */
static void credit_refill(struct credit *credit, struct credit_shard *shard)
{
  uint64_t share = credit->reserve_bytes / 2 / (uint64_t)__builtin_popcountll(credit->used);
  share -= share % UNIT_BYTES;
  credit->reserve_bytes -= share;
  atomic_fetch_add_explicit(&shard->bytes, share, memory_order_relaxed);
}

bool credit_acquire_slow(struct credit *credit, uint64_t bytes, struct credit_state *state_out)
{
  struct credit_shard *shard = &credit->shards[thread_slot_now()];
  pthread_mutex_lock(&credit->lock);
  credit_open_shard_locked(credit, shard);
  bool collects = credit->reserve_bytes < bytes;
  if (collects) credit_collect(credit);
  if (collects) credit_settle_excess(credit);
  bool taken = bytes <= credit->reserve_bytes;
  if (taken)
    credit->reserve_bytes -= bytes;
  else
    *state_out = credit_state_of(credit);
  if (collects) credit_reopen(credit);
  if (taken) credit_refill(credit, shard);
  pthread_mutex_unlock(&credit->lock);
  return taken;
}

void credit_open_shard(struct credit *credit, struct credit_shard *shard)
{
  pthread_mutex_lock(&credit->lock);
  credit_open_shard_locked(credit, shard);
  pthread_mutex_unlock(&credit->lock);
}

struct credit_state credit_read(struct credit *credit)
{
  pthread_mutex_lock(&credit->lock);
  credit_collect(credit);
  credit_settle_excess(credit);
  struct credit_state state = credit_state_of(credit);
  credit_reopen(credit);
  pthread_mutex_unlock(&credit->lock);
  return state;
}

void credit_set_limit(struct credit *credit, uint64_t limit_bytes)
{
  pthread_mutex_lock(&credit->lock);
  credit_collect(credit);
  if (limit_bytes < credit->limit_bytes)
    credit->excess_bytes += credit->limit_bytes - limit_bytes;
  else
    credit->reserve_bytes += limit_bytes - credit->limit_bytes;
  credit->limit_bytes = limit_bytes;
  credit_settle_excess(credit);
  credit_reopen(credit);
  pthread_mutex_unlock(&credit->lock);
}

void credit_open(struct credit *credit, uint64_t bytes)
{
  for (uint32_t i = 0; i < THREAD_SLOTS; i++) atomic_init(&credit->shards[i].bytes, CREDIT_CLOSED);
  pthread_mutex_init(&credit->lock, NULL);
  credit->used = 0;
  credit->reserve_bytes = credit->limit_bytes = bytes;
  credit->excess_bytes = 0;
}

void credit_close(struct credit *credit)
{
  pthread_mutex_destroy(&credit->lock);
}
