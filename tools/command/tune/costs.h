/* SPDX-License-Identifier: MIT */
/* costs.h: the costs of a driver's calls for the host, for a model of time: the software device counts calls, and each
 * has its measured cost. */
#ifndef HIPMM_TOOLS_COMMAND_TUNE_COSTS_H
#define HIPMM_TOOLS_COMMAND_TUNE_COSTS_H

#include "../bench/calls.h"
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
double costs_sum(const struct costs *costs, const struct bench_calls *calls);

#endif
