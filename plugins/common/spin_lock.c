/* SPDX-License-Identifier: MIT */
/* spin_lock.c: the wait of a thread that finds the lock taken. */
#include "spin_lock.h"

#include <sched.h>

enum { SPINS_BEFORE_YIELD = 64 };

/* Tells the processor that this thread only waits. */
static void spin_pause(void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb"); /* "yield" does nothing on most processors */
#endif
}

void spin_wait(atomic_flag *lock)
{
  for (int spins = 0; atomic_flag_test_and_set_explicit(lock, memory_order_acquire); spins++)
    if (spins < SPINS_BEFORE_YIELD)
      spin_pause();
    else
      sched_yield(); /* the holder may have lost the processor */
}
