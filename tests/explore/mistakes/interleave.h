/* SPDX-License-Identifier: MIT */
/* interleave.h: mistakes in the pool and the arena, of which the test puts one in force at a time. Included in front of each of
 * their files (-include); their own headers come first, so that these names are replaced in what calls them. */
#ifndef HIPMM_TESTS_EXPLORE_MISTAKES_INTERLEAVE_H
#define HIPMM_TESTS_EXPLORE_MISTAKES_INTERLEAVE_H

#include "../../../plugins/common/biased_lock.h"
#include "../../../plugins/heap/block.h"

enum interleave_mistake {
  NO_MISTAKE,
  NO_FENCE,         /* gates are shut without a fence on all processors */
  NO_WAIT_AT_GATES, /* gates are shut, and nobody waits for the owners inside */
  NO_CLAIM,         /* a block's state is looked at, and then changed */
  WEAK_END,         /* a thread that ends says so before its cache is as it left it */
  WEAK_OPENING      /* a gate is opened before what was done behind it */
};

extern enum interleave_mistake interleave_mistake;

#define gate_await(gate) (interleave_mistake == NO_WAIT_AT_GATES ? (void)0 : (gate_await)(gate))

/* As if it were two steps. */
static inline bool interleave_claim(struct block *block)
{
  bool is_live = block_state(block) == BLOCK_LIVE;
  if (is_live) block_set_state(block, BLOCK_CACHED);
  return is_live;
}

#define block_claim(block) (interleave_mistake == NO_CLAIM ? interleave_claim(block) : (block_claim)(block))

#endif
