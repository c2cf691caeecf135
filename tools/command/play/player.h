/* SPDX-License-Identifier: MIT */
/* player.h: plays a trace through a resource, pass by pass, and measures it. Uses hipmm's public interface only. */
#ifndef HIPMM_TOOLS_COMMAND_PLAY_PLAYER_H
#define HIPMM_TOOLS_COMMAND_PLAY_PLAYER_H

#include "../trace/trace.h"
#include <hipmm/hipmm.h>

#include <time.h>

struct player {
  const struct trace *trace;
  struct hipmm_resource *resource;
  hipmm_stream_t *streams;      /* one for each stream of the trace */
  struct trace_watcher watcher; /* of events; told between batches, outside the measured time */
  bool stops_at_failure;        /* a pass ends soon after the first failure */
  clockid_t clock;              /* that measures; CLOCK_MONOTONIC after player_start() */

  void **live;       /* by slot */
  uint8_t *failed;   /* by event: 1 if it failed in some pass */
  uint8_t *missing;  /* by slot, while tallying: 1 if its allocation failed */
  size_t *leftovers; /* events that allocate what the trace never frees, in order */
  size_t n_leftovers;
  uint64_t failures;     /* events that failed in some pass */
  uint64_t skipped;      /* frees in this pass whose allocation had failed */
  uint32_t failure_line; /* of the first failure; 0 if none */
  char *failure_reason;
};

/* False: out of memory. `streams` and the resource stay the caller's. */
bool player_start(struct player *player, const struct trace *trace, struct hipmm_resource *resource,
                  hipmm_stream_t *streams);
void player_end(struct player *player);

/* Plays all events in order, then frees the blocks that are still live, in order of allocation, so that the next pass
 * finds the stack warm but empty. Returns nanoseconds per operation without these frees; 0 if there was no operation. */
double player_play(struct player *player);

/* The peak of live bytes, and the number of blocks live at the end, without the allocations that failed so far. */
void player_tally(struct player *player, uint64_t *peak_bytes_out, uint64_t *live_at_end_out);

#endif
