/* SPDX-License-Identifier: MIT */
/* live_blocks.c: hash tables with linear probing and no tombstones: removal moves the followers up. */
#include "live_blocks.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* ---- Slots; the shard's lock is held ---- */

static uint64_t hash_of(const void *ptr)
{
  return ((uint64_t)(uintptr_t)ptr >> 8) * 0x9E3779B97F4A7C15ull; /* blocks are 256-byte aligned */
}

static struct live_shard *shard_of(struct live *live, const void *ptr)
{
  return &live->shards[hash_of(ptr) >> 32 & (LIVE_SHARDS - 1)];
}

static struct live_block *at(const struct live *live, const struct live_shard *shard, size_t slot)
{
  return (struct live_block *)(void *)(shard->slots + slot * live->record_bytes);
}

static size_t home_of(const struct live_shard *shard, const void *ptr)
{
  return (size_t)(hash_of(ptr) >> 36) & (shard->capacity - 1);
}

static size_t next_of(const struct live_shard *shard, size_t slot)
{
  return (slot + 1) & (shard->capacity - 1);
}

/* The slot of `ptr`, or the empty one where it would go. There is one. */
static struct live_block *slot_of(const struct live *live, const struct live_shard *shard, const void *ptr)
{
  size_t slot = home_of(shard, ptr);
  while (at(live, shard, slot)->ptr && at(live, shard, slot)->ptr != ptr) slot = next_of(shard, slot);
  return at(live, shard, slot);
}

static struct live_block *lookup(const struct live *live, const struct live_shard *shard, const void *ptr)
{
  if (!shard->count || !ptr) return NULL;
  struct live_block *block = slot_of(live, shard, ptr);
  return block->ptr ? block : NULL;
}

static bool resize(const struct live *live, struct live_shard *shard, size_t capacity)
{
  const struct hipmm_services *services = live->services;
  struct live_shard other = {.capacity = capacity};
  other.slots = services->host_allocate(services, other.capacity * live->record_bytes);
  if (!other.slots) return false;
  for (size_t i = 0; i < shard->capacity; i++) {
    const struct live_block *block = at(live, shard, i);
    if (block->ptr) memcpy(slot_of(live, &other, block->ptr), block, live->record_bytes);
  }
  if (shard->slots) services->host_free(services, shard->slots, shard->capacity * live->record_bytes);
  shard->slots = other.slots;
  shard->capacity = other.capacity;
  return true;
}

static bool grow(const struct live *live, struct live_shard *shard)
{
  return resize(live, shard, shard->capacity ? 2 * shard->capacity : FIRST_CAPACITY);
}

static void put(const struct live *live, struct live_shard *shard, const struct live_block *record)
{
  memcpy(slot_of(live, shard, record->ptr), record, live->record_bytes);
  shard->count++;
  shard->bytes += record->bytes;
}

/* Whether `slot` lies on the probe path from `home` to `end`, all modulo the capacity. */
static bool lies_between(size_t home, size_t slot, size_t end)
{
  return home <= end ? home <= slot && slot < end : home <= slot || slot < end;
}

static void erase(const struct live *live, struct live_shard *shard, struct live_block *block)
{
  shard->count--;
  shard->bytes -= block->bytes;
  size_t hole = (size_t)((char *)block - shard->slots) / live->record_bytes;
  for (size_t slot = next_of(shard, hole); at(live, shard, slot)->ptr; slot = next_of(shard, slot)) {
    if (!lies_between(home_of(shard, at(live, shard, slot)->ptr), hole, slot)) continue;
    memcpy(at(live, shard, hole), at(live, shard, slot), live->record_bytes);
    hole = slot;
  }
  memset(at(live, shard, hole), 0, live->record_bytes);
}

/* ---- Life ---- */

void live_open(struct live *live, const struct hipmm_services *services, size_t record_bytes)
{
  *live = (struct live){.services = services, .record_bytes = record_bytes};
  for (size_t i = 0; i < LIVE_SHARDS; i++) pthread_mutex_init(&live->shards[i].lock, NULL);
}

void live_close(struct live *live)
{
  for (size_t i = 0; i < LIVE_SHARDS; i++) {
    struct live_shard *shard = &live->shards[i];
    if (shard->slots) live->services->host_free(live->services, shard->slots, shard->capacity * live->record_bytes);
    pthread_mutex_destroy(&shard->lock);
  }
}

uint64_t live_next_number(struct live *live)
{
  return __atomic_add_fetch(&live->numbers, 1, __ATOMIC_RELAXED);
}

/* ---- Putting in and taking out ---- */

static bool is_full(const struct live_shard *shard)
{
  return 2 * (shard->count + __atomic_load_n(&shard->promised, __ATOMIC_RELAXED)) >= shard->capacity;
}

static bool insert(const struct live *live, struct live_shard *shard, const struct live_block *record,
                   void *replaced_out)
{
  struct live_block *stale = lookup(live, shard, record->ptr);
  memset(replaced_out, 0, live->record_bytes);
  if (stale) {
    memcpy(replaced_out, stale, live->record_bytes);
    erase(live, shard, stale);
  } else if (is_full(shard) && !grow(live, shard)) {
    return false;
  }
  put(live, shard, record);
  return true;
}

bool live_insert(struct live *live, const void *record, void *replaced_out)
{
  const struct live_block *block = record;
  struct live_shard *shard = shard_of(live, block->ptr);
  pthread_mutex_lock(&shard->lock);
  bool inserted = insert(live, shard, block, replaced_out);
  pthread_mutex_unlock(&shard->lock);
  if (!inserted)
    live->services->refuse(live->services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to note a block of {0:bytes}",
                           block->bytes, 0, 0);
  return inserted;
}

/* Without the lock: what comes late only makes a table grow early. */
static void drop_promise(struct live_shard *shard)
{
  __atomic_sub_fetch(&shard->promised, 1, __ATOMIC_RELAXED);
}

static enum hipmm_status take(const struct live *live, struct live_shard *shard, const void *ptr, size_t bytes,
                              void *record_out)
{
  struct live_block *block = lookup(live, shard, ptr);
  if (!block) return HIPMM_E_POINTER;
  memcpy(record_out, block, live->record_bytes);
  if (bytes && bytes != block->bytes) return HIPMM_E_SIZE;
  erase(live, shard, block);
  __atomic_add_fetch(&shard->promised, 1, __ATOMIC_RELAXED);
  return HIPMM_OK;
}

enum hipmm_status live_try_take(struct live *live, const void *ptr, size_t bytes, void *record_out)
{
  struct live_shard *shard = shard_of(live, ptr);
  const struct live_block *found = record_out;
  pthread_mutex_lock(&shard->lock);
  enum hipmm_status status = take(live, shard, ptr, bytes, record_out);
  pthread_mutex_unlock(&shard->lock);
  if (status == HIPMM_E_SIZE)
    live->services->refuse(live->services, status, "{0:hex} was allocated with {1} bytes and cannot be freed with {2}",
                           (uintptr_t)ptr, found->bytes, bytes);
  return status;
}

enum hipmm_status live_take(struct live *live, const void *ptr, size_t bytes, void *record_out)
{
  enum hipmm_status status = live_try_take(live, ptr, bytes, record_out);
  if (status == HIPMM_E_POINTER)
    live->services->refuse(live->services, status, "{0:hex} is not allocated here: it is foreign, or was freed before",
                           (uintptr_t)ptr, 0, 0);
  return status;
}

void live_settle(struct live *live, const void *ptr)
{
  drop_promise(shard_of(live, ptr));
}

void live_restore(struct live *live, const void *record)
{
  const struct live_block *block = record;
  struct live_shard *shard = shard_of(live, block->ptr);
  pthread_mutex_lock(&shard->lock);
  drop_promise(shard);
  put(live, shard, block);
  pthread_mutex_unlock(&shard->lock);
}

/* ---- Looking ---- */

bool live_find(struct live *live, const void *ptr, void *record_out)
{
  struct live_shard *shard = shard_of(live, ptr);
  pthread_mutex_lock(&shard->lock);
  const struct live_block *block = lookup(live, shard, ptr);
  if (block) memcpy(record_out, block, live->record_bytes);
  pthread_mutex_unlock(&shard->lock);
  return block != NULL;
}

enum hipmm_status live_find_block(struct live *live, const void *ptr, struct hipmm_block *block_out)
{
  struct live_shard *shard = shard_of(live, ptr);
  pthread_mutex_lock(&shard->lock);
  const struct live_block *block = lookup(live, shard, ptr);
  if (block) *block_out = (struct hipmm_block){block->ptr, block->bytes};
  pthread_mutex_unlock(&shard->lock);
  if (block) return HIPMM_OK;
  return live->services->refuse(live->services, HIPMM_E_POINTER, "{0:hex} is not allocated here", (uintptr_t)ptr, 0, 0);
}

struct live_counts live_count(struct live *live)
{
  struct live_counts counts = {0};
  for (size_t i = 0; i < LIVE_SHARDS; i++) {
    struct live_shard *shard = &live->shards[i];
    pthread_mutex_lock(&shard->lock);
    counts.count += (int64_t)shard->count;
    counts.bytes += (int64_t)shard->bytes;
    counts.metadata_bytes += (int64_t)(shard->capacity * live->record_bytes);
    pthread_mutex_unlock(&shard->lock);
  }
  return counts;
}

/* ---- Giving back ---- */

/* To a quarter in use at most, so that the table need not grow again soon. What is promised still has room. Without host
 * memory for the smaller table the large one stays. */
static void trim(const struct live *live, struct live_shard *shard)
{
  size_t needed = shard->count + __atomic_load_n(&shard->promised, __ATOMIC_RELAXED), capacity = shard->capacity;
  while (capacity > FIRST_CAPACITY && 4 * needed <= capacity / 2) capacity /= 2;
  if (capacity < shard->capacity) resize(live, shard, capacity);
}

void live_trim(struct live *live)
{
  for (size_t i = 0; i < LIVE_SHARDS; i++) {
    pthread_mutex_lock(&live->shards[i].lock);
    trim(live, &live->shards[i]);
    pthread_mutex_unlock(&live->shards[i].lock);
  }
}

/* ---- All of them ---- */

void live_lock(struct live *live)
{
  for (size_t i = 0; i < LIVE_SHARDS; i++) pthread_mutex_lock(&live->shards[i].lock);
}

void live_unlock(struct live *live)
{
  for (size_t i = 0; i < LIVE_SHARDS; i++) pthread_mutex_unlock(&live->shards[i].lock);
}

void live_each(struct live *live, void (*see)(void *closure, void *record), void *closure)
{
  for (size_t i = 0; i < LIVE_SHARDS; i++)
    for (size_t slot = 0; slot < live->shards[i].capacity; slot++) {
      struct live_block *block = at(live, &live->shards[i], slot);
      if (block->ptr) see(closure, block);
    }
}

struct copying {
  const struct live *live;
  struct live_list *list;
};

static void copy_record(void *closure, void *record)
{
  struct copying *copying = closure;
  size_t bytes = copying->live->record_bytes;
  memcpy(copying->list->records + copying->list->count++ * bytes, record, bytes);
}

static int compare_addresses(const void *left, const void *right)
{
  const struct live_block *a = left, *b = right;
  return (a->ptr > b->ptr) - (a->ptr < b->ptr);
}

static int compare_numbers(const void *left, const void *right)
{
  const struct live_block *a = left, *b = right;
  return (a->number > b->number) - (a->number < b->number);
}

/* Room for one more, so that there is always something to free. */
static size_t list_bytes(const struct live *live, size_t count)
{
  return (count + 1) * live->record_bytes;
}

bool live_list(struct live *live, bool by_address, struct live_list *list_out)
{
  struct live_list list = {0};
  size_t count = 0;
  live_lock(live);
  for (size_t i = 0; i < LIVE_SHARDS; i++) count += live->shards[i].count;
  list.records = live->services->host_allocate(live->services, list_bytes(live, count));
  if (list.records) live_each(live, copy_record, &(struct copying){live, &list});
  live_unlock(live);
  if (!list.records) return false;
  qsort(list.records, list.count, live->record_bytes, by_address ? compare_addresses : compare_numbers);
  *list_out = list;
  return true;
}

void live_drop_list(struct live *live, struct live_list list)
{
  live->services->host_free(live->services, list.records, list_bytes(live, list.count));
}

enum hipmm_status live_visit(struct live *live, void (*see)(void *closure, const struct hipmm_extent *extent),
                             void *closure)
{
  struct live_list list;
  if (!live_list(live, true, &list))
    return live->services->fail(live->services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for a list of all blocks");
  for (size_t i = 0; i < list.count; i++) {
    const struct live_block *block = (const void *)(list.records + i * live->record_bytes);
    see(closure, &(struct hipmm_extent){
                     .ptr = block->ptr, .bytes = block->bytes, .state = HIPMM_EXTENT_LIVE, .stream = block->stream});
  }
  live_drop_list(live, list);
  return HIPMM_OK;
}
