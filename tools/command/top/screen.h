/* SPDX-License-Identifier: MIT */
/* screen.h: what `hipmm top` shows of the processes: a table, sorted, with what each row held recently. */
#ifndef HIPMM_TOOLS_COMMAND_TOP_SCREEN_H
#define HIPMM_TOOLS_COMMAND_TOP_SCREEN_H

#include "processes.h"

enum { SCREEN_HISTORY = 16 };

enum screen_order { SCREEN_BY_PROCESS, SCREEN_BY_LIVE, SCREEN_BY_RESERVED, SCREEN_BY_RATE };

/* What is remembered of a row from one look to the next. */
struct screen_memory {
  uint32_t process;
  char path[LIVE_PATH_BYTES];
  int64_t held[SCREEN_HISTORY]; /* the latest last */
  unsigned n_held;
  int64_t allocations, at_ns; /* at the last look; allocations may be LIVE_UNKNOWN */
  double rate;                /* allocations a second; below 0: not known */
  bool is_seen;
};

struct screen {
  enum screen_order order;
  struct screen_memory *memories;
  size_t n_memories, capacity;
};

/* Adds what the processes hold now to the rows' history. */
void screen_note(struct screen *screen, const struct processes *processes);

/* Prints a table of at most `rows` lines (0: any) and `columns` columns on standard output. */
void screen_print(struct screen *screen, const struct processes *processes, size_t rows, size_t columns);

void screen_clear(struct screen *screen);

#endif
