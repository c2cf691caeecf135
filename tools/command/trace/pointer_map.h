/* SPDX-License-Identifier: MIT */
/* pointer_map.h: a hash map from address to number for the trace reader: open addressing, deletion without tombstones. The
 * plugins' common/live_blocks.h is no substitute: it maps to whole records, has a lock for each shard, and takes its
 * memory from a stack's services, all of which a reader of files lacks. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_POINTER_MAP_H
#define HIPMM_TOOLS_COMMAND_TRACE_POINTER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not a number that a map holds. */
#define POINTER_MAP_NONE UINT32_MAX

/* All zero is an empty map. */
struct pointer_map {
  struct pointer_entry {
    uint64_t key;
    uint32_t value; /* POINTER_MAP_NONE: free */
  } * entries;
  size_t capacity; /* a power of two, or 0 */
  size_t count;
  int shift;
};

/* The number at `key`; POINTER_MAP_NONE if there is none. take removes it too. */
uint32_t pointer_map_get(const struct pointer_map *map, uint64_t key);
uint32_t pointer_map_extract(struct pointer_map *map, uint64_t key);

/* Sets the number at `key`, new or not. False: out of memory. */
bool pointer_map_put(struct pointer_map *map, uint64_t key, uint32_t value);

void pointer_map_clear(struct pointer_map *map);

#endif
