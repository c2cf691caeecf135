/* SPDX-License-Identifier: MIT */
/* thread_slot.c: assigns slots. */
#include "thread_slot.h"

#include <stdatomic.h>

_Thread_local uint32_t thread_slot_of_thread;

uint32_t thread_slot_assign(void)
{
  static atomic_uint_fast32_t threads;
  thread_slot_of_thread = (uint32_t)(atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % THREAD_SLOTS) + 1;
  return thread_slot_of_thread;
}
