/* SPDX-License-Identifier: MIT */
/* suspend.c: a mapped pool without physical memory. The records of blocks and chunks stay as they are, so that every pointer
 * stays valid: frees work, and memory comes back under the same addresses. The content of allocated blocks is saved in
 * host memory or in a file, or dropped. Idle memory is released first. Blocks that are freed meanwhile get no memory at the
 * resume.
 *
 * On ROCm (vllm#37533; seen up to 7.2), the driver keeps memory that was unmapped and released as long as its range
 * of addresses is reserved. Other libraries free the reservation and reserve the same addresses again. The pool does
 * not: between the two calls another thread's mmap() can get the addresses, and every pointer into them would be
 * lost. Instead, the pool asks the device for its free memory before and after, and warns if the memory did not come
 * back. On ROCm, growth `auto` maps no memory, so that only a graph that asks for mapped memory gets there. */
#include "../../core/base/deadline.h"
#include "allocate.h"

static double suspend_seconds(void)
{
  return 1e-9 * (double)monotonic_ns();
}

static const char *suspend_place(const struct pool *pool)
{
  return pool->save_to == SAVE_TO_FILE ? "a file" : "host memory";
}

/* ---- Physical memory ---- */

/* Another process may use what is exported, so a chunk with an exported block keeps its memory. Of a block that was freed the
 * memory can live on in that process alone. */
static void suspend_find_exported(struct pool *pool)
{
  const struct chunks *chunks = &pool->arena.backing.granules.chunks;
  const struct blocks *blocks = &pool->arena.heap.blocks;
  for (uint32_t id = 1; id < chunks->count; id++) chunk_of(chunks, id)->is_exported = false;
  for (uint32_t id = 1; id < blocks->count; id++) {
    const struct block *block = block_of(blocks, id);
    if (block_state(block) <= BLOCK_FREE || !block->exported) continue;
    uint64_t at = block->start, end = at + block->bytes, begin;
    for (uint32_t chunk; (chunk = chunks_next(chunks, &at, end, &begin));) chunk_of(chunks, chunk)->is_exported = true;
  }
}

/* For all chunks: chunk_suspend() or chunk_resume(), until one fails. */
static enum hipmm_status suspend_each(struct chunks *chunks, enum hipmm_status (*change)(struct chunks *, uint32_t))
{
  enum hipmm_status status = HIPMM_OK;
  for (uint32_t id = 1; id < chunks->count && !status; id++)
    if (chunk_of(chunks, id)->granules) status = change(chunks, id);
  return status;
}

static void suspend_warn_if_kept(const struct pool *pool, size_t free_before)
{
  size_t free_bytes = 0, total_bytes;
  uint64_t away_bytes = pool->arena.backing.granules.chunks.away_bytes;
  if (!slack_query_device(pool->arena.services, &free_bytes, &total_bytes)) return;
  uint64_t freed = free_bytes > free_before ? free_bytes - free_before : 0;
  if (freed < away_bytes / 2)
    pool->arena.services->log(
        pool->arena.services, HIPMM_LOG_WARNING,
        "%llu bytes were given back, and the device has %llu more free: the driver keeps memory, as "
        "ROCm's does, or other programs have taken it",
        (unsigned long long)away_bytes, (unsigned long long)freed);
}

/* Gives all memory back. After a failure the pool has all of it again, unless that fails too: then it is suspended. */
static enum hipmm_status suspend_give_back(struct pool *pool)
{
  struct chunks *chunks = &pool->arena.backing.granules.chunks;
  size_t free_before = 0, total_bytes;
  bool is_known = slack_query_device(chunks->services, &free_before, &total_bytes);
  enum hipmm_status status = suspend_each(chunks, chunk_suspend);
  if (status && !suspend_each(chunks, chunk_resume) && !swapped_out_restore(pool)) return status;
  chunks->is_suspended = true;
  if (is_known && chunks->away_bytes) suspend_warn_if_kept(pool, free_before);
  return HIPMM_OK;
}

/* What became idle while it was suspended needs no memory. Nothing here calls the driver, or fails. */
static void suspend_drop_idle(struct pool *pool, uint32_t id)
{
  struct chunks *chunks = &pool->arena.backing.granules.chunks;
  const struct block *block = block_of(&pool->arena.heap.blocks, id);
  uint64_t at = block->start, end = at + block->bytes, begin;
  for (uint32_t chunk; (chunk = chunks_next(chunks, &at, end, &begin));) {
    if (!block_holds(block, begin, at) || !chunk_of(chunks, chunk)->is_away) continue;
    if (block->is_own)
      own_drop(chunks, &pool->arena.heap, id);
    else if (!idle_detach_chunk(chunks, &pool->arena.heap, chunk, id, true))
      chunk_destroy(chunks, chunk);
  }
}

/* ---- The ops ---- */

/* With the pool's lock. */
static enum hipmm_status suspend_locked(struct pool *pool, enum hipmm_content content)
{
  const struct hipmm_services *services = pool->arena.services;
  struct chunks *chunks = &pool->arena.backing.granules.chunks;
  if (chunks->is_suspended)
    return services->refuse(services, HIPMM_E_STATE, "is suspended already; resume it first", 0, 0, 0);
  if (streams_any_may_be_captured(&pool->arena.heap.streams))
    return services->refuse(services, HIPMM_E_STATE, "a graph is being captured; suspend it after the capture", 0, 0,
                            0);
  double start = suspend_seconds();
  caches_flush(&pool->caches, &pool->arena.heap);
  enum hipmm_status status = arena_collect(&pool->arena, STREAM_READY, HIPMM_OK);
  if (!status) status = backing_release_idle(&pool->arena.backing, &pool->arena.heap, 0);
  if (!status) suspend_find_exported(pool);
  if (content != HIPMM_CONTENT_KEEP)
    swapped_out_release(pool);
  else if (!status)
    status = swapped_out_open(pool);
  double swapped_out = suspend_seconds();
  if (!status) status = suspend_give_back(pool);
  if (status) {
    swapped_out_close(pool);
    return status;
  }
  services->log(services, HIPMM_LOG_INFO,
                "suspended: %llu bytes given back in %.3f s, after %llu bytes were saved in %s in %.3f s",
                (unsigned long long)chunks->away_bytes, suspend_seconds() - swapped_out,
                (unsigned long long)pool->swapped_out.bytes, suspend_place(pool), swapped_out - start);
  return HIPMM_OK;
}

enum hipmm_status pool_suspend(void *self, enum hipmm_content content)
{
  struct pool *pool = self;
  const struct hipmm_services *services = pool->arena.services;
  if (!pool->arena.backing.ops->moves)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, "growth",
                          "the pool has segments, which cannot be given back while blocks in them are allocated; set "
                          "\"growth\": \"mapped\", with the pool directly over a `device` resource");
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, services);
  if (!status) {
    status = suspend_locked(pool, content);
    biased_lock_release(&pool->arena.lock);
  }
  return status;
}

/* With the pool's lock. After a failure everything is as it was before. */
static enum hipmm_status suspend_resume_locked(struct pool *pool)
{
  const struct hipmm_services *services = pool->arena.services;
  struct chunks *chunks = &pool->arena.backing.granules.chunks;
  const struct blocks *blocks = &pool->arena.heap.blocks;
  double start = suspend_seconds();
  caches_flush(&pool->caches, &pool->arena.heap);
  arena_return_all(&pool->arena); /* without a wait for the device: it would end a graph's capture */
  for (uint32_t id = 1; id < blocks->count; id++)
    if (block_is_idle(block_of(blocks, id))) suspend_drop_idle(pool, id);
  uint64_t needed_bytes = chunks->away_bytes;
  enum hipmm_status status = suspend_each(chunks, chunk_resume);
  uint64_t found_bytes = needed_bytes - chunks->away_bytes;
  double obtained = suspend_seconds();
  if (!status) status = swapped_out_restore(pool);
  if (status) {
    services->explain(services, status,
                      "stays suspended, and can be resumed later: of {0:bytes} that are needed, {1:bytes} could be "
                      "obtained",
                      needed_bytes, found_bytes, 0, 0);
    suspend_each(chunks, chunk_suspend);
    return status;
  }
  services->log(services, HIPMM_LOG_INFO,
                "resumed: %llu bytes obtained in %.3f s, %llu bytes restored from %s in %.3f s",
                (unsigned long long)needed_bytes, obtained - start, (unsigned long long)pool->swapped_out.bytes,
                suspend_place(pool), suspend_seconds() - obtained);
  swapped_out_close(pool);
  chunks->is_suspended = false;
  pool->arena.backing.granules.slack.n_uses = 0; /* what the device had free is long ago */
  return HIPMM_OK;
}

enum hipmm_status pool_resume(void *self)
{
  struct pool *pool = self;
  const struct hipmm_services *services = pool->arena.services;
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, services);
  if (!status) {
    status = pool->arena.backing.granules.chunks.is_suspended
                 ? suspend_resume_locked(pool)
                 : services->refuse(services, HIPMM_E_STATE, "is not suspended", 0, 0, 0);
    biased_lock_release(&pool->arena.lock);
  }
  return status;
}
