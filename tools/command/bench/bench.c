/* SPDX-License-Identifier: MIT */
/* bench.c: `hipmm bench`: measures time and memory of allocations under the workloads that are used to compare
 * allocators. options.c reads the command line, run.c plays a round, print.c prints. */
#include "bench.h"
#include "../trace/logs.h"

#include <stdlib.h>

enum { BENCH_MOST_FILES = 64 };

static int bench_status(const struct bench_result *results, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (results[i].failures > 0) return CMD_BAD;
  return CMD_GOOD;
}

static int bench_single(const struct bench_plan *plan, const char *config)
{
  struct source source;
  struct bench_result *result = calloc(1, sizeof *result);
  if (!result) {
    say("bench: out of memory");
    return CMD_BAD;
  }
  source_choose(&source, config);
  int status = CMD_BAD;
  if (bench_run(plan, &source, plan->run_ns, result))
    status = bench_print(plan, &source, result, bench_status(result, 1));
  bench_result_clear(result);
  free(result);
  return status;
}

/* Each round plays every file and begins with another one, so that a slow drift of the machine affects all alike. */
static bool bench_rounds(const struct bench_plan *plan, char *const *files, size_t n, struct bench_result *results)
{
  struct progress progress;
  bool good = true;
  progress_start(&progress, "comparing");
  for (size_t i = 0; good && i < BENCH_ROUNDS * n; i++) {
    size_t round = i / n, which = (i + round) % n;
    const struct source source = {.file = files[which]};
    progress_show(&progress, i, BENCH_ROUNDS * n);
    good = bench_run(plan, &source, plan->run_ns / BENCH_ROUNDS, &results[which]);
    if (!good) say("bench: %s gives no result, so there is no comparison", files[which]);
  }
  progress_end(&progress);
  return good;
}

static int bench_several(const struct bench_plan *plan, const struct arguments *arguments)
{
  char *const *files = arguments->operands;
  const size_t n = arguments->n_operands;
  struct bench_result *results = calloc(n, sizeof *results);
  if (!results) {
    say("bench: out of memory");
    return CMD_BAD;
  }
  int status = CMD_BAD;
  if (bench_rounds(plan, files, n, results))
    status = bench_print_comparison(plan, files, n, results, bench_status(results, n));
  for (size_t i = 0; i < n; i++) bench_result_clear(&results[i]);
  free(results);
  return status;
}

static bool bench_read_trace(struct bench_plan *plan)
{
  if (plan->workload != BENCH_REPLAY) return true;
  const struct trace_choice choice = {.command = "bench", .through = "`hipmm convert` and "};
  if (!trace_load(plan->trace_file, &choice, &plan->trace)) return false;
  if (plan->trace.n_events > 0) return true;
  say("%s: nothing to replay: the log has no event", plan->trace_file);
  trace_clear(&plan->trace);
  return false;
}

static int bench_run_command(int argc, char **argv)
{
  struct bench_words words = {0};
  struct bench_plan plan = {0};
  int status;
  const struct argument rows[] = {
      {"workload", "NAME", "pair, random, cross, handoff or replay", .value = &words.workload, .is_required = true,
       .choices = bench_workloads},
      CONFIG_ARGUMENT(&words.config),
      {"compare", NULL, "compare the given files, played in turns in five rounds", .flag = &plan.compare},
      {"size", "BYTES", "of a block: \"4096\", \"64k\", \"64KiB\"; 4 KiB by default, 64 KiB for cross",
       .value = &words.size},
      {"dist", "NAME", "sizes of random: lognormal (default), uniform or fixed", .value = &words.distribution,
       .choices = bench_distributions},
      {"min-size", "BYTES", "the smallest of random: 256 by default, 1 for uniform", .value = &words.min_size},
      {"max-size", "BYTES", "the largest of random: 64 MiB by default", .value = &words.max_size},
      {"live", "N", "random: the most blocks at once, 1000 by default; cross: blocks of a turn, 1",
       .value = &words.live},
      {"threads", "N", "1 by default; 2 for handoff", .value = &words.threads},
      {"streams", "N", "cross, random: of each thread, 4 and 1 by default; handoff: of each two threads, 1 or 2",
       .value = &words.streams},
      {"seconds", "TIME", "of the measured part, in a comparison over all rounds; 1 by default",
       .value = &words.seconds},
      {"trace", "FILE", "the allocation log for replay; \"-\" is standard input", .value = &words.trace},
      {"json", NULL, "print one JSON object", .flag = &plan.json},
  };
  struct arguments arguments = {&bench_command, rows, sizeof rows / sizeof *rows, 0, BENCH_MOST_FILES, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (!bench_plan_make(&arguments, &words, &plan)) return CMD_USAGE;
  if (!bench_read_trace(&plan)) return CMD_BAD;
  status = plan.compare ? bench_several(&plan, &arguments) : bench_single(&plan, words.config);
  trace_clear(&plan.trace);
  return status;
}

const struct command bench_command = {
    "bench", "measure what allocations cost and hold", "[FILE]…",
    "Plays a workload through the stack of device 0. Prints the time of an operation (an allocation or a free; the "
    "sum of all threads' times divided by the number of operations), the most memory requested at once, and the "
    "memory that the stack took from the runtime.\n"
    "\n"
    "pair: each block is freed right after its allocation; one stream for each thread.\n"
    "random: allocations and frees in equal numbers, in random order and of random sizes; each block is freed on its "
    "own stream.\n"
    "cross: blocks are allocated and freed on one stream, the next ones on the next stream, in turns.\n"
    "handoff: one thread allocates and another frees, in batches; the time of waiting does not count.\n"
    "replay: the events of an allocation log in order; the first pass is the cold one, only later passes count.\n"
    "\n"
    "p50, p99 and max come from operations that are timed one by one and do not count for the mean. The software "
    "runtime counts calls of the HIP API too. The JSON object has workload, threads, ops, ns_per_op, p50_ns, p99_ns, "
    "max_ns, peak_requested_bytes (the sum over all threads, read between batches), peak_reserved_bytes, failures "
    "and runtime_calls (the calls of the measured part, by name; null if nothing counts them). The object of replay "
    "adds ns_per_op_cold and runtime_calls_cold. With --compare the object has workload, threads, rounds and "
    "configurations: an array of such objects with config and ratio, whose ns_per_op is the median of the rounds.\n"
    "\n"
    "Exit status 1 if an allocation or a free failed.",
    bench_run_command};
