/* SPDX-License-Identifier: MIT */
/* memory_map.c: gathers what a resource shows of its memory, and finds the blocks that fragment it. Called by snapshot.c
 * outside of all locks, except those of the plugin that shows its memory. */
#include "../base/error.h"
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

/* ---- Gathering ---- */

static void memory_map_add(void *closure, const struct hipmm_extent *extent)
{
  struct memory_map *map = closure;
  if (extent->state < HIPMM_EXTENT_LIVE || extent->state >= EXTENT_STATES) return;
  if (map->n == map->capacity && !map->is_truncated) {
    size_t capacity = map->capacity ? 2 * map->capacity : 64;
    void *items = reallocarray(map->items, capacity, sizeof *map->items);
    map->is_truncated = !items;
    if (items) map->items = items;
    if (items) map->capacity = capacity;
  }
  if (map->n < map->capacity) map->items[map->n++] = *extent;
}

static int memory_map_by_address(const void *left, const void *right)
{
  const struct hipmm_extent *a = left, *b = right;
  return (a->ptr > b->ptr) - (a->ptr < b->ptr);
}

static int memory_map_by_stream(const void *left, const void *right)
{
  const struct hipmm_extent *a = left, *b = right;
  return a->stream == b->stream                        ? memory_map_by_address(left, right)
         : (uintptr_t)a->stream > (uintptr_t)b->stream ? 1
                                                       : -1;
}

static bool memory_map_is_one_hole(const struct hipmm_extent *a, const struct hipmm_extent *b)
{
  return a->state == HIPMM_EXTENT_FREE && b->state == HIPMM_EXTENT_FREE && !(b->flags & HIPMM_EXTENT_BARRIER) &&
         (uintptr_t)a->ptr + a->bytes == (uintptr_t)b->ptr;
}

/* A resource shows a hole as several extents where only a part of it can be moved. */
static void memory_map_join_holes(struct memory_map *map)
{
  struct hipmm_extent *items = map->items;
  size_t n = 0;
  for (size_t i = 0; i < map->n; i++) {
    bool is_movable = items[i].state == HIPMM_EXTENT_FREE && items[i].flags & HIPMM_EXTENT_MOVABLE;
    if (is_movable) map->movable_bytes += items[i].bytes;
    if (n && memory_map_is_one_hole(&items[n - 1], &items[i]))
      items[n - 1].bytes += items[i].bytes;
    else
      items[n++] = items[i];
  }
  map->n = n;
}

enum hipmm_status memory_map_gather(const struct instance *instance, struct memory_map *map_out)
{
  *map_out = (struct memory_map){0};
  enum hipmm_status status = instance_finish_op(
      instance, instance->resource.ops->visit(instance->resource.self, memory_map_add, map_out), "visit");
  if (!status && map_out->is_truncated) status = error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (map_out->n) qsort(map_out->items, map_out->n, sizeof *map_out->items, memory_map_by_address);
  memory_map_join_holes(map_out);
  return status;
}

void memory_map_free(struct memory_map *map)
{
  free(map->items);
}

void memory_map_sort_by_stream(struct memory_map *map)
{
  if (map->n) qsort(map->items, map->n, sizeof *map->items, memory_map_by_stream);
}

/* ---- Sums ---- */

void memory_map_sum(const struct memory_map *map, struct memory_map_sum states_out[EXTENT_STATES])
{
  memset(states_out, 0, EXTENT_STATES * sizeof *states_out);
  for (size_t i = 0; i < map->n; i++) {
    states_out[map->items[i].state].bytes += map->items[i].bytes;
    states_out[map->items[i].state].blocks++;
  }
}

uint64_t memory_map_largest_free(const struct memory_map *map)
{
  uint64_t largest = map->movable_bytes;
  for (size_t i = 0; i < map->n; i++)
    if (map->items[i].state == HIPMM_EXTENT_FREE && map->items[i].bytes > largest) largest = map->items[i].bytes;
  return largest;
}

/* ---- Blockers ---- */

/* Whether two extents are of one range, as their flags say, and at most the rounding of the first lies between them. */
static bool memory_map_are_adjacent(const struct hipmm_extent *a, const struct hipmm_extent *b)
{
  uintptr_t end = (uintptr_t)a->ptr + a->bytes, start = (uintptr_t)b->ptr;
  uintptr_t rounding = a->state == HIPMM_EXTENT_LIVE && a->bytes > HIPMM_ALIGNMENT ? a->bytes : HIPMM_ALIGNMENT;
  return !(b->flags & HIPMM_EXTENT_BARRIER) && start >= end && start - end <= rounding;
}

/* Retains the largest, in order. */
static size_t memory_map_insert_blocker(struct memory_map_blocker *blockers, size_t n, size_t most,
                                        const struct memory_map_blocker *blocker)
{
  size_t at = n;
  while (at > 0 && blockers[at - 1].joined_bytes < blocker->joined_bytes) at--;
  if (at == most) return n;
  if (n < most) n++;
  memmove(&blockers[at + 1], &blockers[at], (n - at - 1) * sizeof *blockers);
  blockers[at] = *blocker;
  return n;
}

size_t memory_map_blockers(const struct memory_map *map, struct memory_map_blocker *blockers_out, size_t most)
{
  const struct hipmm_extent *items = map->items;
  size_t n = 0, hole = SIZE_MAX; /* the free extent below, SIZE_MAX: none that reaches here */
  for (size_t i = 0; i < map->n; i++) {
    if (i && !memory_map_are_adjacent(&items[i - 1], &items[i])) hole = SIZE_MAX;
    if (items[i].state != HIPMM_EXTENT_FREE) continue;
    if (hole != SIZE_MAX && i > hole + 1) {
      uintptr_t end = (uintptr_t)items[i].ptr + items[i].bytes;
      struct memory_map_blocker blocker = {.first = hole + 1,
                                           .n = i - hole - 1,
                                           .below_bytes = items[hole].bytes,
                                           .above_bytes = items[i].bytes,
                                           .joined_bytes = end - (uintptr_t)items[hole].ptr};
      n = memory_map_insert_blocker(blockers_out, n, most, &blocker);
    }
    hole = i;
  }
  return n;
}
