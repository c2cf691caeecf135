/* SPDX-License-Identifier: MIT */
/* miss.c: an allocation of a pool or arena that no cache and no free block that is ready can serve makes the attempts of the
 * table `attempts`, the cheapest first. The first that succeeds ends the search. */
#include "arena.h"

/* An allocation while the attempts are made. */
struct miss {
  struct arena *arena;
  struct heap *heap;
  const struct backing *backing;
  const struct request *request;
  uint32_t id;              /* BLOCK_NONE: none yet */
  enum hipmm_status status; /* of the last attempt that asked for memory */
  bool is_over;             /* no attempt can succeed */
};

static void miss_try_cached(struct miss *miss)
{
  struct arena *arena = miss->arena;
  if (arena->type->flush && arena->type->flush(arena)) miss->id = heap_allocate_ready(miss->heap, miss->request);
}

static void miss_try_completed(struct miss *miss)
{
  miss->id = heap_allocate_completed(miss->heap, miss->request);
}

static void miss_try_waiting(struct miss *miss)
{
  miss->id = heap_allocate_waiting(miss->heap, miss->request);
}

static void miss_try_merged(struct miss *miss)
{
  if (miss->arena->type->is_merging && !miss->backing->ops->moves)
    miss->id = heap_allocate_merged(miss->heap, miss->request);
}

static void miss_warn_of_growth(const struct miss *miss)
{
  const struct held *held = miss->backing->held;
  if (held->bytes + miss->request->bytes > held->peak_bytes) fragments_warn(miss->backing, miss->heap, miss->request);
}

/* New memory is of no use without a record for the rest of it. */
static void miss_try_slack(struct miss *miss)
{
  if (!miss->backing->ops->moves) miss_warn_of_growth(miss);
  miss->is_over = blocks_are_exhausted(&miss->heap->blocks);
  miss->status =
      miss->is_over ? HIPMM_E_OUT_OF_MEMORY : backing_use_slack(miss->backing, miss->heap, miss->request, &miss->id);
}

static void miss_try_without_event(struct miss *miss)
{
  const struct request *request = miss->request;
  if (!heap_has_without_event(miss->heap, request->stream, request->bytes)) return;
  if (!arena_synchronize(miss->arena, request->stream)) miss->id = heap_allocate_ready(miss->heap, request);
}

/* What idle memory and new memory together cannot serve moves nothing. */
static void miss_try_move(struct miss *miss)
{
  miss->status = backing_check_available(miss->backing, miss->heap, miss->request);
  if (!miss->status) miss->status = backing_move(miss->backing, miss->heap, miss->request, &miss->id);
}

/* What was passed over for a lower address (heap_allocate_ready()). */
static void miss_try_any(struct miss *miss)
{
  if (miss->heap->is_low_on_memory) miss->id = heap_allocate_fit(miss->heap, KIND_BUSY, miss->request);
}

static void miss_try_grow(struct miss *miss)
{
  if (miss->backing->ops->moves) miss_warn_of_growth(miss);
  miss->status = backing_check_available(miss->backing, miss->heap, miss->request);
  if (!miss->status) miss->status = backing_grow(miss->backing, miss->heap, miss->request, &miss->id);
}

/* Neither the upstream nor the maximum allows more, so idle memory is released first, if that can be enough. If other
 * resources can be asked first, only what is known to be idle. */
static void miss_try_exchange(struct miss *miss)
{
  const struct request *request = miss->request;
  if (!backing_bytes(miss->backing) || streams_any_captured(&miss->heap->streams, request->stream)) return;
  miss->status = arena_collect(miss->arena, request->stream, miss->status);
  if (!miss->status && !miss->backing->ops->moves) miss_try_any(miss);
  if (!miss->status && !miss->id) miss->status = backing_check_available(miss->backing, miss->heap, request);
  if (miss->status || miss->id) return;
  miss->status = backing_release_idle(miss->backing, miss->heap, 0);
  if (!miss->status) miss->status = backing_grow(miss->backing, miss->heap, request, &miss->id);
}

/* Where a chunk can have one mapping only, `move` waits on the host. While a stream is captured, the host cannot wait for
 * the device: `without_event` and `exchange` do nothing. */
static const struct attempt {
  void (*make)(struct miss *miss);
  enum stage stage;
  bool is_of_streams; /* is made where there are several */
} attempts[] = {
    /* what it uses, and its price */
    {miss_try_cached, STAGE_HELD, false},   /* blocks in the caches of all threads: the caches are empty afterwards */
    {miss_try_completed, STAGE_HELD, true}, /* blocks whose work has completed: an event query for each stream */
    {miss_try_waiting, STAGE_HELD, true},   /* a block of another stream: the request's stream waits for that stream */
    {miss_try_merged, STAGE_HELD, true},    /* all free blocks, merged: the stream waits for all others */
    {miss_try_slack, STAGE_NEW, false},     /* new memory within the slack (slack.c): driver calls */
    {miss_try_without_event, STAGE_NEW, true}, /* blocks of streams that may be gone: the host waits for the device */
    {miss_try_move, STAGE_NEW, false},         /* idle chunks that are mapped elsewhere: driver calls */
    {miss_try_grow, STAGE_NEW, false},         /* new memory: driver calls, and more memory held */
    {miss_try_any, STAGE_LAST, false},         /* any free block, and the next ones pack worse: a search */
    {miss_try_exchange, STAGE_LAST, false}, /* new memory in place of all idle memory: the host waits for the device */
};

static void miss_run(struct miss *miss, enum stage last)
{
  uint64_t held_bytes = backing_bytes(miss->backing);
  for (const struct attempt *attempt = attempts; attempt < attempts + sizeof attempts / sizeof *attempts; attempt++) {
    if (miss->id || miss->is_over || attempt->stage > last) break;
    if (!attempt->is_of_streams || miss->heap->streams.active > 1) attempt->make(miss);
    if (miss->status && !hipmm_is_out_of_memory(miss->status)) miss->is_over = true;
  }
  /* An error, such as that of a capture, concerns new mappings alone. */
  if (!miss->id && last == STAGE_LAST && miss->status != HIPMM_CALL_AGAIN) miss_try_any(miss);
  if (!miss->id && last == STAGE_LAST && hipmm_is_out_of_memory(miss->status) &&
      !hipmm_is_tried_again(miss->heap->blocks.services, miss->status))
    fragments_warn(miss->backing, miss->heap, miss->request);
  /* Other users of the upstream may need what the attempts have added in vain. */
  if (!miss->id && backing_bytes(miss->backing) > held_bytes)
    backing_release_idle(miss->backing, miss->heap, held_bytes);
}

uint32_t arena_attempt(struct arena *arena, const struct request *request, enum stage last,
                       enum hipmm_status *status_out)
{
  struct miss miss = {.arena = arena, .heap = &arena->heap, .backing = &arena->backing, .request = request};
  miss_run(&miss, last);
  if (miss.status) arena->refusal = miss.status;
  *status_out = miss.id || hipmm_is_out_of_memory(miss.status) ? HIPMM_OK : miss.status;
  return miss.id;
}
