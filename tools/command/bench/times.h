/* SPDX-License-Identifier: MIT */
/* times.h: a histogram of the times of single operations: constant memory, 3 % resolution, the maximum exact. Times are
 * ticks of the processor's own counter, which is the cheapest clock. */
#ifndef HIPMM_TOOLS_COMMAND_BENCH_TIMES_H
#define HIPMM_TOOLS_COMMAND_BENCH_TIMES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <time.h>
#endif

enum { BENCH_TIMES_FINE = 32, BENCH_TIMES_ROWS = 60 * BENCH_TIMES_FINE };

struct bench_times {
  uint64_t rows[BENCH_TIMES_ROWS];
  uint64_t count, longest;
  uint64_t empty;     /* ticks of timing nothing; subtracted from each operation */
  double ns_per_tick; /* 0: not known yet */
};

/* The clock before an operation and after it. Fences keep the operation inside of the interval. */
static inline uint64_t bench_tick_before(void)
{
#if defined(__x86_64__)
  _mm_lfence();
  uint64_t tick = __rdtsc();
  _mm_lfence();
  return tick;
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

static inline uint64_t bench_tick_after(void)
{
#if defined(__x86_64__)
  unsigned processor;
  return __rdtscp(&processor);
#else
  return bench_tick_before();
#endif
}

/* Empties *times, and measures the cost of timing itself. */
void bench_times_start(struct bench_times *times);

/* Adds the operation between the two ticks. */
void bench_times_add(struct bench_times *times, uint64_t before, uint64_t after);

/* Adds the counts of `other`. */
void bench_times_merge(struct bench_times *times, const struct bench_times *other);

/* The quantile `share`, 0 to 1, in ns: 0.5 is the median, 1 the longest. 0 if there is no operation. */
double bench_times_ns(const struct bench_times *times, double share);

#endif
