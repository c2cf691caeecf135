/* SPDX-License-Identifier: MIT */
/* key_map.h: a hash map from a key, such as an address, to a number or pointer that is not 0. Not thread-safe. A table that
 * must not fail to grow is a key_tree.h. */
#ifndef HIPMM_CORE_BASE_KEY_MAP_H
#define HIPMM_CORE_BASE_KEY_MAP_H

#include <hipmm/plugin.h>

#include <stdbool.h>

struct key_map_entry {
  uint64_t key, value; /* value 0: empty */
};

/* All zero is an empty map. */
struct key_map {
  const struct hipmm_services *services; /* whose host memory the map takes; NULL: the C library's */
  struct key_map_entry *entries;
  size_t capacity; /* a power of two, or 0 */
  size_t count;    /* at most half of capacity */
  unsigned shift;
};

/* The value of `key`, 0 if there is none. key_map_extract() also removes the key. */
uint64_t key_map_get(const struct key_map *map, uint64_t key);
uint64_t key_map_extract(struct key_map *map, uint64_t key);

/* Sets the value of `key`. False, and nothing changed, if there is no host memory for a new key. */
bool key_map_put(struct key_map *map, uint64_t key, uint64_t value);

/* The first entry from the index `*at` on, and makes that the index behind it; NULL after the last. The order is of no
 * meaning, and changes when a key is put. */
const struct key_map_entry *key_map_next(const struct key_map *map, size_t *at);

/* Shrinks the table if most of it is empty. Without memory for the smaller table the large one stays. */
void key_map_trim(struct key_map *map);

/* Bytes of host memory that the map has. */
size_t key_map_bytes(const struct key_map *map);

/* Empties the map and frees its memory. */
void key_map_clear(struct key_map *map);

#endif
