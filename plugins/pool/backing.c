/* SPDX-License-Identifier: MIT */
/* backing.c: one choice between two ways to grow, made when the pool is created. */
#include "backing.h"
#include "idle.h"

static const char *backing_why_not_mapped(const struct hipmm_resource *upstream, enum hipmm_status status)
{
  if (!upstream->ops->mapping) return "the upstream hands out no virtual memory";
  return status == HIPMM_E_LIMIT ? "maximum_size is less than the smallest piece that can be mapped"
                                 : "this runtime or device has no virtual memory management";
}

enum hipmm_status ground_open(struct ground *ground, struct heap *heap, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, enum growth growth, uint64_t maximum_bytes)
{
  *ground = (struct ground){.mapped = false};
  const char *doubt = growth == GROWTH_AUTO ? pieces_doubt(upstream) : NULL;
  if (doubt) services->log(services, HIPMM_LOG_INFO, "growth segments: %s; \"growth\": \"mapped\" uses it", doubt);
  if (growth != GROWTH_SEGMENTS && !doubt) {
    enum hipmm_status status = granules_open(&ground->granules, heap, services, upstream, maximum_bytes);
    ground->mapped = !status;
    if (!status) {
      services->log(services, HIPMM_LOG_INFO, "growth mapped: pieces of %llu bytes and more",
                    (unsigned long long)ground->granules.pieces.granule_bytes);
      return HIPMM_OK;
    }
    const char *reason = backing_why_not_mapped(upstream, status);
    if (growth == GROWTH_MAPPED)
      return services->fail(services, HIPMM_E_NOT_SUPPORTED, "growth",
                            "\"mapped\" is not possible here: %s; write \"auto\"", reason);
    services->log(services, HIPMM_LOG_INFO, "growth segments: %s", reason);
  }
  if (segments_open(&ground->segments, services, upstream, maximum_bytes)) return HIPMM_OK;
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left for the pool's records");
}

void ground_close(struct ground *ground)
{
  if (ground->mapped)
    granules_close(&ground->granules);
  else if (ground->segments.items)
    segments_close(&ground->segments);
}

static enum hipmm_status backing_take_from_segment(struct segments *segments, struct heap *heap,
                                                   const struct request *request, uint32_t *id_out)
{
  enum hipmm_status status = segments_grow(segments, heap, request_room(request), request->stream);
  if (status) return status;
  uint32_t id = heap_take_ready(heap, request);
  if (id) *id_out = id;
  return id ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

static enum hipmm_status backing_take_new(struct ground *ground, struct heap *heap, const struct request *request,
                                          uint32_t *id_out)
{
  return ground->mapped ? granules_take(&ground->granules, heap, request, true, id_out)
                        : backing_take_from_segment(&ground->segments, heap, request, id_out);
}

/* From memory under other addresses. HIPMM_E_OUT_OF_MEMORY when that is not enough. */
static enum hipmm_status backing_take_held(struct ground *ground, struct heap *heap, const struct request *request,
                                           uint32_t *id_out)
{
  if (!ground->mapped) return HIPMM_E_OUT_OF_MEMORY;
  enum hipmm_status status = granules_take(&ground->granules, heap, request, false, id_out);
  /* Where pieces may alias, all that was pending has been taken without a wait of the host. */
  if (status != HIPMM_E_OUT_OF_MEMORY || ground->granules.pieces.may_alias) return status;
  if (!idle_is_pending(&ground->granules.pieces, heap)) return status;
  heap_wait(heap);
  uint32_t id = heap_take_ready(heap, request);
  if (!id) return granules_take(&ground->granules, heap, request, false, id_out);
  *id_out = id;
  return HIPMM_OK;
}

/* Where the host must wait before a piece is moved, the device runs dry, in each round of a program that goes round.
 * There the pool grows first, by up to this part of the most that it had use for; then what comes finds memory where it
 * is. */
enum { GROWTH_SHARE = 4 };

static bool backing_grows_first(const struct ground *ground, const struct request *request)
{
  return ground->mapped && !ground->granules.pieces.may_alias &&
         ground_bytes(ground) + request->bytes <= ground->most_bytes + ground->most_bytes / GROWTH_SHARE;
}

enum hipmm_status ground_expect(struct ground *ground, const struct heap *heap, const struct request *request)
{
  return ground->mapped ? granules_expect(&ground->granules, heap, request) : HIPMM_OK;
}

enum hipmm_status ground_take(struct ground *ground, struct heap *heap, const struct request *request, uint32_t *id_out)
{
  enum hipmm_status status = ground_expect(ground, heap, request);
  if (status) return status;
  uint64_t wanted = heap->live_bytes + request->bytes;
  if (wanted > ground->most_bytes) ground->most_bytes = wanted;
  bool is_new_first = backing_grows_first(ground, request);
  status = (is_new_first ? backing_take_new : backing_take_held)(ground, heap, request, id_out);
  if (!hipmm_is_out_of_memory(status)) return status;
  if (!is_new_first) return backing_take_new(ground, heap, request, id_out);
  return backing_take_held(ground, heap, request, id_out) ? status : HIPMM_OK;
}

enum hipmm_status ground_fill(struct ground *ground, struct heap *heap, uint64_t bytes)
{
  return ground->mapped ? granules_fill(&ground->granules, heap, bytes)
                        : segments_grow(&ground->segments, heap, bytes, STREAM_CLEAN);
}

enum hipmm_status ground_release_idle(struct ground *ground, struct heap *heap, uint64_t keep_bytes)
{
  ground->most_bytes = ground->granules.rest_bytes = 0;
  return ground->mapped ? idle_release(&ground->granules.pieces, heap, keep_bytes)
                        : segments_release_idle(&ground->segments, heap, keep_bytes);
}

void ground_set_maximum(struct ground *ground, uint64_t maximum_bytes)
{
  if (ground->mapped)
    ground->granules.pieces.maximum_bytes = pieces_round_down(&ground->granules.pieces, maximum_bytes);
  else
    ground->segments.maximum_bytes = maximum_bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
}

/* Goes by granules: for introspection. */
static uint64_t backing_first(const struct ground *ground, uint64_t start, uint64_t end, bool backed)
{
  const struct pieces *pieces = &ground->granules.pieces;
  if (!ground->mapped) return backed ? start : end;
  uint64_t at = pieces_first(pieces, pieces_round_down(pieces, start), pieces_round_up(pieces, end), backed);
  return at < start ? start : at < end ? at : end;
}

uint64_t ground_first_vacant(const struct ground *ground, uint64_t start, uint64_t end)
{
  return backing_first(ground, start, end, false);
}

uint64_t ground_first_backed(const struct ground *ground, uint64_t start, uint64_t end)
{
  return backing_first(ground, start, end, true);
}

uint64_t ground_bytes(const struct ground *ground)
{
  return ground->mapped ? ground->granules.pieces.bytes : ground->segments.bytes;
}

uint64_t ground_peak_bytes(const struct ground *ground)
{
  return ground->mapped ? ground->granules.pieces.peak_bytes : ground->segments.peak_bytes;
}

uint64_t ground_maximum_bytes(const struct ground *ground)
{
  return ground->mapped ? ground->granules.pieces.maximum_bytes : ground->segments.maximum_bytes;
}

uint64_t ground_least_bytes(const struct ground *ground)
{
  return ground->mapped ? ground->granules.pieces.granule_bytes : HIPMM_ALIGNMENT;
}

uint64_t ground_pieces(const struct ground *ground)
{
  return ground->mapped ? ground->granules.pieces.bytes / ground->granules.pieces.granule_bytes
                        : ground->segments.count;
}
