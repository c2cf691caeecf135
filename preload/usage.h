/* SPDX-License-Identifier: MIT */
/* usage.h: what the program has of one kind of memory, and an estimate of what the driver alone would have taken for
 * it. */
#ifndef HIPMM_PRELOAD_USAGE_H
#define HIPMM_PRELOAD_USAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct usage {
  atomic_int_fast64_t count, bytes, peak_bytes;
  atomic_int_fast64_t small_bytes, large_bytes, driver_peak_bytes;
};

/* What the driver is assumed to do, for want of a way to ask it: a block of 1 MiB or more takes whole units of 2 MiB
 * for itself; smaller ones take multiples of 512 bytes out of units that they share. Of CUDA's it is known that device
 * pages are of 2 MiB and that addresses lie 512 bytes apart; where small blocks end is a guess, and ROCm's may do
 * otherwise. Nothing of it was measured. */
enum { USAGE_UNIT_BYTES = 2 << 20, USAGE_LARGE_BYTES = 1 << 20, USAGE_SMALL_BYTES = 512 };

/* Raises a peak to what there is now. */
void usage_raise(atomic_int_fast64_t *peak, int64_t now);

void usage_add(struct usage *usage, size_t bytes);
void usage_remove(struct usage *usage, size_t bytes);

#endif
