/* SPDX-License-Identifier: MIT */
/* peak.h: a counter with a peak, which threads change without a lock. */
#ifndef HIPMM_CORE_BASE_PEAK_H
#define HIPMM_CORE_BASE_PEAK_H

#include <stdatomic.h>
#include <stdint.h>

/* Raises the peak to `now`. */
static inline void peak_raise(atomic_int_fast64_t *peak, int64_t now)
{
  int_fast64_t before = atomic_load_explicit(peak, memory_order_relaxed);
  while (now > before &&
         !atomic_compare_exchange_weak_explicit(peak, &before, now, memory_order_relaxed, memory_order_relaxed))
    continue;
}

/* Returns what the counter has then. */
static inline int64_t peak_add(atomic_int_fast64_t *counter, atomic_int_fast64_t *peak, int64_t more)
{
  int64_t now = atomic_fetch_add_explicit(counter, more, memory_order_relaxed) + more;
  peak_raise(peak, now);
  return now;
}

#endif
