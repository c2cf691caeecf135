/* SPDX-License-Identifier: MIT */
/* free_index.h: the free blocks of one stream. In a pool of granules, small blocks are in one list for each size, the last
 * freed first, and larger blocks are in the order of their addresses. Large blocks go to the lowest address that fits,
 * and small ones only where memory is in use anyway: so whole granules become idle at high addresses, where they can be
 * released or moved. Segments never merge: there the best fit wastes least, and all blocks are in lists by size. Called
 * by heap.c and idle.c. */
#ifndef HIPMM_POOL_FREE_INDEX_H
#define HIPMM_POOL_FREE_INDEX_H

#include "address_index.h"

enum {
  EXACT_LISTS = 256,       /* of one size each, in units of HIPMM_ALIGNMENT: below 64 KiB */
  LISTS_PER_DOUBLING = 16, /* of the sizes from there on */
  LIST_STEPS = 32,         /* adding to a list of several sizes, and searching it, takes no more */
  FREE_LISTS = EXACT_LISTS + 32 * LISTS_PER_DOUBLING
};

struct free_index {
  _Alignas(64) uint64_t bytes; /* sum of all blocks */
  uint32_t count;              /* blocks in all */
  struct address_index tree;
  uint64_t bits[FREE_LISTS / 64]; /* which lists have blocks */
  uint32_t lists[FREE_LISTS];
};

/* Called before blocks are added, and again whenever the blocks have come to cover more addresses. False, and nothing
 * changed, when host memory is short. */
bool free_index_cover(struct free_index *index, const struct blocks *blocks);
void free_index_close(struct free_index *index, const struct blocks *blocks);

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id);
void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id);

/* Changes the bounds of a block in the index, whose neighbours remain the same. Cheaper than removing and adding it. */
void free_index_move(struct free_index *index, struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes);

/* How good a fit is, the best first. */
enum fit { FIT_LIST, FIT_BUSY, FIT_ANYWHERE, FIT_NONE };

/* A block of at least `bytes`; BLOCK_NONE if there is none. */
uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, uint64_t bytes, enum fit *fit_out);

/* In a pool of granules: the next lower block of at least `bytes`, which is no small size, below `id`, or the highest one
 * for BLOCK_NONE; BLOCK_NONE at the end. */
uint32_t free_index_below(const struct free_index *index, const struct blocks *blocks, uint32_t id, uint64_t bytes);

/* In a pool of granules: the block that holds all of [start, end), which is at least a granule; BLOCK_NONE if none. */
uint32_t free_index_holding(const struct free_index *index, const struct blocks *blocks, uint64_t start, uint64_t end);

/* The largest block in a list; BLOCK_NONE if none is. */
uint32_t free_index_largest_listed(const struct free_index *index, const struct blocks *blocks);

/* The host memory that the index takes, in bytes. */
uint64_t free_index_metadata_bytes(const struct free_index *index);

/* Any block; BLOCK_NONE when empty. */
uint32_t free_index_any(const struct free_index *index, const struct blocks *blocks);

#endif
