/* SPDX-License-Identifier: MIT */
/* miss.c: an allocation that neither a cache nor a free block that is ready can serve makes the attempts of the table
 * `attempts`, the cheapest first. The first that succeeds ends the search. When every attempt has failed, explain.c says why. */
#include "allocate.h"
#include "backing.h"

/* An allocation while the attempts are made. */
struct miss {
  const struct request *request;
  uint32_t id;              /* BLOCK_NONE: none yet */
  enum hipmm_status status; /* of the last attempt that asked for memory */
  bool is_over;             /* no attempt can succeed */
};

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

static void pool_try_without_event(struct pool *pool, struct miss *miss)
{
  if (!heap_has_without_event(&pool->heap, miss->request->stream, miss->request->bytes)) return;
  if (!pool_synchronize_device(pool, miss->request->stream)) miss->id = heap_allocate_ready(&pool->heap, miss->request);
}

/* What idle memory and new memory together cannot serve moves nothing. */
static void pool_try_move(struct pool *pool, struct miss *miss)
{
  miss->status = backing_check_available(&pool->backing, &pool->heap, miss->request);
  if (!miss->status) miss->status = backing_move(&pool->backing, &pool->heap, miss->request, &miss->id);
}

/* What was passed over for a lower address (heap_allocate_ready()). */
static void pool_try_any(struct pool *pool, struct miss *miss)
{
  if (pool->heap.is_low_on_memory) miss->id = heap_allocate_fit(&pool->heap, KIND_BUSY, miss->request);
}

static void pool_try_grow(struct pool *pool, struct miss *miss)
{
  miss->status = backing_check_available(&pool->backing, &pool->heap, miss->request);
  if (!miss->status) miss->status = backing_grow(&pool->backing, &pool->heap, miss->request, &miss->id);
}

/* Neither the upstream nor the maximum allows more, so idle memory is released first, if that can be enough. If other
 * resources can be asked first, only what is known to be idle. */
static void pool_try_exchange(struct pool *pool, struct miss *miss)
{
  if (!backing_bytes(&pool->backing) || streams_any_captured(&pool->heap.streams, miss->request->stream)) return;
  miss->status = pool_complete(pool, miss->request->stream, miss->status);
  if (!miss->status) miss->status = backing_check_available(&pool->backing, &pool->heap, miss->request);
  if (!miss->status) miss->status = backing_release_idle(&pool->backing, &pool->heap, 0);
  if (!miss->status) miss->status = backing_grow(&pool->backing, &pool->heap, miss->request, &miss->id);
}

/* When an attempt is made: at any time, with several streams, and then with segments only. */
enum need { ALWAYS, SEVERAL_STREAMS, SEVERAL_IN_SEGMENTS };

/* Where a chunk can have one mapping only, `move` waits on the host. While a stream is captured, the host cannot wait for
 * the device: `without_event` and `exchange` do nothing. */
static const struct attempt {
  void (*make)(struct pool *pool, struct miss *miss);
  enum need need;
} attempts[] = {
    /* what it uses, and its price */
    {pool_try_cached, ALWAYS},              /* blocks in the caches of all threads: the caches are empty afterwards */
    {pool_try_completed, SEVERAL_STREAMS},  /* blocks whose work has completed: an event query for each stream */
    {pool_try_waiting, SEVERAL_STREAMS},    /* a block of another stream: the request's stream waits for that stream */
    {pool_try_merged, SEVERAL_IN_SEGMENTS}, /* all free blocks, merged: the stream waits for all others */
    {pool_try_slack, ALWAYS},               /* new memory within the slack (slack.c): driver calls */
    {pool_try_without_event, SEVERAL_STREAMS}, /* blocks of streams that may be gone: the host waits for the device */
    {pool_try_move, ALWAYS},                   /* idle chunks that are mapped elsewhere: driver calls */
    {pool_try_grow, ALWAYS},                   /* new memory: driver calls, and more memory held */
    {pool_try_any, ALWAYS},                    /* any free block, and the next ones pack worse: a search */
    {pool_try_exchange, ALWAYS}, /* new memory in place of all idle memory: the host waits for the device */
};

static bool pool_needs(const struct pool *pool, enum need need)
{
  if (need == SEVERAL_IN_SEGMENTS && pool->backing.ops->moves) return false;
  return need == ALWAYS || pool->heap.streams.active > 1;
}

enum hipmm_status pool_allocate_from_heap(struct pool *pool, const struct request *request, uint32_t *id_out)
{
  struct backing *backing = &pool->backing;
  struct heap *heap = &pool->heap;
  struct miss miss = {.request = request};
  uint64_t held_bytes = backing_bytes(backing);
  for (size_t i = 0; !miss.id && !miss.is_over && i < sizeof attempts / sizeof *attempts; i++) {
    if (pool_needs(pool, attempts[i].need)) attempts[i].make(pool, &miss);
    if (miss.status && !hipmm_is_out_of_memory(miss.status)) miss.is_over = true;
  }
  /* An error, such as that of a capture, concerns new mappings alone. */
  if (!miss.id && miss.status != HIPMM_CALL_AGAIN) pool_try_any(pool, &miss);
  *id_out = miss.id;
  if (miss.id) return HIPMM_OK;
  /* Other users of the upstream may need what the attempts have added in vain. */
  if (backing_bytes(backing) > held_bytes) backing_release_idle(backing, heap, held_bytes);
  return miss.is_over ? miss.status : explain_failure(backing, heap, miss.status, request);
}
