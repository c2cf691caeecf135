/* SPDX-License-Identifier: MIT */
/* key_map.c: linear probing in a table that is at most half full. There are no tombstones: removing an entry moves the
 * entries behind it towards their home slots. */
#include "key_map.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 256 /* a page */, MOST_SLOTS_PER_KEY = 16 /* of a table that was trimmed */ };

static size_t key_map_home(const struct key_map *map, uint64_t key)
{
  return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> map->shift);
}

/* The entry of `key`, or the empty one for it. */
static struct key_map_entry *key_map_seek(const struct key_map *map, uint64_t key)
{
  size_t at = key_map_home(map, key);
  while (map->entries[at].value && map->entries[at].key != key) at = (at + 1) & (map->capacity - 1);
  return &map->entries[at];
}

static void key_map_free(const struct key_map *map)
{
  if (map->services && map->entries)
    map->services->host_free(map->services, map->entries, key_map_bytes(map));
  else
    free(map->entries);
}

static bool key_map_resize(struct key_map *map, size_t capacity)
{
  struct key_map other = *map;
  other.capacity = capacity;
  other.shift = 64 - (unsigned)__builtin_ctzll(capacity);
  other.entries = map->services ? map->services->host_allocate(map->services, key_map_bytes(&other))
                                : calloc(capacity, sizeof *other.entries);
  if (!other.entries) return false;
  for (size_t i = 0; i < map->capacity; i++)
    if (map->entries[i].value) *key_map_seek(&other, map->entries[i].key) = map->entries[i];
  key_map_free(map);
  *map = other;
  return true;
}

uint64_t key_map_get(const struct key_map *map, uint64_t key)
{
  return map->count ? key_map_seek(map, key)->value : 0;
}

bool key_map_put(struct key_map *map, uint64_t key, uint64_t value)
{
  struct key_map_entry *entry = map->capacity ? key_map_seek(map, key) : NULL;
  if (!entry || !entry->value) {
    bool is_full = 2 * map->count >= map->capacity;
    if (is_full && !key_map_resize(map, map->capacity ? 2 * map->capacity : FIRST_CAPACITY)) return false;
    if (is_full) entry = key_map_seek(map, key);
    map->count++;
  }
  *entry = (struct key_map_entry){key, value};
  return true;
}

/* An entry moves into the hole if that is not in front of its home. */
static void key_map_close_hole(struct key_map *map, size_t hole)
{
  size_t mask = map->capacity - 1;
  for (size_t at = (hole + 1) & mask; map->entries[at].value; at = (at + 1) & mask) {
    size_t home = key_map_home(map, map->entries[at].key);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    map->entries[hole] = map->entries[at];
    hole = at;
  }
  map->entries[hole].value = 0;
}

uint64_t key_map_extract(struct key_map *map, uint64_t key)
{
  if (!map->count) return 0;
  struct key_map_entry *entry = key_map_seek(map, key);
  uint64_t value = entry->value;
  if (!value) return 0;
  map->count--;
  key_map_close_hole(map, (size_t)(entry - map->entries));
  return value;
}

const struct key_map_entry *key_map_next(const struct key_map *map, size_t *at)
{
  while (*at < map->capacity && !map->entries[*at].value) ++*at;
  return *at < map->capacity ? &map->entries[(*at)++] : NULL;
}

void key_map_trim(struct key_map *map)
{
  if (MOST_SLOTS_PER_KEY * map->count < map->capacity && map->capacity > FIRST_CAPACITY)
    key_map_resize(map, map->capacity / 4 > FIRST_CAPACITY ? map->capacity / 4 : FIRST_CAPACITY);
}

size_t key_map_bytes(const struct key_map *map)
{
  return map->capacity * sizeof *map->entries;
}

void key_map_clear(struct key_map *map)
{
  key_map_free(map);
  *map = (struct key_map){.services = map->services};
}
