/* SPDX-License-Identifier: MIT */
/* tlsf.h: free pieces by size, in lists of sizes that differ by less than a thirty-second. Adding, removing and
 * finding cost the same however many there are (two-level segregated fit: Masmano, Ripoll, Crespo, Real 2004). The
 * caller holds the lock of what the pieces belong to. */
#ifndef HIPMM_PLUGINS_ARENA_TLSF_H
#define HIPMM_PLUGINS_ARENA_TLSF_H

#include "range.h"

enum {
  INDEX_COLUMN_BITS = 5,
  INDEX_COLUMNS = 1 << INDEX_COLUMN_BITS,
  INDEX_ROWS = 36 /* up to 2^40 units */
};

struct index {
  uint64_t rows; /* which have pieces */
  uint32_t columns[INDEX_ROWS];
  uint32_t heads[INDEX_ROWS][INDEX_COLUMNS];
  uint32_t count;
  uint64_t bytes; /* in all */
};

void index_add(struct index *index, const struct pieces *pieces, uint32_t id);
void index_remove(struct index *index, const struct pieces *pieces, uint32_t id);

/* A piece of at least `bytes`, hardly larger if there is one; PIECE_NONE if there is none. */
uint32_t index_fit(const struct index *index, const struct pieces *pieces, uint64_t bytes);

/* Any piece; PIECE_NONE when empty. */
uint32_t index_any(const struct index *index);

/* Bytes of the largest piece. Looks at all that are about as large. */
uint64_t index_largest(const struct index *index, const struct pieces *pieces);

#endif
