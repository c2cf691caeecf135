/* SPDX-License-Identifier: MIT */
/* blocks.h: the live blocks that the program has of hipmm, by address. */
#ifndef HIPMM_PRELOAD_BLOCKS_H
#define HIPMM_PRELOAD_BLOCKS_H

#include "../plugins/common/address_tree.h"
#include "devices.h"
#include "pools.h"

struct block {
  struct address_tree_node by_address; /* major: where it starts; minor: its bytes */
  struct served_device *served;
  enum kind kind;
  uint32_t id;                     /* no other block's, nor an allocation's of the runtime, which counts from 0 */
  unsigned flags;                  /* that the program gave */
  struct served_pool *served_pool; /* what the program has out of the driver's pool that it asked; NULL for none */
};

static inline void *block_start(const struct block *block)
{
  return (void *)block->by_address.major;
}

static inline size_t block_bytes(const struct block *block)
{
  return block->by_address.minor;
}

/* A number for a new block. */
uint32_t blocks_new_id(void);

/* Takes over a block from malloc(); it is live from then on. */
void blocks_insert(struct block *block);

/* Takes the block that starts at `ptr` out, so that no other thread can free it too; the caller owns it. NULL if there
 * is none, or if its kind is not among `kinds` (bits), which *other_kind_out tells. */
struct block *blocks_remove(const void *ptr, unsigned kinds, bool *other_kind_out);

/* Gives the memory of a block that is out, and that no work uses, back to the resource it is of; what cannot be given
 * back is lost, which is said. The record stays the caller's. */
void blocks_release(const struct block *block);

/* Frees the record of a block that is out. */
void blocks_free(struct block *block);

/* Takes any block out; NULL when there is none left. */
struct block *blocks_remove_any(void);

/* Copies the block that `ptr` points into. */
bool blocks_find(const void *ptr, struct block *block_out);

#endif
