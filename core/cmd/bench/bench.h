/* SPDX-License-Identifier: MIT */
/* bench.h: what the files of `hipmm bench` share: the plan, which the command line gives; the result of one
 * configuration; and who turns the one into the other. */
#ifndef HIPMM_CORE_CMD_BENCH_BENCH_H
#define HIPMM_CORE_CMD_BENCH_BENCH_H

#include "../cmd.h"
#include "../trace/trace.h"
#include "calls.h"
#include "times.h"

/* Steps between two readings of the clock; batches before the measured part; and every how many one is sampled. */
enum { BENCH_BATCH = 256, BENCH_WARM_BATCHES = 79, BENCH_SAMPLED = 16 };

/* Rounds of a comparison. */
enum { BENCH_ROUNDS = 5 };

enum { BENCH_DEVICE = 0 };

enum bench_workload { BENCH_PAIR, BENCH_RANDOM, BENCH_CROSS, BENCH_HANDOFF, BENCH_REPLAY };

enum bench_distribution { BENCH_LOGNORMAL, BENCH_UNIFORM, BENCH_FIXED };

struct bench_plan {
  enum bench_workload workload;
  enum bench_distribution distribution;
  uint64_t size_bytes, min_size_bytes, max_size_bytes;
  size_t live, threads, streams;
  int64_t run_ns; /* of one configuration, over all rounds */
  struct trace trace;
  const char *trace_file;
  bool compare, json;
};

/* What came of one configuration; in a comparison, of all its rounds. */
struct bench_result {
  uint64_t ops;
  double ns_per_op;      /* in a comparison the median of the rounds */
  double cold_ns_per_op; /* of replay's first pass; otherwise 0 */
  double round_ns[BENCH_ROUNDS], round_cold_ns[BENCH_ROUNDS];
  size_t rounds;
  struct bench_times times;
  uint64_t peak_requested_bytes, peak_reserved_bytes, failures;
  char *failure_reason; /* of the first failure; to be freed */
  bool calls_are_known;
  struct bench_calls calls, cold_calls;
};

/* ---- bench_options.c ------------------------------------------------------------------------------------------- */

const char *bench_workload_name(enum bench_workload workload);

/* The words of the command line, as they were given; NULL: not given. */
struct bench_words {
  const char *config, *workload, *size, *distribution, *min_size, *max_size, *live, *threads, *streams, *seconds,
      *trace;
};

/* Makes the plan of the words, all but the trace itself. On false it is said what was wrong. */
bool bench_plan_make(const struct arguments *arguments, const struct bench_words *words, struct bench_plan *plan);

/* ---- bench_run.c ----------------------------------------------------------------------------------------------- */

/* Initialises hipmm with the graph, plays the workload for `run_ns` and finalises. Adds what came of it to *result,
 * which is all zero before the first round. On false it is said why there is no result. */
bool bench_run(const struct bench_plan *plan, const struct source *source, int64_t run_ns, struct bench_result *result);

/* Nanoseconds of the monotonic clock. */
int64_t bench_now_ns(void);

/* What one round gave, before it is added to the result. */
struct bench_round {
  uint64_t ops, failures, peak_requested_bytes;
  double ns_per_op, cold_ns_per_op;
  char *failure_reason;
  struct bench_times *times;
  struct bench_calls calls, cold_calls;
};

/* Counts a failed call of the calling thread, and keeps the reason of the first. */
void bench_note_failure(uint64_t *failures, char **reason);

/* bench_threads.c: all workloads but replay. bench_replay.c: replay. False: said why. */
bool bench_threads_play(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                        struct bench_round *round);
bool bench_replay_play(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                       struct bench_round *round);

/* ---- bench_print.c --------------------------------------------------------------------------------------------- */

int bench_print(const struct bench_plan *plan, const struct source *source, const struct bench_result *result,
                int status);
int bench_print_comparison(const struct bench_plan *plan, char *const *files, size_t n,
                           const struct bench_result *results, int status);

#endif
