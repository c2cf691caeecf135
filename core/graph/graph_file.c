/* SPDX-License-Identifier: MIT */
/* graph_file.c: reads a graph file and parses its JSON. Called by graph.c. Must return soon, with an error message,
 * whatever the file is: a folder, a pipe, a gigabyte of spaces. */
#include "graph_build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bytes {
  char *data;
  size_t count;
};

static void graph_file_report_errno(struct diagnostics *diagnostics)
{
  diagnostics_add(diagnostics, HIPMM_E_IO, "", "cannot be read: %s", strerror(errno));
}

static void graph_file_report_size(struct diagnostics *diagnostics)
{
  diagnostics_add(diagnostics, HIPMM_E_CONFIG, "", "is larger than %d MiB, too large for a graph",
                  GRAPH_MAX_BYTES >> 20);
}

/* Opens the file unless it is a folder, or its size is known to be too large. A pipe without a writer does not block:
 * it is empty. */
static int graph_file_open(const char *file, struct diagnostics *diagnostics)
{
  struct stat status;
  int descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  bool is_good = descriptor >= 0 && !fstat(descriptor, &status) && fcntl(descriptor, F_SETFL, 0) >= 0;
  if (is_good && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    is_good = false;
  }
  if (!is_good) {
    graph_file_report_errno(diagnostics);
  } else if (status.st_size > GRAPH_MAX_BYTES) {
    graph_file_report_size(diagnostics);
    is_good = false;
  }
  if (is_good || descriptor < 0) return descriptor;
  close(descriptor);
  return -1;
}

/* Grows the buffer if it is full; false after an error was reported. */
static bool graph_file_grow(struct bytes *bytes, size_t *capacity, struct diagnostics *diagnostics)
{
  if (bytes->count < *capacity) return true;
  size_t wanted = *capacity ? *capacity * 2 : 64 << 10;
  char *data = wanted > 2 * (size_t)GRAPH_MAX_BYTES ? NULL : realloc(bytes->data, wanted);
  if (!data) {
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory to read it");
    return false;
  }
  bytes->data = data;
  *capacity = wanted;
  return true;
}

static bool graph_file_read_all(int descriptor, struct bytes *bytes, struct diagnostics *diagnostics)
{
  size_t capacity = 0;
  ssize_t n;
  do {
    if (!graph_file_grow(bytes, &capacity, diagnostics)) return false;
    n = read(descriptor, bytes->data + bytes->count, capacity - bytes->count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      graph_file_report_errno(diagnostics);
      return false;
    }
    bytes->count += (size_t)n;
    if (bytes->count > GRAPH_MAX_BYTES) {
      graph_file_report_size(diagnostics);
      return false;
    }
  } while (n != 0);
  return true;
}

bool graph_file_read(const char *file, struct diagnostics *diagnostics, char **text_out, size_t *bytes_out)
{
  struct bytes bytes = {0};
  int descriptor = file ? graph_file_open(file, diagnostics) : STDIN_FILENO;
  if (descriptor < 0) return false;
  bool is_good = graph_file_read_all(descriptor, &bytes, diagnostics);
  if (file) close(descriptor);
  if (is_good) {
    *text_out = bytes.data;
    *bytes_out = bytes.count;
  } else {
    free(bytes.data);
  }
  return is_good;
}

static bool graph_file_is_blank(const char *text, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++)
    if (!memchr(" \t\r\n", text[i], 4)) return false;
  return true;
}

/* The start of the token at which the parser stopped: its text in the message ends at the position. */
static size_t graph_file_token_start(const json_error_t *error, const char *near)
{
  size_t end = error->position > 0 ? (size_t)error->position : 0, length = near ? strlen(near) - 1 : 0;
  return end - (length < end ? length : end);
}

/* The end of the message about a common error for which the parser reports only a wrong character, such as a comment.
 * `at` is the place of the token, and becomes the place of the error. */
static const char *graph_file_syntax_hint(const json_error_t *error, const char *near, const char *text, size_t *at)
{
  if (!near) return "";
  bool is_end = *near == ']' || *near == '}', wants_end = error->text[0] == '\'' && strchr("]}", error->text[1]);
  size_t before = *at;
  while (before && strchr(" \t\r\n", text[before - 1])) before--;
  if (*near == '\'') return "; JSON has double quotes only";
  if (*near == '/' || *near == '#') return "; JSON has no comments";
  if (is_end && before && text[before - 1] == ',') {
    *at = before - 1;
    return "; the comma before it is one too many";
  }
  if (!is_end && !strncmp(error->text, "string or", 9)) return "; names stand in double quotes";
  return wants_end && !is_end ? "; is a comma missing before it?" : "";
}

static void graph_file_report_syntax(const json_error_t *error, const char *text, struct diagnostics *diagnostics)
{
  int line = error->line > 0 ? error->line : 1, column = error->column > 0 ? error->column : 1;
  enum json_error_code code = json_error_code(error);
  const char *near = strstr(error->text, " near '"), *hint = "";
  if (near) near += strlen(" near '");
  if (code == json_error_null_character || code == json_error_null_byte_in_key) {
    diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, line, column, "\\u0000 is not allowed");
    return;
  }
  if (near && code != json_error_invalid_utf8) { /* at the byte */
    size_t at = graph_file_token_start(error, near);
    hint = graph_file_syntax_hint(error, near, text, &at);
    graph_position_at(text, at, &line, &column);
  }
  diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, line, column, "%s%s", error->text, hint);
}

/* The parser stops at a zero byte as at the end of the file. */
static bool graph_file_report_zero_byte(const char *text, size_t bytes, struct diagnostics *diagnostics)
{
  int line, column;
  const char *zero = memchr(text, '\0', bytes);
  if (!zero) return false;
  graph_position_at(text, (size_t)(zero - text), &line, &column);
  diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, line, column, "a zero byte; a graph is UTF-8 text");
  return true;
}

/* Parses a JSON object in UTF-8: a graph, or options. `is_empty` and `is_other` are the messages for an empty text and
 * for JSON that is no object. */
static json_t *graph_file_read_object(const char *text, size_t bytes, const char *is_empty, const char *is_other,
                                      struct diagnostics *diagnostics)
{
  json_error_t error;
  if (bytes > GRAPH_MAX_BYTES) {
    graph_file_report_size(diagnostics);
    return NULL;
  }
  if (graph_file_is_blank(text, bytes)) {
    diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, 1, 1, "%s", is_empty);
    return NULL;
  }
  if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
    diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, 1, 1,
                       "begins with a byte order mark; save it as UTF-8 without one");
    return NULL;
  }
  if (graph_file_report_zero_byte(text, bytes, diagnostics)) return NULL;
  json_t *object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
  if (object && json_is_object(object)) return object;
  if (object)
    diagnostics_add(diagnostics, HIPMM_E_CONFIG, "", "%s", is_other);
  else
    graph_file_report_syntax(&error, text, diagnostics);
  json_decref(object);
  return NULL;
}

json_t *graph_file_parse(const char *text, size_t bytes, struct diagnostics *diagnostics)
{
  return graph_file_read_object(text, bytes, "is empty; the smallest graph is {\"stack\": [\"device\"]}",
                                "a graph is an object, not a list; write {\"stack\": […]}", diagnostics);
}

json_t *graph_file_parse_options(const char *text, struct diagnostics *diagnostics)
{
  if (!text) return json_object();
  return graph_file_read_object(text, strlen(text), "is empty; write {} for no options",
                                "options are an object, not a list; write {\"initial_size\": \"1GiB\"}", diagnostics);
}
