/* SPDX-License-Identifier: MIT */
/* block.h: the pool's knowledge of memory. Every byte that the pool has lies in exactly one block; a block is live or
 * free. Blocks are kept in host memory of their own, device memory is never touched.
 *
 * Invariant: following `after` from the first block of a region visits its bytes once, in address order, and
 * blocks[b].start + blocks[b].bytes == blocks[after].start all along. */
#ifndef HIPMM_POOL_BLOCK_H
#define HIPMM_POOL_BLOCK_H

#include "../common/host_array.h"

#include <hipmm/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

enum {
  BLOCK_NONE = 0,    /* ids start at 1 */
  UNIT_BITS = 8,     /* of HIPMM_ALIGNMENT */
  LEAF_BITS = 32,    /* a leaf of the map is for 4 GiB of address space */
  ADDRESS_BITS = 47, /* of user space on the systems that have HIP */
  CELL_BITS = 21,
  MAX_SPANS = 32
};

enum block_state {
  BLOCK_UNUSED, /* the record is not in use */
  BLOCK_FREE,
  BLOCK_LIVE,
  BLOCK_CACHED /* freed, and kept in a cache (cache.h): to the heap it is as if live */
};

struct block {
  _Alignas(64) uint64_t start; /* address, a multiple of HIPMM_ALIGNMENT */
  uint64_t bytes;              /* a multiple of HIPMM_ALIGNMENT, not 0 */
  union {
    uint64_t requested; /* live: as the caller asked for */
    uint64_t epoch;     /* free: the last free on its stream that it holds (streams.h) */
  };
  uint32_t before, after;  /* neighbours in the region */
  uint32_t next, previous; /* free: its neighbours in the free_index */
  uint32_t uncommitted;    /* free: granules in it that have no memory (granules.h); live: 0 */
  uint16_t stream;         /* free: whose work may still use it; STREAM_READY: nobody's */
  uint8_t state;
};

_Static_assert(sizeof(struct block) == 64, "a block is a cache line");

/* Addresses that have cells (address_index.h). */
struct span {
  uint64_t start, bytes;
  uint32_t first_cell;
};

/* All blocks, and two maps from an address to the block that starts there. Small blocks may start anywhere. Of blocks
 * that are as large as a cell only one can start in each cell, so that few lines of their map have all that a program
 * uses. */
struct blocks {
  struct block *items;       /* in `records` */
  uint32_t *large;           /* by cell of address space, from 0 on */
  uint32_t *_Atomic *leaves; /* one per LEAF_SPAN of address space; NULL where the pool has nothing */
  uint64_t granule_bytes;    /* a power of two (granules.h); 0: there are none */
  uint32_t unused;           /* list of records to use again, through `next` */
  uint32_t holes;            /* list of runs of records to use after those, whose memory was given back */
  uint32_t count;            /* records used since all behind them were given back, 0 included */
  uint32_t most;             /* that there can be */
  uint32_t live;             /* blocks in state BLOCK_LIVE */
  uint32_t n_leaves;         /* leaves in use */
  const struct hipmm_services *services;
  struct host_array records;
  uint32_t n_spans, n_cells;
  struct span spans[MAX_SPANS]; /* only if there are granules */
};

bool blocks_open(struct blocks *blocks, const struct hipmm_services *services);
void blocks_close(struct blocks *blocks);

/* Makes addresses in [start, start + bytes) findable. False when host memory is short. */
bool blocks_cover(struct blocks *blocks, uint64_t start, uint64_t bytes);

/* A record for a block that starts at `start`; BLOCK_NONE when there are no more. Neighbours are the caller's to
 * set. */
uint32_t block_new(struct blocks *blocks, uint64_t start, uint64_t bytes);
void block_drop(struct blocks *blocks, uint32_t id);

/* Whether there are no more: block_new() fails until a record is dropped. */
bool blocks_are_exhausted(const struct blocks *blocks);

/* Gives the host memory of records that are not in use back, and of the map where no block starts. */
void blocks_trim(struct blocks *blocks);

/* Changes where a free block lies. */
void block_set_bounds(struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes);

/* Makes it the one that the map has for where it starts. Not done for what is free: the map is large, and much of what
 * it is asked for is far from all that was looked at before. */
void block_publish(struct blocks *blocks, uint32_t id);

/* Host memory that the records and the map take, in bytes: at most, by what was used; and as the system tells. */
uint64_t blocks_metadata_bytes(const struct blocks *blocks);
uint64_t blocks_resident_bytes(const struct blocks *blocks);

/* A live block may be claimed by its owner at any moment; in any other state it is the lock's. */
static inline enum block_state block_state(const struct block *block)
{
  return __atomic_load_n(&block->state, __ATOMIC_ACQUIRE);
}

static inline void block_set_state(struct block *block, enum block_state state)
{
  __atomic_store_n(&block->state, (uint8_t)state, __ATOMIC_RELEASE);
}

/* Takes a live block for freeing. False if somebody else was faster: it is freed twice. */
static inline bool block_claim(struct block *block)
{
  uint8_t live = BLOCK_LIVE;
  return __atomic_compare_exchange_n(&block->state, &live, BLOCK_CACHED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline struct block *block_of(const struct blocks *blocks, uint32_t id)
{
  return &blocks->items[id];
}

/* Whether all of [start, end) lies in the block. */
static inline bool block_holds(const struct block *block, uint64_t start, uint64_t end)
{
  return block->start <= start && block->start + block->bytes >= end;
}

/* The cell of an address that is covered. */
static inline uint32_t block_cell(const struct blocks *blocks, uint64_t address)
{
  const struct span *span = blocks->spans;
  while (address - span->start >= span->bytes) span++;
  return span->first_cell + (uint32_t)((address - span->start) >> CELL_BITS);
}

static inline bool block_is_large(uint64_t bytes)
{
  return bytes >> CELL_BITS != 0;
}

/* Where the map for large blocks, or for small ones, keeps the id of the one that was last shown there; NULL where
 * nothing is covered. */
static inline uint32_t *block_map_entry(const struct blocks *blocks, uint64_t start, bool is_large)
{
  if (is_large) return &blocks->large[start >> CELL_BITS];
  uint32_t *entries = atomic_load_explicit(&blocks->leaves[start >> LEAF_BITS], memory_order_acquire);
  return entries ? &entries[(start & ((1ull << LEAF_BITS) - 1)) >> UNIT_BITS] : NULL;
}

/* What the map has, if that is a live block that starts at `start`. */
static inline uint32_t block_live_in(const struct blocks *blocks, const uint32_t *entry, uint64_t start)
{
  if (!entry) return BLOCK_NONE;
  uint32_t id = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
  const struct block *block = block_of(blocks, id);
  return block_state(block) == BLOCK_LIVE && __atomic_load_n(&block->start, __ATOMIC_RELAXED) == start ? id
                                                                                                       : BLOCK_NONE;
}

/* The live block that starts at `ptr`; BLOCK_NONE if there is none. `bytes` is how large it is said to be, which tells
 * where to look first. Needs no lock: nobody else touches a live block, and whatever else the address leads to is told
 * by its state. */
static inline uint32_t block_at(const struct blocks *blocks, const void *ptr, uint64_t bytes)
{
  uint64_t start = (uintptr_t)ptr;
  bool is_large = block_is_large(bytes);
  if (start >> ADDRESS_BITS || start & (HIPMM_ALIGNMENT - 1)) return BLOCK_NONE;
  uint32_t id = block_live_in(blocks, block_map_entry(blocks, start, is_large), start);
  return id ? id : block_live_in(blocks, block_map_entry(blocks, start, !is_large), start);
}

#endif
