/* SPDX-License-Identifier: MIT */
/* play.h: plays a log from its start through a new stack of a graph. Used by the commands that try several graphs. */
#ifndef HIPMM_TOOLS_COMMAND_PLAY_PLAY_H
#define HIPMM_TOOLS_COMMAND_PLAY_PLAY_H

#include "call_counts.h"
#include "player.h"

#include <limits.h>

struct play {
  const struct trace *trace;
  int device;
  long passes; /* on the same stack */
  struct trace_watcher watcher;
};

struct play_result {
  bool is_good;      /* all of the log ran */
  uint32_t line;     /* of the first failure; 0: of none, the stack could not be built or the streams not created */
  char reason[1024]; /* of the failure */
  uint64_t peak_requested_bytes, held_bytes; /* held: by the device's stack at most */
  bool counts_calls;                         /* the runtime does; else `calls` is all zero */
  struct call_counts calls;                  /* of the runtime, while the stack was built and the log ran */
  double ns;                                 /* the mean processor time of an operation */
  char runtime[PATH_MAX];                    /* the name; empty: hipmm was not initialised */
};

/* Adds a setting of the software device to HIPMM_SOFTWARE, unless one of that name is there. */
void play_set_software(const char *name, const char *value);

/* Initialises hipmm with the graph, which is JSON text, plays the log until it ends or fails, and finalises hipmm. NULL stands
 * for a lack of memory. */
struct play_result play_graph(const struct play *play, const char *graph);

#endif
