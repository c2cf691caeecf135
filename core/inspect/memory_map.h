/* SPDX-License-Identifier: MIT */
/* memory_map.h: what a resource shows of its memory (ops->visit), gathered and summed up. */
#ifndef HIPMM_CORE_INSPECT_MEMORY_MAP_H
#define HIPMM_CORE_INSPECT_MEMORY_MAP_H

#include "../stack/stack.h"

/* Sums of extents; `states` by enum hipmm_extent_state. */
struct memory_map_sum {
  uint64_t bytes, blocks;
};

enum { EXTENT_STATES = HIPMM_EXTENT_CACHED + 1 };

struct memory_map {
  struct hipmm_extent *items;
  size_t n, capacity;
  bool is_short;          /* there was no memory for all */
  uint64_t movable_bytes; /* of what is free: serves a request as if it were in one piece */
};

/* Gathers the extents of an instance, sorted by address; free ones that touch are one. Free with memory_map_free, whatever
 * came of it. */
enum hipmm_status memory_map_gather(const struct instance *instance, struct memory_map *extents_out);
void memory_map_free(struct memory_map *extents);

/* Sorts them by stream, for sums per stream. */
void memory_map_sort_by_stream(struct memory_map *extents);

void memory_map_sum(const struct memory_map *extents, struct memory_map_sum states_out[EXTENT_STATES]);
uint64_t memory_map_largest_free(const struct memory_map *extents);

/* A hole that would be there if blocks between two free ones were freed: the free extents before and after, the extents
 * between them from number `first` on, and the bytes that would be in one piece. */
struct memory_map_blocker {
  size_t first, n;
  uint64_t below_bytes, above_bytes, joined_bytes;
};

/* The holes that would be the largest, largest first; returns how many. The extents are sorted by address. */
size_t memory_map_blockers(const struct memory_map *extents, struct memory_map_blocker *pins_out, size_t most);

#endif
