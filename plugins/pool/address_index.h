/* SPDX-License-Identifier: MIT */
/* address_index.h: free blocks in the order of their addresses. Finds the lowest block of a sufficient size in a few
 * steps, however many blocks there are. Addresses are divided into cells of 2 MiB (block.h), each with a list of the
 * blocks that begin in it. A tree stands over the cells, and its nodes know the largest block below each of their
 * children. Called by free_index.c. */
#ifndef HIPMM_POOL_ADDRESS_INDEX_H
#define HIPMM_POOL_ADDRESS_INDEX_H

#include "block.h"

enum { FAN_BITS = 3, FAN = 1 << FAN_BITS, MAX_LEVELS = 10 };

/* What counts of a block, from its start on. */
enum measure {
  MEASURE_BUSY,  /* bytes in granules that are partly in use: a block there keeps no granule from being idle */
  MEASURE_WHOLE, /* bytes */
  MEASURES
};

/* For each child the largest block by each measure, in units of HIPMM_ALIGNMENT. For a cell this is exact; a node above
 * may know too much, never too little. More than 32 bits hold counts as UINT32_MAX. */
struct address_node {
  _Alignas(64) uint32_t most[FAN][MEASURES];
};

_Static_assert(sizeof(struct address_node) == 64, "a node is a cache line");

struct address_index {
  uint32_t n_cells, n_levels; /* level 0 stands on the cells, the last level is one node */
  uint32_t *heads;            /* of each cell: its lowest block */
  struct address_node *levels[MAX_LEVELS];
};

/* Covers all cells that the blocks have. False, and nothing changed, when host memory is short. */
bool address_index_cover(struct address_index *index, const struct blocks *blocks);
void address_index_close(struct address_index *index, const struct blocks *blocks);

/* The host memory that the index takes, in bytes. */
uint64_t address_index_metadata_bytes(const struct address_index *index);

void address_index_add(struct address_index *index, struct blocks *blocks, uint32_t id);
void address_index_remove(struct address_index *index, struct blocks *blocks, uint32_t id);

/* Changes the bounds of a block, whose neighbours remain the same. */
void address_index_move(struct address_index *index, struct blocks *blocks, uint32_t id, uint64_t start,
                        uint64_t bytes);

/* The lowest block of at least `units` by the measure; BLOCK_NONE if there is none. */
uint32_t address_index_fit(const struct address_index *index, const struct blocks *blocks, enum measure measure,
                           uint64_t units);

/* The highest block of at least `units` below the block `id`, or of all blocks for BLOCK_NONE; BLOCK_NONE if there is
 * none. */
uint32_t address_index_below(const struct address_index *index, const struct blocks *blocks, uint32_t id,
                             uint64_t units);

/* The block that begins at `address`, or the last before it; BLOCK_NONE if there is none. The index is not empty. */
uint32_t address_index_at(const struct address_index *index, const struct blocks *blocks, uint64_t address);

#endif
