/* SPDX-License-Identifier: MIT */
/* blocks.h: the live blocks that hipmm gave to the program, by address. */
#ifndef HIPMM_TOOLS_PRELOAD_BLOCKS_H
#define HIPMM_TOOLS_PRELOAD_BLOCKS_H

#include "../../core/base/key_tree.h"
#include "devices.h"
#include "pools.h"

struct block {
  struct key_tree_node by_address; /* first; major: address; minor: bytes */
  struct served_device *served;
  enum kind kind;
  uint32_t id;                  /* unique; from 2^31 on, since the runtime numbers its own allocations from 0 on */
  unsigned flags;               /* as the program gave them */
  struct pool_account *account; /* of the driver's pool that the program named; NULL for none */
  uint64_t share;               /* share.c's; 0: none */
};

static inline void *block_start(const struct block *block)
{
  return (void *)block->by_address.major;
}

static inline size_t block_bytes(const struct block *block)
{
  return block->by_address.minor;
}

/* Counts a block as live (`sign` 1), or as freed (-1), as the functions below do for blocks of the table. Threads count at
 * the same time: a peak may be too low by blocks that two of them counted at once. */
void blocks_count(struct usage *usage, int64_t bytes, int sign);

/* The id of a new block. */
uint32_t blocks_new_id(void);

/* Makes a block live. The table owns it from then on; it is from malloc(). */
void blocks_insert(struct block *block);

/* Removes the block that starts at `ptr`, so that no other thread can free it too; the caller owns it. NULL if there is
 * no such block, or (*other_kind_out is true) if its kind is not among `kinds`, a bit for each. */
struct block *blocks_remove(const void *ptr, unsigned kinds, bool *other_kind_out);

/* Frees the memory of a removed block that no work uses. If that fails the memory is lost, and a message says so. The
 * caller still owns the block itself. */
void blocks_release(const struct block *block);

/* Frees a removed block itself. */
void blocks_free(struct block *block);

/* Removes any block; NULL when none is left. */
struct block *blocks_remove_any(void);

/* Copies the block that contains `ptr`. False if there is none. */
bool blocks_find(const void *ptr, struct block *block_out);

enum blocks_held { BLOCKS_NOT_HELD, BLOCKS_HELD_FREE, BLOCKS_HELD_LIVE };

/* What the stacks hold at `ptr`: a block of the table; else free memory, or a block that was allocated from hipmm itself, as
 * frameworks do in Python, and that is described without an id. Slow where the table has none. */
enum blocks_held blocks_find_held(const void *ptr, struct block *block_out);

/* Gives the live block of which `copy` is a copy the number `share`, if it has none. Returns its number. */
uint64_t blocks_set_share(const struct block *copy, uint64_t share);

#endif
