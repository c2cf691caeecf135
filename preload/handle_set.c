/* SPDX-License-Identifier: MIT */
/* handle_set.c: see handle_set.h. An array that is searched from its start: programs have few streams, and fewer pools. */
#include "handle_set.h"

#include <stdlib.h>

static size_t handle_set_index(const struct handle_set *handles, const void *handle)
{
  size_t i = 0;
  while (i < handles->count && handles->items[i].handle != handle) i++;
  return i;
}

static bool handle_set_reserve(struct handle_set *handles)
{
  if (handles->count < handles->capacity) return true;
  size_t capacity = handles->capacity ? 2 * handles->capacity : 16;
  struct handle *items = realloc(handles->items, capacity * sizeof *items);
  if (!items) return false;
  handles->items = items;
  handles->capacity = capacity;
  return true;
}

void handle_set_add(struct handle_set *handles, struct handle handle)
{
  pthread_mutex_lock(&handles->lock);
  size_t i = handle_set_index(handles, handle.handle);
  if (i < handles->count)
    handles->items[i] = handle;
  else if (handle_set_reserve(handles))
    handles->items[handles->count++] = handle;
  pthread_mutex_unlock(&handles->lock);
}

bool handle_set_find(struct handle_set *handles, const void *handle, struct handle *found_out)
{
  pthread_mutex_lock(&handles->lock);
  size_t i = handle_set_index(handles, handle);
  bool found = i < handles->count;
  if (found) *found_out = handles->items[i];
  pthread_mutex_unlock(&handles->lock);
  return found;
}

bool handle_set_remove(struct handle_set *handles, const void *handle, struct handle *found_out)
{
  pthread_mutex_lock(&handles->lock);
  size_t i = handle_set_index(handles, handle);
  bool found = i < handles->count;
  if (found) {
    *found_out = handles->items[i];
    handles->items[i] = handles->items[--handles->count];
  }
  pthread_mutex_unlock(&handles->lock);
  return found;
}

bool handle_set_any(struct handle_set *handles, int device, bool (*is)(const struct handle *handle))
{
  bool any = false;
  pthread_mutex_lock(&handles->lock);
  for (size_t i = 0; i < handles->count && !any; i++)
    any = handles->items[i].device == device && is(&handles->items[i]);
  pthread_mutex_unlock(&handles->lock);
  return any;
}
