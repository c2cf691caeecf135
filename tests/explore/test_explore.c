/* SPDX-License-Identifier: MIT */
/* Explores programs on streams, and the orders in which their work may run: all short programs, by a depth-first
 * search over lists of decisions; long programs from seeds. A failing run is made shorter and printed with the command
 * that repeats it. The last tests put mistakes into copies of plugins, some of which hipmm once had, and show how soon
 * each is found.
 *
 *   HIPMM_TEST_DEPTH=5     all programs of 5 steps
 *   HIPMM_TEST_SEED=7      the first seed;  HIPMM_TEST_SEEDS=1000000  how many seeds for each stack
 *   HIPMM_TEST_CHOICES=3,0,1 HIPMM_TEST_STEPS=4 test_explore 'NAME'  repeats one run of a stack, and tells its steps
 *
 * Outside of `make check`, HIPMM_PLUGIN_PATH names the folder of the plugins, as in the command that is printed. */
#include "../support/support.h"
#include "scenario.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG_STEPS = 40, MOST_SHRINKS = 3000, TEXT_BYTES = 2000 };

#define SMALL \
  {           \
    100       \
  }
#define MIXED        \
  {                  \
    100, 3000, 70000 \
  }
#define PLAIN  .streams = 2, .blocks = 3
#define LIVELY .streams = 3, .blocks = 8, .is_long = true, .renews = true, .is_sizeless = true
#define LONG   .streams = 2, .blocks = 8, .is_long = true, .is_sizeless = true
#define BINS   "'bins': [{'size': '1KiB'}, {'size': '64KiB'}, {'size': '128KiB', 'resource': 'below'}]"
#define OVER_POOL(of_binning)                                                                     \
  "'resources': {'memory': {'type': 'device'}, 'below': {'type': 'pool', 'upstream': 'memory'}, " \
  "'top': {'type': '" of_binning "', 'upstream': 'below', " BINS "}}, 'devices': {'default': 'top'}"

static const struct scenario scenarios[] = {
    {"pool", "'stack': ['pool', 'device']", SMALL, PLAIN},
    {"pool of segments", "'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']", SMALL, PLAIN},
    {"pool, record on_free", "'stack': [{'type': 'pool', 'record': 'on_free'}, 'device']", SMALL, PLAIN},
    {"pool on a stream pool", "'stack': ['pool', 'device']", SMALL, PLAIN, .is_pooled = true},
    {"arena", "'stack': ['arena', 'device']", SMALL, PLAIN},
    {"fixed_size", "'stack': ['fixed_size', 'device']", SMALL, PLAIN},
    {"fixed_size on a stream pool", "'stack': ['fixed_size', 'device']", SMALL, PLAIN, .is_pooled = true},
    {"binning", OVER_POOL("binning"), SMALL, PLAIN},
    {"monotonic", "'stack': ['monotonic', 'device']", SMALL, PLAIN},
    {"monotonic on a stream pool", "'stack': ['monotonic', 'device']", SMALL, PLAIN, .is_pooled = true},
    {"async", "'stack': ['async']", SMALL, PLAIN},
    {"async_managed", "'stack': ['async_managed']", SMALL, PLAIN},
    {"lively pool", "'stack': ['pool', 'device']", MIXED, LIVELY},
    {"lively pool of segments", "'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']", MIXED, LIVELY},
    {"lively arena", "'stack': ['arena', 'device']", MIXED, LIVELY},
    {"lively fixed_size", "'stack': [{'type': 'fixed_size', 'block_size': '128KiB'}, 'device']", MIXED, LIVELY},
    {"lively binning", OVER_POOL("binning"), MIXED, LIVELY},
    {"binning that keeps its streams", OVER_POOL("binning"), MIXED, LONG},
    {"lively monotonic", "'stack': ['monotonic', 'device']", MIXED, LIVELY},
    {"lively async", "'stack': ['async']", MIXED, LIVELY},
};

/* ---- A failing run ---- */

struct explored {
  const struct scenario *scenario;
  unsigned steps;
};

static bool fails(void *arg, struct choices *choices)
{
  const struct explored *explored = arg;
  return scenario_run(explored->scenario, explored->steps, choices, false) != NULL;
}

/* The fewest steps with which the list fails. */
static size_t shrink_steps(struct explored *explored, const struct choices *choices)
{
  static struct choices again;
  struct explored shorter = {.scenario = explored->scenario};
  for (; shorter.steps < explored->steps; shorter.steps++) {
    again = *choices;
    choices_begin(&again);
    if (fails(&shorter, &again)) break;
  }
  explored->steps = shorter.steps;
  return shorter.steps;
}

/* The fewest steps and the shortest list. Returns the runs that this took. */
static size_t shrink(struct explored *explored, struct choices *choices)
{
  size_t runs = choices_shrink(choices, fails, explored, MOST_SHRINKS);
  for (unsigned before = UINT_MAX; explored->steps < before;) {
    before = explored->steps;
    runs += shrink_steps(explored, choices);
    choices_begin(choices);
    fails(explored, choices);
    runs += choices_shrink(choices, fails, explored, MOST_SHRINKS);
  }
  return runs;
}

/* The command that repeats a run, for a shell in any folder. Not by print_message(), which cuts long texts. */
static void print_command(const struct scenario *scenario, unsigned steps, const char *decisions)
{
  const char *path = getenv("HIPMM_PLUGIN_PATH");
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  self[length > 0 ? length : 0] = '\0';
  printf("HIPMM_PLUGIN_PATH='%s' HIPMM_TEST_CHOICES=%s HIPMM_TEST_STEPS=%u '%s' '%s'\n", path ? path : "", decisions,
         steps, self, scenario->name);
  fflush(stdout);
}

/* Says what to do to see the run again, for the run that `choices` has just taken. Returns what the shorter list
 * comes to; NULL: it does not fail. */
static const char *report(const struct scenario *scenario, unsigned steps, struct choices *choices)
{
  char text[TEXT_BYTES];
  struct explored explored = {scenario, steps};
  size_t before = choices->n_taken, runs = shrink(&explored, choices);
  choices_print(choices, text, sizeof text);
  choices_read(choices, text);
  choices_begin(choices);
  const char *failure = scenario_run(scenario, explored.steps, choices, false);
  print_message("%s: %s\n%zu decisions became %zu, and %u steps %u, in %zu runs; repeat with\n", scenario->name,
                failure ? failure : "does not fail when it is repeated", before, choices->n_given, steps,
                explored.steps, runs);
  print_command(scenario, explored.steps, text);
  return failure;
}

/* ---- Searches ---- */

struct search {
  unsigned long long runs, decisions;
  uint64_t hash; /* of all decisions and their limits: the same on every machine */
};

static void count_run(struct search *search, const struct choices *choices)
{
  search->runs++;
  search->decisions += choices->n_taken;
  for (size_t i = 0; i < choices->n_taken; i++)
    search->hash = (search->hash ^ (choices->taken[i] + (uint64_t)choices->limits[i] * 65536)) * 0x100000001b3u;
}

/* All programs of `steps` steps in all orders; false at the first that fails. */
static bool search_all(const struct scenario *scenario, unsigned steps, unsigned long long most_runs,
                       struct choices *choices, struct search *search)
{
  choices->n_given = 0;
  do {
    choices_begin(choices);
    const char *failure = scenario_run(scenario, steps, choices, false);
    count_run(search, choices);
    if (failure) return false;
  } while (choices_next(choices) && search->runs < most_runs);
  return true;
}

static bool search_seeds(const struct scenario *scenario, uint64_t first, uint64_t count, struct choices *choices,
                         struct search *search)
{
  for (uint64_t seed = first; seed - first < count; seed++) {
    choices_seed(choices, seed);
    const char *failure = scenario_run(scenario, LONG_STEPS, choices, false);
    count_run(search, choices);
    if (!failure) continue;
    print_message("seed %llu\n", (unsigned long long)seed);
    return false;
  }
  return true;
}

static struct choices choices;

/* Where each step takes long (tests/Makefile.inc), fewer runs show as much. */
static bool is_slow(void)
{
  return number_from_environment("HIPMM_TEST_RUNS", 0) > 0;
}

static void holds_for_all_short_programs(void **state)
{
  const struct scenario *scenario = *state;
  struct search search = {.hash = 0xcbf29ce484222325u};
  unsigned steps = (unsigned)number_from_environment("HIPMM_TEST_DEPTH", is_slow() ? 2 : 3);
  bool holds = search_all(scenario, steps, UINT64_MAX, &choices, &search);
  print_message("%s: all programs of %u steps: %llu runs, %llu decisions, hash %016llx\n", scenario->name, steps,
                search.runs, search.decisions, (unsigned long long)search.hash);
  if (!holds) report(scenario, steps, &choices);
  assert_true(holds);
}

static void holds_for_seeds(void **state)
{
  const struct scenario *scenario = *state;
  struct search search = {.hash = 0xcbf29ce484222325u};
  uint64_t first = number_from_environment("HIPMM_TEST_SEED", 1);
  uint64_t count = number_from_environment("HIPMM_TEST_SEEDS", is_slow() ? 20 : 200);
  bool holds = search_seeds(scenario, first, count, &choices, &search);
  print_message("%s: seeds from %llu: %llu runs, %llu decisions, hash %016llx\n", scenario->name,
                (unsigned long long)first, search.runs, search.decisions, (unsigned long long)search.hash);
  if (!holds) report(scenario, LONG_STEPS, &choices);
  assert_true(holds);
}

/* ---- What the searches must find ---- */

struct mistake {
  const char *folder, *scenario; /* of the plugin with the mistake; the stack that is searched */
  const char *failure;           /* a part of what is found */
};

#define WRONG_DATA "did not hold what was written"

static const struct mistake mistakes[] = {
    {"no_wait", "fixed_size on a stream pool", WRONG_DATA},
    {"no_wait", "lively fixed_size", WRONG_DATA},
    {"no_device_wait", "fixed_size", WRONG_DATA},
    {"no_device_wait", "lively fixed_size", WRONG_DATA},
    {"early", "fixed_size on a stream pool", WRONG_DATA},
    {"early", "lively fixed_size", WRONG_DATA},
    {"stale", "lively fixed_size", WRONG_DATA},
    {"chunk", "binning that keeps its streams", "live bytes at"},
    {"no_wait", "monotonic on a stream pool", WRONG_DATA},
    {"no_wait", "lively monotonic", WRONG_DATA},
};

/* In a process whose first folder of plugins is that of the mistake. The shorter list must fail as it is printed. */
static int find(const struct mistake *mistake)
{
  const struct scenario *scenario = scenarios;
  struct search search = {.hash = 0};
  while (strcmp(scenario->name, mistake->scenario)) scenario++;
  unsigned steps = scenario->is_long ? LONG_STEPS : 4;
  bool holds = scenario->is_long ? search_seeds(scenario, 1, 3000, &choices, &search)
                                 : search_all(scenario, steps, 20000, &choices, &search);
  if (holds) return 3;
  const char *failure = report(scenario, steps, &choices);
  print_message("found in run %llu\n", search.runs);
  return !failure ? 4 : choices.n_given > 20 ? 5 : !strstr(failure, mistake->failure) ? 6 : 0;
}

/* Runs the command that was printed as a user would: elsewhere, and without what `make check` sets for plugins. */
static void assert_command_repeats(const char *printed, const char *failure)
{
  static const char words[] = "repeat with\n";
  const char *command = strstr(printed, words);
  char shell[8300];
  assert_non_null(command);
  command += strlen(words);
  snprintf(shell, sizeof shell, "cd / && env -u HIPMM_PLUGIN_PATH -u top_builddir %.*s 2>&1 | grep -q '%s'",
           (int)strcspn(command, "\n"), command, failure);
  assert_int_equal(system(shell), 0);
}

static void is_found(void **state)
{
  const struct mistake *mistake = *state;
  const char *top = getenv("top_builddir"), *ours = getenv("HIPMM_PLUGIN_PATH");
  char path[2000], number[20];
  snprintf(number, sizeof number, "%d", (int)(mistake - mistakes));
  snprintf(path, sizeof path, "HIPMM_PLUGIN_PATH=%s/tests/explore/mistakes/%s/.libs:%s", top ? top : ".",
           mistake->folder, ours ? ours : "");
  const char *const arguments[] = {"mistake", number, NULL}, *const environment[] = {path, NULL};
  struct outcome outcome = run_again(arguments, environment);
  print_message("%s", outcome.out);
  if (outcome.status) print_error("%s", outcome.error);
  assert_int_equal(outcome.status, 0);
  assert_command_repeats(outcome.out, mistake->failure);
}

/* ---- The command for one run ---- */

static int repeat(const char *name)
{
  const char *text = getenv("HIPMM_TEST_CHOICES");
  unsigned steps = (unsigned)number_from_environment("HIPMM_TEST_STEPS", LONG_STEPS);
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
    if (strcmp(scenarios[i].name, name)) continue;
    choices_read(&choices, text ? text : "");
    choices_begin(&choices);
    const char *failure = scenario_run(&scenarios[i], steps, &choices, true);
    fprintf(stderr, "%s: %s\n", name, failure ? failure : "holds");
    return failure != NULL;
  }
  fprintf(stderr, "%s: no such stack\n", name);
  return 2;
}

int main(int argc, char **argv)
{
  enum { N = sizeof scenarios / sizeof *scenarios, M = sizeof mistakes / sizeof *mistakes };
  struct CMUnitTest tests[N + M];
  static char names[M][100];
  size_t n = 0;
  if (argc > 2) return find(&mistakes[atoi(argv[2])]);
  use_test_plugins();
  if (argc > 1) return repeat(argv[1]);
  for (size_t i = 0; i < N; i++)
    tests[n++] = (struct CMUnitTest){.name = scenarios[i].name,
                                     .test_func = scenarios[i].is_long ? holds_for_seeds : holds_for_all_short_programs,
                                     .initial_state = (void *)(uintptr_t)&scenarios[i]};
  for (size_t i = 0; i < M; i++) {
    snprintf(names[i], sizeof names[i], "notices %s: %s", mistakes[i].folder, mistakes[i].scenario);
    tests[n++] =
        (struct CMUnitTest){.name = names[i], .test_func = is_found, .initial_state = (void *)(uintptr_t)&mistakes[i]};
  }
  return _cmocka_run_group_tests("exploration", tests, n, NULL, NULL);
}
