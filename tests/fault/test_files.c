/* SPDX-License-Identifier: MIT */
/* Sweeps (sweep.h) over what writes files: logs, records, published counters, reports, the debug log. The disk is
 * full, a write does half of its work, a signal interrupts a call. The program goes on, what is lost is counted and
 * told, what is in a file can be read, and no file, mapping or temporary name is left behind. */
#include "../support/support.h"
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 40, GRAPH_BYTES = 2000 };

static char *folder, *file, *published[2];

struct output {
  const char *settings, *stack; /* of the graph, with @ for the file's name */
  bool has_rows;                /* the file has rows separated by commas */
  const char *lost;             /* the value that counts what was lost; NULL: none */
};

static const struct output *output; /* of the scenario */
static unsigned n_done;             /* allocations and frees */
static int64_t n_lost;

/* ---- The graph ---- */

static void put_name(const char *text, char *end)
{
  for (; *text; text++) {
    size_t length = *text == '@' ? strlen(file) : 1;
    memcpy(end, *text == '@' ? file : text, length);
    end += length;
  }
  *end = '\0';
}

static const char *graph(void)
{
  static char text[GRAPH_BYTES + 200];
  char settings[GRAPH_BYTES / 2], stack[GRAPH_BYTES / 2];
  put_name(output->settings, settings);
  put_name(output->stack, stack);
  snprintf(text, sizeof text, "{%s\"runtime\": {\"type\": \"software\", \"memory\": \"64MiB\"}, \"stack\": [%s]}",
           settings, stack);
  return text;
}

/* ---- A run ---- */

static void begin(const void *argument)
{
  output = argument;
  n_done = 0;
  n_lost = 0;
}

static void work(void)
{
  struct hipmm_resource *resource = NULL;
  SWEEP_OUT_ONLY(resource, hipmm_resource_get_current);
  for (int i = 0; resource && i < ROUNDS; i++) {
    void *block = NULL;
    SWEEP_OUT(block, hipmm_allocate, resource, 1000 + (size_t)i, NULL);
    n_done += block != NULL;
    if (block) n_done += !SWEEP(hipmm_deallocate, resource, block, 1000 + (size_t)i, NULL);
  }
  if (output->lost) {
    SWEEP(hipmm_resource_perform, resource, "flush");
    if (hipmm_resource_query(resource, output->lost, &n_lost)) sweep_note("%s cannot be read", output->lost);
  }
  hipmm_resource_release(resource);
}

static void run(const void *argument)
{
  (void)argument;
  SWEEP(hipmm_init_from_string, graph());
  work();
  SWEEP(hipmm_finalize);
}

/* ---- What is in the files ---- */

static size_t count(const char *text, const char *end, char wanted)
{
  size_t n = 0;
  for (; text < end; text++) n += *text == wanted;
  return n;
}

/* Every line is whole, and none is missing that was not counted as lost. */
static void check_rows(void)
{
  size_t bytes = 0, n = 0, n_commas = 0;
  char *text = read_file(file, &bytes), *line = text, *end;
  for (; line && (end = memchr(line, '\n', bytes - (size_t)(line - text))); line = end + 1) {
    size_t commas = count(line, end, ',');
    if (n++ == 0) n_commas = commas;
    if (commas != n_commas) sweep_note("line %zu is damaged: %.*s", n, (int)(end - line), line);
  }
  if (line && line != text + bytes) sweep_note("the last line is cut: %s", line);
  if (!n) sweep_note("the file is empty");
  int64_t told = (int64_t)n - 1 + n_lost, failed = told - n_done; /* a failed allocation has a row */
  if (n && failed != 0 && !(failed == 1 && sweep_may_fail()))
    sweep_note("%u calls, but %zu rows and %lld lost", n_done, n - 1, (long long)n_lost);
  free(text);
}

static void check_nothing_published(void)
{
  for (int i = 0; i < 2; i++)
    if (!access(published[i], F_OK)) sweep_note("%s is left", published[i]);
}

static void end(const void *argument)
{
  (void)argument;
  if (output->has_rows) check_rows();
  check_nothing_published();
  unlink(file);
}

/* ---- The debug log ---- */

static void run_log(const void *argument)
{
  (void)argument;
  SWEEP(hipmm_log_set_file, file);
  SWEEP(hipmm_log_set_level, HIPMM_LOG_TRACE);
  run(argument);
  hipmm_log_set_level(HIPMM_LOG_ERROR);
}

static void end_log(const void *argument)
{
  if (hipmm_log_set_file(NULL)) sweep_note("the log cannot be set back");
  end(argument);
}

/* ---- Tests ---- */

static const struct output outputs[] = {
    {"", "{\"type\": \"logging\", \"file\": \"@\", \"auto_flush\": true}, \"host\"", true, "lost_rows"},
    {"", "{\"type\": \"logging\", \"file\": \"@\"}, \"host\"", true, "lost_rows"},
    {"", "{\"type\": \"logging\", \"file\": \"@\", \"append\": true}, \"host\"", true, "lost_rows"},
    {"", "{\"type\": \"recording\", \"file\": \"@\"}, \"host\"", false, "lost_events"},
    {"", "{\"type\": \"recording\", \"file\": \"@\", \"rotate_size\": \"256KiB\"}, \"host\"", false, "lost_events"},
    {"\"publish\": true, ", "\"statistics\", \"host\"", false, NULL},
    {"\"report\": \"@\", ", "\"statistics\", \"host\"", false, NULL},
    {"", "\"statistics\", \"host\"", false, NULL},
};

static const struct sweep_scenario scenarios[] = {
    {.name = "log, row by row", .begin = begin, .run = run, .end = end, .argument = &outputs[0]},
    {.name = "log", .begin = begin, .run = run, .end = end, .argument = &outputs[1]},
    {.name = "log, appended", .begin = begin, .run = run, .end = end, .argument = &outputs[2]},
    {.name = "record", .begin = begin, .run = run, .end = end, .argument = &outputs[3]},
    {.name = "record, rotated", .begin = begin, .run = run, .end = end, .argument = &outputs[4]},
    {.name = "counters", .begin = begin, .run = run, .end = end, .argument = &outputs[5]},
    {.name = "report", .begin = begin, .run = run, .end = end, .argument = &outputs[6]},
    {.name = "debug log", .begin = begin, .run = run_log, .end = end_log, .argument = &outputs[7]},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void sweeps(void **state)
{
  struct sweep_scenario scenario = *(const struct sweep_scenario *)*state;
  scenario.left_out = 1u << SWEEP_HIP;
  sweep_over(&scenario);
}

int main(void)
{
  struct CMUnitTest tests[SCENARIOS];
  folder = new_folder();
  file = path_in(folder, "file");
  log_to_file("error");
  for (int i = 0; i < 2; i++) {
    published[i] = published_file(i == 1);
    unlink(published[i]); /* what a process that was killed has left, before this one got its number */
  }
  for (size_t i = 0; i < SCENARIOS; i++)
    tests[i] = (struct CMUnitTest){
        .name = scenarios[i].name, .test_func = sweeps, .initial_state = (void *)(uintptr_t)&scenarios[i]};
  int failed_tests = _cmocka_run_group_tests("faults of files", tests, SCENARIOS, NULL, NULL);
  sweep_print_sums();
  for (int i = 0; i < 2; i++) free(published[i]);
  free(file);
  remove_folder(folder);
  return failed_tests;
}
