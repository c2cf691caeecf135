/* SPDX-License-Identifier: MIT */
/* names.c: see served.h. */
#include "served.h"

#include <hipmm/serve.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)HIPMM_SERVE_MOST_NAME_BYTES == (int)SERVE_MOST_NAME_BYTES, "as serve.h says");
_Static_assert((int)HIPMM_SERVE_MOST_DESCRIPTION_BYTES == (int)SERVE_MOST_DESCRIPTION_BYTES, "as serve.h says");

static const struct served_name *served_names_find(const struct served *served, const char *name)
{
  for (uint32_t i = 0; i < served->n_names; i++)
    if (!strcmp(served->names[i].text, name)) return &served->names[i];
  return NULL;
}

static bool served_names_make_room(struct served *served)
{
  if (served->n_names < served->names_room) return true;
  uint32_t room = served->names_room ? 2 * served->names_room : 64;
  struct served_name *names = realloc(served->names, room * sizeof *names);
  if (!names) return false;
  served->names = names;
  served->names_room = room;
  return true;
}

enum hipmm_status served_names_add(struct served *served, const char *name, size_t name_bytes, const void *description,
                                   struct served_name place)
{
  const struct hipmm_services *services = served->services;
  if (served->n_names == SERVE_MOST_NAMES)
    return services->fail(services, HIPMM_E_LIMIT, NULL, "a store has at most %d names on a device", SERVE_MOST_NAMES);
  place.text = malloc(name_bytes + 1 + place.description_bytes);
  if (!place.text || !served_names_make_room(served)) {
    free(place.text);
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the name");
  }
  memcpy(place.text, name, name_bytes);
  place.text[name_bytes] = '\0';
  if (place.description_bytes) memcpy(place.text + name_bytes + 1, description, place.description_bytes);
  if (served_names_find(served, place.text)) {
    enum hipmm_status status =
        services->fail(services, HIPMM_E_ARGUMENT, NULL, "the store has the name \"%s\" already", place.text);
    free(place.text);
    return status;
  }
  served->names[served->n_names++] = place;
  return HIPMM_OK;
}

void served_names_drop(struct served *served, size_t block_offset)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < served->n_names; i++) {
    const struct served_name *name = &served->names[i];
    if (name->block_offset != block_offset)
      served->names[n++] = *name;
    else
      free(name->text);
  }
  served->n_names = n;
}

void served_names_clear(struct served *served)
{
  while (served->n_names) free(served->names[--served->n_names].text);
  free(served->names);
  served->names = NULL;
  served->names_room = 0;
}

/* ---- Messages ---- */

static enum hipmm_status served_names_check_size(const struct served *served, size_t struct_size, size_t bytes,
                                                 const char *type)
{
  const struct hipmm_services *services = served->services;
  if (struct_size >= bytes) return HIPMM_OK;
  return services->fail(services, HIPMM_E_ARGUMENT, NULL, "struct_size is %zu; set it to sizeof(struct %s), %zu",
                        struct_size, type, bytes);
}

static enum hipmm_status served_names_check(const struct served *served, const struct hipmm_serve_put_message *put)
{
  const struct hipmm_services *services = served->services;
  struct serve_name name = {.bytes = put->bytes};
  size_t length = put->name ? strnlen(put->name, SERVE_MOST_NAME_BYTES + 1) : 0;
  if (put->description_bytes > SERVE_MOST_DESCRIPTION_BYTES || (put->description_bytes && !put->description))
    return services->fail(services, HIPMM_E_ARGUMENT, NULL,
                          "a description is at most %d bytes, not %zu; put the rest into a block of its own",
                          SERVE_MOST_DESCRIPTION_BYTES, put->description_bytes);
  name.name_bytes = (uint32_t)length;
  if (length <= SERVE_MOST_NAME_BYTES && length) memcpy(name.text, put->name, length);
  if (serve_is_name(&name, put->bytes)) return HIPMM_OK;
  return services->fail(services, HIPMM_E_ARGUMENT, NULL, "a name has 1 to %d bytes without control characters",
                        SERVE_MOST_NAME_BYTES);
}

enum hipmm_status served_names_put(struct served *served, const void *message)
{
  const struct hipmm_services *services = served->services;
  const struct hipmm_serve_put_message *put = message;
  struct hipmm_block block;
  enum hipmm_status status = served_names_check_size(served, put->struct_size, sizeof *put,
                                                     "hipmm_serve_put_message"); /* the first release's */
  if (status) return status;
  if (served->state != SERVED_WRITING)
    return services->fail(services, HIPMM_E_STATE, NULL,
                          "a name is for memory that is being written: allocate first, in a resource with \"mode\": "
                          "\"write\" that has not committed");
  status = served_names_check(served, put);
  if (!status) status = services->lookup(services, put->ptr, &block);
  if (status) return status;
  if (put->offset > block.bytes || put->bytes > block.bytes - put->offset)
    return services->fail(services, HIPMM_E_SIZE, NULL, "the block at %p has %zu bytes, and the name %zu at offset %zu",
                          put->ptr, block.bytes, put->bytes, put->offset);
  size_t block_offset = (size_t)((const char *)block.ptr - served->start);
  return served_names_add(served, put->name, strlen(put->name), put->description,
                          (struct served_name){.offset = block_offset + put->offset,
                                               .bytes = put->bytes,
                                               .description_bytes = put->description_bytes,
                                               .block_offset = block_offset});
}

static enum hipmm_status served_names_fail_unknown(const struct served *served,
                                                   const struct hipmm_serve_get_message *get)
{
  const struct hipmm_services *services = served->services;
  if (get->name)
    return services->fail(services, HIPMM_E_ARGUMENT, NULL, "the store has no name \"%.*s\"", SERVE_MOST_NAME_BYTES,
                          get->name);
  return services->fail(services, HIPMM_E_ARGUMENT, NULL, "index %zu: the store has %u names, numbered from 0",
                        get->index, served->n_names);
}

enum hipmm_status served_names_get(struct served *served, void *message)
{
  struct hipmm_serve_get_message *get = message;
  const struct served_name *found = NULL;
  enum hipmm_status status = served_names_check_size(served, get->struct_size, sizeof *get, "hipmm_serve_get_message");
  if (!status && served->state == SERVED_WRITING)
    status = served->services->fail(served->services, HIPMM_E_STATE, NULL,
                                    "names can be found once the store is committed; perform \"commit\" first");
  if (status) return status;
  if (get->name)
    found = served_names_find(served, get->name);
  else if (get->index < served->n_names)
    found = &served->names[get->index];
  if (!found) return served_names_fail_unknown(served, get);
  size_t name_bytes = strlen(found->text) + 1;
  if (!get->name) get->name = found->text;
  get->index = (size_t)(found - served->names);
  get->ptr = served->start + found->offset;
  get->bytes = found->bytes;
  get->description = found->text + name_bytes;
  get->description_bytes = found->description_bytes;
  get->n_names = served->n_names;
  return HIPMM_OK;
}
