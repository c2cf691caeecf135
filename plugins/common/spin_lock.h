/* SPDX-License-Identifier: MIT */
/* spin_lock.h: a lock for a few instructions that seldom has two users at once: one exchange to acquire, one store to
 * release. For data of one thread, or of one stream. */
#ifndef HIPMM_PLUGINS_COMMON_SPIN_LOCK_H
#define HIPMM_PLUGINS_COMMON_SPIN_LOCK_H

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

#endif
