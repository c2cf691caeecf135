/* SPDX-License-Identifier: MIT */
/* piece.c: see piece.h. */
#include "piece.h"

enum { MOST_PIECES = 1 << 24 };

bool pieces_open(struct pieces *pieces, const struct hipmm_services *services)
{
  *pieces = (struct pieces){.services = services, .count = 1};
  bool opened = starts_open(&pieces->starts, services, HIPMM_ALIGNMENT);
  pieces->items = services->host_allocate(services, MOST_PIECES * sizeof *pieces->items);
  return opened && pieces->items;
}

void pieces_close(struct pieces *pieces)
{
  starts_close(&pieces->starts);
  pieces->services->host_free(pieces->services, pieces->items, MOST_PIECES * sizeof *pieces->items);
}

uint32_t piece_take(struct pieces *pieces)
{
  uint32_t id = pieces->unused;
  if (!id) return pieces->count < MOST_PIECES ? pieces->count++ : PIECE_NONE;
  pieces->unused = piece_of(pieces, id)->next;
  return id;
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
  uint64_t pages = pieces->count * 4096ull, map = starts_metadata_bytes(&pieces->starts, reserved_bytes);
  return pieces->count * sizeof *pieces->items + (pages < map ? pages : map);
}
