/* SPDX-License-Identifier: MIT */
/* address_map.c: a table of leaves, each for 4 GiB of addresses. */
#include "address_map.h"

#include "host_array.h"

static const size_t table_bytes = (1ull << (ADDRESS_MAP_ADDRESS_BITS - ADDRESS_MAP_LEAF_BITS)) * sizeof(void *);

static size_t address_map_leaf_bytes(const struct address_map *map)
{
  return (1ull << (ADDRESS_MAP_LEAF_BITS - map->cell_bits)) * sizeof(uint32_t);
}

bool address_map_open(struct address_map *map, const struct hipmm_services *services, uint64_t block_bytes)
{
  unsigned bits = 63 - (unsigned)__builtin_clzll(block_bytes);
  *map = (struct address_map){.services = services,
                              .cell_bits = bits < ADDRESS_MAP_LEAF_BITS ? bits : ADDRESS_MAP_LEAF_BITS};
  map->leaves = services->host_allocate(services, table_bytes);
  return map->leaves != NULL;
}

void address_map_close(struct address_map *map)
{
  const struct hipmm_services *services = map->services;
  for (size_t i = 0; map->n_leaves; i++) {
    uint32_t *leaf = atomic_load_explicit(&map->leaves[i], memory_order_relaxed);
    if (!leaf) continue;
    services->host_free(services, leaf, address_map_leaf_bytes(map));
    map->n_leaves--;
  }
  services->host_free(services, map->leaves, table_bytes);
}

bool address_map_cover(struct address_map *map, uint64_t start, uint64_t bytes)
{
  if ((start | (start + bytes - 1)) >> ADDRESS_MAP_ADDRESS_BITS) return false;
  for (uint64_t at = start >> ADDRESS_MAP_LEAF_BITS; at <= (start + bytes - 1) >> ADDRESS_MAP_LEAF_BITS; at++) {
    if (atomic_load_explicit(&map->leaves[at], memory_order_relaxed)) continue;
    uint32_t *leaf = map->services->host_allocate(map->services, address_map_leaf_bytes(map));
    if (!leaf) return false;
    atomic_store_explicit(&map->leaves[at], leaf, memory_order_release);
    map->n_leaves++;
  }
  return true;
}

void address_map_set(struct address_map *map, uint64_t start, uint32_t number)
{
  __atomic_store_n(address_map_cell(map, start, map->cell_bits), number, __ATOMIC_RELEASE);
}

uint64_t address_map_metadata_bytes(const struct address_map *map, uint64_t bytes)
{
  return (bytes >> map->cell_bits) * sizeof(uint32_t);
}

/* The part of one leaf that is for [start, end), empty if there is no leaf; returns where the next leaf begins, or `end`. */
static uint64_t address_map_part_of_leaf(const struct address_map *map, uint64_t start, uint64_t end,
                                         uint32_t **first_out, size_t *bytes_out)
{
  uint64_t next = ((start >> ADDRESS_MAP_LEAF_BITS) + 1) << ADDRESS_MAP_LEAF_BITS, stop = next < end ? next : end;
  *first_out = address_map_cell(map, start, map->cell_bits);
  *bytes_out = *first_out ? ((stop >> map->cell_bits) - (start >> map->cell_bits)) * sizeof **first_out : 0;
  return stop;
}

void address_map_discard(struct address_map *map, uint64_t start, uint64_t bytes)
{
  uint32_t *first;
  size_t part;
  for (uint64_t end = start + bytes; start < end;) {
    start = address_map_part_of_leaf(map, start, end, &first, &part);
    host_pages_discard(first, part);
  }
}

uint64_t address_map_resident_bytes(const struct address_map *map, uint64_t start, uint64_t bytes)
{
  uint32_t *first;
  size_t part;
  uint64_t resident = 0;
  for (uint64_t end = start + bytes; start < end;) {
    start = address_map_part_of_leaf(map, start, end, &first, &part);
    resident += host_pages_resident(first, part, part);
  }
  return resident;
}
