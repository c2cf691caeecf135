/* SPDX-License-Identifier: MIT */
/* segments.c: see segments.h. An allocator has some thousand segments, so those that are held are a sorted array. */
#include "segments.h"
#include "../array.h"

#include <stdlib.h>
#include <string.h>

static uint64_t segment_end(const struct segment *segment)
{
  uint64_t end;
  return __builtin_add_overflow(segment->address, segment->bytes, &end) ? UINT64_MAX : end;
}

/* The place in the array of the first segment that ends after the address. */
static size_t segments_find(const struct segments *segments, uint64_t address)
{
  size_t low = 0, high = segments->n_held;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (segment_end(&segments->items[segments->held[middle]]) > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static bool segments_add(struct segments *segments, struct segment segment)
{
  if (!segment.bytes) return true;
  if (!array_grow(&segments->items, segments->n, &segments->capacity, sizeof *segments->items) ||
      !array_grow(&segments->held, segments->n_held, &segments->held_capacity, sizeof *segments->held))
    return false;
  size_t place = segments_find(segments, segment.address);
  memmove(segments->held + place + 1, segments->held + place, (segments->n_held - place) * sizeof *segments->held);
  segments->held[place] = segments->n;
  segments->n_held++;
  segments->held_bytes += segment.bytes;
  segments->items[segments->n++] = segment;
  return true;
}

bool segments_release(struct segments *segments, uint32_t event, uint64_t address, uint64_t bytes)
{
  const struct segment released = {.address = address, .bytes = bytes};
  const uint64_t end = segment_end(&released);
  size_t place;
  segments->calls++;
  while (bytes && (place = segments_find(segments, address)) < segments->n_held) {
    struct segment *segment = &segments->items[segments->held[place]];
    const struct segment whole = *segment;
    if (whole.address >= end) break;
    if (segment->address < address) segment->address = address;
    segment->bytes = (segment_end(&whole) < end ? segment_end(&whole) : end) - segment->address;
    segment->to = event;
    segment->given_back = segments->calls;
    segments->held_bytes -= whole.bytes;
    segments->n_held--;
    memmove(segments->held + place, segments->held + place + 1, (segments->n_held - place) * sizeof *segments->held);
    struct segment below = whole, above = whole;
    below.bytes = segment->address - whole.address;
    above.address = segment_end(segment);
    above.bytes = segment_end(&whole) - above.address;
    if (!segments_add(segments, below) || !segments_add(segments, above)) return false;
  }
  return true;
}

bool segments_hold(struct segments *segments, uint32_t event, uint64_t address, uint64_t bytes, uint32_t pool)
{
  return segments_release(segments, event, address, bytes) &&
         segments_add(segments,
                      (struct segment){address, bytes, event, SEGMENT_IS_HELD, pool, 0, ++segments->calls, 0});
}

uint32_t segments_pool(const struct segments *segments, uint64_t address)
{
  const size_t place = segments_find(segments, address);
  const struct segment *segment = place < segments->n_held ? &segments->items[segments->held[place]] : NULL;
  return segment && segment->address <= address ? segment->pool : 0;
}

void segments_clear(struct segments *segments)
{
  free(segments->items);
  free(segments->held);
  *segments = (struct segments){0};
}
