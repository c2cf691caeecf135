/* SPDX-License-Identifier: MIT */
/* call_counts.c: see call_counts.h. The counters are functions that the software runtime exports beside the HIP API
 * (plugins/runtimes/software/software.h); other runtimes have none. */
#include "call_counts.h"
#include "../../../core/runtime/hip.h"

#include <string.h>

static const char *(*calls_row)(size_t index, uint64_t *count_out);

bool call_counts_find(void)
{
  void *address = hip_symbol("hipmm_software_call");
  memcpy(&calls_row, &address, sizeof address);
  return calls_row != NULL;
}

const char *call_counts_name(size_t row)
{
  return calls_row && row < CALL_COUNTS_MOST ? calls_row(row, NULL) : NULL;
}

static void call_counts_read(struct call_counts *calls)
{
  for (size_t i = 0; calls_row && i < CALL_COUNTS_MOST; i++)
    if (!calls_row(i, &calls->counts[i])) return;
}

void call_counts_start(struct call_counts *calls)
{
  *calls = (struct call_counts){0};
  call_counts_read(calls);
}

void call_counts_stop(struct call_counts *calls)
{
  struct call_counts now = {0};
  call_counts_read(&now);
  for (size_t i = 0; i < CALL_COUNTS_MOST; i++) calls->counts[i] = now.counts[i] - calls->counts[i];
}

void call_counts_add(struct call_counts *calls, const struct call_counts *more)
{
  for (size_t i = 0; i < CALL_COUNTS_MOST; i++) calls->counts[i] += more->counts[i];
}

uint64_t call_counts_total(const struct call_counts *calls)
{
  uint64_t total = 0;
  for (size_t i = 0; i < CALL_COUNTS_MOST; i++) total += calls->counts[i];
  return total;
}
