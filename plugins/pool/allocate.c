/* SPDX-License-Identifier: MIT */
/* allocate.c: an allocation's way through the pool, and a free's. A hit in the thread's cache is all in pool_allocate and
 * pool_deallocate; the rest holds the pool's lock and tries what costs least first: what the heap has ready, what the
 * caches keep, what other streams are done with, what can be waited for, idle memory under other addresses, new memory,
 * and in the end the exchange of idle memory for what is needed. */
#include "allocate.h"

/* A cache keeps blocks of at most CACHE_BLOCK_BYTES: what a search costs matters to small ones, and what they keep from
 * merging is little. It keeps CACHE_LEAST_BYTES bytes in all, or its part of the share CACHE_SHARE of what the pool holds. */
enum {
  CACHE_BLOCK_BYTES = 4096,
  CACHE_LEAST_BYTES = 1 << 20,
  CACHE_SHARE = 1024,
};

enum { LARGE_BYTES = 1 << 20 }; /* see take_at_once */

/* ---- Waiting for the device ---- */

static enum hipmm_status pool_synchronize_device(struct pool *pool, uint32_t user)
{
  enum hipmm_status status = streams_wait_for_device(&pool->heap.streams, user);
  if (!status) heap_complete_all(&pool->heap);
  return status;
}

/* ---- Allocating ---- */

/* Free memory of streams whose handles may be gone comes back through the device, if there is enough to matter. */
static uint32_t pool_allocate_unfenced(struct pool *pool, const struct request *request)
{
  if (heap_unfenced_bytes(&pool->heap, request->stream) < request->bytes) return BLOCK_NONE;
  if (pool_synchronize_device(pool, request->stream)) return BLOCK_NONE;
  return heap_allocate_ready(&pool->heap, request);
}

/* With several streams, a large request first looks which of their work is done: where it goes decides how well the
 * rest packs, and next to the work on so much memory a few driver calls are nothing. */
static uint32_t pool_allocate_at_once(struct pool *pool, const struct request *request)
{
  struct heap *heap = &pool->heap;
  uint32_t id;
  if (heap->streams.active > 1 && request->bytes >= LARGE_BYTES) heap_poll(heap);
  id = heap_allocate_ready(heap, request);
  if (!id && caches_flush(&pool->caches, heap)) id = heap_allocate_ready(heap, request);
  return id;
}

static uint32_t pool_allocate_from_heap(struct pool *pool, const struct request *request)
{
  struct heap *heap = &pool->heap;
  uint32_t id = pool_allocate_at_once(pool, request);
  if (id || heap->streams.active < 2) return id;
  id = heap_allocate_completed(heap, request);
  if (!id) id = heap_allocate_waiting(heap, request);
  if (!id && !pool->backing.mapped) id = heap_allocate_merged(heap, request);
  return id ? id : pool_allocate_unfenced(pool, request);
}

/* The upstream, or the maximum, has no room: what lies idle makes some, if that can be enough. */
static enum hipmm_status pool_allocate_by_exchange(struct pool *pool, const struct request *request, uint32_t *id_out)
{
  enum hipmm_status status = pool_synchronize_device(pool, request->stream);
  if (!status) status = backing_check_available(&pool->backing, &pool->heap, request);
  if (!status) status = backing_release_idle(&pool->backing, &pool->heap, 0);
  return status ? status : backing_allocate(&pool->backing, &pool->heap, request, id_out);
}

/* Granules that are partly in use count with the part that is not. */
uint64_t pool_free_bytes(const struct pool *pool)
{
  return backing_bytes(&pool->backing) - pool->heap.live_bytes;
}

static enum hipmm_status pool_allocate_by_growth(struct pool *pool, const struct request *request, uint32_t *id_out)
{
  uint64_t held_bytes = backing_bytes(&pool->backing);
  if (blocks_are_exhausted(&pool->heap.blocks)) return explain_exhausted_records(pool, request);
  enum hipmm_status status = backing_allocate(&pool->backing, &pool->heap, request, id_out);
  bool has_more = hipmm_is_out_of_memory(status) && backing_bytes(&pool->backing);
  if (has_more && !streams_any_captured(&pool->heap.streams, request->stream))
    status = pool_allocate_by_exchange(pool, request, id_out);
  if (!status) return HIPMM_OK;
  /* What was got in vain goes back: others may have use for it. */
  if (backing_bytes(&pool->backing) > held_bytes) backing_release_idle(&pool->backing, &pool->heap, held_bytes);
  return explain_failure(pool, status, request);
}

/* Its frees have all completed. */
static void pool_forget_stream(struct pool *pool, uint32_t id)
{
  caches_end_stream(&pool->caches, &pool->heap, id);
  heap_complete_stream(&pool->heap, id);
  stream_forget(&pool->heap.streams, id);
}

/* Its frees have not all completed. */
static void pool_lose_stream(struct pool *pool, uint32_t id)
{
  caches_end_stream(&pool->caches, &pool->heap, id);
  stream_lose(&pool->heap.streams, id);
}

/* The stream's id. When the table is full, the device is waited for and all streams are forgotten. */
static __attribute__((noinline)) enum hipmm_status pool_find_stream(struct pool *pool, hipStream_t handle,
                                                                    uint32_t *id_out)
{
  struct streams *streams = &pool->heap.streams;
  uint32_t id;
  enum hipmm_status status = streams_enter(streams, handle, &id);
  if (status) return status;
  if (!id) status = pool_synchronize_device(pool, STREAM_READY);
  for (uint32_t known = STREAM_FIRST; !id && !status && known < streams->count; known++)
    pool_forget_stream(pool, known);
  if (!id && !status) status = streams_enter(streams, handle, &id);
  if (!status && !heap_cover(&pool->heap, id))
    status = pool->services->refuse(pool->services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for another stream", 0,
                                    0, 0);
  if (!status) *id_out = id;
  return status;
}

/* The same, which the thread's cache for the stream knows, if there is one. */
static inline enum hipmm_status pool_enter_stream(struct pool *pool, const struct cache *cache, hipStream_t handle,
                                                  uint32_t *id_out)
{
  if (!cache || cache->handle != handle || !cache->stream) return pool_find_stream(pool, handle, id_out);
  *id_out = cache->stream;
  return HIPMM_OK;
}

/* A block of a cache that the thread has forgotten, as it uses more streams than it remembers. */
static uint32_t pool_allocate_cached(struct pool *pool, struct cache *cache, const struct request *request,
                                     hipStream_t handle)
{
  if (request->bytes > CACHE_BLOCK_BYTES || request->alignment != HIPMM_ALIGNMENT) return BLOCK_NONE;
  return cache_allocate(cache, &pool->heap.blocks, handle, request->bytes >> UNIT_BITS, request->requested);
}

static enum hipmm_status pool_allocate_locked(struct pool *pool, const struct cache *known, struct request *request,
                                              hipStream_t stream, void **ptr_out)
{
  uint32_t id = BLOCK_NONE;
  if (!known) {
    struct cache *found = cache_find(&pool->caches, stream);
    if (found) id = pool_allocate_cached(pool, found, request, stream);
    if (id) {
      *ptr_out = (void *)(uintptr_t)block_of(&pool->heap.blocks, id)->start;
      return HIPMM_OK;
    }
    known = found;
  }
  enum hipmm_status status = pool_enter_stream(pool, known, stream, &request->stream);
  if (status) return status;
  bool uses_hints = backing_uses_hints(&pool->backing, &pool->heap, request);
  id = uses_hints ? granules_replay(&pool->backing.granules, &pool->heap, request) : BLOCK_NONE;
  if (!id) id = pool_allocate_from_heap(pool, request);
  if (!id) status = pool_allocate_by_growth(pool, request, &id);
  if (status) return status;
  if (uses_hints) granules_record(&pool->backing.granules, &pool->heap, id);
  *ptr_out = (void *)(uintptr_t)block_of(&pool->heap.blocks, id)->start;
  return HIPMM_OK;
}

/* Everything that is not a cache hit. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_slowly(struct pool *pool, const struct cache *cache,
                                                                        size_t bytes, size_t alignment,
                                                                        hipStream_t stream, void **ptr_out)
{
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  enum hipmm_status status = sizes_check(pool->services, bytes, alignment);
  if (status) return status;
  struct request request = {
      .bytes = sizes_round_up(bytes, HIPMM_ALIGNMENT), .alignment = alignment, .requested = bytes};
  status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  status = pool_allocate_locked(pool, cache, &request, stream, ptr_out);
  biased_lock_release(&pool->lock);
  return status;
}

enum hipmm_status pool_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out)
{
  struct pool *pool = self;
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  if (cache && bytes - 1 < CACHE_BLOCK_BYTES && alignment == HIPMM_ALIGNMENT) {
    uint64_t units = (bytes + HIPMM_ALIGNMENT - 1) / HIPMM_ALIGNMENT;
    uint32_t id = cache_allocate(cache, &pool->heap.blocks, stream, units, bytes);
    if (id) {
      *ptr_out = (void *)(uintptr_t)block_of(&pool->heap.blocks, id)->start;
      return HIPMM_OK;
    }
  }
  return pool_allocate_slowly(pool, cache, bytes, alignment, stream, ptr_out);
}

/* ---- Freeing and finding ---- */

static enum hipmm_status pool_refuse_pointer(const struct pool *pool, const void *ptr)
{
  return pool->services->refuse(pool->services, HIPMM_E_POINTER,
                                "{0:hex} is not allocated here: it is foreign, or was freed before", (uintptr_t)ptr, 0,
                                0);
}

/* What a cache may keep. */
static uint64_t pool_cache_bytes_for(const struct pool *pool)
{
  uint64_t share = backing_bytes(&pool->backing) / CACHE_SHARE / (pool->caches.count + 1);
  return share > CACHE_LEAST_BYTES ? share : CACHE_LEAST_BYTES;
}

/* The thread's cache for the stream, after making room for the block in it; NULL if it is not for a cache. */
static struct cache *pool_cache_for(struct pool *pool, uint32_t id, hipStream_t handle, uint32_t stream)
{
  const struct streams *streams = &pool->heap.streams;
  if (block_of(&pool->heap.blocks, id)->bytes > CACHE_BLOCK_BYTES) return NULL;
  if (streams->record == RECORD_ON_FREE || !stream_is_sure(streams, stream)) return NULL;
  struct cache *cache = cache_new(&pool->caches, &pool->heap, handle, stream);
  if (!cache) return NULL;
  cache->most_bytes = pool_cache_bytes_for(pool);
  cache_make_room(cache, &pool->heap, id);
  return cache;
}

static enum hipmm_status pool_deallocate_locked(struct pool *pool, const struct cache *known, uint32_t id,
                                                uint64_t requested, hipStream_t handle)
{
  uint32_t stream;
  if (!known) known = cache_find(&pool->caches, handle);
  enum hipmm_status status = pool_enter_stream(pool, known, handle, &stream);
  if (status) return status;
  struct cache *cache = pool_cache_for(pool, id, handle, stream);
  if (!cache || !cache_add(cache, &pool->heap.blocks, handle, id, requested)) heap_free(&pool->heap, id, stream);
  return HIPMM_OK;
}

/* The block is claimed. Should it not be possible to free it, it is live again. */
static __attribute__((noinline)) enum hipmm_status pool_deallocate_slowly(struct pool *pool, const struct cache *cache,
                                                                          uint32_t id, uint64_t requested,
                                                                          hipStream_t stream)
{
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (!status) {
    status = pool_deallocate_locked(pool, cache, id, requested, stream);
    biased_lock_release(&pool->lock);
  }
  if (status) block_set_state(block_of(&pool->heap.blocks, id), BLOCK_LIVE);
  return status;
}

static __attribute__((noinline)) enum hipmm_status pool_refuse_size(const struct pool *pool, const void *ptr,
                                                                    size_t bytes, uint64_t requested)
{
  return pool->services->refuse(pool->services, HIPMM_E_SIZE,
                                "{0:hex} was allocated with {1} bytes and cannot be freed with {2}", (uintptr_t)ptr,
                                requested, bytes);
}

enum hipmm_status pool_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream)
{
  struct pool *pool = self;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  uint32_t id = block_at(&pool->heap.blocks, ptr, bytes);
  if (!id) return pool_refuse_pointer(pool, ptr);
  struct block *block = block_of(&pool->heap.blocks, id);
  if (!block_claim(block)) return pool_refuse_pointer(pool, ptr);
  uint64_t requested = block->requested; /* which is ours to read from here on */
  if (bytes && bytes != requested) {
    block_set_state(block, BLOCK_LIVE);
    return pool_refuse_size(pool, ptr, bytes, requested);
  }
  struct cache *cache = cache_of_thread(&pool->caches, stream);
  if (cache && block->bytes <= CACHE_BLOCK_BYTES && cache_free(cache, &pool->heap.blocks, stream, id, requested))
    return HIPMM_OK;
  return pool_deallocate_slowly(pool, cache, id, requested, stream);
}

enum hipmm_status pool_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  const struct pool *pool = self;
  uint32_t id = block_at(&pool->heap.blocks, ptr, 0);
  if (!id) return pool_refuse_pointer(pool, ptr);
  *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, block_of(&pool->heap.blocks, id)->requested};
  return HIPMM_OK;
}

/* What is mapped is no block of the upstream's. */
int pool_covers(void *self, const void *ptr)
{
  struct pool *pool = self;
  if (pool->backing.mapped || biased_lock_enter(&pool->lock, pool->services)) return 0;
  bool covers = segments_hold(&pool->backing.segments, ptr);
  biased_lock_release(&pool->lock);
  return covers;
}

/* ---- Giving back ---- */

enum hipmm_status pool_trim(void *self, size_t keep_bytes)
{
  struct pool *pool = self;
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  caches_flush(&pool->caches, &pool->heap);
  status = pool_synchronize_device(pool, STREAM_READY);
  if (!status) status = backing_release_idle(&pool->backing, &pool->heap, keep_bytes);
  blocks_trim(&pool->heap.blocks);
  biased_lock_release(&pool->lock);
  return status;
}

/* The stream is still valid: waiting for it frees its blocks of it for ever. */
void pool_stream_retire(void *self, hipStream_t stream)
{
  struct pool *pool = self;
  if (biased_lock_enter(&pool->lock, pool->services)) return;
  uint32_t id = streams_known_id(&pool->heap.streams, stream);
  if (id && (streams_wait_for_handle(pool->services, stream) || !pool_synchronize_device(pool, id)))
    pool_forget_stream(pool, id);
  else if (id)
    pool_lose_stream(pool, id);
  biased_lock_release(&pool->lock);
}

void pool_stream_retain(void *self, hipStream_t stream)
{
  struct pool *pool = self;
  uint32_t id;
  if (biased_lock_enter(&pool->lock, pool->services)) return;
  if (!pool_find_stream(pool, stream, &id)) stream_of(&pool->heap.streams, id)->lasts = true;
  biased_lock_release(&pool->lock);
}

void pool_thread_ended(struct thread_watch *watch, uint64_t thread)
{
  struct pool *pool = (struct pool *)((char *)watch - offsetof(struct pool, threads));
  biased_lock_disown(&pool->lock);
  if (!biased_lock_try(&pool->lock)) {
    caches_abandon(&pool->caches, thread);
    return;
  }
  caches_end_thread(&pool->caches, &pool->heap, thread);
  biased_lock_release(&pool->lock);
}
