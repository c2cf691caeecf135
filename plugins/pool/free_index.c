/* SPDX-License-Identifier: MIT */
/* free_index.c: two levels of bitmaps over doubly linked lists of free blocks. */
#include "free_index.h"

enum {
  UNIT_BITS = 8,
  EXACT_BITS = 6, /* below 2^6 units a class has one size */
  EXACT = 1 << EXACT_BITS,
  SUB_BITS = 4, /* classes to an octave above, as a power of two */
  WALK = 16     /* most steps to keep or search a list in order */
};

/* The class of a size: every class holds larger blocks than the one before. */
static unsigned class_of(uint64_t bytes)
{
  uint64_t units = bytes >> UNIT_BITS;
  if (units < EXACT) return (unsigned)units;
  unsigned octave = 63 - (unsigned)__builtin_clzll(units);
  unsigned sub = (unsigned)(units >> (octave - SUB_BITS)) & ((1 << SUB_BITS) - 1);
  unsigned class = EXACT + ((octave - EXACT_BITS) << SUB_BITS) + sub;
  return class < FREE_CLASSES ? class : FREE_CLASSES - 1;
}

static bool comes_before(const struct block *a, const struct block *b)
{
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->start < b->start;
}

/* Puts `id` between two neighbours of its list, either of which may be none. */
static void link_between(struct free_index *index, struct blocks *blocks, unsigned class, uint32_t previous,
                         uint32_t id, uint32_t next)
{
  struct block *block = block_of(blocks, id);
  block->previous = previous;
  block->next = next;
  if (next) block_of(blocks, next)->previous = id;
  if (previous)
    block_of(blocks, previous)->next = id;
  else
    index->heads[class] = id;
}

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  unsigned class = class_of(block->bytes);
  uint32_t previous = BLOCK_NONE, next = index->heads[class];
  if (class >= EXACT) {
    for (int steps = 0; next && steps < WALK && comes_before(block_of(blocks, next), block); steps++) {
      previous = next;
      next = block_of(blocks, next)->next;
    }
  }
  link_between(index, blocks, class, previous, id, next);
  index->bits[class / 64] |= 1ull << class % 64;
  index->words |= 1ull << class / 64;
  index->bytes += block->bytes;
  index->count++;
}

void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  unsigned class = class_of(block->bytes);
  if (block->next) block_of(blocks, block->next)->previous = block->previous;
  if (block->previous)
    block_of(blocks, block->previous)->next = block->next;
  else
    index->heads[class] = block->next;
  if (!index->heads[class]) index->bits[class / 64] &= ~(1ull << class % 64);
  if (!index->bits[class / 64]) index->words &= ~(1ull << class / 64);
  index->bytes -= block->bytes;
  index->count--;
}

/* The first class at or above `class` that has blocks; FREE_CLASSES if none. */
static unsigned class_with_blocks(const struct free_index *index, unsigned class)
{
  if (class >= FREE_CLASSES) return FREE_CLASSES;
  unsigned word = class / 64;
  uint64_t bits = index->bits[word] & ~0ull << class % 64;
  if (!bits) {
    uint64_t words = word == 63 ? 0 : index->words & ~0ull << (word + 1);
    if (!words) return FREE_CLASSES;
    word = (unsigned)__builtin_ctzll(words);
    bits = index->bits[word];
  }
  return word * 64 + (unsigned)__builtin_ctzll(bits);
}

/* The first block in the list that is large enough. Only the class of the request itself may hold ones that are not. */
static uint32_t first_fit(const struct blocks *blocks, uint32_t id, uint64_t bytes, int steps)
{
  while (id && block_of(blocks, id)->bytes < bytes) {
    if (!steps--) return BLOCK_NONE;
    id = block_of(blocks, id)->next;
  }
  return id;
}

uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, uint64_t bytes)
{
  unsigned class = class_of(bytes);
  uint32_t id = first_fit(blocks, index->heads[class], bytes, WALK);
  if (id) return id;
  unsigned larger = class_with_blocks(index, class + 1);
  if (larger < FREE_CLASSES) return index->heads[larger];
  return first_fit(blocks, index->heads[class], bytes, -1); /* the whole list, before saying no */
}

/* The last class below `end` that has blocks; FREE_CLASSES if none. */
static unsigned class_below(const struct free_index *index, unsigned end)
{
  while (end) {
    unsigned word = (end - 1) / 64;
    uint64_t bits = index->bits[word] & ~0ull >> (63 - (end - 1) % 64);
    if (bits) return word * 64 + 63 - (unsigned)__builtin_clzll(bits);
    end = word * 64;
  }
  return FREE_CLASSES;
}

uint32_t free_index_next(const struct free_index *index, const struct blocks *blocks, uint32_t id, uint64_t at_least)
{
  if (id && block_of(blocks, id)->next) return block_of(blocks, id)->next;
  unsigned class = class_below(index, id ? class_of(block_of(blocks, id)->bytes) : FREE_CLASSES);
  return class < FREE_CLASSES && class >= class_of(at_least) ? index->heads[class] : BLOCK_NONE;
}

uint64_t free_index_largest(const struct free_index *index, const struct blocks *blocks)
{
  uint64_t largest = 0;
  uint32_t id = free_index_next(index, blocks, BLOCK_NONE, 0);
  for (; id; id = block_of(blocks, id)->next)
    if (block_of(blocks, id)->bytes > largest) largest = block_of(blocks, id)->bytes;
  return largest;
}
