/* SPDX-License-Identifier: MIT */
/* tlsf.c: see index.h. */
#include "tlsf.h"

/* How many pieces of the list where a request itself would belong are looked at: some are large enough. */
enum { LOOKS = 8 };

struct slot {
  unsigned row, column;
};

/* Sizes below INDEX_COLUMNS units have a list each, in row 0. */
static struct slot tlsf_slot_of(uint64_t bytes)
{
  uint64_t units = bytes >> PIECE_UNIT_BITS;
  if (units < INDEX_COLUMNS) return (struct slot){0, (unsigned)units};
  unsigned log = 63 - (unsigned)__builtin_clzll(units);
  return (struct slot){log - INDEX_COLUMN_BITS + 1, (unsigned)(units >> (log - INDEX_COLUMN_BITS)) % INDEX_COLUMNS};
}

void index_add(struct index *index, const struct pieces *pieces, uint32_t id)
{
  struct piece *piece = piece_of(pieces, id);
  struct slot slot = tlsf_slot_of(piece->bytes);
  uint32_t *head = &index->heads[slot.row][slot.column];
  piece->next = *head;
  piece->previous = PIECE_NONE;
  if (*head) piece_of(pieces, *head)->previous = id;
  *head = id;
  index->columns[slot.row] |= 1u << slot.column;
  index->rows |= 1ull << slot.row;
  index->bytes += piece->bytes;
  index->count++;
}

void index_remove(struct index *index, const struct pieces *pieces, uint32_t id)
{
  const struct piece *piece = piece_of(pieces, id);
  struct slot slot = tlsf_slot_of(piece->bytes);
  uint32_t *head = &index->heads[slot.row][slot.column];
  if (piece->previous)
    piece_of(pieces, piece->previous)->next = piece->next;
  else
    *head = piece->next;
  if (piece->next) piece_of(pieces, piece->next)->previous = piece->previous;
  if (!*head && !(index->columns[slot.row] &= ~(1u << slot.column))) index->rows &= ~(1ull << slot.row);
  index->bytes -= piece->bytes;
  index->count--;
}

/* The smallest that is large enough among the first of a list. */
static uint32_t tlsf_fit_in(const struct pieces *pieces, uint32_t head, uint64_t bytes)
{
  uint32_t best = PIECE_NONE;
  int looks = 0;
  for (uint32_t id = head; id && looks < LOOKS; id = piece_of(pieces, id)->next, looks++) {
    uint64_t size = piece_of(pieces, id)->bytes;
    if (size >= bytes && (!best || size < piece_of(pieces, best)->bytes)) best = id;
  }
  return best;
}

uint32_t index_fit(const struct index *index, const struct pieces *pieces, uint64_t bytes)
{
  struct slot slot = tlsf_slot_of(bytes);
  if (slot.row >= INDEX_ROWS) return PIECE_NONE;
  uint32_t best = tlsf_fit_in(pieces, index->heads[slot.row][slot.column], bytes);
  if (best) return best;
  uint32_t columns = index->columns[slot.row] & (~1u << slot.column);
  if (!columns) {
    uint64_t rows = index->rows & (~1ull << slot.row);
    if (!rows) return PIECE_NONE;
    slot.row = (unsigned)__builtin_ctzll(rows);
    columns = index->columns[slot.row];
  }
  return tlsf_fit_in(pieces, index->heads[slot.row][__builtin_ctz(columns)], bytes);
}

static uint32_t tlsf_last_head(const struct index *index)
{
  if (!index->rows) return PIECE_NONE;
  unsigned row = 63 - (unsigned)__builtin_clzll(index->rows);
  return index->heads[row][31 - (unsigned)__builtin_clz(index->columns[row])];
}

uint32_t index_any(const struct index *index)
{
  return tlsf_last_head(index);
}

uint64_t index_largest(const struct index *index, const struct pieces *pieces)
{
  uint64_t largest = 0;
  for (uint32_t id = tlsf_last_head(index); id; id = piece_of(pieces, id)->next)
    if (piece_of(pieces, id)->bytes > largest) largest = piece_of(pieces, id)->bytes;
  return largest;
}
