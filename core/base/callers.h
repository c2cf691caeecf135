/* SPDX-License-Identifier: MIT */
/* callers.h: which threads are inside a call that uses the table of devices. hipmm_finalize() waits for these calls.
 * Entering is on the allocation path, so each thread writes to a slot of its own with plain stores; the waiting thread
 * pays instead, with membarrier(), which makes the stores of all processors visible. This is an asymmetric fence. */
#ifndef HIPMM_CORE_BASE_CALLERS_H
#define HIPMM_CORE_BASE_CALLERS_H

#include <stdatomic.h>
#include <stdbool.h>

struct caller {
  _Alignas(64) atomic_uint inside; /* threads inside a call: at most 1, except in callers_rest */
  atomic_bool is_taken;
  struct caller *next; /* constant */
};

/* Prepares membarrier(). To be called before callers_await(). */
void callers_prepare(void);

/* Waits until no thread is inside a call. Before it, the caller stores the state that makes new calls return: each
 * thread reads the state after caller_enter(), and so either sees it or is waited for. */
void callers_await(void);

/* Whether membarrier() is available. Without it each caller executes a fence. */
extern atomic_bool callers_are_light;

/* The slot that threads share which have no slot of their own: those that are ending. */
extern struct caller callers_rest;

/* The calling thread's state; one struct, since each access to a thread-local variable is a call where the library was
 * opened with dlopen(). */
struct caller_here {
  struct caller *slot; /* NULL: not chosen yet */
  unsigned depth;      /* of calls within calls (lifecycle.h) */
};

extern _Thread_local struct caller_here caller_here;

/* Chooses a slot for the calling thread. When the thread ends, other threads may have the slot. */
struct caller *caller_choose(void);

/* The calling thread is in a call, until caller_leave(); calls are not nested. */
static inline void caller_enter(void)
{
  struct caller *caller = caller_here.slot;
  if (__builtin_expect(!caller, 0)) caller = caller_choose();
  if (__builtin_expect(caller == &callers_rest || !atomic_load_explicit(&callers_are_light, memory_order_relaxed), 0)) {
    atomic_fetch_add(&caller->inside, 1);
  } else {
    atomic_store_explicit(&caller->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* the compiler keeps the order; membarrier() does for the processor */
  }
}

static inline void caller_leave(void)
{
  struct caller *caller = caller_here.slot;
  if (__builtin_expect(caller == &callers_rest, 0))
    atomic_fetch_sub(&caller->inside, 1);
  else
    atomic_store_explicit(&caller->inside, 0, memory_order_release);
}

#endif
