/* SPDX-License-Identifier: MIT */
/* segments.c: adds segments, and releases them. */
#include "backing.h"

enum {
  MAX_SEGMENTS = 1 << 16,
  SMALL_BYTES = 1 << 20,
  SMALL_STEP_SHARE = 8 /* a segment for small blocks is this part of those that there are */
};

bool segments_open(struct segments *segments, struct heap *heap, const struct hipmm_services *services,
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
  segments->items = services->host_allocate(services, MAX_SEGMENTS * sizeof *segments->items);
  return segments->items != NULL;
}

static enum hipmm_status segments_release(struct segments *segments, uint32_t index)
{
  const struct segment *segment = &segments->items[index];
  enum hipmm_status status =
      hipmm_upstream_deallocate(segments->upstream, segment->ptr, segment->bytes, HIPMM_ALIGNMENT, NULL);
  if (status) return status;
  segments->held.bytes -= segment->bytes;
  if (segment->is_for_small) segments->small_bytes -= segment->bytes;
  segments->items[index] = segments->items[--segments->count];
  return HIPMM_OK;
}

/* The device is idle. Goes on after a failure. */
static void segments_close(void *self)
{
  struct segments *segments = self;
  for (uint32_t i = segments->count; i-- > 0;) segments_release(segments, i);
  segments->services->host_free(segments->services, segments->items, MAX_SEGMENTS * sizeof *segments->items);
}

static enum hipmm_status segments_add(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream,
                                      bool is_for_small)
{
  struct segment *segment = &segments->items[segments->count];
  hipmm_stream_t handle = stream_of(&heap->streams, stream)->handle;
  enum hipmm_status status = hipmm_upstream_allocate(segments->upstream, bytes, HIPMM_ALIGNMENT, handle, &segment->ptr);
  if (status) return status;
  segment->bytes = bytes;
  segment->is_for_small = is_for_small;
  bool added = heap_add_segment(heap, (uintptr_t)segment->ptr, bytes, stream, is_for_small);
  segments->count++;
  segments->held.bytes += bytes;
  if (is_for_small) segments->small_bytes += bytes;
  if (added) {
    if (segments->held.bytes > segments->held.peak_bytes) segments->held.peak_bytes = segments->held.bytes;
    slack_note_added(&segments->slack, bytes);
    segments->services->log(segments->services, HIPMM_LOG_DEBUG, "grew by a segment of %llu bytes to %llu bytes",
                            (unsigned long long)bytes, (unsigned long long)segments->held.bytes);
    return HIPMM_OK;
  }
  segments_release(segments, segments->count - 1);
  return segments->services->refuse(segments->services, HIPMM_E_OUT_OF_MEMORY,
                                    "no host memory left to manage {0:bytes} more", bytes, 0, 0);
}

/* Adds a segment of at least `bytes`, and of a step if the upstream has that much, so that there are few segments. It is ready
 * for `stream`. HIPMM_E_LIMIT when the maximum does not allow it. */
static enum hipmm_status segments_grow(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream)
{
  bool is_for_small = bytes < heap->small_bytes;
  uint64_t headroom = sizes_headroom(segments->held.maximum_bytes, segments->held.bytes);
  uint64_t step = slack_step(&segments->slack), small_step = segments->small_bytes / SMALL_STEP_SHARE;
  if (bytes > headroom || segments->count == MAX_SEGMENTS) return HIPMM_E_LIMIT;
  uint64_t room = sizes_headroom(slack_most_held(&segments->slack), segments->held.bytes);
  if (is_for_small && step > small_step) step = small_step;
  if (step > room) step = room;
  step = sizes_round_up(step > bytes ? step : bytes, SIZES_PAGE_BYTES);
  if (step > headroom) step = headroom / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  for (;; step = sizes_smaller_step(step, bytes)) {
    enum hipmm_status status = segments_add(segments, heap, step, stream, is_for_small);
    if (!hipmm_is_out_of_memory(status) || step == bytes) return status;
  }
}

bool segments_contain(const struct segments *segments, const void *ptr)
{
  for (uint32_t i = 0; i < segments->count; i++)
    if ((uintptr_t)ptr - (uintptr_t)segments->items[i].ptr < segments->items[i].bytes) return true;
  return false;
}

/* Releases the segment, if it is one free block that no work uses. HIPMM_E_OUT_OF_MEMORY otherwise. */
static enum hipmm_status segments_release_if_idle(struct segments *segments, struct heap *heap, uint32_t index)
{
  const struct segment segment = segments->items[index];
  if (!heap_remove_region(heap, (uintptr_t)segment.ptr, segment.bytes)) return HIPMM_E_OUT_OF_MEMORY;
  enum hipmm_status status = segments_release(segments, index);
  if (status) /* the upstream refused it */
    heap_add_segment(heap, (uintptr_t)segment.ptr, segment.bytes, STREAM_READY, segment.is_for_small);
  else if ((uintptr_t)segment.ptr == heap->common_start)
    heap->common_bytes = 0;
  return status;
}

static enum hipmm_status segments_release_idle(void *self, struct heap *heap, uint64_t keep_bytes)
{
  struct segments *segments = self;
  enum hipmm_status first = HIPMM_OK;
  segments->slack.peak_bytes = 0;
  for (uint32_t i = segments->count; i-- > 0;) {
    if (segments->held.bytes - segments->items[i].bytes < keep_bytes) continue;
    enum hipmm_status status = segments_release_if_idle(segments, heap, i);
    if (!first && status != HIPMM_E_OUT_OF_MEMORY) first = status;
  }
  return first;
}

/* ---- Releasing what is beyond the slack ---- */

/* Of the segments that are one free block, which work of a stream may still use or not: the smallest of at least `bytes`, or
 * else the largest. The number of segments if there is none. */
static uint32_t segments_find_idle(const struct segments *segments, const struct heap *heap, uint64_t bytes,
                                   bool is_pending)
{
  uint32_t best = segments->count;
  for (uint32_t i = 0; i < segments->count; i++) {
    uint64_t size = segments->items[i].bytes, best_size = best < segments->count ? segments->items[best].bytes : 0;
    uint32_t id = heap_region_block(heap, (uintptr_t)segments->items[i].ptr, size);
    if (!id || (heap_block(heap, id)->stream != STREAM_READY) != is_pending) continue;
    if (best_size < bytes ? size > best_size : size >= bytes && size < best_size) best = i;
  }
  return best;
}

/* Releases idle segments, which no work uses any more, until at most `keep_bytes` are held. */
static void segments_release_to(struct segments *segments, struct heap *heap, uint64_t keep_bytes)
{
  while (segments->held.bytes > keep_bytes) {
    uint32_t index = segments_find_idle(segments, heap, segments->held.bytes - keep_bytes, false);
    uint64_t bytes = index < segments->count ? segments->items[index].bytes : 0;
    if (!bytes || segments_release_if_idle(segments, heap, index)) return;
    slack_note_released(&segments->slack, bytes);
  }
}

/* The same after a wait for the work that still uses a segment, where the allocation that ended with `status` may wait. */
static void segments_await_room(struct segments *segments, struct heap *heap, uint64_t keep_bytes, uint32_t stream,
                                enum hipmm_status status)
{
  if (streams_any_captured(&heap->streams, stream)) return;
  segments_release_to(segments, heap, keep_bytes);
  if (segments->held.bytes <= keep_bytes || segments_find_idle(segments, heap, 1, true) == segments->count) return;
  if (!hipmm_may_wait(segments->services, status)) return;
  if (!heap_wait(heap) && !streams_wait_for_device(&heap->streams, stream)) heap_complete_all(heap);
  segments_release_to(segments, heap, keep_bytes);
}

/* What is idle beyond the slack goes first, and what is idle at all where there is no more memory. A small block then takes
 * a part of a segment for large ones instead: the next attempt. */
static enum hipmm_status segments_exchange(struct segments *segments, struct heap *heap, uint64_t bytes,
                                           uint32_t stream)
{
  uint64_t keep_bytes = sizes_headroom(slack_most_held(&segments->slack), bytes);
  if (segments->held.bytes > keep_bytes && !streams_any_captured(&heap->streams, stream)) {
    heap_poll(heap);
    segments_release_to(segments, heap, keep_bytes);
  }
  enum hipmm_status status = segments_grow(segments, heap, bytes, stream);
  if (!hipmm_is_out_of_memory(status) || bytes < heap->small_bytes) return status;
  uint64_t held_bytes = segments->held.bytes, maximum_bytes = segments->held.maximum_bytes;
  keep_bytes = sizes_headroom(held_bytes < maximum_bytes ? held_bytes : maximum_bytes, bytes);
  segments_await_room(segments, heap, keep_bytes, stream, status);
  return segments->held.bytes < held_bytes ? segments_grow(segments, heap, bytes, stream) : status;
}

/* The last segment is for blocks of all sizes. */
static void segments_make_common(const struct segments *segments, struct heap *heap)
{
  const struct segment *segment = &segments->items[segments->count - 1];
  heap->common_start = (uintptr_t)segment->ptr;
  heap->common_bytes = segment->bytes;
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
  /* Segments of other sizes were exchanged in vain before: an idle one is cut. */
  if (is_full && source_of_memory == MEMORY_FROM_GROWTH && slack->vain_bytes > slack->peak_bytes &&
      (*id_out = heap_allocate_fit(heap, KIND_BUSY, request)))
    return HIPMM_OK;
  heap->most_rest = slack_step(slack) + SIZES_PAGE_BYTES;
  if (source_of_memory == MEMORY_FROM_GROWTH)
    status = segments_exchange(segments, heap, bytes, request->stream);
  else if (source_of_memory == MEMORY_FROM_FILL || segments->held.bytes + bytes <= slack_most_held(slack))
    status = segments_grow(segments, heap, bytes, request->stream);
  if (!status && source_of_memory == MEMORY_FROM_FILL) segments_make_common(segments, heap);
  uint32_t id = status ? BLOCK_NONE : heap_allocate_ready(heap, request);
  if (!id) slack->peak_bytes = peak_bytes;
  if (id) *id_out = id;
  return status || id ? status : HIPMM_E_OUT_OF_MEMORY;
}

static uint64_t segments_available_bytes(const void *self, const struct heap *heap)
{
  (void)self;
  return heap_largest_free(heap);
}

const struct backing_ops segments_ops = {.allocate = segments_allocate,
                                         .release_idle = segments_release_idle,
                                         .available_bytes = segments_available_bytes,
                                         .close = segments_close};
