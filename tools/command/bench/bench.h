/* SPDX-License-Identifier: MIT */
/* bench.h: what the files of `hipmm bench` share: the plan, made from the command line; the result of a configuration;
 * and the functions that turn a plan into a result. */
#ifndef HIPMM_TOOLS_COMMAND_BENCH_BENCH_H
#define HIPMM_TOOLS_COMMAND_BENCH_BENCH_H

#include "../cmd.h"
#include "../play/call_counts.h"
#include "../trace/trace.h"
#include "times.h"

/* Steps between two readings of the clock; batches before the measured part; one batch in so many is sampled. */
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

/* The result of one configuration; in a comparison, of all its rounds. */
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
  struct call_counts calls, cold_calls;
};

/* ---- options.c ------------------------------------------------------------------------------------------------- */

/* By number, ended by NULL. */
extern const char *const bench_workloads[], *const bench_distributions[];
const char *bench_workload_name(enum bench_workload workload);

/* The words of the command line, as they were given; NULL: not given. */
struct bench_words {
  const char *config, *workload, *size, *distribution, *min_size, *max_size, *live, *threads, *streams, *seconds,
      *trace;
};

/* Makes the plan from the words, without reading the trace. False: the error was printed. */
bool bench_plan_make(const struct arguments *arguments, const struct bench_words *words, struct bench_plan *plan);

/* ---- run.c ----------------------------------------------------------------------------------------------------- */

/* Initialises hipmm with the graph, plays the workload for `run_ns` and finalises. Adds the round to *result, which is
 * all zero before the first round. False: the reason was printed. */
bool bench_run(const struct bench_plan *plan, const struct source *source, int64_t run_ns, struct bench_result *result);

/* ---- result.c -------------------------------------------------------------------------------------------------- */

/* One round, before it is added to the result. */
struct bench_round {
  uint64_t ops, failures, peak_requested_bytes;
  double ns_per_op, cold_ns_per_op;
  char *failure_reason;
  struct bench_times *times;
  struct call_counts calls, cold_calls;
};

/* Counts a failed call of the calling thread, and keeps the reason of the first. */
void bench_count_failure(uint64_t *failures, char **reason);

/* Takes over the round's failure_reason if it is the first. */
void bench_result_add(struct bench_result *result, struct bench_round *round, size_t peak_reserved_bytes);
void bench_result_clear(struct bench_result *result);

/* ---- threads.c and replay_workload.c ---------------------------------------------------------------------------- */

/* Plays a workload other than replay; plays replay. False: the reason was printed. */
bool bench_threads_play(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                        struct bench_round *round);
bool bench_replay_play(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                       struct bench_round *round);

/* ---- print.c --------------------------------------------------------------------------------------------------- */

int bench_print(const struct bench_plan *plan, const struct source *source, const struct bench_result *result,
                int status);
int bench_print_comparison(const struct bench_plan *plan, char *const *files, size_t n,
                           const struct bench_result *results, int status);

#endif
