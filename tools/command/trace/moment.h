/* SPDX-License-Identifier: MIT */
/* moment.h: the blocks that are live at one moment of a log, grouped. Called by summary.c and `hipmm plan`. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_MOMENT_H
#define HIPMM_TOOLS_COMMAND_TRACE_MOMENT_H

#include "blocks.h"
#include <jansson.h>

/* Which blocks count. */
struct moment {
  uint32_t event;      /* those that are live after this event */
  uint32_t from_event; /* and were allocated by this event or later */
};

enum moment_key { MOMENT_BY_SIZE, MOMENT_BY_STREAM, MOMENT_BY_THREAD, MOMENT_BY_STACK, MOMENT_BY_TAG };

/* Blocks of one size, stream, thread, stack or tag. */
struct moment_group {
  uint64_t key; /* the size, or the index */
  uint64_t blocks, bytes;
};

struct moment_groups {
  struct moment_group *items; /* the largest first */
  size_t n;
  uint64_t blocks, bytes; /* of all; groups by stack add up to it on average, if stacks are a sample */
};

/* Fills `curve` with the live bytes after each event: of all blocks, or of those with that key. Returns the event after which
 * most bytes are live, the first of several. */
uint32_t moment_curve(const struct blocks *blocks, const enum moment_key *by, uint64_t key, uint64_t *curve);

/* False: out of memory. Free `items`. */
bool moment_group(const struct blocks *blocks, struct moment moment, enum moment_key by, struct moment_groups *out);

/* The first `most` groups as an array of objects with "blocks", "bytes" and "size", "stream", "thread", "stack" or "tag". */
json_t *moment_groups_json(const struct blocks *blocks, const struct moment_groups *groups, enum moment_key by,
                           size_t most);

/* The key of a block. */
static inline uint64_t moment_key_of(const struct blocks *blocks, const struct block *block, enum moment_key by)
{
  switch (by) {
  case MOMENT_BY_STREAM: return block->stream;
  case MOMENT_BY_THREAD: return block->thread;
  case MOMENT_BY_STACK: return block->stack;
  case MOMENT_BY_TAG: return blocks_tag(blocks, block);
  default: return block->bytes;
  }
}

static inline bool moment_has(const struct moment *moment, const struct block *block)
{
  return block->from >= moment->from_event && block->from <= moment->event && block->to > moment->event;
}

#endif
