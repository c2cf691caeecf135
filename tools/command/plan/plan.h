/* SPDX-License-Identifier: MIT */
/* plan.h: what the files of `hipmm plan` share. */
#ifndef HIPMM_TOOLS_COMMAND_PLAN_PLAN_H
#define HIPMM_TOOLS_COMMAND_PLAN_PLAN_H

#include "../cmd.h"
#include "../trace/moment.h"

/* ---- savings.c -------------------------------------------------------------------------------------------------- */

/* By how much the peak of a log falls when blocks that are live at the peak are smaller, or gone. Another peak of
 * the same log bounds that, so it is less than what the blocks hold. */

enum { SAVINGS_MOST = 8 };

/* The blocks of one size, tag or stack; everywhere in the log, not only at the peak. */
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
  struct savings_list by_size, by_tag, by_stack; /* empty if the log has no tags, or no call stacks */
};

/* False: out of memory. The log has events. */
bool savings_find(const struct blocks *blocks, struct savings *out);

/* ---- plan.c ----------------------------------------------------------------------------------------------------- */

struct plan {
  struct source source;
  struct trace_choice choice;
  uint64_t device_bytes;  /* of the device; 0: there is none so large */
  uint64_t process_bytes; /* that each process takes besides its stack */
  json_t *logs;           /* each is a process, with what it needs */
  uint64_t needs_bytes;   /* of all logs, one process each */
  char runtime[PATH_MAX]; /* of the replays */
};

/* ---- print.c ---------------------------------------------------------------------------------------------------- */

/* What is to be shrunk in a log. */
json_t *plan_log_json(const char *file, const struct blocks *blocks, const struct savings *savings);

/* The whole answer, and the text that is made of it. */
json_t *plan_json(const struct plan *plan);
void plan_print(const json_t *plan);

#endif
