/* SPDX-License-Identifier: MIT */
/* free_index.h: the free blocks of one stream. Small blocks stand in a list for each size, the last freed first; larger
 * ones in a tree by address (by size in a pool of segments), which finds the first that fits. What goes to the lowest address that fits, and small things
 * only where memory is in use anyway, leaves whole granules idle at the top, where they can be given back or moved. */
#ifndef HIPMM_POOL_FREE_INDEX_H
#define HIPMM_POOL_FREE_INDEX_H

#include "block.h"

enum { FREE_LISTS = 256 }; /* sizes in units of HIPMM_ALIGNMENT: below 64 KiB */

struct free_index {
  uint64_t bits[FREE_LISTS / 64]; /* which lists have blocks */
  uint32_t lists[FREE_LISTS];
  uint32_t root;  /* of the tree */
  uint32_t count; /* blocks in all */
  uint64_t bytes; /* sum of all blocks */
};

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id);
void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id);

/* Gives a block of the index other bounds, between the same neighbours: cheaper than removing and adding it. */
void free_index_move(struct free_index *index, struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes);

/* How good a fit is, the best first. */
enum fit { FIT_LIST, FIT_PREFIX, FIT_ANYWHERE, FIT_NONE };

/* A block of at least `bytes`; BLOCK_NONE if there is none. */
uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, uint64_t bytes, enum fit *fit_out);

/* Visits every block of at least `bytes` bytes, which is no small size, from the highest address down: the one before
 * `id`, or the first for BLOCK_NONE; BLOCK_NONE at the end. */
uint32_t free_index_below(const struct free_index *index, const struct blocks *blocks, uint32_t id, uint64_t bytes);

/* Any block; BLOCK_NONE when empty. */
uint32_t free_index_any(const struct free_index *index);

#endif
