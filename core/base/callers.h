/* SPDX-License-Identifier: MIT */
/* callers.h: which threads are inside a call that uses the table of devices. hipmm_finalize() waits for these calls. Entering
 * is on the allocation path, so each thread writes to a slot of its own with plain stores; the waiting thread pays instead,
 * with an asymmetric fence (asymmetric_fence.h). */
#ifndef HIPMM_CORE_BASE_CALLERS_H
#define HIPMM_CORE_BASE_CALLERS_H

#include "asymmetric_fence.h"

#include <stdatomic.h>
#include <stdbool.h>

struct caller {
  _Alignas(64) atomic_uint inside; /* calls that its threads are in: one thread has it, save the place for all others */
  atomic_bool is_taken;
  atomic_uint refusals; /* caller_leave_refused() */
  struct caller *next;  /* constant */
};

/* Waits until no thread is inside a call. Before it, the caller stores the state that makes new calls return: each
 * thread reads the state after caller_enter(), and so either sees it or is waited for. */
void callers_await(void);

/* Whether all calls that were under way in other threads have ended, as far as a short wait shows, and the calling thread is
 * in one call at most. The caller has stored a state before; calls that begin later read it. */
bool callers_have_left(void);

/* Of the calling thread, in one struct: to find it costs a function call, so callers find it once, with caller_self().
 * `light` counts the thread's calls within calls (lifecycle.h) by itself; where it is NULL, `depth` does. */
struct caller_thread {
  struct caller
      *light; /* `place`, where plain stores do: it is the thread's own, and membarrier works. NULL: otherwise */
  struct caller *place; /* NULL: not known yet */
  unsigned depth;
  unsigned pins;     /* that the thread has, of stacks (stack_list.h) */
  unsigned programs; /* functions of the program that the thread is in, called by a resource (attempt.c) */
};

extern _Thread_local struct caller_thread caller_this_thread;

static inline struct caller_thread *caller_self(void)
{
  struct caller_thread *this_thread = &caller_this_thread;
  __asm__("" : "+r"(this_thread)); /* the compiler would find it again at each use */
  return this_thread;
}

/* For a thread that is in a call already, has no place of its own yet, or shares one. */
void caller_enter_slow_path(struct caller_thread *this_thread);
void caller_leave_slow_path(struct caller_thread *this_thread);

/* Ends a call that has done nothing, since the thread read the state that makes new calls return. A thread that calls again and
 * again is hardly ever seen outside of a call, and so callers_await() would wait for long: it sees this instead. */
void caller_leave_refused(struct caller_thread *this_thread);

/* Calls that the thread is in, each within the one before. */
static inline unsigned caller_depth(const struct caller_thread *this_thread)
{
  return this_thread->light ? atomic_load_explicit(&this_thread->light->inside, memory_order_relaxed)
                            : this_thread->depth;
}

/* The calling thread is in a call, until as many caller_leave(). */
static inline void caller_enter(struct caller_thread *this_thread)
{
  struct caller *light = this_thread->light;
  if (__builtin_expect(!light || atomic_load_explicit(&light->inside, memory_order_relaxed), 0)) {
    caller_enter_slow_path(this_thread);
  } else {
    atomic_store_explicit(&light->inside, 1, memory_order_relaxed);
    asymmetric_fence_light(); /* the store comes first */
  }
}

static inline void caller_leave(struct caller_thread *this_thread)
{
  struct caller *light = this_thread->light;
  if (__builtin_expect(!light || atomic_load_explicit(&light->inside, memory_order_relaxed) != 1, 0))
    caller_leave_slow_path(this_thread);
  else
    atomic_store_explicit(&light->inside, 0, memory_order_release);
}

#endif
