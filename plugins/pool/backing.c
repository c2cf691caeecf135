/* SPDX-License-Identifier: MIT */
/* backing.c: the choice between granules and segments, which is made when the pool is created. */
#include "backing.h"
#include "idle.h"

static const char *backing_reason_not_mapped(const struct hipmm_resource *upstream, enum hipmm_status status)
{
  if (!upstream->ops->mapping) return "the upstream has no virtual memory";
  if (status == HIPMM_E_LIMIT) return "maximum_size is less than the smallest chunk that can be mapped";
  return status == HIPMM_E_NOT_SUPPORTED ? "this runtime or device has no virtual memory management"
                                         : "virtual memory management fails";
}

enum hipmm_status backing_open(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                               struct hipmm_resource *upstream, const struct pool_options *options)
{
  enum growth growth = (enum growth)options->growth;
  *backing = (struct backing){.mapped = false};
  const char *reason = growth == GROWTH_AUTO ? chunks_discouraged_reason(upstream) : NULL;
  if (reason) services->log(services, HIPMM_LOG_INFO, "growth segments: %s; \"growth\": \"mapped\" uses it", reason);
  if (growth != GROWTH_SEGMENTS && !reason) {
    enum hipmm_status status =
        granules_open(&backing->granules, heap, services, upstream, options->maximum_size, options->slack);
    backing->mapped = !status;
    if (!status) {
      services->log(services, HIPMM_LOG_INFO, "growth mapped: chunks of %llu bytes and more",
                    (unsigned long long)backing->granules.chunks.granule_bytes);
      return HIPMM_OK;
    }
    reason = backing_reason_not_mapped(upstream, status);
    if (growth == GROWTH_MAPPED && status != HIPMM_E_NOT_SUPPORTED && status != HIPMM_E_LIMIT) return status;
    if (growth == GROWTH_MAPPED)
      return services->fail(services, HIPMM_E_NOT_SUPPORTED, "growth",
                            "\"mapped\" is not possible here: %s; write \"auto\"", reason);
    services->log(services, HIPMM_LOG_INFO, "growth segments: %s", reason);
  }
  if (segments_open(&backing->segments, services, upstream, options->maximum_size)) return HIPMM_OK;
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left for the pool's records");
}

void backing_close(struct backing *backing)
{
  if (backing->mapped)
    granules_close(&backing->granules);
  else if (backing->segments.items)
    segments_close(&backing->segments);
}

/* ---- Allocating ---- */

enum hipmm_status backing_check_available(struct backing *backing, const struct heap *heap,
                                          const struct request *request)
{
  return backing->mapped ? granules_check_available(&backing->granules, heap, request) : HIPMM_OK;
}

enum hipmm_status backing_use_slack(struct backing *backing, struct heap *heap, const struct request *request,
                                    uint32_t *id_out)
{
  if (!backing->mapped) return HIPMM_E_OUT_OF_MEMORY;
  return granules_allocate(&backing->granules, heap, request, EFFORT_SLACK, id_out);
}

enum hipmm_status backing_move(struct backing *backing, struct heap *heap, const struct request *request,
                               uint32_t *id_out)
{
  if (!backing->mapped) return HIPMM_E_OUT_OF_MEMORY;
  enum hipmm_status status = granules_allocate(&backing->granules, heap, request, EFFORT_MOVE, id_out);
  /* Where a chunk may have alias mappings, granules_allocate() has used all pending chunks without a host wait. */
  if (status != HIPMM_E_OUT_OF_MEMORY || backing->granules.chunks.may_alias) return status;
  if (!idle_is_pending(&backing->granules.chunks, heap)) return status;
  heap_wait(heap);
  uint32_t id = heap_allocate_ready(heap, request);
  if (!id) return granules_allocate(&backing->granules, heap, request, EFFORT_MOVE, id_out);
  *id_out = id;
  return HIPMM_OK;
}

enum hipmm_status backing_grow(struct backing *backing, struct heap *heap, const struct request *request,
                               uint32_t *id_out)
{
  if (backing->mapped) return granules_allocate(&backing->granules, heap, request, EFFORT_GROW, id_out);
  enum hipmm_status status = segments_grow(&backing->segments, heap, request_fit_bytes(request), request->stream);
  if (status) return status;
  uint32_t id = heap_allocate_ready(heap, request);
  if (id) *id_out = id;
  return id ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

enum hipmm_status backing_fill(struct backing *backing, struct heap *heap, uint64_t bytes)
{
  return backing->mapped ? granules_fill(&backing->granules, heap, bytes)
                         : segments_grow(&backing->segments, heap, bytes, STREAM_READY);
}

enum hipmm_status backing_release_idle(struct backing *backing, struct heap *heap, uint64_t keep_bytes)
{
  backing->granules.slack.peak_bytes = 0;
  return backing->mapped ? idle_release(&backing->granules.chunks, heap, keep_bytes)
                         : segments_release_idle(&backing->segments, heap, keep_bytes);
}

/* ---- Values ---- */

void backing_set_maximum(struct backing *backing, uint64_t maximum_bytes)
{
  if (backing->mapped)
    backing->granules.chunks.maximum_bytes = chunks_round_down(&backing->granules.chunks, maximum_bytes);
  else
    backing->segments.maximum_bytes = maximum_bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
}

static uint64_t backing_first(const struct backing *backing, uint64_t start, uint64_t end, bool committed)
{
  const struct chunks *chunks = &backing->granules.chunks;
  if (!backing->mapped) return committed ? start : end;
  uint64_t at = chunks_first(chunks, chunks_round_down(chunks, start), chunks_round_up(chunks, end), committed);
  return at < start ? start : at < end ? at : end;
}

uint64_t backing_first_uncommitted(const struct backing *backing, uint64_t start, uint64_t end)
{
  return backing_first(backing, start, end, false);
}

uint64_t backing_first_committed(const struct backing *backing, uint64_t start, uint64_t end)
{
  return backing_first(backing, start, end, true);
}

uint64_t backing_bytes(const struct backing *backing)
{
  return backing->mapped ? backing->granules.chunks.bytes : backing->segments.bytes;
}

uint64_t backing_peak_bytes(const struct backing *backing)
{
  return backing->mapped ? backing->granules.chunks.peak_bytes : backing->segments.peak_bytes;
}

void backing_reset_peak(struct backing *backing)
{
  backing->granules.chunks.peak_bytes = backing->granules.chunks.bytes;
  backing->segments.peak_bytes = backing->segments.bytes;
}

uint64_t backing_maximum_bytes(const struct backing *backing)
{
  return backing->mapped ? backing->granules.chunks.maximum_bytes : backing->segments.maximum_bytes;
}

uint64_t backing_least_bytes(const struct backing *backing)
{
  return backing->mapped ? backing->granules.chunks.granule_bytes : HIPMM_ALIGNMENT;
}

uint64_t backing_count(const struct backing *backing)
{
  return backing->mapped ? backing->granules.chunks.bytes / backing->granules.chunks.granule_bytes
                         : backing->segments.count;
}
