/* SPDX-License-Identifier: MIT */
/* owners.h: whose a block is, for the blocks that did not come from the first upstream: a hash table from pointer to
 * size and upstream, outside the memory itself. Thread-safe.
 *
 * Every free asks whether its block is here, and nearly always it is not: an empty bucket says so without a lock. A
 * block's own entry cannot be missed that way, since the program ordered its allocation before its free. */
#ifndef HIPMM_FALLBACK_OWNERS_H
#define HIPMM_FALLBACK_OWNERS_H

#include <hipmm/plugin.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Many buckets, so that few of them are in use: they are address space until they are. */
enum { OWNERS_BUCKETS = 65536, OWNERS_SHARDS = 64, OWNERS_LINE_BYTES = 128, OWNERS_SLAB_ITEMS = 512 };

struct owner {
  struct hipmm_block block;
  struct owner *next; /* in its bucket, or among the spare ones */
  size_t upstream;
};

struct owner_slab {
  struct owner_slab *next;
  struct owner items[OWNERS_SLAB_ITEMS];
};

/* Every 64th bucket, and what is needed to change them. */
struct owner_shard {
  _Alignas(OWNERS_LINE_BYTES) pthread_mutex_t lock;
  struct owner *spare;
  struct owner_slab *slabs;
  size_t live_count, live_bytes; /* of what is in its buckets */
};

struct owners {
  const struct hipmm_services *services;
  _Atomic(struct owner *) *buckets;
  atomic_bool is_used; /* there has been an entry; stays true */
  struct owner_shard shards[OWNERS_SHARDS];
};

/* False when there is no memory. */
bool owners_open(struct owners *owners, const struct hipmm_services *services);
void owners_close(struct owners *owners);

/* False when there is no memory. */
bool owners_add(struct owners *owners, struct hipmm_block block, size_t upstream);

/* Takes an entry out, to be put back or dropped. HIPMM_E_POINTER: there is none; HIPMM_E_SIZE: `bytes` is neither 0 nor
 * its size, it stays, and `block_out` says what it is. Neither is reported. */
enum hipmm_status owners_take(struct owners *owners, const void *ptr, size_t bytes, struct owner **owner_out,
                              struct hipmm_block *block_out);
void owners_put_back(struct owners *owners, struct owner *owner);
void owners_drop(struct owners *owners, struct owner *owner);

bool owners_find(struct owners *owners, const void *ptr, struct hipmm_block *block_out);

/* Entries, and the sum of their sizes, shard by shard. */
void owners_count(struct owners *owners, size_t *count_out, size_t *bytes_out);

static inline size_t owners_bucket(const void *ptr)
{
  uint64_t key = (uint64_t)(uintptr_t)ptr / HIPMM_ALIGNMENT;
  return (size_t)(key * 0x9E3779B97F4A7C15ull >> 48); /* as many bits as there are buckets */
}

/* False: it certainly is not here. */
static inline bool owners_may_have(const struct owners *owners, const void *ptr)
{
  return atomic_load_explicit(&owners->is_used, memory_order_relaxed) &&
         atomic_load_explicit(&owners->buckets[owners_bucket(ptr)], memory_order_relaxed);
}

#endif
