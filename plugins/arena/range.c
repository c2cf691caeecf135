/* SPDX-License-Identifier: MIT */
/* range.c: see piece.h. */
#include "range.h"

enum { MOST_PIECES = 1 << 28 };

bool pieces_open(struct pieces *pieces, const struct hipmm_services *services)
{
  *pieces = (struct pieces){.services = services, .count = 1};
  bool opened = address_map_open(&pieces->starts, services, HIPMM_ALIGNMENT);
  if (!host_array_open(&pieces->records, MOST_PIECES * sizeof *pieces->items)) return false;
  pieces->items = (struct piece *)(void *)pieces->records.start;
  pieces->most = (uint32_t)(pieces->records.reserved_bytes / sizeof *pieces->items);
  return opened;
}

void pieces_close(struct pieces *pieces)
{
  address_map_close(&pieces->starts);
  host_array_close(&pieces->records);
}

uint32_t piece_take(struct pieces *pieces)
{
  uint32_t id = pieces->unused;
  size_t end = (pieces->count + (size_t)1) * sizeof *pieces->items;
  if (id) {
    pieces->unused = piece_of(pieces, id)->next;
    return id;
  }
  if (pieces->count >= pieces->most) return PIECE_NONE;
  if (end > pieces->records.usable_bytes && !host_array_grow(&pieces->records)) return PIECE_NONE;
  return pieces->count++;
}

bool pieces_are_exhausted(const struct pieces *pieces)
{
  return !pieces->unused && pieces->count >= pieces->most;
}

/* The pieces that stay are used again from the first on, so that the last are soon unused. */
void pieces_trim(struct pieces *pieces)
{
  uint32_t end = pieces->count;
  while (end > 1 && piece_state(piece_of(pieces, end - 1)) == PIECE_UNUSED) end--;
  host_pages_discard(piece_of(pieces, end), (pieces->count - end) * sizeof *pieces->items);
  pieces->count = end;
  pieces->unused = PIECE_NONE;
  while (--end) {
    if (piece_state(piece_of(pieces, end)) != PIECE_UNUSED) continue;
    piece_of(pieces, end)->next = pieces->unused;
    pieces->unused = end;
  }
}

/* The map keeps a stale number: readers compare the piece's own start. */
void piece_drop(struct pieces *pieces, uint32_t id)
{
  piece_set_state(piece_of(pieces, id), PIECE_UNUSED);
  piece_of(pieces, id)->next = pieces->unused;
  pieces->unused = id;
}

/* Each piece has touched a page of the map at most. */
uint64_t pieces_metadata_bytes(const struct pieces *pieces, uint64_t reserved_bytes)
{
  uint64_t pages = pieces->count * 4096ull, map = address_map_metadata_bytes(&pieces->starts, reserved_bytes);
  return pieces->count * sizeof *pieces->items + (pages < map ? pages : map);
}
