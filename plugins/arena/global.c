/* SPDX-License-Identifier: MIT */
/* global.c: see global.h. */
#include "global.h"

static const size_t free_bytes = MAX_STREAMS * sizeof(struct tlsf);

/* ---- Free ranges ---- */

/* A range that no work uses may merge with a range of any stream, but then no other stream may use it at once. With
 * several streams, a small range therefore does not absorb a larger one. */
static bool global_can_merge(const struct global *global, const struct arena_range *range, uint32_t neighbour)
{
  const struct arena_range *other = range_of(&global->ranges, neighbour);
  if (!neighbour || range_state(other) != RANGE_FREE) return false;
  if (other->stream == range->stream) return true;
  return other->stream == STREAM_READY && (global->streams.active == 1 || other->bytes <= range->bytes);
}

static void global_unlink_range(struct global *global, uint32_t id)
{
  uint32_t stream = range_of(&global->ranges, id)->stream;
  tlsf_remove(&global->free[stream], &global->ranges, id);
  if (stream == STREAM_READY || global->free[stream].count) return;
  stream_set_remove(&global->holders, stream);
  stream_set_remove(&global->with_event, stream);
}

static void global_link_range(struct global *global, uint32_t id)
{
  uint32_t stream = range_of(&global->ranges, id)->stream;
  tlsf_add(&global->free[stream], &global->ranges, id);
  if (stream == STREAM_READY) return;
  stream_set_add(&global->holders, stream);
  if (stream_may_be_waited_for(&global->streams, stream)) stream_set_add(&global->with_event, stream);
}

void global_retain_stream(struct global *global, uint32_t stream)
{
  stream_retain(&global->streams, stream);
  if (stream_set_has(&global->holders, stream)) stream_set_add(&global->with_event, stream);
}

/* Merges `second` into `first`, which it follows. Neither is in an index. */
static void global_merge(struct global *global, uint32_t first, uint32_t second, uint32_t stream)
{
  struct arena_range *lower = range_of(&global->ranges, first);
  const struct arena_range *upper = range_of(&global->ranges, second);
  if (lower->epoch < upper->epoch) lower->epoch = upper->epoch;
  lower->stream = (uint16_t)stream;
  range_merge(&global->ranges, first, second);
  range_discard(&global->ranges, second);
}

void global_free(struct global *global, uint32_t id, uint32_t stream, uint64_t epoch)
{
  struct arena_ranges *ranges = &global->ranges;
  struct arena_range *range = range_of(ranges, id);
  uint32_t before = range->before, after = range->after;
  range->stream = (uint16_t)stream;
  range->epoch = epoch;
  range_set_state(range, RANGE_FREE);
  if (global_can_merge(global, range, after)) {
    global_unlink_range(global, after);
    global_merge(global, id, after, stream);
  }
  if (global_can_merge(global, range, before)) {
    global_unlink_range(global, before);
    global_merge(global, before, id, stream);
    id = before;
  }
  global_link_range(global, id);
}

/* The frees of the stream up to `epoch` have completed: their ranges become ready for every stream. */
static bool global_complete_up_to(struct global *global, uint32_t stream, uint64_t epoch)
{
  struct tlsf *tlsf = &global->free[stream];
  uint32_t kept = RANGE_NONE;
  bool any = false;
  for (uint32_t id; (id = tlsf_any(tlsf));) {
    struct arena_range *range = range_of(&global->ranges, id);
    global_unlink_range(global, id);
    if (range->epoch > epoch) {
      range->next = kept;
      kept = id;
      continue;
    }
    global_free(global, id, STREAM_READY, 0);
    any = true;
  }
  for (uint32_t next; kept; kept = next) {
    next = range_of(&global->ranges, kept)->next;
    global_link_range(global, kept);
  }
  return any;
}

void global_complete_stream(struct global *global, uint32_t stream)
{
  global_complete_up_to(global, stream, UINT64_MAX);
}

/* ---- Finding ---- */

static uint64_t global_room_for(const struct arena_request *request, uint64_t bytes)
{
  return bytes + (request->alignment - HIPMM_ALIGNMENT);
}

static uint32_t global_fit_on(const struct global *global, uint32_t stream, const struct arena_request *request)
{
  const struct tlsf *tlsf = &global->free[stream];
  if (!tlsf->count) return RANGE_NONE;
  uint32_t id = tlsf_fit(tlsf, &global->ranges, global_room_for(request, request->most_bytes));
  if (id || request->most_bytes == request->bytes) return id;
  return tlsf_fit(tlsf, &global->ranges, global_room_for(request, request->bytes));
}

/* Splits off what lies before the aligned address, as a free range. RANGE_NONE when records are short. */
static uint32_t global_split_front(struct global *global, uint32_t id, const struct arena_request *request)
{
  const struct arena_range *range = range_of(&global->ranges, id);
  uint64_t start = (range->start + request->alignment - 1) & ~(request->alignment - 1);
  if (start == range->start) return id;
  uint32_t behind = range_new(&global->ranges);
  if (!behind) return RANGE_NONE;
  range_split(&global->ranges, id, start - range->start, behind);
  global_link_range(global, id);
  return behind;
}

static void global_split_rest(struct global *global, uint32_t id, const struct arena_request *request)
{
  struct arena_range *range = range_of(&global->ranges, id);
  if (range->bytes < request->most_bytes + request->least_rest) return;
  uint32_t rest = range_new(&global->ranges);
  if (!rest) return;
  range_split(&global->ranges, id, request->most_bytes, rest);
  range_set_state(range_of(&global->ranges, rest), RANGE_FREE);
  global_link_range(global, rest);
}

static uint32_t global_detach(struct global *global, uint32_t id, const struct arena_request *request)
{
  if (!id) return RANGE_NONE;
  global_unlink_range(global, id);
  uint32_t taken = global_split_front(global, id, request);
  if (taken)
    global_split_rest(global, taken, request);
  else
    global_link_range(global, id);
  return taken;
}

/* The smaller range; of equal ones the one at the lower address. Any range is better than RANGE_NONE. */
static uint32_t global_better_of(const struct global *global, uint32_t a, uint32_t b)
{
  if (!a || !b) return a ? a : b;
  const struct arena_range *first = range_of(&global->ranges, a), *second = range_of(&global->ranges, b);
  if (first->bytes != second->bytes) return first->bytes < second->bytes ? a : b;
  return first->start < second->start ? a : b;
}

uint32_t global_find_ready(struct global *global, const struct arena_request *request)
{
  uint32_t own = global_fit_on(global, request->stream, request), clean = global_fit_on(global, STREAM_READY, request);
  return global_detach(global, global_better_of(global, own, clean), request);
}

uint32_t global_find_completed(struct global *global, const struct arena_request *request)
{
  struct streams *streams = &global->streams;
  bool any = false;
  for (uint32_t stream = 0; (stream = stream_set_next(&global->with_event, stream)) < MAX_STREAMS; stream++) {
    stream_cover(streams, stream);
    uint64_t before = stream_of(streams, stream)->completed;
    stream_poll(streams, stream);
    uint64_t completed = stream_of(streams, stream)->completed;
    if (completed != before) any |= global_complete_up_to(global, stream, completed);
  }
  return any ? global_find_ready(global, request) : RANGE_NONE;
}

/* The best fit among the streams that can be waited for. */
uint32_t global_find_waiting(struct global *global, const struct arena_request *request)
{
  struct streams *streams = &global->streams;
  uint32_t best = RANGE_NONE;
  for (uint32_t stream = 0; (stream = stream_set_next(&global->with_event, stream)) < MAX_STREAMS; stream++) {
    if (stream == request->stream) continue;
    uint32_t id = global_fit_on(global, stream, request);
    if (id &&
        (range_of(&global->ranges, id)->epoch <= stream_of(streams, stream)->recorded || stream_cover(streams, stream)))
      best = global_better_of(global, best, id);
  }
  if (!best) return RANGE_NONE;
  const struct arena_range *range = range_of(&global->ranges, best);
  if (!stream_wait(streams, request->stream, range->stream, range->epoch)) return RANGE_NONE;
  global_note_wait(global, request->stream);
  return global_detach(global, best, request);
}

bool global_has_without_event(const struct global *global, uint32_t stream, uint64_t least_bytes)
{
  const struct stream_set *holders = &global->holders;
  uint64_t bytes = 0;
  for (uint32_t other = 0; bytes < least_bytes && (other = stream_set_next(holders, other)) < MAX_STREAMS; other++) {
    const struct stream *holder = stream_of(&global->streams, other);
    if (other != stream && holder->recorded < holder->frees) bytes += global->free[other].bytes;
  }
  return bytes >= least_bytes;
}

void global_complete_all(struct global *global)
{
  streams_complete(&global->streams);
  for (uint32_t stream = 0; (stream = stream_set_next(&global->holders, stream)) < MAX_STREAMS; stream++)
    global_complete_stream(global, stream);
}

/* ---- Chunks ---- */

static enum hipmm_status global_add_chunk(struct global *global, struct arena_chunk *chunk, uint32_t stream)
{
  struct arena_ranges *ranges = &global->ranges;
  uint64_t bytes = chunk->bytes;
  uint32_t id = address_map_cover(&ranges->starts, (uintptr_t)chunk->ptr, bytes) ? range_new(ranges) : RANGE_NONE;
  if (!id) {
    arena_chunks_free(&global->chunks, chunk);
    return global->services->refuse(global->services, HIPMM_E_OUT_OF_MEMORY,
                                    "no host memory left for records of {0:bytes} more", bytes, 0, 0);
  }
  struct arena_range *range = range_of(ranges, id);
  range_set_extent(range, (uintptr_t)chunk->ptr, bytes, 0);
  range->before = range->after = RANGE_NONE;
  chunk->first = id;
  global_free(global, id, stream, stream ? stream_record_free(&global->streams, stream) : 0);
  return HIPMM_OK;
}

enum hipmm_status global_grow(struct global *global, const struct arena_request *request, bool exactly)
{
  struct arena_chunk *chunk;
  hipmm_stream_t handle = stream_of(&global->streams, request->stream)->handle;
  uint64_t bytes = global_room_for(request, request->bytes);
  enum hipmm_status status = exactly ? arena_chunks_allocate_exactly(&global->chunks, bytes, handle, &chunk)
                                     : arena_chunks_allocate(&global->chunks, bytes, handle, &chunk);
  return status ? status : global_add_chunk(global, chunk, request->stream);
}

enum hipmm_status global_fill(struct global *global, uint64_t bytes)
{
  struct arena_chunk *chunk;
  enum hipmm_status status = arena_chunks_allocate_exactly(&global->chunks, bytes, NULL, &chunk);
  return status ? status : global_add_chunk(global, chunk, STREAM_READY);
}

/* Whether the chunk is one range that no work uses. */
static bool global_is_idle(const struct global *global, const struct arena_chunk *chunk)
{
  const struct arena_range *range = range_of(&global->ranges, chunk->first);
  return range_state(range) == RANGE_FREE && range->stream == STREAM_READY && range->bytes == chunk->bytes;
}

enum hipmm_status global_release_idle(struct global *global, uint64_t keep_bytes)
{
  struct arena_chunks *chunks = &global->chunks;
  enum hipmm_status first = HIPMM_OK;
  for (uint32_t i = chunks->count; i-- > 0;) {
    struct arena_chunk *chunk = &chunks->items[i];
    uint32_t range = chunk->first;
    uint64_t start = (uintptr_t)chunk->ptr, bytes = chunk->bytes;
    if (chunks->bytes - chunk->bytes < keep_bytes || !global_is_idle(global, chunk)) continue;
    global_unlink_range(global, range);
    enum hipmm_status status = arena_chunks_free(chunks, chunk);
    if (!first) first = status;
    if (status) {
      global_link_range(global, range); /* the upstream refused it */
      continue;
    }
    range_discard(&global->ranges, range);
    address_map_discard(&global->ranges.starts, start, bytes);
  }
  return first;
}

void global_trim_records(struct global *global)
{
  struct arena_ranges *ranges = &global->ranges;
  for (uint32_t i = 0; i < global->chunks.count; i++)
    for (uint32_t id = global->chunks.items[i].first; id; id = range_of(ranges, id)->after) {
      const struct arena_range *range = range_of(ranges, id);
      if (range_state(range) == RANGE_FREE) address_map_discard(&ranges->starts, range->start, range->bytes);
    }
  ranges_trim(ranges);
}

/* ---- Totals ---- */

uint64_t global_free_bytes(const struct global *global)
{
  uint64_t bytes = 0;
  for (uint32_t stream = 0; stream < global->streams.count; stream++) bytes += global->free[stream].bytes;
  return bytes;
}

uint64_t global_largest_free(const struct global *global)
{
  uint64_t largest = 0;
  for (uint32_t stream = 0; stream < global->streams.count; stream++) {
    uint64_t bytes = tlsf_largest(&global->free[stream], &global->ranges);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

/* ---- Life ---- */

bool global_open(struct global *global, const struct hipmm_services *services, enum record record)
{
  *global = (struct global){.services = services};
  bool opened = ranges_open(&global->ranges, services);
  opened = streams_open(&global->streams, services, record) && opened;
  global->free = services->host_allocate(services, free_bytes);
  return opened && global->free;
}

void global_close(struct global *global)
{
  const struct hipmm_services *services = global->services;
  if (global->chunks.items) arena_chunks_close(&global->chunks);
  streams_close(&global->streams);
  ranges_close(&global->ranges);
  services->host_free(services, global->free, free_bytes);
}
