/* SPDX-License-Identifier: MIT */
/* tune.c: `hipmm tune`: searches the graph that serves the programs of some logs best. space.c has the graphs, search.c tries
 * them, choose.c takes the best, print.c shows it. */
#include "tune.h"
#include "../../../core/base/units.h"
#include "../array.h"
#include "../inputs.h"
#include "../trace/logs.h"

#include <stdlib.h>
#include <string.h>

enum { TUNE_MOST_SECONDS = 86400, TUNE_MOST_PASSES = 1000 };

struct tune_options {
  const char *goal, *output, *costs;
  bool is_quick, is_exhaustive, lists_costs, as_json;
  long seconds, passes;
  struct trace_choice choice;
};

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* Adds the programs of a log: each process, and each device, has a stack of its own. */
static bool tune_read_log(struct tune *tune, const char *file, const struct trace_choice *choice)
{
  struct traces traces;
  if (!trace_load_each(file, choice, &traces)) return false;
  bool good = true;
  for (size_t i = 0; good && i < traces.n; i++) {
    if (!traces.items[i].allocations) {
      say("tune: %s: the log has no allocations", file);
      good = false;
    } else if (!array_grow(&tune->traces, tune->n_traces, &tune->capacity, sizeof *tune->traces)) {
      say("tune: out of memory");
      good = false;
    } else {
      tune->traces[tune->n_traces++] = traces.items[i];
      traces.items[i] = (struct trace){0};
    }
  }
  traces_clear(&traces);
  return good;
}

static bool tune_read(struct tune *tune, const struct arguments *arguments, const struct trace_choice *choice)
{
  for (size_t i = 0; i < arguments->n_operands; i++)
    if (!tune_read_log(tune, arguments->operands[i], choice)) return false;
  return true;
}

static void tune_clear(struct tune *tune)
{
  search_clear(&tune->search);
  for (size_t i = 0; i < tune->n_traces; i++) trace_clear(&tune->traces[i]);
  free(tune->traces);
  json_decref(tune->reasons);
}

/* ---- The search ------------------------------------------------------------------------------------------------ */

/* Streams of the stepped scheduler are as late in every run. Without --device-memory, the device is no limit. */
static void tune_choose_runtime(const struct tune *tune)
{
  char settings[64];
  snprintf(settings, sizeof settings, "memory=%llu,scheduler=stepped",
           tune->device_bytes ? (unsigned long long)tune->device_bytes : 1ull << 40);
  setenv("HIPMM_RUNTIME", "software", 1);
  setenv("HIPMM_SOFTWARE", settings, 1);
}

/* Why there is nothing to compare with. */
static void tune_say_default_fails(const struct tune *tune)
{
  char where[128] = "";
  const struct point *stack = tune->search.points;
  if (tune->device_bytes) snprintf(where, sizeof where, " on a device of %s", UNITS_BYTES(tune->device_bytes));
  if (stack->line)
    say("tune: the log does not run through the default stack%s: line %u: %s", where, stack->line, stack->reason);
  else
    say("tune: the default stack cannot be built%s: %s", where, stack->reason);
  if (tune->device_bytes) say("tune: `hipmm plan` says what the program needs, and what to shrink");
}

/* False: the error was printed. */
static bool tune_search(struct tune *tune, const struct tune_options *options)
{
  struct search *search = &tune->search;
  *search = (struct search){.traces = tune->traces,
                            .n_traces = tune->n_traces,
                            .space = &tune->space,
                            .costs = &tune->costs,
                            .passes = options->passes};
  bool good = space_make(&tune->space, tune->traces, tune->n_traces, options->is_quick);
  if (tune->device_bytes) space_limit(&tune->space, tune->device_bytes);
  search_open(search, options->seconds);
  good = good && (options->is_exhaustive ? search_run_all(search) : search_run(search));
  bool runs = good && search->points->is_good; /* the default stack */
  good = good && (!runs || (tune_choose(tune) && tune_explain(tune)));
  search_close(search);
  if (!good)
    say("tune: out of memory");
  else if (!runs)
    tune_say_default_fails(tune);
  return good && runs;
}

/* ---- Output ---------------------------------------------------------------------------------------------------- */

static bool tune_write(const struct tune *tune, const char *name)
{
  json_t *graph = space_graph(&tune->space, tune->search.points[tune->winner].choice);
  char *text = graph ? json_dumps(graph, JSON_INDENT(2)) : NULL;
  FILE *file = text ? output_open_result(name) : NULL;
  bool good = text && output_close_result("tune", name, file, file && fprintf(file, "%s\n", text) > 0);
  if (!text) say("tune: out of memory");
  free(text);
  json_decref(graph);
  return good;
}

static int tune_make(struct tune *tune, const struct arguments *arguments, const struct tune_options *options)
{
  if (!tune_read(tune, arguments, &options->choice)) return CMD_BAD;
  tune_choose_runtime(tune);
  if (!tune_search(tune, options)) return CMD_BAD;
  int status = options->output && !tune_write(tune, options->output) ? CMD_BAD : CMD_GOOD;
  json_t *result = tune_json(tune);
  if (options->as_json || !result) return output_json(result, status);
  if (!options->output || strcmp(options->output, "-")) tune_print(result);
  json_decref(result);
  return output_finish(status);
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

static const char *const tune_goals[] = {[GOAL_BOTH] = "both", [GOAL_MEMORY] = "memory", [GOAL_SPEED] = "speed", NULL};

static bool tune_read_goal(const char *word, enum goal *goal_out)
{
  for (size_t i = 0; tune_goals[i]; i++) {
    *goal_out = (enum goal)i;
    if (strcmp(tune_goals[i], word) == 0) return true;
  }
  say("tune: --goal \"%s\" is none of memory, speed and both", word);
  return false;
}

/* Nothing that the command writes is one of its inputs. False: the error was printed. */
static bool tune_check_output(const struct arguments *arguments, const struct tune_options *options)
{
  char *costs = (char *)options->costs;
  const struct inputs logs = {"tune", arguments->operands, arguments->n_operands},
                      prices = {"tune", &costs, costs != NULL};
  if (!inputs_check_log(&logs)) return false;
  if (!options->output) return true;
  if (!output_check_result("tune", options->output, options->as_json ? "--json" : NULL)) return false;
  const char *name = strcmp(options->output, "-") ? options->output : NULL;
  return inputs_check_output(&logs, name) && inputs_check_output(&prices, name);
}

static int tune_with(struct tune *tune, const struct arguments *arguments, struct tune_options *options)
{
  if (!tune_read_goal(options->goal, &tune->goal) || !trace_choice_read(&options->choice)) return CMD_USAGE;
  if (!tune_check_output(arguments, options)) return CMD_USAGE;
  if (!costs_read(&tune->costs, options->costs)) return CMD_BAD;
  if (options->lists_costs) return output_json(costs_json(&tune->costs), CMD_GOOD);
  if (arguments->n_operands) return tune_make(tune, arguments, options);
  say("tune: LOG… is missing; usage: hipmm tune [OPTION]… LOG…");
  return CMD_USAGE;
}

static int tune_run(int argc, char **argv)
{
  struct tune tune = {.goal = GOAL_BOTH};
  struct tune_options options = {.goal = "both", .seconds = 60, .passes = 1, .choice.command = "tune"};
  int status;
  const struct argument rows[] = {
      {"goal", "GOAL",
       "memory: the least memory; speed: the least time; both, the default: the least time with at most 2 % more "
       "memory than the default stack",
       .value = &options.goal, .choices = tune_goals},
      {"output", "FILE", "write the graph; - is standard output, in place of the table", .letter = 'o',
       .value = &options.output},
      {"device-memory", "SIZE",
       "the device memory that a program's stack can have, such as 16GiB: a graph with which a log does not run "
       "in it cannot win; by default any",
       .bytes = &tune.device_bytes, .least = 1, .most = INT64_MAX},
      {"seconds", "N", "search for so long at most; 60 by default", .number = &options.seconds, .least = 1,
       .most = TUNE_MOST_SECONDS},
      {"repeat", "N", "play the logs N times on the same stack, as for a program that repeats itself; 1 by default",
       .number = &options.passes, .least = 1, .most = TUNE_MOST_PASSES},
      {"quick", NULL, "choose among fewer sizes and bins", .flag = &options.is_quick},
      {"exhaustive", NULL, "try all graphs, not only the promising ones", .flag = &options.is_exhaustive},
      {"costs", "FILE", "what calls of the driver cost, in the form of --list-costs; those that the file lacks stay",
       .value = &options.costs},
      {"list-costs", NULL, "print the nanoseconds that each call costs, and end", .flag = &options.lists_costs},
      TRACE_CHOICE_ARGUMENTS(options.choice, "", TRACE_CHOICE_OF_EACH),
      {"json", NULL, "print one JSON object", .flag = &options.as_json},
  };
  struct arguments arguments = {&tune_command, rows, sizeof rows / sizeof *rows, 0, TRACE_MOST_LOGS, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  status = tune_with(&tune, &arguments, &options);
  tune_clear(&tune);
  return status;
}

const struct command tune_command = {
    "tune", "search the graph that serves a program best", "LOG…",
    "Searches the graph that serves the programs of some allocation logs best. It plays the logs through many graphs "
    "on the software device: pools with mapped memory or with segments, arenas, bins for the sizes in the logs, "
    "amounts that are allocated at once, and maxima. Prints the graphs that need least memory for their time, the "
    "best of them for the goal, and a sentence for each choice. One graph serves all logs, each of which is a "
    "process.\n"
    "\n"
    "With --device-memory the logs are played on a device of that size, on which a stack that is short of memory "
    "gives back its idle memory. So the winner never needs more, for any goal. Memory of the driver and of the "
    "program's code is not in the logs: leave it out of SIZE. Without the option, the last line names the smallest "
    "card on which the winner fits.\n"
    "\n"
    "Memory is the most that the stack holds, in the log in which that is highest. Time is the time for which the "
    "host waits for the driver: the stack's calls, each at its cost as measured on an H200 (--list-costs; --costs "
    "for other machines). Both are the same in every run. The host's own time is measured only for the default stack "
    "and for the best graph, which must not be slower. Streams run as late as they may, so a block that one stream "
    "freed is ready for another stream only after a wait.\n"
    "\n"
    "The search begins at the default stack, { \"stack\": [\"pool\", \"device\"] }. It tries the graphs that differ "
    "in one choice from the best graphs so far, until none of them is better. It does not try `async`, since the "
    "model does not know the driver's pool. The graph's maximum is enough for these logs; a run that needs more "
    "would fail.\n"
    "\n"
    "LOG: in any format that `hipmm convert` reads; `-` is standard input. Of a log with the memory of several "
    "processes or "
    "devices, each is a program. Managed memory and memory of the host are left out unless --device chooses them. Exit "
    "status 1 if a log is malformed or does "
    "not run, or the graph cannot be written.",
    tune_run};
