/* SPDX-License-Identifier: MIT */
/* Sweeps (sweep.h) over every public function: each HIP call, allocation of host memory and call on a file that it
 * makes fails once. A function that no scenario calls fails the test. The scenarios are in functions_*.c, by subject. */
#include "../abi/functions.h"
#include "../support/support.h"
#include "functions.h"

#include <hipmm/memory.h>
#include <hipmm/stream.h>
#include <stdlib.h>
#include <string.h>

#define RUNTIME \
  "\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"256MiB\", \"granularity\": \"128KiB\"}"

const char graph[] =
    "{" RUNTIME ", \"resources\": {"
    "\"memory\": {\"type\": \"device\", \"handle_type\": \"posix_fd\"}, "
    "\"pool\": {\"type\": \"pool\", \"upstream\": \"memory\", \"growth\": \"mapped\"}, "
    "\"shared\": {\"type\": \"async\", \"handle_type\": \"posix_fd\"}, "
    "\"pages\": {\"type\": \"host\"}, "
    "\"budget\": {\"type\": \"reserving\", \"upstream\": \"pool\", \"limit\": \"64MiB\"}, "
    "\"movable\": {\"type\": \"spilling\", \"upstream\": \"pool\", \"pinned\": \"pages\", \"pinned_limit\": "
    "\"30000\", \"folder\": \"/tmp\"}, "
    "\"tracked\": {\"type\": \"tracking\", \"upstream\": \"pool\"}, "
    "\"main\": {\"type\": \"statistics\", \"upstream\": \"tracked\"}}, \"devices\": {\"default\": \"main\"}}";

hipmm_stream_t stream;
struct hipmm_resource *resource;
unsigned char *bystanders[BYSTANDERS];
char *graph_file, *log_file;
static char *folder;

/* ---- Before and after ---- */

void begin_without_a_stack(const void *argument)
{
  (void)argument;
  resource = NULL;
  stream = NULL;
  memset(bystanders, 0, sizeof bystanders);
  if (hipmm_init_from_string(graph)) sweep_note("hipmm_init_from_string: %s", hipmm_last_error_message());
}

void begin(const void *argument)
{
  begin_without_a_stack(argument);
  if (hipmm_resource_get_current(&resource) || hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream))
    sweep_note("begin: %s", hipmm_last_error_message());
  for (int i = 0; i < BYSTANDERS; i++) {
    void *block = NULL;
    if (hipmm_allocate_sync(resource, (size_t)BYTES << 5 * i, &block))
      sweep_note("begin: %s", hipmm_last_error_message());
    bystanders[i] = block;
    if (block) memset(block, 0x50 + i, BYTES);
  }
}

void end(const void *argument)
{
  (void)argument;
  for (int i = 0; i < BYSTANDERS && bystanders[i]; i++) {
    for (size_t j = 0; j < BYTES; j++)
      if (bystanders[i][j] != 0x50 + i) sweep_note("byte %zu of live block %d was changed", j, i);
    if (hipmm_deallocate_sync(resource, bystanders[i], (size_t)BYTES << 5 * i)) sweep_note("live block %d is gone", i);
  }
  if (stream && hipmm_stream_destroy(stream)) sweep_note("end: %s", hipmm_last_error_message());
  hipmm_resource_release(resource);
  hipmm_finalize();
}

void expect(bool is_so, const char *what)
{
  if (!is_so) sweep_note("%s", what);
}

bool holds(const unsigned char *data, size_t bytes, unsigned char value)
{
  for (size_t i = 0; i < bytes; i++)
    if (data[i] != value) return false;
  return true;
}

/* ---- Tests ---- */

static void sweeps(void **state)
{
  sweep_over(*state);
}

static void has_a_scenario_for_every_function(void **state)
{
  unsigned missing = 0;
  (void)state;
  for (size_t i = 0; i < n_functions; i++) {
    if (sweep_has_called(functions[i].name)) continue;
    print_error("%s is in no scenario of tests/fault/functions_*.c\n", functions[i].name);
    missing++;
  }
  assert_int_equal(missing, 0);
}

/* The tests of scenarios; returns how many tests there are now. */
static size_t add(struct CMUnitTest *tests, size_t n, const struct sweep_scenario *scenarios, size_t n_scenarios)
{
  for (size_t i = 0; i < n_scenarios; i++)
    tests[n++] = (struct CMUnitTest){
        .name = scenarios[i].name, .test_func = sweeps, .initial_state = (void *)(uintptr_t)&scenarios[i]};
  return n;
}

int main(void)
{
  size_t n = 0, room = n_resource_scenarios + n_container_scenarios + n_process_scenarios + 1;
  struct CMUnitTest *tests = calloc(room, sizeof *tests);
  folder = new_folder();
  graph_file = path_in(folder, "graph.json");
  log_file = path_in(folder, "lines");
  log_to_file("error");
  setenv("HIPMM_LOG_OF_TEST", strchr(getenv("HIPMM_LOG"), ':') + 1, 1);
  setenv("HIPMM_CONFIG", graph_file, 1);
  if (!tests || !write_file(graph_file, graph, sizeof graph - 1)) return 1;
  n = add(tests, n, resource_scenarios, n_resource_scenarios);
  n = add(tests, n, container_scenarios, n_container_scenarios);
  n = add(tests, n, process_scenarios, n_process_scenarios);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(has_a_scenario_for_every_function);
  int failed_tests = _cmocka_run_group_tests("faults of functions", tests, n, NULL, NULL);
  sweep_print_sums();
  free(tests);
  free(graph_file);
  free(log_file);
  remove_folder(folder);
  return failed_tests;
}
