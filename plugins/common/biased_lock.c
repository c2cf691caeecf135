/* SPDX-License-Identifier: MIT */
/* biased_lock.c: taking turns with others, and ownership. */
#include "biased_lock.h"

enum { LONG_ALONE = 1024 };

void lock_open(struct lock *lock)
{
  pthread_mutexattr_t adaptive; /* what it guards mostly takes less time than going to sleep */
  pthread_mutexattr_init(&adaptive);
  pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(&lock->busy, &adaptive);
  pthread_mutexattr_destroy(&adaptive);
  gates_prepare();
  gate_shut(&lock->gate);
}

void lock_close(struct lock *lock)
{
  pthread_mutex_destroy(&lock->busy);
}

/* An address that stands for the calling thread. */
static const void *me(void)
{
  return &thread_memories;
}

bool lock_is_held(const struct lock *lock)
{
  return (lock_is_own(lock) && gate_is_passed(&lock->gate)) ||
         atomic_load_explicit(&lock->taker, memory_order_relaxed) == me();
}

/* `busy` is held, as wherever the gate is shut. */
static void shut_out_owner(struct lock *lock)
{
  if (gate_is_shut(&lock->gate)) return;
  gate_shut(&lock->gate);
  gates_agree();
  gate_await(&lock->gate);
}

/* The same, without waiting for the owner: false, and the gate is open, if the owner is inside. */
static bool try_shut_out_owner(struct lock *lock)
{
  if (gate_is_shut(&lock->gate)) return true;
  gate_shut(&lock->gate);
  gates_agree();
  bool is_out = !atomic_load(&lock->gate.inside);
  if (!is_out) gate_open(&lock->gate);
  return is_out;
}

static bool is_long_alone(struct lock *lock)
{
  lock->n_alone = lock->last == me() ? lock->n_alone + 1 : 0;
  lock->last = me();
  return lock->n_alone == LONG_ALONE;
}

void lock_take_busy(struct lock *lock)
{
  pthread_mutex_lock(&lock->busy);
  atomic_store_explicit(&lock->taker, me(), memory_order_relaxed);
  bool is_own = lock_is_own(lock);
  if (!is_own) shut_out_owner(lock);
  if (!is_long_alone(lock)) return;
  if (is_own)
    gate_open(&lock->gate); /* for the next time */
  else
    lock_own(lock);
}

bool lock_try(struct lock *lock)
{
  if (lock_pass(lock)) return true;
  if (lock_is_held(lock) || pthread_mutex_trylock(&lock->busy)) return false;
  atomic_store_explicit(&lock->taker, me(), memory_order_relaxed);
  if (lock_is_own(lock) || try_shut_out_owner(lock)) return true;
  lock_release_busy(lock);
  return false;
}

enum hipmm_status lock_enter_slowly(struct lock *lock, const struct hipmm_services *services)
{
  if (lock_is_held(lock))
    return services->refuse(services, HIPMM_E_STATE,
                            "this thread is in a call of it already: what is called back from below cannot use it; put "
                            "failure_callback, and the like, on top of it",
                            0, 0, 0);
  lock_take_busy(lock);
  return HIPMM_OK;
}

void lock_release_busy(struct lock *lock)
{
  atomic_store_explicit(&lock->taker, NULL, memory_order_relaxed);
  pthread_mutex_unlock(&lock->busy);
}

void lock_own(struct lock *lock)
{
  if (atomic_load(&lock->owner) || !thread_attend()) return;
  atomic_store(&lock->owner, thread_memories);
  gate_open(&lock->gate);
}

void lock_disown(struct lock *lock)
{
  if (lock_is_own(lock)) atomic_store(&lock->owner, NULL); /* whose gate stays as it is: it is for others to shut */
}
