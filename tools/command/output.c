/* SPDX-License-Identifier: MIT */
/* output.c: results on standard output, messages on standard error. A failed write always changes the exit
 * status. */
#include "../../core/base/output_file.h"
#include "../../core/base/text.h"
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool output_quiet;
static struct sigaction output_callers_sigpipe; /* the action of SIGPIPE that the caller set */

void output_text(FILE *stream, const char *text)
{
  while (*text) {
    bool is_control;
    size_t n = text_character(text, &is_control);
    for (size_t i = 0; i < n; i++) fprintf(stream, is_control ? "\\x%02x" : "%c", (unsigned char)text[i]);
    text += n;
  }
}

static void output_message(const char *format, va_list arguments)
{
  char *text = NULL;
  if (vasprintf(&text, format, arguments) < 0) return;
  fputs("hipmm: ", stderr);
  output_text(stderr, text);
  fputc('\n', stderr);
  free(text);
}

void say(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  output_message(format, arguments);
  va_end(arguments);
}

void note(const char *format, ...)
{
  va_list arguments;
  if (output_quiet) return;
  va_start(arguments, format);
  output_message(format, arguments);
  va_end(arguments);
}

void output_be_quiet(void)
{
  output_quiet = true;
  setenv("HIPMM_LOG", "error", 0);
}

bool output_is_quiet(void)
{
  return output_quiet;
}

static bool output_has_reader(void)
{
  struct pollfd end = {.fd = STDOUT_FILENO, .events = POLLOUT};
  return poll(&end, 1, 0) != 1 || !(end.revents & POLLERR);
}

int output_finish(int status)
{
  int failed = ferror(stdout), code = 0;
  if (fflush(stdout) != 0) {
    failed = 1;
    code = errno;
  }
  bool has_reader = !failed || output_has_reader();
  if (fclose(stdout) != 0 && !failed) {
    failed = 1;
    code = errno;
  }
  if (!failed) return status;
  if (has_reader) say("cannot write to standard output%s%s", code ? ": " : "", code ? strerror(code) : "");
  return CMD_BAD;
}

static bool output_is_standard(const char *name)
{
  return strcmp(name, "-") == 0;
}

FILE *output_open_result(const char *name)
{
  if (output_is_standard(name)) return stdout;
  int descriptor = output_file_open(name, OUTPUT_FILE_RESULT);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
  int code = errno;
  if (!file && descriptor >= 0) close(descriptor);
  errno = code;
  return file;
}

bool output_close_result(const char *command, const char *name, FILE *file, bool is_written)
{
  if (file == stdout) return is_written || ferror(stdout); /* output_finish() prints it */
  int code = errno;
  if (file && fclose(file) && is_written) {
    is_written = false;
    code = errno;
  }
  if (!is_written) say("%s: cannot write \"%s\": %s", command, name, output_file_reason(code));
  return is_written;
}

bool output_check_result(const char *command, const char *name, const char *option)
{
  if (!name || !output_is_standard(name) || !option) return true;
  say("%s: --output - and %s both write to standard output; name a file for one", command, option);
  return false;
}

json_t *output_json_string(const char *text)
{
  json_t *string = text ? json_string(text) : json_null();
  if (string) return string;
  char *copy = strdup(text);
  for (char *c = copy; c && *c; c++)
    if (*c & 0x80) *c = '?';
  string = copy ? json_string(copy) : NULL;
  free(copy);
  return string;
}

bool output_add_sentence(json_t *array, const char *format, ...)
{
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int bytes = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (bytes < 0) return false;
  bool good = json_array_append_new(array, output_json_string(text)) == 0;
  free(text);
  return good;
}

/* Escapes control characters. They occur only inside of strings; Jansson escapes only those below U+0020. */
static void output_json_text(const char *text)
{
  char escaped[TEXT_ESCAPE_BYTES];
  while (*text) {
    bool is_control;
    size_t n = text_character(text, &is_control);
    bool is_escaped = is_control && *text != '\n';
    if (is_escaped) text_escape(text, escaped);
    fwrite(is_escaped ? escaped : text, 1, is_escaped ? strlen(escaped) : n, stdout);
    text += n;
  }
}

int output_json(json_t *value, int status)
{
  if (!value) {
    say("out of memory");
    return CMD_BAD;
  }
  char *text = json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(6) | JSON_ENCODE_ANY);
  bool failed = !text;
  json_decref(value);
  if (text) output_json_text(text);
  free(text);
  putchar('\n');
  int finished = output_finish(status);
  if (failed && finished != CMD_BAD) say("the result cannot be written as JSON");
  return failed ? CMD_BAD : finished;
}

void output_ignore_closed_pipes(void)
{
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigaction(SIGPIPE, &ignore, &output_callers_sigpipe);
}

void output_restore_closed_pipes(void)
{
  sigaction(SIGPIPE, &output_callers_sigpipe, NULL);
}

void output_open_standard_streams(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    /* The wrong direction on purpose: reading a closed input and writing to a closed output stay errors. */
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) _exit(CMD_BAD);
  }
}
