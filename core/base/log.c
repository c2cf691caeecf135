/* SPDX-License-Identifier: MIT */
/* log.c: the debug log. Set up from the environment at the first line. Never called on the allocation path. */
#include "log.h"
#include "environment.h"
#include "error.h"
#include "lifecycle.h"
#include "output_file.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warning", "info", "debug", "trace"};
enum { N_LEVELS = sizeof level_names / sizeof level_names[0], LEVEL_OFF = HIPMM_LOG_OFF, LINE_BYTES = 2048 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int highest_level = HIPMM_LOG_WARNING;
static atomic_bool is_requested; /* by HIPMM_LOG, or by the program */
static int file = -1;            /* the descriptor of every file, one after the other; never closed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `file` */

/* Where lines go: the descriptor, STDERR_FILENO or `file`; above it a count of changes, odd while a thread replaces the
 * file. */
static _Atomic uint64_t output = STDERR_FILENO;
static const uint64_t one_change = UINT64_C(1) << 32; /* of the count */

/* Of the file behind `file`. */
static _Atomic dev_t file_device;
static _Atomic ino_t file_number;

/* Whether the program has closed the file's descriptor, and perhaps has a file of its own there. Right only where no thread
 * replaces the file meanwhile. */
static bool log_has_lost(int descriptor)
{
  const struct output_file_identity identity = {atomic_load(&file_device), atomic_load(&file_number)};
  return !output_file_is(descriptor, &identity);
}

static int log_descriptor_of(uint64_t now)
{
  return (int)(now % one_change);
}

/* Lines go to standard error. False if `output` is not *now any more, which it is written into. */
static bool log_leave_file(uint64_t *now)
{
  uint64_t changes = (*now / one_change + 2) * one_change;
  return atomic_compare_exchange_strong(&output, now, changes + STDERR_FILENO);
}

/* Where lines go now. A file that is lost is left, unless `output` has changed since. */
static int log_descriptor(void)
{
  uint64_t now = output;
  while (log_descriptor_of(now) != STDERR_FILENO && now / one_change % 2 == 0 && log_has_lost(log_descriptor_of(now)))
    if (log_leave_file(&now)) return STDERR_FILENO;
  return log_descriptor_of(now);
}

/* The first line that a file does not take, as on a full disk, is told on standard error. */
static void log_write_line(int descriptor, const char *line, size_t length)
{
  static atomic_flag is_told = ATOMIC_FLAG_INIT;
  char told[256];
  int code = output_file_write(descriptor, line, length, NULL);
  if (!code || descriptor == STDERR_FILENO || atomic_flag_test_and_set(&is_told)) return;
  snprintf(told, sizeof told, "hipmm: warning: the log cannot be written: %s; lines are lost\n",
           output_file_reason(code));
  (void)output_file_write(STDERR_FILENO, told, strlen(told), NULL);
}

static int log_parse_level(const char *word, size_t length)
{
  for (int level = 0; level < N_LEVELS; level++)
    if (strlen(level_names[level]) == length && !strncmp(level_names[level], word, length)) return level;
  return length == 3 && !strncmp(word, "off", 3) ? LEVEL_OFF : N_LEVELS;
}

static void log_complain(const char *format, const char *what, const char *why)
{
  char line[512];
  if (snprintf(line, sizeof line - 1, format, what, why) < 0) return;
  size_t length = text_make_plain(line);
  line[length] = '\n';
  log_write_line(log_descriptor(), line, length + 1);
}

/* Sends lines to an opened file, whose descriptor takes the place of the file before: another thread may be writing there.
 * Under the lock. An errno; 0: done. */
static int log_take_file(int opened, const struct output_file_identity *identity)
{
  int code = 0;
  (void)log_descriptor(); /* leaves a file that is lost */
  uint64_t now = atomic_fetch_add(&output, one_change) + one_change;
  if (file < 0 || file == opened || log_has_lost(file)) {
    file = opened;
  } else {
    do code = dup3(opened, file, O_CLOEXEC) < 0 ? errno : 0;
    while (code == EINTR);
    close(opened);
  }
  if (!code) {
    atomic_store(&file_device, identity->device);
    atomic_store(&file_number, identity->number);
    now = now / one_change * one_change + (unsigned)file;
  }
  atomic_store(&output, now + one_change);
  return code;
}

/* Sends lines to the end of a file. False with errno. */
static bool log_open_file(const char *path)
{
  struct output_file_identity identity;
  int opened = output_file_open(path, OUTPUT_FILE_APPEND);
  int code = opened < 0 || !output_file_identify(opened, &identity) ? errno : 0;
  if (!code) {
    pthread_mutex_lock(&lock);
    code = log_take_file(opened, &identity);
    pthread_mutex_unlock(&lock);
  } else if (opened >= 0) {
    close(opened);
  }
  errno = code;
  return !code;
}

static void log_use_standard_error(void)
{
  pthread_mutex_lock(&lock);
  uint64_t now = output;
  while (!log_leave_file(&now)) continue;
  pthread_mutex_unlock(&lock);
}

static void log_open(void)
{
  const char *wanted = environment_get("HIPMM_LOG");
  if (!wanted || !*wanted) return;
  size_t length = strcspn(wanted, ":");
  int level = log_parse_level(wanted, length);
  if (level == N_LEVELS) {
    log_complain("hipmm: warning: HIPMM_LOG=%s: not a level; write off, error, warning, info, debug or trace%s", wanted,
                 ", then :FILE");
    return;
  }
  highest_level = level;
  is_requested = true;
  if (!wanted[length] || !wanted[length + 1]) return;
  char name[OUTPUT_FILE_NAME_BYTES];
  if (!output_file_expand(wanted + length + 1, -1, name))
    log_complain("hipmm: warning: HIPMM_LOG: %s; logging to standard error%s", name, "");
  else if (!log_open_file(name))
    log_complain("hipmm: warning: HIPMM_LOG: %s: %s; logging to standard error", name, output_file_reason(errno));
}

enum hipmm_status hipmm_log_set_level(enum hipmm_log_level level)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (level < HIPMM_LOG_OFF || level > HIPMM_LOG_TRACE)
    return error_set(HIPMM_E_ARGUMENT, "%d is not a level of the log; it is HIPMM_LOG_OFF to HIPMM_LOG_TRACE",
                     (int)level);
  pthread_once(&once, log_open);
  highest_level = level;
  is_requested = true;
  log_notify_change();
  return HIPMM_OK;
}

enum hipmm_status hipmm_log_set_file(const char *path)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  pthread_once(&once, log_open);
  char name[OUTPUT_FILE_NAME_BYTES];
  if (path && !*path) return error_set(HIPMM_E_ARGUMENT, "path is empty; NULL stands for standard error");
  if (path && !output_file_expand(path, -1, name)) return error_set(HIPMM_E_ARGUMENT, "path: %s", name);
  if (path && !log_open_file(name)) return error_set(HIPMM_E_IO, "%s: %s", name, output_file_reason(errno));
  if (!path) log_use_standard_error();
  is_requested = true; /* which lifts what a sink suppressed */
  log_notify_change();
  return HIPMM_OK;
}

enum hipmm_log_level hipmm_log_get_level(void)
{
  pthread_once(&once, log_open);
  return (enum hipmm_log_level)highest_level;
}

/* A program with a sink gets lines on its standard error only if HIPMM_LOG asks for it. */
static bool log_output_wants(enum hipmm_log_level level)
{
  pthread_once(&once, log_open);
  return (int)level <= highest_level && (is_requested || !log_sink_exists());
}

bool log_wants(enum hipmm_log_level level)
{
  return log_output_wants(level) || log_sink_wants(level);
}

/* Lines in a file carry the time and the process, since several processes may share it. */
static int log_format_head(char *line, size_t bytes, int descriptor, enum hipmm_log_level level)
{
  if (descriptor == STDERR_FILENO) return snprintf(line, bytes, "hipmm: %s: ", level_names[level]);
  struct timespec now;
  struct tm local;
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &local);
  return snprintf(line, bytes, "%02d:%02d:%02d.%06ld %ld hipmm: %s: ", local.tm_hour, local.tm_min, local.tm_sec,
                  now.tv_nsec / 1000, (long)getpid(), level_names[level]);
}

static void log_write_output(enum hipmm_log_level level, const char *about, const char *message)
{
  char line[LINE_BYTES];
  int descriptor = log_descriptor();
  size_t used = (size_t)log_format_head(line, sizeof line, descriptor, level);
  snprintf(line + used, LINE_BYTES - 1 - used, "%.128s%s%s", about ? about : "", about ? ": " : "", message);
  used = text_make_plain(line);
  line[used++] = '\n';
  log_write_line(descriptor, line, used);
}

void log_line_arguments(enum hipmm_log_level level, const char *about, const char *format, va_list arguments)
{
  char message[LINE_BYTES];
  if (log_wants(level) && vsnprintf(message, sizeof message, format, arguments) >= 0) {
    text_make_plain(message);
    if (log_output_wants(level)) log_write_output(level, about, message);
    if (log_sink_wants(level)) log_sink_write(level, about, message);
  }
}

void log_line(enum hipmm_log_level level, const char *about, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  log_line_arguments(level, about, format, arguments);
  va_end(arguments);
}
