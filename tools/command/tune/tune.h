/* SPDX-License-Identifier: MIT */
/* tune.h: what the files of `hipmm tune` share. */
#ifndef HIPMM_TOOLS_COMMAND_TUNE_TUNE_H
#define HIPMM_TOOLS_COMMAND_TUNE_TUNE_H

#include "search.h"

enum { TUNE_NUMBER = 32 };

enum goal { GOAL_BOTH, GOAL_MEMORY, GOAL_SPEED };

struct tune {
  enum goal goal;
  struct trace *traces; /* of each log */
  size_t n_traces;
  struct costs costs;
  struct space space;
  struct search search;
  uint64_t device_bytes; /* what a program's stack can have on the device; 0: not given */
  size_t winner;         /* index of the point */
  json_t *reasons;
};

/* ---- choose.c -------------------------------------------------------------------------------------------------- */

/* The best point for the goal: never one that is worse than the default stack at equal other, nor one that loses to it by the
 * host's own time. False: out of memory. */
bool tune_choose(struct tune *tune);

/* A sentence for each choice of the winner. */
bool tune_explain(struct tune *tune);

/* ---- print.c --------------------------------------------------------------------------------------------------- */

/* The result, and the text that is made of it. */
json_t *tune_json(const struct tune *tune);
void tune_print(const json_t *result);

/* "2043", "0.52". Returns `buffer`, which has TUNE_NUMBER bytes. */
const char *tune_number(double number, char *buffer);

#endif
