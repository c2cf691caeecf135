/* SPDX-License-Identifier: MIT */
/* block_map.c: a hash table with linear probing and without tombstones: removing an entry moves the entries behind it
 * towards their home slots. */
#include "block_map.h"
#include "os_memory.h"

enum { FIRST_CAPACITY = 256, MOST_SLOTS_PER_BLOCK = 16 /* of a table that has grown */ };

static size_t block_map_home(const struct block_map *map, const void *ptr)
{
  uint64_t key = (uint64_t)(uintptr_t)ptr >> 8; /* blocks are 256-byte aligned */
  return (size_t)((key * 0x9E3779B97F4A7C15ull) >> 32) & (map->capacity - 1);
}

static size_t block_map_next(const struct block_map *map, size_t slot)
{
  return (slot + 1) & (map->capacity - 1);
}

/* The slot of `ptr`, or the empty slot for it. */
static size_t block_map_slot(const struct block_map *map, const void *ptr)
{
  size_t slot = block_map_home(map, ptr);
  while (map->slots[slot].ptr && map->slots[slot].ptr != ptr) slot = block_map_next(map, slot);
  return slot;
}

static bool block_map_resize(struct block_map *map, size_t capacity)
{
  struct block_map other = {.capacity = capacity};
  other.slots = os_memory_allocate(other.capacity * sizeof *other.slots);
  if (!other.slots) return false;
  for (size_t i = 0; i < map->capacity; i++)
    if (map->slots[i].ptr) other.slots[block_map_slot(&other, map->slots[i].ptr)] = map->slots[i];
  os_memory_free(map->slots, map->capacity * sizeof *map->slots);
  map->slots = other.slots;
  map->capacity = other.capacity;
  map->cursor = 0;
  return true;
}

/* Shrinks the table once most of it is empty. Without memory for the smaller table the large one stays. */
static void block_map_shrink(struct block_map *map)
{
  if (MOST_SLOTS_PER_BLOCK * map->count < map->capacity && map->capacity > FIRST_CAPACITY)
    block_map_resize(map, map->capacity / 4 > FIRST_CAPACITY ? map->capacity / 4 : FIRST_CAPACITY);
}

/* Whether `slot` lies on the probe path from `home` to `end`, all modulo the capacity. */
static bool block_map_lies_between(size_t home, size_t slot, size_t end)
{
  return home <= end ? home <= slot && slot < end : home <= slot || slot < end;
}

static void block_map_remove_slot(struct block_map *map, size_t hole)
{
  map->count--;
  map->bytes -= map->slots[hole].bytes;
  for (size_t slot = block_map_next(map, hole); map->slots[slot].ptr; slot = block_map_next(map, slot)) {
    if (!block_map_lies_between(block_map_home(map, map->slots[slot].ptr), hole, slot)) continue;
    map->slots[hole] = map->slots[slot];
    hole = slot;
  }
  map->slots[hole] = (struct hipmm_block){0};
}

void block_map_open(struct block_map *map)
{
  *map = (struct block_map){.capacity = 0};
  pthread_mutex_init(&map->lock, NULL);
}

void block_map_close(struct block_map *map)
{
  os_memory_free(map->slots, map->capacity * sizeof *map->slots);
  pthread_mutex_destroy(&map->lock);
}

bool block_map_insert(struct block_map *map, void *ptr, size_t bytes)
{
  pthread_mutex_lock(&map->lock);
  bool fits =
      2 * map->count < map->capacity || block_map_resize(map, map->capacity ? 2 * map->capacity : FIRST_CAPACITY);
  if (fits) {
    map->slots[block_map_slot(map, ptr)] = (struct hipmm_block){ptr, bytes};
    map->count++;
    map->bytes += bytes;
    map->cursor = 0;
  }
  pthread_mutex_unlock(&map->lock);
  return fits;
}

static enum hipmm_status block_map_remove_locked(struct block_map *map, const void *ptr, size_t bytes,
                                                 struct hipmm_block *block_out)
{
  if (!map->count || !ptr) return HIPMM_E_POINTER;
  size_t slot = block_map_slot(map, ptr);
  if (!map->slots[slot].ptr) return HIPMM_E_POINTER;
  *block_out = map->slots[slot];
  if (bytes && bytes != block_out->bytes) return HIPMM_E_SIZE;
  block_map_remove_slot(map, slot);
  block_map_shrink(map);
  return HIPMM_OK;
}

enum hipmm_status block_map_remove(struct block_map *map, const void *ptr, size_t bytes, struct hipmm_block *block_out)
{
  pthread_mutex_lock(&map->lock);
  enum hipmm_status status = block_map_remove_locked(map, ptr, bytes, block_out);
  pthread_mutex_unlock(&map->lock);
  return status;
}

bool block_map_find(struct block_map *map, const void *ptr, struct hipmm_block *block_out)
{
  bool found = false;
  pthread_mutex_lock(&map->lock);
  if (map->count && ptr) {
    struct hipmm_block block = map->slots[block_map_slot(map, ptr)];
    found = block.ptr != NULL;
    if (found) *block_out = block;
  }
  pthread_mutex_unlock(&map->lock);
  return found;
}

bool block_map_find_holding(struct block_map *map, const void *ptr, struct hipmm_block *block_out)
{
  if (block_map_find(map, ptr, block_out)) return true;
  bool found = false;
  pthread_mutex_lock(&map->lock);
  for (size_t i = 0; !found && map->count && i < map->capacity; i++) {
    found = map->slots[i].ptr && (uintptr_t)ptr - (uintptr_t)map->slots[i].ptr < map->slots[i].bytes;
    if (found) *block_out = map->slots[i];
  }
  pthread_mutex_unlock(&map->lock);
  return found;
}

void block_map_visit(struct block_map *map, void (*visitor)(void *closure, const struct hipmm_block *block),
                     void *closure)
{
  pthread_mutex_lock(&map->lock);
  for (size_t i = 0; i < map->capacity; i++)
    if (map->slots[i].ptr) visitor(closure, &map->slots[i]);
  pthread_mutex_unlock(&map->lock);
}

bool block_map_remove_any(struct block_map *map, struct hipmm_block *block_out)
{
  bool found = false;
  pthread_mutex_lock(&map->lock);
  if (map->count) {
    while (!map->slots[map->cursor].ptr) map->cursor++;
    *block_out = map->slots[map->cursor];
    block_map_remove_slot(map, map->cursor);
    found = true;
  }
  pthread_mutex_unlock(&map->lock);
  return found;
}

void block_map_sum(struct block_map *map, size_t *blocks_out, size_t *bytes_out)
{
  pthread_mutex_lock(&map->lock);
  *blocks_out = map->count;
  *bytes_out = map->bytes;
  pthread_mutex_unlock(&map->lock);
}
