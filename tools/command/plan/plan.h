/* SPDX-License-Identifier: MIT */
/* plan.h: what the files of `hipmm plan` share. */
#ifndef HIPMM_TOOLS_COMMAND_PLAN_PLAN_H
#define HIPMM_TOOLS_COMMAND_PLAN_PLAN_H

#include "../cmd.h"
#include "savings.h"

struct plan {
  struct source source;
  uint64_t device_bytes;  /* of the device; 0: there is none so large */
  uint64_t process_bytes; /* that each process takes besides its stack */
  json_t *logs;           /* each is a process, with what it needs */
  uint64_t needs_bytes;   /* of all logs, one process each */
  char runtime[PATH_MAX]; /* of the replays */
};

/* ---- print.c --------------------------------------------------------------------------------------------------- */

/* What is to be shrunk in a log. */
json_t *plan_log_json(const char *file, const struct blocks *blocks, const struct savings *savings);

/* The whole answer, and the text that is made of it. */
json_t *plan_json(const struct plan *plan);
void plan_print(const json_t *plan);

#endif
