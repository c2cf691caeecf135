/* SPDX-License-Identifier: MIT */
/* callers.h: which threads are in a call that uses the table of devices. Each thread says so in a place of its own, with
 * plain stores, since such calls are on the path of allocations; the one that waits for all of them pays for both: it has
 * the system make every processor finish its stores (membarrier). */
#ifndef HIPMM_CORE_BASE_CALLERS_H
#define HIPMM_CORE_BASE_CALLERS_H

#include <stdatomic.h>
#include <stdbool.h>

struct caller {
  _Alignas(64) atomic_uint inside; /* threads of it that are in a call: at most one, save of the place for all others */
  atomic_bool is_taken;
  struct caller *next; /* constant */
};

/* To be called before callers_await(). */
void callers_prepare(void);

/* Waits until no thread is in a call. The caller has made sure before, with a store, that none begins one: whoever looks
 * after callers_enter() sees that store. */
void callers_await(void);

/* Whether the system can make processors agree; where it cannot, callers do it themselves. */
extern atomic_bool callers_are_light;

/* The place for all threads that have none of their own, being at their end. */
extern struct caller callers_rest;

/* Of the calling thread, in one struct since finding it costs a call where the library was opened late. */
struct caller_here {
  struct caller *place; /* NULL: not known yet */
  unsigned depth;       /* of calls within calls (lifecycle.h) */
};

extern _Thread_local struct caller_here caller_here;

/* Finds one. A thread that ends, also in a call, leaves it for others. */
struct caller *caller_find(void);

/* The calling thread is in a call, until caller_leave(); calls are not nested. */
static inline void caller_enter(void)
{
  struct caller *caller = caller_here.place;
  if (__builtin_expect(!caller, 0)) caller = caller_find();
  if (__builtin_expect(caller == &callers_rest || !atomic_load_explicit(&callers_are_light, memory_order_relaxed), 0)) {
    atomic_fetch_add(&caller->inside, 1);
  } else {
    atomic_store_explicit(&caller->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* the store comes first: callers_await() sees to the processor */
  }
}

static inline void caller_leave(void)
{
  struct caller *caller = caller_here.place;
  if (__builtin_expect(caller == &callers_rest, 0))
    atomic_fetch_sub(&caller->inside, 1);
  else
    atomic_store_explicit(&caller->inside, 0, memory_order_release);
}

#endif
