/* SPDX-License-Identifier: MIT */
/* run.c: one round of one configuration, from hipmm_init to hipmm_finalize, and its place in the result. A
 * process can use one configuration after the other, so that rounds of several interleave. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t bench_now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void bench_note_failure(uint64_t *failures, char **reason)
{
  if (*failures == 0) *reason = strdup(hipmm_last_error_message());
  ++*failures;
}

static int bench_run_compare_numbers(const void *a, const void *b)
{
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static double bench_run_median(const double *numbers, size_t n)
{
  double sorted[BENCH_ROUNDS];
  memcpy(sorted, numbers, n * sizeof *numbers);
  qsort(sorted, n, sizeof *sorted, bench_run_compare_numbers);
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static void bench_run_add(struct bench_result *result, struct bench_round *round, size_t peak_reserved_bytes)
{
  result->round_ns[result->rounds] = round->ns_per_op;
  result->round_cold_ns[result->rounds++] = round->cold_ns_per_op;
  result->ns_per_op = bench_run_median(result->round_ns, result->rounds);
  result->cold_ns_per_op = bench_run_median(result->round_cold_ns, result->rounds);
  result->ops += round->ops;
  result->failures += round->failures;
  if (round->peak_requested_bytes > result->peak_requested_bytes)
    result->peak_requested_bytes = round->peak_requested_bytes;
  if (peak_reserved_bytes > result->peak_reserved_bytes) result->peak_reserved_bytes = peak_reserved_bytes;
  bench_times_merge(&result->times, round->times);
  bench_calls_add(&result->calls, &round->calls);
  bench_calls_add(&result->cold_calls, &round->cold_calls);
  if (result->failure_reason) return;
  result->failure_reason = round->failure_reason;
  round->failure_reason = NULL;
}

static bool bench_run_fail(void)
{
  say("bench: %s", hipmm_last_error_message());
  return false;
}

static bool bench_run_on(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                         struct bench_round *round)
{
  return plan->workload == BENCH_REPLAY ? bench_replay_play(plan, resource, run_ns, round)
                                        : bench_threads_play(plan, resource, run_ns, round);
}

static bool bench_run_round(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                            struct bench_result *result)
{
  struct bench_times times = {0};
  struct bench_round round = {.times = &times};
  size_t held_bytes, peak_bytes;
  bool good = bench_run_on(plan, resource, run_ns, &round);
  if (good && hipmm_device_held_bytes(BENCH_DEVICE, &held_bytes, &peak_bytes) != HIPMM_OK) good = bench_run_fail();
  if (good) bench_run_add(result, &round, peak_bytes);
  free(round.failure_reason);
  return good;
}

bool bench_run(const struct bench_plan *plan, const struct source *source, int64_t run_ns, struct bench_result *result)
{
  struct hipmm_resource *resource;
  if (source_initialise(source) != HIPMM_OK) return bench_run_fail();
  result->calls_are_known = bench_calls_find();
  bool good = false;
  if (hipmm_get_device_resource(BENCH_DEVICE, &resource) == HIPMM_OK) {
    good = bench_run_round(plan, resource, run_ns, result);
    hipmm_resource_release(resource);
  } else {
    bench_run_fail();
  }
  hipmm_finalize();
  return good;
}
