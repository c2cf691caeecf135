/* SPDX-License-Identifier: MIT */
/* tlsf.h: free ranges by size, in lists of sizes that differ by less than a thirty-second. Adding, removing and
 * finding cost the same however many there are (two-level segregated fit: Masmano, Ripoll, Crespo, Real 2004). The
 * caller holds the lock of what the ranges belong to. */
#ifndef HIPMM_PLUGINS_ARENA_TLSF_H
#define HIPMM_PLUGINS_ARENA_TLSF_H

#include "range.h"

enum {
  TLSF_COLUMN_BITS = 5,
  TLSF_COLUMNS = 1 << TLSF_COLUMN_BITS,
  TLSF_ROWS = 36 /* up to 2^40 units */
};

struct tlsf {
  uint64_t rows; /* which have ranges */
  uint32_t columns[TLSF_ROWS];
  uint32_t heads[TLSF_ROWS][TLSF_COLUMNS];
  uint32_t count;
  uint64_t bytes; /* in all */
};

void tlsf_add(struct tlsf *tlsf, const struct ranges *ranges, uint32_t id);
void tlsf_remove(struct tlsf *tlsf, const struct ranges *ranges, uint32_t id);

/* A range of at least `bytes`, hardly larger if there is one; RANGE_NONE if there is none. */
uint32_t tlsf_fit(const struct tlsf *tlsf, const struct ranges *ranges, uint64_t bytes);

/* Any range; RANGE_NONE when empty. */
uint32_t tlsf_any(const struct tlsf *tlsf);

/* Bytes of the largest range. Looks at all that are about as large. */
uint64_t tlsf_largest(const struct tlsf *tlsf, const struct ranges *ranges);

#endif
