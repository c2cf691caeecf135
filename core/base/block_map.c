/* SPDX-License-Identifier: MIT */
/* block_map.c: a hash table with linear probing and no tombstones: removal moves the followers up. */
#include "block_map.h"
#include "os_memory.h"

enum { FIRST_CAPACITY = 256, MOST_EMPTY = 16 /* a table has at most so many slots for each block, or is the first */ };

static size_t block_map_home_of(const struct block_map *block_map, const void *ptr)
{
  uint64_t key = (uint64_t)(uintptr_t)ptr >> 8; /* blocks are 256-byte aligned */
  return (size_t)((key * 0x9E3779B97F4A7C15ull) >> 32) & (block_map->capacity - 1);
}

static size_t block_map_next_of(const struct block_map *block_map, size_t slot)
{
  return (slot + 1) & (block_map->capacity - 1);
}

/* The slot of `ptr`, or the empty slot where it would go. */
static size_t block_map_slot_of(const struct block_map *block_map, const void *ptr)
{
  size_t slot = block_map_home_of(block_map, ptr);
  while (block_map->slots[slot].ptr && block_map->slots[slot].ptr != ptr) slot = block_map_next_of(block_map, slot);
  return slot;
}

static bool block_map_resize(struct block_map *block_map, size_t capacity)
{
  struct block_map other = {.capacity = capacity};
  other.slots = os_memory_allocate(other.capacity * sizeof *other.slots);
  if (!other.slots) return false;
  for (size_t i = 0; i < block_map->capacity; i++)
    if (block_map->slots[i].ptr) other.slots[block_map_slot_of(&other, block_map->slots[i].ptr)] = block_map->slots[i];
  os_memory_free(block_map->slots, block_map->capacity * sizeof *block_map->slots);
  block_map->slots = other.slots;
  block_map->capacity = other.capacity;
  block_map->cursor = 0;
  return true;
}

static bool block_map_grow(struct block_map *block_map)
{
  return block_map_resize(block_map, block_map->capacity ? 2 * block_map->capacity : FIRST_CAPACITY);
}

/* Gives memory back once most of the table is empty; without memory for the smaller table the large one stays. */
static void block_map_shrink(struct block_map *block_map)
{
  if (MOST_EMPTY * block_map->count < block_map->capacity && block_map->capacity > FIRST_CAPACITY)
    block_map_resize(block_map, block_map->capacity / 4 > FIRST_CAPACITY ? block_map->capacity / 4 : FIRST_CAPACITY);
}

/* Whether `slot` lies on the probe path from `home` to `end`, all modulo the capacity. */
static bool block_map_lies_between(size_t home, size_t slot, size_t end)
{
  return home <= end ? home <= slot && slot < end : home <= slot || slot < end;
}

static void block_map_remove_slot(struct block_map *block_map, size_t hole)
{
  block_map->count--;
  block_map->bytes -= block_map->slots[hole].bytes;
  for (size_t slot = block_map_next_of(block_map, hole); block_map->slots[slot].ptr;
       slot = block_map_next_of(block_map, slot)) {
    if (!block_map_lies_between(block_map_home_of(block_map, block_map->slots[slot].ptr), hole, slot)) continue;
    block_map->slots[hole] = block_map->slots[slot];
    hole = slot;
  }
  block_map->slots[hole] = (struct hipmm_block){0};
}

void block_map_open(struct block_map *block_map)
{
  *block_map = (struct block_map){.capacity = 0};
  pthread_mutex_init(&block_map->lock, NULL);
}

void block_map_close(struct block_map *block_map)
{
  os_memory_free(block_map->slots, block_map->capacity * sizeof *block_map->slots);
  pthread_mutex_destroy(&block_map->lock);
}

bool block_map_insert(struct block_map *block_map, void *ptr, size_t bytes)
{
  pthread_mutex_lock(&block_map->lock);
  bool fits = 2 * block_map->count < block_map->capacity || block_map_grow(block_map);
  if (fits) {
    block_map->slots[block_map_slot_of(block_map, ptr)] = (struct hipmm_block){ptr, bytes};
    block_map->count++;
    block_map->bytes += bytes;
    block_map->cursor = 0;
  }
  pthread_mutex_unlock(&block_map->lock);
  return fits;
}

static enum hipmm_status block_map_remove_locked(struct block_map *block_map, const void *ptr, size_t bytes,
                                                 struct hipmm_block *block_out)
{
  if (!block_map->count || !ptr) return HIPMM_E_POINTER;
  size_t slot = block_map_slot_of(block_map, ptr);
  if (!block_map->slots[slot].ptr) return HIPMM_E_POINTER;
  *block_out = block_map->slots[slot];
  if (bytes && bytes != block_out->bytes) return HIPMM_E_SIZE;
  block_map_remove_slot(block_map, slot);
  block_map_shrink(block_map);
  return HIPMM_OK;
}

enum hipmm_status block_map_remove(struct block_map *block_map, const void *ptr, size_t bytes,
                                   struct hipmm_block *block_out)
{
  pthread_mutex_lock(&block_map->lock);
  enum hipmm_status status = block_map_remove_locked(block_map, ptr, bytes, block_out);
  pthread_mutex_unlock(&block_map->lock);
  return status;
}

bool block_map_find(struct block_map *block_map, const void *ptr, struct hipmm_block *block_out)
{
  bool found = false;
  pthread_mutex_lock(&block_map->lock);
  if (block_map->count && ptr) {
    struct hipmm_block block = block_map->slots[block_map_slot_of(block_map, ptr)];
    found = block.ptr != NULL;
    if (found) *block_out = block;
  }
  pthread_mutex_unlock(&block_map->lock);
  return found;
}

bool block_map_remove_any(struct block_map *block_map, struct hipmm_block *block_out)
{
  bool found = false;
  pthread_mutex_lock(&block_map->lock);
  if (block_map->count) {
    while (!block_map->slots[block_map->cursor].ptr) block_map->cursor++;
    *block_out = block_map->slots[block_map->cursor];
    block_map_remove_slot(block_map, block_map->cursor);
    found = true;
  }
  pthread_mutex_unlock(&block_map->lock);
  return found;
}

void block_map_sum(struct block_map *block_map, size_t *blocks_out, size_t *bytes_out)
{
  pthread_mutex_lock(&block_map->lock);
  *blocks_out = block_map->count;
  *bytes_out = block_map->bytes;
  pthread_mutex_unlock(&block_map->lock);
}
