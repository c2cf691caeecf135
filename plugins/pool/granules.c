/* SPDX-License-Identifier: MIT */
/* granules.c: which pieces are idle, and putting memory under an allocation. Driver calls cost microseconds: this is the
 * path of growth, never of reuse. */
#include "granules.h"

/* New pieces have at most this part of what is held: a large pool moves fewer, larger pieces, at little cost in memory
 * that a piece keeps because a part of it is in use. */
enum { PIECE_SHARE = 1024 };

static bool has_memory(const void *provider, uint64_t start, uint64_t end)
{
  const struct pieces *pieces = provider;
  start = pieces_round_down(pieces, start);
  end = pieces_round_up(pieces, end);
  return pieces_last(pieces, start, end, false) == end;
}

enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, uint64_t maximum_bytes)
{
  granules->moves = 0;
  enum hipmm_status status = pieces_open(&granules->pieces, services, upstream, maximum_bytes);
  if (status) return status;
  heap->blocks.granule_bytes = granules->pieces.granule_bytes;
  heap->has_memory = has_memory;
  heap->provider = &granules->pieces;
  return HIPMM_OK;
}

void granules_close(struct granules *granules)
{
  pieces_close(&granules->pieces);
}

/* ---- Idle pieces ---- */

/* The whole granules in a block: [*start_out, *end_out). Returns how many of them have memory. */
static uint64_t whole_granules(const struct pieces *pieces, const struct block *block, uint64_t *start_out,
                               uint64_t *end_out)
{
  uint64_t start = pieces_round_up(pieces, block->start);
  uint64_t end = pieces_round_down(pieces, block->start + block->bytes);
  if (start >= end) return 0;
  *start_out = start;
  *end_out = end;
  return (end - start) / pieces->granule_bytes - block->vacant;
}

/* Takes the last piece that lies wholly in the free block from `from` on and has at most `most` granules. */
static enum hipmm_status take_from_block(struct pieces *pieces, struct block *block, uint64_t from, uint64_t most,
                                         struct piece *piece_out)
{
  uint64_t start, end, bytes;
  if (!whole_granules(pieces, block, &start, &end)) return HIPMM_E_OUT_OF_MEMORY;
  if (start < from) start = from;
  while (start < end) {
    uint64_t last = pieces_last(pieces, start, end, true);
    if (last == end) break;
    uint64_t begin = pieces_begin(pieces, last, &bytes);
    if (begin < start) break;
    if (begin + bytes <= end && bytes <= most * pieces->granule_bytes) {
      enum hipmm_status status = piece_unmap(pieces, begin, piece_out);
      if (!status) block->vacant += piece_out->granules;
      return status;
    }
    end = begin;
  }
  return HIPMM_E_OUT_OF_MEMORY;
}

/* Takes an idle piece of at most `most` granules out of the clean block at the highest address that has one: it would be
 * reused last. */
static enum hipmm_status take_idle(struct pieces *pieces, struct heap *heap, uint64_t most, struct piece *piece_out)
{
  const struct free_index *clean = &heap->free[STREAM_CLEAN];
  for (uint32_t id = BLOCK_NONE; (id = free_index_below(clean, &heap->blocks, id, pieces->granule_bytes));) {
    enum hipmm_status status = take_from_block(pieces, block_of(&heap->blocks, id), 0, most, piece_out);
    if (status != HIPMM_E_OUT_OF_MEMORY) return status;
  }
  return HIPMM_E_OUT_OF_MEMORY;
}

bool granules_has_pending_idle(const struct granules *granules, const struct heap *heap)
{
  const struct pieces *pieces = &granules->pieces;
  uint64_t start, end;
  for (uint32_t stream = STREAM_FIRST; stream < heap->streams.count; stream++) {
    const struct free_index *free = &heap->free[stream];
    for (uint32_t id = BLOCK_NONE; (id = free_index_below(free, &heap->blocks, id, pieces->granule_bytes));)
      if (whole_granules(pieces, block_of(&heap->blocks, id), &start, &end)) return true;
  }
  return false;
}

enum hipmm_status granules_release_idle(struct granules *granules, struct heap *heap, uint64_t keep_bytes)
{
  struct pieces *pieces = &granules->pieces;
  while (pieces->bytes > keep_bytes) {
    struct piece piece;
    uint64_t most = (pieces->bytes - keep_bytes) / pieces->granule_bytes;
    bool is_spare = piece_take_spare(pieces, most, &piece);
    enum hipmm_status status = is_spare ? HIPMM_OK : take_idle(pieces, heap, most, &piece);
    if (status == HIPMM_E_OUT_OF_MEMORY) return HIPMM_OK; /* nothing idle is left */
    if (!status) status = piece_destroy(pieces, piece);
    if (status) return status;
  }
  return HIPMM_OK;
}

/* ---- Growing ---- */

/* A place that needs memory: `granules` of it are asked for from `address` on, and `room` can take memory. */
struct gap {
  uint64_t address;
  uint64_t granules, room;
};

/* The last gap in [start, end). If it ends there, the vacant granules behind, up to `limit`, are room too. */
static bool last_gap(const struct pieces *pieces, uint64_t start, uint64_t end, uint64_t limit, struct gap *gap_out)
{
  enum { MOST_ROOM = 1 << 12 };
  uint64_t last = pieces_last(pieces, start, end, false);
  if (last == end) return false;
  uint64_t stop = last + pieces->granule_bytes, before = last > start ? pieces_last(pieces, start, last, true) : last;
  gap_out->address = before == last ? start : before + pieces->granule_bytes;
  gap_out->granules = gap_out->room = (stop - gap_out->address) / pieces->granule_bytes;
  while (stop < limit && gap_out->room < MOST_ROOM &&
         pieces_last(pieces, stop, stop + pieces->granule_bytes, false) == stop) {
    stop += pieces->granule_bytes;
    gap_out->room++;
  }
  return true;
}

static uint64_t most_of_new_piece(const struct pieces *pieces)
{
  uint64_t most = pieces->bytes / PIECE_SHARE / pieces->granule_bytes;
  return most ? most : 1;
}

/* An idle piece is too large for the gap: memory of its size is given back and taken anew in smaller pieces. */
static enum hipmm_status exchange(struct pieces *pieces, struct heap *heap, uint64_t granules, struct piece *piece_out)
{
  struct piece large;
  enum hipmm_status status = take_idle(pieces, heap, UINT64_MAX / pieces->granule_bytes, &large);
  if (!status) status = piece_destroy(pieces, large);
  return status ? status : piece_create(pieces, granules < large.granules ? granules : large.granules, piece_out);
}

/* A piece for the gap in `block`, which is in no list and whose part from `end` on is not asked for. */
static enum hipmm_status obtain(struct granules *granules, struct heap *heap, struct block *block, uint64_t end,
                                const struct gap *gap, bool may_create, struct piece *piece_out)
{
  struct pieces *pieces = &granules->pieces;
  if (piece_take_spare(pieces, gap->room, piece_out)) return HIPMM_OK;
  enum hipmm_status status = HIPMM_E_OUT_OF_MEMORY;
  if (block->stream == STREAM_CLEAN) status = take_from_block(pieces, block, end, gap->room, piece_out);
  if (status) status = take_idle(pieces, heap, gap->room, piece_out);
  if (status) status = exchange(pieces, heap, gap->granules, piece_out);
  if (!status) granules->moves++;
  if (!status || !may_create) return status;
  uint64_t most = most_of_new_piece(pieces);
  return piece_create(pieces, gap->granules < most ? gap->granules : most, piece_out);
}

/* Puts memory under every granule that [start, end) touches, the last gap first. The block is in no list. */
static enum hipmm_status back(struct granules *granules, struct heap *heap, struct block *block, uint64_t start,
                              uint64_t end, bool may_create)
{
  struct pieces *pieces = &granules->pieces;
  struct gap gap;
  uint64_t limit = pieces_round_down(pieces, block->start + block->bytes);
  start = pieces_round_down(pieces, start);
  end = pieces_round_up(pieces, end);
  while (last_gap(pieces, start, end, limit, &gap)) {
    struct piece piece;
    enum hipmm_status status = obtain(granules, heap, block, end, &gap, may_create, &piece);
    if (status) return status;
    /* At the end of the gap, so that what is left of it is one gap again. */
    uint64_t spare = piece.granules < gap.granules ? gap.granules - piece.granules : 0;
    status = piece_map(pieces, gap.address + spare * pieces->granule_bytes, piece);
    if (status) {
      piece_keep_spare(pieces, piece);
      return status;
    }
    block->vacant -= piece.granules;
  }
  return HIPMM_OK;
}

/* What fits best, in a new range if need be. */
static enum hipmm_status find(struct granules *granules, struct heap *heap, const struct request *request,
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

enum hipmm_status granules_take(struct granules *granules, struct heap *heap, const struct request *request,
                                bool may_create, uint32_t *id_out)
{
  uint32_t id;
  enum hipmm_status status = find(granules, heap, request, &id);
  if (status) return status;
  struct block *block = block_of(&heap->blocks, id);
  heap_unlink(heap, id);
  status = back(granules, heap, block, block->start, heap_start_in(heap, id, request) + request->bytes, may_create);
  heap_link(heap, id);
  if (status) return status;
  id = heap_take(heap, id, request);
  if (id) *id_out = id;
  return id ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

enum hipmm_status granules_fill(struct granules *granules, struct heap *heap, uint64_t bytes)
{
  struct request request = {.bytes = bytes, .alignment = HIPMM_ALIGNMENT, .requested = bytes, .stream = STREAM_CLEAN};
  uint32_t id;
  enum hipmm_status status = granules_take(granules, heap, &request, true, &id);
  if (!status) heap_give(heap, id, STREAM_CLEAN);
  return status;
}
