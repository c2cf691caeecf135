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
#include "../heap/heap.h"
#include "types.h"

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

/* Makes room for `bytes` more, up to `most_bytes`: what the cache has goes to a depot of the stream, if another thread uses the
 * stream, or else to the heap. The pool's lock is held. */
void cache_make_room(struct caches *caches, struct cache *cache, struct heap *heap, uint64_t bytes);

/* Exchanges the cache's blocks for those of a depot of its stream that has blocks of `units`; false if there is none. The pool's
 * lock is held. */
bool cache_fill(struct caches *caches, struct cache *cache, uint64_t units);

/* The calling thread ends and cannot flush its caches: they have no owner from now on, and are flushed when the pool would
 * otherwise grow, when it is trimmed, or when a cache is needed. Needs no lock. */
void caches_abandon(struct caches *caches, uint64_t thread);

/* Flushes every cache; returns whether any had blocks. The pool's lock is held. */
bool caches_flush(struct caches *caches, struct heap *heap);

/* Flushes the caches of a stream, or of a thread and all depots, which are then not in use. The pool's lock is held. */
void caches_end_stream(struct caches *caches, struct heap *heap, uint32_t stream);
void caches_end_thread(struct caches *caches, struct heap *heap, uint64_t thread);

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

/* The inside of cache_allocate(), for an owner in the gate or with the pool's lock. */
static inline uint32_t cache_take(struct cache *cache, struct blocks *blocks, hipmm_stream_t handle, uint64_t units,
                                  uint64_t requested)
{
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
  return id;
}

/* A block of exactly `units`, which a bin is for, made live; BLOCK_NONE if there is none. Here and in cache_free(), `handle` is the
 * caller's stream: the cache may serve another stream by now than the one that the thread remembers. */
static inline uint32_t cache_allocate(struct cache *cache, struct blocks *blocks, hipmm_stream_t handle, uint64_t units,
                                      uint64_t requested)
{
  if (!gate_enter(&cache->gate)) return BLOCK_NONE;
  uint32_t id = cache_take(cache, blocks, handle, units, requested);
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

/* Frees a block of at most CACHE_BLOCK_BYTES that the caller has claimed (block_claim()) to the cache. False, and nothing done,
 * if the cache is full, its gate is shut, or it is not in use any more. */
static inline bool cache_free(struct cache *cache, struct blocks *blocks, hipmm_stream_t handle, uint32_t id)
{
  if (!gate_enter(&cache->gate)) return false;
  bool is_added = cache_add(cache, blocks, handle, id);
  gate_leave(&cache->gate);
  return is_added;
}

/* ---- Local arenas (../arena) ----
 *
 * For threads that wait for the pool's lock. A thread that has waited for more than a small share of its time gets blocks of
 * up to `most_local_bytes` from a local arena of its own. */

/* Of a block. Of *random*, one block in 75 is larger than 1 MiB, and one in 360 larger than 4 MiB: with sixteen threads, the
 * larger ones alone made them wait for each other. But a local arena's large blocks leave holes that nobody else can use. In
 * segments, whose idle memory cannot be moved, two to eight threads then held up to 2.7 times what they requested, and 1.3
 * times where local arenas have small blocks or none. */
enum { LOCAL_MOST_BYTES = 4 << 20, LOCAL_MOST_BYTES_IN_SEGMENTS = 64 << 10 };

/* Counts an entry of the cache's owner into the pool's lock, which is held: whether the thread had to wait. Does nothing if it had
 * not, and `n_waits` is 0. */
void cache_weigh(struct cache *cache, bool waited);

#endif
