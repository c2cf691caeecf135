/* SPDX-License-Identifier: MIT */
/* race_unwritten.c: see race_memory.h. Called by race_memory.c. */
#include "race_memory.h"

#include <stdlib.h>
#include <string.h>

void race_unwritten_clear(struct race_unwritten *unwritten)
{
  free(unwritten->parts);
  *unwritten = (struct race_unwritten){NULL, 0, 0};
}

static void race_unwritten_erase(struct race_unwritten *unwritten, size_t at)
{
  unwritten->count--;
  memmove(&unwritten->parts[at], &unwritten->parts[at + 1], (unwritten->count - at) * sizeof *unwritten->parts);
}

static void race_unwritten_erase_smallest(struct race_unwritten *unwritten)
{
  size_t smallest = 0;
  for (size_t i = 1; i < unwritten->count; i++) {
    const struct race_part *part = &unwritten->parts[i], *least = &unwritten->parts[smallest];
    if (part->end - part->start < least->end - least->start) smallest = i;
  }
  race_unwritten_erase(unwritten, smallest);
}

/* Without host memory for the list, the part counts as written. */
static void race_unwritten_insert(struct race_unwritten *unwritten, size_t at, struct race_part part)
{
  if (unwritten->count == unwritten->capacity) {
    size_t capacity = unwritten->capacity ? 2 * unwritten->capacity : 1;
    struct race_part *parts = realloc(unwritten->parts, capacity * sizeof *parts);
    if (!parts) return;
    unwritten->parts = parts;
    unwritten->capacity = capacity;
  }
  memmove(&unwritten->parts[at + 1], &unwritten->parts[at], (unwritten->count - at) * sizeof part);
  unwritten->parts[at] = part;
  if (++unwritten->count > RACE_UNWRITTEN_MOST) race_unwritten_erase_smallest(unwritten);
}

void race_unwritten_remove(struct race_unwritten *unwritten, size_t start, size_t end)
{
  for (size_t i = 0; i < unwritten->count && unwritten->parts[i].start < end;) {
    struct race_part part = unwritten->parts[i];
    if (part.end <= start) {
      i++;
      continue;
    }
    race_unwritten_erase(unwritten, i);
    if (part.end > end) race_unwritten_insert(unwritten, i, (struct race_part){end, part.end});
    if (part.start < start) race_unwritten_insert(unwritten, i, (struct race_part){part.start, start});
    if (part.start < start) i++;
  }
}

void race_unwritten_add(struct race_unwritten *unwritten, size_t start, size_t end)
{
  struct race_part part = {start, end};
  size_t at = 0;
  while (at < unwritten->count && unwritten->parts[at].end < start) at++;
  while (at < unwritten->count && unwritten->parts[at].start <= end) { /* touches: becomes one part */
    if (unwritten->parts[at].start < part.start) part.start = unwritten->parts[at].start;
    if (unwritten->parts[at].end > part.end) part.end = unwritten->parts[at].end;
    race_unwritten_erase(unwritten, at);
  }
  if (part.start < part.end) race_unwritten_insert(unwritten, at, part);
}

bool race_unwritten_find(const struct race_unwritten *unwritten, size_t start, size_t end, struct race_part *part_out)
{
  for (size_t i = 0; i < unwritten->count; i++) {
    const struct race_part *part = &unwritten->parts[i];
    if (part->end <= start || part->start >= end) continue;
    part_out->start = part->start > start ? part->start : start;
    part_out->end = part->end < end ? part->end : end;
    return true;
  }
  return false;
}
