/* SPDX-License-Identifier: MIT */
/* free_index.c: chooses between the lists and the address index for each block, keeps the lists, and finds a fit. */
#include "free_index.h"

#include <limits.h>

static uint64_t free_index_units_of(const struct block *block)
{
  return block->bytes >> UNIT_BITS;
}

/* ---- Lists: those below EXACT_LISTS have one size, the others a sixteenth of a doubling, roughly by size ---- */

static uint32_t free_index_list_of(uint64_t units)
{
  if (units < EXACT_LISTS) return (uint32_t)units;
  unsigned doubling = 63 - (unsigned)__builtin_clzll(units); /* 8 or more */
  return EXACT_LISTS + (doubling - 8) * LISTS_PER_DOUBLING + ((uint32_t)(units >> (doubling - 4)) & 15);
}

static void free_index_list_add(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  uint32_t list = free_index_list_of(free_index_units_of(block)), previous = BLOCK_NONE, next = index->lists[list];
  for (unsigned steps = 0; next && steps < LIST_STEPS && block_of(blocks, next)->bytes < block->bytes; steps++) {
    previous = next;
    next = block_of(blocks, next)->next;
  }
  block->previous = previous;
  block->next = next;
  if (next) block_of(blocks, next)->previous = id;
  *(previous ? &block_of(blocks, previous)->next : &index->lists[list]) = id;
  index->bits[list / 64] |= 1ull << list % 64;
}

static void free_index_list_remove(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  uint32_t list = free_index_list_of(free_index_units_of(block));
  if (block->next) block_of(blocks, block->next)->previous = block->previous;
  *(block->previous ? &block_of(blocks, block->previous)->next : &index->lists[list]) = block->next;
  if (!index->lists[list]) index->bits[list / 64] &= ~(1ull << list % 64);
}

/* The first block of the lists from `list` on. */
static uint32_t free_index_list_from(const struct free_index *index, uint32_t list)
{
  uint32_t word = list / 64;
  if (word >= FREE_LISTS / 64) return BLOCK_NONE;
  uint64_t bits = index->bits[word] & ~0ull << list % 64;
  while (!bits && ++word < FREE_LISTS / 64) bits = index->bits[word];
  return bits ? index->lists[word * 64 + (uint32_t)__builtin_ctzll(bits)] : BLOCK_NONE;
}

/* The first block of at least `units` from `id` on, which is in a list, among the next `steps`. */
static uint32_t free_index_list_search(const struct blocks *blocks, uint32_t id, uint64_t units, unsigned steps)
{
  for (; id && steps; id = block_of(blocks, id)->next, steps--)
    if (free_index_units_of(block_of(blocks, id)) >= units) return id;
  return BLOCK_NONE;
}

/* A listed block of at least `units`, small if there is a choice. The whole of a list is searched only where the pool
 * would have to grow otherwise. */
static uint32_t free_index_list_fit(const struct free_index *index, const struct blocks *blocks, uint64_t units)
{
  uint32_t list = free_index_list_of(units);
  uint32_t id = free_index_list_search(blocks, index->lists[list], units, LIST_STEPS);
  if (!id) id = free_index_list_from(index, list + 1);
  return id ? id : free_index_list_search(blocks, index->lists[list], units, UINT_MAX);
}

/* ---- Both ---- */

/* A block that may hold a whole granule is not listed, since its chunk may be moved. */
static bool free_index_is_listed(const struct blocks *blocks, uint64_t bytes)
{
  return !blocks->granule_bytes || (bytes >> UNIT_BITS < EXACT_LISTS && bytes < blocks->granule_bytes);
}

bool free_index_cover(struct free_index *index, const struct blocks *blocks)
{
  return address_index_cover(&index->tree, blocks);
}

void free_index_close(struct free_index *index, const struct blocks *blocks)
{
  address_index_close(&index->tree, blocks);
}

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  index->bytes += block->bytes;
  index->count++;
  if (free_index_is_listed(blocks, block->bytes))
    free_index_list_add(index, blocks, id);
  else
    address_index_add(&index->tree, blocks, id);
}

void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  index->bytes -= block->bytes;
  index->count--;
  if (free_index_is_listed(blocks, block->bytes))
    free_index_list_remove(index, blocks, id);
  else
    address_index_remove(&index->tree, blocks, id);
}

void free_index_move(struct free_index *index, struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes)
{
  const struct block *block = block_of(blocks, id);
  if (free_index_is_listed(blocks, block->bytes) || free_index_is_listed(blocks, bytes)) {
    free_index_remove(index, blocks, id);
    block_set_bounds(blocks, id, start, bytes);
    free_index_add(index, blocks, id);
    return;
  }
  index->bytes += bytes - block->bytes;
  address_index_move(&index->tree, blocks, id, start, bytes);
}

uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, uint64_t bytes, enum fit *fit_out)
{
  uint64_t units = bytes >> UNIT_BITS;
  uint32_t id = free_index_is_listed(blocks, bytes) ? free_index_list_fit(index, blocks, units) : BLOCK_NONE;
  *fit_out = FIT_LIST;
  if (id) return id;
  *fit_out = FIT_BUSY;
  if (bytes < blocks->granule_bytes) id = address_index_fit(&index->tree, blocks, MEASURE_BUSY, units);
  if (id) return id;
  *fit_out = FIT_ANYWHERE;
  id = address_index_fit(&index->tree, blocks, MEASURE_WHOLE, units);
  if (!id) *fit_out = FIT_NONE;
  return id;
}

uint32_t free_index_below(const struct free_index *index, const struct blocks *blocks, uint32_t id, uint64_t bytes)
{
  return address_index_below(&index->tree, blocks, id, bytes >> UNIT_BITS);
}

uint32_t free_index_holding(const struct free_index *index, const struct blocks *blocks, uint64_t start, uint64_t end)
{
  uint32_t id = index->count ? address_index_at(&index->tree, blocks, start) : BLOCK_NONE;
  /* Cells are numbered as regions are added, and a later region may lie lower: the block of an earlier cell may lie above
   * the address. */
  return id && block_holds(block_of(blocks, id), start, end) ? id : BLOCK_NONE;
}

/* ---- Inspecting ---- */

uint32_t free_index_largest_listed(const struct free_index *index, const struct blocks *blocks)
{
  uint32_t word = FREE_LISTS / 64;
  while (word && !index->bits[word - 1]) word--;
  if (!word) return BLOCK_NONE;
  uint32_t largest = index->lists[word * 64 - 1 - (uint32_t)__builtin_clzll(index->bits[word - 1])];
  for (uint32_t id = largest; id; id = block_of(blocks, id)->next)
    if (block_of(blocks, id)->bytes > block_of(blocks, largest)->bytes) largest = id;
  return largest;
}

uint32_t free_index_any(const struct free_index *index, const struct blocks *blocks)
{
  uint32_t id = free_index_list_from(index, 0);
  return id ? id : free_index_below(index, blocks, BLOCK_NONE, HIPMM_ALIGNMENT);
}

uint64_t free_index_metadata_bytes(const struct free_index *index)
{
  return sizeof *index + address_index_metadata_bytes(&index->tree);
}
