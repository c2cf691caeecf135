/* SPDX-License-Identifier: MIT */
/* scenario.h: one program over one stack. A list of choices decides each step: what the program does next on which
 * stream, and, on the stepped scheduler of the software device, which stream's work runs next. Each block is filled on
 * its stream and checked on the stream that frees it. Live blocks must not overlap, and nothing may leak. */
#ifndef HIPMM_TESTS_EXPLORE_SCENARIO_H
#define HIPMM_TESTS_EXPLORE_SCENARIO_H

#include "choices.h"

enum { SCENARIO_SIZES = 3, SCENARIO_STREAMS = 3, SCENARIO_BLOCKS = 12 };

struct scenario {
  const char *name;
  const char *graph;            /* with ' for " */
  size_t sizes[SCENARIO_SIZES]; /* of blocks; 0: fewer */
  unsigned streams, blocks;     /* at most */
  bool is_long;                 /* its programs are long, and so drawn from seeds */
  bool renews;                  /* streams are destroyed and made anew */
  bool is_pooled;               /* streams are those of a stream pool; they stay */
  bool is_sizeless;             /* blocks may be freed without a size */
};

/* Runs `steps` steps, then frees all blocks and ends all work. NULL, or what went wrong; the text lasts until the
 * next run. `tells`: writes the steps to standard error. */
const char *scenario_run(const struct scenario *scenario, unsigned steps, struct choices *choices, bool tells);

#endif
