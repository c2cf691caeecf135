/* SPDX-License-Identifier: MIT */
/* spin_lock.h: a lock for a few instructions that hardly ever meet anybody: one exchange to take, one store to let go.
 * Compiled into what keeps each thread's, or each stream's, doings apart. */
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
