/* SPDX-License-Identifier: MIT */
/* segments.c: adds segments, and releases them. */
#include "segments.h"
#include "../../core/base/cancel.h"

enum { MAX_SEGMENTS = 1 << 16 };

bool segments_open(struct segments *segments, const struct hipmm_services *services, struct hipmm_resource *upstream,
                   uint64_t maximum_bytes)
{
  maximum_bytes = maximum_bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  *segments = (struct segments){.services = services, .upstream = upstream, .maximum_bytes = maximum_bytes};
  segments->items = services->host_allocate(services, MAX_SEGMENTS * sizeof *segments->items);
  return segments->items != NULL;
}

static enum hipmm_status segments_release(struct segments *segments, uint32_t index)
{
  const struct segment *segment = &segments->items[index];
  int cancel = cancel_forbid();
  enum hipmm_status status =
      hipmm_upstream_deallocate(segments->upstream, segment->ptr, segment->bytes, HIPMM_ALIGNMENT, NULL);
  cancel_allow(cancel);
  if (status) return status;
  segments->bytes -= segment->bytes;
  segments->items[index] = segments->items[--segments->count];
  return HIPMM_OK;
}

enum hipmm_status segments_close(struct segments *segments)
{
  enum hipmm_status first = HIPMM_OK;
  for (uint32_t i = segments->count; i-- > 0;) {
    enum hipmm_status status = segments_release(segments, i);
    if (!first) first = status;
  }
  segments->services->host_free(segments->services, segments->items, MAX_SEGMENTS * sizeof *segments->items);
  return first;
}

static enum hipmm_status segments_add(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream)
{
  struct segment *segment = &segments->items[segments->count];
  hipmm_stream_t handle = stream_of(&heap->streams, stream)->handle;
  int cancel = cancel_forbid();
  enum hipmm_status status = hipmm_upstream_allocate(segments->upstream, bytes, HIPMM_ALIGNMENT, handle, &segment->ptr);
  cancel_allow(cancel);
  if (status) return status;
  segment->bytes = bytes;
  bool added = heap_add_region(heap, (uintptr_t)segment->ptr, bytes, 0, stream);
  segments->count++;
  segments->bytes += bytes;
  if (added) {
    if (segments->bytes > segments->peak_bytes) segments->peak_bytes = segments->bytes;
    segments->services->log(segments->services, HIPMM_LOG_DEBUG, "grew by a segment of %llu bytes to %llu bytes",
                            (unsigned long long)bytes, (unsigned long long)segments->bytes);
    return HIPMM_OK;
  }
  segments_release(segments, segments->count - 1);
  return segments->services->refuse(segments->services, HIPMM_E_OUT_OF_MEMORY,
                                    "no host memory left to manage {0:bytes} more", bytes, 0, 0);
}

enum hipmm_status segments_grow(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream)
{
  uint64_t headroom = sizes_headroom(segments->maximum_bytes, segments->bytes);
  if (bytes > headroom || segments->count == MAX_SEGMENTS) return HIPMM_E_LIMIT;
  for (uint64_t step = sizes_step(segments->bytes, bytes, headroom);; step = sizes_smaller_step(step, bytes)) {
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

enum hipmm_status segments_release_idle(struct segments *segments, struct heap *heap, uint64_t keep_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  for (uint32_t i = segments->count; i-- > 0;) {
    const struct segment segment = segments->items[i];
    if (segments->bytes < segment.bytes + keep_bytes) continue;
    if (!heap_remove_region(heap, (uintptr_t)segment.ptr, segment.bytes)) continue;
    enum hipmm_status status = segments_release(segments, i);
    if (!status) continue;
    heap_add_region(heap, (uintptr_t)segment.ptr, segment.bytes, 0, STREAM_READY); /* the upstream refused it */
    if (!first) first = status;
  }
  return first;
}
