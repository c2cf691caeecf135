/* SPDX-License-Identifier: MIT */
/* local.c: see local.h. */
#include "local.h"

/* ---- Superblocks that are wholly free ---- */

static bool local_is_whole(const struct piece *block)
{
  return !block->before && !block->after;
}

static void local_note_idle(struct local *local, struct pieces *pieces, const struct piece *block)
{
  struct piece *range = piece_of(pieces, block->superblock);
  range->previous = PIECE_NONE;
  range->next = local->idle;
  if (local->idle) piece_of(pieces, local->idle)->previous = block->superblock;
  local->idle = block->superblock;
  local->idle_bytes += range->bytes;
}

static void local_note_busy(struct local *local, struct pieces *pieces, const struct piece *block)
{
  const struct piece *range = piece_of(pieces, block->superblock);
  if (range->previous)
    piece_of(pieces, range->previous)->next = range->next;
  else
    local->idle = range->next;
  if (range->next) piece_of(pieces, range->next)->previous = range->previous;
  local->idle_bytes -= range->bytes;
}

/* ---- Ready blocks ---- */

static void local_add_ready(struct local *local, struct pieces *pieces, uint32_t id)
{
  struct piece *block = piece_of(pieces, id);
  piece_set_state(block, PIECE_READY);
  index_add(&local->ready, pieces, id);
  if (local_is_whole(block)) local_note_idle(local, pieces, block);
}

static void local_remove_ready(struct local *local, struct pieces *pieces, uint32_t id)
{
  const struct piece *block = piece_of(pieces, id);
  if (local_is_whole(block)) local_note_busy(local, pieces, block);
  index_remove(&local->ready, pieces, id);
}

static bool local_is_ready(struct pieces *pieces, uint32_t id)
{
  return id && piece_state(piece_of(pieces, id)) == PIECE_READY;
}

/* A block in no list becomes ready, merged with its neighbours. */
static void local_merge(struct local *local, struct pieces *pieces, uint32_t id)
{
  uint32_t before = piece_of(pieces, id)->before, after = piece_of(pieces, id)->after;
  if (local_is_ready(pieces, after)) {
    local_remove_ready(local, pieces, after);
    piece_join(pieces, id, after);
    local_put_piece(local, pieces, after);
  }
  if (local_is_ready(pieces, before)) {
    local_remove_ready(local, pieces, before);
    piece_join(pieces, before, id);
    local_put_piece(local, pieces, id);
    id = before;
  }
  local_add_ready(local, pieces, id);
}

/* ---- Quick lists ---- */

static void local_empty_quick_list(struct local *local, struct pieces *pieces, uint32_t units)
{
  uint32_t id = local->quick[units];
  local->quick[units] = PIECE_NONE;
  while (id) {
    uint32_t next = piece_of(pieces, id)->next;
    local->quick_bytes -= (uint64_t)units << PIECE_UNIT_BITS;
    local_merge(local, pieces, id);
    id = next;
  }
}

static void local_shrink_quick(struct local *local, struct pieces *pieces, uint64_t bytes)
{
  while (local->quick_bytes > bytes) local_empty_quick_list(local, pieces, local->next_quick++ % LOCAL_QUICK_UNITS + 1);
}

void local_empty_quick(struct local *local, struct pieces *pieces)
{
  local_shrink_quick(local, pieces, 0);
}

/* ---- Taking and giving ---- */

static uint32_t local_take_ready(struct local *local, struct pieces *pieces, uint64_t bytes, bool without_cut)
{
  uint32_t id = index_fit(&local->ready, pieces, bytes);
  if (!id && local->quick_bytes) {
    local_empty_quick(local, pieces);
    id = index_fit(&local->ready, pieces, bytes);
  }
  if (!id) return PIECE_NONE;
  bool has_rest = piece_of(pieces, id)->bytes > bytes;
  if (has_rest && !local->unused && !without_cut) return PIECE_NONE;
  local_remove_ready(local, pieces, id);
  uint32_t rest = has_rest ? local_take_piece(local, pieces) : PIECE_NONE;
  if (!rest) return id;
  piece_cut(pieces, id, bytes, rest);
  address_map_set(&pieces->starts, piece_of(pieces, rest)->start, rest);
  local_add_ready(local, pieces, rest);
  return id;
}

uint32_t local_take(struct local *local, struct pieces *pieces, uint64_t bytes, bool without_cut)
{
  uint64_t units = bytes >> PIECE_UNIT_BITS;
  uint32_t id = units <= LOCAL_QUICK_UNITS ? local->quick[units] : PIECE_NONE;
  if (!id) return local_take_ready(local, pieces, bytes, without_cut);
  local->quick[units] = piece_of(pieces, id)->next;
  local->quick_bytes -= bytes;
  return id;
}

void local_give(struct local *local, struct pieces *pieces, uint32_t id)
{
  struct piece *block = piece_of(pieces, id);
  uint64_t units = block->bytes >> PIECE_UNIT_BITS;
  if (units > LOCAL_QUICK_UNITS) {
    local_merge(local, pieces, id);
    return;
  }
  if (local->quick_bytes + block->bytes > LOCAL_MOST_QUICK_BYTES)
    local_shrink_quick(local, pieces, LOCAL_MOST_QUICK_BYTES - block->bytes);
  piece_set_state(block, PIECE_QUICK);
  block->next = local->quick[units];
  local->quick[units] = id;
  local->quick_bytes += block->bytes;
}

void local_give_pending(struct local *local, struct pieces *pieces, uint32_t id)
{
  struct piece *block = piece_of(pieces, id);
  piece_set_state(block, PIECE_PENDING);
  block->next = PIECE_NONE;
  block->previous = local->pending_last;
  if (local->pending_last)
    piece_of(pieces, local->pending_last)->next = id;
  else
    local->pending_first = id;
  local->pending_last = id;
  local->pending_bytes += block->bytes;
}

void local_end_pending(struct local *local, struct pieces *pieces, uint32_t id)
{
  const struct piece *block = piece_of(pieces, id);
  if (block->previous)
    piece_of(pieces, block->previous)->next = block->next;
  else
    local->pending_first = block->next;
  if (block->next)
    piece_of(pieces, block->next)->previous = block->previous;
  else
    local->pending_last = block->previous;
  local->pending_bytes -= block->bytes;
  local_merge(local, pieces, id);
}

/* ---- Superblocks ---- */

void local_add_superblock(struct local *local, struct pieces *pieces, uint32_t range_id)
{
  struct piece *range = piece_of(pieces, range_id);
  uint32_t id = local_take_piece(local, pieces);
  struct piece *block = piece_of(pieces, id);
  piece_set_place(block, range->start, range->bytes, local->number);
  block->before = block->after = PIECE_NONE;
  block->superblock = range_id;
  __atomic_store_n(&range->arena, local->number, __ATOMIC_RELAXED);
  range->first = id;
  address_map_set(&pieces->starts, block->start, id);
  local->bytes += range->bytes;
  local->n_superblocks++;
  local_add_ready(local, pieces, id);
}

uint32_t local_remove_idle(struct local *local, struct pieces *pieces)
{
  uint32_t range_id = local->idle;
  if (!range_id) return PIECE_NONE;
  struct piece *range = piece_of(pieces, range_id);
  uint32_t first = range->first;
  local_remove_ready(local, pieces, first);
  local_put_piece(local, pieces, first);
  __atomic_store_n(&range->arena, 0, __ATOMIC_RELAXED);
  local->bytes -= range->bytes;
  local->n_superblocks--;
  return range_id;
}
