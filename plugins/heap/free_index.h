/* SPDX-License-Identifier: MIT */
/* free_index.h: the free blocks of one stream, in lists by kind and size, so that a best fit takes a few steps however many
 * blocks there are. Lists below EXACT_LISTS have one size, the last freed first; the others have a sixteenth of a doubling,
 * roughly by size. Every allocation and free of a block that is in no cache takes the steps that are inline here. Called by
 * heap.c and idle.c. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_HEAP_FREE_INDEX_H
#define HIPMM_PLUGINS_HEAP_FREE_INDEX_H

#include "block.h"

/* ---- Places ---- */

BLOCK_INLINE uint32_t free_index_list_of(uint64_t bytes)
{
  enum { EXACT_DOUBLING = 8, STEP_BITS = 4 /* EXACT_LISTS and LISTS_PER_DOUBLING as powers of two */ };
  uint64_t units = bytes >> UNIT_BITS;
  if (units < EXACT_LISTS) return (uint32_t)units;
  unsigned doubling = 63 ^ (unsigned)__builtin_clzll(units);
  uint32_t steps = (uint32_t)(units >> (doubling - STEP_BITS)); /* LISTS_PER_DOUBLING and more */
  return EXACT_LISTS - (EXACT_DOUBLING + 1) * LISTS_PER_DOUBLING + doubling * LISTS_PER_DOUBLING + steps;
}

/* The first kind that can have blocks of so many bytes: two granules contain a whole one, wherever they begin. In a pool of
 * segments, any kind can. */
BLOCK_INLINE enum kind free_index_first_kind(const struct blocks *blocks, uint64_t bytes)
{
  return bytes <= 2 * blocks->granule_bytes - 1 ? KIND_BUSY : KIND_WHOLE;
}

BLOCK_INLINE enum kind free_index_kind_in_segment(const struct block *block)
{
  if (!block->before && !block->after) return KIND_PARTIAL;
  return block->is_for_small ? KIND_BUSY : KIND_WHOLE;
}

/* For a block that is to have these bounds. */
BLOCK_INLINE enum kind free_index_kind_of(const struct blocks *blocks, const struct block *block, uint64_t start,
                                          uint64_t bytes)
{
  uint64_t granule = blocks->granule_bytes;
  if (__builtin_expect(block->is_own, 0)) return KIND_OWN;
  if (block->uncommitted) return KIND_PARTIAL;
  if (bytes >= 2 * granule) return granule ? KIND_WHOLE : free_index_kind_in_segment(block);
  uint64_t before = -start & (granule - 1); /* the first granule that begins in the block */
  return bytes < before + granule ? KIND_BUSY : KIND_WHOLE;
}

BLOCK_INLINE uint32_t free_index_place_of(const struct blocks *blocks, const struct block *block, uint64_t start,
                                          uint64_t bytes)
{
  return (uint32_t)free_index_kind_of(blocks, block, start, bytes) * FREE_LISTS + free_index_list_of(bytes);
}

/* ---- Changes ---- */

BLOCK_INLINE void free_index_link(struct free_index *index, const struct blocks *blocks, uint32_t id, uint32_t place,
                                  uint64_t bytes)
{
  struct block *block = block_of(blocks, id);
  uint32_t previous = BLOCK_NONE, next = index->lists[place];
  block->place = (uint16_t)place;
  if (!next) {
    if (!index->bits[place / 64]) index->words |= 1ull << place / 64;
    index->bits[place / 64] |= 1ull << place % 64;
  }
  for (unsigned steps = 0; next && steps < LIST_STEPS && block_of(blocks, next)->bytes < bytes; steps++) {
    previous = next;
    next = block_of(blocks, next)->next;
  }
  block->previous = previous;
  block->next = next;
  if (next) block_of(blocks, next)->previous = id;
  *(previous ? &block_of(blocks, previous)->next : &index->lists[place]) = id;
}

BLOCK_INLINE void free_index_remove(struct free_index *index, const struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  uint32_t place = block->place, previous = block->previous, next = block->next;
  if (next) block_of(blocks, next)->previous = previous;
  *(previous ? &block_of(blocks, previous)->next : &index->lists[place]) = next;
  if (previous || next) return;
  uint64_t bits = index->bits[place / 64];
  if (!(bits & (bits - 1))) index->words &= ~(1ull << place / 64); /* the last of them */
  index->bits[place / 64] = bits & ~(1ull << place % 64);
}

BLOCK_INLINE void free_index_add(struct free_index *index, const struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  uint32_t place = free_index_place_of(blocks, block, block->start, block->bytes);
  free_index_link(index, blocks, id, place, block->bytes);
}

/* Changes the bounds of a block in the index, and finds its kind anew. Cheaper than removing and adding it. */
BLOCK_INLINE void free_index_move(struct free_index *index, const struct blocks *blocks, uint32_t id, uint64_t start,
                                  uint64_t bytes)
{
  struct block *block = block_of(blocks, id);
  uint32_t place = free_index_place_of(blocks, block, start, bytes);
  if (place != block->place) {
    free_index_remove(index, blocks, id);
    free_index_link(index, blocks, id, place, bytes);
  }
  block_set_bounds(block, start, bytes);
}

/* ---- Searches ---- */

/* Which of the index's words are of the kind and not zero. */
BLOCK_INLINE uint64_t free_index_words(const struct free_index *index, enum kind kind)
{
  return index->words & ((1ull << KIND_WORDS) - 1) << kind * KIND_WORDS;
}

/* The kind's first list behind `place` that has blocks; 0 if there is none. */
BLOCK_INLINE uint32_t free_index_place_behind(const struct free_index *index, enum kind kind, uint32_t place)
{
  uint64_t bits = index->bits[place / 64] >> place % 64 >> 1;
  if (bits) return place + 1 + (uint32_t)__builtin_ctzll(bits);
  uint64_t words = free_index_words(index, kind) & ~1ull << place / 64;
  if (!words) return 0;
  uint32_t word = (uint32_t)__builtin_ctzll(words);
  return word * 64 + (uint32_t)__builtin_ctzll(index->bits[word]);
}

/* The first block of at least `bytes` from `id` on, among the next `steps` of its list. */
BLOCK_INLINE uint32_t free_index_search(const struct blocks *blocks, uint32_t id, uint64_t bytes, unsigned steps)
{
  for (; id && steps; id = block_of(blocks, id)->next, steps--)
    if (block_of(blocks, id)->bytes >= bytes) return id;
  return BLOCK_NONE;
}

/* The first block of at least `bytes` from `id` on in its list; BLOCK_NONE if there is none. */
uint32_t free_index_fit_slow_path(const struct blocks *blocks, uint32_t id, uint64_t bytes);

/* A block of the kind, of at least `bytes`, small if there is a choice; BLOCK_NONE if there is none. `list` is that of the
 * size. The whole of a list is searched only where the pool would have to grow otherwise. */
BLOCK_INLINE uint32_t free_index_fit_from(const struct free_index *index, const struct blocks *blocks, enum kind kind,
                                          uint64_t bytes, uint32_t list)
{
  uint32_t place = kind * FREE_LISTS + list, first = index->lists[place];
  uint32_t id = free_index_search(blocks, first, bytes, LIST_STEPS);
  if (!id) id = index->lists[free_index_place_behind(index, kind, place)]; /* no block is in list 0 */
  return __builtin_expect(id || !first, 1) ? id : free_index_fit_slow_path(blocks, first, bytes);
}

BLOCK_INLINE uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, enum kind kind,
                                     uint64_t bytes)
{
  return free_index_fit_from(index, blocks, kind, bytes, free_index_list_of(bytes));
}

/* Of the first LOWEST_STEPS blocks of each kind that fit, roughly by size, the one at the lowest address; BLOCK_NONE if none
 * fits. */
enum { LOWEST_STEPS = 64 };
uint32_t free_index_lowest(const struct free_index *index, const struct blocks *blocks, uint64_t bytes);

/* The next block of the kind after `id`, larger lists first, or the first for BLOCK_NONE; BLOCK_NONE at the end. */
uint32_t free_index_next(const struct free_index *index, const struct blocks *blocks, enum kind kind, uint32_t id);

/* The block that holds all of [start, end), which is at least a granule. Gives up after some steps: BLOCK_NONE. */
uint32_t free_index_holding(const struct free_index *index, const struct blocks *blocks, uint64_t start, uint64_t end);

/* The sum of all blocks, which are visited until the sum is at least `enough`. */
uint64_t free_index_bytes(const struct free_index *index, const struct blocks *blocks, uint64_t enough);

/* Committed bytes of the largest block. */
uint64_t free_index_largest(const struct free_index *index, const struct blocks *blocks);

/* Any block; BLOCK_NONE when empty. */
uint32_t free_index_any(const struct free_index *index, const struct blocks *blocks);

#endif
