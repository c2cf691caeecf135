/* SPDX-License-Identifier: MIT */
/* address_map.h: from the address where a block starts to the block's number, in two loads. Blocks are no smaller than a
 * cell of the map, so no two start in one. Reading needs no lock; writing is under the caller's lock. */
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
  uint32_t *_Atomic *leaves; /* NULL where there are no blocks; committed on touch, as the leaves themselves */
};

bool address_map_open(struct address_map *starts, const struct hipmm_services *services, uint64_t block_bytes);
void address_map_close(struct address_map *starts);

/* Makes room for numbers at [start, start + bytes). False when host memory is short. */
bool address_map_cover(struct address_map *starts, uint64_t start, uint64_t bytes);

/* At a place that is covered. 0: no block starts there. */
void address_map_set(struct address_map *starts, uint64_t start, uint32_t number);

/* Forgets blocks that start in [start, start + bytes), which is covered: what of the map is for these addresses alone
 * goes back to the system, the rest stays as it is. And how much memory that part of the map has, in bytes. */
void address_map_discard(struct address_map *starts, uint64_t start, uint64_t bytes);
uint64_t address_map_resident_bytes(const struct address_map *starts, uint64_t start, uint64_t bytes);

/* Of the map, for so many bytes of blocks. */
uint64_t address_map_metadata_bytes(const struct address_map *starts, uint64_t bytes);

/* The number in the cell of an address, or 0. Whether a block starts at just this address is for the caller to see. */
static inline uint32_t address_map_get(const struct address_map *starts, uint64_t address)
{
  if (address >> ADDRESS_MAP_ADDRESS_BITS) return 0;
  const uint32_t *leaf = atomic_load_explicit(&starts->leaves[address >> ADDRESS_MAP_LEAF_BITS], memory_order_acquire);
  if (!leaf) return 0;
  uint64_t cell = (address & ((1ull << ADDRESS_MAP_LEAF_BITS) - 1)) >> starts->cell_bits;
  return __atomic_load_n(&leaf[cell], __ATOMIC_ACQUIRE);
}

#endif
