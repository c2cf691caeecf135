/* SPDX-License-Identifier: MIT */
/* Tests of core/base/log.c: levels and files of the debug log. The log is set up once per process, from the
 * environment, so every case runs in a process of its own. */
#include "../../core/base/log.h"
#include "../support/support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- What runs in the processes ---- */

static int speaks_at_every_level(const void *variable)
{
  if (variable) setenv("HIPMM_LOG", variable, 1);
  log_line(HIPMM_LOG_ERROR, NULL, "one %d", 1);
  log_line(HIPMM_LOG_WARNING, "pool", "two");
  log_line(HIPMM_LOG_INFO, "pool", "three");
  log_line(HIPMM_LOG_DEBUG, NULL, "four");
  log_line(HIPMM_LOG_TRACE, NULL, "five");
  int wanted = 0;
  for (int level = HIPMM_LOG_ERROR; level <= HIPMM_LOG_TRACE; level++)
    wanted |= log_wants((enum hipmm_log_level)level) << level;
  return wanted;
}

static int speaks_at_length(const void *variable)
{
  static char text[10000];
  setenv("HIPMM_LOG", variable, 1);
  memset(text, 'x', sizeof text - 1);
  log_line(HIPMM_LOG_ERROR, text, "%s", text);
  log_line(HIPMM_LOG_ERROR, NULL, "end");
  return 0;
}

/* In code instead of the environment, at any time. `folder` is the working directory. */
static int sets_up_the_log_in_code(const void *folder)
{
  if (chdir(folder) || hipmm_log_get_level() != HIPMM_LOG_WARNING) return 1;
  log_line(HIPMM_LOG_WARNING, NULL, "to standard error");
  if (hipmm_log_set_file("one") || hipmm_log_set_level(HIPMM_LOG_DEBUG)) return 2;
  log_line(HIPMM_LOG_DEBUG, NULL, "to one");
  log_line(HIPMM_LOG_TRACE, NULL, "nowhere");
  if (hipmm_log_set_file("two")) return 3;
  log_line(HIPMM_LOG_DEBUG, NULL, "to two");
  if (hipmm_log_set_file("missing/file") != HIPMM_E_IO || !strstr(hipmm_last_error_message(), "missing/file")) return 4;
  if (hipmm_log_set_file("") != HIPMM_E_ARGUMENT || !strstr(hipmm_last_error_message(), "path is empty")) return 10;
  if (hipmm_log_set_file("one")) return 5;
  log_line(HIPMM_LOG_DEBUG, NULL, "to one again");
  if (hipmm_log_set_level(HIPMM_LOG_OFF) || hipmm_log_get_level() != HIPMM_LOG_OFF) return 6;
  log_line(HIPMM_LOG_ERROR, NULL, "nowhere");
  if (hipmm_log_set_level((enum hipmm_log_level)5) != HIPMM_E_ARGUMENT) return 7;
  if (hipmm_log_set_level((enum hipmm_log_level) - 2) != HIPMM_E_ARGUMENT) return 8;
  if (hipmm_log_set_level(HIPMM_LOG_ERROR) || hipmm_log_set_file(NULL)) return 9;
  log_line(HIPMM_LOG_ERROR, NULL, "to standard error");
  return 0;
}

enum { THREADS = 4, LINES = 300 };

static void *speak_often(void *closure)
{
  const char *word = closure;
  for (int i = 0; i < LINES; i++) log_line(HIPMM_LOG_ERROR, word, "%d %s %s %s %s", i, word, word, word, word);
  return NULL;
}

static int speaks_in_many_threads(const void *variable)
{
  static char *const words[THREADS] = {"north", "south", "east", "west"};
  pthread_t threads[THREADS];
  setenv("HIPMM_LOG", variable, 1);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, speak_often, words[i])) return 1;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  return 0;
}

/* ---- Levels ---- */

struct level {
  const char *name, *variable;
  int wanted;
  const char *expected;
};

#define ONE         "hipmm: error: one 1\n"
#define TWO         "hipmm: warning: pool: two\n"
#define THREE       "hipmm: info: pool: three\n"
#define FOUR        "hipmm: debug: four\n"
#define FIVE        "hipmm: trace: five\n"
#define NOT_A_LEVEL ": not a level; write off, error, warning, info, debug or trace, then :FILE\n"

static const struct level levels[] = {
    {"by default: warnings and errors", NULL, 3, ONE TWO},
    {"empty: as by default", "", 3, ONE TWO},
    {"off: nothing", "off", 0, ""},
    {"error: errors", "error", 1, ONE},
    {"warning: warnings and errors", "warning", 3, ONE TWO},
    {"info: those and what is said", "info", 7, ONE TWO THREE},
    {"debug: nearly all", "debug", 15, ONE TWO THREE FOUR},
    {"trace: all", "trace", 31, ONE TWO THREE FOUR FIVE},
    {"a level without its file: standard error", "info:", 7, ONE TWO THREE},
    {"a word that is no level: said once, then as by default", "loud", 3,
     "hipmm: warning: HIPMM_LOG=loud" NOT_A_LEVEL ONE TWO},
    {"the beginning of a level is none", "inf", 3, "hipmm: warning: HIPMM_LOG=inf" NOT_A_LEVEL ONE TWO},
    {"a level and more is none", "info,x", 3, "hipmm: warning: HIPMM_LOG=info,x" NOT_A_LEVEL ONE TWO},
    {"a file without a level is none", ":/dev/null", 3, "hipmm: warning: HIPMM_LOG=:/dev/null" NOT_A_LEVEL ONE TWO},
    {"a file that cannot be written: said, then standard error", "info:/nowhere/log", 7,
     "hipmm: warning: HIPMM_LOG: /nowhere/log: No such file or directory; logging to standard error\n" ONE TWO THREE},
    {"a folder as file: said, then standard error", "error:/", 1,
     "hipmm: warning: HIPMM_LOG: /: Is a directory; logging to standard error\n" ONE},
    {"an unknown letter in the name: said, then standard error", "error:/tmp/%q", 1,
     "hipmm: warning: HIPMM_LOG: \"/tmp/%q\": unknown %q; write %p for the process, %h for the host, %r for the rank, "
     "%% "
     "for a percent sign; logging to standard error\n" ONE},
};

static void writes_level(void **state)
{
  const struct level *row = *state;
  struct outcome outcome = run_forked(speaks_at_every_level, row->variable);
  assert_int_equal(outcome.status, row->wanted);
  assert_string_equal(outcome.error, row->expected);
  assert_string_equal(outcome.out, "");
}

/* ---- Files ---- */

/* Whether the line begins "HH:MM:SS.uuuuuu PID " and goes on with `rest`. */
static bool is_stamped(const char *line, const char *rest)
{
  unsigned hours, minutes, seconds, microseconds, process;
  int length = 0;
  int found = sscanf(line, "%2u:%2u:%2u.%6u %u %n", &hours, &minutes, &seconds, &microseconds, &process, &length);
  return found == 5 && hours < 24 && minutes < 60 && seconds <= 60 && process > 1 &&
         !strncmp(line + length, rest, strlen(rest));
}

static char *variable_for(const char *level, const char *folder)
{
  char *variable;
  return asprintf(&variable, "%s:%s/log", level, folder) < 0 ? NULL : variable;
}

static void appends_to_a_file(void **state)
{
  (void)state;
  char *folder = new_folder(), *variable = variable_for("info", folder), *file = path_in(folder, "log");
  for (int i = 0; i < 2; i++) {
    struct outcome outcome = run_forked(speaks_at_every_level, variable);
    assert_int_equal(outcome.status, 7);
    assert_string_equal(outcome.error, "");
  }
  char *text = read_file(file, NULL), *next = text;
  static const char *const expected[] = {ONE, TWO, THREE, ONE, TWO, THREE};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    assert_non_null(next);
    assert_true(is_stamped(next, expected[i]));
    next = strchr(next, '\n') + 1;
  }
  assert_string_equal(next, "");
  free(text);
  free(file);
  free(variable);
  remove_folder(folder);
}

static int speaks_and_tells_its_process(const void *variable)
{
  printf("%ld\n", (long)getpid());
  fflush(stdout);
  return speaks_at_every_level(variable);
}

static void expands_the_name_of_the_file(void **state)
{
  char *folder = new_folder(), *variable, name[300], *file;
  struct utsname host;
  (void)state;
  assert_true(asprintf(&variable, "error:%s/%%p-%%h-%%r-%%%%", folder) > 0);
  setenv("PMIX_RANK", "3", 1);
  struct outcome outcome = run_forked(speaks_and_tells_its_process, variable);
  unsetenv("PMIX_RANK");
  assert_int_equal(outcome.status, 1);
  assert_int_equal(uname(&host), 0);
  snprintf(name, sizeof name, "%ld-%s-3-%%", strtol(outcome.out, NULL, 10), host.nodename);
  file = path_in(folder, name);
  char *text = read_file(file, NULL);
  assert_non_null(text);
  assert_true(is_stamped(text, ONE));
  free(text);
  free(file);
  free(variable);
  remove_folder(folder);
}

/* The alarm ends a process that waits. */
static int speaks_within_seconds(const void *variable)
{
  alarm(5);
  return speaks_at_every_level(variable);
}

static void does_not_wait_for_a_reader(void **state)
{
  char expected[500], *folder = new_folder(), *variable = variable_for("info", folder), *file = path_in(folder, "log");
  (void)state;
  assert_int_equal(mkfifo(file, 0600), 0);
  struct outcome outcome = run_forked(speaks_within_seconds, variable);
  snprintf(expected, sizeof expected,
           "hipmm: warning: HIPMM_LOG: %s: it is a pipe that nobody reads, or a socket; logging to standard error\n",
           file);
  assert_int_equal(outcome.status, 7);
  assert_memory_equal(outcome.error, expected, strlen(expected));
  assert_string_equal(outcome.error + strlen(expected), ONE TWO THREE);
  free(file);
  free(variable);
  remove_folder(folder);
}

static void writes_into_a_pipe_that_is_read(void **state)
{
  char text[500] = "", *folder = new_folder(), *variable = variable_for("error", folder),
       *file = path_in(folder, "log");
  (void)state;
  assert_int_equal(mkfifo(file, 0600), 0);
  int reader = open(file, O_RDONLY | O_NONBLOCK);
  struct outcome outcome = run_forked(speaks_within_seconds, variable);
  assert_int_equal(outcome.status, 1);
  assert_string_equal(outcome.error, "");
  assert_true(read(reader, text, sizeof text - 1) > 0);
  assert_true(is_stamped(text, ONE));
  close(reader);
  free(file);
  free(variable);
  remove_folder(folder);
}

static int speaks_on_without_a_reader(const void *variable)
{
  int reader = open(strchr(variable, '/'), O_RDONLY | O_NONBLOCK);
  if (speaks_within_seconds(variable) != 1 || close(reader)) return 2;
  return speaks_within_seconds(variable);
}

static void goes_on_when_the_reader_of_a_pipe_goes(void **state)
{
  char *folder = new_folder(), *variable = variable_for("error", folder), *file = path_in(folder, "log");
  (void)state;
  assert_int_equal(mkfifo(file, 0600), 0);
  struct outcome outcome = run_forked(speaks_on_without_a_reader, variable);
  assert_int_equal(outcome.status, 1);
  free(file);
  free(variable);
  remove_folder(folder);
}

static void writes_to_standard_error_by_its_name(void **state)
{
  (void)state;
  struct outcome outcome = run_forked(speaks_within_seconds, "error:/dev/stderr");
  assert_int_equal(outcome.status, 1);
  assert_true(is_stamped(outcome.error, ONE));
}

/* Standard error is a file, in which the program and the log write one behind the other. */
static int speaks_between_lines_of_the_program(const void *path)
{
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, STDERR_FILENO) < 0) return 0;
  setenv("HIPMM_LOG", "error:/dev/stderr", 1);
  ssize_t written = write(STDERR_FILENO, "before\n", 7);
  log_line(HIPMM_LOG_ERROR, NULL, "between");
  return written + write(STDERR_FILENO, "after\n", 6) == 13;
}

static void shares_the_place_in_standard_error(void **state)
{
  (void)state;
  char *folder = new_folder(), *path = path_in(folder, "both");
  assert_int_equal(run_forked(speaks_between_lines_of_the_program, path).status, 1);
  char *text = read_file(path, NULL);
  assert_memory_equal(text, "before\n", 7);
  const char *between = strstr(text, "between\n");
  assert_non_null(between);
  assert_string_equal(between, "between\nafter\n");
  free(text);
  free(path);
  remove_folder(folder);
}

/* In a folder that every user can write, the link may be another user's. */
static void follows_links_in_folders_of_its_own_alone(void **state)
{
  char *folder = new_folder(), *variable = variable_for("error", folder), *file = path_in(folder, "log");
  char *target = path_in(folder, "target");
  (void)state;
  write_file(target, "", 0);
  assert_int_equal(symlink(target, file), 0);
  assert_int_equal(chmod(folder, 01777), 0);
  struct outcome outcome = run_forked(speaks_within_seconds, variable);
  assert_non_null(strstr(outcome.error, "/log: it is a symbolic link in a folder where other users"));
  assert_non_null(strstr(outcome.error, "; logging to standard error\n" ONE));
  char *text = read_file(target, NULL);
  assert_string_equal(text, "");
  free(text);
  assert_int_equal(chmod(folder, 0700), 0);
  assert_string_equal(run_forked(speaks_within_seconds, variable).error, "");
  text = read_file(target, NULL);
  assert_true(is_stamped(text, ONE));
  free(text);
  free(target);
  free(file);
  free(variable);
  remove_folder(folder);
}

/* Only root can make such a file. */
enum { NOBODY = 65534 };

static void writes_no_file_of_another_user(void **state)
{
  char *folder = new_folder(), *variable = variable_for("error", folder), *file = path_in(folder, "log");
  (void)state;
  write_file(file, "", 0);
  if (!chown(file, NOBODY, NOBODY)) {
    assert_int_equal(chmod(folder, 01777), 0);
    struct outcome outcome = run_forked(speaks_within_seconds, variable);
    assert_non_null(
        strstr(outcome.error, "/log: it is of another user, in a folder where other users can put files, or"));
    char *text = read_file(file, NULL);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_string_equal(run_forked(speaks_within_seconds, variable).error, "");
    assert_int_equal(chmod(folder, 01777), 0);
    assert_int_equal(chown(folder, NOBODY, NOBODY), 0); /* the folder's owner is trusted with its files */
    assert_string_equal(run_forked(speaks_within_seconds, variable).error, "");
  }
  free(file);
  free(variable);
  remove_folder(folder);
}

/* Another user may have made the name, where fs.protected_hardlinks is 0. */
static void writes_no_file_that_has_another_name(void **state)
{
  char *folder = new_folder(), *shared = path_in(folder, "shared"), *target = path_in(folder, "target");
  char *variable = variable_for("error", shared), *file = path_in(shared, "log");
  (void)state;
  write_file(target, "", 0);
  assert_int_equal(mkdir(shared, 0700), 0);
  assert_int_equal(link(target, file), 0);
  assert_int_equal(chmod(shared, 01777), 0);
  struct outcome outcome = run_forked(speaks_within_seconds, variable);
  assert_non_null(strstr(outcome.error,
                         "/log: it has another name (a hard link), and is in a folder where other users can "
                         "put files; logging to standard error\n" ONE));
  char *text = read_file(target, NULL);
  assert_string_equal(text, "");
  free(text);
  assert_int_equal(chmod(shared, 0700), 0);
  assert_string_equal(run_forked(speaks_within_seconds, variable).error, "");
  assert_int_equal(chmod(shared, 01777), 0);
  assert_int_equal(unlink(target), 0);
  assert_string_equal(run_forked(speaks_within_seconds, variable).error, "");
  text = read_file(file, NULL);
  assert_true(is_stamped(text, ONE));
  assert_true(is_stamped(strchr(text, '\n') + 1, ONE));
  free(text);
  free(file);
  free(variable);
  free(target);
  free(shared);
  remove_folder(folder);
}

/* A server of files that takes root for nobody gives nobody what root makes. */
static int speaks_as_nobody_to_files(const void *folder)
{
  if (chdir(folder)) return 0;
  setfsuid(NOBODY);
  return speaks_within_seconds("error:log");
}

static void trusts_the_file_that_it_makes(void **state)
{
  char *folder = new_folder(), *file = path_in(folder, "log");
  struct stat status;
  (void)state;
  assert_int_equal(chmod(folder, 01777), 0);
  struct outcome outcome = run_forked(speaks_as_nobody_to_files, folder);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 1);
  assert_int_equal(stat(file, &status), 0);
  if (!geteuid()) assert_int_equal(status.st_uid, NOBODY);
  free(file);
  remove_folder(folder);
}

static int speaks_without_standard_output(const void *variable)
{
  close(STDOUT_FILENO);
  return speaks_within_seconds(variable);
}

static void tells_of_a_standard_stream_that_is_not_there(void **state)
{
  (void)state;
  assert_string_equal(
      run_forked(speaks_without_standard_output, "error:/dev/stdout").error,
      "hipmm: warning: HIPMM_LOG: /dev/stdout: the program runs without this standard stream; logging to "
      "standard error\n" ONE);
}

static void close_from(int file)
{
  for (; file < 100; file++) close(file);
}

/* As daemons do. The file of its own gets the number of the log's. 0, or what is wrong. */
static int closes_all_files(const void *folder)
{
  char *variable = variable_for("error", folder), *own = path_in(folder, "own");
  setenv("HIPMM_LOG", variable, 1);
  log_line(HIPMM_LOG_ERROR, NULL, "to the file");
  close_from(STDERR_FILENO + 1);
  int file = open(own, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file != STDERR_FILENO + 1) return 1;
  log_line(HIPMM_LOG_ERROR, NULL, "to standard error");
  if (hipmm_log_set_file(strchr(variable, '/'))) return 2;
  log_line(HIPMM_LOG_ERROR, NULL, "to the file again");
  bool is_own = write(file, "mine", 4) == 4 && !close(file);
  free(variable);
  free(own);
  return is_own ? 0 : 3;
}

/* With no file of its own: the log's file gets its number again. */
static int opens_the_file_again(const void *variable)
{
  close_from(STDERR_FILENO + 1);
  setenv("HIPMM_LOG", variable, 1);
  log_line(HIPMM_LOG_ERROR, NULL, "one %d", 1);
  close_from(STDERR_FILENO + 1);
  if (hipmm_log_set_file(strchr((const char *)variable, '/'))) return 1;
  log_line(HIPMM_LOG_ERROR, NULL, "one %d", 1);
  return 0;
}

static void opens_a_file_that_the_program_closed(void **state)
{
  char *folder = new_folder(), *variable = variable_for("error", folder), *file = path_in(folder, "log");
  (void)state;
  struct outcome outcome = run_forked(opens_the_file_again, variable);
  assert_int_equal(outcome.status, 0);
  assert_string_equal(outcome.error, "");
  char *text = read_file(file, NULL);
  assert_true(is_stamped(text, ONE));
  assert_true(is_stamped(strchr(text, '\n') + 1, ONE));
  free(text);
  free(file);
  free(variable);
  remove_folder(folder);
}

static void writes_into_no_file_of_the_program(void **state)
{
  char *folder = new_folder(), *file = path_in(folder, "log"), *own = path_in(folder, "own");
  (void)state;
  struct outcome outcome = run_forked(closes_all_files, folder);
  assert_int_equal(outcome.status, 0);
  assert_string_equal(outcome.error, "hipmm: error: to standard error\n");
  char *text = read_file(own, NULL);
  assert_string_equal(text, "mine");
  free(text);
  text = read_file(file, NULL);
  assert_true(is_stamped(text, "hipmm: error: to the file\n"));
  assert_true(is_stamped(strchr(text, '\n') + 1, "hipmm: error: to the file again\n"));
  free(text);
  free(own);
  free(file);
  remove_folder(folder);
}

/* What the program writes to standard error later is not for the file. */
static int runs_without_standard_streams(const void *variable)
{
  setenv("HIPMM_LOG", variable, 1);
  close(STDIN_FILENO);
  close(STDERR_FILENO);
  log_line(HIPMM_LOG_ERROR, NULL, "one %d", 1);
  return fcntl(STDIN_FILENO, F_GETFD) < 0 && fcntl(STDERR_FILENO, F_GETFD) < 0 ? 0 : 1;
}

static void leaves_the_standard_streams_closed(void **state)
{
  char *folder = new_folder(), *variable = variable_for("error", folder), *file = path_in(folder, "log");
  (void)state;
  assert_int_equal(run_forked(runs_without_standard_streams, variable).status, 0);
  char *text = read_file(file, NULL);
  assert_true(is_stamped(text, ONE));
  free(text);
  free(file);
  free(variable);
  remove_folder(folder);
}

static int speaks_with_control_characters(const void *variable)
{
  setenv("HIPMM_LOG", variable, 1);
  log_line(HIPMM_LOG_ERROR, "po\x9bol",
           "/a\033[2J\xc2\x9b"
           "1m größe");
  return 0;
}

/* Lines contain names of files and resources, and terminals show lines. */
static void shows_control_characters_as_marks(void **state)
{
  (void)state;
  struct outcome outcome = run_forked(speaks_with_control_characters, "error");
  assert_string_equal(outcome.error, "hipmm: error: po?ol: /a?[2J?1m größe\n");
  outcome = run_forked(speaks_with_control_characters, "error\xc2\x9b"
                                                       "1m\x9b");
  assert_string_equal(outcome.error,
                      "hipmm: warning: HIPMM_LOG=error?1m?" NOT_A_LEVEL "hipmm: error: po?ol: /a?[2J?1m größe\n");
}

static void cuts_long_lines(void **state)
{
  (void)state;
  struct outcome outcome = run_forked(speaks_at_length, "error");
  char *end = strchr(outcome.error, '\n');
  assert_int_equal(outcome.status, 0);
  assert_non_null(end);
  assert_in_range(end - outcome.error, 1000, 2048);
  assert_string_equal(end + 1, "hipmm: error: end\n");
}

static void never_mixes_lines(void **state)
{
  (void)state;
  char *folder = new_folder(), *variable = variable_for("error", folder), *file = path_in(folder, "log");
  int seen[THREADS] = {0};
  assert_int_equal(run_forked(speaks_in_many_threads, variable).status, 0);
  char *text = read_file(file, NULL);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    static const char *const words[THREADS] = {"north", "south", "east", "west"};
    int whose = 0;
    char expected[100];
    while (whose < THREADS && !strstr(line, words[whose])) whose++;
    assert_in_range(whose, 0, THREADS - 1);
    const char *word = words[whose];
    snprintf(expected, sizeof expected, "hipmm: error: %s: %d %s %s %s %s", word, seen[whose]++, word, word, word,
             word);
    assert_true(is_stamped(line, expected));
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(seen[i], LINES);
  free(text);
  free(file);
  free(variable);
  remove_folder(folder);
}

static void is_set_up_in_code(void **state)
{
  (void)state;
  char *folder = new_folder();
  struct outcome outcome = run_forked(sets_up_the_log_in_code, folder);
  char *one = path_in(folder, "one"), *two = path_in(folder, "two"); /* which a child would leak, for valgrind */
  assert_int_equal(outcome.status, 0);
  assert_string_equal(outcome.error, "hipmm: warning: to standard error\nhipmm: error: to standard error\n");
  char *in_one = read_file(one, NULL), *in_two = read_file(two, NULL);
  assert_contains(in_one, "to one\n");
  assert_contains(in_one, "to one again\n");
  assert_contains(in_two, "to two\n");
  assert_null(strstr(in_one, "nowhere"));
  assert_null(strstr(in_two, "to one"));
  free(in_one);
  free(in_two);
  free(one);
  free(two);
  remove_folder(folder);
}

int main(void)
{
  struct CMUnitTest tests[40] = {
      cmocka_unit_test(appends_to_a_file),
      cmocka_unit_test(expands_the_name_of_the_file),
      cmocka_unit_test(does_not_wait_for_a_reader),
      cmocka_unit_test(writes_into_a_pipe_that_is_read),
      cmocka_unit_test(goes_on_when_the_reader_of_a_pipe_goes),
      cmocka_unit_test(writes_to_standard_error_by_its_name),
      cmocka_unit_test(shares_the_place_in_standard_error),
      cmocka_unit_test(follows_links_in_folders_of_its_own_alone),
      cmocka_unit_test(writes_no_file_of_another_user),
      cmocka_unit_test(writes_no_file_that_has_another_name),
      cmocka_unit_test(trusts_the_file_that_it_makes),
      cmocka_unit_test(tells_of_a_standard_stream_that_is_not_there),
      cmocka_unit_test(writes_into_no_file_of_the_program),
      cmocka_unit_test(opens_a_file_that_the_program_closed),
      cmocka_unit_test(leaves_the_standard_streams_closed),
      cmocka_unit_test(shows_control_characters_as_marks),
      cmocka_unit_test(cuts_long_lines),
      cmocka_unit_test(never_mixes_lines),
      cmocka_unit_test(is_set_up_in_code),
  };
  size_t n = 0;
  while (tests[n].test_func) n++;
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
    tests[n++] = (struct CMUnitTest){
        .name = levels[i].name, .test_func = writes_level, .initial_state = (void *)(uintptr_t)&levels[i]};
  return _cmocka_run_group_tests("log", tests, n, NULL, NULL);
}
