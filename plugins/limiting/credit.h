/* SPDX-License-Identifier: MIT */
/* credit.h: how much may still be allocated, dealt out so that threads need not meet. Each takes from a purse of its
 * own and gives back into it; the rest is in one place, the chest. Who finds too little goes to the chest, and when
 * that is empty too, all purses are collected into it: so what is refused did not fit, whatever other threads were
 * doing.
 *
 * The limit may change at any time. What is allocated beyond a lowered one is a debt, which all that is given back pays
 * off first: until then the purses stay shut, and nothing is dealt out.
 *
 * Invariant: chest + purses + what is allocated == the limit + debt, and with a debt the chest is empty. Amounts are
 * multiples of HIPMM_ALIGNMENT, which leaves a bit in a purse to say that it is shut: nothing is taken from it then,
 * but what is given back may be put there. */
#ifndef HIPMM_LIMITING_CREDIT_H
#define HIPMM_LIMITING_CREDIT_H

#include "../common/thread_slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { PURSE_SHUT = 1 };

struct purse {
  _Alignas(THREAD_SLOT_LINE_BYTES) atomic_uint_fast64_t bytes;
};

struct credit {
  struct purse purses[THREAD_SLOTS];
  _Alignas(THREAD_SLOT_LINE_BYTES) pthread_mutex_t lock; /* all below, and the shutting of purses */
  uint64_t used;                                         /* purses in use, a bit for each */
  uint64_t chest_bytes, debt_bytes, limit_bytes;
};

/* What there was, at one moment. */
struct credit_state {
  uint64_t used_bytes, limit_bytes;
};

void credit_open(struct credit *credit, uint64_t bytes);
void credit_close(struct credit *credit);

/* Changes the limit, below what is allocated too. */
void credit_change(struct credit *credit, uint64_t limit_bytes);

struct credit_state credit_look(struct credit *credit);

/* False if there is not as much; `state_out` then says what there was. */
bool credit_take_slowly(struct credit *credit, uint64_t bytes, struct credit_state *state_out);

/* Something was put into this purse while it was shut. */
void credit_note_purse(struct credit *credit, struct purse *purse);

static inline bool credit_take(struct credit *credit, uint64_t bytes, struct credit_state *state_out)
{
  struct purse *purse = &credit->purses[thread_slot_now()];
  uint_fast64_t has = atomic_load_explicit(&purse->bytes, memory_order_relaxed);
  while (has >= bytes && !(has & PURSE_SHUT))
    if (atomic_compare_exchange_weak_explicit(&purse->bytes, &has, has - bytes, memory_order_relaxed,
                                              memory_order_relaxed))
      return true;
  return credit_take_slowly(credit, bytes, state_out);
}

static inline void credit_give(struct credit *credit, uint64_t bytes)
{
  struct purse *purse = &credit->purses[thread_slot_now()];
  uint_fast64_t had = atomic_fetch_add_explicit(&purse->bytes, bytes, memory_order_relaxed);
  if (__builtin_expect(had & PURSE_SHUT, 0)) credit_note_purse(credit, purse);
}

#endif
