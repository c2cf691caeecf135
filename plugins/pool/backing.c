/* SPDX-License-Identifier: MIT */
/* backing.c: the choice between granules and segments, which is made when the pool is created, and the order of the
 * attempts `commit` and `grow` (allocate.c). */
#include "backing.h"
#include "idle.h"

static const char *backing_reason_not_mapped(const struct hipmm_resource *upstream, enum hipmm_status status)
{
  if (!upstream->ops->mapping) return "the upstream has no virtual memory";
  return status == HIPMM_E_LIMIT ? "maximum_size is less than the smallest chunk that can be mapped"
                                 : "this runtime or device has no virtual memory management";
}

enum hipmm_status backing_open(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                               struct hipmm_resource *upstream, enum growth growth, uint64_t maximum_bytes)
{
  *backing = (struct backing){.mapped = false};
  const char *reason = growth == GROWTH_AUTO ? chunks_discouraged_reason(upstream) : NULL;
  if (reason) services->log(services, HIPMM_LOG_INFO, "growth segments: %s; \"growth\": \"mapped\" uses it", reason);
  if (growth != GROWTH_SEGMENTS && !reason) {
    enum hipmm_status status = granules_open(&backing->granules, heap, services, upstream, maximum_bytes);
    backing->mapped = !status;
    if (!status) {
      services->log(services, HIPMM_LOG_INFO, "growth mapped: chunks of %llu bytes and more",
                    (unsigned long long)backing->granules.chunks.granule_bytes);
      return HIPMM_OK;
    }
    reason = backing_reason_not_mapped(upstream, status);
    if (growth == GROWTH_MAPPED)
      return services->fail(services, HIPMM_E_NOT_SUPPORTED, "growth",
                            "\"mapped\" is not possible here: %s; write \"auto\"", reason);
    services->log(services, HIPMM_LOG_INFO, "growth segments: %s", reason);
  }
  if (segments_open(&backing->segments, services, upstream, maximum_bytes)) return HIPMM_OK;
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

static enum hipmm_status backing_allocate_new(struct backing *backing, struct heap *heap, const struct request *request,
                                              uint32_t *id_out)
{
  if (backing->mapped) return granules_allocate(&backing->granules, heap, request, true, id_out);
  enum hipmm_status status = segments_grow(&backing->segments, heap, request_fit_bytes(request), request->stream);
  if (status) return status;
  uint32_t id = heap_allocate_ready(heap, request);
  if (id) *id_out = id;
  return id ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

/* In held memory that is mapped elsewhere. HIPMM_E_OUT_OF_MEMORY when there is not enough. */
static enum hipmm_status backing_allocate_held(struct backing *backing, struct heap *heap,
                                               const struct request *request, uint32_t *id_out)
{
  if (!backing->mapped) return HIPMM_E_OUT_OF_MEMORY;
  enum hipmm_status status = granules_allocate(&backing->granules, heap, request, false, id_out);
  /* Where a chunk may have alias mappings, granules_allocate() has used all pending chunks without a host wait. */
  if (status != HIPMM_E_OUT_OF_MEMORY || backing->granules.chunks.may_alias) return status;
  if (!idle_is_pending(&backing->granules.chunks, heap)) return status;
  heap_wait(heap);
  uint32_t id = heap_allocate_ready(heap, request);
  if (!id) return granules_allocate(&backing->granules, heap, request, false, id_out);
  *id_out = id;
  return HIPMM_OK;
}

/* Where the host must wait before it remaps a chunk, the device would idle in every iteration of a periodic workload.
 * There the pool grows first, by up to this part of the peak of live memory, so that later iterations find memory where
 * they need it. */
enum { GROWTH_SHARE = 4 };

static bool backing_grows_first(const struct backing *backing, const struct request *request)
{
  return backing->mapped && !backing->granules.chunks.may_alias &&
         backing_bytes(backing) + request->bytes <= backing->peak_live_bytes + backing->peak_live_bytes / GROWTH_SHARE;
}

enum hipmm_status backing_check_available(struct backing *backing, const struct heap *heap,
                                          const struct request *request)
{
  return backing->mapped ? granules_check_available(&backing->granules, heap, request) : HIPMM_OK;
}

enum hipmm_status backing_allocate(struct backing *backing, struct heap *heap, const struct request *request,
                                   uint32_t *id_out)
{
  enum hipmm_status status = backing_check_available(backing, heap, request);
  if (status) return status;
  uint64_t wanted = heap->live_bytes + request->bytes;
  if (wanted > backing->peak_live_bytes) backing->peak_live_bytes = wanted;
  bool is_new_first = backing_grows_first(backing, request);
  status = (is_new_first ? backing_allocate_new : backing_allocate_held)(backing, heap, request, id_out);
  if (!hipmm_is_out_of_memory(status)) return status;
  if (!is_new_first) return backing_allocate_new(backing, heap, request, id_out);
  return backing_allocate_held(backing, heap, request, id_out) ? status : HIPMM_OK;
}

enum hipmm_status backing_fill(struct backing *backing, struct heap *heap, uint64_t bytes)
{
  return backing->mapped ? granules_fill(&backing->granules, heap, bytes)
                         : segments_grow(&backing->segments, heap, bytes, STREAM_READY);
}

enum hipmm_status backing_release_idle(struct backing *backing, struct heap *heap, uint64_t keep_bytes)
{
  backing->peak_live_bytes = backing->granules.extra_bytes = 0;
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
