/* SPDX-License-Identifier: MIT */
/* savings.h: by how much the peak of a log falls when blocks that are live at the peak are smaller, or gone. Another peak of
 * the same log bounds that, so it is less than what the blocks hold. */
#ifndef HIPMM_TOOLS_COMMAND_PLAN_SAVINGS_H
#define HIPMM_TOOLS_COMMAND_PLAN_SAVINGS_H

#include "../trace/moment.h"

enum { SAVINGS_MOST = 8 };

/* The blocks of one size or stack; everywhere in the log, not at the peak alone. */
struct saving {
  struct moment_group at_peak;
  uint64_t halved_bytes;   /* the peak falls by so much when each of them has half the size */
  uint64_t gone_bytes;     /* when they are gone */
  uint64_t together_bytes; /* when they and those of the rows before are gone */
};

struct savings_list {
  struct saving items[SAVINGS_MOST]; /* what saves most first */
  size_t n;
};

struct savings {
  uint64_t peak_bytes;
  uint32_t peak_event;
  struct savings_list by_size, by_stack; /* by_stack: empty if the log has no call stacks */
};

/* False: out of memory. The log has events. */
bool savings_find(const struct blocks *blocks, struct savings *out);

#endif
