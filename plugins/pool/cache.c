/* SPDX-License-Identifier: MIT */
/* cache.c: finds, makes and flushes caches. Each has lists by size, for one thread and stream. */
#include "cache.h"

bool caches_open(struct caches *caches, const struct hipmm_services *services)
{
  asymmetric_fence_prepare();
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

/* A thread has finished with its cache before others see that it is abandoned. */
static bool cache_is_abandoned(const struct cache *cache)
{
  return __atomic_load_n(&cache->is_abandoned, __ATOMIC_ACQUIRE);
}

static uint64_t cache_thread_of(const struct cache *cache)
{
  return __atomic_load_n(&cache->thread, __ATOMIC_RELAXED);
}

static void cache_set_thread(struct cache *cache, uint64_t thread)
{
  __atomic_store_n(&cache->thread, thread, __ATOMIC_RELAXED);
}

/* ---- Finding ---- */

static uint16_t *caches_used_chain(const struct caches *caches, uint64_t thread, hipmm_stream_t handle)
{
  uint64_t key = ((uint64_t)(uintptr_t)handle >> 4 ^ thread << 32) * 0x9E3779B97F4A7C15ull;
  return &caches->index->used[(key >> 40) % USED_CHAINS];
}

static uint16_t *caches_unused_chain(const struct caches *caches, uint64_t thread)
{
  return &caches->index->unused[thread % UNUSED_CHAINS];
}

static uint16_t *caches_chain_of(const struct caches *caches, const struct cache *cache)
{
  return cache->stream ? caches_used_chain(caches, cache->thread, cache->handle)
                       : caches_unused_chain(caches, cache->thread);
}

static void cache_link(struct caches *caches, struct cache *cache)
{
  uint16_t *first = caches_chain_of(caches, cache);
  cache->next = *first;
  *first = (uint16_t)(cache - caches->items + 1);
}

static void cache_unlink(struct caches *caches, struct cache *cache)
{
  uint16_t *link = caches_chain_of(caches, cache);
  while (&caches->items[*link - 1] != cache) link = &caches->items[*link - 1].next;
  *link = cache->next;
}

struct cache *cache_find(struct caches *caches, hipmm_stream_t handle)
{
  uint64_t thread = thread_number();
  for (uint16_t at = *caches_used_chain(caches, thread, handle); at; at = caches->items[at - 1].next) {
    struct cache *cache = &caches->items[at - 1];
    if (cache->thread != thread || cache->handle != handle || cache_is_abandoned(cache)) continue;
    thread_remember(caches->serial, handle, cache);
    return cache;
  }
  return NULL;
}

/* Unlinks a cache of the thread (0: of none) that is not in use; NULL if there is none. */
static struct cache *caches_unlink_unused(struct caches *caches, uint64_t thread)
{
  for (uint16_t at = *caches_unused_chain(caches, thread); at; at = caches->items[at - 1].next) {
    struct cache *cache = &caches->items[at - 1];
    if (cache->thread != thread) continue;
    cache_unlink(caches, cache);
    return cache;
  }
  return NULL;
}

/* ---- Flushing ---- */

static void cache_flush_bin(struct cache *cache, struct heap *heap, uint32_t *bin)
{
  for (uint32_t id = *bin, next; id; id = next) {
    next = block_of(&heap->blocks, id)->next;
    cache_set_bytes(cache, cache->bytes - block_of(&heap->blocks, id)->bytes);
    cache->live++; /* heap_free() subtracts it from the heap's count */
    heap_free(heap, id, cache->stream);
  }
  *bin = BLOCK_NONE;
}

/* Flushes bins in turn, those of larger blocks first, until at most `bytes` are left. In the other order cupy_frames needs
 * 1.0591 times what it requests at most, not 1.0570 (doc/performance.md). */
static void cache_flush_to(struct cache *cache, struct heap *heap, uint64_t bytes)
{
  while (cache->bytes > bytes)
    cache_flush_bin(cache, heap, &cache->bins[CACHE_BINS - 1 - cache->next_bin++ % CACHE_BINS]);
}

/* ---- Making ---- */

/* Flushes abandoned caches, which are then not in use. */
static void caches_reclaim_abandoned(struct caches *caches, struct heap *heap)
{
  if (!__atomic_exchange_n(&caches->any_is_abandoned, false, __ATOMIC_ACQ_REL)) return;
  for (struct cache *cache = caches->items; cache < caches->items + caches->count; cache++) {
    if (!cache_is_abandoned(cache)) continue;
    cache_flush_to(cache, heap, 0);
    cache_unlink(caches, cache);
    cache->stream = STREAM_READY;
    cache_set_thread(cache, 0);
    __atomic_store_n(&cache->is_abandoned, false, __ATOMIC_RELAXED);
    cache_link(caches, cache);
  }
}

static struct cache *caches_append(struct caches *caches)
{
  if (caches->count == MAX_CACHES) return NULL;
  __atomic_store_n(&caches->count, caches->count + 1, __ATOMIC_RELAXED);
  return &caches->items[caches->count - 1];
}

/* One more cache for a thread and a stream; NULL if there are too many. */
static struct cache *caches_make(struct caches *caches, uint64_t thread, hipmm_stream_t handle, uint32_t stream)
{
  struct cache *cache = caches_unlink_unused(caches, thread);
  if (!cache) cache = caches_unlink_unused(caches, 0);
  if (!cache) cache = caches_append(caches);
  if (!cache) return NULL;
  cache->stream = stream;
  cache->handle = handle;
  cache->wants_heap = cache->has_heap = false;
  cache->n_waits = 0;
  cache_set_thread(cache, thread);
  cache_link(caches, cache);
  return cache;
}

struct cache *cache_new(struct caches *caches, struct heap *heap, hipmm_stream_t handle, uint32_t stream)
{
  uint64_t thread = thread_number();
  if (!thread_register()) return NULL;
  struct cache *cache = cache_find(caches, handle);
  if (cache) {
    cache->stream = stream;
    return cache;
  }
  caches_reclaim_abandoned(caches, heap);
  cache = caches_make(caches, thread, handle, stream);
  if (cache) thread_remember(caches->serial, handle, cache);
  return cache;
}

/* ---- Depots ---- */

/* The next depot of the cache's stream after `depot`, or the first for NULL; NULL at the end. */
static struct cache *caches_next_depot(const struct caches *caches, const struct cache *cache,
                                       const struct cache *depot)
{
  hipmm_stream_t handle = stream_canonical_handle(cache->handle);
  uint16_t at = depot ? depot->next : *caches_used_chain(caches, DEPOT_THREAD, handle);
  for (; at; at = caches->items[at - 1].next)
    if (caches->items[at - 1].thread == DEPOT_THREAD && caches->items[at - 1].stream == cache->stream)
      return &caches->items[at - 1];
  return NULL;
}

/* Exchanges the blocks of the two. */
static void cache_exchange(struct caches *caches, struct cache *cache, struct cache *depot)
{
  uint64_t bytes = cache->bytes;
  caches->any_is_depot = true;
  cache_set_bytes(cache, depot->bytes);
  cache_set_bytes(depot, bytes);
  for (uint32_t units = 1; units < CACHE_BINS; units++) {
    uint32_t first = cache->bins[units];
    cache->bins[units] = depot->bins[units];
    depot->bins[units] = first;
    if (first) caches->index->in_depots[cache->stream] |= 1u << units;
  }
}

bool cache_fill(struct caches *caches, struct cache *cache, uint64_t units)
{
  uint32_t *in_depots = &caches->index->in_depots[cache->stream];
  if (!(*in_depots >> units & 1)) return false;
  for (struct cache *depot = NULL; (depot = caches_next_depot(caches, cache, depot));) {
    if (!depot->bins[units]) continue;
    cache_exchange(caches, cache, depot);
    return true;
  }
  *in_depots &= ~(1u << units);
  return false;
}

/* A depot of the cache's stream that has little; a new one while there are few for the caches of other threads, and threads can
 * still get caches. */
static struct cache *caches_find_depot(struct caches *caches, const struct cache *cache)
{
  uint32_t n_depots = 0, n_others = 0;
  for (struct cache *depot = NULL; (depot = caches_next_depot(caches, cache, depot)); n_depots++)
    if (depot->bytes < cache->most_bytes / 4) return depot;
  for (const struct cache *other = caches->items; other < caches->items + caches->count; other++)
    n_others += other->stream == cache->stream && other != cache && other->thread != DEPOT_THREAD;
  if (n_depots >= 4 * n_others || caches->count >= MAX_CACHES / 2) return NULL;
  return caches_make(caches, DEPOT_THREAD, stream_canonical_handle(cache->handle), cache->stream);
}

void cache_make_room(struct caches *caches, struct cache *cache, struct heap *heap, uint64_t bytes)
{
  if (cache->bytes + bytes <= cache->most_bytes) return;
  struct cache *depot = caches_find_depot(caches, cache);
  if (depot) cache_exchange(caches, cache, depot);
  if (cache->bytes + bytes > cache->most_bytes) cache_flush_to(cache, heap, cache->most_bytes - bytes);
}

/* ---- Several ---- */

/* Which caches to visit: those of a stream, those of a thread and all depots, those with blocks, or all. Other threads' caches are
 * visited only once the gates are shut. */
struct selection {
  uint64_t self; /* the calling thread's number */
  uint32_t stream;
  uint64_t thread;
  bool has_blocks;
  bool gates_are_shut;
};

static bool cache_is_selected(const struct cache *cache, const struct selection *selection)
{
  if (selection->stream) return cache->stream == selection->stream;
  uint64_t thread = cache_thread_of(cache);
  if (selection->thread) return thread == selection->thread || thread == DEPOT_THREAD;
  return !selection->has_blocks || cache_bytes(cache);
}

static bool cache_is_foreign(const struct cache *cache, const struct selection *selection)
{
  uint64_t thread = cache_thread_of(cache);
  return thread && thread != DEPOT_THREAD && thread != selection->self && !cache_is_abandoned(cache);
}

/* Gives the caller the selected caches until caches_open_gates(): shuts all gates if another thread owns any of them. */
static void caches_shut_gates(struct caches *caches, struct selection *selection)
{
  selection->self = thread_number();
  for (uint32_t i = 0; i < caches->count; i++)
    selection->gates_are_shut |=
        cache_is_foreign(&caches->items[i], selection) && cache_is_selected(&caches->items[i], selection);
  if (!selection->gates_are_shut) return;
  for (uint32_t i = 0; i < caches->count; i++) gate_shut(&caches->items[i].gate);
  asymmetric_fence_heavy();
  for (uint32_t i = 0; i < caches->count; i++)
    if (cache_is_foreign(&caches->items[i], selection)) gate_await(&caches->items[i].gate);
}

static void caches_open_gates(struct caches *caches, const struct selection *selection)
{
  for (uint32_t i = 0; selection->gates_are_shut && i < caches->count; i++) gate_open(&caches->items[i].gate);
}

/* The next selected cache after `cache`, or the first for NULL; NULL at the end. */
static struct cache *caches_next_selected(const struct caches *caches, struct cache *cache,
                                          const struct selection *selection)
{
  for (cache = cache ? cache + 1 : caches->items; cache < caches->items + caches->count; cache++)
    if ((selection->gates_are_shut || !cache_is_foreign(cache, selection)) && cache_is_selected(cache, selection))
      return cache;
  return NULL;
}

bool caches_flush(struct caches *caches, struct heap *heap)
{
  struct selection selection = {.has_blocks = true};
  bool any = false;
  caches_shut_gates(caches, &selection);
  for (struct cache *cache = NULL; (cache = caches_next_selected(caches, cache, &selection)); any = true)
    cache_flush_to(cache, heap, 0);
  caches_open_gates(caches, &selection);
  return any;
}

/* Their counts remain, which are part of the pool's totals. */
static void caches_end(struct caches *caches, struct heap *heap, struct selection *selection)
{
  caches_shut_gates(caches, selection);
  for (struct cache *cache = NULL; (cache = caches_next_selected(caches, cache, selection));) {
    cache_flush_to(cache, heap, 0);
    cache_unlink(caches, cache);
    cache->stream = STREAM_READY;
    if (selection->thread) cache_set_thread(cache, 0);
    cache_link(caches, cache);
  }
  caches_open_gates(caches, selection);
}

void caches_end_stream(struct caches *caches, struct heap *heap, uint32_t stream)
{
  struct selection selection = {.stream = stream};
  caches_end(caches, heap, &selection);
}

void caches_end_thread(struct caches *caches, struct heap *heap, uint64_t thread)
{
  struct selection selection = {.thread = thread};
  caches_end(caches, heap, &selection);
}

/* The thread has appended its caches itself, so that it finds them below the count. */
void caches_abandon(struct caches *caches, uint64_t thread)
{
  uint32_t count = __atomic_load_n(&caches->count, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < count; i++)
    if (cache_thread_of(&caches->items[i]) == thread)
      __atomic_store_n(&caches->items[i].is_abandoned, true, __ATOMIC_RELEASE);
  __atomic_store_n(&caches->any_is_abandoned, true, __ATOMIC_RELEASE);
}

struct cache_totals caches_totals(struct caches *caches)
{
  struct selection all = {0};
  struct cache_totals totals = {0};
  caches_shut_gates(caches, &all);
  for (const struct cache *cache = caches->items; cache < caches->items + caches->count; cache++) {
    totals.bytes += cache->bytes;
    totals.requested += cache->requested;
    totals.live += cache->live;
  }
  caches_open_gates(caches, &all);
  return totals;
}

void caches_pause(struct caches *caches, struct heap *heap)
{
  struct selection all = {0};
  caches_shut_gates(caches, &all);
  for (const struct cache *cache = caches->items; cache < caches->items + caches->count; cache++)
    for (uint32_t bin = 0; bin < CACHE_BINS; bin++)
      for (uint32_t id = cache->bins[bin]; id; id = block_of(&heap->blocks, id)->next)
        block_of(&heap->blocks, id)->stream = (uint16_t)cache->stream;
}

void caches_resume(struct caches *caches)
{
  const struct selection all = {.gates_are_shut = true};
  caches_open_gates(caches, &all);
}

/* ---- Threads that wait ---- */

/* A wait costs as much as many entries without one. A thread gets a local arena once it has waited in more than about one of
 * WAIT_WEIGHT entries for a while. */
enum { WAIT_WEIGHT = 64, WAITED_ENOUGH = 32 * WAIT_WEIGHT };

void cache_weigh(struct cache *cache, bool waited)
{
  if (cache->has_heap) return;
  if (waited)
    cache->n_waits += WAIT_WEIGHT;
  else if (cache->n_waits)
    cache->n_waits--;
  if (cache->n_waits > WAITED_ENOUGH) cache->wants_heap = true;
}
