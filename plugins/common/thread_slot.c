/* SPDX-License-Identifier: MIT */
/* thread_slot.c: see slot.h. */
#include "thread_slot.h"

#include <stdatomic.h>

_Thread_local uint32_t slot_of_thread;

uint32_t slot_give(void)
{
  static atomic_uint_fast32_t threads;
  slot_of_thread = (uint32_t)(atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % SLOTS) + 1;
  return slot_of_thread;
}
