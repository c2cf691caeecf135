/* SPDX-License-Identifier: MIT */
/* idle.c: looks through the free blocks that hold whole granules, from the highest address down. */
#include "idle.h"

/* Pieces that are looked at before a fitting one is taken as it is. */
enum { ENOUGH_LOOKS = 64 };

/* The whole granules in a block: [*start_out, *end_out). Returns how many of them have memory. */
static uint64_t idle_whole_granules(const struct pieces *pieces, const struct block *block, uint64_t *start_out,
                                    uint64_t *end_out)
{
  uint64_t start = pieces_round_up(pieces, block->start);
  uint64_t end = pieces_round_down(pieces, block->start + block->bytes);
  if (start >= end) return 0;
  *start_out = start;
  *end_out = end;
  return (end - start) / pieces->granule_bytes - block->vacant;
}

uint64_t idle_bytes_in(const struct pieces *pieces, const struct block *block)
{
  uint64_t start, end;
  return idle_whole_granules(pieces, block, &start, &end) * pieces->granule_bytes;
}

/* The largest piece that was found, and its block. Large ones first means fewer of them for the driver to map, and
 * leaves small ones for small gaps, which would otherwise have to be filled with new memory. */
struct search {
  uint64_t most;
  uint32_t piece; /* PIECE_NONE: none so far */
  struct block *holder;
  unsigned looks;
};

static bool idle_is_over(const struct pieces *pieces, const struct search *search)
{
  if (!search->piece) return false;
  return search->looks >= ENOUGH_LOOKS || piece_of(pieces, search->piece)->granules == search->most;
}

/* Looks at the pieces that lie wholly in the free block from `from` on, the last first. */
static void idle_look_in(const struct pieces *pieces, struct block *block, uint64_t from, struct search *search)
{
  uint64_t start, end, begin;
  if (!idle_whole_granules(pieces, block, &start, &end)) return;
  if (start < from) start = from;
  for (; start < end && !idle_is_over(pieces, search); end = begin) {
    uint64_t last = pieces_last(pieces, start, end, true);
    if (last == end) return;
    uint32_t id = pieces_at(pieces, last, &begin);
    if (begin < start) return;
    uint64_t granules = piece_of(pieces, id)->granules;
    search->looks++;
    if (granules > search->most || begin + piece_bytes(pieces, id) > end) continue;
    if (search->piece && granules <= piece_of(pieces, search->piece)->granules) continue;
    search->piece = id;
    search->holder = block;
  }
}

static enum hipmm_status idle_take_found(struct pieces *pieces, const struct search *search, uint32_t *piece_out)
{
  struct block *holder = search->holder;
  if (!search->piece) return HIPMM_E_OUT_OF_MEMORY;
  enum hipmm_status status = piece_take(pieces, search->piece, holder->stream, holder->epoch);
  if (status) return status;
  holder->vacant += piece_of(pieces, search->piece)->granules;
  *piece_out = search->piece;
  return HIPMM_OK;
}

enum hipmm_status idle_take_from(struct pieces *pieces, struct block *block, uint64_t from, uint64_t most,
                                 uint32_t *piece_out)
{
  struct search search = {.most = most};
  idle_look_in(pieces, block, from, &search);
  return idle_take_found(pieces, &search, piece_out);
}

/* The stream's next free block downwards that may hold a granule, from the highest on. */
static uint32_t idle_next_large(const struct pieces *pieces, const struct heap *heap, uint32_t stream, uint32_t id)
{
  return free_index_below(&heap->free[stream], &heap->blocks, id, pieces->granule_bytes);
}

enum hipmm_status idle_take(struct pieces *pieces, struct heap *heap, uint32_t stream, uint64_t most,
                            uint32_t *piece_out)
{
  struct search search = {.most = most};
  for (uint32_t id = BLOCK_NONE; !idle_is_over(pieces, &search) && (id = idle_next_large(pieces, heap, stream, id));)
    idle_look_in(pieces, block_of(&heap->blocks, id), 0, &search);
  return idle_take_found(pieces, &search, piece_out);
}

/* Whether there are whole granules with memory in the stream's free blocks. */
static bool idle_has_any(const struct pieces *pieces, const struct heap *heap, uint32_t stream)
{
  for (uint32_t id = BLOCK_NONE; (id = idle_next_large(pieces, heap, stream, id));)
    if (idle_bytes_in(pieces, block_of(&heap->blocks, id))) return true;
  return false;
}

enum hipmm_status idle_take_waiting(struct pieces *pieces, struct heap *heap, uint32_t stream, uint64_t most,
                                    uint32_t *piece_out)
{
  struct streams *streams = &heap->streams;
  for (uint32_t other = STREAM_CLEAN; (other = heap_next_holder(heap, other)) < MAX_STREAMS;) {
    if (other == stream || !idle_has_any(pieces, heap, other)) continue;
    if (!stream_wait(streams, stream, other, stream_of(streams, other)->frees)) continue;
    enum hipmm_status status = idle_take(pieces, heap, other, most, piece_out);
    if (status != HIPMM_E_OUT_OF_MEMORY) return status;
  }
  return HIPMM_E_OUT_OF_MEMORY;
}

bool idle_is_pending(const struct pieces *pieces, const struct heap *heap)
{
  for (uint32_t stream = STREAM_CLEAN; (stream = heap_next_holder(heap, stream)) < MAX_STREAMS;)
    if (idle_has_any(pieces, heap, stream)) return true;
  return false;
}

enum hipmm_status idle_await_place(const struct pieces *pieces, struct heap *heap, uint32_t place, uint32_t user)
{
  const struct place *left = pieces_place(pieces, place);
  if (!left->stream || stream_host_wait_for(&heap->streams, left->stream, left->epoch)) return HIPMM_OK;
  heap->streams.waits++;
  return streams_wait_for_device(&heap->streams, user);
}

enum hipmm_status idle_await(const struct pieces *pieces, struct heap *heap, uint32_t piece, uint32_t user)
{
  enum hipmm_status status = HIPMM_OK;
  for (uint32_t place = 0; !status && (place = piece_next_stale(pieces, piece, place));)
    status = idle_await_place(pieces, heap, place, user);
  return status;
}

uint32_t idle_take_spare(struct pieces *pieces, struct heap *heap, uint64_t most, uint32_t user)
{
  uint32_t spare = piece_take_spare(pieces, most);
  if (!spare || !idle_await(pieces, heap, spare, user)) return spare;
  piece_keep_spare(pieces, spare);
  return PIECE_NONE;
}

enum hipmm_status idle_release(struct pieces *pieces, struct heap *heap, uint64_t keep_bytes)
{
  while (pieces->bytes > keep_bytes) {
    uint64_t most = (pieces->bytes - keep_bytes) / pieces->granule_bytes;
    uint32_t piece = idle_take_spare(pieces, heap, most, STREAM_CLEAN);
    enum hipmm_status status = piece ? HIPMM_OK : idle_take(pieces, heap, STREAM_CLEAN, most, &piece);
    if (status == HIPMM_E_OUT_OF_MEMORY) return HIPMM_OK; /* nothing idle is left */
    if (!status) status = piece_destroy(pieces, piece);
    if (status) return status;
  }
  return HIPMM_OK;
}
