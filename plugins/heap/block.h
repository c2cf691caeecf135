/* SPDX-License-Identifier: MIT */
/* block.h: the records of a pool's blocks, and the way from an address to its block. */
#ifndef HIPMM_PLUGINS_HEAP_BLOCK_H
#define HIPMM_PLUGINS_HEAP_BLOCK_H

#include "types.h"

/* On the way of each allocation and free: the call would cost as much as the function. */
#define BLOCK_INLINE static inline __attribute__((always_inline))

bool blocks_open(struct blocks *blocks, const struct hipmm_services *services);
void blocks_close(struct blocks *blocks);

/* Whether no record is left: block_new() fails until a record is dropped. */
bool blocks_are_exhausted(const struct blocks *blocks);

/* Releases the host memory of unused records, and of the maps where no block starts. */
void blocks_trim(struct blocks *blocks);

/* The host memory of the records and the maps, in bytes: the most that was used, and what the system reports. */
uint64_t blocks_metadata_bytes(const struct blocks *blocks);
uint64_t blocks_resident_bytes(const struct blocks *blocks);

/* Any thread may claim a live block at any moment. In every other state the holder of the lock owns the record. */
static inline enum block_state block_state(const struct block *block)
{
  return __atomic_load_n(&block->state, __ATOMIC_ACQUIRE);
}

static inline void block_set_state(struct block *block, enum block_state state)
{
  __atomic_store_n(&block->state, (uint8_t)state, __ATOMIC_RELEASE);
}

/* Whether the heap has the block in its index: a local arena has free blocks, too. The caller holds the lock. */
static inline bool block_is_idle(const struct block *block)
{
  return block_state(block) == BLOCK_FREE && !block->arena;
}

/* Claims a live block in order to free it. False if another thread has claimed it: the block is freed twice. */
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

static inline bool block_is_large(uint64_t bytes)
{
  return bytes >> CELL_BITS != 0;
}

/* The entry of the map for large blocks, or for small ones: the id of the block that was last published there. NULL where
 * nothing is covered. */
static inline uint32_t *block_map_entry(const struct blocks *blocks, uint64_t start, bool is_large)
{
  if (is_large) return &blocks->large[start >> CELL_BITS];
  return address_map_cell(&blocks->map, start, UNIT_BITS);
}

/* The block of the entry, if it is in the state and starts at `start`; BLOCK_NONE otherwise. */
static inline uint32_t block_of_entry(const struct blocks *blocks, const uint32_t *entry, uint64_t start,
                                      enum block_state state)
{
  if (!entry) return BLOCK_NONE;
  uint32_t id = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
  const struct block *block = block_of(blocks, id);
  if (block_state(block) != state || __atomic_load_n(&block->start, __ATOMIC_RELAXED) != start) return BLOCK_NONE;
  if (!id) __builtin_unreachable(); /* so that callers do not ask: the record of BLOCK_NONE is BLOCK_UNUSED */
  return id;
}

/* The block in the state that starts at `ptr`; BLOCK_NONE if there is none. `bytes` is the caller's word for its size, which
 * decides the map to search first. */
BLOCK_INLINE uint32_t block_at_in(const struct blocks *blocks, const void *ptr, uint64_t bytes, enum block_state state)
{
  uint64_t start = (uintptr_t)ptr;
  bool is_large = block_is_large(bytes);
  if (start >> ADDRESS_MAP_ADDRESS_BITS || start & (HIPMM_ALIGNMENT - 1)) return BLOCK_NONE;
  uint32_t id = block_of_entry(blocks, block_map_entry(blocks, start, is_large), start, state);
  return id ? id : block_of_entry(blocks, block_map_entry(blocks, start, !is_large), start, state);
}

/* The live block that starts at `ptr`. Needs no lock: no other thread changes a live block, and the state tells whether
 * the block is live. */
BLOCK_INLINE uint32_t block_at(const struct blocks *blocks, const void *ptr, uint64_t bytes)
{
  return block_at_in(blocks, ptr, bytes, BLOCK_LIVE);
}

/* ---- Records, for the holder of the lock ---- */

/* A record that was never used, or not since its memory was released; BLOCK_NONE when there are no more. */
uint32_t blocks_new_record(struct blocks *blocks);

/* Changes the bounds of a free block. A reader without the lock compares `start`: it sees either the old record or all of
 * the new one. */
BLOCK_INLINE void block_set_bounds(struct block *block, uint64_t start, uint64_t bytes)
{
  block->bytes = bytes;
  __atomic_store_n(&block->start, start, __ATOMIC_RELAXED);
}

/* A record for a free block that starts at `start`; BLOCK_NONE when there are no more. The caller links its neighbours. */
BLOCK_INLINE uint32_t block_new(struct blocks *blocks, uint64_t start, uint64_t bytes)
{
  uint32_t id = blocks->unused;
  if (__builtin_expect(id != BLOCK_NONE, 1))
    blocks->unused = block_of(blocks, id)->next;
  else if (!(id = blocks_new_record(blocks)))
    return BLOCK_NONE;
  struct block *block = block_of(blocks, id);
  block->before = block->after = BLOCK_NONE;
  block->uncommitted = 0;
  block_set_bounds(block, start, bytes);
  block_set_state(block, BLOCK_FREE);
  return id;
}

/* The map still has the id: block_at() compares the record's own start. */
BLOCK_INLINE void block_drop(struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  block_set_state(block, BLOCK_UNUSED);
  block->next = blocks->unused;
  blocks->unused = id;
}

/* Links two neighbours; `second` may be BLOCK_NONE. Without the lock of a local arena, others see whether its block is a region. */
BLOCK_INLINE void block_join(const struct blocks *blocks, uint32_t first, uint32_t second)
{
  block_of(blocks, first)->after = second;
  if (second) __atomic_store_n(&block_of(blocks, second)->before, first, __ATOMIC_RELAXED);
}

/* Publishes the block in the address map. Not done for free blocks: the map is large, and most of its entries are in no
 * cache. */
BLOCK_INLINE void block_publish(const struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  __atomic_store_n(block_map_entry(blocks, block->start, block_is_large(block->bytes)), id, __ATOMIC_RELEASE);
}

#endif
