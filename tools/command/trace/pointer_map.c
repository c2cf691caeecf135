/* SPDX-License-Identifier: MIT */
/* pointer_map.c: see pointer_map.h. At most half full, so that a probe is short. */
#include "pointer_map.h"

#include <stdlib.h>

enum { POINTER_MAP_FIRST = 1024 };

static size_t trace_pointer_map_home(const struct pointer_map *map, uint64_t key)
{
  return (size_t)((key * 0x9E3779B97F4A7C15u) >> map->shift);
}

/* Where `key` is, or where it would go. */
static struct pointer_entry *trace_pointer_map_seek(const struct pointer_map *map, uint64_t key)
{
  size_t at = trace_pointer_map_home(map, key);
  while (map->entries[at].value != POINTER_MAP_NONE && map->entries[at].key != key) at = (at + 1) & (map->capacity - 1);
  return &map->entries[at];
}

static bool trace_pointer_map_grow(struct pointer_map *map)
{
  struct pointer_map larger = {.capacity = map->capacity ? map->capacity * 2 : POINTER_MAP_FIRST, .count = map->count};
  larger.entries = calloc(larger.capacity, sizeof *larger.entries);
  if (!larger.entries) return false;
  larger.shift = 64 - __builtin_ctzll(larger.capacity);
  for (size_t i = 0; i < larger.capacity; i++) larger.entries[i].value = POINTER_MAP_NONE;
  for (size_t i = 0; i < map->capacity; i++)
    if (map->entries[i].value != POINTER_MAP_NONE)
      *trace_pointer_map_seek(&larger, map->entries[i].key) = map->entries[i];
  free(map->entries);
  *map = larger;
  return true;
}

uint32_t pointer_map_get(const struct pointer_map *map, uint64_t key)
{
  return map->capacity ? trace_pointer_map_seek(map, key)->value : POINTER_MAP_NONE;
}

bool pointer_map_put(struct pointer_map *map, uint64_t key, uint32_t value)
{
  if (map->count * 2 >= map->capacity && !trace_pointer_map_grow(map)) return false;
  struct pointer_entry *entry = trace_pointer_map_seek(map, key);
  map->count += entry->value == POINTER_MAP_NONE;
  *entry = (struct pointer_entry){key, value};
  return true;
}

/* Moves later entries of the run back over the hole, so that every search still ends at the first free entry. */
static void trace_pointer_map_close_hole(struct pointer_map *map, size_t hole)
{
  size_t mask = map->capacity - 1;
  for (size_t at = (hole + 1) & mask; map->entries[at].value != POINTER_MAP_NONE; at = (at + 1) & mask) {
    size_t home = trace_pointer_map_home(map, map->entries[at].key);
    if (((at - home) & mask) < ((at - hole) & mask)) continue; /* it would move in front of its home */
    map->entries[hole] = map->entries[at];
    hole = at;
  }
  map->entries[hole].value = POINTER_MAP_NONE;
}

uint32_t pointer_map_extract(struct pointer_map *map, uint64_t key)
{
  if (!map->capacity) return POINTER_MAP_NONE;
  struct pointer_entry *entry = trace_pointer_map_seek(map, key);
  uint32_t value = entry->value;
  if (value == POINTER_MAP_NONE) return value;
  map->count--;
  trace_pointer_map_close_hole(map, (size_t)(entry - map->entries));
  return value;
}

void pointer_map_clear(struct pointer_map *map)
{
  free(map->entries);
  *map = (struct pointer_map){0};
}
