/* SPDX-License-Identifier: MIT */
/* options.c: makes the plan of `hipmm bench` from the words of its command line, and prints what is wrong with them.
 * Never touches a device. */
#include "bench.h"

#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include <errno.h>
#include <string.h>

enum {
  OPTION_MOST_THREADS = 256,
  OPTION_MOST_STREAMS = 4096,
  OPTION_MOST_LIVE = 10 * 1000 * 1000,
  OPTION_WORD = 64,
};

#define OPTION_MOST_BYTES (UINT64_C(1) << 40)
#define OPTION_LEAST_NS   INT64_C(1000000)
#define OPTION_MOST_NS    (INT64_C(24) * 3600 * 1000000000)

const char *const bench_workloads[] = {[BENCH_PAIR] = "pair",       [BENCH_RANDOM] = "random", [BENCH_CROSS] = "cross",
                                       [BENCH_HANDOFF] = "handoff", [BENCH_REPLAY] = "replay", NULL};
const char *const bench_distributions[] = {
    [BENCH_LOGNORMAL] = "lognormal", [BENCH_UNIFORM] = "uniform", [BENCH_FIXED] = "fixed", NULL};

enum { OPTION_WORKLOADS = 5, OPTION_DISTRIBUTIONS = 3 };

const char *bench_workload_name(enum bench_workload workload)
{
  return bench_workloads[workload];
}

/* ---- Single values --------------------------------------------------------------------------------------------- */

static bool bench_options_choice(const char *name, const char *word, const char *const *choices, size_t n,
                                 size_t *choice_out)
{
  char list[OPTION_WORD] = "", quoted[TEXT_QUOTE_BYTES];
  for (size_t i = 0; i < n; i++) {
    if (strcmp(choices[i], word) == 0) {
      *choice_out = i;
      return true;
    }
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", choices[i]);
  }
  const char *near = text_nearest(word, choices, n);
  text_quote(word, quoted, sizeof quoted);
  if (near)
    say("bench: --%s %s is not known; did you mean \"%s\"?", name, quoted, near);
  else
    say("bench: --%s %s is not known; it is %s", name, quoted, list);
  return false;
}

/* "64k" is 64 KiB, as other benchmarks write it. */
static bool bench_options_parse_bytes(const char *word, uint64_t *bytes_out)
{
  char longer[OPTION_WORD];
  size_t length = strlen(word);
  bool is_short = length > 1 && length + sizeof "iB" <= sizeof longer && strchr("kmgtKMGT", word[length - 1]) &&
                  strchr("0123456789. ", word[length - 2]);
  if (!is_short) return units_parse_bytes(word, bytes_out);
  snprintf(longer, sizeof longer, "%siB", word);
  return units_parse_bytes(longer, bytes_out);
}

/* Leaves *bytes as it is if there is no word. */
static bool bench_options_bytes(const char *name, const char *word, uint64_t *bytes)
{
  uint64_t read;
  char quoted[TEXT_QUOTE_BYTES];
  if (!word) return true;
  if (bench_options_parse_bytes(word, &read) && read >= 1 && read <= OPTION_MOST_BYTES) {
    *bytes = read;
    return true;
  }
  say("bench: --%s %s is not a size from 1 byte to 1 TiB; write bytes, \"64k\", \"64KiB\" or \"1.5MB\"", name,
      text_quote(word, quoted, sizeof quoted));
  return false;
}

static bool bench_options_number(const struct arguments *arguments, const char *name, const char *word, long most,
                                 size_t *number)
{
  long read;
  if (!word) return true;
  if (!arguments_number(arguments, name, word, 1, most, &read)) return false;
  *number = (size_t)read;
  return true;
}

static bool bench_options_seconds(const char *word, int64_t *ns)
{
  char with_unit[OPTION_WORD], quoted[TEXT_QUOTE_BYTES];
  int64_t read;
  if (!word) return true;
  size_t length = strlen(word);
  bool is_bare = length > 0 && length + sizeof "s" <= sizeof with_unit && strspn(word, "0123456789.") == length;
  snprintf(with_unit, sizeof with_unit, "%ss", is_bare ? word : "");
  if (units_parse_duration(is_bare ? with_unit : word, &read) && read >= OPTION_LEAST_NS && read <= OPTION_MOST_NS) {
    *ns = read;
    return true;
  }
  say("bench: --seconds %s is not a time from 0.001 to 86400; write seconds or, with a unit, \"500ms\"",
      text_quote(word, quoted, sizeof quoted));
  return false;
}

/* ---- All together ---------------------------------------------------------------------------------------------- */

static void bench_options_set_defaults(struct bench_plan *plan)
{
  bool is_random = plan->workload == BENCH_RANDOM;
  plan->size_bytes = plan->workload == BENCH_CROSS ? 64 << 10 : 4096;
  plan->min_size_bytes = plan->distribution == BENCH_UNIFORM ? 1 : 256;
  plan->max_size_bytes = 64 << 20;
  plan->live = is_random ? 1000 : 1;
  plan->threads = plan->workload == BENCH_HANDOFF ? 2 : 1;
  plan->streams = plan->workload == BENCH_CROSS ? 4 : 1;
  plan->run_ns = 1000000000;
}

static bool bench_options_read_values(const struct arguments *arguments, const struct bench_words *words,
                                      struct bench_plan *plan)
{
  return bench_options_bytes("size", words->size, &plan->size_bytes) &&
         bench_options_bytes("min-size", words->min_size, &plan->min_size_bytes) &&
         bench_options_bytes("max-size", words->max_size, &plan->max_size_bytes) &&
         bench_options_number(arguments, "live", words->live, OPTION_MOST_LIVE, &plan->live) &&
         bench_options_number(arguments, "threads", words->threads, OPTION_MOST_THREADS, &plan->threads) &&
         bench_options_number(arguments, "streams", words->streams, OPTION_MOST_STREAMS, &plan->streams) &&
         bench_options_seconds(words->seconds, &plan->run_ns);
}

/* The one size is --size, or else the maximum, which every distribution has. */
static void bench_options_set_fixed_size(const struct bench_words *words, struct bench_plan *plan)
{
  if (plan->workload != BENCH_RANDOM || plan->distribution != BENCH_FIXED) return;
  if (!words->size) plan->size_bytes = plan->max_size_bytes;
}

/* Prints which options have no effect, and resets them. */
static void bench_options_reset_unused(const struct bench_words *words, struct bench_plan *plan)
{
  enum { PAIR = 1 << BENCH_PAIR, RANDOM = 1 << BENCH_RANDOM, CROSS = 1 << BENCH_CROSS, HANDOFF = 1 << BENCH_HANDOFF };
  const bool is_fixed = plan->distribution == BENCH_FIXED;
  const struct {
    const char *name, *word;
    int workloads;
  } rows[] = {{"size", words->size, PAIR | CROSS | HANDOFF | (is_fixed ? RANDOM : 0)},
              {"dist", words->distribution, RANDOM},
              {"min-size", words->min_size, is_fixed ? 0 : RANDOM},
              {"max-size", words->max_size, is_fixed && words->size ? 0 : RANDOM},
              {"live", words->live, RANDOM | CROSS},
              {"streams", words->streams, RANDOM | CROSS | HANDOFF},
              {"trace", words->trace, 1 << BENCH_REPLAY}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].word && !(rows[i].workloads & 1 << plan->workload))
      note("bench: note: --%s means nothing here to %s", rows[i].name, bench_workloads[plan->workload]);
  if (plan->workload == BENCH_PAIR) plan->streams = 1;
}

static bool bench_options_refuse(const char *message)
{
  say("bench: %s", message);
  return false;
}

static bool bench_options_fit(struct bench_plan *plan)
{
  switch (plan->workload) {
  case BENCH_RANDOM:
    return plan->min_size_bytes <= plan->max_size_bytes || bench_options_refuse("--min-size is larger than --max-size");
  case BENCH_HANDOFF:
    if (plan->threads % 2 != 0)
      return bench_options_refuse("--threads must be even for handoff: of each two, one allocates and one frees");
    return plan->streams <= 2 ||
           bench_options_refuse("--streams for handoff is 1 (both threads use it) or 2 (one each)");
  case BENCH_REPLAY:
    if (!plan->trace_file) return bench_options_refuse("--trace is missing: the log that replay plays");
    return plan->threads == 1 || bench_options_refuse("--threads must be 1 for replay: the events have one order");
  default: return true;
  }
}

static bool bench_options_configurations(const struct arguments *arguments, const struct bench_words *words,
                                         const struct bench_plan *plan)
{
  if (plan->compare && words->config)
    return bench_options_refuse("--compare takes its files without --config: --compare ONE.json TWO.json");
  if (plan->compare && arguments->n_operands == 0)
    return bench_options_refuse("--compare needs files: --compare FILE FILE…");
  if (plan->compare || arguments->n_operands == 0) return true;
  char quoted[TEXT_QUOTE_BYTES];
  say("bench: what is %s? A configuration goes with --config, several with --compare",
      text_quote(arguments->operands[0], quoted, sizeof quoted));
  return false;
}

bool bench_plan_make(const struct arguments *arguments, const struct bench_words *words, struct bench_plan *plan)
{
  size_t workload, distribution = BENCH_LOGNORMAL;
  if (!bench_options_configurations(arguments, words, plan)) return false;
  if (!words->workload)
    return bench_options_refuse("--workload is missing; it is pair, random, cross, handoff or replay");
  if (!bench_options_choice("workload", words->workload, bench_workloads, OPTION_WORKLOADS, &workload)) return false;
  if (words->distribution &&
      !bench_options_choice("dist", words->distribution, bench_distributions, OPTION_DISTRIBUTIONS, &distribution))
    return false;
  plan->workload = (enum bench_workload)workload;
  plan->distribution = (enum bench_distribution)distribution;
  plan->trace_file = words->trace;
  bench_options_set_defaults(plan);
  if (!bench_options_read_values(arguments, words, plan)) return false;
  bench_options_set_fixed_size(words, plan);
  if (!bench_options_fit(plan)) return false;
  bench_options_reset_unused(words, plan);
  return true;
}
