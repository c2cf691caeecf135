/* SPDX-License-Identifier: MIT */
/* free_index.c: the lists of free blocks. Those below EXACT_LISTS have one size, the last freed first; the others have a
 * sixteenth of a doubling, roughly by size. A block knows its list, so that it can be removed after a change. */
#include "free_index.h"

#include <limits.h>

enum { HOLDING_STEPS = 256 };

static inline enum kind free_index_kind_of(const struct blocks *blocks, const struct block *block)
{
  uint64_t granule = blocks->granule_bytes;
  if (!granule) return KIND_WHOLE;
  if (block->uncommitted) return KIND_PARTIAL;
  if (block->bytes >= 2 * granule) return KIND_WHOLE;
  uint64_t whole = (block->start + granule - 1) & ~(granule - 1);
  return whole + granule > block->start + block->bytes ? KIND_BUSY : KIND_WHOLE;
}

static inline uint32_t free_index_list_of(uint64_t bytes)
{
  uint64_t units = bytes >> UNIT_BITS;
  if (units < EXACT_LISTS) return (uint32_t)units;
  unsigned doubling = 63 - (unsigned)__builtin_clzll(units); /* 8 or more */
  return EXACT_LISTS + (doubling - 8) * LISTS_PER_DOUBLING + ((uint32_t)(units >> (doubling - 4)) & 15);
}

static uint32_t free_index_place_of(const struct blocks *blocks, const struct block *block)
{
  return free_index_kind_of(blocks, block) * FREE_LISTS + free_index_list_of(block->bytes);
}

/* ---- Changes ---- */

static void free_index_link(struct free_index *index, struct blocks *blocks, uint32_t id, uint32_t place)
{
  struct size_lists *lists = &index->kinds[place / FREE_LISTS];
  struct block *block = block_of(blocks, id);
  uint32_t list = place % FREE_LISTS, previous = BLOCK_NONE, next = lists->lists[list];
  for (unsigned steps = 0; next && steps < LIST_STEPS && block_of(blocks, next)->bytes < block->bytes; steps++) {
    previous = next;
    next = block_of(blocks, next)->next;
  }
  block->place = (uint16_t)place;
  block->previous = previous;
  block->next = next;
  if (next) block_of(blocks, next)->previous = id;
  *(previous ? &block_of(blocks, previous)->next : &lists->lists[list]) = id;
  lists->bits[list / 64] |= 1ull << list % 64;
  lists->words |= 1ull << list / 64;
}

static void free_index_unlink(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  struct size_lists *lists = &index->kinds[block->place / FREE_LISTS];
  uint32_t list = block->place % FREE_LISTS;
  if (block->next) block_of(blocks, block->next)->previous = block->previous;
  *(block->previous ? &block_of(blocks, block->previous)->next : &lists->lists[list]) = block->next;
  if (lists->lists[list] || (lists->bits[list / 64] &= ~(1ull << list % 64))) return;
  lists->words &= ~(1ull << list / 64);
}

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  index->bytes += block->bytes;
  index->count++;
  free_index_link(index, blocks, id, free_index_place_of(blocks, block));
}

void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  index->bytes -= block_of(blocks, id)->bytes;
  index->count--;
  free_index_unlink(index, blocks, id);
}

void free_index_move(struct free_index *index, struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes)
{
  const struct block *block = block_of(blocks, id);
  index->bytes += bytes - block->bytes;
  block_set_bounds(blocks, id, start, bytes);
  uint32_t place = free_index_place_of(blocks, block);
  if (place == block->place) return;
  free_index_unlink(index, blocks, id);
  free_index_link(index, blocks, id, place);
}

/* ---- Searches ---- */

/* The first block of the lists from `list` on. */
static uint32_t free_index_from(const struct size_lists *lists, uint32_t list)
{
  if (list >= FREE_LISTS) return BLOCK_NONE;
  uint32_t word = list / 64;
  uint64_t bits = lists->bits[word] & ~0ull << list % 64;
  if (!bits) {
    uint64_t words = word < 63 ? lists->words & ~0ull << (word + 1) : 0;
    if (!words) return BLOCK_NONE;
    word = (uint32_t)__builtin_ctzll(words);
    bits = lists->bits[word];
  }
  return lists->lists[word * 64 + (uint32_t)__builtin_ctzll(bits)];
}

/* The first block of at least `bytes` from `id` on, among the next `steps` of its list. */
static uint32_t free_index_search(const struct blocks *blocks, uint32_t id, uint64_t bytes, unsigned steps)
{
  for (; id && steps; id = block_of(blocks, id)->next, steps--)
    if (block_of(blocks, id)->bytes >= bytes) return id;
  return BLOCK_NONE;
}

/* The whole of a list is searched only where the pool would have to grow otherwise. */
uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, enum kind kind, uint64_t bytes)
{
  const struct size_lists *lists = &index->kinds[kind];
  uint32_t list = free_index_list_of(bytes);
  if (!lists->words) return BLOCK_NONE;
  uint32_t id = free_index_search(blocks, lists->lists[list], bytes, LIST_STEPS);
  if (!id) id = free_index_from(lists, list + 1);
  return id ? id : free_index_search(blocks, lists->lists[list], bytes, UINT_MAX);
}

/* The first block of the last list below `list`. */
static uint32_t free_index_last_below(const struct size_lists *lists, uint32_t list)
{
  for (uint32_t word = (list + 63) / 64; word-- > 0;) {
    uint64_t bits = lists->bits[word];
    if (word == list / 64) bits &= ~(~0ull << list % 64);
    if (bits) return lists->lists[word * 64 + 63 - (uint32_t)__builtin_clzll(bits)];
  }
  return BLOCK_NONE;
}

uint32_t free_index_next(const struct free_index *index, const struct blocks *blocks, enum kind kind, uint32_t id)
{
  if (!id) return free_index_last_below(&index->kinds[kind], FREE_LISTS);
  const struct block *block = block_of(blocks, id);
  return block->next ? block->next : free_index_last_below(&index->kinds[kind], block->place % FREE_LISTS);
}

uint32_t free_index_holding(const struct free_index *index, const struct blocks *blocks, uint64_t start, uint64_t end)
{
  unsigned steps = 0;
  for (enum kind kind = KIND_WHOLE; kind < KINDS; kind++)
    for (uint32_t id = BLOCK_NONE; steps < HOLDING_STEPS && (id = free_index_next(index, blocks, kind, id)); steps++)
      if (block_holds(block_of(blocks, id), start, end)) return id;
  return BLOCK_NONE;
}

uint32_t free_index_any(const struct free_index *index, const struct blocks *blocks)
{
  uint32_t id = BLOCK_NONE;
  for (enum kind kind = KIND_BUSY; !id && kind < KINDS; kind++) id = free_index_next(index, blocks, kind, BLOCK_NONE);
  return id;
}
