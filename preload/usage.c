/* SPDX-License-Identifier: MIT */
/* usage.c: see usage.h. Threads count at the same time; a peak may miss what two of them had for an instant. */
#include "usage.h"

#include <stdbool.h>

static int64_t usage_round_up(int64_t bytes, int64_t unit)
{
  return (bytes + unit - 1) / unit * unit;
}

static int64_t usage_add_bytes(atomic_int_fast64_t *counter, int64_t more)
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

static void usage_count(struct usage *usage, int64_t bytes, int sign)
{
  bool large = bytes >= USAGE_LARGE_BYTES;
  int64_t taken = usage_round_up(bytes, large ? USAGE_UNIT_BYTES : USAGE_SMALL_BYTES) * sign;
  usage_add_bytes(large ? &usage->large_bytes : &usage->small_bytes, taken);
  usage_add_bytes(&usage->count, sign);
  usage_raise(&usage->peak_bytes, usage_add_bytes(&usage->bytes, bytes * sign));
  usage_raise(&usage->driver_peak_bytes,
              atomic_load_explicit(&usage->large_bytes, memory_order_relaxed) +
                  usage_round_up(atomic_load_explicit(&usage->small_bytes, memory_order_relaxed), USAGE_UNIT_BYTES));
}

void usage_add(struct usage *usage, size_t bytes)
{
  usage_count(usage, (int64_t)bytes, 1);
}

void usage_remove(struct usage *usage, size_t bytes)
{
  usage_count(usage, (int64_t)bytes, -1);
}
