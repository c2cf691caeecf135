/* SPDX-License-Identifier: MIT */
/* credit.c: see credit.h. */
#include "credit.h"

/* Of the chest, to be put into a purse: a part of what there is for each purse, in whole units. */
enum { UNIT_BYTES = 256 };

/* Takes the lowest purse out of a set. */
static struct purse *credit_next_of(struct credit *credit, uint64_t *set)
{
  uint32_t index = (uint32_t)__builtin_ctzll(*set);
  *set &= *set - 1;
  return &credit->purses[index];
}

/* Shuts the purses and empties them into the chest. The second round finds what was put into a purse before the last
 * one was shut: at that moment there was no more than is in the chest now. */
static void credit_collect(struct credit *credit)
{
  for (int round = 0; round < 2; round++)
    for (uint64_t rest = credit->used; rest;)
      credit->chest_bytes +=
          atomic_exchange_explicit(&credit_next_of(credit, &rest)->bytes, PURSE_SHUT, memory_order_relaxed) &
          ~(uint64_t)PURSE_SHUT;
}

static void credit_reopen(struct credit *credit)
{
  for (uint64_t rest = credit->debt_bytes ? 0 : credit->used; rest;)
    atomic_fetch_and_explicit(&credit_next_of(credit, &rest)->bytes, ~(uint_fast64_t)PURSE_SHUT, memory_order_relaxed);
}

/* A purse is shut until it is used for the first time, and while there is a debt. */
static void credit_use(struct credit *credit, struct purse *purse)
{
  credit->used |= 1ull << (purse - credit->purses);
  if (!credit->debt_bytes) atomic_fetch_and_explicit(&purse->bytes, ~(uint_fast64_t)PURSE_SHUT, memory_order_relaxed);
}

static void credit_pay(struct credit *credit)
{
  uint64_t paid = credit->debt_bytes < credit->chest_bytes ? credit->debt_bytes : credit->chest_bytes;
  credit->debt_bytes -= paid;
  credit->chest_bytes -= paid;
}

/* When all is in the chest. */
static struct credit_state credit_state_of(const struct credit *credit)
{
  return (struct credit_state){credit->limit_bytes + credit->debt_bytes - credit->chest_bytes, credit->limit_bytes};
}

/* Half of the chest stays there, the other half is for all purses alike. */
static void credit_fill(struct credit *credit, struct purse *purse)
{
  uint64_t share = credit->chest_bytes / 2 / (uint64_t)__builtin_popcountll(credit->used);
  share -= share % UNIT_BYTES;
  credit->chest_bytes -= share;
  atomic_fetch_add_explicit(&purse->bytes, share, memory_order_relaxed);
}

bool credit_take_slowly(struct credit *credit, uint64_t bytes, struct credit_state *state_out)
{
  struct purse *purse = &credit->purses[thread_slot_now()];
  pthread_mutex_lock(&credit->lock);
  credit_use(credit, purse);
  bool collects = credit->chest_bytes < bytes;
  if (collects) credit_collect(credit);
  if (collects) credit_pay(credit);
  bool taken = bytes <= credit->chest_bytes;
  if (taken)
    credit->chest_bytes -= bytes;
  else
    *state_out = credit_state_of(credit);
  if (collects) credit_reopen(credit);
  if (taken) credit_fill(credit, purse);
  pthread_mutex_unlock(&credit->lock);
  return taken;
}

void credit_note_purse(struct credit *credit, struct purse *purse)
{
  pthread_mutex_lock(&credit->lock);
  credit_use(credit, purse);
  pthread_mutex_unlock(&credit->lock);
}

struct credit_state credit_look(struct credit *credit)
{
  pthread_mutex_lock(&credit->lock);
  credit_collect(credit);
  credit_pay(credit);
  struct credit_state state = credit_state_of(credit);
  credit_reopen(credit);
  pthread_mutex_unlock(&credit->lock);
  return state;
}

void credit_change(struct credit *credit, uint64_t limit_bytes)
{
  pthread_mutex_lock(&credit->lock);
  credit_collect(credit);
  if (limit_bytes < credit->limit_bytes)
    credit->debt_bytes += credit->limit_bytes - limit_bytes;
  else
    credit->chest_bytes += limit_bytes - credit->limit_bytes;
  credit->limit_bytes = limit_bytes;
  credit_pay(credit);
  credit_reopen(credit);
  pthread_mutex_unlock(&credit->lock);
}

void credit_open(struct credit *credit, uint64_t bytes)
{
  for (uint32_t i = 0; i < THREAD_SLOTS; i++) atomic_init(&credit->purses[i].bytes, PURSE_SHUT);
  pthread_mutex_init(&credit->lock, NULL);
  credit->used = 0;
  credit->chest_bytes = credit->limit_bytes = bytes;
  credit->debt_bytes = 0;
}

void credit_close(struct credit *credit)
{
  pthread_mutex_destroy(&credit->lock);
}
