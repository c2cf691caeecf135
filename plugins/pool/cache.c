/* SPDX-License-Identifier: MIT */
/* cache.c: a small hash table of lists by size for each thread and stream. */
#include "cache.h"
#include "../common/thread_cache.h"

enum { MAX_CACHES = 4096, USED_CHAINS = 2 * MAX_CACHES, UNUSED_CHAINS = 256 };

/* Chains of caches through `next`: those in use by thread and stream, the others by thread. A cache that is no longer
 * in use is for its own thread alone, which may remember it, until that thread ends. */
struct cache_index {
  uint16_t used[USED_CHAINS], unused[UNUSED_CHAINS];
};

bool caches_open(struct caches *caches, const struct hipmm_services *services)
{
  gates_prepare();
  *caches = (struct caches){.services = services, .serial = thread_new_owner()};
  caches->items = services->host_allocate(services, MAX_CACHES * sizeof *caches->items);
  caches->index = services->host_allocate(services, sizeof *caches->index);
  return caches->items && caches->index;
}

void caches_close(struct caches *caches)
{
  caches->services->host_free(caches->services, caches->items, MAX_CACHES * sizeof *caches->items);
  caches->services->host_free(caches->services, caches->index, sizeof *caches->index);
}

/* A thread that leaves a cache has done with it before others see that it left. */
static bool is_left(const struct cache *cache)
{
  return __atomic_load_n(&cache->is_left, __ATOMIC_ACQUIRE);
}

static uint64_t thread_of(const struct cache *cache)
{
  return __atomic_load_n(&cache->thread, __ATOMIC_RELAXED);
}

static void set_thread(struct cache *cache, uint64_t thread)
{
  __atomic_store_n(&cache->thread, thread, __ATOMIC_RELAXED);
}

/* ---- Finding ---- */

static uint16_t *used_chain(const struct caches *caches, uint64_t thread, hipStream_t handle)
{
  uint64_t key = ((uint64_t)(uintptr_t)handle >> 4 ^ thread << 32) * 0x9E3779B97F4A7C15ull;
  return &caches->index->used[(key >> 40) % USED_CHAINS];
}

static uint16_t *unused_chain(const struct caches *caches, uint64_t thread)
{
  return &caches->index->unused[thread % UNUSED_CHAINS];
}

static uint16_t *chain_of(const struct caches *caches, const struct cache *cache)
{
  return cache->stream ? used_chain(caches, cache->thread, cache->handle) : unused_chain(caches, cache->thread);
}

static void chain(struct caches *caches, struct cache *cache)
{
  uint16_t *first = chain_of(caches, cache);
  cache->next = *first;
  *first = (uint16_t)(cache - caches->items + 1);
}

static void unchain(struct caches *caches, struct cache *cache)
{
  uint16_t *link = chain_of(caches, cache);
  while (&caches->items[*link - 1] != cache) link = &caches->items[*link - 1].next;
  *link = cache->next;
}

struct cache *cache_find(struct caches *caches, hipStream_t handle)
{
  uint64_t thread = thread_number();
  for (uint16_t at = *used_chain(caches, thread, handle); at; at = caches->items[at - 1].next) {
    struct cache *cache = &caches->items[at - 1];
    if (cache->thread != thread || cache->handle != handle || is_left(cache)) continue;
    thread_remember(caches->serial, handle, cache);
    return cache;
  }
  return NULL;
}

/* A cache of the thread (0: of none) that is not in use, which is then in no chain; NULL if there is none. */
static struct cache *take_unused(struct caches *caches, uint64_t thread)
{
  for (uint16_t at = *unused_chain(caches, thread); at; at = caches->items[at - 1].next) {
    struct cache *cache = &caches->items[at - 1];
    if (cache->thread != thread) continue;
    unchain(caches, cache);
    return cache;
  }
  return NULL;
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
  while (cache->bytes > bytes) {
    struct cache_bin *bin = &cache->bins[cache->next_bin++ % CACHE_BINS];
    if (bin->head) empty_bin(cache, heap, bin);
  }
}

void cache_make_room(struct cache *cache, struct heap *heap, uint32_t id)
{
  uint64_t bytes = block_of(&heap->blocks, id)->bytes;
  if (cache->bytes + bytes > cache->most_bytes) shrink(cache, heap, cache->most_bytes - bytes);
  if (!cache_bin_for(cache, bytes >> UNIT_BITS)) empty_bin(cache, heap, cache_bins_of(cache, bytes >> UNIT_BITS));
}

/* ---- Making ---- */

/* Takes the caches of threads that ended in a hurry out of use. */
static void take_left(struct caches *caches, struct heap *heap)
{
  if (!__atomic_exchange_n(&caches->any_is_left, false, __ATOMIC_ACQ_REL)) return;
  for (struct cache *cache = caches->items; cache < caches->items + caches->count; cache++) {
    if (!is_left(cache)) continue;
    shrink(cache, heap, 0);
    unchain(caches, cache);
    cache->stream = STREAM_CLEAN;
    set_thread(cache, 0);
    __atomic_store_n(&cache->is_left, false, __ATOMIC_RELAXED);
    chain(caches, cache);
  }
}

static struct cache *take_next(struct caches *caches)
{
  if (caches->count == MAX_CACHES) return NULL;
  __atomic_store_n(&caches->count, caches->count + 1, __ATOMIC_RELEASE);
  return &caches->items[caches->count - 1];
}

struct cache *cache_new(struct caches *caches, struct heap *heap, hipStream_t handle, uint32_t stream)
{
  uint64_t thread = thread_number();
  if (!thread_attend()) return NULL;
  struct cache *cache = cache_find(caches, handle);
  if (cache) {
    cache->stream = stream;
    return cache;
  }
  take_left(caches, heap);
  cache = take_unused(caches, thread);
  if (!cache) cache = take_unused(caches, 0);
  if (!cache) cache = take_next(caches);
  if (!cache) return NULL;
  cache->stream = stream;
  cache->handle = handle;
  set_thread(cache, thread);
  chain(caches, cache);
  thread_remember(caches->serial, handle, cache);
  return cache;
}

/* ---- Several ---- */

/* Which caches are meant: those of a stream, of a thread, or that keep anything; else all. Other threads' only once the
 * gates are shut. */
struct selection {
  uint64_t self; /* the calling thread's number */
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

static bool is_others(const struct cache *cache, const struct selection *selection)
{
  uint64_t thread = thread_of(cache);
  return thread && thread != selection->self && !is_left(cache);
}

/* Makes the caches that are meant the caller's until open_gates: by shutting all gates, if any of them is another's. */
static void shut_gates(struct caches *caches, struct selection *selection)
{
  selection->self = thread_number();
  for (uint32_t i = 0; i < caches->count; i++)
    selection->gates_are_shut |= is_others(&caches->items[i], selection) && is_meant(&caches->items[i], selection);
  if (!selection->gates_are_shut) return;
  for (uint32_t i = 0; i < caches->count; i++) gate_shut(&caches->items[i].gate);
  gates_agree();
  for (uint32_t i = 0; i < caches->count; i++)
    if (is_others(&caches->items[i], selection)) gate_await(&caches->items[i].gate);
}

static void open_gates(struct caches *caches, const struct selection *selection)
{
  for (uint32_t i = 0; selection->gates_are_shut && i < caches->count; i++) gate_open(&caches->items[i].gate);
}

/* The next cache that is meant after `cache`, or the first for NULL; NULL at the end. */
static struct cache *next_meant(const struct caches *caches, struct cache *cache, const struct selection *selection)
{
  for (cache = cache ? cache + 1 : caches->items; cache < caches->items + caches->count; cache++)
    if ((selection->gates_are_shut || !is_others(cache, selection)) && is_meant(cache, selection)) return cache;
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
    unchain(caches, cache);
    cache->stream = STREAM_CLEAN;
    if (selection->thread) set_thread(cache, 0);
    chain(caches, cache);
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
    if (thread_of(&caches->items[i]) == thread) __atomic_store_n(&caches->items[i].is_left, true, __ATOMIC_RELEASE);
  __atomic_store_n(&caches->any_is_left, true, __ATOMIC_RELEASE);
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
