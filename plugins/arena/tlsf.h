/* SPDX-License-Identifier: MIT */
/* tlsf.h: an index of free ranges by size: two-level segregated fit (Masmano, Ripoll, Crespo, Real 2004). The sizes in
 * one list differ by less than 1/32. Adding, removing and finding take constant time. The caller holds the lock of the
 * arena that has the ranges. */
#ifndef HIPMM_PLUGINS_ARENA_TLSF_H
#define HIPMM_PLUGINS_ARENA_TLSF_H

#include "range.h"

enum {
  TLSF_COLUMN_BITS = 5,
  TLSF_COLUMNS = 1 << TLSF_COLUMN_BITS,
  TLSF_ROWS = 36 /* up to 2^40 units */
};

struct tlsf {
  uint64_t rows; /* bits: which rows have ranges */
  uint32_t columns[TLSF_ROWS];
  uint32_t heads[TLSF_ROWS][TLSF_COLUMNS];
  uint32_t count;
  uint64_t bytes; /* in all */
};

void tlsf_add(struct tlsf *tlsf, const struct arena_ranges *ranges, uint32_t id);
void tlsf_remove(struct tlsf *tlsf, const struct arena_ranges *ranges, uint32_t id);

/* A range of at least `bytes`, close to it if there is one; RANGE_NONE if there is none. */
uint32_t tlsf_fit(const struct tlsf *tlsf, const struct arena_ranges *ranges, uint64_t bytes);

/* Any range; RANGE_NONE when empty. */
uint32_t tlsf_any(const struct tlsf *tlsf);

/* Bytes of the largest range. Visits all ranges in the list of the largest sizes. */
uint64_t tlsf_largest(const struct tlsf *tlsf, const struct arena_ranges *ranges);

#endif
