/* SPDX-License-Identifier: MIT */
/* cache.h: blocks that a thread freed on a stream and is likely to want again on it. A hit costs no lock, no search and
 * no driver call. What a cache keeps is bounded, and comes back to the heap when the pool would otherwise grow, on
 * trim, and when the thread or the stream ends.
 *
 * A cached block keeps its neighbours from merging, so caches are emptied before the heap says no. Its owner uses a
 * cache through its gate, or holding the pool's lock; other threads hold the pool's lock and shut the gate. */
#ifndef HIPMM_POOL_CACHE_H
#define HIPMM_POOL_CACHE_H

#include "../common/gate.h"
#include "../common/thread_cache.h"
#include "heap.h"

enum { CACHE_BINS = 256 };

/* Blocks of one size, the last freed first. */
struct cache_bin {
  uint32_t units; /* of HIPMM_ALIGNMENT; 0: the bin was never used */
  uint32_t head;
};

struct cache {
  struct gate gate;
  uint32_t stream; /* of the pool's streams; STREAM_READY: the cache is not in use */
  hipStream_t handle;
  uint64_t thread;     /* whose; 0: nobody's */
  bool is_abandoned;   /* that thread has ended: it set this without a lock */
  uint64_t bytes;      /* kept */
  uint64_t most_bytes; /* that it may keep, blocks in all */
  int64_t requested;   /* allocated from it less freed to it, as requested */
  int64_t live;        /* the same in blocks */
  uint32_t next_bin;   /* to be emptied when there must be room */
  uint16_t next;       /* in a chain of the index: 1 + number of the cache; 0: the last */
  struct cache_bin bins[CACHE_BINS];
};

struct cache_index;

/* The caches of a pool. */
struct caches {
  const struct hipmm_services *services;
  uint64_t serial; /* of the pool; never given twice */
  struct cache *items;
  struct cache_index *index; /* where to find items by thread and stream */
  uint32_t count;            /* items ever used */
  bool any_is_abandoned;     /* of items */
};

bool caches_open(struct caches *caches, const struct hipmm_services *services);
void caches_close(struct caches *caches);

/* The calling thread's cache for a stream, if it used it of late. No lock needed. */
static inline struct cache *cache_of_thread(const struct caches *caches, hipStream_t handle)
{
  return thread_recall(caches->serial, handle);
}

/* The same however long ago; NULL if there is none. The pool's lock is held. */
struct cache *cache_find(struct caches *caches, hipStream_t handle);

/* The same, or a new one for `stream`; NULL if there is room for no more, or the thread has ended (threads.h). The pool's
 * lock is held. */
struct cache *cache_new(struct caches *caches, struct heap *heap, hipStream_t handle, uint32_t stream);

/* Gives back to the heap what stands in the way of keeping the block, which is at most `most_bytes` large. The pool's
 * lock is held. */
void cache_make_room(struct cache *cache, struct heap *heap, uint32_t id);

/* The calling thread ends and has no time to empty its caches: they are nobody's, and what they keep comes back when the
 * pool would otherwise grow, on trim, or when a cache is needed. No lock needed. */
void caches_abandon(struct caches *caches, uint64_t thread);

/* Every cache: whether any kept anything. Those of a stream, or a thread, which are then out of use. The pool's lock is
 * held. */
bool caches_flush(struct caches *caches, struct heap *heap);
void caches_end_stream(struct caches *caches, struct heap *heap, uint32_t stream);
void caches_end_thread(struct caches *caches, struct heap *heap, uint64_t thread);

/* What the caches of a pool have in all. The pool's lock is held. */
struct cache_totals {
  uint64_t bytes;
  int64_t requested, live;
};

struct cache_totals caches_totals(struct caches *caches);

/* Nobody uses a cache until they go on; what they keep bears its stream. The pool's lock is held. */
void caches_pause(struct caches *caches, struct heap *heap);
void caches_resume(struct caches *caches);

/* ---- The hit ---- */

/* What others look at without shutting the gate. */
static inline uint64_t cache_bytes(const struct cache *cache)
{
  return __atomic_load_n(&cache->bytes, __ATOMIC_RELAXED);
}

static inline void cache_set_bytes(struct cache *cache, uint64_t bytes)
{
  __atomic_store_n(&cache->bytes, bytes, __ATOMIC_RELAXED);
}

/* A size may be in either of two bins, so that two sizes in turn seldom push each other out. */
static inline struct cache_bin *cache_bins_of(struct cache *cache, uint64_t units)
{
  return &cache->bins[(uint32_t)units * 2654435769u >> 25 << 1];
}

static inline struct cache_bin *cache_bin_of(struct cache *cache, uint64_t units)
{
  struct cache_bin *bins = cache_bins_of(cache, units);
  return bins[0].units == units ? &bins[0] : bins[1].units == units ? &bins[1] : NULL;
}

/* The bin of the size, or one of its two that is empty; NULL if other sizes fill both. */
static inline struct cache_bin *cache_bin_for(struct cache *cache, uint64_t units)
{
  struct cache_bin *bin = cache_bin_of(cache, units), *bins = cache_bins_of(cache, units);
  if (bin) return bin;
  bin = !bins[0].head ? &bins[0] : !bins[1].head ? &bins[1] : NULL;
  if (bin) bin->units = (uint32_t)units;
  return bin;
}

/* A block of exactly `units`, made live; BLOCK_NONE if there is none. In both, `handle` is the stream that the caller
 * has in mind: the cache may have come to serve another one since the thread remembered it. */
static inline uint32_t cache_allocate(struct cache *cache, struct blocks *blocks, hipStream_t handle, uint64_t units,
                                      uint64_t requested)
{
  if (!gate_enter(&cache->gate)) return BLOCK_NONE;
  struct cache_bin *bin = cache->handle == handle ? cache_bin_of(cache, units) : NULL;
  uint32_t id = bin ? bin->head : BLOCK_NONE;
  if (id) {
    struct block *block = block_of(blocks, id);
    bin->head = block->next;
    block->requested = requested;
    block_set_state(block, BLOCK_LIVE);
    cache_set_bytes(cache, cache->bytes - block->bytes);
    cache->requested += (int64_t)requested;
    cache->live++;
  }
  gate_leave(&cache->gate);
  return id;
}

/* What cache_free does inside the gate, or for an owner that holds the pool's lock. */
static inline bool cache_add(struct cache *cache, struct blocks *blocks, hipStream_t handle, uint32_t id,
                             uint64_t requested)
{
  struct block *block = block_of(blocks, id);
  if (!cache->stream || cache->handle != handle || cache->bytes + block->bytes > cache->most_bytes) return false;
  struct cache_bin *bin = cache_bin_for(cache, block->bytes >> UNIT_BITS);
  if (!bin) return false;
  block->next = bin->head;
  bin->head = id;
  cache_set_bytes(cache, cache->bytes + block->bytes);
  cache->requested -= (int64_t)requested;
  block->requested = 0; /* for the heap, which will take it off its own count */
  cache->live--;
  return true;
}

/* Keeps a block that the caller has claimed (block_claim). False, and nothing done, if the cache is full, its gate
 * shut, or it is no longer in use. */
static inline bool cache_free(struct cache *cache, struct blocks *blocks, hipStream_t handle, uint32_t id,
                              uint64_t requested)
{
  if (!gate_enter(&cache->gate)) return false;
  bool kept = cache_add(cache, blocks, handle, id, requested);
  gate_leave(&cache->gate);
  return kept;
}

#endif
