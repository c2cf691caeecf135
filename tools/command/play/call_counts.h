/* SPDX-License-Identifier: MIT */
/* call_counts.h: how often each function of the HIP API was called in a part of a run. Only the software runtime counts
 * its calls. */
#ifndef HIPMM_TOOLS_COMMAND_PLAY_CALL_COUNTS_H
#define HIPMM_TOOLS_COMMAND_PLAY_CALL_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CALL_COUNTS_MOST = 256 };

/* In the runtime's own order; zero beyond its last function. */
struct call_counts {
  uint64_t counts[CALL_COUNTS_MOST];
};

/* Finds the counters of the runtime in use. False: it has none, and all counts stay zero. */
bool call_counts_find(void);

/* The calls between start and stop. One thread calls each of them once, while the other threads wait. A profiler that
 * counts instructions can be told to count between these two functions. */
void call_counts_start(struct call_counts *calls);
void call_counts_stop(struct call_counts *calls);

void call_counts_add(struct call_counts *calls, const struct call_counts *more);

/* The name of the function in a row; NULL past the last. */
const char *call_counts_name(size_t row);

/* The sum of all counts. */
uint64_t call_counts_total(const struct call_counts *calls);

#endif
