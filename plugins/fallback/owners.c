/* SPDX-License-Identifier: MIT */
/* owners.c: see owners.h. Entries come from slabs of host memory that last as long as the table. */
#include "owners.h"

_Static_assert(OWNERS_BUCKETS == 1 << 16, "owners_bucket gives 16 bits");

static const size_t table_bytes = OWNERS_BUCKETS * sizeof(_Atomic(struct owner *));

bool owners_open(struct owners *owners, const struct hipmm_services *services)
{
  owners->services = services;
  owners->buckets = services->host_allocate(services, table_bytes);
  if (!owners->buckets) return false;
  atomic_init(&owners->is_used, false);
  for (size_t i = 0; i < OWNERS_SHARDS; i++) pthread_mutex_init(&owners->shards[i].lock, NULL);
  return true;
}

static void close_shard(const struct owners *owners, struct owner_shard *shard)
{
  struct owner_slab *next;
  for (struct owner_slab *slab = shard->slabs; slab; slab = next) {
    next = slab->next;
    owners->services->host_free(owners->services, slab, sizeof *slab);
  }
  pthread_mutex_destroy(&shard->lock);
}

void owners_close(struct owners *owners)
{
  for (size_t i = 0; i < OWNERS_SHARDS; i++) close_shard(owners, &owners->shards[i]);
  owners->services->host_free(owners->services, owners->buckets, table_bytes);
}

/* ---- Under a shard's lock ---- */

static struct owner_shard *lock_shard(struct owners *owners, const void *ptr)
{
  struct owner_shard *shard = &owners->shards[owners_bucket(ptr) % OWNERS_SHARDS];
  pthread_mutex_lock(&shard->lock);
  return shard;
}

static struct owner *first_of(const struct owners *owners, const void *ptr)
{
  return atomic_load_explicit(&owners->buckets[owners_bucket(ptr)], memory_order_relaxed);
}

static void set_first(struct owners *owners, const void *ptr, struct owner *owner)
{
  atomic_store_explicit(&owners->buckets[owners_bucket(ptr)], owner, memory_order_relaxed);
}

static void push_spare(struct owner_shard *shard, struct owner *owner)
{
  owner->next = shard->spare;
  shard->spare = owner;
}

static struct owner *pop_spare(struct owners *owners, struct owner_shard *shard)
{
  if (!shard->spare) {
    struct owner_slab *slab = owners->services->host_allocate(owners->services, sizeof *slab);
    if (!slab) return NULL;
    slab->next = shard->slabs;
    shard->slabs = slab;
    for (size_t i = OWNERS_SLAB_ITEMS; i-- > 0;) push_spare(shard, &slab->items[i]);
  }
  struct owner *owner = shard->spare;
  shard->spare = owner->next;
  return owner;
}

static void insert(struct owners *owners, struct owner_shard *shard, struct owner *owner)
{
  owner->next = first_of(owners, owner->block.ptr);
  set_first(owners, owner->block.ptr, owner);
  shard->live_count++;
  shard->live_bytes += owner->block.bytes;
}

static struct owner *look_up(const struct owners *owners, const void *ptr)
{
  struct owner *owner = first_of(owners, ptr);
  while (owner && owner->block.ptr != ptr) owner = owner->next;
  return owner;
}

static void remove_entry(struct owners *owners, struct owner_shard *shard, struct owner *owner)
{
  struct owner *before = first_of(owners, owner->block.ptr);
  if (before == owner) {
    set_first(owners, owner->block.ptr, owner->next);
  } else {
    while (before->next != owner) before = before->next;
    before->next = owner->next;
  }
  shard->live_count--;
  shard->live_bytes -= owner->block.bytes;
}

/* ---- The table ---- */

bool owners_add(struct owners *owners, struct hipmm_block block, size_t upstream)
{
  atomic_store_explicit(&owners->is_used, true, memory_order_relaxed);
  struct owner_shard *shard = lock_shard(owners, block.ptr);
  struct owner *owner = pop_spare(owners, shard);
  if (owner) {
    *owner = (struct owner){.block = block, .upstream = upstream};
    insert(owners, shard, owner);
  }
  pthread_mutex_unlock(&shard->lock);
  return owner != NULL;
}

enum hipmm_status owners_take(struct owners *owners, const void *ptr, size_t bytes, struct owner **owner_out,
                              struct hipmm_block *block_out)
{
  struct owner_shard *shard = lock_shard(owners, ptr);
  struct owner *owner = look_up(owners, ptr);
  enum hipmm_status status = owner ? HIPMM_OK : HIPMM_E_POINTER;
  if (owner) *block_out = owner->block;
  if (owner && bytes && bytes != owner->block.bytes) status = HIPMM_E_SIZE;
  if (!status) {
    remove_entry(owners, shard, owner);
    *owner_out = owner;
  }
  pthread_mutex_unlock(&shard->lock);
  return status;
}

void owners_put_back(struct owners *owners, struct owner *owner)
{
  struct owner_shard *shard = lock_shard(owners, owner->block.ptr);
  insert(owners, shard, owner);
  pthread_mutex_unlock(&shard->lock);
}

void owners_drop(struct owners *owners, struct owner *owner)
{
  struct owner_shard *shard = lock_shard(owners, owner->block.ptr);
  push_spare(shard, owner);
  pthread_mutex_unlock(&shard->lock);
}

bool owners_find(struct owners *owners, const void *ptr, struct hipmm_block *block_out)
{
  struct owner_shard *shard = lock_shard(owners, ptr);
  const struct owner *owner = look_up(owners, ptr);
  if (owner) *block_out = owner->block;
  pthread_mutex_unlock(&shard->lock);
  return owner != NULL;
}

void owners_count(struct owners *owners, size_t *count_out, size_t *bytes_out)
{
  size_t count = 0, bytes = 0;
  for (size_t i = 0; i < OWNERS_SHARDS; i++) {
    pthread_mutex_lock(&owners->shards[i].lock);
    count += owners->shards[i].live_count;
    bytes += owners->shards[i].live_bytes;
    pthread_mutex_unlock(&owners->shards[i].lock);
  }
  *count_out = count;
  *bytes_out = bytes;
}
