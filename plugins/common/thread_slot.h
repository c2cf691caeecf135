/* SPDX-License-Identifier: MIT */
/* thread_slot.h: a small number for each thread, so that adaptors can count for each thread separately. After THREAD_SLOTS
 * threads the numbers repeat: two threads may have the same slot, so a slot says where to count and owns nothing.
 *
 * A slot is not thread_number() of thread_cache.h modulo THREAD_SLOTS: that number is unique for the process's life, and
 * its file also watches for the ends of threads, which these adaptors need not know. The core numbers threads itself for
 * its handles, since it includes nothing of the plugins. */
#ifndef HIPMM_PLUGINS_COMMON_THREAD_SLOT_H
#define HIPMM_PLUGINS_COMMON_THREAD_SLOT_H

#include <stdint.h>

enum { THREAD_SLOTS = 64, THREAD_SLOT_LINE_BYTES = 128 /* processors fetch two cache lines at a time */ };

/* 0: not assigned yet. In the static block of thread-local storage: a call that finds it would cost as much as counting. */
extern _Thread_local uint32_t thread_slot_of_thread __attribute__((tls_model("initial-exec")));

uint32_t thread_slot_assign(void);

/* The calling thread's slot, less than THREAD_SLOTS. */
static inline uint32_t thread_slot_now(void)
{
  uint32_t slot = thread_slot_of_thread;
  if (__builtin_expect(!slot, 0)) slot = thread_slot_assign();
  return slot - 1;
}

#endif
