/* SPDX-License-Identifier: MIT */
/* allocate.c: how the pool serves an allocation and a free. A hit in the thread's cache is served by pool_allocate() and
 * pool_deallocate() without the lock. A thread with a local arena (../arena) uses that next. Everything else takes
 * the lock: ../arena/miss.c. */
#include "allocate.h"
#include "../arena/at_hand.h"

/* A cache holds at most CACHE_LEAST_BYTES, or its part of the share 1/CACHE_SHARE of what the pool holds, whichever is
 * more. */
enum { CACHE_LEAST_BYTES = 1 << 20, CACHE_SHARE = 1024 };

/* Whether a thread's cache may hold blocks of the stream: its handle identifies the stream. */
static bool pool_may_cache(const struct pool *pool, uint32_t stream)
{
  const struct streams *streams = &pool->arena.heap.streams;
  return streams->record != RECORD_ON_FREE && stream_has_stable_handle(streams, stream);
}

/* ---- Threads that wait ---- */

/* Makes a cache that knows the stream, if there is none, so that the next call need not find it. */
static __attribute__((noinline)) enum hipmm_status pool_enter_slow_path(struct pool *pool, struct cache *cache,
                                                                        hipmm_stream_t handle, uint32_t *id_out)
{
  enum hipmm_status status = arena_enter_stream(&pool->arena, handle, id_out);
  if (status) return status;
  if (!cache && pool_may_cache(pool, *id_out)) cache = cache_new(&pool->caches, &pool->arena.heap, handle, *id_out);
  if (cache && cache->stream == *id_out) cache_weigh(cache, biased_lock_has_waited(&pool->arena.lock));
  return HIPMM_OK;
}

/* The stream's id, which the thread's cache for the stream knows, if there is one. Counts the entry into the lock. */
BLOCK_INLINE enum hipmm_status pool_enter_stream(struct pool *pool, struct cache *cache, hipmm_stream_t handle,
                                                 uint32_t *id_out)
{
  if (!cache || cache->handle != handle || !cache->stream) return pool_enter_slow_path(pool, cache, handle, id_out);
  *id_out = cache->stream;
  bool waited = biased_lock_has_waited(&pool->arena.lock);
  if (__builtin_expect(waited || cache->n_waits, 0)) cache_weigh(cache, waited);
  return HIPMM_OK;
}

/* The size of a block with a chunk of its own: eight sizes a doubling, so that a chunk that was freed often has the size that is
 * wanted next. */
static __attribute__((noinline)) uint64_t pool_own_bytes(const struct pool *pool, size_t bytes)
{
  enum { STEPS = 8 };
  uint64_t step = (1ull << (63 - __builtin_clzll(bytes))) / STEPS;
  return sizes_round_up(bytes, step > pool->whole_unit ? step : pool->whole_unit);
}

/* What other processes may get has a chunk of its own, or a segment, which has the driver's alignment. */
BLOCK_INLINE struct request pool_request(const struct pool *pool, size_t bytes, size_t alignment)
{
  bool is_own = __builtin_expect(bytes >= pool->whole_bytes, 0) &&
                (alignment == HIPMM_ALIGNMENT || pool->arena.backing.ops->moves);
  uint64_t block_bytes = is_own ? pool_own_bytes(pool, bytes) : sizes_round_up(bytes, HIPMM_ALIGNMENT);
  return (struct request){.bytes = block_bytes, .alignment = alignment, .requested = bytes, .is_own = is_own};
}

/* For a thread that has waited enough: a block that its local arena has at hand, or else the request is for that arena first. While
 * memory is short, the threads share. */
static __attribute__((noinline)) uint32_t pool_allocate_locally(struct pool *pool, struct cache *cache,
                                                                struct request *request, hipmm_stream_t stream)
{
  if (cache->wants_heap && cache_serves(cache, stream)) {
    cache->has_heap = true;
    cache->wants_heap = false;
    cache->n_waits = 0;
  }
  bool is_low_on_memory =
      __atomic_load_n(&pool->arena.heap.is_low_on_memory, __ATOMIC_RELAXED) && pool->arena.backing.ops->moves;
  request->is_local = cache->has_heap && !is_low_on_memory && request->requested <= pool->most_local_bytes &&
                      request->alignment == HIPMM_ALIGNMENT;
  if (!request->is_local) return BLOCK_NONE;
  return arena_allocate_at_hand(&pool->arena, request->requested, stream_canonical_handle(stream));
}

/* ---- Misses ---- */

static __attribute__((noinline)) enum hipmm_status pool_refuse_suspended(const struct pool *pool, uint64_t requested)
{
  const struct hipmm_services *services = pool->arena.services;
  return services->refuse(services, HIPMM_E_STATE,
                          "cannot allocate {0:bytes}: it was suspended meanwhile; resume it first", requested, 0, 0);
}

/* A thread remembers a few caches only: the block may be in a cache of the thread that it has forgotten. */
static __attribute__((noinline)) uint32_t pool_allocate_forgotten(struct pool *pool, struct cache *cache,
                                                                  const struct request *request, hipmm_stream_t handle)
{
  if (request->bytes > CACHE_BLOCK_BYTES || request->alignment != HIPMM_ALIGNMENT) return BLOCK_NONE;
  return cache_allocate(cache, &pool->arena.heap.blocks, handle, request->bytes >> UNIT_BITS, request->requested);
}

/* The attempts of ../arena/miss.c; when all have failed, ../heap/explain.c says why. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_miss(struct pool *pool, const struct request *request,
                                                                      void **ptr_out)
{
  struct arena *arena = &pool->arena;
  uint32_t id;
  enum hipmm_status status = arena_find_shared(arena, request, &id);
  if (id) *ptr_out = (void *)(uintptr_t)heap_block(&arena->heap, id)->start;
  if (id || status) return status;
  if (blocks_are_exhausted(&arena->heap.blocks))
    return explain_exhausted_records(&arena->backing, &arena->heap, request);
  return explain_failure(&arena->backing, &arena->heap, arena->refusal, request);
}

/* From the thread's local arena, or of what the caches of other threads had too much of. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_small(struct pool *pool, struct cache *cache,
                                                                       const struct request *request,
                                                                       hipmm_stream_t handle, uint32_t *id_out)
{
  uint64_t units = request->bytes >> UNIT_BITS;
  enum hipmm_status status = HIPMM_OK;
  *id_out = BLOCK_NONE;
  if (request->is_local) status = arena_find_small(&pool->arena, request, id_out);
  if (*id_out || status) return status;
  if (!cache || units >= CACHE_BINS || request->alignment != HIPMM_ALIGNMENT) return HIPMM_OK;
  if (cache->stream != request->stream || !cache_fill(&pool->caches, cache, units)) return HIPMM_OK;
  *id_out = cache_take(cache, &pool->arena.heap.blocks, handle, units, request->requested);
  return HIPMM_OK;
}

/* The caller holds the lock. */
BLOCK_INLINE enum hipmm_status pool_allocate_locked(struct pool *pool, struct cache *cache, struct request *request,
                                                    hipmm_stream_t stream, void **ptr_out)
{
  bool is_suspended = pool->arena.backing.granules.chunks.is_suspended; /* the core refuses calls that begin later */
  if (__builtin_expect(is_suspended, 0)) return pool_refuse_suspended(pool, request->requested);
  uint32_t id = BLOCK_NONE;
  if (!cache && (cache = cache_find(&pool->caches, stream))) id = pool_allocate_forgotten(pool, cache, request, stream);
  if (__builtin_expect(!id, 1)) {
    enum hipmm_status status = pool_enter_stream(pool, cache, stream, &request->stream);
    if (status) return status;
    if (__builtin_expect(request->is_local || pool->caches.any_is_depot, 0)) {
      uint32_t small; /* not `id`, which stays in a register */
      status = pool_allocate_small(pool, cache, request, stream, &small);
      if (status) return status;
      id = small;
    }
    if (!id) id = arena_find_ready(&pool->arena, request);
  }
  if (!id) return pool_allocate_miss(pool, request, ptr_out);
  *ptr_out = (void *)(uintptr_t)block_of(&pool->arena.heap.blocks, id)->start;
  return HIPMM_OK;
}

BLOCK_INLINE enum hipmm_status pool_allocate_request(struct pool *pool, struct cache *cache, struct request *request,
                                                     hipmm_stream_t stream, void **ptr_out)
{
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (status) return status;
  status = pool_allocate_locked(pool, cache, request, stream, ptr_out);
  biased_lock_release(&pool->arena.lock);
  return status;
}

/* Nothing, or more than any device has. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_special(const struct pool *pool, size_t bytes,
                                                                         size_t alignment, void **ptr_out)
{
  if (!bytes) *ptr_out = NULL;
  return bytes ? sizes_check(pool->arena.services, bytes, alignment) : HIPMM_OK;
}

/* Everything that is not a cache hit. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_slow_path(struct pool *pool, size_t bytes,
                                                                           size_t alignment, hipmm_stream_t stream,
                                                                           void **ptr_out)
{
  if (__builtin_expect(((bytes - 1) | (alignment - 1)) >= SIZES_MOST_BYTES, 0))
    return pool_allocate_special(pool, bytes, alignment, ptr_out);
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  struct request request = pool_request(pool, bytes, alignment);
  uint32_t id = BLOCK_NONE;
  if (__builtin_expect(cache && (cache->wants_heap || cache->has_heap), 0))
    id = pool_allocate_locally(pool, cache, &request, stream);
  if (__builtin_expect(!id, 1)) return pool_allocate_request(pool, cache, &request, stream, ptr_out);
  *ptr_out = (void *)(uintptr_t)block_of(&pool->arena.heap.blocks, id)->start;
  return HIPMM_OK;
}

/* A cache hit: neither a lock nor a call. */
BLOCK_INLINE bool pool_hit(struct pool *pool, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  if (bytes - 1 >= CACHE_BLOCK_BYTES || alignment != HIPMM_ALIGNMENT) return false;
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  if (!cache) return false;
  uint64_t units = (bytes + HIPMM_ALIGNMENT - 1) / HIPMM_ALIGNMENT;
  uint32_t id = cache_allocate(cache, &pool->arena.heap.blocks, stream, units, bytes);
  if (id) *ptr_out = (void *)(uintptr_t)block_of(&pool->arena.heap.blocks, id)->start;
  return id != BLOCK_NONE;
}

enum hipmm_status pool_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct pool *pool = self;
  if (pool_hit(pool, bytes, alignment, stream, ptr_out)) return HIPMM_OK;
  return pool_allocate_slow_path(pool, bytes, alignment, stream, ptr_out);
}

/* ---- Calls that are served at once or not at all ---- */

/* Enters the lock, if that needs no wait, for a block of `bytes` on the cache's stream. For a larger one the runtime may be
 * asked what work has completed (arena_find_ready()). */
static bool pool_try_enter(struct pool *pool, const struct cache *cache, hipmm_stream_t stream, size_t bytes)
{
  if (!cache || cache->has_heap || bytes - 1 >= ARENA_LARGE_BYTES || !biased_lock_try(&pool->arena.lock)) return false;
  if (cache->stream && cache->handle == stream && !pool->arena.backing.granules.chunks.is_suspended) return true;
  biased_lock_release(&pool->arena.lock);
  return false;
}

int pool_try_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct pool *pool = self;
  if (pool_hit(pool, bytes, alignment, stream, ptr_out)) return 1;
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  if (alignment != HIPMM_ALIGNMENT || !pool_try_enter(pool, cache, stream, bytes)) return 0;
  struct request request = pool_request(pool, bytes, alignment);
  request.stream = cache->stream;
  uint32_t id = heap_allocate_ready(&pool->arena.heap, &request);
  if (id) *ptr_out = (void *)(uintptr_t)block_of(&pool->arena.heap.blocks, id)->start;
  biased_lock_release(&pool->arena.lock);
  return id != BLOCK_NONE;
}

/* ---- Freeing and finding ---- */

enum hipmm_status pool_refuse_pointer(struct arena *arena, const void *ptr)
{
  struct hipmm_block span;
  if (!span_holds((struct pool *)arena, ptr, &span)) return refuse_pointer(arena->services, ptr);
  return arena->services->refuse(arena->services, HIPMM_E_POINTER,
                                 "{0:hex} lies in a span, which is no block; hipmm_span_destroy() frees it",
                                 (uintptr_t)ptr, 0, 0);
}

/* Frees a small block to the thread's cache for the stream, after making room in it; false if no cache may hold it. */
static __attribute__((noinline)) bool pool_free_to_cache(struct pool *pool, uint32_t id, hipmm_stream_t handle,
                                                         uint32_t stream)
{
  struct cache *cache =
      pool_may_cache(pool, stream) ? cache_new(&pool->caches, &pool->arena.heap, handle, stream) : NULL;
  if (!cache) return false;
  uint64_t share = backing_bytes(&pool->arena.backing) / CACHE_SHARE / (pool->caches.count + 1);
  cache->most_bytes = share > CACHE_LEAST_BYTES ? share : CACHE_LEAST_BYTES;
  cache_make_room(&pool->caches, cache, &pool->arena.heap, block_of(&pool->arena.heap.blocks, id)->bytes);
  return cache_add(cache, &pool->arena.heap.blocks, handle, id);
}

/* The caller holds the lock. */
BLOCK_INLINE enum hipmm_status pool_deallocate_locked(struct pool *pool, struct cache *cache, uint32_t id,
                                                      hipmm_stream_t handle)
{
  uint32_t stream;
  if (!cache) cache = cache_find(&pool->caches, handle);
  enum hipmm_status status = pool_enter_stream(pool, cache, handle, &stream);
  if (status) return status;
  bool is_small = block_of(&pool->arena.heap.blocks, id)->bytes <= CACHE_BLOCK_BYTES;
  if (!is_small || !pool_free_to_cache(pool, id, handle, stream)) heap_free(&pool->arena.heap, id, stream);
  return HIPMM_OK;
}

/* The caller has claimed the block. If the free fails, the block is live again. */
BLOCK_INLINE enum hipmm_status pool_deallocate_claimed(struct pool *pool, uint32_t id, hipmm_stream_t stream)
{
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (!status) {
    status = pool_deallocate_locked(pool, cache, id, stream);
    biased_lock_release(&pool->arena.lock);
  }
  if (status) block_set_state(block_of(&pool->arena.heap.blocks, id), BLOCK_LIVE);
  return status;
}

/* A block that no cache may hold, or not at once. */
static __attribute__((noinline)) enum hipmm_status pool_deallocate_slow_path(struct pool *pool, uint32_t id,
                                                                             hipmm_stream_t stream)
{
  if (__builtin_expect(block_of(&pool->arena.heap.blocks, id)->arena != 0, 0))
    return arena_free_claimed(&pool->arena, id, stream_canonical_handle(stream));
  return pool_deallocate_claimed(pool, id, stream);
}

static __attribute__((noinline)) enum hipmm_status pool_deallocate_none(struct pool *pool, const void *ptr)
{
  return ptr ? pool_refuse_pointer(&pool->arena, ptr) : HIPMM_OK;
}

/* Two functions, since a small block needs fewer steps and registers. `bytes` is at most CACHE_BLOCK_BYTES, and not 0. */
static __attribute__((noinline)) enum hipmm_status pool_deallocate_small(struct pool *pool, void *ptr, size_t bytes,
                                                                         hipmm_stream_t stream)
{
  if (bytes - 1 >= CACHE_BLOCK_BYTES) __builtin_unreachable();
  uint32_t id = block_at(&pool->arena.heap.blocks, ptr, bytes);
  if (!id) return pool_deallocate_none(pool, ptr);
  const struct block *block = block_of(&pool->arena.heap.blocks, id);
  enum hipmm_status status = arena_claim(&pool->arena, id, ptr, bytes);
  if (status) return status;
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  bool has_bin = !block->arena && block->bytes <= CACHE_BLOCK_BYTES; /* without records, a block keeps the rest */
  if (cache && has_bin && cache_free(cache, &pool->arena.heap.blocks, stream, id)) return HIPMM_OK;
  return pool_deallocate_slow_path(pool, id, stream);
}

/* Any size. */
static __attribute__((noinline)) enum hipmm_status pool_deallocate_large(struct pool *pool, void *ptr, size_t bytes,
                                                                         hipmm_stream_t stream)
{
  uint32_t id = block_at(&pool->arena.heap.blocks, ptr, bytes);
  if (!id) return pool_deallocate_none(pool, ptr);
  const struct block *block = block_of(&pool->arena.heap.blocks, id);
  enum hipmm_status status = arena_claim(&pool->arena, id, ptr, bytes);
  if (status) return status;
  if (__builtin_expect(block->arena != 0, 0)) return pool_deallocate_slow_path(pool, id, stream);
  return pool_deallocate_claimed(pool, id, stream);
}

enum hipmm_status pool_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)alignment;
  return bytes - 1 < CACHE_BLOCK_BYTES ? pool_deallocate_small(self, ptr, bytes, stream)
                                       : pool_deallocate_large(self, ptr, bytes, stream);
}

/* An event that each free records is a call of the runtime. */
static bool pool_try_free(struct pool *pool, struct cache *cache, uint32_t id, hipmm_stream_t stream)
{
  const struct block *block = block_of(&pool->arena.heap.blocks, id);
  if (block->arena) return false;
  if (block->bytes <= CACHE_BLOCK_BYTES && cache_free(cache, &pool->arena.heap.blocks, stream, id)) return true;
  if (pool->arena.heap.streams.record == RECORD_ON_FREE || !pool_try_enter(pool, cache, stream, block->requested))
    return false;
  bool is_free = !pool_deallocate_locked(pool, cache, id, stream);
  biased_lock_release(&pool->arena.lock);
  return is_free;
}

int pool_try_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct pool *pool = self;
  struct blocks *blocks = &pool->arena.heap.blocks;
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  uint32_t id = cache && ptr && bytes - 1 < ARENA_LARGE_BYTES ? block_at(blocks, ptr, bytes) : BLOCK_NONE;
  (void)alignment;
  if (!id || !block_claim(block_of(blocks, id))) return 0;
  struct block *block = block_of(blocks, id);
  bool is_there = block->start == (uintptr_t)ptr && block->requested == bytes; /* as arena_claim() says */
  if (is_there && pool_try_free(pool, cache, id, stream)) return 1;
  block_set_state(block, BLOCK_LIVE);
  return 0;
}

/* ---- For other processes ---- */

enum hipmm_status pool_allocate_exportable(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  struct pool *pool = self;
  if (!pool->arena.backing.ops->moves || !pool->arena.backing.granules.chunks.can_export)
    return pool->arena.services->fail(
        pool->arena.services, HIPMM_E_NOT_SUPPORTED, NULL,
        "has no blocks that may be exported: it maps no memory here that other processes can map");
  if (((bytes - 1) | (alignment - 1)) >= SIZES_MOST_BYTES)
    return pool_allocate_special(pool, bytes, alignment, ptr_out);
  struct request request = {
      .bytes = pool_own_bytes(pool, bytes), .alignment = alignment, .requested = bytes, .is_own = true};
  return pool_allocate_request(pool, cache_of_thread(&pool->caches, stream), &request, stream, ptr_out);
}
