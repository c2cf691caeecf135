/* SPDX-License-Identifier: MIT */
/* live.h: the blocks of a log that are live. Here, and nowhere else, a free meets its allocation: rows.c, trace.c and the report
 * each keep such a table while they read. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_LIVE_H
#define HIPMM_TOOLS_COMMAND_TRACE_LIVE_H

#include "rows.h"

/* In place of the slot of a block: there is none. */
enum { TRACE_NULL_SLOT = 0 };

/* All zero is an empty table. A slot is the number of a block; it goes to another block after the free. */
struct trace_live {
  struct trace_live_space *spaces; /* each has addresses of its own */
  size_t n_spaces, space_capacity;
  struct trace_live_block {
    uint64_t bytes;
    uint32_t next_free; /* of a free slot: the next one */
    uint32_t item;      /* for the caller */
  } * blocks;           /* by slot */
  size_t capacity;
  uint32_t n_slots; /* that were ever used, and the null slot */
  uint32_t free_slot;
};

/* What a row did. */
struct trace_pair {
  uint32_t
      slot; /* that was allocated or freed; TRACE_NULL_SLOT: a null pointer, a failure, or a free of no live block */
  uint32_t
      older; /* the block that was live at the address of an allocation: the log lacks its free. Its slot stays unused */
  uint64_t bytes; /* of a free: the size of its allocation */
};

/* Gives a free whose device is not told the space in which its address is live, of its process; else another one of it. */
void trace_live_place(const struct trace_live *live, struct trace_row *row);

/* Notes an allocation or a free. False: out of memory. */
bool trace_live_note(struct trace_live *live, const struct trace_row *row, struct trace_pair *pair_out);

void trace_live_clear(struct trace_live *live);

#endif
