/* SPDX-License-Identifier: MIT */
/* cache.c: a small hash table of lists by size for each thread and stream. */
#include "cache.h"
#include "threads.h"

enum { MAX_CACHES = 4096 };

static void lock(struct cache *cache)
{
  while (atomic_flag_test_and_set_explicit(&cache->busy, memory_order_acquire)) __builtin_ia32_pause();
}

static void unlock(struct cache *cache)
{
  atomic_flag_clear_explicit(&cache->busy, memory_order_release);
}

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
  lock(cache);
  cache->stream = stream;
  cache->handle = handle;
  cache->thread = thread;
  unlock(cache);
  thread_remember(caches->serial, handle, cache);
  return cache;
}

/* ---- Bins ---- */

/* A size may be in either of two bins, so that two sizes in turn seldom push each other out. */
static struct cache_bin *bins_of(struct cache *cache, uint64_t units)
{
  return &cache->bins[(uint32_t)units * 2654435769u >> 25 << 1];
}

static struct cache_bin *bin_of(struct cache *cache, uint64_t units)
{
  struct cache_bin *bins = bins_of(cache, units);
  return bins[0].units == units ? &bins[0] : bins[1].units == units ? &bins[1] : NULL;
}

/* The bin of the size, or one of its two that is empty; NULL if other sizes fill both. */
static struct cache_bin *bin_for(struct cache *cache, uint64_t units)
{
  struct cache_bin *bin = bin_of(cache, units), *bins = bins_of(cache, units);
  if (bin) return bin;
  bin = !bins[0].head ? &bins[0] : !bins[1].head ? &bins[1] : NULL;
  if (bin) bin->units = (uint32_t)units;
  return bin;
}

uint32_t cache_take(struct cache *cache, struct blocks *blocks, hipStream_t handle, uint64_t units, uint64_t requested)
{
  lock(cache);
  struct cache_bin *bin = cache->handle == handle ? bin_of(cache, units) : NULL;
  uint32_t id = bin ? bin->head : BLOCK_NONE;
  if (id) {
    struct block *block = block_of(blocks, id);
    bin->head = block->next;
    block->requested = requested;
    block_set_state(block, BLOCK_LIVE);
    cache->bytes -= block->bytes;
    cache->requested += (int64_t)requested;
    cache->live++;
  }
  unlock(cache);
  return id;
}

bool cache_keep(struct cache *cache, struct blocks *blocks, hipStream_t handle, uint32_t id, uint64_t requested)
{
  struct block *block = block_of(blocks, id);
  bool kept = false;
  lock(cache);
  if (cache->stream && cache->handle == handle && cache->bytes + block->bytes <= cache->most_bytes) {
    struct cache_bin *bin = bin_for(cache, block->bytes >> UNIT_BITS);
    kept = bin != NULL;
    if (kept) {
      block->next = bin->head;
      bin->head = id;
      cache->bytes += block->bytes;
      cache->requested -= (int64_t)requested;
      block->requested = 0; /* for the heap, which will take it off its own count */
      cache->live--;
    }
  }
  unlock(cache);
  return kept;
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
  lock(cache);
  if (cache->bytes + bytes > cache->most_bytes) shrink_locked(cache, heap, cache->most_bytes - bytes);
  if (!bin_for(cache, bytes >> UNIT_BITS)) empty_bin(cache, heap, bins_of(cache, bytes >> UNIT_BITS));
  unlock(cache);
}

bool caches_empty(struct caches *caches, struct heap *heap)
{
  bool any = false;
  for (uint32_t i = 0; i < caches->count; i++) {
    lock(&caches->items[i]);
    any |= caches->items[i].bytes != 0;
    shrink_locked(&caches->items[i], heap, 0);
    unlock(&caches->items[i]);
  }
  return any;
}

/* Only its counts stay, which belong to the pool's totals. */
static void end(struct cache *cache, struct heap *heap)
{
  lock(cache);
  shrink_locked(cache, heap, 0);
  cache->stream = STREAM_CLEAN;
  unlock(cache);
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
    lock(cache);
    totals.bytes += cache->bytes;
    totals.requested += cache->requested;
    totals.live += cache->live;
    unlock(cache);
  }
  return totals;
}
