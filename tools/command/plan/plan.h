/* SPDX-License-Identifier: MIT */
/* plan.h: what the files of `hipmm plan` share. */
#ifndef HIPMM_TOOLS_COMMAND_PLAN_PLAN_H
#define HIPMM_TOOLS_COMMAND_PLAN_PLAN_H

#include "../cmd.h"
#include "savings.h"

/* One process: a log, and what it needs. */
struct plan_log {
  const char *file; /* as output names it */
  struct blocks blocks;
  struct savings savings;
  uint64_t peak_requested_bytes;
  uint64_t needs_bytes; /* the least budget of the stack, and what the process takes besides */
  uint64_t copies;      /* so many such processes fit on the device */
};

struct plan {
  struct source source;
  uint64_t device_bytes;  /* of the device; 0: there is none so large */
  uint64_t process_bytes; /* that each process takes besides its stack */
  struct plan_log *logs;
  size_t n_logs;
  uint64_t needs_bytes;   /* of all logs, one process each */
  char runtime[PATH_MAX]; /* of the replays */
};

static inline bool plan_fits(const struct plan *plan)
{
  return plan->device_bytes >= plan->needs_bytes;
}

/* ---- print.c --------------------------------------------------------------------------------------------------- */

/* Both return the exit status. */
int plan_print(const struct plan *plan, int status);
int plan_print_json(const struct plan *plan, int status);

#endif
