/* SPDX-License-Identifier: MIT */
/* block.c: records of blocks in one array, and maps from addresses to records. */
#include "block.h"

enum { N_LEAVES = 1 << (ADDRESS_BITS - LEAF_BITS), N_CELLS = 1 << (ADDRESS_BITS - CELL_BITS), MAX_BLOCKS = 1 << 24 };

static const size_t LEAF_BYTES = sizeof(uint32_t) << (LEAF_BITS - UNIT_BITS);

bool blocks_open(struct blocks *blocks, const struct hipmm_services *services)
{
  *blocks = (struct blocks){.services = services, .count = 1};
  blocks->items = services->host_allocate(services, MAX_BLOCKS * sizeof *blocks->items);
  blocks->leaves = services->host_allocate(services, N_LEAVES * sizeof *blocks->leaves);
  blocks->large = services->host_allocate(services, N_CELLS * sizeof *blocks->large);
  return blocks->items && blocks->leaves && blocks->large;
}

void blocks_close(struct blocks *blocks)
{
  const struct hipmm_services *services = blocks->services;
  for (size_t i = 0; blocks->leaves && i < N_LEAVES && blocks->n_leaves; i++) {
    if (!blocks->leaves[i]) continue;
    services->host_free(services, blocks->leaves[i], LEAF_BYTES);
    blocks->n_leaves--;
  }
  services->host_free(services, blocks->large, N_CELLS * sizeof *blocks->large);
  services->host_free(services, blocks->leaves, N_LEAVES * sizeof *blocks->leaves);
  services->host_free(services, blocks->items, MAX_BLOCKS * sizeof *blocks->items);
}

static bool add_cells(struct blocks *blocks, uint64_t start, uint64_t bytes)
{
  uint64_t n = (bytes >> CELL_BITS) + 1;
  if (blocks->n_spans == MAX_SPANS || n > UINT32_MAX / 2 - blocks->n_cells) return false;
  blocks->spans[blocks->n_spans++] = (struct span){start, bytes, blocks->n_cells};
  blocks->n_cells += (uint32_t)n;
  return true;
}

bool blocks_cover(struct blocks *blocks, uint64_t start, uint64_t bytes)
{
  if (start >> ADDRESS_BITS || (start + bytes - 1) >> ADDRESS_BITS) return false;
  if (blocks->granule_bytes && !add_cells(blocks, start, bytes)) return false;
  for (uint64_t leaf = start >> LEAF_BITS; leaf <= (start + bytes - 1) >> LEAF_BITS; leaf++) {
    if (atomic_load_explicit(&blocks->leaves[leaf], memory_order_relaxed)) continue;
    uint32_t *entries = blocks->services->host_allocate(blocks->services, LEAF_BYTES);
    if (!entries) return false;
    atomic_store_explicit(&blocks->leaves[leaf], entries, memory_order_release);
    blocks->n_leaves++;
  }
  return true;
}

/* Readers without the lock see either what the record was before or all of what it is now: they compare `start`. */
uint32_t block_new(struct blocks *blocks, uint64_t start, uint64_t bytes)
{
  uint32_t id = blocks->unused;
  if (id)
    blocks->unused = blocks->items[id].next;
  else if (blocks->count < MAX_BLOCKS)
    id = blocks->count++;
  else
    return BLOCK_NONE;
  struct block *block = &blocks->items[id];
  __atomic_store_n(&block->start, start, __ATOMIC_RELAXED);
  block->bytes = bytes;
  block->before = block->after = BLOCK_NONE;
  block->vacant = 0;
  block_set_state(block, BLOCK_FREE);
  return id;
}

void block_set_bounds(struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes)
{
  struct block *block = &blocks->items[id];
  block->bytes = bytes;
  __atomic_store_n(&block->start, start, __ATOMIC_RELAXED);
}

void block_show(struct blocks *blocks, uint32_t id)
{
  const struct block *block = &blocks->items[id];
  __atomic_store_n(block_map_entry(blocks, block->start, block_is_large(block->bytes)), id, __ATOMIC_RELEASE);
}

/* The map keeps a stale id: block_at() compares the record's own start. */
void block_drop(struct blocks *blocks, uint32_t id)
{
  struct block *block = &blocks->items[id];
  block_set_state(block, BLOCK_UNUSED);
  block->next = blocks->unused;
  blocks->unused = id;
}

/* Each record has touched a page of the map for small blocks at most. */
uint64_t blocks_metadata_bytes(const struct blocks *blocks)
{
  uint64_t records = blocks->count * sizeof *blocks->items, pages = blocks->count * 4096ull;
  uint64_t map = blocks->n_leaves * LEAF_BYTES;
  uint64_t large = blocks->n_leaves * sizeof *blocks->large << (LEAF_BITS - CELL_BITS);
  return records + (pages < map ? pages : map) + large;
}
