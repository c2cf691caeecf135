/* SPDX-License-Identifier: MIT */
/* free_index.c: visits of the free blocks, for what an allocation does when nothing fits. */
#include "free_index.h"

enum { HOLDING_STEPS = 256 };

uint32_t free_index_fit_slow_path(const struct blocks *blocks, uint32_t id, uint64_t bytes)
{
  return free_index_search(blocks, id, bytes, UINT32_MAX);
}

uint32_t free_index_lowest(const struct free_index *index, const struct blocks *blocks, uint64_t bytes)
{
  uint32_t lowest = BLOCK_NONE;
  for (enum kind kind = free_index_first_kind(blocks, bytes); kind < KIND_OWN; kind++) {
    uint32_t id = free_index_fit(index, blocks, kind, bytes);
    for (unsigned steps = 0; id && steps < LOWEST_STEPS; steps++) {
      const struct block *block = block_of(blocks, id);
      if (block->bytes >= bytes && (!lowest || block->start < block_of(blocks, lowest)->start)) lowest = id;
      id = block->next ? block->next : index->lists[free_index_place_behind(index, kind, block->place)];
    }
  }
  return lowest;
}

/* The first block of the kind's last list below `place`. */
static uint32_t free_index_last_below(const struct free_index *index, enum kind kind, uint32_t place)
{
  for (uint32_t word = (place + 63) / 64; word-- > kind * KIND_WORDS;) {
    uint64_t bits = index->bits[word];
    if (word == place / 64) bits &= ~(~0ull << place % 64);
    if (bits) return index->lists[word * 64 + 63 - (uint32_t)__builtin_clzll(bits)];
  }
  return BLOCK_NONE;
}

uint32_t free_index_next(const struct free_index *index, const struct blocks *blocks, enum kind kind, uint32_t id)
{
  if (!id) return free_index_last_below(index, kind, (kind + 1) * FREE_LISTS);
  const struct block *block = block_of(blocks, id);
  return block->next ? block->next : free_index_last_below(index, kind, block->place);
}

uint32_t free_index_holding(const struct free_index *index, const struct blocks *blocks, uint64_t start, uint64_t end)
{
  unsigned steps = 0;
  for (enum kind kind = KIND_WHOLE; kind < KIND_OWN; kind++)
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

uint64_t free_index_bytes(const struct free_index *index, const struct blocks *blocks, uint64_t enough)
{
  uint64_t bytes = 0;
  for (enum kind kind = KIND_BUSY; kind < KINDS; kind++)
    for (uint32_t id = BLOCK_NONE; bytes < enough && (id = free_index_next(index, blocks, kind, id));)
      bytes += block_of(blocks, id)->bytes;
  return bytes;
}

/* Of a kind whose blocks are all committed, the largest is in the last list. */
uint64_t free_index_largest(const struct free_index *index, const struct blocks *blocks)
{
  uint64_t largest = 0;
  for (enum kind kind = KIND_BUSY; kind < KINDS; kind++) {
    uint32_t first = free_index_next(index, blocks, kind, BLOCK_NONE), id = first;
    while (id && (kind == KIND_PARTIAL || block_of(blocks, id)->place == block_of(blocks, first)->place)) {
      uint64_t bytes = block_of(blocks, id)->bytes - block_of(blocks, id)->uncommitted * blocks->granule_bytes;
      if (bytes > largest) largest = bytes;
      id = free_index_next(index, blocks, kind, id);
    }
  }
  return largest;
}
