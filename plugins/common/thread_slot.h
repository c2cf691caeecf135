/* SPDX-License-Identifier: MIT */
/* thread_slot.h: a small number for the calling thread, by which adaptors keep what each thread does apart from what others
 * do. Threads are numbered as they come, and the numbers begin again after THREAD_SLOTS: two threads may have the same one,
 * so a slot is a hint where to count and no ownership. */
#ifndef HIPMM_PLUGINS_COMMON_THREAD_SLOT_H
#define HIPMM_PLUGINS_COMMON_THREAD_SLOT_H

#include <stdint.h>

enum { THREAD_SLOTS = 64, THREAD_SLOT_LINE_BYTES = 128 /* what processors fetch at a time */ };

/* 0: not given yet. In the static block of thread-local storage: a call to find it would cost as much as counting. */
extern _Thread_local uint32_t thread_slot_of_thread __attribute__((tls_model("initial-exec")));

uint32_t thread_slot_give(void);

/* Less than THREAD_SLOTS. */
static inline uint32_t thread_slot_now(void)
{
  uint32_t slot = thread_slot_of_thread;
  if (__builtin_expect(!slot, 0)) slot = thread_slot_give();
  return slot - 1;
}

#endif
