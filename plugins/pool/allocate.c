/* SPDX-License-Identifier: MIT */
/* allocate.c: how the pool serves an allocation and a free. A hit in the thread's cache is served by pool_allocate() and
 * pool_deallocate() without the lock. A thread with a heap of its own (thread_heaps.c) uses that next. Everything else takes
 * the lock: ../heap/miss.c. */
#include "allocate.h"

/* A cache holds at most CACHE_LEAST_BYTES, or its part of the share 1/CACHE_SHARE of what the pool holds, whichever is
 * more. */
enum { CACHE_LEAST_BYTES = 1 << 20, CACHE_SHARE = 1024 };

/* The stream's id, which the thread's cache for the stream knows, if there is one. */
BLOCK_INLINE enum hipmm_status pool_enter_stream(struct pool *pool, const struct cache *cache, hipmm_stream_t handle,
                                                 uint32_t *id_out)
{
  if (!cache || cache->handle != handle || !cache->stream) return pool_find_stream(pool, handle, id_out);
  *id_out = cache->stream;
  return HIPMM_OK;
}

/* Whether a thread's cache may hold blocks of the stream: its handle identifies the stream. */
static bool pool_may_cache(const struct pool *pool, uint32_t stream)
{
  const struct streams *streams = &pool->heap.streams;
  return streams->record != RECORD_ON_FREE && stream_has_stable_handle(streams, stream);
}

/* ---- Threads that wait ---- */

/* Counts the entry into the lock. A thread's cache knows the stream, so that the next entry need not find it. */
BLOCK_INLINE void pool_count_entry(struct pool *pool, struct cache *cache, hipmm_stream_t handle, uint32_t stream)
{
  if (!cache && pool_may_cache(pool, stream)) cache = cache_new(&pool->caches, &pool->heap, handle, stream);
  if (cache && !cache->has_heap && cache->stream == stream)
    thread_heaps_count_entry(cache, biased_lock_has_waited(&pool->lock));
}

/* The unit of the size of a block with a chunk of its own: eight sizes a doubling, so that a chunk that was freed often has the
 * size that is wanted next. */
static __attribute__((noinline)) uint64_t pool_own_unit(const struct pool *pool, size_t bytes)
{
  enum { STEPS = 8 };
  uint64_t step = (1ull << (63 - __builtin_clzll(bytes))) / STEPS;
  return step > pool->whole_unit ? step : pool->whole_unit;
}

/* What other processes may get has a chunk of its own, or a segment, which has the driver's alignment. */
BLOCK_INLINE struct request pool_request(const struct pool *pool, size_t bytes, size_t alignment)
{
  bool is_own =
      __builtin_expect(bytes >= pool->whole_bytes, 0) && (alignment == HIPMM_ALIGNMENT || pool->backing.ops->moves);
  uint64_t unit = is_own ? pool_own_unit(pool, bytes) : HIPMM_ALIGNMENT;
  return (struct request){
      .bytes = sizes_round_up(bytes, unit), .alignment = alignment, .requested = bytes, .is_own = is_own};
}

/* From the thread's heap. HIPMM_OK and HIPMM_CALL_AGAIN are the call's. While memory is short, the threads share it. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_in_heap(struct pool *pool, struct cache *cache,
                                                                         size_t bytes, size_t alignment,
                                                                         hipmm_stream_t stream, void **ptr_out)
{
  if (cache->wants_heap && cache_serves(cache, stream)) thread_heaps_admit(&pool->heaps, pool->services, cache, stream);
  bool is_low_on_memory = __atomic_load_n(&pool->heap.is_low_on_memory, __ATOMIC_RELAXED) && pool->backing.ops->moves;
  if (is_low_on_memory || !cache->has_heap) return HIPMM_E_NOT_SUPPORTED;
  if (bytes > pool->heaps.most_bytes || alignment != HIPMM_ALIGNMENT) return HIPMM_E_NOT_SUPPORTED;
  return thread_heaps_ops()->allocate(thread_heaps_arena(&pool->heaps), bytes, alignment, stream, ptr_out);
}

/* ---- Misses ---- */

static __attribute__((noinline)) enum hipmm_status pool_refuse_suspended(const struct pool *pool, uint64_t requested)
{
  return pool->services->refuse(pool->services, HIPMM_E_STATE,
                                "cannot allocate {0:bytes}: it was suspended meanwhile; resume it first", requested, 0,
                                0);
}

/* A thread remembers a few caches only: the block may be in a cache of the thread that it has forgotten. */
static __attribute__((noinline)) uint32_t pool_allocate_forgotten(struct pool *pool, const struct request *request,
                                                                  hipmm_stream_t handle, struct cache **cache_out)
{
  struct cache *cache = *cache_out = cache_find(&pool->caches, handle);
  if (!cache || request->bytes > CACHE_BLOCK_BYTES || request->alignment != HIPMM_ALIGNMENT) return BLOCK_NONE;
  return cache_allocate(cache, &pool->heap.blocks, handle, request->bytes >> UNIT_BITS, request->requested);
}

static bool pool_flush(void *self)
{
  struct pool *pool = self;
  return caches_flush(&pool->caches, &pool->heap);
}

static const struct miss_ops pool_miss_ops = {
    .is_merging = true, .flush = pool_flush, .synchronize = pool_synchronize_device, .collect = pool_complete};

/* The attempts of ../heap/miss.c; when all have failed, ../heap/explain.c says why. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_miss(struct pool *pool, const struct request *request,
                                                                      uint32_t *id_out)
{
  struct miss miss = {
      .ops = &pool_miss_ops, .self = pool, .heap = &pool->heap, .backing = &pool->backing, .request = request};
  miss_run(&miss, STAGE_LAST);
  *id_out = miss.id;
  if (miss.id) return HIPMM_OK;
  if (blocks_are_exhausted(&pool->heap.blocks)) return explain_exhausted_records(&pool->backing, &pool->heap, request);
  return miss.is_over ? miss.status : explain_failure(&pool->backing, &pool->heap, miss.status, request);
}

/* What the caches of other threads had too much of. */
static __attribute__((noinline)) uint32_t pool_allocate_from_depot(struct pool *pool, struct cache *cache,
                                                                   const struct request *request, hipmm_stream_t handle)
{
  uint64_t units = request->bytes >> UNIT_BITS;
  if (!cache || units >= CACHE_BINS || request->alignment != HIPMM_ALIGNMENT) return BLOCK_NONE;
  if (cache->stream != request->stream || !cache_fill(&pool->caches, cache, units)) return BLOCK_NONE;
  return cache_take(cache, &pool->heap.blocks, handle, units, request->requested);
}

/* The caller holds the lock. */
BLOCK_INLINE enum hipmm_status pool_allocate_locked(struct pool *pool, struct cache *cache, struct request *request,
                                                    hipmm_stream_t stream, void **ptr_out)
{
  if (__builtin_expect(pool->backing.granules.chunks.is_suspended, 0)) /* the core refuses calls that begin later */
    return pool_refuse_suspended(pool, request->requested);
  uint32_t id = cache ? BLOCK_NONE : pool_allocate_forgotten(pool, request, stream, &cache);
  if (!id) {
    enum hipmm_status status = pool_enter_stream(pool, cache, stream, &request->stream);
    if (status) return status;
    pool_count_entry(pool, cache, stream, request->stream);
    if (__builtin_expect(pool->caches.any_is_depot, 0)) id = pool_allocate_from_depot(pool, cache, request, stream);
    if (!id) id = pool_allocate_ready(pool, request);
    if (!id) status = pool_allocate_miss(pool, request, &id);
    if (status) return status;
  }
  *ptr_out = (void *)(uintptr_t)block_of(&pool->heap.blocks, id)->start;
  return HIPMM_OK;
}

BLOCK_INLINE enum hipmm_status pool_allocate_request(struct pool *pool, struct cache *cache, struct request *request,
                                                     hipmm_stream_t stream, void **ptr_out)
{
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  status = pool_allocate_locked(pool, cache, request, stream, ptr_out);
  biased_lock_release(&pool->lock);
  return status;
}

/* Memory is short: the heaps of threads give back what is idle. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_again(struct pool *pool, struct cache *cache,
                                                                       struct request *request, hipmm_stream_t stream,
                                                                       enum hipmm_status status, void **ptr_out)
{
  if (!hipmm_is_out_of_memory(status) || !thread_heaps_arena(&pool->heaps) || thread_heaps_trim(&pool->heaps))
    return status;
  return pool_allocate_request(pool, cache, request, stream, ptr_out);
}

/* Nothing, or more than any device has. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_special(const struct pool *pool, size_t bytes,
                                                                         size_t alignment, void **ptr_out)
{
  if (!bytes) *ptr_out = NULL;
  return bytes ? sizes_check(pool->services, bytes, alignment) : HIPMM_OK;
}

/* Everything that is not a cache hit. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_slow_path(struct pool *pool, size_t bytes,
                                                                           size_t alignment, hipmm_stream_t stream,
                                                                           void **ptr_out)
{
  if (__builtin_expect(((bytes - 1) | (alignment - 1)) >= SIZES_MOST_BYTES, 0))
    return pool_allocate_special(pool, bytes, alignment, ptr_out);
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  if (cache && (cache->wants_heap || cache->has_heap)) {
    enum hipmm_status status = pool_allocate_in_heap(pool, cache, bytes, alignment, stream, ptr_out);
    if (!status || status == HIPMM_CALL_AGAIN) return status;
  }
  struct request request = pool_request(pool, bytes, alignment);
  enum hipmm_status status = pool_allocate_request(pool, cache, &request, stream, ptr_out);
  return status ? pool_allocate_again(pool, cache, &request, stream, status, ptr_out) : HIPMM_OK;
}

/* A cache hit: neither a lock nor a call. */
BLOCK_INLINE bool pool_hit(struct pool *pool, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  if (bytes - 1 >= CACHE_BLOCK_BYTES || alignment != HIPMM_ALIGNMENT) return false;
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  if (!cache) return false;
  uint64_t units = (bytes + HIPMM_ALIGNMENT - 1) / HIPMM_ALIGNMENT;
  uint32_t id = cache_allocate(cache, &pool->heap.blocks, stream, units, bytes);
  if (id) *ptr_out = (void *)(uintptr_t)block_of(&pool->heap.blocks, id)->start;
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
 * asked what work has completed (pool_looks_first()). */
static bool pool_try_enter(struct pool *pool, const struct cache *cache, hipmm_stream_t stream, size_t bytes)
{
  if (!cache || cache->has_heap || bytes - 1 >= LARGE_BYTES || !biased_lock_try(&pool->lock)) return false;
  if (cache->stream && cache->handle == stream && !pool->backing.granules.chunks.is_suspended) return true;
  biased_lock_release(&pool->lock);
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
  uint32_t id = heap_allocate_ready(&pool->heap, &request);
  if (id) *ptr_out = (void *)(uintptr_t)block_of(&pool->heap.blocks, id)->start;
  biased_lock_release(&pool->lock);
  return id != BLOCK_NONE;
}

/* ---- Freeing and finding ---- */

enum hipmm_status pool_refuse_pointer(struct pool *pool, const void *ptr)
{
  struct hipmm_block span;
  if (span_holds(pool, ptr, &span))
    return pool->services->refuse(pool->services, HIPMM_E_POINTER,
                                  "{0:hex} lies in a span, which is no block; hipmm_span_destroy() frees it",
                                  (uintptr_t)ptr, 0, 0);
  return refuse_pointer(pool->services, ptr);
}

/* Frees a small block to the thread's cache for the stream, after making room in it; false if no cache may hold it. */
static __attribute__((noinline)) bool pool_free_to_cache(struct pool *pool, uint32_t id, hipmm_stream_t handle,
                                                         uint32_t stream)
{
  struct cache *cache = pool_may_cache(pool, stream) ? cache_new(&pool->caches, &pool->heap, handle, stream) : NULL;
  if (!cache) return false;
  uint64_t share = backing_bytes(&pool->backing) / CACHE_SHARE / (pool->caches.count + 1);
  cache->most_bytes = share > CACHE_LEAST_BYTES ? share : CACHE_LEAST_BYTES;
  cache_make_room(&pool->caches, cache, &pool->heap, block_of(&pool->heap.blocks, id)->bytes);
  return cache_add(cache, &pool->heap.blocks, handle, id);
}

/* The caller holds the lock. */
BLOCK_INLINE enum hipmm_status pool_deallocate_locked(struct pool *pool, struct cache *cache, uint32_t id,
                                                      hipmm_stream_t handle)
{
  uint32_t stream;
  if (!cache) cache = cache_find(&pool->caches, handle);
  enum hipmm_status status = pool_enter_stream(pool, cache, handle, &stream);
  if (status) return status;
  pool_count_entry(pool, cache, handle, stream);
  bool is_small = block_of(&pool->heap.blocks, id)->bytes <= CACHE_BLOCK_BYTES;
  if (!is_small || !pool_free_to_cache(pool, id, handle, stream)) heap_free(&pool->heap, id, stream);
  return HIPMM_OK;
}

/* The caller has claimed the block. If the free fails, the block is live again. */
BLOCK_INLINE enum hipmm_status pool_deallocate_claimed(struct pool *pool, uint32_t id, hipmm_stream_t stream)
{
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (!status) {
    status = pool_deallocate_locked(pool, cache, id, stream);
    biased_lock_release(&pool->lock);
  }
  if (status) block_set_state(block_of(&pool->heap.blocks, id), BLOCK_LIVE);
  return status;
}

/* What is no block of the heap may be in a heap of a thread. */
static __attribute__((noinline)) enum hipmm_status pool_deallocate_unknown(struct pool *pool, void *ptr, size_t bytes,
                                                                           size_t alignment, hipmm_stream_t stream)
{
  void *arena = thread_heaps_arena(&pool->heaps);
  if (!ptr) return HIPMM_OK;
  return arena ? thread_heaps_ops()->deallocate(arena, ptr, bytes, alignment, stream) : pool_refuse_pointer(pool, ptr);
}

/* Claims the block, so that no other thread can free it. */
BLOCK_INLINE enum hipmm_status pool_claim(struct pool *pool, uint32_t id, const void *ptr, size_t bytes)
{
  struct block *block = block_of(&pool->heap.blocks, id);
  if (!block_claim(block)) return pool_refuse_pointer(pool, ptr);
  uint64_t requested = block->requested; /* the claim makes the record this thread's */
  if (!bytes || bytes == requested) return HIPMM_OK;
  block_set_state(block, BLOCK_LIVE);
  return refuse_size(pool->services, ptr, bytes, requested);
}

/* Everything that does not go to a cache at once. */
static __attribute__((noinline)) enum hipmm_status pool_deallocate_slow_path(struct pool *pool, uint32_t id,
                                                                             hipmm_stream_t stream)
{
  return pool_deallocate_claimed(pool, id, stream);
}

/* Two functions, since a small block needs fewer registers. */
static __attribute__((noinline)) enum hipmm_status pool_deallocate_small(struct pool *pool, void *ptr, size_t bytes,
                                                                         size_t alignment, hipmm_stream_t stream)
{
  uint32_t id = block_at(&pool->heap.blocks, ptr, bytes);
  if (!id) return pool_deallocate_unknown(pool, ptr, bytes, alignment, stream);
  enum hipmm_status status = pool_claim(pool, id, ptr, bytes);
  if (status) return status;
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  bool is_small = block_of(&pool->heap.blocks, id)->bytes <= CACHE_BLOCK_BYTES;
  if (cache && is_small && cache_free(cache, &pool->heap.blocks, stream, id)) return HIPMM_OK;
  return pool_deallocate_slow_path(pool, id, stream);
}

static __attribute__((noinline)) enum hipmm_status pool_deallocate_large(struct pool *pool, void *ptr, size_t bytes,
                                                                         size_t alignment, hipmm_stream_t stream)
{
  uint32_t id = block_at(&pool->heap.blocks, ptr, bytes);
  if (!id) return pool_deallocate_unknown(pool, ptr, bytes, alignment, stream);
  enum hipmm_status status = pool_claim(pool, id, ptr, bytes);
  return status ? status : pool_deallocate_claimed(pool, id, stream);
}

enum hipmm_status pool_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  return bytes <= CACHE_BLOCK_BYTES ? pool_deallocate_small(self, ptr, bytes, alignment, stream)
                                    : pool_deallocate_large(self, ptr, bytes, alignment, stream);
}

/* An event that each free records is a call of the runtime. */
static bool pool_try_free(struct pool *pool, struct cache *cache, uint32_t id, hipmm_stream_t stream)
{
  const struct block *block = block_of(&pool->heap.blocks, id);
  if (block->bytes <= CACHE_BLOCK_BYTES && cache_free(cache, &pool->heap.blocks, stream, id)) return true;
  if (pool->heap.streams.record == RECORD_ON_FREE || !pool_try_enter(pool, cache, stream, block->requested))
    return false;
  bool is_free = !pool_deallocate_locked(pool, cache, id, stream);
  biased_lock_release(&pool->lock);
  return is_free;
}

int pool_try_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct pool *pool = self;
  struct blocks *blocks = &pool->heap.blocks;
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  uint32_t id = cache && ptr && bytes - 1 < LARGE_BYTES ? block_at(blocks, ptr, bytes) : BLOCK_NONE;
  (void)alignment;
  if (!id || !block_claim(block_of(blocks, id))) return 0;
  struct block *block = block_of(blocks, id);
  if (bytes == block->requested && pool_try_free(pool, cache, id, stream)) return 1;
  block_set_state(block, BLOCK_LIVE);
  return 0;
}

/* ---- For other processes ---- */

enum hipmm_status pool_allocate_exportable(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  struct pool *pool = self;
  if (!pool->backing.ops->moves || !pool->backing.granules.chunks.can_export)
    return pool->services->fail(
        pool->services, HIPMM_E_NOT_SUPPORTED, NULL,
        "has no blocks that may be exported: it maps no memory here that other processes can map");
  if (((bytes - 1) | (alignment - 1)) >= SIZES_MOST_BYTES)
    return pool_allocate_special(pool, bytes, alignment, ptr_out);
  struct request request = {.bytes = sizes_round_up(bytes, pool_own_unit(pool, bytes)),
                            .alignment = alignment,
                            .requested = bytes,
                            .is_own = true};
  return pool_allocate_request(pool, cache_of_thread(&pool->caches, stream), &request, stream, ptr_out);
}

/* ---- Lending to the heaps of threads ---- */

static enum hipmm_status pool_allocate_on_loan(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                               void **ptr_out)
{
  struct pool *pool = self;
  struct request request = {.bytes = bytes, .alignment = alignment, .requested = bytes};
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  status = pool_allocate_locked(pool, NULL, &request, stream, ptr_out);
  if (!status) {
    block_set_state(block_of(&pool->heap.blocks, block_at(&pool->heap.blocks, *ptr_out, bytes)), BLOCK_ON_LOAN);
    pool->heaps.loan_bytes += bytes;
    pool->heaps.loan_count++;
  }
  biased_lock_release(&pool->lock);
  return status;
}

/* No work uses the memory. */
static enum hipmm_status pool_take_back(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct pool *pool = self;
  (void)alignment, (void)stream;
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  heap_free(&pool->heap, block_at_in(&pool->heap.blocks, ptr, bytes, BLOCK_ON_LOAN), STREAM_READY);
  pool->heaps.loan_bytes -= bytes;
  pool->heaps.loan_count--;
  biased_lock_release(&pool->lock);
  return HIPMM_OK;
}

const struct hipmm_ops pool_loan_ops = {
    .struct_size = sizeof pool_loan_ops, .allocate = pool_allocate_on_loan, .deallocate = pool_take_back};
