/* SPDX-License-Identifier: MIT */
/* cache.c: a small hash table of lists by size for each thread and stream. */
#include "cache.h"
#include "../threads.h"

enum { MAX_CACHES = 4096 };

bool caches_open(struct caches *caches, const struct hipmm_services *services)
{
  gates_prepare();
  *caches = (struct caches){.services = services, .serial = thread_new_owner()};
  caches->items = services->host_allocate(services, MAX_CACHES * sizeof *caches->items);
  return caches->items != NULL;
}

void caches_close(struct caches *caches)
{
  caches->services->host_free(caches->services, caches->items, MAX_CACHES * sizeof *caches->items);
}

/* A thread that leaves a cache has done with it before this is 0 for others. */
static uint64_t thread_of(const struct cache *cache)
{
  return __atomic_load_n(&cache->thread, __ATOMIC_ACQUIRE);
}

static void set_thread(struct cache *cache, uint64_t thread)
{
  __atomic_store_n(&cache->thread, thread, __ATOMIC_RELEASE);
}

/* ---- Emptying ---- */

static void empty_bin(struct cache *cache, struct heap *heap, struct cache_bin *bin)
{
  for (uint32_t id = bin->head, next; id; id = next) {
    next = block_of(&heap->blocks, id)->next;
    cache_set_bytes(cache, cache->bytes - block_of(&heap->blocks, id)->bytes);
    cache->live++; /* the heap takes it off its own count */
    heap_give(heap, id, cache->stream);
  }
  bin->head = BLOCK_NONE;
}

/* Empties bins in turn until no more than `bytes` are kept. */
static void shrink(struct cache *cache, struct heap *heap, uint64_t bytes)
{
  while (cache->bytes > bytes) empty_bin(cache, heap, &cache->bins[cache->next_bin++ % CACHE_BINS]);
}

void cache_make_room(struct cache *cache, struct heap *heap, uint32_t id)
{
  uint64_t bytes = block_of(&heap->blocks, id)->bytes;
  if (cache->bytes + bytes > cache->most_bytes) shrink(cache, heap, cache->most_bytes - bytes);
  if (!cache_bin_for(cache, bytes >> UNIT_BITS)) empty_bin(cache, heap, cache_bins_of(cache, bytes >> UNIT_BITS));
}

/* ---- Making ---- */

/* The thread's cache for the stream, or else one that is nobody's, which may keep blocks still. */
static struct cache *find(struct caches *caches, uint64_t thread, hipStream_t handle)
{
  struct cache *unused = NULL;
  for (uint32_t i = 0; i < caches->count; i++) {
    struct cache *cache = &caches->items[i];
    uint64_t owner = thread_of(cache);
    if (cache->stream && owner == thread && cache->handle == handle) return cache;
    if (!owner || (!cache->stream && owner == thread)) unused = cache;
  }
  if (unused || caches->count == MAX_CACHES) return unused;
  __atomic_store_n(&caches->count, caches->count + 1, __ATOMIC_RELEASE);
  return &caches->items[caches->count - 1];
}

struct cache *cache_new(struct caches *caches, struct heap *heap, hipStream_t handle, uint32_t stream)
{
  uint64_t thread = thread_number();
  struct cache *cache = thread_attend() ? find(caches, thread, handle) : NULL;
  if (!cache) return NULL;
  if (cache->stream && !thread_of(cache)) shrink(cache, heap, 0);
  cache->stream = stream;
  cache->handle = handle;
  set_thread(cache, thread);
  thread_remember(caches->serial, handle, cache);
  return cache;
}

/* ---- Several ---- */

/* Which caches are meant: those of a stream, of a thread, or that keep anything; else all. Other threads' only once the
 * gates are shut. */
struct selection {
  uint32_t stream;
  uint64_t thread;
  bool keeping;
  bool gates_are_shut;
};

static bool is_meant(const struct cache *cache, const struct selection *selection)
{
  if (selection->stream) return cache->stream == selection->stream;
  if (selection->thread) return thread_of(cache) == selection->thread;
  return !selection->keeping || cache_bytes(cache);
}

static bool is_others(const struct cache *cache)
{
  uint64_t thread = thread_of(cache);
  return thread && thread != thread_number();
}

/* Makes the caches that are meant the caller's until open_gates: by shutting all gates, if any of them is another's. */
static void shut_gates(struct caches *caches, struct selection *selection)
{
  for (uint32_t i = 0; i < caches->count; i++)
    selection->gates_are_shut |= is_others(&caches->items[i]) && is_meant(&caches->items[i], selection);
  if (!selection->gates_are_shut) return;
  for (uint32_t i = 0; i < caches->count; i++) gate_shut(&caches->items[i].gate);
  gates_agree();
  for (uint32_t i = 0; i < caches->count; i++)
    if (is_others(&caches->items[i])) gate_await(&caches->items[i].gate);
}

static void open_gates(struct caches *caches, const struct selection *selection)
{
  for (uint32_t i = 0; selection->gates_are_shut && i < caches->count; i++) gate_open(&caches->items[i].gate);
}

/* The next cache that is meant after `cache`, or the first for NULL; NULL at the end. */
static struct cache *next_meant(const struct caches *caches, struct cache *cache, const struct selection *selection)
{
  for (cache = cache ? cache + 1 : caches->items; cache < caches->items + caches->count; cache++)
    if ((selection->gates_are_shut || !is_others(cache)) && is_meant(cache, selection)) return cache;
  return NULL;
}

bool caches_empty(struct caches *caches, struct heap *heap)
{
  struct selection selection = {.keeping = true};
  bool any = false;
  shut_gates(caches, &selection);
  for (struct cache *cache = NULL; (cache = next_meant(caches, cache, &selection)); any = true) shrink(cache, heap, 0);
  open_gates(caches, &selection);
  return any;
}

/* Only their counts stay, which belong to the pool's totals. */
static void end(struct caches *caches, struct heap *heap, struct selection *selection)
{
  shut_gates(caches, selection);
  for (struct cache *cache = NULL; (cache = next_meant(caches, cache, selection));) {
    shrink(cache, heap, 0);
    cache->stream = STREAM_CLEAN;
    if (selection->thread) set_thread(cache, 0);
  }
  open_gates(caches, selection);
}

void caches_end_stream(struct caches *caches, struct heap *heap, uint32_t stream)
{
  struct selection selection = {.stream = stream};
  end(caches, heap, &selection);
}

void caches_end_thread(struct caches *caches, struct heap *heap, uint64_t thread)
{
  struct selection selection = {.thread = thread};
  end(caches, heap, &selection);
}

void caches_leave(struct caches *caches, uint64_t thread)
{
  uint32_t count = __atomic_load_n(&caches->count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; i++)
    if (thread_of(&caches->items[i]) == thread) set_thread(&caches->items[i], 0);
}

struct cache_totals caches_totals(struct caches *caches)
{
  struct selection all = {0};
  struct cache_totals totals = {0};
  shut_gates(caches, &all);
  for (const struct cache *cache = caches->items; cache < caches->items + caches->count; cache++) {
    totals.bytes += cache->bytes;
    totals.requested += cache->requested;
    totals.live += cache->live;
  }
  open_gates(caches, &all);
  return totals;
}

void caches_stop(struct caches *caches, struct heap *heap)
{
  struct selection all = {0};
  shut_gates(caches, &all);
  for (const struct cache *cache = caches->items; cache < caches->items + caches->count; cache++)
    for (uint32_t bin = 0; bin < CACHE_BINS; bin++)
      for (uint32_t id = cache->bins[bin].head; id; id = block_of(&heap->blocks, id)->next)
        block_of(&heap->blocks, id)->stream = (uint16_t)cache->stream;
}

void caches_go_on(struct caches *caches)
{
  const struct selection all = {.gates_are_shut = true};
  open_gates(caches, &all);
}
