/* SPDX-License-Identifier: MIT */
/* lock.h: the lock of one thread's arena. That thread, its owner, passes a gate and pays next to nothing as long as
 * nobody else comes. Whoever else comes takes `busy` and shuts the gate, which costs microseconds; from then on the
 * owner takes `busy` too, until it has been alone for a while. So an arena that other threads keep freeing into has a
 * plain lock. */
#ifndef HIPMM_ARENA_LOCK_H
#define HIPMM_ARENA_LOCK_H

#include "../gate.h"
#include "../spin.h"
#include "../threads.h"

struct lock {
  struct gate gate;
  atomic_flag busy;
  uint32_t n_alone;            /* times that the owner took `busy` since another thread did */
  _Atomic(const void *) owner; /* its thread_memories; NULL: none. Set by itself alone */
};

static inline bool lock_is_own(const struct lock *lock)
{
  return thread_memories && atomic_load_explicit(&lock->owner, memory_order_relaxed) == thread_memories;
}

void lock_take_busy(struct lock *lock);

static inline void lock_take(struct lock *lock)
{
  if (__builtin_expect(lock_is_own(lock) && gate_enter(&lock->gate), 1)) return;
  lock_take_busy(lock);
}

static inline void lock_release(struct lock *lock)
{
  if (__builtin_expect(lock_is_own(lock) && gate_is_passed(&lock->gate), 1))
    gate_leave(&lock->gate);
  else
    spin_unlock(&lock->busy);
}

/* The caller, who holds it, becomes its owner, if it has none. */
void lock_own(struct lock *lock);

/* The caller, who does not hold it, is its owner no more: as it must say before it ends. */
void lock_disown(struct lock *lock);

#endif
