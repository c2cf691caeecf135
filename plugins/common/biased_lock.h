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

struct biased_lock {
  struct gate gate;
  _Atomic(const void *) owner; /* its thread_memories; NULL: none. Set by itself alone */
  _Atomic(const void *) taker; /* who holds `busy`; NULL: nobody */
  pthread_mutex_t busy;
  const void *last; /* taker of `busy`, and how often in a row */
  uint32_t n_alone;
};

/* From zeroed memory; and at the end, when nobody uses it. */
void biased_lock_open(struct biased_lock *lock);
void biased_lock_close(struct biased_lock *lock);

static inline bool biased_lock_is_own(const struct biased_lock *lock)
{
  return thread_memories && atomic_load_explicit(&lock->owner, memory_order_relaxed) == thread_memories;
}

/* Whether the calling thread holds it, and must not take it. */
bool biased_lock_is_held(const struct biased_lock *lock);

void biased_lock_acquire_busy(struct biased_lock *lock);
void biased_lock_release_busy(struct biased_lock *lock);

/* The owner's way; false, and nothing done, if the caller has to go the other one. */
static inline bool biased_lock_enter_gate(struct biased_lock *lock)
{
  return __builtin_expect(biased_lock_is_own(lock) && !gate_is_passed(&lock->gate) && gate_enter(&lock->gate), 1);
}

static inline void biased_lock_acquire(struct biased_lock *lock)
{
  if (!biased_lock_enter_gate(lock)) biased_lock_acquire_busy(lock);
}

/* Takes it if that needs no waiting; false, and nothing done, otherwise. */
bool biased_lock_try(struct biased_lock *lock);

/* For the ops of a resource that holds it while it calls its upstream: takes it, but refuses a thread that holds it, as
 * something below has called back what stands above. */
enum hipmm_status biased_lock_enter_slowly(struct biased_lock *lock, const struct hipmm_services *services);

static inline enum hipmm_status biased_lock_enter(struct biased_lock *lock, const struct hipmm_services *services)
{
  return biased_lock_enter_gate(lock) ? HIPMM_OK : biased_lock_enter_slowly(lock, services);
}

static inline void biased_lock_release(struct biased_lock *lock)
{
  if (__builtin_expect(biased_lock_is_own(lock) && gate_is_passed(&lock->gate), 1))
    gate_leave(&lock->gate);
  else
    biased_lock_release_busy(lock);
}

/* The caller, who holds it, becomes its owner, if it has none. */
void biased_lock_own(struct biased_lock *lock);

/* The caller, who does not hold it, is its owner no more. An owner that ends (threads.h) without it leaves a lock that no
 * other thread owns: a plain mutex. */
void biased_lock_disown(struct biased_lock *lock);

#endif
