/* SPDX-License-Identifier: MIT */
/* segments.c: adds segments, and releases them. */
#include "backing.h"

enum {
  MAX_SEGMENTS = 1 << 16,
  SMALL_BYTES = 1 << 20,
  SMALL_STEP_SHARE = 8 /* a segment for small blocks is this part of those that there are */
};

static bool segments_open(struct segments *segments, struct heap *heap, const struct hipmm_services *services,
                          struct hipmm_resource *upstream, uint64_t maximum_bytes, uint64_t slack_bytes)
{
  *segments = (struct segments){.services = services,
                                .upstream = upstream,
                                .held.least_bytes = HIPMM_ALIGNMENT,
                                .slack = {.services = services,
                                          .held = &segments->held,
                                          .is_of_device = upstream->ops->mapping != NULL,
                                          .wanted_bytes = slack_bytes}};
  held_set_maximum(&segments->held, maximum_bytes);
  heap->small_bytes = SMALL_BYTES;
  heap->is_low_on_memory = true; /* idle memory does not move, so that where a block lies matters at any time */
  segments->n_used = 1;
  segments->items = services->host_allocate(services, MAX_SEGMENTS * sizeof *segments->items);
  return segments->items != NULL;
}

static void segments_forget(struct segments *segments, struct segment *segment)
{
  key_tree_remove(&segments->by_start, &segment->by_start);
  segment->next_unused = segments->unused;
  segments->unused = (uint32_t)(segment - segments->items);
  segments->count--;
}

static enum hipmm_status segments_release(struct segments *segments, struct segment *segment)
{
  uint64_t bytes = segment->by_start.minor;
  void *ptr = (void *)segment->by_start.major;
  enum hipmm_status status = hipmm_upstream_deallocate(segments->upstream, ptr, bytes, HIPMM_ALIGNMENT, NULL);
  if (status) return status;
  segments->held.bytes -= bytes;
  if (segment->is_for_small) segments->small_bytes -= bytes;
  segments_forget(segments, segment);
  return HIPMM_OK;
}

/* The device is idle. What the upstream refuses is lost. */
static void segments_close(void *self)
{
  struct segments *segments = self;
  for (struct segment *segment; (segment = (struct segment *)segments->by_start);)
    if (segments_release(segments, segment)) segments_forget(segments, segment);
  segments->services->host_free(segments->services, segments->items, MAX_SEGMENTS * sizeof *segments->items);
}

static struct segment *segments_enter(struct segments *segments, void *ptr, uint64_t bytes)
{
  uint32_t index = segments->unused ? segments->unused : segments->n_used++;
  struct segment *segment = &segments->items[index];
  if (segments->unused) segments->unused = segment->next_unused;
  *segment = (struct segment){.by_start = {.major = (uintptr_t)ptr, .minor = bytes}};
  key_tree_insert(&segments->by_start, &segment->by_start);
  segments->count++;
  return segment;
}

static enum hipmm_status segments_add(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream,
                                      bool is_for_small, bool is_own)
{
  void *ptr;
  hipmm_stream_t handle = stream_of(&heap->streams, stream)->handle;
  enum hipmm_status status = hipmm_upstream_allocate(segments->upstream, bytes, HIPMM_ALIGNMENT, handle, &ptr);
  if (status) return status;
  struct segment *segment = segments_enter(segments, ptr, bytes);
  segment->is_for_small = is_for_small;
  segment->is_own = is_own;
  segments->held.bytes += bytes;
  if (is_for_small) segments->small_bytes += bytes;
  if (heap_add_segment(heap, segment, stream)) {
    if (segments->held.bytes > segments->held.peak_bytes) segments->held.peak_bytes = segments->held.bytes;
    slack_note_added(&segments->slack, bytes);
    segments->services->log(segments->services, HIPMM_LOG_DEBUG, "grew by a segment of %llu bytes to %llu bytes",
                            (unsigned long long)bytes, (unsigned long long)segments->held.bytes);
    return HIPMM_OK;
  }
  segments_release(segments, segment);
  return segments->services->refuse(segments->services, HIPMM_E_OUT_OF_MEMORY,
                                    "no host memory left to manage {0:bytes} more", bytes, 0, 0);
}

/* A segment is whole pages for the driver. It has room for as many blocks of that size as leave little of it over. */
static uint64_t segments_least_step(uint64_t bytes)
{
  enum { MOST_BLOCKS = 4, REST_SHARE = 3 };
  uint64_t step, n = 0;
  do {
    n++;
    step = sizes_round_up(n * bytes, SIZES_PAGE_BYTES);
  } while (n < MOST_BLOCKS && step - n * bytes > step / REST_SHARE);
  return step;
}

/* Adds a segment of at least `bytes`, and of a step if the upstream has that much, so that there are few segments; or one of its
 * own for a request with is_own. It is ready for the request's stream. HIPMM_E_LIMIT when the maximum does not allow it. */
static enum hipmm_status segments_grow(struct segments *segments, struct heap *heap, const struct request *request)
{
  uint64_t bytes = request_fit_bytes(request);
  bool is_for_small = bytes < heap->small_bytes && !request->is_own;
  uint64_t headroom = sizes_headroom(segments->held.maximum_bytes, segments->held.bytes);
  uint64_t step = slack_step(&segments->slack), small_step = segments->small_bytes / SMALL_STEP_SHARE;
  if (bytes > headroom || segments->count == MAX_SEGMENTS) return HIPMM_E_LIMIT;
  uint64_t room = sizes_headroom(slack_most_held(&segments->slack), segments->held.bytes);
  if (is_for_small && step > small_step) step = small_step;
  if (step > room) step = room;
  uint64_t least = is_for_small || request->is_own ? bytes : segments_least_step(bytes);
  if (request->is_own) step = bytes;
  step = sizes_round_up(step > least ? step : least, SIZES_PAGE_BYTES);
  if (step > headroom) step = headroom / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  for (;; step = sizes_smaller_step(step, bytes)) {
    enum hipmm_status status = segments_add(segments, heap, step, request->stream, is_for_small, request->is_own);
    if (!hipmm_is_out_of_memory(status) || step == bytes) return status;
  }
}

bool segments_contain(const struct segments *segments, const void *ptr)
{
  return key_tree_holding(segments->by_start, (uintptr_t)ptr) != NULL;
}

/* Releases the segment that the block is; no work uses it. */
static enum hipmm_status segments_release_idle_one(struct segments *segments, struct heap *heap, uint32_t id)
{
  uint64_t start = heap_block(heap, id)->start, bytes = heap_block(heap, id)->bytes;
  struct segment *segment = (struct segment *)key_tree_at(segments->by_start, start);
  if (!heap_remove_region(heap, id)) return HIPMM_E_STATE; /* never: the index has it as a segment */
  enum hipmm_status status = segments_release(segments, segment);
  if (status) { /* the upstream refused it */
    heap_add_segment(heap, segment, STREAM_READY);
    return status;
  }
  if (start == heap->common_start) heap->common_bytes = 0;
  address_map_discard(&heap->blocks.map, start, bytes);
  return HIPMM_OK;
}

/* The large ones first. */
static enum hipmm_status segments_release_idle(void *self, struct heap *heap, uint64_t keep_bytes)
{
  struct segments *segments = self;
  const struct free_index *ready = &heap->free[STREAM_READY];
  enum hipmm_status first = HIPMM_OK;
  segments->slack.peak_bytes = 0;
  for (enum kind kind = KIND_PARTIAL; kind < KINDS; kind++)
    for (uint32_t id = free_index_next(ready, &heap->blocks, kind, BLOCK_NONE), next; id; id = next) {
      next = free_index_next(ready, &heap->blocks, kind, id);
      if (segments->held.bytes - heap_block(heap, id)->bytes < keep_bytes) continue;
      enum hipmm_status status = segments_release_idle_one(segments, heap, id);
      if (!first) first = status;
    }
  return first;
}

/* ---- Releasing what is beyond the slack ---- */

/* Releases idle segments, which no work uses any more, until at most `keep_bytes` are held. */
static void segments_release_to(struct segments *segments, struct heap *heap, uint64_t keep_bytes)
{
  while (segments->held.bytes > keep_bytes) {
    uint32_t id = heap_find_idle(heap, KIND_PARTIAL, segments->held.bytes - keep_bytes);
    uint64_t bytes = heap_block(heap, id)->bytes;
    if (!id || segments_release_idle_one(segments, heap, id)) return;
    slack_note_released(&segments->slack, bytes);
  }
}

/* The same after a wait for the work that still uses a segment, where the allocation that ended with `status` may wait. */
static void segments_await_room(struct segments *segments, struct heap *heap, uint64_t keep_bytes, uint32_t stream,
                                enum hipmm_status status)
{
  if (streams_any_captured(&heap->streams, stream)) return;
  segments_release_to(segments, heap, keep_bytes);
  if (segments->held.bytes <= keep_bytes || !heap_has_pending(heap, KIND_PARTIAL)) return;
  if (!hipmm_may_wait(segments->services, status)) return;
  if (!heap_wait(heap) && !streams_wait_for_device(&heap->streams, stream)) heap_complete_all(heap);
  segments_release_to(segments, heap, keep_bytes);
}

/* What is idle beyond the slack goes first, and what is idle at all where there is no more memory. A small block then takes
 * a part of a segment for large ones instead: the next attempt. */
static enum hipmm_status segments_exchange(struct segments *segments, struct heap *heap, const struct request *request)
{
  uint64_t bytes = request_fit_bytes(request);
  uint32_t stream = request->stream;
  uint64_t keep_bytes = sizes_headroom(slack_most_held(&segments->slack), bytes);
  if (segments->held.bytes > keep_bytes && !streams_any_captured(&heap->streams, stream)) {
    heap_poll(heap);
    segments_release_to(segments, heap, keep_bytes);
  }
  enum hipmm_status status = segments_grow(segments, heap, request);
  if (!hipmm_is_out_of_memory(status) || bytes < heap->small_bytes) return status;
  uint64_t held_bytes = segments->held.bytes, maximum_bytes = segments->held.maximum_bytes;
  keep_bytes = sizes_headroom(held_bytes < maximum_bytes ? held_bytes : maximum_bytes, bytes);
  segments_await_room(segments, heap, keep_bytes, stream, status);
  return segments->held.bytes < held_bytes ? segments_grow(segments, heap, request) : status;
}

/* Adds exactly what the option says: the segment that the pool begins with, which is for blocks of all sizes. */
static enum hipmm_status segments_fill(struct segments *segments, struct heap *heap, const struct request *request)
{
  bool is_for_small = request->bytes < heap->small_bytes;
  if (request->bytes > sizes_headroom(segments->held.maximum_bytes, segments->held.bytes)) return HIPMM_E_LIMIT;
  enum hipmm_status status = segments_add(segments, heap, request->bytes, request->stream, is_for_small, false);
  if (status) return status;
  heap->common_start = segments->by_start->major;
  heap->common_bytes = segments->by_start->minor;
  return HIPMM_OK;
}

/* ---- The ops ---- */

static enum hipmm_status segments_allocate(void *self, struct heap *heap, const struct request *request,
                                           enum source_of_memory source_of_memory, uint32_t *id_out)
{
  struct segments *segments = self;
  struct slack *slack = &segments->slack;
  uint64_t bytes = request_fit_bytes(request), peak_bytes = slack->peak_bytes;
  enum hipmm_status status = HIPMM_E_OUT_OF_MEMORY;
  if (source_of_memory == MEMORY_FROM_MOVE) return status; /* nothing moves */
  bool is_full = bytes > sizes_headroom(segments->held.maximum_bytes, segments->held.bytes);
  if (is_full && bytes < heap->small_bytes) return HIPMM_E_LIMIT; /* see segments_exchange() */
  slack_update(slack, heap->live_bytes + request->bytes);
  uint64_t most_rest = slack_step(slack) + SIZES_PAGE_BYTES, rest = segments_least_step(bytes) - bytes;
  heap->most_rest = most_rest > rest ? most_rest : rest; /* a segment that would be added is cut, as one that is idle */
  /* Segments of other sizes were exchanged in vain before: an idle one is cut into blocks of the size. */
  heap->cuts_evenly = is_full && source_of_memory == MEMORY_FROM_GROWTH && slack->vain_bytes > slack->peak_bytes;
  bool looks_again = source_of_memory != MEMORY_FROM_FILL && (rest > most_rest || heap->cuts_evenly);
  *id_out = looks_again ? heap_allocate_ready(heap, request) : BLOCK_NONE;
  heap->cuts_evenly = false;
  if (*id_out) {
    heap->most_rest = most_rest;
    return HIPMM_OK;
  }
  if (source_of_memory == MEMORY_FROM_GROWTH)
    status = segments_exchange(segments, heap, request);
  else if (source_of_memory == MEMORY_FROM_FILL)
    status = segments_fill(segments, heap, request);
  else if (segments->held.bytes + bytes <= slack_most_held(slack))
    status = segments_grow(segments, heap, request);
  uint32_t id = status ? BLOCK_NONE : heap_allocate_ready(heap, request);
  heap->most_rest = most_rest;
  if (!id) slack->peak_bytes = peak_bytes;
  if (id) *id_out = id;
  return status || id ? status : HIPMM_E_OUT_OF_MEMORY;
}

static uint64_t segments_available_bytes(const void *self, const struct heap *heap)
{
  (void)self;
  return heap_largest_free(heap);
}

static const struct backing_ops segments_ops = {.allocate = segments_allocate,
                                                .release_idle = segments_release_idle,
                                                .available_bytes = segments_available_bytes,
                                                .close = segments_close};

bool backing_open_segments(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                           struct hipmm_resource *upstream, uint64_t maximum_bytes, uint64_t slack_bytes)
{
  struct segments *segments = &backing->segments;
  if (!segments_open(segments, heap, services, upstream, maximum_bytes, slack_bytes)) return false;
  backing->ops = &segments_ops;
  backing->self = segments;
  backing->held = &segments->held;
  return true;
}
