/* SPDX-License-Identifier: MIT */
/* address_index.h: free blocks in the order of their addresses: the lowest that has room, found in a few steps however
 * many there are. Addresses are divided into cells of 2 MiB (block.h), each with a list of the blocks that begin in it;
 * over the cells stands a tree whose nodes know how much room there may be below each of their children. Called by
 * free_index.c. */
#ifndef HIPMM_POOL_ADDRESS_INDEX_H
#define HIPMM_POOL_ADDRESS_INDEX_H

#include "block.h"

enum { FAN_BITS = 3, FAN = 1 << FAN_BITS, MAX_LEVELS = 10 };

/* What a request may need of a block, from its start on. */
enum measure {
  MEASURE_BUSY, /* bytes in granules that are in use anyway: what is put there keeps no idle granule from being moved */
  MEASURE_WHOLE, /* bytes */
  MEASURES
};

/* Of each child the most room, in units of HIPMM_ALIGNMENT, or more than there is; of cells exactly. More than 32 bits
 * hold looks like UINT32_MAX. */
struct address_node {
  _Alignas(64) uint32_t most[FAN][MEASURES];
};

_Static_assert(sizeof(struct address_node) == 64, "a node is a cache line");

struct address_index {
  uint32_t n_cells, n_levels; /* level 0 stands on the cells, the last level is one node */
  uint32_t *heads;            /* of each cell: its lowest block */
  struct address_node *levels[MAX_LEVELS];
};

/* Makes room for all cells that the blocks have. False, and nothing changed, when host memory is short. */
bool address_index_cover(struct address_index *index, const struct blocks *blocks);
void address_index_close(struct address_index *index, const struct blocks *blocks);

/* Host memory that it takes, in bytes. */
uint64_t address_index_metadata_bytes(const struct address_index *index);

void address_index_add(struct address_index *index, struct blocks *blocks, uint32_t id);
void address_index_remove(struct address_index *index, struct blocks *blocks, uint32_t id);

/* Gives a block other bounds, between the same neighbours. */
void address_index_move(struct address_index *index, struct blocks *blocks, uint32_t id, uint64_t start,
                        uint64_t bytes);

/* The lowest block with at least `units` of a room; BLOCK_NONE if there is none. */
uint32_t address_index_fit(const struct address_index *index, const struct blocks *blocks, enum measure measure,
                           uint64_t units);

/* The highest block of at least `units` below the block `id`, or of all for BLOCK_NONE; BLOCK_NONE if there is none. */
uint32_t address_index_below(const struct address_index *index, const struct blocks *blocks, uint32_t id,
                             uint64_t units);

/* The block that begins at `address`, or the last before it; BLOCK_NONE if there is none. The index is not empty. */
uint32_t address_index_at(const struct address_index *index, const struct blocks *blocks, uint64_t address);

#endif
