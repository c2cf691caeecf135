/* SPDX-License-Identifier: MIT */
/* span.c: the functions of hipmm/span.h. Spans lie in ranges of their own, without blocks. Where a program commits memory, chunks
 * of one granule are mapped, since a chunk can only be unmapped as a whole. Such a chunk is never idle, so nothing moves or
 * releases it. What is decommitted becomes an unmapped chunk, which the next commit or allocation of the pool uses first. */
#include "../common/sizes.h"
#include "allocate.h"

static const struct addresses *span_addresses(const struct pool *pool)
{
  return &pool->arena.backing.granules.chunks.addresses;
}

/* ---- The spans that there are. The caller holds the lock ---- */

/* span_holds() reads it without the lock. */
static void spans_set_count(struct spans *spans, uint32_t n)
{
  __atomic_store_n(&spans->n, n, __ATOMIC_RELAXED);
}

struct key_tree_node *spans_next(const struct spans *spans, const struct key_tree_node *span)
{
  return span ? key_tree_next(spans->by_start, span) : key_tree_at_least(spans->by_start, 0, 0);
}

bool span_next_run(const struct pool *pool, const struct key_tree_node *span, uint64_t *start, uint64_t *end)
{
  uint64_t from = *end ? *end : span->major, stop = span->major + span->minor;
  if (from >= stop) return false;
  *start = addresses_first(span_addresses(pool), from, stop, true);
  if (*start == stop) return false;
  *end = addresses_first(span_addresses(pool), *start, stop, false);
  return true;
}

bool span_holds(struct pool *pool, const void *ptr, struct hipmm_block *span_out)
{
  if (!__atomic_load_n(&pool->spans.n, __ATOMIC_RELAXED)) return false; /* most pools have none */
  if (biased_lock_enter(&pool->arena.lock, pool->arena.services)) return false;
  const struct key_tree_node *span = key_tree_holding(pool->spans.by_start, (uintptr_t)ptr);
  if (span) *span_out = (struct hipmm_block){(void *)span->major, span->minor};
  biased_lock_release(&pool->arena.lock);
  return span != NULL;
}

static void spans_remove(struct pool *pool, struct key_tree_node *span)
{
  key_tree_remove(&pool->spans.by_start, span);
  spans_set_count(&pool->spans, pool->spans.n - 1);
  pool->arena.services->host_free(pool->arena.services, span, sizeof *span);
}

void spans_close(struct pool *pool)
{
  while (pool->spans.by_start) spans_remove(pool, pool->spans.by_start);
}

/* ---- Creating ---- */

/* The first address in the range with `bytes` that no span has; 0 if there is none. */
static uint64_t spans_find_in(const struct spans *spans, const struct range *range, uint64_t bytes)
{
  uint64_t at = range->start, end = range->start + range->bytes;
  for (const struct key_tree_node *span = key_tree_at_least(spans->by_start, at, 0); span && span->major < end;
       span = key_tree_next(spans->by_start, span)) {
    if (span->major - at >= bytes) return at;
    at = span->major + span->minor;
  }
  return end - at >= bytes ? at : 0;
}

/* Each range has as many addresses as all before it, if the process has so many left, since there are few ranges. */
static enum hipmm_status spans_reserve(struct pool *pool, uint64_t bytes, uint64_t *start_out)
{
  struct chunks *chunks = &pool->arena.backing.granules.chunks;
  struct spans *spans = &pool->spans;
  const struct range *range;
  enum hipmm_status status = HIPMM_E_LIMIT;
  if (spans->range_bytes > bytes) status = chunks_reserve(chunks, spans->range_bytes, &range);
  if (status) status = chunks_reserve(chunks, bytes, &range);
  if (status == HIPMM_E_LIMIT)
    return pool->arena.services->refuse(
        pool->arena.services, status,
        "cannot reserve {0:bytes} of addresses: the pool has {1} ranges of addresses, and no "
        "more; create fewer or smaller spans",
        bytes, MAX_RANGES, 0);
  if (status) return status;
  chunks->addresses.ranges[chunks->addresses.n_ranges - 1].is_of_spans = true;
  spans->range_bytes += range->bytes;
  *start_out = range->start;
  return HIPMM_OK;
}

static enum hipmm_status spans_add(struct pool *pool, uint64_t bytes, uint64_t *start_out)
{
  const struct hipmm_services *services = pool->arena.services;
  const struct addresses *addresses = span_addresses(pool);
  struct spans *spans = &pool->spans;
  enum hipmm_status status = HIPMM_OK;
  uint64_t start = 0;
  struct key_tree_node *span = services->host_allocate(services, sizeof *span);
  if (!span)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for the pool's spans", 0, 0, 0);
  for (uint32_t i = 0; !start && i < addresses->n_ranges; i++)
    if (addresses->ranges[i].is_of_spans) start = spans_find_in(spans, &addresses->ranges[i], bytes);
  if (!start) status = spans_reserve(pool, bytes, &start);
  if (status) {
    services->host_free(services, span, sizeof *span);
    return status;
  }
  *span = (struct key_tree_node){.major = start, .minor = bytes};
  key_tree_insert(&spans->by_start, span);
  spans_set_count(spans, spans->n + 1);
  *start_out = start;
  return HIPMM_OK;
}

static enum hipmm_status span_create(void *self, size_t bytes, size_t *granule_out, void **ptr_out)
{
  struct pool *pool = self;
  const struct hipmm_services *services = pool->arena.services;
  uint64_t start = 0;
  if (!pool->arena.backing.ops->moves)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, "growth",
                          "the pool has segments, which have no addresses without memory; set \"growth\": \"mapped\", "
                          "with the pool directly over a `device` resource");
  if (bytes - 1 >= SIZES_MOST_BYTES)
    return services->refuse(services, HIPMM_E_ARGUMENT, "a span of {0} bytes: it has 1 byte to {1:bytes}", bytes,
                            SIZES_MOST_BYTES, 0);
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, services);
  if (status) return status;
  status = spans_add(pool, addresses_round_up(span_addresses(pool), bytes), &start);
  biased_lock_release(&pool->arena.lock);
  if (status) return status;
  *granule_out = span_addresses(pool)->granule_bytes;
  *ptr_out = (void *)(uintptr_t)start;
  return HIPMM_OK;
}

/* ---- Granules. The caller holds the lock ---- */

static void span_count(struct pool *pool, uint64_t bytes)
{
  pool->arena.heap.live_bytes += bytes;
  pool->arena.heap.requested_bytes += bytes;
}

/* A new chunk of a granule. Where a chunk takes a descriptor, a span of many granules would take all that the process has. */
static enum hipmm_status span_create_chunk(struct chunks *chunks, uint32_t *chunk_out)
{
  if (!chunks->most || chunks->live < chunks->most) return chunk_create(chunks, 1, chunk_out);
  return chunks->services->refuse(chunks->services, HIPMM_E_OUT_OF_MEMORY,
                                  "no granule more can be committed: each takes an open file of this runtime, and the "
                                  "pool has {0}, which is its share; raise the limit (ulimit -n)",
                                  chunks->live, 0, 0);
}

/* An unmapped chunk of a granule: of idle memory, or else new. */
static enum hipmm_status span_obtain_chunk(struct pool *pool, uint32_t *chunk_out)
{
  struct chunks *chunks = &pool->arena.backing.granules.chunks;
  *chunk_out = idle_obtain_unmapped(chunks, &pool->arena.heap, 1, STREAM_READY);
  if (*chunk_out) return HIPMM_OK;
  enum hipmm_status status = idle_detach(chunks, &pool->arena.heap, STREAM_READY, 1, chunk_out);
  if (!status) pool->arena.backing.granules.moves++;
  return status == HIPMM_E_OUT_OF_MEMORY ? span_create_chunk(chunks, chunk_out) : status;
}

static enum hipmm_status span_map(struct pool *pool, uint64_t address, uint32_t *chunk_out)
{
  struct chunks *chunks = &pool->arena.backing.granules.chunks;
  enum hipmm_status status = span_obtain_chunk(pool, chunk_out);
  if (status) return status;
  status = chunk_map(chunks, *chunk_out, address);
  if (status)
    chunks_add_unmapped(chunks, *chunk_out);
  else
    span_count(pool, chunk_bytes(chunks, *chunk_out));
  return status;
}

/* While the pool is suspended, the chunk has no memory, and is dropped. */
static enum hipmm_status span_unmap(struct pool *pool, uint32_t chunk)
{
  struct chunks *chunks = &pool->arena.backing.granules.chunks;
  enum hipmm_status status = chunk_unmap(chunks, chunk);
  if (status) return status;
  span_count(pool, -chunk_bytes(chunks, chunk));
  if (chunks->is_suspended) return chunk_destroy(chunks, chunk);
  chunks_add_unmapped(chunks, chunk);
  return HIPMM_OK;
}

static enum hipmm_status span_unmap_all(struct pool *pool, uint64_t start, uint64_t end)
{
  uint64_t at = start, begin;
  enum hipmm_status status = HIPMM_OK;
  for (uint32_t chunk; !status && (chunk = chunks_next(&pool->arena.backing.granules.chunks, &at, end, &begin));)
    status = span_unmap(pool, chunk);
  return status;
}

/* Maps memory at each uncommitted granule, or after a failure at none. Through `next` it finds the chunks that it has mapped. */
static enum hipmm_status span_map_all(struct pool *pool, uint64_t start, uint64_t end)
{
  const struct chunks *chunks = &pool->arena.backing.granules.chunks;
  uint32_t mapped = CHUNK_NONE, chunk = CHUNK_NONE;
  enum hipmm_status status = HIPMM_OK;
  for (uint64_t at = start; at < end && (at = addresses_first(&chunks->addresses, at, end, false)) < end;) {
    status = span_map(pool, at, &chunk);
    if (status) break;
    chunk_of(chunks, chunk)->next = mapped;
    mapped = chunk;
  }
  while (status && mapped) {
    chunk = mapped;
    mapped = chunk_of(chunks, chunk)->next;
    (void)span_unmap(pool, chunk); /* what stays mapped stays committed */
  }
  return status;
}

/* ---- Committing ---- */

static enum hipmm_status span_attempt(struct pool *pool, uint64_t start, uint64_t end, const struct request *request)
{
  enum hipmm_status status = backing_check_available(&pool->arena.backing, &pool->arena.heap, request);
  return status ? status : span_map_all(pool, start, end);
}

/* In place of all idle memory, as miss.c does for an allocation. */
static enum hipmm_status span_exchange(struct pool *pool, uint64_t start, uint64_t end, const struct request *request,
                                       enum hipmm_status status)
{
  if (streams_any_captured(&pool->arena.heap.streams, STREAM_READY)) return status;
  caches_flush(&pool->caches, &pool->arena.heap);
  status = arena_collect(&pool->arena, STREAM_READY, status);
  if (!status) status = backing_check_available(&pool->arena.backing, &pool->arena.heap, request);
  if (!status) status = backing_release_idle(&pool->arena.backing, &pool->arena.heap, 0);
  if (!status) status = span_attempt(pool, start, end, request);
  if (!status)
    slack_update(&pool->arena.backing.granules.slack,
                 pool->arena.heap.live_bytes); /* the release began its peak anew */
  return status;
}

static enum hipmm_status span_commit_range(struct pool *pool, uint64_t start, uint64_t end)
{
  struct slack *slack = &pool->arena.backing.granules.slack;
  uint64_t held_bytes = backing_bytes(&pool->arena.backing), peak_bytes = slack->peak_bytes;
  uint64_t missing = addresses_uncommitted(span_addresses(pool), start, end) * span_addresses(pool)->granule_bytes;
  const struct request request = {
      .bytes = missing, .alignment = HIPMM_ALIGNMENT, .requested = missing, .stream = STREAM_READY};
  if (!missing) return HIPMM_OK;
  slack_update(slack, pool->arena.heap.live_bytes + missing);
  enum hipmm_status status = span_attempt(pool, start, end, &request);
  if (hipmm_is_out_of_memory(status)) status = span_exchange(pool, start, end, &request, status);
  if (!status) return HIPMM_OK;
  if (slack->peak_bytes > peak_bytes) slack->peak_bytes = peak_bytes; /* else a release began it anew */
  if (backing_bytes(&pool->arena.backing) > held_bytes)
    backing_release_idle(&pool->arena.backing, &pool->arena.heap, held_bytes);
  return explain_failure(&pool->arena.backing, &pool->arena.heap, status, &request);
}

/* Finds the span, and checks that the range is of whole granules in it. */
static enum hipmm_status span_find(const struct pool *pool, const void *ptr, size_t offset, size_t bytes,
                                   struct key_tree_node **span_out)
{
  const struct hipmm_services *services = pool->arena.services;
  uint64_t granule_bytes = span_addresses(pool)->granule_bytes;
  struct key_tree_node *span = key_tree_at(pool->spans.by_start, (uintptr_t)ptr);
  if (!span)
    return services->refuse(services, HIPMM_E_POINTER, "no span starts at {0:hex}: it was destroyed before",
                            (uintptr_t)ptr, 0, 0);
  if (offset % granule_bytes || bytes % granule_bytes)
    return services->refuse(services, HIPMM_E_ARGUMENT,
                            "offset {0} and bytes {1} of a span are not multiples of its granule of {2} bytes", offset,
                            bytes, granule_bytes);
  if (offset > span->minor || bytes > span->minor - offset)
    return services->refuse(services, HIPMM_E_ARGUMENT, "{0:bytes} from offset {1} on end beyond the span of {2:bytes}",
                            bytes, offset, span->minor);
  *span_out = span;
  return HIPMM_OK;
}

static enum hipmm_status span_commit(void *self, void *ptr, size_t offset, size_t bytes)
{
  struct pool *pool = self;
  struct key_tree_node *span;
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (status) return status;
  status = span_find(pool, ptr, offset, bytes, &span);
  if (!status && pool->arena.backing.granules.chunks.is_suspended)
    status = pool->arena.services->refuse(pool->arena.services, HIPMM_E_STATE,
                                          "cannot commit {0:bytes}: it is suspended; resume it first "
                                          "(hipmm_resource_resume())",
                                          bytes, 0, 0);
  if (!status && bytes) status = span_commit_range(pool, (uintptr_t)ptr + offset, (uintptr_t)ptr + offset + bytes);
  biased_lock_release(&pool->arena.lock);
  return status;
}

/* ---- Decommitting ---- */

static enum hipmm_status span_refuse_captured(const struct pool *pool)
{
  return pool->arena.services->refuse(pool->arena.services, HIPMM_E_STATE,
                                      "a graph is being captured; decommit memory of spans after the capture", 0, 0, 0);
}

/* Without the lock. */
static enum hipmm_status span_wait(const struct pool *pool, hipmm_stream_t stream)
{
  const struct hipmm_services *services = pool->arena.services;
  int previous = services->enter_device(services);
  bool is_captured = hipmm_stream_is_captured(services->hip, stream);
  int code = is_captured ? 0 : services->hip->StreamSynchronize(stream);
  enum hipmm_status status = is_captured ? span_refuse_captured(pool)
                             : code      ? services->refuse_hip(services, "hipStreamSynchronize", code, 0)
                                         : HIPMM_OK;
  services->leave_device(services, previous);
  return status;
}

static enum hipmm_status span_decommit_locked(struct pool *pool, const struct key_tree_node *span, uint64_t offset,
                                              uint64_t bytes)
{
  const struct streams *streams = &pool->arena.heap.streams;
  if (streams_any_captured(streams, STREAM_READY) || streams_any_may_be_captured(streams))
    return span_refuse_captured(pool);
  return span_unmap_all(pool, span->major + offset, span->major + offset + bytes);
}

static enum hipmm_status span_decommit(void *self, void *ptr, size_t offset, size_t bytes, hipmm_stream_t stream)
{
  struct pool *pool = self;
  struct key_tree_node *span;
  enum hipmm_status status = span_wait(pool, stream);
  if (!status) status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (status) return status;
  status = span_find(pool, ptr, offset, bytes, &span);
  if (!status) status = span_decommit_locked(pool, span, offset, bytes);
  biased_lock_release(&pool->arena.lock);
  return status;
}

static enum hipmm_status span_destroy(void *self, void *ptr, hipmm_stream_t stream)
{
  struct pool *pool = self;
  struct key_tree_node *span;
  enum hipmm_status status = span_wait(pool, stream);
  if (!status) status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (status) return status;
  status = span_find(pool, ptr, 0, 0, &span);
  if (!status) status = span_decommit_locked(pool, span, 0, span->minor);
  if (!status) spans_remove(pool, span);
  biased_lock_release(&pool->arena.lock);
  return status;
}

static int span_find_holding(void *self, const void *ptr, struct hipmm_block *span_out)
{
  return span_holds(self, ptr, span_out);
}

const struct hipmm_spans pool_spans = {.struct_size = sizeof pool_spans,
                                       .create = span_create,
                                       .commit = span_commit,
                                       .decommit = span_decommit,
                                       .destroy = span_destroy,
                                       .find = span_find_holding};
