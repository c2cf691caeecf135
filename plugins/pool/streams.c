/* SPDX-License-Identifier: MIT */
/* streams.c: the streams of the pool: entering, waiting, and their ends; with them trimming and the ends of threads. */
#include "allocate.h"

enum hipmm_status pool_synchronize_device(void *self, uint32_t user)
{
  struct pool *pool = self;
  enum hipmm_status status = streams_wait_for_device(&pool->heap.streams, user);
  if (status) return status;
  heap_complete_all(&pool->heap);
  streams_forget_gone(&pool->heap.streams);
  return HIPMM_OK;
}

enum hipmm_status pool_complete(void *self, uint32_t user, enum hipmm_status status)
{
  struct pool *pool = self;
  if (hipmm_may_wait(pool->services, status)) return pool_synchronize_device(pool, user);
  heap_poll(&pool->heap);
  return HIPMM_OK;
}

/* The work before the stream's frees has completed. */
static void pool_forget_stream(struct pool *pool, uint32_t id)
{
  caches_end_stream(&pool->caches, &pool->heap, id);
  heap_complete_stream(&pool->heap, id);
  stream_forget(&pool->heap.streams, id);
}

/* Finds the stream's id. When the table is full, waits for the device and forgets all streams. */
enum hipmm_status pool_find_stream(struct pool *pool, hipmm_stream_t handle, uint32_t *id_out)
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

/* ---- Releasing ---- */

enum hipmm_status pool_trim(void *self, size_t keep_bytes)
{
  struct pool *pool = self;
  enum hipmm_status status = thread_heaps_trim(&pool->heaps);
  if (!status) status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  caches_flush(&pool->caches, &pool->heap);
  status = pool_complete(pool, STREAM_READY, HIPMM_OK);
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
  void *arena = thread_heaps_arena(&pool->heaps);
  if (arena) thread_heaps_ops()->stream_retire(arena, stream);
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
  void *arena = thread_heaps_arena(&pool->heaps);
  uint32_t id;
  if (arena) thread_heaps_ops()->stream_retain(arena, stream);
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
