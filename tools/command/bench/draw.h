/* SPDX-License-Identifier: MIT */
/* draw.h: the random steps of the workload `random`, drawn before the measured part. The same plan and thread give the
 * same steps on every machine. */
#ifndef HIPMM_TOOLS_COMMAND_BENCH_DRAW_H
#define HIPMM_TOOLS_COMMAND_BENCH_DRAW_H

#include "bench.h"

/* Number of steps, which are then repeated. A power of two. */
enum { BENCH_STEPS = 1 << 18 };

struct bench_step {
  uint64_t bytes;
  uint32_t pick;         /* of the live blocks, as a share of 2^32 */
  uint32_t allocate : 1; /* else free */
  uint32_t stream : 31;  /* of the thread's */
};

void bench_draw(const struct bench_plan *plan, size_t thread, struct bench_step *steps);

#endif
