/* SPDX-License-Identifier: MIT */
/* calls.h: how often each function of the HIP API was called in a part of a run. Only the software runtime counts
 * its calls. */
#ifndef HIPMM_TOOLS_COMMAND_BENCH_CALLS_H
#define HIPMM_TOOLS_COMMAND_BENCH_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_CALLS_MOST = 256 };

/* In the runtime's own order; zero beyond its last function. */
struct bench_calls {
  uint64_t counts[BENCH_CALLS_MOST];
};

/* Finds the counters of the runtime in use. False: it has none, and all counts stay zero. */
bool bench_calls_find(void);

/* The calls between start and stop. One thread calls each of them once, while the other threads wait. A profiler that
 * counts instructions can be told to count between these two functions. */
void bench_calls_start(struct bench_calls *calls);
void bench_calls_stop(struct bench_calls *calls);

void bench_calls_add(struct bench_calls *calls, const struct bench_calls *more);

/* The name of the function in a row; NULL past the last. */
const char *bench_calls_name(size_t row);

/* The sum of all counts. */
uint64_t bench_calls_total(const struct bench_calls *calls);

#endif
