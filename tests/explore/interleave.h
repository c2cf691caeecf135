/* SPDX-License-Identifier: MIT */
/* interleave.h: two threads in all orders of their steps, for files whose threads share memory without a lock. A test includes
 * this header and then the source file itself: the atomics, the fences and the mutex of that file become steps of a scheduler,
 * which runs the threads one at a time (as coroutines) and takes each decision from choices.h.
 *
 * Memory is that of x86-64: a store that is not sequentially consistent waits in the thread's own store buffer, in order, and
 * reaches memory at a later step; the thread itself sees it at once. So a missing fence shows. Orders that only other
 * processors allow, such as two loads that change places, are not shown. */
#ifndef HIPMM_TESTS_EXPLORE_INTERLEAVE_H
#define HIPMM_TESTS_EXPLORE_INTERLEAVE_H

#include "../../core/base/asymmetric_fence.h"
#include "../../core/base/cancel.h"
#include "../../core/base/lock_order.h"
#include "../../plugins/common/thread_cache.h"
#include "choices.h"

#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdatomic.h>

enum { INTERLEAVE_THREADS = 2, INTERLEAVE_ANY = -1 };

/* Runs both threads to their ends. NULL, or what went wrong: what a thread noted, or that both wait for ever. */
const char *interleave_run(struct choices *choices, void (*const threads[INTERLEAVE_THREADS])(void));

/* For the next run: what the thread (INTERLEAVE_ANY: each) reads of this variable is the same in all orders, so that reading it is
 * no step. */
void interleave_constant(const void *variable, int thread);

/* In a thread: its number; what must not be; a step of the test itself. */
int interleave_self(void);
void interleave_note(const char *what);
void interleave_step(void);

/* ---- In the place of what the file calls ---- */

void interleave_load(const volatile void *from, void *to, size_t bytes);
void interleave_store(volatile void *to, const void *from, size_t bytes, bool is_sequential);
int interleave_lock(bool waits);
int interleave_unlock(void);
void interleave_fence_all(void);
void interleave_pause(void);
struct thread_memory **interleave_memories(void); /* the calling thread's thread_memories; and those of a thread */
struct thread_memory **interleave_memories_of(int thread);

#define INTERLEAVE_VALUE(at) __typeof__((void)0, *(at))

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#define atomic_load(at)                              \
  __extension__({                                    \
    INTERLEAVE_VALUE(at) loaded_;                    \
    interleave_load((at), &loaded_, sizeof loaded_); \
    loaded_;                                         \
  })
#define atomic_load_explicit(at, order) atomic_load(at)
#define atomic_store_explicit(at, value, order)                                        \
  __extension__({                                                                      \
    INTERLEAVE_VALUE(at) stored_ = (value);                                            \
    interleave_store((at), &stored_, sizeof stored_, (order) == memory_order_seq_cst); \
  })
#define atomic_store(at, value)    atomic_store_explicit(at, value, memory_order_seq_cst)
#define atomic_exchange(at, value) atomic_store(at, value) /* whose result is not used */

#define asymmetric_fence_heavy()     interleave_fence_all()
#define asymmetric_fence_pause(t)    interleave_pause()
#define pthread_mutex_lock(mutex)    ((void)(mutex), interleave_lock(true))
#define pthread_mutex_trylock(mutex) ((void)(mutex), interleave_lock(false))
#define pthread_mutex_unlock(mutex)  ((void)(mutex), interleave_unlock())
#define thread_memories              (*interleave_memories())

#endif
