/* SPDX-License-Identifier: MIT */
/* cache.h: blocks that a thread freed on a stream, for its next allocations on that stream. A hit needs no lock, no search
 * and no driver call. The size of a cache is bounded. Its blocks go back to the heap when the pool would otherwise grow,
 * when it is trimmed, and when the thread or the stream ends. Called by allocate.c, and by visit.c.
 *
 * A cached block prevents its neighbours from merging, so the caches are flushed before the heap gives up. The owner uses
 * its cache inside the cache's gate, or with the pool's lock; other threads hold the pool's lock and shut the gate. */
#ifndef HIPMM_PLUGINS_POOL_CACHE_H
#define HIPMM_PLUGINS_POOL_CACHE_H

#include "../common/gate.h"
#include "../common/thread_cache.h"
#include "heap.h"

/* A cache holds blocks of at most CACHE_BLOCK_BYTES: the price of a search matters to small blocks, and small blocks prevent
 * few merges. */
enum { CACHE_BLOCK_BYTES = 4096, CACHE_BINS = CACHE_BLOCK_BYTES / HIPMM_ALIGNMENT + 1 };

/* Aligned, so that threads share no cache line. */
struct cache {
  _Alignas(64) struct gate gate;
  uint32_t stream; /* its id; STREAM_READY: the cache is not in use */
  hipmm_stream_t handle;
  uint64_t thread;           /* the owner; 0: none */
  bool is_abandoned;         /* the owner has ended, and set this without a lock */
  uint64_t bytes;            /* in all bins */
  uint64_t most_bytes;       /* limit of `bytes` */
  int64_t requested;         /* bytes allocated from it less bytes freed to it, as requested */
  int64_t live;              /* the same in blocks */
  uint32_t next_bin;         /* a counter: the next bin to flush */
  uint16_t next;             /* in a list of the index: 1 + number of the cache; 0: the last */
  bool wants_heap;           /* the owner has waited for the pool's lock too often (thread_heaps.h) */
  bool has_heap;             /* the owner allocates from its heap. Both are the owner's alone */
  uint32_t n_waits;          /* weighed */
  uint32_t bins[CACHE_BINS]; /* by size in units of HIPMM_ALIGNMENT: the first block, which was freed last */
};

struct cache_index;

/* The caches of a pool. */
struct caches {
  const struct hipmm_services *services;
  uint64_t serial; /* of the pool; never used again */
  struct cache *items;
  struct cache_index *index; /* finds items by thread and stream */
  uint32_t count;            /* items ever used */
  bool any_is_abandoned;     /* of any item */
};

bool caches_open(struct caches *caches, const struct hipmm_services *services);
void caches_close(struct caches *caches);

/* The calling thread's cache for a stream, if the thread remembers it. Needs no lock. */
static inline struct cache *cache_of_thread(const struct caches *caches, hipmm_stream_t handle)
{
  return thread_recall(caches->serial, handle);
}

/* The same, also if the thread has forgotten it; NULL if there is none. The pool's lock is held. */
struct cache *cache_find(struct caches *caches, hipmm_stream_t handle);

/* The same, or a new one for `stream`; NULL if there are too many caches, or the thread has ended (thread_cache.h). The
 * pool's lock is held. */
struct cache *cache_new(struct caches *caches, struct heap *heap, hipmm_stream_t handle, uint32_t stream);

/* Frees blocks to the heap until the cache can hold `bytes` more, at most `most_bytes`. The pool's lock is held. */
void cache_make_room(struct cache *cache, struct heap *heap, uint64_t bytes);

/* The calling thread ends and cannot flush its caches: they have no owner from now on, and are flushed when the pool would
 * otherwise grow, when it is trimmed, or when a cache is needed. Needs no lock. */
void caches_abandon(struct caches *caches, uint64_t thread);

/* Flushes every cache; returns whether any had blocks. The pool's lock is held. */
bool caches_flush(struct caches *caches, struct heap *heap);

/* Flushes the caches of a stream, or of a thread, which are then not in use. The pool's lock is held. */
void caches_end_stream(struct caches *caches, struct heap *heap, uint32_t stream);
void caches_end_thread(struct caches *caches, struct heap *heap, uint64_t thread);

/* The sums over all caches of a pool. The pool's lock is held. */
struct cache_totals {
  uint64_t bytes;
  int64_t requested, live;
};

struct cache_totals caches_totals(struct caches *caches);

/* No thread uses a cache between these, and each cached block has the stream of its cache. The pool's lock is held. */
void caches_pause(struct caches *caches, struct heap *heap);
void caches_resume(struct caches *caches);

/* ---- The hit ---- */

/* Other threads read it without shutting the gate. */
static inline uint64_t cache_bytes(const struct cache *cache)
{
  return __atomic_load_n(&cache->bytes, __ATOMIC_RELAXED);
}

static inline void cache_set_bytes(struct cache *cache, uint64_t bytes)
{
  __atomic_store_n(&cache->bytes, bytes, __ATOMIC_RELAXED);
}

/* Whether the cache serves this stream still. For the owner. */
static inline bool cache_serves(struct cache *cache, hipmm_stream_t handle)
{
  if (!gate_enter(&cache->gate)) return false;
  bool serves = cache->stream && cache->handle == handle;
  gate_leave(&cache->gate);
  return serves;
}

/* A block of exactly `units`, which a bin is for, made live; BLOCK_NONE if there is none. Here and in cache_free(), `handle` is the caller's
 * stream: the cache may serve another stream by now than the one that the thread remembers. */
static inline uint32_t cache_allocate(struct cache *cache, struct blocks *blocks, hipmm_stream_t handle, uint64_t units,
                                      uint64_t requested)
{
  if (!gate_enter(&cache->gate)) return BLOCK_NONE;
  uint32_t id = cache->handle == handle ? cache->bins[units] : BLOCK_NONE;
  if (id) {
    struct block *block = block_of(blocks, id);
    cache->bins[units] = block->next;
    block->requested = requested;
    block->handle = handle;
    block_set_state(block, BLOCK_LIVE);
    cache_set_bytes(cache, cache->bytes - block->bytes);
    cache->requested += (int64_t)requested;
    cache->live++;
  }
  gate_leave(&cache->gate);
  return id;
}

/* The inside of cache_free(), for an owner in the gate or with the pool's lock. */
static inline bool cache_add(struct cache *cache, struct blocks *blocks, hipmm_stream_t handle, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  if (!cache->stream || cache->handle != handle || cache->bytes + block->bytes > cache->most_bytes) return false;
  uint32_t *bin = &cache->bins[block->bytes >> UNIT_BITS];
  block->next = *bin;
  *bin = id;
  cache_set_bytes(cache, cache->bytes + block->bytes);
  cache->requested -= (int64_t)block->requested;
  block->requested = 0; /* heap_free() subtracts it from the heap's count */
  cache->live--;
  return true;
}

/* Frees a block of at most CACHE_BLOCK_BYTES that the caller has claimed (block_claim()) to the cache. False, and nothing done, if the cache is full,
 * its gate is shut, or it is not in use any more. */
static inline bool cache_free(struct cache *cache, struct blocks *blocks, hipmm_stream_t handle, uint32_t id)
{
  if (!gate_enter(&cache->gate)) return false;
  bool is_added = cache_add(cache, blocks, handle, id);
  gate_leave(&cache->gate);
  return is_added;
}

#endif
