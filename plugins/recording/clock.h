/* SPDX-License-Identifier: MIT */
/* clock.h: the clock of a record. Where the kernel trusts the processor's counter, it is the counter: reading it costs half
 * as much as clock_gettime(). Else it is the monotonic clock, in nanoseconds. */
#ifndef HIPMM_PLUGINS_RECORDING_CLOCK_H
#define HIPMM_PLUGINS_RECORDING_CLOCK_H

#include "../../core/base/deadline.h"
#include <stdbool.h>
#if defined __x86_64__
#include <x86intrin.h>
#endif

/* The processor may read its counter some ten nanoseconds early, so events of two threads that hand a block to each other
 * at once can have their times in the wrong order. The readers of a record mend that by the address; to wait for the
 * counter would double the cost. */
static inline uint64_t clock_ticks(bool uses_counter)
{
#if defined __x86_64__
  if (__builtin_expect(uses_counter, 1)) return __rdtsc();
#elif defined __aarch64__
  uint64_t ticks;
  if (__builtin_expect(uses_counter, 1)) {
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    return ticks;
  }
#endif
  (void)uses_counter;
  return monotonic_ns();
}

/* Whether the counters of all processors run alike, at one rate. */
bool clock_has_counter(void);

/* The rate of the clock, measured for a millisecond. */
uint64_t clock_ticks_per_second(bool uses_counter);

#endif
