/* SPDX-License-Identifier: MIT */
/* times.h: how long single operations took, as counts by length: constant memory, 3% resolution, the maximum
 * exact. In ticks of the processor's clock, the cheapest there is. */
#ifndef HIPMM_CORE_CMD_BENCH_TIMES_H
#define HIPMM_CORE_CMD_BENCH_TIMES_H

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
  uint64_t empty;     /* ticks that timing nothing takes; taken off each */
  double ns_per_tick; /* 0: not known yet */
};

/* The clock before an operation and after it: neither lets the operation leak out of the interval. */
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

/* Empties it and measures what timing nothing takes. */
void bench_times_start(struct bench_times *times);

/* Notes an operation between the two ticks. */
void bench_times_add(struct bench_times *times, uint64_t before, uint64_t after);

/* Adds another's counts. */
void bench_times_merge(struct bench_times *times, const struct bench_times *other);

/* The time that `share` of the operations stayed at or below; the longest for 1. In ns; 0 if nothing was noted. */
double bench_times_ns(const struct bench_times *times, double share);

#endif
