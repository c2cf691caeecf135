/* SPDX-License-Identifier: MIT */
/* global.c: see global.h. */
#include "global.h"

static const size_t free_bytes = MAX_STREAMS * sizeof(struct index);

/* ---- Free ranges ---- */

/* Clean memory may always be used by a stream, but then looks used to the others: with several streams a small range
 * does not spoil a large clean one. */
static bool global_can_merge(const struct global *global, const struct piece *range, uint32_t neighbour)
{
  const struct piece *other = piece_of(&global->pieces, neighbour);
  if (!neighbour || piece_state(other) != PIECE_FREE) return false;
  if (other->stream == range->stream) return true;
  return other->stream == STREAM_CLEAN && (global->streams.active == 1 || other->bytes <= range->bytes);
}

static void global_unlink_range(struct global *global, uint32_t id)
{
  index_remove(&global->free[piece_of(&global->pieces, id)->stream], &global->pieces, id);
}

/* `first` and `second`, which comes next, become one, which is in no list. */
static void global_join(struct global *global, uint32_t first, uint32_t second, uint32_t stream)
{
  struct piece *lower = piece_of(&global->pieces, first);
  const struct piece *upper = piece_of(&global->pieces, second);
  if (lower->epoch < upper->epoch) lower->epoch = upper->epoch;
  lower->stream = (uint16_t)stream;
  piece_join(&global->pieces, first, second);
  piece_drop(&global->pieces, second);
}

void global_give(struct global *global, uint32_t id, uint32_t stream, uint64_t epoch)
{
  struct pieces *pieces = &global->pieces;
  struct piece *range = piece_of(pieces, id);
  uint32_t before = range->before, after = range->after;
  range->stream = (uint16_t)stream;
  range->epoch = epoch;
  piece_set_state(range, PIECE_FREE);
  if (global_can_merge(global, range, after)) {
    global_unlink_range(global, after);
    global_join(global, id, after, stream);
  }
  if (global_can_merge(global, range, before)) {
    global_unlink_range(global, before);
    global_join(global, before, id, stream);
    id = before;
  }
  index_add(&global->free[stream], pieces, id);
}

/* Ranges of the stream up to `epoch` become clean. */
static bool global_clean_up_to(struct global *global, uint32_t stream, uint64_t epoch)
{
  struct index *index = &global->free[stream];
  uint32_t kept = PIECE_NONE;
  bool any = false;
  for (uint32_t id; (id = index_any(index));) {
    struct piece *range = piece_of(&global->pieces, id);
    index_remove(index, &global->pieces, id);
    if (range->epoch > epoch) {
      range->next = kept;
      kept = id;
      continue;
    }
    global_give(global, id, STREAM_CLEAN, 0);
    any = true;
  }
  for (uint32_t next; kept; kept = next) {
    next = piece_of(&global->pieces, kept)->next;
    index_add(index, &global->pieces, kept);
  }
  return any;
}

void global_clean_stream(struct global *global, uint32_t stream)
{
  global_clean_up_to(global, stream, UINT64_MAX);
}

/* ---- Taking ---- */

static uint64_t global_room_for(const struct request *request, uint64_t bytes)
{
  return bytes + (request->alignment - HIPMM_ALIGNMENT);
}

static uint32_t global_fit_on(const struct global *global, uint32_t stream, const struct request *request)
{
  const struct index *index = &global->free[stream];
  if (!index->count) return PIECE_NONE;
  uint32_t id = index_fit(index, &global->pieces, global_room_for(request, request->most_bytes));
  if (id || request->most_bytes == request->bytes) return id;
  return index_fit(index, &global->pieces, global_room_for(request, request->bytes));
}

/* Cuts what lies before the aligned address off, as a free range. PIECE_NONE when records are short. */
static uint32_t global_cut_front(struct global *global, uint32_t id, const struct request *request)
{
  const struct piece *range = piece_of(&global->pieces, id);
  uint64_t start = (range->start + request->alignment - 1) & ~(request->alignment - 1);
  if (start == range->start) return id;
  uint32_t behind = piece_take(&global->pieces);
  if (!behind) return PIECE_NONE;
  piece_cut(&global->pieces, id, start - range->start, behind);
  index_add(&global->free[range->stream], &global->pieces, id);
  return behind;
}

static void global_cut_rest(struct global *global, uint32_t id, const struct request *request)
{
  struct piece *range = piece_of(&global->pieces, id);
  if (range->bytes < request->most_bytes + request->least_rest) return;
  uint32_t rest = piece_take(&global->pieces);
  if (!rest) return;
  piece_cut(&global->pieces, id, request->most_bytes, rest);
  piece_set_state(piece_of(&global->pieces, rest), PIECE_FREE);
  index_add(&global->free[range->stream], &global->pieces, rest);
}

static uint32_t global_take(struct global *global, uint32_t id, const struct request *request)
{
  if (!id) return PIECE_NONE;
  global_unlink_range(global, id);
  uint32_t taken = global_cut_front(global, id, request);
  if (taken)
    global_cut_rest(global, taken, request);
  else
    index_add(&global->free[piece_of(&global->pieces, id)->stream], &global->pieces, id);
  return taken;
}

/* The smaller; at the lower address if they are as large. PIECE_NONE is worse than any. */
static uint32_t global_better_of(const struct global *global, uint32_t a, uint32_t b)
{
  if (!a || !b) return a ? a : b;
  const struct piece *first = piece_of(&global->pieces, a), *second = piece_of(&global->pieces, b);
  if (first->bytes != second->bytes) return first->bytes < second->bytes ? a : b;
  return first->start < second->start ? a : b;
}

uint32_t global_take_ready(struct global *global, const struct request *request)
{
  uint32_t own = global_fit_on(global, request->stream, request), clean = global_fit_on(global, STREAM_CLEAN, request);
  return global_take(global, global_better_of(global, own, clean), request);
}

uint32_t global_take_passed(struct global *global, const struct request *request)
{
  struct streams *streams = &global->streams;
  bool any = false;
  for (uint32_t stream = STREAM_FIRST; stream < streams->count; stream++) {
    if (!stream_of(streams, stream)->in_use || !global->free[stream].count) continue;
    stream_cover(streams, stream);
    uint64_t before = stream_of(streams, stream)->passed;
    stream_poll(streams, stream);
    uint64_t passed = stream_of(streams, stream)->passed;
    if (passed != before) any |= global_clean_up_to(global, stream, passed);
  }
  return any ? global_take_ready(global, request) : PIECE_NONE;
}

/* What fits best of the streams that can be waited for. */
uint32_t global_take_waiting(struct global *global, const struct request *request)
{
  struct streams *streams = &global->streams;
  uint32_t best = PIECE_NONE;
  for (uint32_t stream = STREAM_FIRST; stream < streams->count; stream++) {
    if (stream == request->stream || !global->free[stream].count) continue;
    uint32_t id = global_fit_on(global, stream, request);
    if (id &&
        (piece_of(&global->pieces, id)->epoch <= stream_of(streams, stream)->recorded || stream_cover(streams, stream)))
      best = global_better_of(global, best, id);
  }
  if (!best) return PIECE_NONE;
  const struct piece *range = piece_of(&global->pieces, best);
  if (!stream_wait(streams, request->stream, range->stream, range->epoch)) return PIECE_NONE;
  global_note_wait(global, request->stream);
  return global_take(global, best, request);
}

uint64_t global_withheld_bytes(const struct global *global, uint32_t stream)
{
  uint64_t bytes = 0;
  for (uint32_t other = STREAM_FIRST; other < global->streams.count; other++) {
    const struct stream *holder = stream_of(&global->streams, other);
    if (holder->in_use && other != stream && holder->recorded < holder->frees) bytes += global->free[other].bytes;
  }
  return bytes;
}

/* ---- Chunks ---- */

static enum hipmm_status global_add_chunk(struct global *global, struct chunk *chunk, uint32_t stream)
{
  struct pieces *pieces = &global->pieces;
  uint64_t bytes = chunk->bytes;
  uint32_t id = address_map_cover(&pieces->starts, (uintptr_t)chunk->ptr, bytes) ? piece_take(pieces) : PIECE_NONE;
  if (!id) {
    chunks_give(&global->chunks, chunk);
    return global->services->refuse(global->services, HIPMM_E_OUT_OF_MEMORY,
                                    "no host memory left for records of {0:bytes} more", bytes, 0, 0);
  }
  struct piece *range = piece_of(pieces, id);
  piece_set_place(range, (uintptr_t)chunk->ptr, bytes, 0);
  range->before = range->after = PIECE_NONE;
  chunk->first = id;
  global_give(global, id, stream, stream ? stream_note_free(&global->streams, stream) : 0);
  return HIPMM_OK;
}

enum hipmm_status global_grow(struct global *global, const struct request *request, bool exactly)
{
  struct chunk *chunk;
  hipStream_t handle = stream_of(&global->streams, request->stream)->handle;
  uint64_t bytes = global_room_for(request, request->bytes);
  enum hipmm_status status = exactly ? chunks_take_exactly(&global->chunks, bytes, handle, &chunk)
                                     : chunks_take(&global->chunks, bytes, handle, &chunk);
  return status ? status : global_add_chunk(global, chunk, request->stream);
}

enum hipmm_status global_fill(struct global *global, uint64_t bytes)
{
  struct chunk *chunk;
  enum hipmm_status status = chunks_take_exactly(&global->chunks, bytes, NULL, &chunk);
  return status ? status : global_add_chunk(global, chunk, STREAM_CLEAN);
}

/* A chunk that is one clean range. */
static bool global_is_idle(const struct global *global, const struct chunk *chunk)
{
  const struct piece *range = piece_of(&global->pieces, chunk->first);
  return piece_state(range) == PIECE_FREE && range->stream == STREAM_CLEAN && range->bytes == chunk->bytes;
}

enum hipmm_status global_release_idle(struct global *global, uint64_t keep_bytes)
{
  struct chunks *chunks = &global->chunks;
  enum hipmm_status first = HIPMM_OK;
  for (uint32_t i = chunks->count; i-- > 0;) {
    struct chunk *chunk = &chunks->items[i];
    uint32_t range = chunk->first;
    uint64_t start = (uintptr_t)chunk->ptr, bytes = chunk->bytes;
    if (chunks->bytes < chunk->bytes + keep_bytes || !global_is_idle(global, chunk)) continue;
    global_unlink_range(global, range);
    enum hipmm_status status = chunks_give(chunks, chunk);
    if (!first) first = status;
    if (status) {
      index_add(&global->free[STREAM_CLEAN], &global->pieces, range); /* the upstream would not have it */
      continue;
    }
    piece_drop(&global->pieces, range);
    starts_discard(&global->pieces.starts, start, bytes);
  }
  return first;
}

void global_trim_records(struct global *global)
{
  struct pieces *pieces = &global->pieces;
  for (uint32_t i = 0; i < global->chunks.count; i++)
    for (uint32_t id = global->chunks.items[i].first; id; id = piece_of(pieces, id)->after) {
      const struct piece *range = piece_of(pieces, id);
      if (piece_state(range) == PIECE_FREE) starts_discard(&pieces->starts, range->start, range->bytes);
    }
  pieces_trim(pieces);
}

/* ---- Looking ---- */

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
    uint64_t bytes = index_largest(&global->free[stream], &global->pieces);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

/* ---- Life ---- */

bool global_open(struct global *global, const struct hipmm_services *services, enum record record)
{
  *global = (struct global){.services = services};
  bool opened = pieces_open(&global->pieces, services);
  opened = streams_open(&global->streams, services, record) && opened;
  global->free = services->host_allocate(services, free_bytes);
  return opened && global->free;
}

void global_close(struct global *global)
{
  const struct hipmm_services *services = global->services;
  if (global->chunks.items) chunks_close(&global->chunks);
  streams_close(&global->streams);
  pieces_close(&global->pieces);
  services->host_free(services, global->free, free_bytes);
}
