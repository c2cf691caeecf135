/* SPDX-License-Identifier: MIT */
/* segments.c: adds segments, and releases them. */
#include "backing.h"

enum { MAX_SEGMENTS = 1 << 16 };

bool segments_open(struct segments *segments, const struct hipmm_services *services, struct hipmm_resource *upstream,
                   uint64_t maximum_bytes)
{
  *segments = (struct segments){.services = services, .upstream = upstream, .held.least_bytes = HIPMM_ALIGNMENT};
  held_set_maximum(&segments->held, maximum_bytes);
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

static enum hipmm_status segments_add(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream)
{
  struct segment *segment = &segments->items[segments->count];
  hipmm_stream_t handle = stream_of(&heap->streams, stream)->handle;
  enum hipmm_status status = hipmm_upstream_allocate(segments->upstream, bytes, HIPMM_ALIGNMENT, handle, &segment->ptr);
  if (status) return status;
  segment->bytes = bytes;
  bool added = heap_add_region(heap, (uintptr_t)segment->ptr, bytes, 0, stream);
  segments->count++;
  segments->held.bytes += bytes;
  if (added) {
    if (segments->held.bytes > segments->held.peak_bytes) segments->held.peak_bytes = segments->held.bytes;
    segments->services->log(segments->services, HIPMM_LOG_DEBUG, "grew by a segment of %llu bytes to %llu bytes",
                            (unsigned long long)bytes, (unsigned long long)segments->held.bytes);
    return HIPMM_OK;
  }
  segments_release(segments, segments->count - 1);
  return segments->services->refuse(segments->services, HIPMM_E_OUT_OF_MEMORY,
                                    "no host memory left to manage {0:bytes} more", bytes, 0, 0);
}

/* Adds one segment of at least `bytes`: larger where the upstream has enough, so that there are few segments. It is ready
 * for `stream`. HIPMM_E_LIMIT when the maximum does not allow it. */
static enum hipmm_status segments_grow_by(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream)
{
  uint64_t headroom = sizes_headroom(segments->held.maximum_bytes, segments->held.bytes);
  if (bytes > headroom || segments->count == MAX_SEGMENTS) return HIPMM_E_LIMIT;
  for (uint64_t step = sizes_step(segments->held.bytes, bytes, headroom);; step = sizes_smaller_step(step, bytes)) {
    enum hipmm_status status = segments_add(segments, heap, step, stream);
    if (!hipmm_is_out_of_memory(status) || step == bytes) return status;
  }
}

bool segments_contain(const struct segments *segments, const void *ptr)
{
  for (uint32_t i = 0; i < segments->count; i++)
    if ((uintptr_t)ptr - (uintptr_t)segments->items[i].ptr < segments->items[i].bytes) return true;
  return false;
}

static enum hipmm_status segments_release_idle(void *self, struct heap *heap, uint64_t keep_bytes)
{
  struct segments *segments = self;
  enum hipmm_status first = HIPMM_OK;
  for (uint32_t i = segments->count; i-- > 0;) {
    const struct segment segment = segments->items[i];
    if (segments->held.bytes - segment.bytes < keep_bytes) continue;
    if (!heap_remove_region(heap, (uintptr_t)segment.ptr, segment.bytes)) continue;
    enum hipmm_status status = segments_release(segments, i);
    if (!status) continue;
    heap_add_region(heap, (uintptr_t)segment.ptr, segment.bytes, 0, STREAM_READY); /* the upstream refused it */
    if (!first) first = status;
  }
  return first;
}

/* ---- The ops ---- */

static enum hipmm_status segments_allocate(void *self, struct heap *heap, const struct request *request,
                                           enum source_of_memory source_of_memory, uint32_t *id_out)
{
  if (source_of_memory < MEMORY_FROM_GROWTH) return HIPMM_E_OUT_OF_MEMORY; /* nothing moves */
  enum hipmm_status status = segments_grow_by(self, heap, request_fit_bytes(request), request->stream);
  if (status) return status;
  uint32_t id = heap_allocate_ready(heap, request);
  if (id) *id_out = id;
  return id ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
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
