/* SPDX-License-Identifier: MIT */
/* result.c: the result of a configuration: failures counted, and rounds added up. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

void bench_count_failure(uint64_t *failures, char **reason)
{
  if (*failures == 0) *reason = strdup(hipmm_last_error_message());
  ++*failures;
}

static int bench_result_compare(const void *a, const void *b)
{
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static double bench_result_median(const double *numbers, size_t n)
{
  double sorted[BENCH_ROUNDS];
  memcpy(sorted, numbers, n * sizeof *numbers);
  qsort(sorted, n, sizeof *sorted, bench_result_compare);
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

void bench_result_add(struct bench_result *result, struct bench_round *round, size_t peak_reserved_bytes)
{
  result->round_ns[result->rounds] = round->ns_per_op;
  result->round_cold_ns[result->rounds++] = round->cold_ns_per_op;
  result->ns_per_op = bench_result_median(result->round_ns, result->rounds);
  result->cold_ns_per_op = bench_result_median(result->round_cold_ns, result->rounds);
  result->ops += round->ops;
  result->failures += round->failures;
  if (round->peak_requested_bytes > result->peak_requested_bytes)
    result->peak_requested_bytes = round->peak_requested_bytes;
  if (peak_reserved_bytes > result->peak_reserved_bytes) result->peak_reserved_bytes = peak_reserved_bytes;
  bench_times_merge(&result->times, round->times);
  call_counts_add(&result->calls, &round->calls);
  call_counts_add(&result->cold_calls, &round->cold_calls);
  if (result->failure_reason) return;
  result->failure_reason = round->failure_reason;
  round->failure_reason = NULL;
}

void bench_result_clear(struct bench_result *result)
{
  free(result->failure_reason);
}
