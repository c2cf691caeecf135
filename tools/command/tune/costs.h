/* SPDX-License-Identifier: MIT */
/* costs.h: what the calls of a driver cost the host, for a model of time: the software device counts calls, and each costs
 * what a driver was measured to take. */
#ifndef HIPMM_TOOLS_COMMAND_TUNE_COSTS_H
#define HIPMM_TOOLS_COMMAND_TUNE_COSTS_H

#include "../play/call_counts.h"
#include <jansson.h>

enum { COSTS_ROWS = 22 };

struct cost {
  const char *function; /* of HIP; "other": all that have no row */
  double ns;            /* a call */
};

struct costs {
  struct cost rows[COSTS_ROWS];
};

/* The measured costs; then those of the file, a JSON object as costs_json() makes it, if it is not NULL. False: the error was
 * printed. */
bool costs_read(struct costs *costs, const char *file);

/* An object with a key for each function. */
json_t *costs_json(const struct costs *costs);

/* Nanoseconds of so many calls. */
double costs_sum(const struct costs *costs, const struct call_counts *calls);

#endif
