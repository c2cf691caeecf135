/* SPDX-License-Identifier: MIT */
/* tlsf.c: see range.h. */
#include "range.h"

/* Ranges that are tried in the list of the request's own size: only some of them are large enough. */
enum { LOOKS = 8 };

struct slot {
  unsigned row, column;
};

/* Sizes below TLSF_COLUMNS units have a list each, in row 0. */
static struct slot tlsf_slot_of(uint64_t bytes)
{
  uint64_t units = bytes >> RANGE_UNIT_BITS;
  if (units < TLSF_COLUMNS) return (struct slot){0, (unsigned)units};
  unsigned log = 63 - (unsigned)__builtin_clzll(units);
  return (struct slot){log - TLSF_COLUMN_BITS + 1, (unsigned)(units >> (log - TLSF_COLUMN_BITS)) % TLSF_COLUMNS};
}

void tlsf_add(struct tlsf *tlsf, const struct arena_ranges *ranges, uint32_t id)
{
  struct arena_range *range = range_of(ranges, id);
  struct slot slot = tlsf_slot_of(range->bytes);
  uint32_t *head = &tlsf->heads[slot.row][slot.column];
  range->next = *head;
  range->previous = RANGE_NONE;
  if (*head) range_of(ranges, *head)->previous = id;
  *head = id;
  tlsf->columns[slot.row] |= 1u << slot.column;
  tlsf->rows |= 1ull << slot.row;
  tlsf->bytes += range->bytes;
}

void tlsf_remove(struct tlsf *tlsf, const struct arena_ranges *ranges, uint32_t id)
{
  const struct arena_range *range = range_of(ranges, id);
  struct slot slot = tlsf_slot_of(range->bytes);
  uint32_t *head = &tlsf->heads[slot.row][slot.column];
  if (range->previous)
    range_of(ranges, range->previous)->next = range->next;
  else
    *head = range->next;
  if (range->next) range_of(ranges, range->next)->previous = range->previous;
  if (!*head && !(tlsf->columns[slot.row] &= ~(1u << slot.column))) tlsf->rows &= ~(1ull << slot.row);
  tlsf->bytes -= range->bytes;
}

/* The smallest that fits among the first LOOKS ranges of a list. */
static uint32_t tlsf_fit_in(const struct arena_ranges *ranges, uint32_t head, uint64_t bytes)
{
  uint32_t best = RANGE_NONE;
  int looks = 0;
  for (uint32_t id = head; id && looks < LOOKS; id = range_of(ranges, id)->next, looks++) {
    uint64_t size = range_of(ranges, id)->bytes;
    if (size >= bytes && (!best || size < range_of(ranges, best)->bytes)) best = id;
  }
  return best;
}

uint32_t tlsf_fit(const struct tlsf *tlsf, const struct arena_ranges *ranges, uint64_t bytes)
{
  struct slot slot = tlsf_slot_of(bytes);
  if (slot.row >= TLSF_ROWS) return RANGE_NONE;
  uint32_t best = tlsf_fit_in(ranges, tlsf->heads[slot.row][slot.column], bytes);
  if (best) return best;
  uint32_t columns = tlsf->columns[slot.row] & (~1u << slot.column);
  if (!columns) {
    uint64_t rows = tlsf->rows & (~1ull << slot.row);
    if (!rows) return RANGE_NONE;
    slot.row = (unsigned)__builtin_ctzll(rows);
    columns = tlsf->columns[slot.row];
  }
  return tlsf_fit_in(ranges, tlsf->heads[slot.row][__builtin_ctz(columns)], bytes);
}

static uint32_t tlsf_last_head(const struct tlsf *tlsf)
{
  if (!tlsf->rows) return RANGE_NONE;
  unsigned row = 63 - (unsigned)__builtin_clzll(tlsf->rows);
  return tlsf->heads[row][31 - (unsigned)__builtin_clz(tlsf->columns[row])];
}

uint64_t tlsf_largest(const struct tlsf *tlsf, const struct arena_ranges *ranges)
{
  uint64_t largest = 0;
  for (uint32_t id = tlsf_last_head(tlsf); id; id = range_of(ranges, id)->next)
    if (range_of(ranges, id)->bytes > largest) largest = range_of(ranges, id)->bytes;
  return largest;
}
