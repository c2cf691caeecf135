/* SPDX-License-Identifier: MIT */
/* range.c: see piece.h. */
#include "range.h"

enum { MOST_PIECES = 1 << 28 };

bool pieces_open(struct pieces *pieces, const struct hipmm_services *services)
{
  *pieces = (struct pieces){.services = services, .count = 1, .next_trimmed = 1};
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

/* A piece that was unused at the last trim. Only those in the list `unused`, which is empty here, are unused besides. */
static uint32_t range_take_trimmed(struct pieces *pieces)
{
  while (pieces->next_trimmed < pieces->count) {
    uint32_t id = pieces->next_trimmed++;
    if (piece_state(piece_of(pieces, id)) == PIECE_UNUSED) return id;
  }
  return PIECE_NONE;
}

static uint32_t range_take_new(struct pieces *pieces)
{
  size_t end = (pieces->count + (size_t)1) * sizeof *pieces->items;
  if (pieces->count >= pieces->most) return PIECE_NONE;
  if (end > pieces->records.usable_bytes && !host_array_grow(&pieces->records)) return PIECE_NONE;
  return pieces->count++;
}

uint32_t piece_take(struct pieces *pieces)
{
  uint32_t id = pieces->unused;
  if (id)
    pieces->unused = piece_of(pieces, id)->next;
  else
    id = range_take_trimmed(pieces);
  if (!id) id = range_take_new(pieces);
  if (id) piece_set_state(piece_of(pieces, id), PIECE_SPARE);
  return id;
}

bool pieces_are_exhausted(const struct pieces *pieces)
{
  return !pieces->unused && pieces->next_trimmed >= pieces->count && pieces->count >= pieces->most;
}

/* Pieces whose memory is given back cannot be in a list: piece_take() finds them by their state, from the first on. */
void pieces_trim(struct pieces *pieces)
{
  uint32_t first = 1;
  for (uint32_t id = 1; id <= pieces->count; id++) {
    if (id < pieces->count && piece_state(piece_of(pieces, id)) == PIECE_UNUSED) continue;
    if (first < id) host_pages_discard(piece_of(pieces, first), (id - first) * sizeof *pieces->items);
    if (id == pieces->count) pieces->count = first;
    first = id + 1;
  }
  pieces->unused = PIECE_NONE;
  pieces->next_trimmed = 1;
}

/* The map keeps a stale number: readers compare the piece's own start. */
void piece_drop(struct pieces *pieces, uint32_t id)
{
  piece_set_state(piece_of(pieces, id), PIECE_UNUSED);
  piece_of(pieces, id)->next = pieces->unused;
  pieces->unused = id;
}

uint64_t pieces_metadata_bytes(const struct pieces *pieces)
{
  size_t bytes = pieces->count * sizeof *pieces->items;
  return host_pages_resident(pieces->items, bytes, bytes);
}
