/* SPDX-License-Identifier: MIT */
/* usage.c: see usage.h. Threads count at the same time; a peak may miss what two of them had for an instant. */
#include "usage.h"

#include <stdbool.h>

static int64_t round_up(int64_t bytes, int64_t unit)
{
  return (bytes + unit - 1) / unit * unit;
}

static int64_t add(atomic_int_fast64_t *counter, int64_t more)
{
  return atomic_fetch_add_explicit(counter, more, memory_order_relaxed) + more;
}

void usage_raise(atomic_int_fast64_t *peak, int64_t now)
{
  int_fast64_t before = atomic_load_explicit(peak, memory_order_relaxed);
  while (now > before &&
         !atomic_compare_exchange_weak_explicit(peak, &before, now, memory_order_relaxed, memory_order_relaxed))
    continue;
}

static void count(struct usage *usage, int64_t bytes, int sign)
{
  bool large = bytes >= USAGE_LARGE_BYTES;
  int64_t taken = round_up(bytes, large ? USAGE_UNIT_BYTES : USAGE_SMALL_BYTES) * sign;
  add(large ? &usage->large_bytes : &usage->small_bytes, taken);
  add(&usage->count, sign);
  usage_raise(&usage->peak_bytes, add(&usage->bytes, bytes * sign));
  usage_raise(&usage->driver_peak_bytes,
              atomic_load_explicit(&usage->large_bytes, memory_order_relaxed) +
                  round_up(atomic_load_explicit(&usage->small_bytes, memory_order_relaxed), USAGE_UNIT_BYTES));
}

void usage_add(struct usage *usage, size_t bytes)
{
  count(usage, (int64_t)bytes, 1);
}

void usage_remove(struct usage *usage, size_t bytes)
{
  count(usage, (int64_t)bytes, -1);
}
