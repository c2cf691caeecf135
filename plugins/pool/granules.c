/* SPDX-License-Identifier: MIT */
/* granules.c: puts memory under an allocation, piece by piece. Driver calls cost microseconds: this is the path of
 * growth, never of reuse. */
#include "granules.h"
#include "idle.h"

/* New pieces have at most this part of what is held: a large pool moves fewer, larger pieces, at little cost in memory
 * that a piece keeps because a part of it is in use. Where each move is slow there is to be one in place of six, for up
 * to two percent more memory. */
enum { PIECE_SHARE = 1536, SLOW_PIECE_SHARE = 256 };

/* So many new pieces take longer than to ask whether they can be had. */
enum { MANY_PIECES = 16 };

/* A program that goes round, with little idle where it has most in use, may move the same few pieces to and fro in each
 * round. Where that is slow, it gets at most this part of what is held on top instead, and comes to rest. */
enum { REST_SHARE = 128 };

static bool granules_has_memory(const void *backing, uint64_t start, uint64_t end)
{
  const struct pieces *pieces = backing;
  start = pieces_round_down(pieces, start);
  end = pieces_round_up(pieces, end);
  return pieces_last(pieces, start, end, false) == end;
}

enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, uint64_t maximum_bytes)
{
  granules->moves = granules->returns = granules->rest_bytes = 0;
  enum hipmm_status status = pieces_open(&granules->pieces, services, upstream, maximum_bytes);
  if (!status && !history_open(&granules->history, services)) {
    pieces_close(&granules->pieces);
    status = HIPMM_E_OUT_OF_MEMORY;
  }
  if (status) return status;
  heap->blocks.granule_bytes = granules->pieces.granule_bytes;
  heap->has_memory = granules_has_memory;
  heap->backing = &granules->pieces;
  return HIPMM_OK;
}

void granules_close(struct granules *granules)
{
  history_close(&granules->history, granules->pieces.services);
  pieces_close(&granules->pieces);
}

/* ---- Growing ---- */

/* A place that needs memory: `granules` of it are asked for from `address` on, and `room` can take memory. */
struct gap {
  uint64_t address;
  uint64_t granules, room;
};

static uint64_t granules_gap_end(const struct pieces *pieces, const struct gap *gap)
{
  return gap->address + gap->granules * pieces->granule_bytes;
}

/* The last gap in [start, end). If it ends there, the vacant granules behind, up to `limit`, are room too. */
static bool granules_last_gap(const struct pieces *pieces, uint64_t start, uint64_t end, uint64_t limit,
                              struct gap *gap_out)
{
  enum { MOST_ROOM = 1 << 12 };
  uint64_t last = pieces_last(pieces, start, end, false);
  if (last == end) return false;
  uint64_t stop = last + pieces->granule_bytes, before = last > start ? pieces_last(pieces, start, last, true) : last;
  gap_out->address = before == last ? start : before + pieces->granule_bytes;
  gap_out->granules = (stop - gap_out->address) / pieces->granule_bytes;
  if (limit > stop + MOST_ROOM * pieces->granule_bytes) limit = stop + MOST_ROOM * pieces->granule_bytes;
  if (limit > stop) stop = pieces_first(pieces, stop, limit, true);
  gap_out->room = (stop - gap_out->address) / pieces->granule_bytes;
  return true;
}

static uint64_t granules_most_of_new_piece(const struct pieces *pieces)
{
  uint64_t share = pieces->is_slow ? SLOW_PIECE_SHARE : PIECE_SHARE;
  uint64_t most = pieces->bytes / share / pieces->granule_bytes;
  return most ? most : 1;
}

/* A block that memory is put under. It is in no list. */
struct site {
  uint32_t id;
  struct block *block;
  uint32_t stream;    /* that will use it */
  uint64_t end;       /* of what is asked for, a multiple of the granule */
  bool is_again;      /* it was asked for before, at such a moment */
  bool may_be_dirty;  /* memory that work on `stream` may still use, where it lay before, is good for it */
  uint64_t dirty_end; /* of such memory; 0: there is none */
  struct block *last; /* free block that a piece was taken from: the next one likely lies there too. NULL: none yet */
};

/* A piece that came here, up to `end`, has left a place that work of the stream may still use. */
static void granules_note_dirty(struct site *site, struct heap *heap, uint64_t end)
{
  if (end > site->dirty_end) site->dirty_end = end;
  stream_mark(&heap->streams, site->stream);
}

/* The free block in which the piece lies, if the site's stream may use it; NULL if not. */
static struct block *granules_idle_holder(const struct pieces *pieces, const struct heap *heap, uint32_t piece,
                                          struct site *site)
{
  if (!piece_of(pieces, piece)->home) return NULL; /* it is a spare */
  uint64_t start = piece_address(pieces, piece), end = start + piece_bytes(pieces, piece);
  if (start >= site->end && block_holds(site->block, start, end))
    return site->may_be_dirty || site->block->stream == STREAM_CLEAN ? site->block : NULL;
  if (site->last && block_holds(site->last, start, end)) return site->last;
  uint32_t id = free_index_holding(&heap->free[STREAM_CLEAN], &heap->blocks, start, end);
  if (!id && site->may_be_dirty) id = free_index_holding(&heap->free[site->stream], &heap->blocks, start, end);
  if (!id) return NULL;
  return site->last = block_of(&heap->blocks, id);
}

/* Puts the piece that lay at the gap's end before back there, if it is idle and fits, which makes the gap shorter. */
static bool granules_put_back(struct granules *granules, struct heap *heap, struct site *site, struct gap *gap)
{
  struct pieces *pieces = &granules->pieces;
  uint64_t begin;
  uint32_t piece = pieces_at(pieces, granules_gap_end(pieces, gap) - pieces->granule_bytes, &begin);
  if (!piece || begin < gap->address) return false;
  if (begin + piece_bytes(pieces, piece) > gap->address + gap->room * pieces->granule_bytes) return false;
  struct block *holder = granules_idle_holder(pieces, heap, piece, site);
  if (!holder) return false;
  if (piece_take(pieces, piece, holder->stream, holder->epoch)) return false;
  holder->vacant += piece_of(pieces, piece)->granules;
  piece_put(pieces, piece, begin); /* where it is mapped: that cannot fail */
  site->block->vacant -= piece_of(pieces, piece)->granules;
  if (holder->stream != STREAM_CLEAN) granules_note_dirty(site, heap, begin + piece_bytes(pieces, piece));
  gap->granules = gap->room = (begin - gap->address) / pieces->granule_bytes;
  granules->returns++;
  return true;
}

/* Leaves in the gap what is behind the last piece that lay there before: that may be of use yet. */
static void granules_spare_others(const struct pieces *pieces, struct gap *gap)
{
  uint64_t end = granules_gap_end(pieces, gap), begin;
  for (uint64_t at = end - pieces->granule_bytes; at > gap->address; at -= pieces->granule_bytes) {
    if (!pieces_at(pieces, at - pieces->granule_bytes, &begin)) continue;
    if (pieces_at(pieces, at, &begin)) return;
    gap->granules = (end - at) / pieces->granule_bytes;
    gap->room -= (at - gap->address) / pieces->granule_bytes;
    gap->address = at;
    return;
  }
}

/* An idle piece of at most `most` granules that the site's stream may use at once. *dirty_out: work of it may still use
 * its last place. */
static enum hipmm_status granules_take_any_idle(struct pieces *pieces, struct heap *heap, struct site *site,
                                                uint64_t most, uint32_t *piece_out, bool *dirty_out)
{
  bool dirty = site->block->stream != STREAM_CLEAN;
  enum hipmm_status status = HIPMM_E_OUT_OF_MEMORY;
  if (site->may_be_dirty || !dirty) status = idle_take_from(pieces, site->block, site->end, most, piece_out);
  *dirty_out = dirty && !status;
  if (status) status = idle_take(pieces, heap, STREAM_CLEAN, most, piece_out);
  if (!status || !site->may_be_dirty) return status;
  status = idle_take(pieces, heap, site->stream, most, piece_out);
  if (status) status = idle_take_waiting(pieces, heap, site->stream, most, piece_out);
  *dirty_out = !status;
  return status;
}

/* Every idle piece is too large for the gap: memory of one's size is given back and taken anew in smaller pieces. Waits
 * for work on it. That is seldom, as the small pieces stay; growing instead would be for ever. */
static enum hipmm_status granules_exchange(struct pieces *pieces, struct heap *heap, struct site *site,
                                           uint64_t granules, uint32_t *piece_out)
{
  uint32_t large;
  bool dirty;
  enum hipmm_status status = granules_take_any_idle(pieces, heap, site, IDLE_ANY, &large, &dirty);
  if (status) return status;
  uint64_t most = piece_of(pieces, large)->granules;
  status = idle_await(pieces, heap, large, site->stream);
  if (status)
    piece_keep_spare(pieces, large);
  else
    status = piece_destroy(pieces, large);
  return status ? status : piece_create(pieces, granules < most ? granules : most, piece_out);
}

static enum hipmm_status granules_create(struct pieces *pieces, const struct gap *gap, uint32_t *piece_out)
{
  uint64_t most = granules_most_of_new_piece(pieces);
  return piece_create(pieces, gap->granules < most ? gap->granules : most, piece_out);
}

/* A new piece in place of one that would have to be moved. */
static enum hipmm_status granules_create_for_rest(struct granules *granules, const struct gap *gap, uint32_t *piece_out)
{
  struct pieces *pieces = &granules->pieces;
  if (!pieces->is_slow || granules->rest_bytes >= pieces->bytes / REST_SHARE) return HIPMM_E_LIMIT;
  enum hipmm_status status = granules_create(pieces, gap, piece_out);
  granules->rest_bytes = status ? UINT64_MAX : granules->rest_bytes + piece_bytes(pieces, *piece_out);
  return status;
}

/* A piece for the gap. */
static enum hipmm_status granules_obtain(struct granules *granules, struct heap *heap, struct site *site,
                                         const struct gap *gap, bool may_create, uint32_t *piece_out, bool *dirty_out)
{
  struct pieces *pieces = &granules->pieces;
  uint32_t spare = idle_take_spare(pieces, heap, gap->room, site->stream);
  *dirty_out = false;
  if (spare) *piece_out = spare;
  if (spare || (site->is_again && !granules_create_for_rest(granules, gap, piece_out))) return HIPMM_OK;
  enum hipmm_status status = granules_take_any_idle(pieces, heap, site, gap->room, piece_out, dirty_out);
  if (status) status = granules_exchange(pieces, heap, site, gap->granules, piece_out);
  if (!status) granules->moves++;
  if (!status || !may_create) return status;
  uint64_t peak_bytes = pieces->peak_bytes;
  status = granules_create(pieces, gap, piece_out);
  if (pieces->peak_bytes > peak_bytes) history_forget(&granules->history); /* what went where did not fit well enough */
  return status;
}

/* Maps the piece at the address, which lies in vacant granules of the site. */
static enum hipmm_status granules_put(struct pieces *pieces, struct heap *heap, struct site *site, uint32_t piece,
                                      uint64_t address)
{
  uint32_t stale;
  uint64_t end = address + piece_bytes(pieces, piece);
  bool is_there = pieces_is_place(pieces, piece, address);
  enum hipmm_status status = HIPMM_OK;
  while (!is_there && !status && (stale = pieces_stale(pieces, address, end))) {
    status = idle_await_place(pieces, heap, stale, site->stream);
    if (!status) status = pieces_unmap(pieces, stale);
  }
  if (!status) status = piece_put(pieces, piece, address);
  if (!status) site->block->vacant -= piece_of(pieces, piece)->granules;
  if (!status) return HIPMM_OK;
  piece_keep_spare(pieces, piece);
  return status;
}

/* Puts memory under every granule of the site from `start` on, the last gap first. */
static enum hipmm_status granules_back(struct granules *granules, struct heap *heap, struct site *site, uint64_t start,
                                       bool may_create)
{
  struct pieces *pieces = &granules->pieces;
  struct gap gap;
  uint64_t limit = pieces_round_down(pieces, site->block->start + site->block->bytes);
  while (granules_last_gap(pieces, start, site->end, limit, &gap)) {
    uint32_t piece;
    bool dirty;
    while (gap.granules && granules_put_back(granules, heap, site, &gap)) continue;
    if (!gap.granules) continue;
    granules_spare_others(pieces, &gap);
    enum hipmm_status status = granules_obtain(granules, heap, site, &gap, may_create, &piece, &dirty);
    if (status) return status;
    /* At the end of the gap, so that what is left of it is one gap again. */
    uint64_t size = piece_of(pieces, piece)->granules, left = size < gap.granules ? gap.granules - size : 0;
    uint64_t address = gap.address + left * pieces->granule_bytes;
    status = granules_put(pieces, heap, site, piece, address);
    if (status) return status;
    if (dirty) granules_note_dirty(site, heap, address + piece_bytes(pieces, piece));
  }
  return HIPMM_OK;
}

/* What fits best, in a new range if need be. */
static enum hipmm_status granules_find(struct granules *granules, struct heap *heap, const struct request *request,
                                       uint32_t *id_out)
{
  const struct range *range;
  struct pieces *pieces = &granules->pieces;
  *id_out = heap_fit(heap, request);
  if (*id_out) return HIPMM_OK;
  enum hipmm_status status = pieces_reserve(pieces, request_room(request), &range);
  if (status) return status;
  uint32_t vacant = (uint32_t)(range->bytes / pieces->granule_bytes);
  *id_out = heap_add_region(heap, range->start, range->bytes, vacant, STREAM_CLEAN);
  return *id_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

/* The driver must not unmap what work still uses; and whoever takes its place in the order of a stream must be able to
 * say when that was, which is not while the stream is captured. */
static bool granules_may_be_dirty(const struct granules *granules, const struct heap *heap, uint32_t stream)
{
  return granules->pieces.may_alias && stream != STREAM_CLEAN && !stream_is_captured(&heap->streams, stream);
}

/* The free block, to be backed for the request up to `end`. */
static struct site granules_site_in(const struct pieces *pieces, const struct heap *heap, uint32_t id,
                                    const struct request *request, uint64_t end)
{
  return (struct site){
      .id = id, .block = block_of(&heap->blocks, id), .stream = request->stream, .end = pieces_round_up(pieces, end)};
}

/* The same as granules_back() for a block that is in its list, from `start` on, which need be no multiple of the granule. */
static enum hipmm_status granules_back_in(struct granules *granules, struct heap *heap, struct site *site,
                                          uint64_t start, bool may_create)
{
  const struct pieces *pieces = &granules->pieces;
  if (!site->block->vacant) return HIPMM_OK;
  start = pieces_round_down(pieces, start);
  if (pieces_last(pieces, start, site->end, false) == site->end) return HIPMM_OK; /* it is there */
  site->may_be_dirty = granules_may_be_dirty(granules, heap, site->stream);
  heap_unlink(heap, site->id);
  enum hipmm_status status = granules_back(granules, heap, site, start, may_create);
  heap_link(heap, site->id);
  if (status && site->dirty_end) heap_soil(heap, site->id, UINT64_MAX, site->stream);
  return status;
}

enum hipmm_status granules_expect(struct granules *granules, const struct heap *heap, const struct request *request)
{
  struct pieces *pieces = &granules->pieces;
  uint64_t idle = pieces->bytes - heap->live_bytes;
  if (request->bytes <= idle) return HIPMM_OK;
  uint64_t more = request->bytes - idle;
  if (more / pieces->granule_bytes < MANY_PIECES * granules_most_of_new_piece(pieces)) return HIPMM_OK;
  if (streams_any_captured(&heap->streams, request->stream)) return HIPMM_OK; /* and what may be asked is not sure */
  return pieces_expect(pieces, more);
}

enum hipmm_status granules_take(struct granules *granules, struct heap *heap, const struct request *request,
                                bool may_create, uint32_t *id_out)
{
  uint32_t id;
  enum hipmm_status status = granules_find(granules, heap, request, &id);
  if (status) return status;
  uint64_t end = heap_start_in(heap, id, request) + request->bytes;
  struct site site = granules_site_in(&granules->pieces, heap, id, request, end);
  status = granules_back_in(granules, heap, &site, site.block->start, may_create);
  if (status) return status;
  /* What is dirty and not asked for is left for the same stream. */
  if (site.dirty_end > end) heap_soil(heap, id, site.dirty_end > site.end ? site.dirty_end : site.end, request->stream);
  id = heap_take(heap, id, request);
  if (id) *id_out = id;
  return id ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

/* ---- The same again ---- */

static uint32_t granules_free_block_holding(const struct heap *heap, uint32_t stream, uint64_t start, uint64_t end)
{
  uint32_t id = free_index_holding(&heap->free[stream], &heap->blocks, start, end);
  return id ? id : free_index_holding(&heap->free[STREAM_CLEAN], &heap->blocks, start, end);
}

/* The free block where the request may go where it went before. */
static uint32_t granules_free_block_again(const struct heap *heap, const struct request *request,
                                          const uint64_t *addresses, uint64_t *start_out)
{
  uint32_t id = BLOCK_NONE;
  for (int i = 0; !id && i < HISTORY_ADDRESSES && addresses[i]; i++) {
    *start_out = addresses[i];
    if (!(*start_out % request->alignment))
      id = granules_free_block_holding(heap, request->stream, *start_out, *start_out + request->bytes);
  }
  return id;
}

uint32_t granules_take_again(struct granules *granules, struct heap *heap, const struct request *request)
{
  const struct pieces *pieces = &granules->pieces;
  if (!heap->large_bytes) history_forget(&granules->history); /* a new start */
  uint64_t start;
  const uint64_t *addresses = history_find(&granules->history, request->bytes, heap->large_bytes, heap->lately);
  uint32_t id = addresses ? granules_free_block_again(heap, request, addresses, &start) : BLOCK_NONE;
  if (!id) return BLOCK_NONE;
  struct site site = granules_site_in(pieces, heap, id, request, start + request->bytes);
  site.is_again = true;
  if (granules_back_in(granules, heap, &site, start, false)) return BLOCK_NONE;
  /* What is dirty and not asked for may lie before it as well. */
  if (site.dirty_end) heap_soil(heap, id, UINT64_MAX, request->stream);
  const struct block *block = block_of(&heap->blocks, id);
  if (start > block->start) {
    uint64_t first = pieces_round_up(pieces, block->start), last = pieces_round_down(pieces, start);
    id = heap_cut(heap, id, start, pieces_vacant(pieces, first, last));
  }
  return id ? heap_take(heap, id, request) : BLOCK_NONE;
}

void granules_note(struct granules *granules, const struct heap *heap, uint32_t id)
{
  history_note(&granules->history, block_of(&heap->blocks, id)->start);
}

/* ---- At the start ---- */

enum hipmm_status granules_fill(struct granules *granules, struct heap *heap, uint64_t bytes)
{
  struct request request = {.bytes = bytes, .alignment = HIPMM_ALIGNMENT, .requested = bytes, .stream = STREAM_CLEAN};
  uint32_t id;
  enum hipmm_status status = granules_expect(granules, heap, &request);
  if (!status) status = granules_take(granules, heap, &request, true, &id);
  if (!status) heap_give(heap, id, STREAM_CLEAN);
  return status;
}
