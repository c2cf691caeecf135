/* SPDX-License-Identifier: MIT */
/* biased_lock.c: the ways of other threads, and changes of the owner. */
#include "biased_lock.h"

enum { LONG_ALONE = 1024 };

void biased_lock_open(struct biased_lock *lock)
{
  pthread_mutexattr_t adaptive; /* most critical sections take less time than going to sleep */
  pthread_mutexattr_init(&adaptive);
  pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(&lock->busy, &adaptive);
  pthread_mutexattr_destroy(&adaptive);
  asymmetric_fence_prepare();
  gate_shut(&lock->gate);
}

void(biased_lock_close)(struct biased_lock *lock)
{
  pthread_mutex_destroy(&lock->busy);
}

/* An address that identifies the calling thread. */
static const void *biased_lock_me(void)
{
  return &thread_memories;
}

bool biased_lock_is_held(const struct biased_lock *lock)
{
  return (biased_lock_is_own(lock) && gate_is_passed(&lock->gate)) ||
         atomic_load_explicit(&lock->taker, memory_order_relaxed) == biased_lock_me();
}

/* Whether the owner is inside. `busy` is held, as wherever the gate is shut or opened. */
static bool biased_lock_shut_gate(struct biased_lock *lock)
{
  if (gate_is_shut(&lock->gate)) return false;
  gate_shut(&lock->gate);
  asymmetric_fence_heavy();
  return atomic_load(&lock->gate.inside);
}

static bool biased_lock_is_long_alone(struct biased_lock *lock)
{
  lock->n_alone = lock->last == biased_lock_me() ? lock->n_alone + 1 : 0;
  lock->last = biased_lock_me();
  return lock->n_alone == LONG_ALONE;
}

/* The owner is inside: what the gate is to wait for. */
static void biased_lock_reopen(struct biased_lock *lock)
{
  gate_open(&lock->gate);
  biased_lock_release_busy(lock);
}

/* NULL: waits in any case. */
static enum hipmm_status biased_lock_check_wait(const struct hipmm_services *services)
{
  return services ? services->check_wait(services) : HIPMM_OK;
}

static enum hipmm_status biased_lock_take_busy(struct biased_lock *lock, const struct hipmm_services *services)
{
  bool waits = pthread_mutex_trylock(&lock->busy) != 0;
  enum hipmm_status status = waits ? biased_lock_check_wait(services) : HIPMM_OK;
  if (status) return status;
  if (waits) pthread_mutex_lock(&lock->busy);
  atomic_store_explicit(&lock->taker, biased_lock_me(), memory_order_relaxed);
  bool is_own = biased_lock_is_own(lock);
  if (!is_own && biased_lock_shut_gate(lock)) {
    status = biased_lock_check_wait(services);
    if (status) biased_lock_reopen(lock);
    if (status) return status;
    gate_await(&lock->gate);
  }
  lock->has_waited = waits; /* not earlier: the owner reads it inside the gate */
  if (!biased_lock_is_long_alone(lock)) return HIPMM_OK;
  if (is_own)
    gate_open(&lock->gate); /* for the next time */
  else
    biased_lock_own(lock);
  return HIPMM_OK;
}

void biased_lock_acquire_busy(struct biased_lock *lock)
{
  (void)biased_lock_take_busy(lock, NULL);
}

bool(biased_lock_try)(struct biased_lock *lock)
{
  if (biased_lock_enter_gate(lock)) return true;
  if (biased_lock_is_held(lock) || pthread_mutex_trylock(&lock->busy)) return false;
  atomic_store_explicit(&lock->taker, biased_lock_me(), memory_order_relaxed);
  if (biased_lock_is_own(lock) || !biased_lock_shut_gate(lock)) return true;
  biased_lock_reopen(lock);
  return false;
}

enum hipmm_status biased_lock_enter_slow_path(struct biased_lock *lock, const struct hipmm_services *services)
{
  if (biased_lock_is_held(lock))
    return services->refuse(
        services, HIPMM_E_STATE,
        "this thread is already in a call of this resource, and a function of the program that is called from below "
        "cannot use it",
        0, 0, 0);
  return biased_lock_take_busy(lock, services);
}

/* The owner that passes the gate next has not waited. */
void biased_lock_release_busy(struct biased_lock *lock)
{
  lock->has_waited = false;
  atomic_store_explicit(&lock->taker, NULL, memory_order_relaxed);
  pthread_mutex_unlock(&lock->busy);
}

void biased_lock_own(struct biased_lock *lock)
{
  if (atomic_load(&lock->owner) || !thread_register()) return;
  atomic_store(&lock->owner, thread_memories);
  gate_open(&lock->gate);
}

void biased_lock_disown(struct biased_lock *lock)
{
  if (biased_lock_is_own(lock)) atomic_store(&lock->owner, NULL); /* the gate stays as it is: other threads shut it */
}
