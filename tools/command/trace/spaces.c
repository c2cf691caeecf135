/* SPDX-License-Identifier: MIT */
/* spaces.c: see spaces.h. */
#include "spaces.h"
#include "../array.h"

#include <stdlib.h>

bool trace_space_is(const struct trace_space *one, const struct trace_space *other)
{
  return one->process == other->process && one->device == other->device && one->memory == other->memory &&
         one->log == other->log;
}

bool trace_spaces_find(struct trace_spaces *spaces, const struct trace_space *space, size_t *index_out)
{
  size_t at = spaces->last;
  if (!spaces->n || !trace_space_is(&spaces->items[at], space))
    for (at = 0; at < spaces->n && !trace_space_is(&spaces->items[at], space);) at++;
  if (at == spaces->n) {
    if (at == TRACE_MOST_SPACES || !array_grow(&spaces->items, at, &spaces->capacity, sizeof *spaces->items))
      return false;
    spaces->items[spaces->n++] = *space;
  }
  *index_out = spaces->last = at;
  return true;
}

bool trace_spaces_have_several_devices(const struct trace_spaces *spaces)
{
  const struct trace_space *sole = NULL;
  for (size_t i = 0; i < spaces->n; i++) {
    const struct trace_space *space = &spaces->items[i];
    if (space->memory != TRACE_DEVICE_MEMORY) continue;
    if (sole && sole->device != space->device) return true;
    sole = space;
  }
  return false;
}

void trace_spaces_clear(struct trace_spaces *spaces)
{
  free(spaces->items);
  *spaces = (struct trace_spaces){0};
}
