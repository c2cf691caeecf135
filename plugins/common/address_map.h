/* SPDX-License-Identifier: MIT */
/* address_map.h: finds the number of the block that starts at an address, in two loads. A block is at least as large as a
 * cell of the map, so no two blocks start in one cell. Readers need no lock; a writer holds the caller's lock. */
#ifndef HIPMM_PLUGINS_COMMON_ADDRESS_MAP_H
#define HIPMM_PLUGINS_COMMON_ADDRESS_MAP_H

#include <hipmm/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

enum {
  ADDRESS_MAP_LEAF_BITS = 32,   /* a leaf of the map is for 4 GiB of address space */
  ADDRESS_MAP_ADDRESS_BITS = 47 /* of user space on the systems that have HIP */
};

struct address_map {
  const struct hipmm_services *services;
  unsigned cell_bits;
  uint32_t n_leaves;
  uint32_t *_Atomic *leaves; /* NULL where there are no blocks; memory is committed on first use */
};

bool address_map_open(struct address_map *map, const struct hipmm_services *services, uint64_t block_bytes);
void address_map_close(struct address_map *map);

/* Prepares the map for blocks in [start, start + bytes). False when host memory is short. */
bool address_map_cover(struct address_map *map, uint64_t start, uint64_t bytes);

/* `start` is covered. 0: no block starts there. */
void address_map_set(struct address_map *map, uint64_t start, uint32_t number);

/* Forgets the blocks that start in [start, start + bytes), and releases the pages of the map that are for these addresses
 * only. */
void address_map_discard(struct address_map *map, uint64_t start, uint64_t bytes);

/* The committed bytes of the map for these addresses. */
uint64_t address_map_resident_bytes(const struct address_map *map, uint64_t start, uint64_t bytes);

/* The most that the map takes for `bytes` of blocks. */
uint64_t address_map_metadata_bytes(const struct address_map *map, uint64_t bytes);

/* The cell of an address below 1 << ADDRESS_MAP_ADDRESS_BITS; NULL where nothing is covered. `cell_bits` are the map's. */
static inline uint32_t *address_map_cell(const struct address_map *map, uint64_t address, unsigned cell_bits)
{
  uint32_t *leaf = atomic_load_explicit(&map->leaves[address >> ADDRESS_MAP_LEAF_BITS], memory_order_acquire);
  return leaf ? &leaf[(address & ((1ull << ADDRESS_MAP_LEAF_BITS) - 1)) >> cell_bits] : NULL;
}

/* The number in the cell of an address, or 0. The caller checks whether the block starts at exactly this address. */
static inline uint32_t address_map_get(const struct address_map *map, uint64_t address)
{
  if (address >> ADDRESS_MAP_ADDRESS_BITS) return 0;
  const uint32_t *cell = address_map_cell(map, address, map->cell_bits);
  return cell ? __atomic_load_n(cell, __ATOMIC_ACQUIRE) : 0;
}

#endif
