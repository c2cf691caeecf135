/* SPDX-License-Identifier: MIT */
/* callers.h: which threads are inside a call that uses the table of devices, walk over the stacks, or are in a function of the
 * program that such a call has called. hipmm_finalize() waits for these calls and walks. Entering is on the allocation path,
 * so each thread writes to a slot of its own with plain stores; the waiting thread pays instead, with an asymmetric fence
 * (asymmetric_fence.h).
 *
 * A function of the program may never return: it may end its thread, or jump out of the call. Once a thread has ended, nobody
 * waits for it. A thread in such a function may hold locks that other threads wait for, so each wait is limited to
 * callers_timeout_ms while there is one, or was. */
#ifndef HIPMM_CORE_BASE_CALLERS_H
#define HIPMM_CORE_BASE_CALLERS_H

#include "asymmetric_fence.h"

#include <stdatomic.h>
#include <stdbool.h>

struct caller {
  _Alignas(64) atomic_uint inside; /* calls that its threads are in: one thread has it, save the place for all others */
  atomic_bool is_taken;
  atomic_uint refusals;   /* caller_leave_refused() */
  atomic_uint walks;      /* that its threads are in */
  atomic_uint walks_over; /* that have ended, of a thread that has it alone */
  atomic_uint in_program; /* functions of the program that its thread is in */
  atomic_int thread;      /* the system's number of its thread; 0: several */
  struct caller *next;    /* constant */
};

/* For tests to change. */
extern unsigned callers_timeout_ms;

/* Waits until no thread is inside a call. Before it, the caller stores the state that makes new calls return: each
 * thread reads the state after caller_enter(), and so either sees it or is waited for. Returns 0, or the number of a thread
 * for which the wait was given up. `notify` is called with such a number some time before that. */
int callers_await(void (*notify)(int thread));

/* Waits until each thread that is in a walk has ended it, or until `awaited`, if that is not NULL, is 0. The waits that are
 * given up count as lost threads. */
void callers_await_walks(const atomic_uint *awaited, void (*notify)(int thread));

/* The threads that have ended within a call or a walk, and those whose walks were waited for in vain. They may have left locks,
 * and resources halfway through a call. */
unsigned callers_abandoned(void);

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
  unsigned walks;      /* that the thread is in, each within the one before */
  unsigned in_program; /* as in its place, if it has one of its own */
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

/* The calling thread walks over stacks, until as many caller_end_walk(). Walks are nested. */
void caller_begin_walk(struct caller_thread *this_thread);
void caller_end_walk(struct caller_thread *this_thread);

/* The calling thread is in a function of the program. `has_place`: finds the thread a place of its own, so that its end is
 * noticed; that may allocate memory. Otherwise a thread without one is not counted. Pairs are nested. */
void caller_enter_program(struct caller_thread *this_thread, bool has_place);
void caller_leave_program(struct caller_thread *this_thread);

/* The calling thread is in a call, until as many caller_leave(). A thread that ends, also in a call, leaves its place for
 * others. */
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
