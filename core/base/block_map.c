/* SPDX-License-Identifier: MIT */
/* block_map.c: see block_map.h. */
#include "block_map.h"
#include "os_memory.h"

void block_map_open(struct block_map *map)
{
  *map = (struct block_map){.sizes = {.services = &os_memory_services}};
  pthread_mutex_init(&map->lock, NULL);
}

void block_map_close(struct block_map *map)
{
  key_map_clear(&map->sizes);
  pthread_mutex_destroy(&map->lock);
}

bool block_map_insert(struct block_map *map, void *ptr, size_t bytes)
{
  pthread_mutex_lock(&map->lock);
  bool fits = bytes < SIZE_MAX && key_map_put(&map->sizes, (uintptr_t)ptr, bytes + 1);
  if (fits) map->bytes += bytes;
  map->cursor = 0;
  pthread_mutex_unlock(&map->lock);
  return fits;
}

/* The lock is held. */
static bool block_map_lookup(const struct block_map *map, const void *ptr, struct hipmm_block *block_out)
{
  uint64_t more = key_map_get(&map->sizes, (uintptr_t)ptr);
  if (more) *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, more - 1};
  return more;
}

static void block_map_remove_locked(struct block_map *map, const struct hipmm_block *block)
{
  key_map_extract(&map->sizes, (uintptr_t)block->ptr);
  map->bytes -= block->bytes;
}

enum hipmm_status block_map_remove(struct block_map *map, const void *ptr, size_t bytes, struct hipmm_block *block_out)
{
  pthread_mutex_lock(&map->lock);
  enum hipmm_status status = block_map_lookup(map, ptr, block_out) ? HIPMM_OK : HIPMM_E_POINTER;
  if (!status && bytes && bytes != block_out->bytes) status = HIPMM_E_SIZE;
  if (!status) {
    block_map_remove_locked(map, block_out);
    key_map_trim(&map->sizes);
    map->cursor = 0;
  }
  pthread_mutex_unlock(&map->lock);
  return status;
}

bool block_map_find(struct block_map *map, const void *ptr, struct hipmm_block *block_out)
{
  pthread_mutex_lock(&map->lock);
  bool found = block_map_lookup(map, ptr, block_out);
  pthread_mutex_unlock(&map->lock);
  return found;
}

/* The next block from the slot `*at` on. The lock is held. */
static bool block_map_next(const struct block_map *map, size_t *at, struct hipmm_block *block_out)
{
  const struct key_map_entry *entry = key_map_next(&map->sizes, at);
  if (entry) *block_out = (struct hipmm_block){(void *)(uintptr_t)entry->key, entry->value - 1};
  return entry;
}

bool block_map_find_holding(struct block_map *map, const void *ptr, struct hipmm_block *block_out)
{
  if (block_map_find(map, ptr, block_out)) return true;
  struct hipmm_block block;
  bool found = false;
  pthread_mutex_lock(&map->lock);
  for (size_t at = 0; !found && block_map_next(map, &at, &block);)
    found = (uintptr_t)ptr - (uintptr_t)block.ptr < block.bytes;
  pthread_mutex_unlock(&map->lock);
  if (found) *block_out = block;
  return found;
}

void block_map_visit(struct block_map *map, void (*visitor)(void *closure, const struct hipmm_block *block),
                     void *closure)
{
  struct hipmm_block block;
  pthread_mutex_lock(&map->lock);
  for (size_t at = 0; block_map_next(map, &at, &block);) visitor(closure, &block);
  pthread_mutex_unlock(&map->lock);
}

bool block_map_remove_any(struct block_map *map, struct hipmm_block *block_out)
{
  pthread_mutex_lock(&map->lock);
  bool found = block_map_next(map, &map->cursor, block_out);
  if (found) {
    block_map_remove_locked(map, block_out);
    map->cursor--; /* another block may have moved into the slot */
  }
  pthread_mutex_unlock(&map->lock);
  return found;
}

void block_map_sum(struct block_map *map, size_t *blocks_out, size_t *bytes_out)
{
  pthread_mutex_lock(&map->lock);
  *blocks_out = map->sizes.count;
  *bytes_out = map->bytes;
  pthread_mutex_unlock(&map->lock);
}
