/* SPDX-License-Identifier: MIT */
/* trace.h: reads an allocation log (rows.h) into events that can be played without looking anything up. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_TRACE_H
#define HIPMM_TOOLS_COMMAND_TRACE_TRACE_H

#include "live.h"
#include "spaces.h"

/* An allocation, or the free that belongs to one. A slot is where the player keeps the block's pointer; slots are reused
 * after a free. A block that the log never frees keeps its slot. */
struct trace_event {
  uint64_t bytes;       /* of a free: those of its allocation */
  uint32_t slot;        /* TRACE_NULL_SLOT: of the null pointer, which zero bytes give */
  uint32_t stream : 31; /* index into streams */
  uint32_t is_free : 1;
};

struct trace {
  struct trace_event *events;
  uint32_t *lines; /* of each event in the file */
  size_t n_events;
  uint64_t *streams; /* handles as logged, in the order of their first use */
  size_t n_streams;
  uint32_t n_slots;

  bool is_of_several; /* trace_load() chose it by its device, from those of several */
  uint64_t rows;      /* of all actions, skipped ones included */
  uint64_t allocations, frees;
  uint64_t unmatched_frees; /* skipped: nothing was allocated there */
  uint64_t failed_rows;     /* skipped: "allocate failure", "free failure" */
  uint64_t overlaid;        /* allocations at an address that was still live; the older block is never freed */
  uint64_t other_sizes;     /* frees with another size than their allocation */
};

/* The events of each space of a log; of a log without rows one trace without events. */
struct traces {
  struct trace *items;
  size_t n;
  struct trace_spaces spaces; /* of the traces */
  char remark[512];           /* what the log says it lacks, and what was left out: see trace_rows_remark() */
};

/* Is told the progress of reading; total 0: unknown. */
struct trace_watcher {
  void (*notify)(void *closure, uint64_t done_bytes, uint64_t total_bytes);
  void *closure;
};

/* Reads `file`, "-" for standard input. Commands call logs.h, which prints errors and remarks. False: `message` has the error and
 * its line, and nothing is allocated. `watcher` may be NULL. */
bool traces_read(const char *file, const struct trace_watcher *watcher, struct traces *traces_out, char *message,
                 size_t message_bytes);

void trace_clear(struct trace *trace);
void traces_clear(struct traces *traces);

#endif
