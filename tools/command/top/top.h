/* SPDX-License-Identifier: MIT */
/* top.h: what `hipmm top` and `hipmm export` share. */
#ifndef HIPMM_TOOLS_COMMAND_TOP_TOP_H
#define HIPMM_TOOLS_COMMAND_TOP_TOP_H

#include "../../../core/base/live_format.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- processes.c ------------------------------------------------------------------------------------------------ */

/* The processes that publish the counters of their resources (base/live_format.h), as they are now. */

struct processes_item {
  unsigned user;            /* the file's owner, whose process it is */
  unsigned long long space; /* the namespace of its number; 0: the reader's */
  struct live_file file;    /* a copy: whole, checked, with texts that end, each resource once */
};

struct processes {
  struct processes_item *items;
  size_t n, capacity;
  bool is_truncated; /* there was no host memory for all */
};

/* Reads all that the user may read; `only` is a process, or 0. A file that speaks of another user's process is left out. Removes files that killed processes of the user left
 * over. */
void processes_read(struct processes *processes, uint32_t only);

/* Adds what a file of the format has of this process, which is this user's. False: it is no such file, or there is no memory. */
bool processes_add(struct processes *processes, int file, uint32_t process);
void processes_clear(struct processes *processes);

/* The device of a row, -1 if it has none, and the resource's name ("" for a device). */
int processes_device_of(const struct live_row *row);
const char *processes_resource_of(const struct live_row *row);

/* An array of processes with their rows. */
json_t *processes_json(const struct processes *processes);

/* ---- screen.c --------------------------------------------------------------------------------------------------- */

/* What `hipmm top` shows of the processes: a table, sorted, with what each row held recently. */

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
  bool is_plain; /* for logs and screen readers: no bars */
  struct screen_memory *memories;
  size_t n_memories, capacity;
};

/* Adds what the processes hold now to the rows' history. */
void screen_note(struct screen *screen, const struct processes *processes);

/* Prints a table of at most `rows` lines (0: any) and `columns` columns on standard output. */
void screen_print(struct screen *screen, const struct processes *processes, size_t rows, size_t columns);

void screen_clear(struct screen *screen);

#endif
