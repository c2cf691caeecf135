/* SPDX-License-Identifier: MIT */
/* free_index.h: the free blocks of one stream, found by size. Classes are exact up to 16 KiB and 16 to an octave above;
 * a bitmap tells which have blocks, so that finding, adding and taking cost the same however many blocks there are.
 * Within a class blocks stand in order of size, then address, as far as a short walk can tell. */
#ifndef HIPMM_POOL_FREE_INDEX_H
#define HIPMM_POOL_FREE_INDEX_H

#include "block.h"

enum { FREE_CLASSES = 640 };

struct free_index {
  uint64_t words; /* bit w: bits[w] is not 0 */
  uint64_t bits[FREE_CLASSES / 64];
  uint32_t heads[FREE_CLASSES];
  uint64_t bytes; /* sum of all blocks */
  uint32_t count;
};

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id);
void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id);

/* The smallest block of at least `bytes` that a short walk can tell; BLOCK_NONE only if there is no such block. */
uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, uint64_t bytes);

/* Visits every block of the classes from that of `at_least` bytes up, the largest class first: the one after `id`, or
 * the first for BLOCK_NONE; BLOCK_NONE at the end. */
uint32_t free_index_next(const struct free_index *index, const struct blocks *blocks, uint32_t id, uint64_t at_least);

/* Bytes of the largest block; 0 when empty. */
uint64_t free_index_largest(const struct free_index *index, const struct blocks *blocks);

#endif
