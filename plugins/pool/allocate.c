/* SPDX-License-Identifier: MIT */
/* allocate.c: how the pool serves an allocation and a free. A hit in the thread's cache is served by pool_allocate() and
 * pool_deallocate() without the lock. An allocation that misses takes the lock and makes the attempts of the table
 * `attempts`, the cheapest first. The first that succeeds ends the search. When every attempt has failed, explain.c says
 * why. */
#include "allocate.h"
#include "explain.h"

/* A cache holds blocks of at most CACHE_BLOCK_BYTES: the price of a search matters to small blocks, and small blocks
 * prevent few merges. In all, a cache holds at most CACHE_LEAST_BYTES, or its part of the share 1/CACHE_SHARE of what
 * the pool holds, whichever is more. */
enum {
  CACHE_BLOCK_BYTES = 4096,
  CACHE_LEAST_BYTES = 1 << 20,
  CACHE_SHARE = 1024,
};

enum { LARGE_BYTES = 1 << 20 }; /* see pool_try_ready() */

static enum hipmm_status pool_synchronize_device(struct pool *pool, uint32_t user)
{
  enum hipmm_status status = streams_wait_for_device(&pool->heap.streams, user);
  if (!status) heap_complete_all(&pool->heap);
  return status;
}

/* ---- Streams ---- */

/* The work before the stream's frees has completed. */
static void pool_forget_stream(struct pool *pool, uint32_t id)
{
  caches_end_stream(&pool->caches, &pool->heap, id);
  heap_complete_stream(&pool->heap, id);
  stream_forget(&pool->heap.streams, id);
}

/* Finds the stream's id. When the table is full, waits for the device and forgets all streams. */
static __attribute__((noinline)) enum hipmm_status pool_find_stream(struct pool *pool, hipmm_stream_t handle,
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
  if (!status) *id_out = id;
  return status;
}

/* The same; the thread's cache for the stream, if there is one, knows the id. */
static inline enum hipmm_status pool_enter_stream(struct pool *pool, const struct cache *cache, hipmm_stream_t handle,
                                                  uint32_t *id_out)
{
  if (!cache || cache->handle != handle || !cache->stream) return pool_find_stream(pool, handle, id_out);
  *id_out = cache->stream;
  return HIPMM_OK;
}

/* ---- Allocating ---- */

/* ---- The attempts ---- */

/* An allocation while the attempts are made. */
struct miss {
  const struct request *request;
  uint32_t id;              /* BLOCK_NONE: none yet */
  enum hipmm_status status; /* of the last attempt that asked for memory */
  bool is_over;             /* no attempt can succeed */
};

static void pool_try_ready(struct pool *pool, struct miss *miss)
{
  struct heap *heap = &pool->heap;
  /* Where a large block goes decides how well the rest packs, and beside the work on so much memory a few event queries
   * cost little: with several streams a large request looks for completed work first, unless there is slack. */
  bool packs = heap->is_short || !pool->backing.mapped;
  if (heap->streams.active > 1 && packs && miss->request->bytes >= LARGE_BYTES) heap_poll(heap);
  miss->id = heap_allocate_ready(heap, miss->request);
}

static void pool_try_cached(struct pool *pool, struct miss *miss)
{
  if (caches_flush(&pool->caches, &pool->heap)) miss->id = heap_allocate_ready(&pool->heap, miss->request);
}

static void pool_try_completed(struct pool *pool, struct miss *miss)
{
  miss->id = heap_allocate_completed(&pool->heap, miss->request);
}

static void pool_try_waiting(struct pool *pool, struct miss *miss)
{
  miss->id = heap_allocate_waiting(&pool->heap, miss->request);
}

static void pool_try_merged(struct pool *pool, struct miss *miss)
{
  miss->id = heap_allocate_merged(&pool->heap, miss->request);
}

/* New memory is of no use without a record for the rest of it. */
static void pool_try_slack(struct pool *pool, struct miss *miss)
{
  miss->is_over = blocks_are_exhausted(&pool->heap.blocks);
  if (miss->is_over)
    miss->status = explain_exhausted_records(&pool->backing, &pool->heap, miss->request);
  else
    miss->status = backing_use_slack(&pool->backing, &pool->heap, miss->request, &miss->id);
}

static void pool_try_unfenced(struct pool *pool, struct miss *miss)
{
  if (!heap_has_unfenced(&pool->heap, miss->request->stream, miss->request->bytes)) return;
  if (!pool_synchronize_device(pool, miss->request->stream)) miss->id = heap_allocate_ready(&pool->heap, miss->request);
}

/* What idle memory and new memory together cannot serve moves nothing. */
static void pool_try_move(struct pool *pool, struct miss *miss)
{
  miss->status = backing_check_available(&pool->backing, &pool->heap, miss->request);
  if (!miss->status) miss->status = backing_move(&pool->backing, &pool->heap, miss->request, &miss->id);
}

static void pool_try_grow(struct pool *pool, struct miss *miss)
{
  miss->status = backing_check_available(&pool->backing, &pool->heap, miss->request);
  if (!miss->status) miss->status = backing_grow(&pool->backing, &pool->heap, miss->request, &miss->id);
}

/* Neither the upstream nor the maximum allows more, so idle memory is released first, if that can be enough. */
static void pool_try_exchange(struct pool *pool, struct miss *miss)
{
  if (!backing_bytes(&pool->backing) || streams_any_captured(&pool->heap.streams, miss->request->stream)) return;
  miss->status = pool_synchronize_device(pool, miss->request->stream);
  if (!miss->status) miss->status = backing_check_available(&pool->backing, &pool->heap, miss->request);
  if (!miss->status) miss->status = backing_release_idle(&pool->backing, &pool->heap, 0);
  if (!miss->status) miss->status = backing_grow(&pool->backing, &pool->heap, miss->request, &miss->id);
}

/* When an attempt is made: at any time, with several streams, and then with segments only. */
enum need { ALWAYS, SEVERAL_STREAMS, SEVERAL_IN_SEGMENTS };

/* Where a chunk can have one mapping only, `move` waits on the host. While a stream is captured, the host cannot wait for
 * the device: `unfenced` and `exchange` do nothing. */
static const struct attempt {
  void (*make)(struct pool *pool, struct miss *miss);
  enum need need;
} attempts[] = {
    /* what it uses, and its price */
    {pool_try_ready, ALWAYS},               /* free blocks of the request's stream, or of none: a search */
    {pool_try_cached, ALWAYS},              /* blocks in the caches of all threads: the caches are empty afterwards */
    {pool_try_completed, SEVERAL_STREAMS},  /* blocks whose work has completed: an event query for each stream */
    {pool_try_waiting, SEVERAL_STREAMS},    /* a block of another stream: the request's stream waits for that stream */
    {pool_try_merged, SEVERAL_IN_SEGMENTS}, /* all free blocks, merged: the stream waits for all others */
    {pool_try_slack, ALWAYS},               /* new memory within the slack (slack.h): driver calls */
    {pool_try_unfenced, SEVERAL_STREAMS},   /* blocks of streams that may be gone: the host waits for the device */
    {pool_try_move, ALWAYS},                /* idle chunks that are mapped elsewhere: driver calls */
    {pool_try_grow, ALWAYS},                /* new memory: driver calls, and more memory held */
    {pool_try_exchange, ALWAYS},            /* new memory in place of all idle memory: the host waits for the device */
};

static bool pool_needs(const struct pool *pool, enum need need)
{
  if (need == SEVERAL_IN_SEGMENTS && pool->backing.mapped) return false;
  return need == ALWAYS || pool->heap.streams.active > 1;
}

static enum hipmm_status pool_allocate_from_heap(struct pool *pool, const struct request *request, uint32_t *id_out)
{
  struct backing *backing = &pool->backing;
  struct heap *heap = &pool->heap;
  struct miss miss = {.request = request};
  uint64_t held_bytes = backing_bytes(backing);
  for (size_t i = 0; !miss.id && !miss.is_over && i < sizeof attempts / sizeof *attempts; i++) {
    if (pool_needs(pool, attempts[i].need)) attempts[i].make(pool, &miss);
    if (miss.status && !hipmm_is_out_of_memory(miss.status)) miss.is_over = true;
  }
  *id_out = miss.id;
  if (miss.id) return HIPMM_OK;
  /* Other users of the upstream may need what the attempts have added in vain. */
  if (backing_bytes(backing) > held_bytes) backing_release_idle(backing, heap, held_bytes);
  return miss.is_over ? miss.status : explain_failure(backing, heap, miss.status, request);
}

/* A thread remembers a few caches only: the block may be in a cache of the thread that it has forgotten. */
static uint32_t pool_allocate_cached(struct pool *pool, struct cache *cache, const struct request *request,
                                     hipmm_stream_t handle)
{
  if (request->bytes > CACHE_BLOCK_BYTES || request->alignment != HIPMM_ALIGNMENT) return BLOCK_NONE;
  return cache_allocate(cache, &pool->heap.blocks, handle, request->bytes >> UNIT_BITS, request->requested);
}

static enum hipmm_status pool_allocate_locked(struct pool *pool, const struct cache *known, struct request *request,
                                              hipmm_stream_t stream, void **ptr_out)
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
  status = pool_allocate_from_heap(pool, request, &id);
  if (status) return status;
  *ptr_out = (void *)(uintptr_t)block_of(&pool->heap.blocks, id)->start;
  return HIPMM_OK;
}

/* Everything that is not a cache hit. */
static __attribute__((noinline)) enum hipmm_status pool_allocate_slowly(struct pool *pool, const struct cache *cache,
                                                                        size_t bytes, size_t alignment,
                                                                        hipmm_stream_t stream, void **ptr_out)
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

enum hipmm_status pool_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
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

/* The thread's cache for the stream, after making room for the block in it; NULL if no cache may hold the block. */
static struct cache *pool_cache_for(struct pool *pool, uint32_t id, hipmm_stream_t handle, uint32_t stream)
{
  const struct streams *streams = &pool->heap.streams;
  if (block_of(&pool->heap.blocks, id)->bytes > CACHE_BLOCK_BYTES) return NULL;
  if (streams->record == RECORD_ON_FREE || !stream_is_sure(streams, stream)) return NULL;
  struct cache *cache = cache_new(&pool->caches, &pool->heap, handle, stream);
  if (!cache) return NULL;
  uint64_t share = backing_bytes(&pool->backing) / CACHE_SHARE / (pool->caches.count + 1);
  cache->most_bytes = share > CACHE_LEAST_BYTES ? share : CACHE_LEAST_BYTES;
  cache_make_room(cache, &pool->heap, id);
  return cache;
}

static enum hipmm_status pool_deallocate_locked(struct pool *pool, const struct cache *known, uint32_t id,
                                                uint64_t requested, hipmm_stream_t handle)
{
  uint32_t stream;
  if (!known) known = cache_find(&pool->caches, handle);
  enum hipmm_status status = pool_enter_stream(pool, known, handle, &stream);
  if (status) return status;
  struct cache *cache = pool_cache_for(pool, id, handle, stream);
  if (!cache || !cache_add(cache, &pool->heap.blocks, handle, id, requested)) heap_free(&pool->heap, id, stream);
  return HIPMM_OK;
}

/* The caller has claimed the block. If the free fails, the block is live again. */
static __attribute__((noinline)) enum hipmm_status pool_deallocate_slowly(struct pool *pool, const struct cache *cache,
                                                                          uint32_t id, uint64_t requested,
                                                                          hipmm_stream_t stream)
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

enum hipmm_status pool_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct pool *pool = self;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  uint32_t id = block_at(&pool->heap.blocks, ptr, bytes);
  if (!id) return pool_refuse_pointer(pool, ptr);
  struct block *block = block_of(&pool->heap.blocks, id);
  if (!block_claim(block)) return pool_refuse_pointer(pool, ptr);
  uint64_t requested = block->requested; /* the claim makes the record this thread's */
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

/* Mapped memory is no block of the upstream. */
int pool_covers(void *self, const void *ptr)
{
  struct pool *pool = self;
  if (pool->backing.mapped || biased_lock_enter(&pool->lock, pool->services)) return 0;
  bool covers = segments_contain(&pool->backing.segments, ptr);
  biased_lock_release(&pool->lock);
  return covers;
}

enum hipmm_status pool_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  struct pool *pool = self;
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  uint32_t id = block_at(&pool->heap.blocks, ptr, 0);
  if (id) {
    const struct block *block = block_of(&pool->heap.blocks, id);
    location_out->usable_bytes = block->bytes;
    location_out->stream = stream_of(&pool->heap.streams, block->stream)->handle;
    location_out->has_stream = block->stream != STREAM_READY;
  }
  biased_lock_release(&pool->lock);
  return id ? HIPMM_OK : pool_refuse_pointer(pool, ptr);
}

/* The chunks of a live block are mapped without a gap. */
enum hipmm_status pool_visit_chunks(void *self, const void *ptr,
                                    void (*visitor)(void *closure, const struct hipmm_chunk *chunk), void *closure)
{
  struct pool *pool = self;
  const struct chunks *chunks = &pool->backing.granules.chunks;
  if (!pool->backing.mapped) return HIPMM_OK;
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  uint32_t id = block_at(&pool->heap.blocks, ptr, 0);
  const struct block *block = block_of(&pool->heap.blocks, id);
  uint64_t at = id ? block->start : 0, end = id ? block->start + block->bytes : 0;
  while (at < end) {
    uint32_t chunk = chunks_at(chunks, chunks_round_down(chunks, at), &at);
    visitor(closure, &(struct hipmm_chunk){chunk_of(chunks, chunk)->handle, (const void *)(uintptr_t)at,
                                           chunk_bytes(chunks, chunk)});
    at += chunk_bytes(chunks, chunk);
  }
  biased_lock_release(&pool->lock);
  return id ? HIPMM_OK : pool_refuse_pointer(pool, ptr);
}

/* ---- Releasing ---- */

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

/* The stream is still valid. After a wait for it, its blocks are ready for every stream. If neither the stream nor the
 * device can be waited for, the stream stays until the device is waited for. */
void pool_stream_retire(void *self, hipmm_stream_t stream)
{
  struct pool *pool = self;
  if (biased_lock_enter(&pool->lock, pool->services)) return;
  uint32_t id = streams_known_id(&pool->heap.streams, stream);
  if (id && (streams_wait_for_handle(pool->services, stream) || !pool_synchronize_device(pool, id))) {
    pool_forget_stream(pool, id);
  } else if (id) {
    caches_end_stream(&pool->caches, &pool->heap, id);
    stream_lose(&pool->heap.streams, id);
  }
  biased_lock_release(&pool->lock);
}

void pool_stream_retain(void *self, hipmm_stream_t stream)
{
  struct pool *pool = self;
  uint32_t id;
  if (biased_lock_enter(&pool->lock, pool->services)) return;
  if (!pool_find_stream(pool, stream, &id)) heap_retain_stream(&pool->heap, id);
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
