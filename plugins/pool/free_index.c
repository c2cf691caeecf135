/* SPDX-License-Identifier: MIT */
/* free_index.c: lists by exact size, and a treap in which each node knows the largest block below it. */
#include "free_index.h"

static uint64_t units_of(const struct block *block)
{
  return block->bytes >> UNIT_BITS;
}

/* ---- Lists ---- */

static void list_add(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  uint64_t list = units_of(block);
  block->previous = BLOCK_NONE;
  block->next = index->lists[list];
  if (block->next) block_of(blocks, block->next)->previous = id;
  index->lists[list] = id;
  index->bits[list / 64] |= 1ull << list % 64;
}

static void list_remove(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  uint64_t list = units_of(block);
  if (block->next) block_of(blocks, block->next)->previous = block->previous;
  if (block->previous)
    block_of(blocks, block->previous)->next = block->next;
  else
    index->lists[list] = block->next;
  if (!index->lists[list]) index->bits[list / 64] &= ~(1ull << list % 64);
}

/* The smallest listed block of at least `units`. */
static uint32_t list_fit(const struct free_index *index, uint64_t units)
{
  uint64_t word = units / 64, bits = index->bits[word] & ~0ull << units % 64;
  while (!bits && ++word < FREE_LISTS / 64) bits = index->bits[word];
  return bits ? index->lists[word * 64 + (uint64_t)__builtin_ctzll(bits)] : BLOCK_NONE;
}

/* ---- Tree: `next` is the left child, `previous` the right one ---- */

/* What the nodes are ordered by from the root down: at random, so that the tree is balanced, yet the same every time. */
static uint32_t priority_of(uint32_t id)
{
  return id * 2654435769u;
}

/* The bytes at the block's start that share a granule with other blocks: putting something there makes no idle granule
 * busy. All of it, if the block holds no whole granule. */
static uint64_t prefix_of(const struct blocks *blocks, const struct block *block)
{
  uint64_t granule = blocks->granule_bytes;
  if (!granule) return block->bytes;
  uint64_t whole = (block->start + granule - 1) & ~(granule - 1);
  return whole + granule > block->start + block->bytes ? block->bytes : whole - block->start;
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
  return a > b ? a : b;
}

/* Sets what the node knows of its subtree; false if it knew already. The record of BLOCK_NONE has zeros. */
static bool refresh(struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  const struct block *left = block_of(blocks, block->next), *right = block_of(blocks, block->previous);
  uint64_t units = larger_of(units_of(block), larger_of(left->largest, right->largest));
  uint64_t prefix = larger_of(left->largest_prefix, right->largest_prefix);
  prefix = larger_of(prefix, prefix_of(blocks, block) >> UNIT_BITS);
  bool changed = units != block->largest || prefix != block->largest_prefix;
  block->largest = units;
  block->largest_prefix = (uint32_t)prefix;
  return changed;
}

static void refresh_up(struct blocks *blocks, uint32_t id)
{
  while (id && refresh(blocks, id)) id = block_of(blocks, id)->parent;
}

/* Puts `child` where `old` was below `parent`. */
static void replace_child(struct free_index *index, struct blocks *blocks, uint32_t parent, uint32_t old,
                          uint32_t child)
{
  struct block *above = block_of(blocks, parent);
  if (child) block_of(blocks, child)->parent = parent;
  if (!parent)
    index->root = child;
  else if (above->next == old)
    above->next = child;
  else
    above->previous = child;
}

/* Lifts the node above its parent. */
static void rotate(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  uint32_t parent = block->parent, inner;
  struct block *above = block_of(blocks, parent);
  replace_child(index, blocks, above->parent, parent, id);
  if (above->next == id) {
    inner = block->previous;
    above->next = inner;
    block->previous = parent;
  } else {
    inner = block->next;
    above->previous = inner;
    block->next = parent;
  }
  above->parent = id;
  if (inner) block_of(blocks, inner)->parent = parent;
  refresh(blocks, parent);
  refresh(blocks, id);
}

/* By address where idle granules can be moved, so that they gather at the top. Segments never merge: there the best fit
 * wastes least, and the order is by size. */
static bool comes_before(const struct blocks *blocks, const struct block *a, const struct block *b)
{
  return blocks->granule_bytes || a->bytes == b->bytes ? a->start < b->start : a->bytes < b->bytes;
}

static void tree_add(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  uint32_t parent = BLOCK_NONE, *link = &index->root;
  while (*link) {
    parent = *link;
    struct block *above = block_of(blocks, parent);
    link = comes_before(blocks, block, above) ? &above->next : &above->previous;
  }
  *link = id;
  block->parent = parent;
  block->next = block->previous = BLOCK_NONE;
  block->largest = block->largest_prefix = 0;
  refresh_up(blocks, id);
  while (block->parent && priority_of(block->parent) < priority_of(id)) rotate(index, blocks, id);
}

static void tree_remove(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  while (block->next && block->previous)
    rotate(index, blocks, priority_of(block->next) > priority_of(block->previous) ? block->next : block->previous);
  replace_child(index, blocks, block->parent, id, block->next ? block->next : block->previous);
  refresh_up(blocks, block->parent);
}

/* The first block of at least `units`, or with a prefix of at least `units`. */
static uint32_t tree_fit(const struct free_index *index, const struct blocks *blocks, uint64_t units, bool prefix)
{
  uint32_t id = index->root;
  for (;;) {
    const struct block *block = block_of(blocks, id), *left = block_of(blocks, block->next);
    if ((prefix ? block->largest_prefix : block->largest) < units) return BLOCK_NONE;
    if ((prefix ? left->largest_prefix : left->largest) >= units) {
      id = block->next;
      continue;
    }
    if ((prefix ? prefix_of(blocks, block) >> UNIT_BITS : units_of(block)) >= units) return id;
    id = block->previous;
  }
}

/* ---- Both ---- */

static bool is_small(const struct block *block)
{
  return units_of(block) < FREE_LISTS;
}

void free_index_add(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  index->bytes += block->bytes;
  index->count++;
  if (is_small(block))
    list_add(index, blocks, id);
  else
    tree_add(index, blocks, id);
}

void free_index_remove(struct free_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  index->bytes -= block->bytes;
  index->count--;
  if (is_small(block))
    list_remove(index, blocks, id);
  else
    tree_remove(index, blocks, id);
}

void free_index_move(struct free_index *index, struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes)
{
  struct block *block = block_of(blocks, id);
  bool stays = blocks->granule_bytes && !is_small(block) && bytes >> UNIT_BITS >= FREE_LISTS;
  if (!stays) {
    free_index_remove(index, blocks, id);
    block_set_bounds(blocks, id, start, bytes);
    free_index_add(index, blocks, id);
    return;
  }
  index->bytes += bytes - block->bytes;
  block_set_bounds(blocks, id, start, bytes);
  refresh_up(blocks, id);
}

uint32_t free_index_fit(const struct free_index *index, const struct blocks *blocks, uint64_t bytes, enum fit *fit_out)
{
  uint64_t units = bytes >> UNIT_BITS;
  uint32_t id = units < FREE_LISTS ? list_fit(index, units) : BLOCK_NONE;
  *fit_out = FIT_LIST;
  if (id) return id;
  *fit_out = FIT_PREFIX;
  if (bytes < blocks->granule_bytes) id = tree_fit(index, blocks, units, true);
  if (id) return id;
  *fit_out = FIT_ANYWHERE;
  id = tree_fit(index, blocks, units, false);
  if (!id) *fit_out = FIT_NONE;
  return id;
}

/* The highest block of the subtree of at least `units`; there is one. */
static uint32_t highest(const struct blocks *blocks, uint32_t id, uint64_t units)
{
  for (;;) {
    const struct block *block = block_of(blocks, id);
    if (block_of(blocks, block->previous)->largest >= units)
      id = block->previous;
    else if (units_of(block) >= units)
      return id;
    else
      id = block->next;
  }
}

uint32_t free_index_below(const struct free_index *index, const struct blocks *blocks, uint32_t id, uint64_t bytes)
{
  uint64_t units = bytes >> UNIT_BITS;
  if (!id) return block_of(blocks, index->root)->largest >= units ? highest(blocks, index->root, units) : BLOCK_NONE;
  const struct block *block = block_of(blocks, id);
  if (block_of(blocks, block->next)->largest >= units) return highest(blocks, block->next, units);
  for (uint32_t above = block->parent; above; id = above, above = block_of(blocks, above)->parent) {
    const struct block *parent = block_of(blocks, above);
    if (parent->next == id) continue; /* it lies higher: visited already */
    if (units_of(parent) >= units) return above;
    if (block_of(blocks, parent->next)->largest >= units) return highest(blocks, parent->next, units);
  }
  return BLOCK_NONE;
}

uint32_t free_index_any(const struct free_index *index)
{
  for (uint64_t word = 0; word < FREE_LISTS / 64; word++)
    if (index->bits[word]) return index->lists[word * 64 + (uint64_t)__builtin_ctzll(index->bits[word])];
  return index->root;
}
