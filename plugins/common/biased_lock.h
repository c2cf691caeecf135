/* SPDX-License-Identifier: MIT */
/* biased_lock.h: a lock that one thread, its owner, takes far more often than all others. The owner passes a gate and pays next
 * to nothing as long as nobody else comes. Whoever else comes takes `busy` and shuts the gate, which costs microseconds;
 * from then on the owner takes `busy` too, until it has been alone for a while. So what many threads use has a plain
 * mutex. A thread that has been alone for a while owns a lock that has no owner. */
#ifndef HIPMM_PLUGINS_COMMON_BIASED_LOCK_H
#define HIPMM_PLUGINS_COMMON_BIASED_LOCK_H

#include "gate.h"
#include "thread_cache.h"

#include <hipmm/plugin.h>
#include <pthread.h>

struct lock {
  struct gate gate;
  _Atomic(const void *) owner; /* its thread_memories; NULL: none. Set by itself alone */
  _Atomic(const void *) taker; /* who holds `busy`; NULL: nobody */
  pthread_mutex_t busy;
  const void *last; /* taker of `busy`, and how often in a row */
  uint32_t n_alone;
};

/* From zeroed memory; and at the end, when nobody uses it. */
void lock_open(struct lock *lock);
void lock_close(struct lock *lock);

static inline bool lock_is_own(const struct lock *lock)
{
  return thread_memories && atomic_load_explicit(&lock->owner, memory_order_relaxed) == thread_memories;
}

/* Whether the calling thread holds it, and must not take it. */
bool lock_is_held(const struct lock *lock);

void lock_take_busy(struct lock *lock);
void lock_release_busy(struct lock *lock);

/* The owner's way; false, and nothing done, if the caller has to go the other one. */
static inline bool lock_pass(struct lock *lock)
{
  return __builtin_expect(lock_is_own(lock) && !gate_is_passed(&lock->gate) && gate_enter(&lock->gate), 1);
}

static inline void lock_take(struct lock *lock)
{
  if (!lock_pass(lock)) lock_take_busy(lock);
}

/* Takes it if that needs no waiting; false, and nothing done, otherwise. */
bool lock_try(struct lock *lock);

/* For the ops of a resource that holds it while it calls its upstream: takes it, but refuses a thread that holds it, as
 * something below has called back what stands above. */
enum hipmm_status lock_enter_slowly(struct lock *lock, const struct hipmm_services *services);

static inline enum hipmm_status lock_enter(struct lock *lock, const struct hipmm_services *services)
{
  return lock_pass(lock) ? HIPMM_OK : lock_enter_slowly(lock, services);
}

static inline void lock_release(struct lock *lock)
{
  if (__builtin_expect(lock_is_own(lock) && gate_is_passed(&lock->gate), 1))
    gate_leave(&lock->gate);
  else
    lock_release_busy(lock);
}

/* The caller, who holds it, becomes its owner, if it has none. */
void lock_own(struct lock *lock);

/* The caller, who does not hold it, is its owner no more. An owner that ends (threads.h) without it leaves a lock that no
 * other thread owns: a plain mutex. */
void lock_disown(struct lock *lock);

#endif
