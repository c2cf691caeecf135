/* SPDX-License-Identifier: MIT */
/* memory_map.h: what a resource shows of its memory (ops->visit), gathered and summed up. */
#ifndef HIPMM_CORE_INSPECT_MEMORY_MAP_H
#define HIPMM_CORE_INSPECT_MEMORY_MAP_H

#include "../stack/stack.h"

/* Sums of extents; `states` by enum hipmm_extent_state. */
struct extent_sum {
  uint64_t bytes, blocks;
};

enum { EXTENT_STATES = HIPMM_EXTENT_CACHED + 1 };

struct extents {
  struct hipmm_extent *items;
  size_t n, capacity;
  bool is_short;          /* there was no memory for all */
  uint64_t movable_bytes; /* of what is free: serves a request as if it were in one piece */
};

/* Gathers the extents of an instance, sorted by address; free ones that touch are one. Free with extents_free, whatever
 * came of it. */
enum hipmm_status extents_gather(const struct instance *instance, struct extents *extents_out);
void extents_free(struct extents *extents);

/* Sorts them by stream, for sums per stream. */
void extents_sort_by_stream(struct extents *extents);

void extents_sum(const struct extents *extents, struct extent_sum states_out[EXTENT_STATES]);
uint64_t extents_largest_free(const struct extents *extents);

/* A hole that would be there if blocks between two free ones were freed: the free extents before and after, the extents
 * between them from number `first` on, and the bytes that would be in one piece. */
struct extent_pin {
  size_t first, n;
  uint64_t below_bytes, above_bytes, joined_bytes;
};

/* The holes that would be the largest, largest first; returns how many. The extents are sorted by address. */
size_t extents_pins(const struct extents *extents, struct extent_pin *pins_out, size_t most);

#endif
