/* SPDX-License-Identifier: MIT */
/* Tests of what a graph says for jobs of many ranks: "report" (core/inspect/report.c) and "current_device" (core/init.c). The
 * program runs itself as a rank. */
#include "../support/support.h"

#include <hipmm/stream.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder;

static int start(void **state)
{
  (void)state;
  folder = new_folder();
  return folder && !chdir(folder) ? 0 : -1;
}

static int finish(void **state)
{
  (void)state;
  if (chdir("/")) return -1;
  remove_folder(folder);
  return 0;
}

/* ---- The rank ---- */

#define RUNTIME "{\"runtime\": {\"type\": \"software\", \"devices\": 3}, "

static sem_t is_asked;

static int never_answer(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)arg, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  sem_post(&is_asked);
  for (;;) pause();
  return 0;
}

static void free_nothing(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)arg, (void)ptr, (void)bytes, (void)alignment, (void)stream;
}

static void *allocate_for_ever(void *unused)
{
  void *ptr = NULL;
  return hipmm_allocate(NULL, 1000, NULL, &ptr) ? unused : ptr;
}

/* Exits while another thread is in a resource for ever. */
static int as_rank_with_a_thread(const char *graph)
{
  const struct hipmm_allocator never = {sizeof never, never_answer, free_nothing, NULL};
  pthread_t thread;
  alarm(10);
  sem_init(&is_asked, 0, 0);
  if (hipmm_allocator_register("never", &never) || hipmm_init_from_string(graph)) {
    printf("%s\n", hipmm_last_error_message());
    return 1;
  }
  if (pthread_create(&thread, NULL, allocate_for_ever, NULL) || sem_wait(&is_asked)) return 2;
  printf("device 0");
  fflush(stdout);
  return 0;
}

static int as_rank(const char *graph, const char *end)
{
  void *ptr;
  int device = -1;
  if (!strcmp(end, "thread")) return as_rank_with_a_thread(graph);
  if (!strcmp(end, "if-needed") ? hipmm_init_if_needed() : hipmm_init_from_string(graph)) {
    printf("%s\n", hipmm_last_error_message());
    return 1;
  }
  if (hipmm_device_current(&device) || hipmm_allocate(NULL, 1000, NULL, &ptr)) return 2;
  for (int i = 0; i < 2; i++)
    if (hipmm_allocate(NULL, (size_t)5 << 20, NULL, &ptr) != HIPMM_E_LIMIT) return 3;
  printf("device %d", device);
  fflush(stdout);
  if (!strcmp(end, "finalize") && hipmm_finalize()) return 4;
  if (!strcmp(end, "chdir") && chdir("/")) return 6;
  if (!strcmp(end, "fork")) {
    pid_t child = fork();
    if (!child) exit(0);
    if (waitpid(child, NULL, 0) != child) return 5;
  }
  return 0;
}

static const char usual[] =
    RUNTIME "\"report\": \"report.%r.json\", \"current_device\": \"local_rank\", \"stack\": [\"statistics\", "
            "{\"type\": \"limiting\", \"limit\": \"4MiB\"}, \"pool\", \"device\"]}";

/* Runs a rank, which has `device` current, and returns its report. */
static char *report_of(const char *graph, const char *end, const char *const *environment, const char *device)
{
  struct outcome outcome = run_again((const char *const[]){graph, end, NULL}, environment);
  assert_string_equal(outcome.error, "");
  assert_string_equal(outcome.out, device);
  assert_int_equal(outcome.status, 0);
  return read_file("report.2.json", NULL);
}

static const char *const second_rank[] = {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
                                          "OMPI_COMM_WORLD_SIZE=4", "HIPMM_LOG=error", NULL};

static void assert_one_line(const char *report)
{
  assert_non_null(report);
  assert_string_equal(strchr(report, '\n'), "\n");
}

/* ---- Tests ---- */

static void writes_the_report_at_exit_and_at_the_end(void **state)
{
  static const char *const ends[] = {"exit", "finalize", "fork", "chdir"};
  (void)state;
  for (int i = 0; i < 4; i++) {
    char *report = report_of(usual, ends[i], second_rank, "device 1");
    assert_one_line(report);
    assert_contains(report, "\"rank\":2,\"local_rank\":1,\"ranks\":4,\"moment\":\"exit\"");
    assert_contains(report, "\"runtime\":\"software\",\"graph\":\"<string>\",\"failed_allocations\":2,");
    assert_contains(report, "\"first_failure\":\"limiting: ");
    assert_contains(report,
                    "\"memory\":[{\"device\":1,\"kind\":\"device\",\"stack\":null,\"peak_requested_bytes\":1000,"
                    "\"live_bytes\":1000,\"live_blocks\":1,\"peak_reserved_bytes\":2097152}]}");
    free(report);
    assert_int_equal(unlink("report.2.json"), 0);
  }
}

static void appends_to_a_file_of_several_processes(void **state)
{
  static const char shared[] = RUNTIME "\"report\": \"report.2.json\", \"stack\": [{\"type\": \"limiting\", \"limit\": "
                                       "\"4MiB\"}, \"device\"]}";
  (void)state;
  free(report_of(shared, "exit", second_rank, "device 0"));
  char *report = report_of(shared, "exit", second_rank, "device 0");
  assert_one_line(strchr(report, '\n') + 1);
  assert_contains(report, "\"peak_reserved_bytes\":"); /* without a statistics there are no other figures */
  assert_null(strstr(report, "requested"));
  free(report);
}

/* The values of a third party's resource may need a lock, which that thread has. Their names say little. */
static void asks_no_resource_that_may_be_locked(void **state)
{
  static const char graph[] =
      RUNTIME "\"report\": \"report.2.json\", \"stack\": [\"hoarder\", {\"type\": \"callback\", "
              "\"allocator\": \"never\"}]}";
  (void)state;
  free(report_of(graph, "thread", second_rank, "device 0"));
}

static void leaves_the_device_alone_unless_a_launcher_tells_the_rank(void **state)
{
  static const char *const alone[] = {NULL};
  static const char *const many[] = {"RANK=2", "LOCAL_RANK=7", NULL}, *const wrong[] = {"RANK=2", "LOCAL_RANK=x", NULL};
  (void)state;
  free(report_of(usual, "exit", alone, "device 0"));
  free(report_of(usual, "exit", many, "device 1")); /* more ranks than devices */
  char *report = report_of(usual, "exit", wrong, "device 0");
  assert_one_line(report); /* in place of the rank's reports before */
  free(report);
}

/* hipmm_init_if_needed() is for libraries and frameworks, under which the program may have chosen a device before. */
static void leaves_the_device_to_a_program_that_did_not_initialise_hipmm(void **state)
{
  static const char *const by_library[] = {"RANK=2", "LOCAL_RANK=1", "HIPMM_CONFIG=hipmm.json", NULL};
  (void)state;
  assert_true(write_file("hipmm.json", usual, sizeof usual - 1));
  char *report = report_of("", "if-needed", by_library, "device 0");
  assert_one_line(report);
  free(report);
}

static void writes_to_standard_error_if_asked_to(void **state)
{
  static const char graph[] = RUNTIME "\"report\": \"-\", \"stack\": [{\"type\": \"limiting\", \"limit\": \"4MiB\"}, "
                                      "\"device\"]}";
  static const char *const arguments[] = {graph, "exit", NULL};
  (void)state;
  struct outcome outcome = run_again(arguments, NULL);
  assert_contains(outcome.error, "{\"program\":\"test_report\",\"process\":");
  assert_one_line(outcome.error);
}

static void says_why_the_report_cannot_be_written(void **state)
{
  static const char nowhere[] =
      RUNTIME "\"report\": \"nowhere/%p.json\", \"stack\": [{\"type\": \"limiting\", \"limit\": "
              "\"4MiB\"}, \"device\"]}";
  static const char *const arguments[] = {nowhere, "exit", NULL};
  (void)state;
  struct outcome outcome = run_again(arguments, NULL);
  assert_contains(outcome.error, "hipmm: error: report: cannot be written: /");
  assert_contains(outcome.error, "/nowhere/");
  assert_contains(outcome.error, "No such file or directory");
  assert_int_equal(outcome.status, 0);
}

int main(int argc, char **argv)
{
  if (argc == 3) return as_rank(argv[1], argv[2]);
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(writes_the_report_at_exit_and_at_the_end, start, finish),
      cmocka_unit_test_setup_teardown(appends_to_a_file_of_several_processes, start, finish),
      cmocka_unit_test_setup_teardown(asks_no_resource_that_may_be_locked, start, finish),
      cmocka_unit_test_setup_teardown(leaves_the_device_alone_unless_a_launcher_tells_the_rank, start, finish),
      cmocka_unit_test_setup_teardown(leaves_the_device_to_a_program_that_did_not_initialise_hipmm, start, finish),
      cmocka_unit_test_setup_teardown(writes_to_standard_error_if_asked_to, start, finish),
      cmocka_unit_test_setup_teardown(says_why_the_report_cannot_be_written, start, finish),
  };
  return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
