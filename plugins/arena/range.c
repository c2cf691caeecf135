/* SPDX-License-Identifier: MIT */
/* range.c: see range.h. */
#include "range.h"

enum { MOST_RANGES = 1 << 28 };

bool ranges_open(struct arena_ranges *ranges, const struct hipmm_services *services)
{
  *ranges = (struct arena_ranges){.services = services, .count = 1, .next_trimmed = 1};
  bool opened = address_map_open(&ranges->starts, services, HIPMM_ALIGNMENT);
  if (!host_array_open(&ranges->records, MOST_RANGES * sizeof *ranges->items)) return false;
  ranges->items = (struct arena_range *)(void *)ranges->records.start;
  ranges->most = (uint32_t)(ranges->records.reserved_bytes / sizeof *ranges->items);
  return opened;
}

void ranges_close(struct arena_ranges *ranges)
{
  address_map_close(&ranges->starts);
  host_array_close(&ranges->records);
}

/* A record that was unused at the last trim. The list `unused` is empty here, so no record is both found and listed. */
static uint32_t range_find_trimmed(struct arena_ranges *ranges)
{
  while (ranges->next_trimmed < ranges->count) {
    uint32_t id = ranges->next_trimmed++;
    if (range_state(range_of(ranges, id)) == RANGE_UNUSED) return id;
  }
  return RANGE_NONE;
}

static uint32_t range_append(struct arena_ranges *ranges)
{
  size_t end = (ranges->count + (size_t)1) * sizeof *ranges->items;
  if (ranges->count >= ranges->most) return RANGE_NONE;
  if (end > ranges->records.usable_bytes && !host_array_grow(&ranges->records)) return RANGE_NONE;
  return ranges->count++;
}

uint32_t range_new(struct arena_ranges *ranges)
{
  uint32_t id = ranges->unused;
  if (id)
    ranges->unused = range_of(ranges, id)->next;
  else
    id = range_find_trimmed(ranges);
  if (!id) id = range_append(ranges);
  if (id) range_set_state(range_of(ranges, id), RANGE_RESERVED);
  return id;
}

bool ranges_are_exhausted(const struct arena_ranges *ranges)
{
  return !ranges->unused && ranges->next_trimmed >= ranges->count && ranges->count >= ranges->most;
}

/* Records without memory cannot be in a list: range_new() finds them by their state, from the first on. */
void ranges_trim(struct arena_ranges *ranges)
{
  uint32_t first = 1;
  for (uint32_t id = 1; id <= ranges->count; id++) {
    if (id < ranges->count && range_state(range_of(ranges, id)) == RANGE_UNUSED) continue;
    if (first < id) host_pages_discard(range_of(ranges, first), (id - first) * sizeof *ranges->items);
    if (id == ranges->count) ranges->count = first;
    first = id + 1;
  }
  ranges->unused = RANGE_NONE;
  ranges->next_trimmed = 1;
}

/* The address map keeps a stale number: readers compare the `start` of the record. */
void range_discard(struct arena_ranges *ranges, uint32_t id)
{
  range_set_state(range_of(ranges, id), RANGE_UNUSED);
  range_of(ranges, id)->next = ranges->unused;
  ranges->unused = id;
}

uint64_t ranges_metadata_bytes(const struct arena_ranges *ranges)
{
  size_t bytes = ranges->count * sizeof *ranges->items;
  return host_pages_resident(ranges->items, bytes, bytes);
}
