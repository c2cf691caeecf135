/* SPDX-License-Identifier: MIT */
/* times.c: see times.h. */
#include "times.h"

enum { TIMES_CALIBRATIONS = 2000, TIMES_FINE_BITS = 5 };

_Static_assert(BENCH_TIMES_FINE == 1 << TIMES_FINE_BITS, "rows of an octave");

void bench_times_start(struct bench_times *times)
{
  *times = (struct bench_times){.empty = UINT64_MAX};
  for (int i = 0; i < TIMES_CALIBRATIONS; i++) {
    uint64_t before = bench_tick_before();
    uint64_t ticks = bench_tick_after() - before;
    if (ticks < times->empty) times->empty = ticks;
  }
}

/* Exact below BENCH_TIMES_FINE, then so many rows for each octave. */
static size_t bench_times_row(uint64_t ticks)
{
  if (ticks < BENCH_TIMES_FINE) return (size_t)ticks;
  int octave = 63 - __builtin_clzll(ticks) - TIMES_FINE_BITS;
  return (size_t)(octave << TIMES_FINE_BITS) + (size_t)(ticks >> octave);
}

/* The middle of a row. */
static double bench_times_row_ticks(size_t row)
{
  if (row < BENCH_TIMES_FINE) return (double)row;
  size_t octave = (row >> TIMES_FINE_BITS) - 1;
  double width = (double)(UINT64_C(1) << octave);
  return ((double)(row - (octave << TIMES_FINE_BITS)) + 0.5) * width;
}

void bench_times_add(struct bench_times *times, uint64_t before, uint64_t after)
{
  uint64_t ticks = after - before > times->empty ? after - before - times->empty : 0;
  size_t row = bench_times_row(ticks);
  times->rows[row < BENCH_TIMES_ROWS ? row : BENCH_TIMES_ROWS - 1]++;
  times->count++;
  if (ticks > times->longest) times->longest = ticks;
}

void bench_times_merge(struct bench_times *times, const struct bench_times *other)
{
  for (size_t i = 0; i < BENCH_TIMES_ROWS; i++) times->rows[i] += other->rows[i];
  times->count += other->count;
  if (other->longest > times->longest) times->longest = other->longest;
  if (other->ns_per_tick > 0) times->ns_per_tick = other->ns_per_tick;
}

double bench_times_ns(const struct bench_times *times, double share)
{
  if (share >= 1) return (double)times->longest * times->ns_per_tick;
  uint64_t seen = 0;
  for (size_t row = 0; row < BENCH_TIMES_ROWS; row++) {
    seen += times->rows[row];
    if (seen == 0 || (double)seen < share * (double)times->count) continue;
    double ticks = bench_times_row_ticks(row);
    return (ticks < (double)times->longest ? ticks : (double)times->longest) * times->ns_per_tick;
  }
  return 0;
}
