/* SPDX-License-Identifier: MIT */
/* free_index.h: the free blocks of one stream. In a pool of granules small blocks stand in a list for each size, the
 * last freed first, and larger ones in the order of their addresses. What goes to the lowest address that has room, and
 * small things only where memory is in use anyway, leaves whole granules idle at the top, where they can be given back
 * or moved. Segments never merge: there the best fit wastes least, and all blocks stand in lists by size. */
#ifndef HIPMM_POOL_FREE_INDEX_H
#define HIPMM_POOL_FREE_INDEX_H

#include "address_index.h"

enum {
  EXACT_LISTS = 256,       /* of one size each, in units of HIPMM_ALIGNMENT: below 64 KiB */
  LISTS_PER_DOUBLING = 16, /* of the sizes from there on */
  FREE_LISTS = EXACT_LISTS + 32 * LISTS_PER_DOUBLING
};

struct free_index {
  _Alignas(64) uint64_t bytes; /* sum of all blocks */
  uint32_t count;              /* blocks in all */
  struct address_index tree;
  uint64_t bits[FREE_LISTS / 64]; /* which lists have blocks */
  uint32_t lists[FREE_LISTS];
};

/* To be called before blocks are added, and again whenever the blocks have come to cover more addresses. False, and
 * nothing changed, when host memory is short. */
bool free_index_cover(struct free_index *index, const struct blocks *blocks);
void free_index_close(struct free_index *index, const struct blocks *blocks);

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id);
void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id);

/* Gives a block of the index other bounds, between the same neighbours: cheaper than removing and adding it. */
void free_index_move(struct free_index *index, struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes);

/* How good a fit is, the best first. */
enum fit { FIT_LIST, FIT_BUSY, FIT_ANYWHERE, FIT_NONE };

/* A block of at least `bytes`; BLOCK_NONE if there is none. */
uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, uint64_t bytes, enum fit *fit_out);

/* In a pool of granules: visits every block of at least `bytes`, which is no small size, from the highest address down:
 * the one below `id`, or the first for BLOCK_NONE; BLOCK_NONE at the end. */
uint32_t free_index_below(const struct free_index *index, const struct blocks *blocks, uint32_t id, uint64_t bytes);

/* In a pool of granules: the block in which all of [start, end) lies, which is a granule at least; BLOCK_NONE if
 * none. */
uint32_t free_index_holding(const struct free_index *index, const struct blocks *blocks, uint64_t start, uint64_t end);

/* The largest block in a list; BLOCK_NONE if none is. */
uint32_t free_index_largest_listed(const struct free_index *index, const struct blocks *blocks);

/* Host memory that it takes, in bytes. */
uint64_t free_index_metadata_bytes(const struct free_index *index);

/* Any block; BLOCK_NONE when empty. */
uint32_t free_index_any(const struct free_index *index, const struct blocks *blocks);

#endif
