/* SPDX-License-Identifier: MIT */
/* Tests of logging: RMM's format to the letter, names of files, order, flushing, and what becomes of a log that
 * cannot be written. */
#include "../support/fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Starts logging over `source`, into `name` in the folder. */
static enum hipmm_status start_over(const char *source, const char *name, const char *more_options)
{
  char graph[600];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'logging', 'file': '%s/%s'%s}, '%s']", fixture_folder, name,
           more_options, source);
  return fixture_try("", graph);
}

static enum hipmm_status start(const char *name, const char *more_options)
{
  return start_over("device", name, more_options);
}

/* A file of the folder, to be freed; fails if it is not there. */
static char *read_log(const char *name)
{
  char *path = path_in(fixture_folder, name), *text = read_file(path, NULL);
  if (!text) print_error("%s is not there\n", path);
  free(path);
  assert_non_null(text);
  return text;
}

static bool is_there(const char *name)
{
  char *path = path_in(fixture_folder, name);
  bool there = access(path, F_OK) == 0;
  free(path);
  return there;
}

static void assert_matches(const char *text, const char *pattern)
{
  regex_t regex;
  assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
  int result = regexec(&regex, text, 0, NULL, 0);
  if (result) print_error("%s\ndoes not match\n%s\n", text, pattern);
  regfree(&regex);
  assert_int_equal(result, 0);
}

static void flush(void)
{
  assert_ok(hipmm_resource_perform(fixture_resource("logging"), "flush"));
}

#define TIME "[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{6}"

static void writes_what_rmm_writes(void **state)
{
  void *ptr = NULL;
  char pattern[1000];
  (void)state;
  assert_ok(start("log.csv", ""));
  hipmm_stream_t stream = fixture_stream();
  void *first = fixture_allocate(1000, NULL), *second = fixture_allocate(1, stream);
  assert_null(fixture_allocate(0, (hipmm_stream_t)1));
  assert_status(hipmm_allocate(NULL, SIZE_MAX, (hipmm_stream_t)2, &ptr), HIPMM_E_OUT_OF_MEMORY);
  fixture_free(first, 1000, NULL);
  fixture_free(second, 0, stream);
  flush();
  char *text = read_log("log.csv");
  long thread = syscall(SYS_gettid);
  snprintf(pattern, sizeof pattern,
           "^Thread,Time,Action,Pointer,Size,Stream\n"
           "%ld," TIME ",allocate,%p,1000,0\n"
           "%ld," TIME ",allocate,%p,1,%p\n"
           "%ld," TIME ",allocate,0x0,0,0x1\n"
           "%ld," TIME ",allocate failure,0x0,18446744073709551615,0x2\n"
           "%ld," TIME ",free,%p,1000,0\n"
           "%ld," TIME ",free,%p,1,%p\n$",
           thread, first, thread, second, (void *)stream, thread, thread, thread, first, thread, second,
           (void *)stream);
  assert_matches(text, pattern);
  free(text);
  fixture_drop_stream(stream);
}

static int rows_in(const char *name)
{
  char *text = read_log(name);
  int rows = 0;
  for (const char *c = text; *c; c++) rows += *c == '\n';
  free(text);
  return rows - 1;
}

static void writes_only_while_it_is_enabled(void **state)
{
  (void)state;
  assert_ok(start("log.csv", ", 'enabled': false"));
  void *first = fixture_allocate(1000, NULL);
  flush();
  assert_int_equal(rows_in("log.csv"), 0);
  assert_ok(hipmm_set("devices/0/logging/enabled", "true"));
  void *second = fixture_allocate(1000, NULL);
  fixture_free(first, 0, NULL);
  assert_ok(hipmm_set("devices/0/logging/enabled", "false"));
  fixture_free(second, 0, NULL);
  flush();
  assert_int_equal(rows_in("log.csv"), 2);
  assert_int_equal(fixture_value("logging", "rows"), 2);
  assert_status(hipmm_set("devices/0/logging/enabled", "maybe"), HIPMM_E_CONFIG);
  assert_message("devices/0/logging: /enabled: \"maybe\" is neither true nor false");
  assert_status(hipmm_set("devices/0/logging/file", "other.csv"), HIPMM_E_NOT_SUPPORTED);
  assert_message("file cannot be set while it is in use; of logging can be: enabled");
  assert_ok(hipmm_set("devices/0/logging/enabled", NULL));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_int_equal(fixture_value("logging", "rows"), 4);
}

static void writes_the_local_time(void **state)
{
  bool is_found = false;
  (void)state;
  assert_ok(start("log.csv", ""));
  time_t before = time(NULL);
  fixture_free(fixture_allocate(1, NULL), 1, NULL);
  time_t after = time(NULL);
  flush();
  char *text = read_log("log.csv");
  for (time_t second = before - 1; second <= after + 1; second++) {
    char time_text[12];
    strftime(time_text, sizeof time_text, ",%H:%M:%S.", localtime(&second));
    is_found |= strstr(text, time_text) != NULL;
  }
  free(text);
  assert_true(is_found);
}

static void tells_a_refused_free(void **state)
{
  (void)state;
  assert_ok(start("log.csv", ""));
  void *ptr = fixture_allocate(1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 7, NULL), HIPMM_E_SIZE);
  fixture_free(ptr, 1000, NULL);
  flush();
  char *text = read_log("log.csv");
  assert_matches(text, ",free,0x[0-9a-f]+,7,0\n[0-9]+," TIME ",free failure,0x[0-9a-f]+,7,0\n[0-9]+," TIME
                       ",free,0x[0-9a-f]+,1000,0\n$");
  free(text);
}

static void writes_at_the_latest_when_it_is_taken_down(void **state)
{
  (void)state;
  assert_ok(start("log.csv", ""));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_finalize());
  char *text = read_log("log.csv");
  assert_matches(text, ",free,0x[0-9a-f]+,1000,0\n$");
  free(text);
}

static void writes_each_row_at_once_if_asked_to(void **state)
{
  (void)state;
  assert_ok(start("log.csv", ", 'auto_flush': true"));
  void *ptr = fixture_allocate(1000, NULL);
  char *text = read_log("log.csv");
  assert_matches(text, ",allocate,0x[0-9a-f]+,1000,0\n$");
  free(text);
  fixture_free(ptr, 1000, NULL);
}

/* Run as another process: a program that ends with its stack live. */
static int exit_with_the_stack_live(void)
{
  void *ptr;
  return start("exit.csv", "") || hipmm_allocate(NULL, 1000, NULL, &ptr) ? 1 : 7;
}

/* Runs this program again, to do one thing (see main) in the same folder. */
static struct outcome run_role(const char *role)
{
  /* A leak checker cannot look at threads that are running when the process exits. */
  const char *const arguments[] = {role, fixture_folder, NULL}, *const environment[] = {"LSAN_OPTIONS=detect_leaks=0",
                                                                                        NULL};
  return run_again(arguments, environment);
}

static void writes_what_is_left_when_the_process_exits(void **state)
{
  (void)state;
  assert_int_equal(run_role("exit").status, 7);
  char *text = read_log("exit.csv");
  assert_matches(text, "^Thread[^\n]*\n[0-9]+," TIME ",allocate,0x[0-9a-f]+,1000,0\n$");
  free(text);
}

/* The log shares the stream with the program's own words, which stay, in their order. */
static int log_among_words(const char *name, FILE *stream)
{
  fputs("before\n", stream);
  fflush(stream);
  if (start(name, "")) return 1;
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  flush();
  fputs("between\n", stream);
  fflush(stream);
  fixture_free(fixture_allocate(0, NULL), 0, NULL);
  if (hipmm_finalize()) return 1;
  fputs("after\n", stream);
  return 0;
}

#define ROW(action, size) "[0-9]+," TIME "," action ",[^,]+," size ",0\n"
#define AMONG_WORDS                                                                                      \
  "^before\nThread[^\n]*\n" ROW("allocate", "1000") ROW("free", "1000") "between\n" ROW("allocate", "0") \
      ROW("free", "0") "after\n$"

static void writes_to_standard_output_and_error(void **state)
{
  static const char *const variables[] = {"LSAN_OPTIONS=detect_leaks=0", NULL};
  (void)state;
  struct outcome outcome = run_again((const char *const[]){"stdout", "/dev", NULL}, variables);
  assert_int_equal(outcome.status, 0);
  assert_matches(outcome.out, AMONG_WORDS);
  assert_string_equal(outcome.error, "");
  outcome = run_again((const char *const[]){"stderr", "/dev", NULL}, variables);
  assert_int_equal(outcome.status, 0);
  assert_matches(outcome.error, AMONG_WORDS);
  assert_string_equal(outcome.out, "");
}

/* Asked by the leak checker, which would wait for threads that a fork does not copy. */
static bool is_child;
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
  return is_child;
}

static int exit_at_once(const void *argument)
{
  (void)argument;
  is_child = true;
  exit(7);
}

static void writes_no_row_twice_when_a_child_exits(void **state)
{
  (void)state;
  assert_ok(start("log.csv", ""));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_int_equal(run_forked(exit_at_once, NULL).status, 7);
  flush();
  char *text = read_log("log.csv");
  assert_matches(text, "^Thread[^\n]*\n[^\n]*,allocate,[^\n]*\n[^\n]*,free,[^\n]*\n$");
  free(text);
}

static void overwrites_an_old_log(void **state)
{
  (void)state;
  char *path = path_in(fixture_folder, "log.csv");
  assert_true(write_file(path, "old and much longer than what comes\n\n\n\n\n\n\n\n\n\n\n", 40));
  assert_ok(start("log.csv", ""));
  char *text = read_log("log.csv");
  assert_string_equal(text, "Thread,Time,Action,Pointer,Size,Stream\n");
  free(text);
  free(path);
}

/* ---- Appending and rotating ---- */

static void appends_if_asked_to(void **state)
{
  (void)state;
  for (int run = 0; run < 2; run++) {
    assert_ok(start("log.csv", ", 'append': true"));
    fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
    assert_ok(hipmm_finalize());
  }
  char *text = read_log("log.csv");
  assert_matches(text, "^Thread,Time,[^\n]*\n[^\n]*,allocate,[^\n]*\n[^\n]*,free,[^\n]*\n[^\n]*,allocate,[^\n]*\n"
                       "[^\n]*,free,[^\n]*\n$");
  free(text);
}

/* No file is larger than it may be, each begins with the header, and no row is lost, however the program changes its
 * folder. */
static void rotates_at_its_size(void **state)
{
  enum { PAIRS = 5000, MOST_BYTES = 128 << 10 };
  char before[4096], name[40] = "log.csv";
  int rows = 0, files = 0;
  (void)state;
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(fixture_folder), 0);
  assert_ok(fixture_try("",
                        "'stack': [{'type': 'logging', 'file': 'log.csv', 'rotate_size': '128KiB', 'rotate_files': 99},"
                        " 'device']"));
  assert_int_equal(chdir(before), 0);
  for (int i = 0; i < PAIRS; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  flush();
  for (; is_there(name); snprintf(name, sizeof name, "log.csv.%d", ++files)) {
    char *text = read_log(name);
    assert_true(strlen(text) <= MOST_BYTES);
    assert_int_equal(strncmp(text, "Thread,Time,", 12), 0);
    free(text);
    rows += rows_in(name);
  }
  assert_int_equal(rows, 2 * PAIRS);
  assert_true(files >= 4);
}

static void drops_the_oldest_file(void **state)
{
  (void)state;
  assert_ok(start("log.csv", ", 'rotate_size': '128KiB'"));
  for (int i = 0; i < 5000; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  flush();
  assert_true(is_there("log.csv") && is_there("log.csv.1"));
  assert_false(is_there("log.csv.2"));
  assert_int_equal(fixture_value("logging", "lost_rows"), 0);
}

static void goes_on_where_it_cannot_rotate(void **state)
{
  (void)state;
  char *path = path_in(fixture_folder, "log.csv.1");
  assert_int_equal(mkdir(path, 0700), 0);
  assert_ok(start("log.csv", ", 'rotate_size': '128KiB'"));
  for (int i = 0; i < 3000; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  flush();
  assert_int_equal(rows_in("log.csv"), 6000);
  assert_int_equal(rmdir(path), 0);
  free(path);
}

static void refuses_sizes_that_are_too_small(void **state)
{
  (void)state;
  assert_status(start("log.csv", ", 'rotate_size': '4KiB'"), HIPMM_E_CONFIG);
  assert_message("/stack/0/rotate_size");
  assert_message("at least \"128KiB\"");
}

/* Run as another process, while this one writes the same file. */
static int write_the_same_file(void)
{
  printf("%ld\n", (long)getpid());
  return start("log.csv", "") || hipmm_finalize();
}

static void never_overwrites_the_log_of_another_process(void **state)
{
  char name[60];
  (void)state;
  assert_ok(start("log.csv", ""));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  struct outcome outcome = run_role("same");
  assert_int_equal(outcome.status, 0);
  flush();
  assert_int_equal(rows_in("log.csv"), 2);
  snprintf(name, sizeof name, "log.p%ld.csv", strtol(outcome.out, NULL, 10));
  assert_true(is_there(name));
}

/* ---- Names ---- */

static void puts_process_device_rank_and_host_into_the_name(void **state)
{
  char name[200];
  (void)state;
  struct utsname host;
  assert_int_equal(uname(&host), 0);
  assert_ok(start("a%p-%d-%r-100%%-%h.csv", ""));
  snprintf(name, sizeof name, "a%ld-0-0-100%%-%s.csv", (long)getpid(), host.nodename);
  assert_true(is_there(name));
}

/* What a launcher sets, and the rank that it means. */
struct rank {
  const char *variable, *value, *name;
};

static void takes_the_rank_from_the_launcher(void **state)
{
  static const struct rank ranks[] = {
      {"SLURM_PROCID", "3", "log.3.csv"}, {"RANK", "4", "log.4.csv"},      {"MV2_COMM_WORLD_RANK", "5", "log.5.csv"},
      {"PMI_RANK", "6", "log.6.csv"},     {"PMIX_RANK", "7", "log.7.csv"}, {"OMPI_COMM_WORLD_RANK", "8", "log.8.csv"},
  };
  (void)state;
  /* Each goes before those set already. */
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
    setenv(ranks[i].variable, ranks[i].value, 1);
    assert_ok(start("log.%r.csv", ""));
    assert_true(is_there(ranks[i].name));
    hipmm_finalize();
  }
  /* torchrun as one rank of another launcher: its own rank counts. */
  setenv("TORCHELASTIC_RUN_ID", "job", 1);
  setenv("RANK", "9", 1);
  assert_ok(start("log.%r.csv", ""));
  assert_true(is_there("log.9.csv"));
  hipmm_finalize();
  unsetenv("TORCHELASTIC_RUN_ID");
  setenv("HIPMM_RANK", "10", 1);
  assert_ok(start("log.%r.csv", ""));
  assert_true(is_there("log.10.csv"));
  hipmm_finalize();
  unsetenv("HIPMM_RANK");
  setenv("OMPI_COMM_WORLD_RANK", "none", 1); /* not a rank */
  assert_ok(start("log.%r.csv", ""));
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) unsetenv(ranks[i].variable);
}

static void refuses_unknown_letters(void **state)
{
  (void)state;
  assert_status(start("log-%x.csv", ""), HIPMM_E_CONFIG);
  assert_message("/stack/0/file");
  assert_message("unknown %x; write %p");
  assert_status(hipmm_finalize(), HIPMM_E_STATE); /* the graph was refused */
  assert_status(start("log-%", ""), HIPMM_E_CONFIG);
  assert_message("ends in %");
}

static void refuses_endless_names(void **state)
{
  (void)state;
  char *graph = malloc(6000);
  memset(graph, 'x', 5900);
  memcpy(graph, "'stack': [{'type': 'logging', 'file': '", 39);
  strcpy(graph + 5900, "'}, 'device']");
  assert_status(fixture_try("", graph), HIPMM_E_CONFIG);
  assert_message("too long");
  free(graph);
}

static void takes_rmms_variable_as_default(void **state)
{
  (void)state;
  char *path = path_in(fixture_folder, "rmm.%d.csv");
  setenv("RMM_LOG_FILE", path, 1);
  enum hipmm_status status = fixture_try("", "'stack': ['logging', 'device']");
  unsetenv("RMM_LOG_FILE");
  assert_ok(status);
  assert_true(is_there("rmm.0.csv"));
  free(path);
}

static void needs_a_name(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': ['logging', 'device']"), HIPMM_E_CONFIG);
  assert_message("the name of a file is missing");
  hipmm_finalize();
  assert_status(fixture_try("", "'stack': [{'type': 'logging', 'file': ''}, 'device']"), HIPMM_E_CONFIG);
  assert_message("/stack/0/file");
}

static void gives_each_device_a_log(void **state)
{
  struct hipmm_resource *second;
  void *ptr = NULL;
  (void)state;
  assert_ok(start("log.csv", ""));
  needs_devices(2);
  assert_ok(hipmm_resource_get_for_device(1, &second));
  assert_ok(hipmm_allocate(second, 1000, NULL, &ptr));
  assert_ok(hipmm_deallocate(second, ptr, 1000, NULL));
  assert_ok(hipmm_resource_perform(second, "flush"));
  hipmm_resource_release(second);
  char *first_text = read_log("log.csv"), *second_text = read_log("log.dev1.csv");
  assert_string_equal(first_text, "Thread,Time,Action,Pointer,Size,Stream\n");
  assert_matches(second_text, ",free,0x[0-9a-f]+,1000,0\n$");
  free(first_text);
  free(second_text);
}

/* The longest name that a system takes has no room for the number of a device. */
static void refuses_a_name_without_room_for_the_device(void **state)
{
  enum { LONGEST = 4095 };
  static char graph[5000];
  struct hipmm_resource *second = NULL;
  (void)state;
  size_t start_of_name = (size_t)snprintf(graph, sizeof graph, "'stack': [{'type': 'logging', 'file': '");
  size_t at =
      start_of_name + (size_t)snprintf(graph + start_of_name, sizeof graph - start_of_name, "%s", fixture_folder);
  while (at < start_of_name + LONGEST - 8) graph[at++] = '/';
  strcpy(graph + at, "/log.csv'}, 'device']");
  assert_ok(fixture_try("", graph));
  needs_devices(2);
  assert_status(hipmm_resource_get_for_device(1, &second), HIPMM_E_CONFIG);
  assert_message("written already by another logging resource");
  assert_null(second);
}

static void refuses_two_logs_in_one_file(void **state)
{
  char graph[800];
  (void)state;
  snprintf(
      graph, sizeof graph,
      "'stack': [{'type': 'logging', 'file': '%s/log.csv'}, {'type': 'logging', 'file': '%s/./log.csv'}, 'device']",
      fixture_folder, fixture_folder);
  assert_status(fixture_try("", graph), HIPMM_E_CONFIG);
  assert_message("written already by another logging resource");
}

static void says_why_a_file_cannot_be_written(void **state)
{
  (void)state;
  assert_status(start("missing/log.csv", ""), HIPMM_E_IO);
  assert_message("/stack/0/file");
  assert_message("its folder does not exist");
  hipmm_finalize();
  char *path = path_in(fixture_folder, "folder");
  assert_int_equal(mkdir(path, 0700), 0);
  assert_status(start("folder", ""), HIPMM_E_IO);
  assert_message("Is a directory");
  hipmm_finalize();
  free(path);
  path = path_in(fixture_folder, "pipe");
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_status(start("pipe", ""), HIPMM_E_IO); /* and does not hang */
  free(path);
}

/* A log tells of addresses and of when a program did what. */
static void lets_nobody_else_read_a_new_log(void **state)
{
  struct stat status;
  (void)state;
  mode_t before = umask(0);
  enum hipmm_status started = start("log.csv", "");
  umask(before);
  assert_ok(started);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  char *path = path_in(fixture_folder, "log.csv");
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0600);
  free(path);
}

/* Run as another process, which can open no new file when its log is full. */
static int rotate_without_descriptors(void)
{
  const struct rlimit none = {0, 0};
  if (start("log.csv", ", 'rotate_size': '128KiB'")) return 1;
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  if (setrlimit(RLIMIT_NOFILE, &none)) return 2;
  for (int i = 0; i < 2999; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  return hipmm_finalize();
}

static void says_why_a_log_is_not_rotated(void **state)
{
  (void)state;
  struct outcome outcome = run_role("rotate");
  assert_int_equal(outcome.status, 0);
  assert_contains(outcome.error, "/log.csv is not rotated any more: Too many open files");
  assert_int_equal(rows_in("log.csv.1"), 6000);
}

/* ---- Losing rows ---- */

static void goes_on_when_the_disk_is_full(void **state)
{
  (void)state;
  if (access("/dev/full", W_OK)) {
    print_message("no /dev/full here\n");
    return;
  }
  assert_status(fixture_try("", "'stack': [{'type': 'logging', 'file': '/dev/full'}, 'device']"), HIPMM_E_IO);
  assert_message("No space left");
}

/* The rows are written when the resource goes. */
static void goes_on_when_the_reader_of_a_pipe_goes(void **state)
{
  char *path = path_in(fixture_folder, "pipe");
  (void)state;
  assert_int_equal(mkfifo(path, 0600), 0);
  int reader = open(path, O_RDONLY | O_NONBLOCK);
  assert_ok(start("pipe", ""));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  close(reader);
  for (int i = 0; i < 1000; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_finalize());
  sigset_t pending;
  sigpending(&pending);
  assert_false(sigismember(&pending, SIGPIPE));
  fixture_start("'stack': ['device']"); /* for the teardown */
  free(path);
}

/* Run as another process, where files may not grow beyond a page. */
static int fill_a_small_file(void)
{
  const struct rlimit limit = {4096, 4096};
  if (start_over("host", "log.csv", "")) return 1; /* the software device's memory is a file too */
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 1000; i++) {
    void *ptr;
    if (hipmm_allocate(NULL, 256, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 256, NULL)) return 2;
  }
  struct hipmm_resource *resource;
  int64_t rows = 0, lost = 0;
  if (hipmm_resource_get_for_device(0, &resource)) return 3;
  if (hipmm_resource_perform(resource, "flush") != HIPMM_E_IO) return 4;
  if (hipmm_resource_perform(resource, "flush") != HIPMM_OK) return 5; /* nothing new was lost */
  if (hipmm_resource_query(resource, "rows", &rows) || rows != 2000) return 6;
  if (hipmm_resource_query(resource, "lost_rows", &lost) || lost < 1) return 7;
  return 0;
}

static void says_that_rows_were_lost(void **state)
{
  (void)state;
  struct outcome outcome = run_role("fill");
  assert_int_equal(outcome.status, 0);
  assert_contains(outcome.error, "rows are lost");
}

/* Run as another process, which closes all files, as daemons do, and has one of its own in the place of the log. */
static int close_the_log(void)
{
  struct hipmm_resource *resource;
  char *path = path_in(fixture_folder, "log.csv"), *own = path_in(fixture_folder, "own");
  if (start("log.csv", "")) return 1;
  int descriptor = take_place_of_file(path, own);
  if (descriptor < 0) return 2;
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  if (hipmm_resource_get_for_device(0, &resource) || hipmm_resource_perform(resource, "flush") != HIPMM_E_IO) return 3;
  printf("%s\n", hipmm_last_error_message());
  fflush(stdout);
  hipmm_resource_release(resource);
  if (hipmm_finalize()) return 4;
  free(path);
  free(own);
  return write(descriptor, "mine", 4) == 4 && !close(descriptor) ? 0 : 5;
}

static void writes_into_no_file_of_the_program(void **state)
{
  (void)state;
  struct outcome outcome = run_role("close");
  assert_int_equal(outcome.status, 0);
  assert_contains(outcome.out, "rows were lost: the program has closed its descriptor");
  assert_contains(outcome.error, "the log cannot be written: the program has closed its descriptor");
  char *text = read_log("own");
  assert_string_equal(text, "mine");
  free(text);
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 10000 };

static pthread_barrier_t start_line;

static void allocate_and_free(int *failures)
{
  pthread_barrier_wait(&start_line);
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr;
    enum hipmm_status status = hipmm_allocate(NULL, 1000, NULL, &ptr);
    if (!status) status = hipmm_deallocate(NULL, ptr, 1000, NULL);
    *failures += status != HIPMM_OK;
  }
}

static void run_threads(void)
{
  pthread_barrier_init(&start_line, NULL, THREADS);
  fixture_run_threads(THREADS, allocate_and_free);
  pthread_barrier_destroy(&start_line);
}

enum { MOST_ADDRESSES = 64 };

/* Reads the rows in order: times do not go back, no address is allocated twice without a free between, or freed when it
 * is not allocated. Returns how many rows there are. */
static int count_in_true_order(const char *text)
{
  uintptr_t live[MOST_ADDRESSES] = {0};
  const char *before = NULL;
  int rows = 0;
  for (const char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1, rows++) {
    const char *time = strchr(line, ',') + 1, *action = strchr(time, ',') + 1;
    bool is_free = !strncmp(action, "free,", 5), is_midnight = before && !strncmp(before, "23:59", 5);
    assert_true(!before || is_midnight || strncmp(before, time, 15) <= 0);
    before = time;
    uintptr_t address = strtoull(strchr(action, ',') + 1, NULL, 16);
    int at = 0, unused = 0;
    while (at < MOST_ADDRESSES && live[at] != address) at++;
    while (unused < MOST_ADDRESSES && live[unused]) unused++;
    assert_true(is_free ? at < MOST_ADDRESSES : at == MOST_ADDRESSES && unused < MOST_ADDRESSES);
    live[is_free ? at : unused] = is_free ? 0 : address;
  }
  return rows;
}

static void start_over_pool(const char *name)
{
  char graph[600];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'logging', 'file': '%s/%s'}, 'pool', 'device']", fixture_folder,
           name);
  fixture_start(graph);
}

/* Where what a thread frees is what the next thread gets. */
static void start_over_fixed_size(const char *name)
{
  char graph[600];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'logging', 'file': '%s/%s'}, 'fixed_size', 'device']",
           fixture_folder, name);
  fixture_start(graph);
}

static void assert_rows(const char *name, int rows)
{
  char *text = read_log(name);
  assert_int_equal(count_in_true_order(text), rows);
  free(text);
}

static void keeps_rows_of_threads_in_true_order(void **state)
{
  (void)state;
  start_over_fixed_size("log.csv");
  run_threads();
  assert_int_equal(fixture_value("logging", "rows"), 2 * THREADS * ROUNDS);
  flush();
  assert_rows("log.csv", 2 * THREADS * ROUNDS);
}

/* More rows than there is room for, faster than they can be written. */
static void drops_no_row_when_it_is_late(void **state)
{
  enum { MANY = 50000 };
  (void)state;
  start_over_pool("log.csv");
  for (int i = 0; i < MANY; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_int_equal(fixture_value("logging", "rows"), 2 * MANY);
  assert_int_equal(fixture_value("logging", "lost_rows"), 0);
  assert_true(fixture_value("logging", "metadata_bytes") < 2 * (int64_t)MIB);
  flush();
  assert_rows("log.csv", 2 * MANY);
}

/* One thread allocates, the other frees, through a single place. */
struct handover {
  void *_Atomic place;
  int failures;
};

static char no_more;

static void *free_what_comes(void *argument)
{
  struct handover *handover = argument;
  for (;;) {
    void *ptr = atomic_exchange(&handover->place, NULL);
    if (ptr == &no_more) return NULL;
    if (ptr)
      handover->failures += hipmm_deallocate(NULL, ptr, 1000, NULL) != 0;
    else
      sched_yield();
  }
}

static void hand_over(struct handover *handover, void *ptr)
{
  for (void *none = NULL; !atomic_compare_exchange_strong(&handover->place, &none, ptr); none = NULL) sched_yield();
}

static void keeps_the_order_of_blocks_that_change_threads(void **state)
{
  pthread_t thread;
  struct handover handover = {NULL, 0};
  int failures = 0;
  (void)state;
  start_over_pool("log.csv");
  assert_int_equal(pthread_create(&thread, NULL, free_what_comes, &handover), 0);
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr;
    if (hipmm_allocate(NULL, 1000, NULL, &ptr))
      failures++;
    else
      hand_over(&handover, ptr);
  }
  hand_over(&handover, &no_more);
  pthread_join(thread, NULL);
  assert_int_equal(failures + handover.failures, 0);
  flush();
  assert_rows("log.csv", 2 * ROUNDS);
}

static void *allocate_and_free_once(void *failures)
{
  void *ptr;
  *(int *)failures += hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 1000, NULL);
  return NULL;
}

static void keeps_the_rows_of_threads_that_ended(void **state)
{
  enum { MANY = 300 };
  int failures = 0;
  (void)state;
  start_over_pool("log.csv");
  for (int i = 0; i < MANY; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_and_free_once, &failures), 0);
    pthread_join(thread, NULL);
    if (i % 10 == 9) flush(); /* a loaded machine's writer would not get to it by itself */
  }
  assert_int_equal(failures, 0);
  assert_int_equal(fixture_value("logging", "rows"), 2 * MANY);
  assert_true(fixture_value("logging", "metadata_bytes") < 8 * (int64_t)MIB); /* their memory is used again */
  flush();
  assert_rows("log.csv", 2 * MANY);
}

static void writes_soon_without_being_asked(void **state)
{
  (void)state;
  start_over_pool("log.csv");
  for (int turn = 0; turn < 3; turn++) { /* the writer goes to sleep in between */
    int rows = 0;
    fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
    for (int i = 0; i < 500 && rows < 2 * turn + 2; i++) {
      usleep(10000);
      char *text = read_log("log.csv");
      rows = count_in_true_order(text);
      free(text);
    }
    assert_int_equal(rows, 2 * turn + 2);
    usleep(30000);
  }
}

/* More logs than a thread remembers: it finds its place in each of them again. */
static void keeps_one_place_for_a_thread_in_each_of_many_logs(void **state)
{
  enum { LOGS = 80 };
  struct hipmm_resource *logs[LOGS], *device;
  int64_t bytes = 0;
  (void)state;
  fixture_start("'stack': ['device']");
  device = fixture_resource("device");
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < LOGS; i++) {
      char options[500];
      void *ptr = NULL;
      snprintf(options, sizeof options, "{\"file\": \"%s/%d.csv\"}", fixture_folder, i);
      if (!round) assert_ok(hipmm_resource_create(0, "logging", options, &device, 1, &logs[i]));
      assert_ok(hipmm_allocate(logs[i], 1000, NULL, &ptr));
      assert_ok(hipmm_deallocate(logs[i], ptr, 1000, NULL));
      if (!round && !i) bytes = resource_value(logs[i], "metadata_bytes");
      assert_int_equal(resource_value(logs[i], "metadata_bytes"), bytes);
    }
  for (int i = 0; i < LOGS; i++) hipmm_resource_release(logs[i]);
}

static void writes_two_logs_of_one_stack(void **state)
{
  char graph[1200];
  (void)state;
  snprintf(graph, sizeof graph,
           "'stack': [{'type': 'logging', 'file': '%s/above.csv'}, {'type': 'logging', 'file': '%s/below.csv'}, "
           "'pool', 'device']",
           fixture_folder, fixture_folder);
  fixture_start(graph);
  run_threads();
  assert_ok(hipmm_finalize());
  assert_rows("above.csv", 2 * THREADS * ROUNDS);
  assert_rows("below.csv", 2 * THREADS * ROUNDS);
}

/* ---- Hard times; run as other processes ---- */

static void *allocate_for_ever(void *rounds)
{
  void *ptr;
  while (!hipmm_allocate(NULL, 1000, NULL, &ptr)) {
    hipmm_deallocate(NULL, ptr, 1000, NULL);
    atomic_fetch_add((atomic_int *)rounds, 1);
  }
  return NULL;
}

/* Exits while threads are allocating. */
static int exit_when_busy(void)
{
  char graph[600];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'logging', 'file': '%s/exit.csv'}, 'pool', 'device']",
           fixture_folder);
  if (fixture_try("", graph)) return 1;
  static atomic_int rounds[2];
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_for_ever, &rounds[i])) return 2;
  }
  while (atomic_load(&rounds[0]) < ROUNDS || atomic_load(&rounds[1]) < ROUNDS) sched_yield();
  exit(7);
}

/* What is there is whole and in order, but for the very last row, which the end may have cut. */
static void leaves_a_good_log_when_threads_are_busy_at_exit(void **state)
{
  (void)state;
  assert_int_equal(run_role("exit-busy").status, 7);
  char *text = read_log("exit.csv"), *end = strrchr(text, '\n');
  assert_non_null(end);
  end[1] = '\0';
  assert_true(count_in_true_order(text) >= 4 * ROUNDS - 1);
  free(text);
}

struct starved {
  pthread_barrier_t turn; /* the thread is ready, and there is no more memory */
  int failures;
};

static void *allocate_without_memory(void *argument)
{
  struct starved *starved = argument;
  int device;
  starved->failures +=
      fixture_hip()->GetDevice(&device) != 0; /* the thread's own data of the library and the runtime */
  (void)hipmm_last_error_message();
  pthread_barrier_wait(&starved->turn);
  pthread_barrier_wait(&starved->turn);
  for (int i = 0; i < 100; i++) {
    void *ptr;
    enum hipmm_status status = hipmm_allocate(NULL, 1000, NULL, &ptr);
    starved->failures += status || hipmm_deallocate(NULL, ptr, 1000, NULL);
  }
  return NULL;
}

/* A thread that can have no memory for its rows. */
static int log_without_memory(void)
{
  pthread_t thread;
  struct starved starved = {.failures = 0};
  void *ptr;
  const struct rlimit none = {1, 1};
  if (start_over("host", "log.csv", "") || hipmm_allocate(NULL, 1000, NULL, &ptr)) return 1;
  pthread_barrier_init(&starved.turn, NULL, 2);
  if (pthread_create(&thread, NULL, allocate_without_memory, &starved)) return 2;
  pthread_barrier_wait(&starved.turn);
  setrlimit(RLIMIT_AS, &none);
  pthread_barrier_wait(&starved.turn);
  pthread_join(thread, NULL);
  if (hipmm_deallocate(NULL, ptr, 1000, NULL)) return 3;
  return starved.failures ? 4 : 7;
}

static void logs_without_memory_for_it(void **state)
{
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  print_message("the sanitizer needs memory itself\n");
#else
  assert_int_equal(run_role("starve").status, 7);
  assert_rows("log.csv", 202);
#endif
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup_folder, fixture_teardown_folder)

static int play_role(const char *role)
{
  if (!strcmp(role, "exit")) return exit_with_the_stack_live();
  if (!strcmp(role, "stdout")) return log_among_words("stdout", stdout);
  if (!strcmp(role, "stderr")) return log_among_words("stderr", stderr);
  if (!strcmp(role, "exit-busy")) return exit_when_busy();
  if (!strcmp(role, "same")) return write_the_same_file();
  if (!strcmp(role, "close")) return close_the_log();
  if (!strcmp(role, "rotate")) return rotate_without_descriptors();
  return strcmp(role, "starve") ? fill_a_small_file() : log_without_memory();
}

int main(int argc, char **argv)
{
  if (argc == 3) {
    fixture_folder = argv[2];
    return play_role(argv[1]);
  }
  const struct CMUnitTest tests[] = {
      TEST(writes_what_is_left_when_the_process_exits),
      TEST(writes_to_standard_output_and_error),
      TEST(says_that_rows_were_lost),
      TEST(says_why_a_log_is_not_rotated),
      TEST(writes_into_no_file_of_the_program),
      TEST(leaves_a_good_log_when_threads_are_busy_at_exit),
      TEST(logs_without_memory_for_it),
      TEST(never_overwrites_the_log_of_another_process),
      TEST(writes_what_rmm_writes),
      TEST(writes_only_while_it_is_enabled),
      TEST(writes_the_local_time),
      TEST(tells_a_refused_free),
      TEST(writes_at_the_latest_when_it_is_taken_down),
      TEST(writes_each_row_at_once_if_asked_to),
      TEST(writes_no_row_twice_when_a_child_exits),
      TEST(overwrites_an_old_log),
      TEST(appends_if_asked_to),
      TEST(rotates_at_its_size),
      TEST(drops_the_oldest_file),
      TEST(goes_on_where_it_cannot_rotate),
      TEST(refuses_sizes_that_are_too_small),
      TEST(puts_process_device_rank_and_host_into_the_name),
      TEST(takes_the_rank_from_the_launcher),
      TEST(refuses_unknown_letters),
      TEST(refuses_endless_names),
      TEST(takes_rmms_variable_as_default),
      TEST(needs_a_name),
      TEST(gives_each_device_a_log),
      TEST(refuses_a_name_without_room_for_the_device),
      TEST(refuses_two_logs_in_one_file),
      TEST(says_why_a_file_cannot_be_written),
      TEST(lets_nobody_else_read_a_new_log),
      TEST(goes_on_when_the_disk_is_full),
      TEST(goes_on_when_the_reader_of_a_pipe_goes),
      TEST(keeps_rows_of_threads_in_true_order),
      TEST(drops_no_row_when_it_is_late),
      TEST(keeps_the_order_of_blocks_that_change_threads),
      TEST(keeps_the_rows_of_threads_that_ended),
      TEST(writes_soon_without_being_asked),
      TEST(keeps_one_place_for_a_thread_in_each_of_many_logs),
      TEST(writes_two_logs_of_one_stack),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
