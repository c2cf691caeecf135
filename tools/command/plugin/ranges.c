/* SPDX-License-Identifier: MIT */
/* ranges.c: an array in order of addresses, moved up and down: slow, and too simple to be wrong. */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

void ranges_open(struct ranges *ranges)
{
  *ranges = (struct ranges){.count = 0};
  pthread_mutex_init(&ranges->lock, NULL);
}

void ranges_close(struct ranges *ranges)
{
  free(ranges->items);
  pthread_mutex_destroy(&ranges->lock);
}

/* The first range that does not begin before `start`. */
static size_t ranges_position_of(const struct ranges *ranges, uintptr_t start)
{
  size_t low = 0, high = ranges->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ranges->items[middle].start < start)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void ranges_insert(struct ranges *ranges, size_t at, struct range range)
{
  if (ranges->count == ranges->capacity) {
    ranges->capacity = ranges->capacity ? 2 * ranges->capacity : 256;
    ranges->items = realloc(ranges->items, ranges->capacity * sizeof range);
    if (!ranges->items) abort(); /* a test without memory has nothing to say */
  }
  memmove(&ranges->items[at + 1], &ranges->items[at], (ranges->count - at) * sizeof range);
  ranges->items[at] = range;
  ranges->count++;
  ranges->bytes += range.bytes;
}

bool ranges_add(struct ranges *ranges, uintptr_t start, size_t bytes, struct range *other_out)
{
  pthread_mutex_lock(&ranges->lock);
  size_t at = ranges_position_of(ranges, start);
  const struct range *before = at ? &ranges->items[at - 1] : NULL;
  const struct range *after = at < ranges->count ? &ranges->items[at] : NULL;
  const struct range *other = NULL;
  if (before && start - before->start < before->bytes) other = before;
  if (after && after->start - start < bytes) other = after;
  if (other)
    *other_out = *other;
  else
    ranges_insert(ranges, at, (struct range){start, bytes});
  pthread_mutex_unlock(&ranges->lock);
  return !other;
}

bool ranges_remove(struct ranges *ranges, uintptr_t start, size_t bytes)
{
  pthread_mutex_lock(&ranges->lock);
  size_t at = ranges_position_of(ranges, start);
  bool found = at < ranges->count && ranges->items[at].start == start && ranges->items[at].bytes == bytes;
  if (found) {
    ranges->bytes -= bytes;
    ranges->count--;
    memmove(&ranges->items[at], &ranges->items[at + 1], (ranges->count - at) * sizeof *ranges->items);
  }
  pthread_mutex_unlock(&ranges->lock);
  return found;
}
