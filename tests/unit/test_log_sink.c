/* SPDX-License-Identifier: MIT */
/* Tests of core/base/log_sink.c: lines of the log reach the program's function, from any thread, and no thread hangs in
 * it. */
#include "../../core/base/lifecycle.h"
#include "../../core/base/log.h"
#include "../../core/stack/instance.h"
#include "../support/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char stack[] = "'stack': ['witness', 'device']";

/* ---- A sink that notes what it gets ---- */

struct noted {
  char text[8192];
  int lines;
};

static void note(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  struct noted *noted = arg;
  size_t used = strlen(noted->text);
  snprintf(noted->text + used, sizeof noted->text - used, "%d %s: %s\n", (int)level, about, message);
  noted->lines++;
}

static int finish(void **state)
{
  hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_ERROR);
  return fixture_teardown(state);
}

static void gets_the_lines_up_to_its_level(void **state)
{
  (void)state;
  struct noted noted = {.lines = 0};
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_INFO));
  assert_true(log_wants(HIPMM_LOG_INFO));
  assert_false(log_wants(HIPMM_LOG_DEBUG));
  log_line(HIPMM_LOG_INFO, NULL, "%s %d", "one", 1);
  log_line(HIPMM_LOG_DEBUG, "pool", "two");
  log_line(HIPMM_LOG_WARNING, "pool", "three");
  assert_string_equal(noted.text, "2 : one 1\n1 pool: three\n");
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_ERROR));
  log_line(HIPMM_LOG_WARNING, "pool", "four");
  assert_int_equal(noted.lines, 2);
  assert_ok(hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_TRACE));
  assert_false(log_wants(HIPMM_LOG_INFO));
  log_line(HIPMM_LOG_INFO, "pool", "five");
  assert_int_equal(noted.lines, 2);
}

static void gets_what_stacks_say(void **state)
{
  (void)state;
  struct noted noted = {.lines = 0};
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_DEBUG));
  fixture_start(stack);
  assert_contains(noted.text, "3 : device 0: stack built, top is witness\n");
  fixture_allocate(1000, NULL);
  assert_ok(hipmm_finalize());
  assert_contains(noted.text, "2 witness: destroyed on device 0\n");
  assert_contains(noted.text, "1 device: device 0: 1 block (1000 bytes) still allocated, freed with it\n");
}

static bool has_growth(const char *text)
{
  return strstr(text, "grew by a ") != NULL;
}

/* Failures and growth at debug; every call at trace, of each resource of the stack. */
static void tells_of_calls_of_stacks_that_are_built_then(void **state)
{
  (void)state;
  static const char *const graphs[] = {"'stack': ['pool', 'device']",
                                       "'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']",
                                       "'stack': ['arena', 'device']", "'stack': ['monotonic', 'device']",
                                       "'stack': [{'type': 'fixed_size', 'blocks_to_preallocate': 0}, 'device']"};
  static const char *const tops[] = {"pool", "pool", "arena", "monotonic", "fixed_size"};
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    struct noted noted = {.lines = 0};
    void *ptr = NULL, *none = NULL;
    char line[200];
    assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_DEBUG));
    fixture_start(graphs[i]);
    ptr = fixture_allocate(1000, NULL);
    assert_true(has_growth(noted.text));
    assert_null(strstr(noted.text, "allocated 1000 bytes"));
    assert_status(hipmm_allocate(NULL, MIB << 20, NULL, &none), i == 4 ? HIPMM_E_LIMIT : HIPMM_E_OUT_OF_MEMORY);
    snprintf(line, sizeof line, "3 %s: allocation of %zu bytes on stream (nil) failed: %.60s", tops[i], MIB << 20,
             hipmm_last_error_message());
    assert_contains(noted.text, line);
    assert_status(hipmm_deallocate(NULL, ptr, 999, NULL), HIPMM_E_SIZE);
    snprintf(line, sizeof line, "free of %p (999 bytes) on stream (nil) refused: ", ptr);
    assert_contains(noted.text, line);
    noted = (struct noted){.lines = 0};
    assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_TRACE));
    fixture_free(ptr, 1000, NULL);
    snprintf(line, sizeof line, "freed %p (1000 bytes) on stream (nil)", ptr);
    assert_contains(noted.text, line);
    ptr = fixture_allocate(1000, NULL);
    snprintf(line, sizeof line, "allocated 1000 bytes on stream (nil): %p", ptr);
    assert_contains(noted.text, line);
    fixture_free(ptr, 1000, NULL);
    hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_ERROR);
    fixture_teardown(state);
  }
}

/* Also a stack that was built before the log wanted to know, and no longer than the log does. */
static void tells_of_calls_from_when_the_log_wants_them(void **state)
{
  (void)state;
  struct noted noted = {.lines = 0};
  fixture_start("'stack': ['statistics', {'type': 'pool', 'growth': 'segments'}, 'thread_safe', 'device']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_INFO));
  fixture_free(ptr, 1000, NULL);
  assert_int_equal(noted.lines, 0);
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_TRACE));
  ptr = fixture_allocate(1000, NULL);
  assert_contains(noted.text, "4 statistics: allocated 1000 bytes on stream (nil): ");
  assert_contains(noted.text, "4 pool: allocated 1000 bytes on stream (nil): ");
  assert_int_equal(fixture_value("statistics", "current_bytes"), 1000);
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_WARNING));
  noted = (struct noted){.lines = 0};
  fixture_free(ptr, 1000, NULL);
  assert_int_equal(noted.lines, 0);

  /* The level, for standard error, is as good as a sink. */
  assert_ok(hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_ERROR));
  assert_ok(hipmm_log_set_file("/dev/null"));
  assert_ok(hipmm_log_set_level(HIPMM_LOG_TRACE));
  assert_ptr_not_equal(instance_from(fixture_resource("pool"))->resource.ops,
                       instance_from(fixture_resource("pool"))->node->plugin->descriptor.ops);
  assert_ok(hipmm_log_set_level(HIPMM_LOG_WARNING));
  assert_ptr_equal(instance_from(fixture_resource("pool"))->resource.ops,
                   instance_from(fixture_resource("pool"))->node->plugin->descriptor.ops);
  assert_ok(hipmm_log_set_file(NULL));
}

static void allocate_on_and_on(int *failures)
{
  for (int i = 0; i < 3000; i++) {
    void *ptr = NULL;
    if (hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 1000, NULL)) ++*failures;
  }
}

static void drop_line(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  (void)arg, (void)level, (void)about, (void)message;
}

static void the_level_changes_while_threads_allocate(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', 'pool', 'device']");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  fixture_start_threads(2, allocate_on_and_on);
  for (int i = 0; i < 100; i++)
    assert_ok(hipmm_log_set_sink(drop_line, NULL, i % 2 ? HIPMM_LOG_TRACE : HIPMM_LOG_WARNING));
  fixture_join_threads();
  assert_int_equal(fixture_value("statistics", "current_count"), 0);
  assert_int_equal(fixture_value("statistics", "total_count"), 6001);
}

/* Nothing else changes for such a stack: values, mapped memory, sharing, and what is found. */
static void a_stack_that_tells_works_as_any_other(void **state)
{
  (void)state;
  struct noted noted = {.lines = 0};
  int64_t value = 0;
  void *ptr = NULL;
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_DEBUG));
  fixture_start("'stack': ['statistics', 'thread_safe', 'witness', {'type': 'pool', 'growth': 'mapped'}, 'device']");
  ptr = fixture_allocate(5 * MIB, NULL);
  assert_ok(hipmm_resource_query(fixture_resource("pool"), "chunks", &value));
  assert_true(value > 0);
  assert_ok(hipmm_deallocate(NULL, ptr, 0, NULL));
  assert_ok(hipmm_resource_trim(fixture_resource("statistics"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

static void cuts_endless_lines(void **state)
{
  (void)state;
  static char text[10000];
  struct noted noted = {.lines = 0};
  memset(text, 'x', sizeof text - 1);
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_ERROR));
  log_line(HIPMM_LOG_ERROR, "pool", "%s", text);
  assert_int_equal(noted.lines, 1);
  assert_in_range(strlen(noted.text), 1000, 3000);
}

/* ---- Standard error ---- */

static int speak(const void *with_sink)
{
  struct noted noted = {.lines = 0};
  if (with_sink && hipmm_log_set_sink(note, &noted, HIPMM_LOG_ERROR)) return 1;
  log_line(HIPMM_LOG_WARNING, "pool", "below the sink's level");
  log_line(HIPMM_LOG_ERROR, "pool", "for the sink");
  return with_sink ? noted.lines != 1 : 0;
}

static int speak_to_both(const void *with_sink)
{
  setenv("HIPMM_LOG", "warning", 1);
  return speak(with_sink);
}

static void replaces_standard_error_unless_that_is_asked_for(void **state)
{
  (void)state;
  struct outcome none = run_forked(speak, NULL), sink = run_forked(speak, ""), both = run_forked(speak_to_both, "");
  assert_int_equal(none.status, 0);
  assert_string_equal(none.error, "hipmm: warning: pool: below the sink's level\nhipmm: error: pool: for the sink\n");
  assert_int_equal(sink.status, 0);
  assert_string_equal(sink.error, "");
  assert_int_equal(both.status, 0);
  assert_string_equal(both.error, none.error);
}

/* ---- What a sink may not do ---- */

static struct hipmm_resource *held;
static int refused, called;

static void call_hipmm(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  struct hipmm_resource *resource = held;
  int64_t value;
  char *text;
  void *ptr;
  (void)arg, (void)level, (void)about, (void)message;
  called++;
  const enum hipmm_status statuses[] = {
      hipmm_init_from_string("{}"),
      hipmm_finalize(),
      hipmm_allocate(NULL, 1, NULL, &ptr),
      hipmm_resource_get_current(&resource),
      hipmm_resource_create(0, "device", NULL, NULL, 0, &resource),
      hipmm_resource_query(held, "actions", &value),
      hipmm_resource_trim(held, 0),
      hipmm_resource_report(held, &text),
      hipmm_query("devices/0/held_bytes", &value),
      hipmm_set("devices/0/held_bytes", "1"),
      hipmm_list(NULL, &text),
      hipmm_snapshot(&text),
      hipmm_stream_retire(0, NULL),
      hipmm_region_register("mine", &(struct hipmm_region){sizeof(struct hipmm_region), &value, 8}),
      hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_ERROR),
  };
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (statuses[i] != HIPMM_E_STATE) fprintf(stderr, "call %zu came to %d\n", i, statuses[i]);
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) refused += statuses[i] == HIPMM_E_STATE;
  refused += strstr(hipmm_last_error_message(), "from within a log sink") != NULL;
  log_line(HIPMM_LOG_ERROR, NULL, "a line that comes of a line");
}

static void cannot_call_hipmm(void **state)
{
  (void)state;
  fixture_start(stack);
  held = fixture_resource("witness");
  refused = called = 0;
  assert_ok(hipmm_log_set_sink(call_hipmm, NULL, HIPMM_LOG_ERROR));
  log_line(HIPMM_LOG_ERROR, NULL, "a line");
  assert_int_equal(called, 1);
  assert_int_equal(refused, 16);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL); /* outside all is as before */
}

/* Calls of the sink do not change the error record of the call that wrote the line. */
static void leaves_the_record_of_the_call(void **state)
{
  (void)state;
  struct hipmm_resource *resource;
  fixture_start(stack);
  held = fixture_resource("witness");
  assert_status(hipmm_resource_get_for_device(7, &resource), HIPMM_E_NO_DEVICE);
  assert_ok(hipmm_log_set_sink(call_hipmm, NULL, HIPMM_LOG_ERROR));
  log_line(HIPMM_LOG_ERROR, NULL, "a line");
  assert_message("device 7 does not exist");
}

static void refuses_what_is_no_level(void **state)
{
  (void)state;
  struct noted noted = {.lines = 0};
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_ERROR));
  assert_status(hipmm_log_set_sink(note, NULL, (enum hipmm_log_level)5), HIPMM_E_ARGUMENT);
  assert_message("5 is not a level of the log");
  assert_status(hipmm_log_set_sink(note, NULL, (enum hipmm_log_level) - 1), HIPMM_E_ARGUMENT);
  log_line(HIPMM_LOG_ERROR, NULL, "one");
  assert_int_equal(noted.lines, 1); /* the one before is still there */
}

/* ---- Threads ---- */

enum { THREADS = 4, LINES = 3000 };

static atomic_int in_sink, lines_got, wrong;
static atomic_bool may_be_called;

static void count(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  (void)level;
  atomic_fetch_add(&in_sink, 1);
  if (!may_be_called || arg != &lines_got || strcmp(about, "thread") || strncmp(message, "line ", 5)) wrong++;
  lines_got++;
  atomic_fetch_sub(&in_sink, 1);
}

static void *speak_often(void *unused)
{
  (void)unused;
  for (int i = 0; i < LINES; i++) log_line(HIPMM_LOG_INFO, "thread", "line %d", i);
  return NULL;
}

static void nobody_is_in_it_once_it_is_taken_away(void **state)
{
  (void)state;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, speak_often, NULL), 0);
  for (int i = 0; i < 200; i++) {
    may_be_called = true;
    assert_ok(hipmm_log_set_sink(count, &lines_got, HIPMM_LOG_INFO));
    assert_ok(hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_INFO));
    assert_int_equal(in_sink, 0);
    may_be_called = false;
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
}

static void gets_every_line_of_every_thread(void **state)
{
  (void)state;
  pthread_t threads[THREADS];
  lines_got = wrong = 0;
  may_be_called = true;
  assert_ok(hipmm_log_set_sink(count, &lines_got, HIPMM_LOG_INFO));
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, speak_often, NULL), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_ok(hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_INFO));
  assert_int_equal(lines_got, THREADS * LINES);
  assert_int_equal(wrong, 0);
}

/* ---- Fork ---- */

static int speak_in_child(const void *noted)
{
  alarm(20);
  log_line(HIPMM_LOG_ERROR, NULL, "in the child");
  if (hipmm_log_set_sink(note, NULL, HIPMM_LOG_ERROR) != HIPMM_E_STATE) return 1;
  return ((const struct noted *)noted)->lines;
}

static void is_not_called_in_the_child_of_a_fork(void **state)
{
  (void)state;
  struct noted noted = {.lines = 0};
  fixture_start(stack);
  assert_ok(hipmm_log_set_sink(note, &noted, HIPMM_LOG_ERROR));
  assert_int_equal(run_forked(speak_in_child, &noted).status, 0);
}

#define sink_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, finish)

int main(void)
{
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replaces_standard_error_unless_that_is_asked_for), /* before the log is set up */
      sink_test(gets_the_lines_up_to_its_level),
      sink_test(gets_what_stacks_say),
      sink_test(tells_of_calls_from_when_the_log_wants_them),
      sink_test(the_level_changes_while_threads_allocate),
      sink_test(tells_of_calls_of_stacks_that_are_built_then),
      sink_test(a_stack_that_tells_works_as_any_other),
      sink_test(cuts_endless_lines),
      sink_test(cannot_call_hipmm),
      sink_test(leaves_the_record_of_the_call),
      sink_test(refuses_what_is_no_level),
      sink_test(nobody_is_in_it_once_it_is_taken_away),
      sink_test(gets_every_line_of_every_thread),
      sink_test(is_not_called_in_the_child_of_a_fork),
  };
  return cmocka_run_group_tests_name("log sink", tests, NULL, NULL);
}
