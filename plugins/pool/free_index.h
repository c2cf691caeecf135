/* SPDX-License-Identifier: MIT */
/* free_index.h: the free blocks of one stream, in lists by kind and size, so that a best fit takes a few steps however many
 * blocks there are. Called by heap.c and idle.c. The caller holds the pool's lock. */
#ifndef HIPMM_POOL_FREE_INDEX_H
#define HIPMM_POOL_FREE_INDEX_H

#include "block.h"

/* What a free block consists of. Requests use the kinds in this order: so whole granules become idle, which can be released
 * or moved. In a pool of segments every block is KIND_WHOLE. */
enum kind {
  KIND_BUSY,    /* no whole granule: other blocks are in its granules anyway */
  KIND_WHOLE,   /* whole granules, all committed */
  KIND_PARTIAL, /* uncommitted granules, and maybe committed ones */
  KINDS
};

enum {
  EXACT_LISTS = 256,       /* of one size each, in units of HIPMM_ALIGNMENT: below 64 KiB */
  LISTS_PER_DOUBLING = 16, /* of the sizes from there on */
  LIST_STEPS = 32,         /* adding to a list of several sizes, and searching it, takes no more */
  FREE_LISTS = EXACT_LISTS + 32 * LISTS_PER_DOUBLING
};

/* The blocks of one kind. */
struct size_lists {
  uint64_t words;                 /* which of `bits` are not zero */
  uint64_t bits[FREE_LISTS / 64]; /* which lists have blocks */
  uint32_t lists[FREE_LISTS];     /* the first block of each, roughly the smallest */
};

struct free_index {
  _Alignas(64) uint64_t bytes; /* sum of all blocks */
  uint32_t count;              /* blocks in all */
  struct size_lists kinds[KINDS];
};

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id);
void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id);

/* Changes the bounds of a block in the index, and finds its kind anew. Cheaper than removing and adding it. */
void free_index_move(struct free_index *index, struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes);

/* The first kind that can have blocks of so many bytes: two granules contain a whole one, wherever they begin. */
static inline enum kind free_index_first_kind(const struct blocks *blocks, uint64_t bytes)
{
  return bytes < 2 * blocks->granule_bytes ? KIND_BUSY : KIND_WHOLE;
}

/* A block of the kind, of at least `bytes`, small if there is a choice; BLOCK_NONE if there is none. */
uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, enum kind kind, uint64_t bytes);

/* The next block of the kind after `id`, larger lists first, or the first for BLOCK_NONE; BLOCK_NONE at the end. */
uint32_t free_index_next(const struct free_index *index, const struct blocks *blocks, enum kind kind, uint32_t id);

/* The block that holds all of [start, end), which is at least a granule. Gives up after some steps: BLOCK_NONE. */
uint32_t free_index_holding(const struct free_index *index, const struct blocks *blocks, uint64_t start, uint64_t end);

/* Any block; BLOCK_NONE when empty. */
uint32_t free_index_any(const struct free_index *index, const struct blocks *blocks);

#endif
