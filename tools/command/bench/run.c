/* SPDX-License-Identifier: MIT */
/* run.c: one round of one configuration, from hipmm_init() to hipmm_finalize(). A process can use several
 * configurations in turn, so the rounds of a comparison alternate. */
#include "../inputs.h"
#include "bench.h"

#include <stdlib.h>

static bool bench_run_fail(void)
{
  say("bench: %s", hipmm_last_error_message());
  return false;
}

static bool bench_run_round(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                            struct bench_result *result)
{
  struct bench_times times = {0};
  struct bench_round round = {.times = &times};
  size_t held_bytes, peak_bytes;
  bool good = plan->workload == BENCH_REPLAY ? bench_replay_play(plan, resource, run_ns, &round)
                                             : bench_threads_play(plan, resource, run_ns, &round);
  if (good && hipmm_device_held_bytes(BENCH_DEVICE, &held_bytes, &peak_bytes) != HIPMM_OK) good = bench_run_fail();
  if (good) bench_result_add(result, &round, peak_bytes);
  free(round.failure_reason);
  return good;
}

bool bench_run(const struct bench_plan *plan, const struct source *source, int64_t run_ns, struct bench_result *result)
{
  struct hipmm_resource *resource;
  char *log = (char *)plan->trace_file;
  const struct inputs inputs = {"bench", &log, log ? 1 : 0};
  if (!inputs_check_graph(&inputs, source, BENCH_DEVICE)) return false;
  if (source_initialise(source) != HIPMM_OK) return bench_run_fail();
  result->calls_are_known = call_counts_find();
  bool good = false;
  if (hipmm_resource_get_for_device(BENCH_DEVICE, &resource) == HIPMM_OK) {
    good = bench_run_round(plan, resource, run_ns, result);
    hipmm_resource_release(resource);
  } else {
    bench_run_fail();
  }
  hipmm_finalize();
  return good;
}
