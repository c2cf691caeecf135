/* SPDX-License-Identifier: MIT */
/* memory_map.c: gathers what a resource shows of its memory and works out what keeps it from being in one piece. Called by
 * snapshot, outside of all locks but those of the plugin that shows. */
#include "../base/error.h"
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

/* ---- Gathering ---- */

static void memory_map_see(void *closure, const struct hipmm_extent *extent)
{
  struct memory_map *extents = closure;
  if (extent->state < HIPMM_EXTENT_LIVE || extent->state >= EXTENT_STATES) return;
  if (extents->n == extents->capacity && !extents->is_short) {
    size_t capacity = extents->capacity ? 2 * extents->capacity : 64;
    void *items = reallocarray(extents->items, capacity, sizeof *extents->items);
    extents->is_short = !items;
    if (items) extents->items = items;
    if (items) extents->capacity = capacity;
  }
  if (extents->n < extents->capacity) extents->items[extents->n++] = *extent;
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

static bool memory_map_are_one_hole(const struct hipmm_extent *a, const struct hipmm_extent *b)
{
  return a->state == HIPMM_EXTENT_FREE && b->state == HIPMM_EXTENT_FREE && !(b->flags & HIPMM_EXTENT_BARRIER) &&
         (uintptr_t)a->ptr + a->bytes == (uintptr_t)b->ptr;
}

/* They are shown as several where only a part can be moved. */
static void memory_map_join_holes(struct memory_map *extents)
{
  struct hipmm_extent *items = extents->items;
  size_t n = 0;
  for (size_t i = 0; i < extents->n; i++) {
    bool is_movable = items[i].state == HIPMM_EXTENT_FREE && items[i].flags & HIPMM_EXTENT_MOVABLE;
    if (is_movable) extents->movable_bytes += items[i].bytes;
    if (n && memory_map_are_one_hole(&items[n - 1], &items[i]))
      items[n - 1].bytes += items[i].bytes;
    else
      items[n++] = items[i];
  }
  extents->n = n;
}

enum hipmm_status memory_map_gather(const struct instance *instance, struct memory_map *extents_out)
{
  *extents_out = (struct memory_map){0};
  enum hipmm_status status = instance->resource.ops->visit(instance->resource.self, memory_map_see, extents_out);
  if (!status && extents_out->is_short) status = error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (extents_out->n) qsort(extents_out->items, extents_out->n, sizeof *extents_out->items, memory_map_by_address);
  memory_map_join_holes(extents_out);
  return status;
}

void memory_map_free(struct memory_map *extents)
{
  free(extents->items);
}

void memory_map_sort_by_stream(struct memory_map *extents)
{
  if (extents->n) qsort(extents->items, extents->n, sizeof *extents->items, memory_map_by_stream);
}

/* ---- Sums ---- */

void memory_map_sum(const struct memory_map *extents, struct memory_map_sum states_out[EXTENT_STATES])
{
  memset(states_out, 0, EXTENT_STATES * sizeof *states_out);
  for (size_t i = 0; i < extents->n; i++) {
    states_out[extents->items[i].state].bytes += extents->items[i].bytes;
    states_out[extents->items[i].state].blocks++;
  }
}

uint64_t memory_map_largest_free(const struct memory_map *extents)
{
  uint64_t largest = extents->movable_bytes;
  for (size_t i = 0; i < extents->n; i++)
    if (extents->items[i].state == HIPMM_EXTENT_FREE && extents->items[i].bytes > largest)
      largest = extents->items[i].bytes;
  return largest;
}

/* ---- Pins ---- */

/* Whether two extents are of one piece, as they say, and nothing lies between them: no more than the rounding of the
 * first. */
static bool memory_map_are_neighbours(const struct hipmm_extent *a, const struct hipmm_extent *b)
{
  uintptr_t end = (uintptr_t)a->ptr + a->bytes, start = (uintptr_t)b->ptr;
  uintptr_t rounding = a->state == HIPMM_EXTENT_LIVE && a->bytes > HIPMM_ALIGNMENT ? a->bytes : HIPMM_ALIGNMENT;
  return !(b->flags & HIPMM_EXTENT_BARRIER) && start >= end && start - end <= rounding;
}

/* Keeps the largest, in order. */
static size_t memory_map_insert_pin(struct memory_map_blocker *pins, size_t n, size_t most,
                                    const struct memory_map_blocker *pin)
{
  size_t at = n;
  while (at > 0 && pins[at - 1].joined_bytes < pin->joined_bytes) at--;
  if (at == most) return n;
  if (n < most) n++;
  memmove(&pins[at + 1], &pins[at], (n - at - 1) * sizeof *pins);
  pins[at] = *pin;
  return n;
}

size_t memory_map_blockers(const struct memory_map *extents, struct memory_map_blocker *pins_out, size_t most)
{
  const struct hipmm_extent *items = extents->items;
  size_t n = 0, hole = SIZE_MAX; /* the free extent below, SIZE_MAX: none that reaches here */
  for (size_t i = 0; i < extents->n; i++) {
    if (i && !memory_map_are_neighbours(&items[i - 1], &items[i])) hole = SIZE_MAX;
    if (items[i].state != HIPMM_EXTENT_FREE) continue;
    if (hole != SIZE_MAX && i > hole + 1) {
      uintptr_t end = (uintptr_t)items[i].ptr + items[i].bytes;
      struct memory_map_blocker pin = {.first = hole + 1,
                                       .n = i - hole - 1,
                                       .below_bytes = items[hole].bytes,
                                       .above_bytes = items[i].bytes,
                                       .joined_bytes = end - (uintptr_t)items[hole].ptr};
      n = memory_map_insert_pin(pins_out, n, most, &pin);
    }
    hole = i;
  }
  return n;
}
