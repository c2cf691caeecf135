/* SPDX-License-Identifier: MIT */
/* thread_heaps.h: heaps for threads that wait for the pool's lock. A thread that has waited for more than a small share of
 * its time gets blocks of up to THREAD_HEAPS_MOST_BYTES from an arena, in which each thread and stream has memory of its own. The arena is the
 * one of the type `arena`, with the pool as its upstream: what it holds is lent by the heap. It is made when the first
 * thread needs it. The arena's locks are taken before the pool's: no function here is called with the pool's lock held,
 * unless stated. */
#ifndef HIPMM_PLUGINS_POOL_THREAD_HEAPS_H
#define HIPMM_PLUGINS_POOL_THREAD_HEAPS_H

#include "../arena/options.h"
#include "cache.h"

#include <pthread.h>

struct thread_heaps {
  _Atomic(void *) arena;           /* NULL: none yet */
  struct hipmm_resource upstream;  /* of the arena: the pool */
  struct arena_options options;    /* of the arena, which may keep a pointer to them */
  pthread_mutex_t making;          /* held while the arena is made */
  uint64_t loan_bytes, loan_count; /* live blocks of the heap that the arena holds. Under the pool's lock */
};

/* Of a block. Of *random*, one block in 75 is larger than 1 MiB, and one in 360 larger than this: with sixteen threads, the
 * larger ones alone made them wait for each other. */
enum { THREAD_HEAPS_MOST_BYTES = 4 << 20 };

/* `upstream` serves the arena: it lends blocks. `record` is the pool's. */
void thread_heaps_open(struct thread_heaps *heaps, struct hipmm_resource upstream, uint32_t record);

/* Destroys the arena, which gives everything back. Before the pool is destroyed. */
void thread_heaps_close(struct thread_heaps *heaps);

/* Counts an entry of the cache's owner into the pool's lock, which is held: whether the thread had to wait. */
void thread_heaps_weigh(struct cache *cache, bool waited);

static inline void thread_heaps_count_entry(struct cache *cache, bool waited)
{
  if (__builtin_expect(waited || cache->n_waits, 0)) thread_heaps_weigh(cache, waited);
}

/* Gives the calling thread, whose cache has waited enough, a heap for its stream. Nothing is done if that fails. */
void thread_heaps_admit(struct thread_heaps *heaps, const struct hipmm_services *services, struct cache *cache,
                        hipmm_stream_t handle);

/* The arena, for calls of its ops; NULL if there is none. */
static inline void *thread_heaps_arena(struct thread_heaps *heaps)
{
  return atomic_load_explicit(&heaps->arena, memory_order_acquire);
}

static inline const struct hipmm_ops *thread_heaps_ops(void)
{
  return arena_LTX_hipmm_plugin.ops;
}

/* The heaps give back what is idle. */
static inline enum hipmm_status thread_heaps_trim(struct thread_heaps *heaps)
{
  void *arena = thread_heaps_arena(heaps);
  return arena ? thread_heaps_ops()->trim(arena, 0) : HIPMM_OK;
}

/* A value of the arena; 0 if there is none. */
int64_t thread_heaps_value(struct thread_heaps *heaps, const char *name);

#endif
