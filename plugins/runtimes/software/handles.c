/* SPDX-License-Identifier: MIT */
/* handles.c: the objects that the application holds handles to: streams, events, pools, physical memory. Called by the
 * files of those. A handle is the address of its object. Objects are never freed, so any value can be checked for being a
 * live handle. The object freed last is allocated next, as in drivers. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

#define HANDLES_FIRST_CHUNK ((size_t)64) /* objects; each further chunk holds twice as many */

static struct software_handles *handles_all; /* those that have a chunk */

static struct software_handle *handles_object(const struct software_handles *handles, unsigned chunk, size_t index)
{
  return (struct software_handle *)((char *)handles->chunks[chunk] + index * handles->object_bytes);
}

static bool handles_grow(struct software_handles *handles)
{
  unsigned chunk = handles->n_chunks;
  if (chunk == sizeof handles->chunks / sizeof *handles->chunks) return false;
  size_t count = HANDLES_FIRST_CHUNK << chunk;
  handles->chunks[chunk] = calloc(count, handles->object_bytes);
  if (!handles->chunks[chunk]) return false;
  if (!handles->n_chunks++) {
    handles->next = handles_all;
    handles_all = handles;
  }
  for (size_t i = count; i-- > 0;) {
    struct software_handle *object = handles_object(handles, chunk, i);
    object->next_free = handles->free_list;
    handles->free_list = object;
  }
  return true;
}

void *software_handle_allocate(struct software_handles *handles)
{
  if (!handles->free_list && !handles_grow(handles)) return NULL;
  struct software_handle *object = handles->free_list;
  handles->free_list = object->next_free;
  memset(object, 0, handles->object_bytes);
  object->live = true;
  return object;
}

void software_handle_free(struct software_handles *handles, void *object)
{
  struct software_handle *handle = object;
  handle->live = false;
  handle->next_free = handles->free_list;
  handles->free_list = handle;
}

bool software_handle_is_live(const struct software_handles *handles, const void *pointer)
{
  uintptr_t address = (uintptr_t)pointer;
  for (unsigned chunk = 0; chunk < handles->n_chunks; chunk++) {
    uintptr_t offset = address - (uintptr_t)handles->chunks[chunk];
    if (offset >= (HANDLES_FIRST_CHUNK << chunk) * handles->object_bytes) continue;
    return offset % handles->object_bytes == 0 && handles_object(handles, chunk, offset / handles->object_bytes)->live;
  }
  return false;
}

void *software_handle_next(const struct software_handles *handles, const void *object)
{
  bool found = !object;
  for (unsigned chunk = 0; chunk < handles->n_chunks; chunk++) {
    size_t first = 0, count = HANDLES_FIRST_CHUNK << chunk;
    if (!found) {
      uintptr_t offset = (uintptr_t)object - (uintptr_t)handles->chunks[chunk];
      if (offset >= count * handles->object_bytes) continue;
      first = offset / handles->object_bytes + 1;
      found = true;
    }
    for (size_t i = first; i < count; i++)
      if (handles_object(handles, chunk, i)->live) return handles_object(handles, chunk, i);
  }
  return NULL;
}

bool software_handles_exist(const struct software_handles *except)
{
  for (const struct software_handles *handles = handles_all; handles; handles = handles->next)
    if (handles != except && software_handle_next(handles, NULL)) return true;
  return false;
}
