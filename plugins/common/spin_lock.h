/* SPDX-License-Identifier: MIT */
/* spin_lock.h: a lock for a few instructions that seldom has two users at once: one exchange to acquire, one store to
 * release. For data of one thread, or of one stream. */
#ifndef HIPMM_PLUGINS_COMMON_SPIN_LOCK_H
#define HIPMM_PLUGINS_COMMON_SPIN_LOCK_H

#include "../../core/base/lock_order.h"

#include <stdatomic.h>

void spin_wait(atomic_flag *lock);

static inline void spin_lock(atomic_flag *lock)
{
  if (__builtin_expect(atomic_flag_test_and_set_explicit(lock, memory_order_acquire), 0)) spin_wait(lock);
}

static inline void spin_unlock(atomic_flag *lock)
{
  atomic_flag_clear_explicit(lock, memory_order_release);
}

#ifdef HIPMM_CHECKS
#define spin_lock(lock)                                                                                     \
  __extension__({                                                                                           \
    atomic_flag *spin_lock_taken = (lock);                                                                  \
    const struct lock_order_site *spin_lock_site = LOCK_ORDER_SITE_OF(#lock, "plugins/common/spin_lock.h"); \
    lock_order_check_site(spin_lock_taken, spin_lock_site);                                                 \
    (spin_lock)(spin_lock_taken);                                                                           \
    lock_order_push_site(spin_lock_taken, spin_lock_site);                                                  \
  })
#define spin_unlock(lock)                 \
  __extension__({                         \
    atomic_flag *spin_lock_left = (lock); \
    lock_order_pop(spin_lock_left);       \
    (spin_unlock)(spin_lock_left);        \
  })
#endif

#endif
