/* SPDX-License-Identifier: MIT */
/* cache.c: a small hash table of lists by size for each thread and stream. */
#include "cache.h"
#include "threads.h"

enum { MAX_CACHES = 4096 };

bool caches_open(struct caches *caches, const struct hipmm_services *services)
{
  static atomic_uint_fast64_t last_serial;
  *caches = (struct caches){.services = services, .serial = atomic_fetch_add(&last_serial, 1) + 1};
  caches->items = services->host_allocate(services, MAX_CACHES * sizeof *caches->items);
  return caches->items != NULL;
}

void caches_close(struct caches *caches)
{
  caches->services->host_free(caches->services, caches->items, MAX_CACHES * sizeof *caches->items);
}

static struct cache *find(struct caches *caches, uint64_t thread, hipStream_t handle)
{
  struct cache *unused = NULL;
  for (uint32_t i = 0; i < caches->count; i++) {
    struct cache *cache = &caches->items[i];
    if (cache->stream && cache->thread == thread && cache->handle == handle) return cache;
    if (!cache->stream && (!cache->thread || cache->thread == thread)) unused = cache;
  }
  if (unused) return unused;
  return caches->count < MAX_CACHES ? &caches->items[caches->count++] : NULL;
}

struct cache *cache_new(struct caches *caches, hipStream_t handle, uint32_t stream)
{
  uint64_t thread = thread_number();
  struct cache *cache = find(caches, thread, handle);
  if (!cache) return NULL;
  cache_lock(cache);
  cache->stream = stream;
  cache->handle = handle;
  cache->thread = thread;
  cache_unlock(cache);
  thread_remember(caches->serial, handle, cache);
  return cache;
}

/* ---- Emptying ---- */

static void empty_bin(struct cache *cache, struct heap *heap, struct cache_bin *bin)
{
  for (uint32_t id = bin->head, next; id; id = next) {
    next = block_of(&heap->blocks, id)->next;
    cache->bytes -= block_of(&heap->blocks, id)->bytes;
    cache->live++; /* the heap takes it off its own count */
    heap_give(heap, id, cache->stream);
  }
  bin->head = BLOCK_NONE;
}

/* Empties bins in turn until no more than `bytes` are kept. */
static void shrink_locked(struct cache *cache, struct heap *heap, uint64_t bytes)
{
  while (cache->bytes > bytes) empty_bin(cache, heap, &cache->bins[cache->next_bin++ % CACHE_BINS]);
}

void cache_make_room(struct cache *cache, struct heap *heap, uint32_t id)
{
  uint64_t bytes = block_of(&heap->blocks, id)->bytes;
  cache_lock(cache);
  if (cache->bytes + bytes > cache->most_bytes) shrink_locked(cache, heap, cache->most_bytes - bytes);
  if (!cache_bin_for(cache, bytes >> UNIT_BITS)) empty_bin(cache, heap, cache_bins_of(cache, bytes >> UNIT_BITS));
  cache_unlock(cache);
}

bool caches_empty(struct caches *caches, struct heap *heap)
{
  bool any = false;
  for (uint32_t i = 0; i < caches->count; i++) {
    cache_lock(&caches->items[i]);
    any |= caches->items[i].bytes != 0;
    shrink_locked(&caches->items[i], heap, 0);
    cache_unlock(&caches->items[i]);
  }
  return any;
}

/* Only its counts stay, which belong to the pool's totals. */
static void end(struct cache *cache, struct heap *heap)
{
  cache_lock(cache);
  shrink_locked(cache, heap, 0);
  cache->stream = STREAM_CLEAN;
  cache_unlock(cache);
}

void caches_end_stream(struct caches *caches, struct heap *heap, uint32_t stream)
{
  for (uint32_t i = 0; i < caches->count; i++)
    if (caches->items[i].stream == stream) end(&caches->items[i], heap);
}

void caches_end_thread(struct caches *caches, struct heap *heap, uint64_t thread)
{
  for (uint32_t i = 0; i < caches->count; i++)
    if (caches->items[i].thread == thread) {
      end(&caches->items[i], heap);
      caches->items[i].thread = 0;
    }
}

struct cache_totals caches_totals(const struct caches *caches)
{
  struct cache_totals totals = {0};
  for (uint32_t i = 0; i < caches->count; i++) {
    struct cache *cache = &caches->items[i];
    cache_lock(cache);
    totals.bytes += cache->bytes;
    totals.requested += cache->requested;
    totals.live += cache->live;
    cache_unlock(cache);
  }
  return totals;
}
