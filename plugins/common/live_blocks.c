/* SPDX-License-Identifier: MIT */
/* live_blocks.c: hash tables with linear probing and no tombstones: removal moves the followers up. */
#include "live_blocks.h"
#include "refusals.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* ---- Slots; the shard's lock is held ---- */

static uint64_t live_blocks_hash_of(const void *ptr)
{
  return ((uint64_t)(uintptr_t)ptr >> 8) * 0x9E3779B97F4A7C15ull; /* blocks are 256-byte aligned */
}

static struct live_blocks_shard *live_blocks_shard_of(struct live_blocks *live, const void *ptr)
{
  return &live->shards[live_blocks_hash_of(ptr) >> 32 & (LIVE_BLOCKS_SHARDS - 1)];
}

static struct live_block *live_blocks_at(const struct live_blocks *live, const struct live_blocks_shard *shard,
                                         size_t slot)
{
  return (struct live_block *)(void *)(shard->slots + slot * live->record_bytes);
}

static size_t live_blocks_home_of(const struct live_blocks_shard *shard, const void *ptr)
{
  return (size_t)(live_blocks_hash_of(ptr) >> 36) & (shard->capacity - 1);
}

static size_t live_blocks_next_of(const struct live_blocks_shard *shard, size_t slot)
{
  return (slot + 1) & (shard->capacity - 1);
}

/* The slot of `ptr`, or the empty one where it would go. There is one. */
static struct live_block *live_blocks_slot_of(const struct live_blocks *live, const struct live_blocks_shard *shard,
                                              const void *ptr)
{
  size_t slot = live_blocks_home_of(shard, ptr);
  while (live_blocks_at(live, shard, slot)->ptr && live_blocks_at(live, shard, slot)->ptr != ptr)
    slot = live_blocks_next_of(shard, slot);
  return live_blocks_at(live, shard, slot);
}

static struct live_block *live_blocks_lookup(const struct live_blocks *live, const struct live_blocks_shard *shard,
                                             const void *ptr)
{
  if (!shard->count || !ptr) return NULL;
  struct live_block *block = live_blocks_slot_of(live, shard, ptr);
  return block->ptr ? block : NULL;
}

static bool live_blocks_resize(const struct live_blocks *live, struct live_blocks_shard *shard, size_t capacity)
{
  const struct hipmm_services *services = live->services;
  struct live_blocks_shard other = {.capacity = capacity};
  other.slots = services->host_allocate(services, other.capacity * live->record_bytes);
  if (!other.slots) return false;
  for (size_t i = 0; i < shard->capacity; i++) {
    const struct live_block *block = live_blocks_at(live, shard, i);
    if (block->ptr) memcpy(live_blocks_slot_of(live, &other, block->ptr), block, live->record_bytes);
  }
  if (shard->slots) services->host_free(services, shard->slots, shard->capacity * live->record_bytes);
  shard->slots = other.slots;
  shard->capacity = other.capacity;
  return true;
}

static bool live_blocks_grow(const struct live_blocks *live, struct live_blocks_shard *shard)
{
  return live_blocks_resize(live, shard, shard->capacity ? 2 * shard->capacity : FIRST_CAPACITY);
}

static void live_blocks_put(const struct live_blocks *live, struct live_blocks_shard *shard,
                            const struct live_block *record)
{
  memcpy(live_blocks_slot_of(live, shard, record->ptr), record, live->record_bytes);
  shard->count++;
  shard->bytes += record->bytes;
}

/* Whether `slot` lies on the probe path from `home` to `end`, all modulo the capacity. */
static bool live_blocks_lies_between(size_t home, size_t slot, size_t end)
{
  return home <= end ? home <= slot && slot < end : home <= slot || slot < end;
}

static void live_blocks_erase(const struct live_blocks *live, struct live_blocks_shard *shard, struct live_block *block)
{
  shard->count--;
  shard->bytes -= block->bytes;
  size_t hole = (size_t)((char *)block - shard->slots) / live->record_bytes;
  for (size_t slot = live_blocks_next_of(shard, hole); live_blocks_at(live, shard, slot)->ptr;
       slot = live_blocks_next_of(shard, slot)) {
    if (!live_blocks_lies_between(live_blocks_home_of(shard, live_blocks_at(live, shard, slot)->ptr), hole, slot))
      continue;
    memcpy(live_blocks_at(live, shard, hole), live_blocks_at(live, shard, slot), live->record_bytes);
    hole = slot;
  }
  memset(live_blocks_at(live, shard, hole), 0, live->record_bytes);
}

/* ---- Life ---- */

void live_blocks_open(struct live_blocks *live, const struct hipmm_services *services, size_t record_bytes)
{
  *live = (struct live_blocks){.services = services, .record_bytes = record_bytes};
  for (size_t i = 0; i < LIVE_BLOCKS_SHARDS; i++) pthread_mutex_init(&live->shards[i].lock, NULL);
}

void live_blocks_close(struct live_blocks *live)
{
  for (size_t i = 0; i < LIVE_BLOCKS_SHARDS; i++) {
    struct live_blocks_shard *shard = &live->shards[i];
    if (shard->slots) live->services->host_free(live->services, shard->slots, shard->capacity * live->record_bytes);
    pthread_mutex_destroy(&shard->lock);
  }
}

uint64_t live_blocks_next_number(struct live_blocks *live)
{
  return __atomic_add_fetch(&live->numbers, 1, __ATOMIC_RELAXED);
}

/* ---- Inserting and taking ---- */

static bool live_blocks_is_full(const struct live_blocks_shard *shard)
{
  return 2 * (shard->count + __atomic_load_n(&shard->promised, __ATOMIC_RELAXED)) >= shard->capacity;
}

static bool live_blocks_insert_in(const struct live_blocks *live, struct live_blocks_shard *shard,
                                  const struct live_block *record, void *replaced_out)
{
  struct live_block *stale = live_blocks_lookup(live, shard, record->ptr);
  memset(replaced_out, 0, live->record_bytes);
  if (stale) {
    memcpy(replaced_out, stale, live->record_bytes);
    live_blocks_erase(live, shard, stale);
  } else if (live_blocks_is_full(shard) && !live_blocks_grow(live, shard)) {
    return false;
  }
  live_blocks_put(live, shard, record);
  return true;
}

bool live_blocks_insert(struct live_blocks *live, const void *record, void *replaced_out)
{
  const struct live_block *block = record;
  struct live_blocks_shard *shard = live_blocks_shard_of(live, block->ptr);
  pthread_mutex_lock(&shard->lock);
  bool inserted = live_blocks_insert_in(live, shard, block, replaced_out);
  pthread_mutex_unlock(&shard->lock);
  if (!inserted)
    live->services->refuse(live->services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to record a block of {0:bytes}",
                           block->bytes, 0, 0);
  return inserted;
}

/* Without the lock: a late change only makes a table grow early. */
static void live_blocks_drop_promise(struct live_blocks_shard *shard)
{
  __atomic_sub_fetch(&shard->promised, 1, __ATOMIC_RELAXED);
}

static enum hipmm_status live_blocks_take_from(const struct live_blocks *live, struct live_blocks_shard *shard,
                                               const void *ptr, size_t bytes, void *record_out)
{
  struct live_block *block = live_blocks_lookup(live, shard, ptr);
  if (!block) return HIPMM_E_POINTER;
  memcpy(record_out, block, live->record_bytes);
  if (bytes && bytes != block->bytes) return HIPMM_E_SIZE;
  live_blocks_erase(live, shard, block);
  __atomic_add_fetch(&shard->promised, 1, __ATOMIC_RELAXED);
  return HIPMM_OK;
}

enum hipmm_status live_blocks_try_extract(struct live_blocks *live, const void *ptr, size_t bytes, void *record_out)
{
  struct live_blocks_shard *shard = live_blocks_shard_of(live, ptr);
  const struct live_block *found = record_out;
  pthread_mutex_lock(&shard->lock);
  enum hipmm_status status = live_blocks_take_from(live, shard, ptr, bytes, record_out);
  pthread_mutex_unlock(&shard->lock);
  if (status == HIPMM_E_SIZE) refuse_size(live->services, ptr, bytes, found->bytes);
  return status;
}

enum hipmm_status live_blocks_extract(struct live_blocks *live, const void *ptr, size_t bytes, void *record_out)
{
  enum hipmm_status status = live_blocks_try_extract(live, ptr, bytes, record_out);
  if (status == HIPMM_E_POINTER) refuse_pointer(live->services, ptr);
  return status;
}

void live_blocks_settle(struct live_blocks *live, const void *ptr)
{
  live_blocks_drop_promise(live_blocks_shard_of(live, ptr));
}

void live_blocks_restore(struct live_blocks *live, const void *record)
{
  const struct live_block *block = record;
  struct live_blocks_shard *shard = live_blocks_shard_of(live, block->ptr);
  pthread_mutex_lock(&shard->lock);
  live_blocks_drop_promise(shard);
  live_blocks_put(live, shard, block);
  pthread_mutex_unlock(&shard->lock);
}

/* ---- Finding ---- */

bool live_blocks_find(struct live_blocks *live, const void *ptr, void *record_out)
{
  struct live_blocks_shard *shard = live_blocks_shard_of(live, ptr);
  pthread_mutex_lock(&shard->lock);
  const struct live_block *block = live_blocks_lookup(live, shard, ptr);
  if (block) memcpy(record_out, block, live->record_bytes);
  pthread_mutex_unlock(&shard->lock);
  return block != NULL;
}

enum hipmm_status live_blocks_find_block(struct live_blocks *live, const void *ptr, struct hipmm_block *block_out)
{
  struct live_blocks_shard *shard = live_blocks_shard_of(live, ptr);
  pthread_mutex_lock(&shard->lock);
  const struct live_block *block = live_blocks_lookup(live, shard, ptr);
  if (block) *block_out = (struct hipmm_block){block->ptr, block->bytes};
  pthread_mutex_unlock(&shard->lock);
  if (block) return HIPMM_OK;
  return live->services->refuse(live->services, HIPMM_E_POINTER, "{0:hex} is not allocated here", (uintptr_t)ptr, 0, 0);
}

struct live_blocks_counts live_blocks_count(struct live_blocks *live)
{
  struct live_blocks_counts counts = {0};
  for (size_t i = 0; i < LIVE_BLOCKS_SHARDS; i++) {
    struct live_blocks_shard *shard = &live->shards[i];
    pthread_mutex_lock(&shard->lock);
    counts.count += (int64_t)shard->count;
    counts.bytes += (int64_t)shard->bytes;
    counts.metadata_bytes += (int64_t)(shard->capacity * live->record_bytes);
    pthread_mutex_unlock(&shard->lock);
  }
  return counts;
}

/* ---- Trimming ---- */

/* At most a quarter of the table is in use afterwards, so that it need not grow again soon. Promised records still have
 * space. Without host memory for the smaller table the large one remains. */
static void live_blocks_trim_shard(const struct live_blocks *live, struct live_blocks_shard *shard)
{
  size_t needed = shard->count + __atomic_load_n(&shard->promised, __ATOMIC_RELAXED), capacity = shard->capacity;
  while (capacity > FIRST_CAPACITY && 4 * needed <= capacity / 2) capacity /= 2;
  if (capacity < shard->capacity) live_blocks_resize(live, shard, capacity);
}

void live_blocks_trim(struct live_blocks *live)
{
  for (size_t i = 0; i < LIVE_BLOCKS_SHARDS; i++) {
    pthread_mutex_lock(&live->shards[i].lock);
    live_blocks_trim_shard(live, &live->shards[i]);
    pthread_mutex_unlock(&live->shards[i].lock);
  }
}

/* ---- All records ---- */

void live_blocks_lock(struct live_blocks *live)
{
  for (size_t i = 0; i < LIVE_BLOCKS_SHARDS; i++) pthread_mutex_lock(&live->shards[i].lock);
}

void live_blocks_unlock(struct live_blocks *live)
{
  for (size_t i = 0; i < LIVE_BLOCKS_SHARDS; i++) pthread_mutex_unlock(&live->shards[i].lock);
}

void live_blocks_each(struct live_blocks *live, void (*visitor)(void *closure, void *record), void *closure)
{
  for (size_t i = 0; i < LIVE_BLOCKS_SHARDS; i++)
    for (size_t slot = 0; slot < live->shards[i].capacity; slot++) {
      struct live_block *block = live_blocks_at(live, &live->shards[i], slot);
      if (block->ptr) visitor(closure, block);
    }
}

struct copying {
  const struct live_blocks *live;
  struct live_blocks_list *list;
};

static void live_blocks_copy_record(void *closure, void *record)
{
  struct copying *copying = closure;
  size_t bytes = copying->live->record_bytes;
  memcpy(copying->list->records + copying->list->count++ * bytes, record, bytes);
}

static int live_blocks_compare_addresses(const void *left, const void *right)
{
  const struct live_block *a = left, *b = right;
  return (a->ptr > b->ptr) - (a->ptr < b->ptr);
}

static int live_blocks_compare_numbers(const void *left, const void *right)
{
  const struct live_block *a = left, *b = right;
  return (a->number > b->number) - (a->number < b->number);
}

/* One record more than needed, so that the size is never 0. */
static size_t live_blocks_list_bytes(const struct live_blocks *live, size_t count)
{
  return (count + 1) * live->record_bytes;
}

bool live_blocks_list(struct live_blocks *live, bool by_address, struct live_blocks_list *list_out)
{
  struct live_blocks_list list = {0};
  size_t count = 0;
  live_blocks_lock(live);
  for (size_t i = 0; i < LIVE_BLOCKS_SHARDS; i++) count += live->shards[i].count;
  list.records = live->services->host_allocate(live->services, live_blocks_list_bytes(live, count));
  if (list.records) live_blocks_each(live, live_blocks_copy_record, &(struct copying){live, &list});
  live_blocks_unlock(live);
  if (!list.records) return false;
  qsort(list.records, list.count, live->record_bytes,
        by_address ? live_blocks_compare_addresses : live_blocks_compare_numbers);
  *list_out = list;
  return true;
}

void live_blocks_drop_list(struct live_blocks *live, struct live_blocks_list list)
{
  live->services->host_free(live->services, list.records, live_blocks_list_bytes(live, list.count));
}

enum hipmm_status live_blocks_visit(struct live_blocks *live,
                                    void (*visitor)(void *closure, const struct hipmm_extent *extent), void *closure)
{
  struct live_blocks_list list;
  if (!live_blocks_list(live, true, &list))
    return live->services->fail(live->services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for a list of all blocks");
  for (size_t i = 0; i < list.count; i++) {
    const struct live_block *block = (const void *)(list.records + i * live->record_bytes);
    visitor(closure,
            &(struct hipmm_extent){
                .ptr = block->ptr, .bytes = block->bytes, .state = HIPMM_EXTENT_LIVE, .stream = block->stream});
  }
  live_blocks_drop_list(live, list);
  return HIPMM_OK;
}
