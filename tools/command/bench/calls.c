/* SPDX-License-Identifier: MIT */
/* calls.c: see calls.h. The counters are functions that the software runtime exports beside the HIP API
 * (plugins/runtimes/software/software.h); other runtimes have none. */
#include "calls.h"
#include "../../../core/runtime/hip.h"

#include <string.h>

static const char *(*calls_row)(size_t index, uint64_t *count_out);

bool bench_calls_find(void)
{
  void *address = hip_symbol("hipmm_software_call");
  memcpy(&calls_row, &address, sizeof address);
  return calls_row != NULL;
}

const char *bench_calls_name(size_t row)
{
  return calls_row && row < BENCH_CALLS_MOST ? calls_row(row, NULL) : NULL;
}

static void bench_calls_read(struct bench_calls *calls)
{
  for (size_t i = 0; calls_row && i < BENCH_CALLS_MOST; i++)
    if (!calls_row(i, &calls->counts[i])) return;
}

void bench_calls_start(struct bench_calls *calls)
{
  *calls = (struct bench_calls){0};
  bench_calls_read(calls);
}

void bench_calls_stop(struct bench_calls *calls)
{
  struct bench_calls now = {0};
  bench_calls_read(&now);
  for (size_t i = 0; i < BENCH_CALLS_MOST; i++) calls->counts[i] = now.counts[i] - calls->counts[i];
}

void bench_calls_add(struct bench_calls *calls, const struct bench_calls *more)
{
  for (size_t i = 0; i < BENCH_CALLS_MOST; i++) calls->counts[i] += more->counts[i];
}

uint64_t bench_calls_total(const struct bench_calls *calls)
{
  uint64_t total = 0;
  for (size_t i = 0; i < BENCH_CALLS_MOST; i++) total += calls->counts[i];
  return total;
}
