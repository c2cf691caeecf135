/* SPDX-License-Identifier: MIT */
/* block.c: the records of blocks in one array, and the maps from addresses to records. */
#include "block.h"

enum {
  LEAF_BITS = ADDRESS_MAP_LEAF_BITS,
  N_LEAVES = 1 << (ADDRESS_MAP_ADDRESS_BITS - LEAF_BITS),
  N_CELLS = 1 << (ADDRESS_MAP_ADDRESS_BITS - CELL_BITS),
  MAX_BLOCKS = 1 << 28
};

static const size_t LEAF_BYTES = sizeof(uint32_t) << (LEAF_BITS - UNIT_BITS);

/* A part of the map, which is released or retained as a whole: in bytes, and in bits of addresses. */
enum { MAP_PART_BYTES = 1 << 16, MAP_PART_BITS = 16 - 2 + UNIT_BITS, MAP_PARTS = 1 << (LEAF_BITS - MAP_PART_BITS) };

bool blocks_open(struct blocks *blocks, const struct hipmm_services *services)
{
  *blocks = (struct blocks){.services = services, .count = 1};
  if (host_array_open(&blocks->records, MAX_BLOCKS * sizeof *blocks->items)) {
    blocks->items = (struct block *)(void *)blocks->records.start;
    blocks->most = (uint32_t)(blocks->records.reserved_bytes / sizeof *blocks->items);
  }
  bool opened = address_map_open(&blocks->map, services, HIPMM_ALIGNMENT);
  blocks->large = services->host_allocate(services, N_CELLS * sizeof *blocks->large);
  return opened && blocks->items && blocks->large;
}

void blocks_close(struct blocks *blocks)
{
  const struct hipmm_services *services = blocks->services;
  address_map_close(&blocks->map);
  services->host_free(services, blocks->large, N_CELLS * sizeof *blocks->large);
  host_array_close(&blocks->records);
}

/* ---- Records ---- */

static uint32_t blocks_reuse_hole(struct blocks *blocks)
{
  uint32_t id = blocks->holes;
  const struct block *first = &blocks->items[id];
  blocks->holes = first->next;
  if (first->after > 1) {
    struct block *second = &blocks->items[id + 1];
    second->next = first->next;
    second->after = first->after - 1;
    blocks->holes = id + 1;
  }
  return id;
}

uint32_t blocks_new_record(struct blocks *blocks)
{
  if (blocks->holes) return blocks_reuse_hole(blocks);
  if (blocks->count >= blocks->most) return BLOCK_NONE;
  size_t end = (blocks->count + (size_t)1) * sizeof *blocks->items;
  if (end > blocks->records.usable_bytes && !host_array_grow(&blocks->records)) return BLOCK_NONE;
  return blocks->count++;
}

bool blocks_are_exhausted(const struct blocks *blocks)
{
  return !blocks->unused && !blocks->holes && blocks->count >= blocks->most;
}

/* Each record has touched at most one page of the map for small blocks. */
uint64_t blocks_metadata_bytes(const struct blocks *blocks)
{
  uint64_t records = blocks->count * sizeof *blocks->items, pages = blocks->count * 4096ull;
  uint64_t map = blocks->map.n_leaves * LEAF_BYTES;
  uint64_t large = blocks->map.n_leaves * sizeof *blocks->large << (LEAF_BITS - CELL_BITS);
  return records + (pages < map ? pages : map) + large;
}

uint64_t blocks_resident_bytes(const struct blocks *blocks)
{
  uint64_t unknown = blocks_metadata_bytes(blocks), left = blocks->map.n_leaves;
  uint64_t bytes = host_pages_resident(blocks->items, blocks->count * sizeof *blocks->items, unknown);
  for (uint64_t leaf = 0; left && leaf < N_LEAVES && bytes < unknown; leaf++) {
    const uint32_t *entries = atomic_load_explicit(&blocks->map.leaves[leaf], memory_order_relaxed);
    if (!entries) continue;
    const uint32_t *large = &blocks->large[leaf << (LEAF_BITS - CELL_BITS)];
    bytes += host_pages_resident(entries, LEAF_BYTES, unknown);
    bytes += host_pages_resident(large, sizeof *large << (LEAF_BITS - CELL_BITS), unknown);
    left--;
  }
  return bytes < unknown ? bytes : unknown;
}

/* ---- Trimming ---- */

enum { LEAST_HOLE = 256 /* records */ };

/* Records [first, end) are unused. */
static void blocks_add_unused(struct blocks *blocks, uint32_t first, uint32_t end)
{
  if (end == blocks->count) {
    host_pages_discard(&blocks->items[first], (end - first) * sizeof *blocks->items);
    blocks->count = first;
  } else if (end - first >= LEAST_HOLE) {
    host_pages_discard(&blocks->items[first + 1], (end - first - 1) * sizeof *blocks->items);
    blocks->items[first].next = blocks->holes;
    blocks->items[first].after = end - first;
    blocks->holes = first;
  } else {
    while (end-- > first) {
      blocks->items[end].next = blocks->unused;
      blocks->unused = end;
    }
  }
}

/* From the last record to the first, so that the first records are used again first. */
static void blocks_trim_records(struct blocks *blocks)
{
  blocks->unused = blocks->holes = BLOCK_NONE;
  for (uint32_t end = blocks->count, first; end > 1; end = first - 1) {
    for (first = end; first > 1 && block_state(&blocks->items[first - 1]) == BLOCK_UNUSED;) first--;
    if (first < end) blocks_add_unused(blocks, first, end);
  }
}

/* A bit for each part of the map, by address: whether it has the entry of a block. */
static uint64_t *blocks_parts_in_use(const struct blocks *blocks, size_t bytes)
{
  uint64_t *parts = blocks->services->host_allocate(blocks->services, bytes);
  uint32_t hole = blocks->holes; /* holes are in the order of ids; a read in a hole would commit its memory again */
  for (uint32_t id = 1; parts && id < blocks->count; id++) {
    const struct block *block = &blocks->items[id];
    if (id == hole) {
      id += block->after - 1;
      hole = block->next;
      continue;
    }
    enum block_state state = block_state(block);
    if (state == BLOCK_UNUSED) continue;
    uint64_t start = __atomic_load_n(&block->start, __ATOMIC_RELAXED), part = start >> MAP_PART_BITS;
    uint64_t last =
        state == BLOCK_ON_LOAN ? start + block->bytes - 1 : start; /* others may cut a superblock meanwhile */
    for (; part <= last >> MAP_PART_BITS; part++) parts[part / 64] |= 1ull << part % 64;
  }
  return parts;
}

static void blocks_trim_leaf(uint32_t *entries, const uint64_t *parts)
{
  for (uint32_t part = 0, end; part < MAP_PARTS; part = end + 1) {
    for (end = part; end < MAP_PARTS && !(parts[end / 64] >> end % 64 & 1);) end++;
    host_pages_discard((char *)entries + (size_t)part * MAP_PART_BYTES, (size_t)(end - part) * MAP_PART_BYTES);
  }
}

static void blocks_trim_map(struct blocks *blocks)
{
  size_t bytes = (1ull << (ADDRESS_MAP_ADDRESS_BITS - MAP_PART_BITS)) / 8;
  uint64_t *parts = blocks_parts_in_use(blocks, bytes), left = blocks->map.n_leaves;
  for (uint64_t leaf = 0; parts && left && leaf < N_LEAVES; leaf++) {
    uint32_t *entries = atomic_load_explicit(&blocks->map.leaves[leaf], memory_order_relaxed);
    if (!entries) continue;
    blocks_trim_leaf(entries, &parts[leaf * (MAP_PARTS / 64)]);
    left--;
  }
  blocks->services->host_free(blocks->services, parts, bytes);
}

void blocks_trim(struct blocks *blocks)
{
  blocks_trim_records(blocks);
  blocks_trim_map(blocks);
}
