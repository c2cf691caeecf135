/* SPDX-License-Identifier: MIT */
/* biased_lock.h: a lock for data that one thread, the owner, uses far more often than all others. The owner passes an
 * asymmetric gate (gate.h), which is almost free while no other thread comes. Another thread takes the mutex `busy` and
 * shuts the gate, which takes microseconds; from then on the owner takes `busy` too, until it has been alone for a while.
 * So a lock that many threads use is a plain mutex. A thread that has been alone for a while becomes the owner of a lock
 * that has none. Biased locks are known from Java virtual machines (Russell and Detlefs, OOPSLA 2006). */
#ifndef HIPMM_PLUGINS_COMMON_BIASED_LOCK_H
#define HIPMM_PLUGINS_COMMON_BIASED_LOCK_H

#include "../../core/base/lock_order.h"
#include "gate.h"
#include "thread_cache.h"

#include <hipmm/plugin.h>
#include <pthread.h>

struct biased_lock {
  struct gate gate;
  _Atomic(const void *) owner; /* its thread_memories; NULL: none. Only the owner sets it */
  _Atomic(const void *) taker; /* the thread that holds `busy`; NULL: none */
  pthread_mutex_t busy;
  bool has_waited;  /* the thread that holds `busy` had to wait for it */
  const void *last; /* the last taker of `busy` */
  uint32_t n_alone; /* times in a row that `last` took it */
};

/* The lock is zeroed. biased_lock_close() is called when no thread uses it. */
void biased_lock_open(struct biased_lock *lock);
void biased_lock_close(struct biased_lock *lock);

static inline bool biased_lock_is_own(const struct biased_lock *lock)
{
  return atomic_load_explicit(&lock->owner, memory_order_relaxed) == thread_memories;
}

/* Whether the calling thread, which holds the lock, had to wait for another thread. */
static inline bool biased_lock_has_waited(const struct biased_lock *lock)
{
  return lock->has_waited;
}

/* Whether the calling thread holds the lock. */
bool biased_lock_is_held(const struct biased_lock *lock);

void biased_lock_acquire_busy(struct biased_lock *lock);
void biased_lock_release_busy(struct biased_lock *lock);

/* The owner's way in; false, and nothing done, if the caller must take `busy`. */
static inline bool biased_lock_enter_gate(struct biased_lock *lock)
{
  return __builtin_expect(biased_lock_is_own(lock) && !gate_is_passed(&lock->gate) && gate_enter(&lock->gate), 1);
}

static inline void biased_lock_acquire(struct biased_lock *lock)
{
  if (!biased_lock_enter_gate(lock)) biased_lock_acquire_busy(lock);
}

/* Acquires the lock if that needs no wait; false, and nothing done, otherwise. */
bool biased_lock_try(struct biased_lock *lock);

/* For the ops of a resource that calls its upstream with the lock held. Acquires the lock, but refuses a thread that
 * holds it, since a resource below has called back one above, and a thread that must not wait for another
 * (services->check_wait). */
enum hipmm_status biased_lock_enter_slow_path(struct biased_lock *lock, const struct hipmm_services *services);

static inline enum hipmm_status biased_lock_enter(struct biased_lock *lock, const struct hipmm_services *services)
{
  return biased_lock_enter_gate(lock) ? HIPMM_OK : biased_lock_enter_slow_path(lock, services);
}

static inline void biased_lock_release(struct biased_lock *lock)
{
  if (__builtin_expect(biased_lock_is_own(lock) && gate_is_passed(&lock->gate), 1))
    gate_leave(&lock->gate);
  else
    biased_lock_release_busy(lock);
}

/* The caller holds the lock, and becomes its owner if it has none. */
void biased_lock_own(struct biased_lock *lock);

/* The caller does not hold the lock, and is its owner no more. An owner that ends (thread_cache.h) without this call leaves
 * a lock that no other thread can own: a plain mutex. */
void biased_lock_disown(struct biased_lock *lock);

#ifdef HIPMM_CHECKS
#define BIASED_LOCK_SITE(lock) LOCK_ORDER_SITE_OF(#lock, "plugins/common/biased_lock.h")
#define biased_lock_acquire(lock)                       \
  __extension__({                                       \
    lock_order_wait_site(lock, BIASED_LOCK_SITE(lock)); \
    (biased_lock_acquire)(lock);                        \
    lock_order_push_site(lock, BIASED_LOCK_SITE(lock)); \
  })
#define biased_lock_enter(lock, services)                                                \
  __extension__({                                                                        \
    if (!biased_lock_is_held(lock)) lock_order_check_site(lock, BIASED_LOCK_SITE(lock)); \
    enum hipmm_status biased_lock_status = (biased_lock_enter)(lock, services);          \
    if (!biased_lock_status) lock_order_push_site(lock, BIASED_LOCK_SITE(lock));         \
    biased_lock_status;                                                                  \
  })
#define biased_lock_try(lock)                                                  \
  __extension__({                                                              \
    bool biased_lock_taken = (biased_lock_try)(lock);                          \
    if (biased_lock_taken) lock_order_push_site(lock, BIASED_LOCK_SITE(lock)); \
    biased_lock_taken;                                                         \
  })
#define biased_lock_release(lock) \
  __extension__({                 \
    lock_order_pop(lock);         \
    (biased_lock_release)(lock);  \
  })
#define biased_lock_close(lock) \
  __extension__({               \
    lock_order_forget(lock);    \
    (biased_lock_close)(lock);  \
  })
#endif

#endif
