/* SPDX-License-Identifier: MIT */
/* thread_heaps.c: decides which threads get a heap, and makes the arena. */
#include "cache.h"

#include <pthread.h>
#include <string.h>

/* A wait costs as much as many entries without one. A thread gets a heap once it has waited in more than about one of
 * WAIT_WEIGHT entries for a while. */
enum { WAIT_WEIGHT = 64, WAITED_ENOUGH = 32 * WAIT_WEIGHT };

void thread_heaps_open(struct thread_heaps *heaps, struct hipmm_resource upstream, uint32_t record)
{
  *heaps = (struct thread_heaps){
      .upstream = upstream,
      .options = {.maximum_size = UINT64_MAX, .record = record, .small_bytes = THREAD_HEAPS_MOST_BYTES}};
  pthread_mutex_init(&heaps->making, NULL);
}

void thread_heaps_close(struct thread_heaps *heaps)
{
  void *arena = thread_heaps_arena(heaps);
  if (arena) arena_LTX_hipmm_plugin.destroy(arena);
  atomic_store(&heaps->arena, NULL);
  pthread_mutex_destroy(&heaps->making);
}

void thread_heaps_weigh(struct cache *cache, bool waited)
{
  if (waited)
    cache->n_waits += WAIT_WEIGHT;
  else
    cache->n_waits--;
  if (cache->n_waits > WAITED_ENOUGH) cache->wants_heap = true;
}

static void *thread_heaps_make(struct thread_heaps *heaps, const struct hipmm_services *services)
{
  struct hipmm_resource *upstream = &heaps->upstream;
  void *arena = thread_heaps_arena(heaps);
  if (arena || pthread_mutex_trylock(&heaps->making)) return arena;
  arena = thread_heaps_arena(heaps);
  if (!arena && !arena_LTX_hipmm_plugin.create(services, &heaps->options, &upstream, 1, &arena)) {
    atomic_store_explicit(&heaps->arena, arena, memory_order_release);
    services->log(services, HIPMM_LOG_DEBUG, "threads wait for each other: they get heaps of their own");
  }
  pthread_mutex_unlock(&heaps->making);
  return arena;
}

/* The arena does not know that the stream lasts, which the cache does. */
void thread_heaps_admit(struct thread_heaps *heaps, const struct hipmm_services *services, struct cache *cache,
                        hipmm_stream_t handle)
{
  void *arena = thread_heaps_make(heaps, services);
  if (arena) thread_heaps_ops()->stream_retain(arena, handle);
  cache->has_heap = arena != NULL;
  cache->wants_heap = false;
  cache->n_waits = 0;
}

int64_t thread_heaps_value(struct thread_heaps *heaps, const char *name)
{
  const struct hipmm_plugin *plugin = &arena_LTX_hipmm_plugin;
  void *arena = thread_heaps_arena(heaps);
  int64_t value = 0;
  for (uint32_t i = 0; arena && i < plugin->n_values; i++)
    if (!strcmp(plugin->values[i].name, name)) plugin->ops->query(arena, i, &value);
  return value;
}
