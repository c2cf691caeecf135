/* SPDX-License-Identifier: MIT */
/* diagnostics.c: collects what is wrong with a graph, so that a user sees every mistake of a file at once. Filled by option
 * and graph; read by the command and, through diagnostics_raise, by whoever initialises. Never fails: where there is no
 * memory for a mistake's text, the mistake still counts. */
#include "error.h"
#include "log.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void diagnostics_free_mistake(struct diagnostic *mistake)
{
  free(mistake->path);
  free(mistake->resource);
  free(mistake->message);
  free(mistake);
}

/* Takes `message` over. */
static void diagnostics_append(struct diagnostics *report, struct diagnostic kind, const char *path,
                               const char *resource, char *message)
{
  *(kind.status == HIPMM_OK ? &report->n_warnings : &report->n_errors) += 1;
  bool is_kept = report->n_errors + report->n_warnings <= REPORT_MOST_KEPT;
  struct diagnostic *mistake = is_kept ? malloc(sizeof *mistake) : NULL;
  if (!mistake) {
    free(message);
    return;
  }
  *mistake = kind;
  mistake->path = strdup(path ? path : "");
  mistake->resource = strdup(resource ? resource : "");
  mistake->message = message;
  if (!mistake->path || !mistake->resource || !message) {
    diagnostics_free_mistake(mistake);
    return;
  }
  *(report->last ? &report->last->next : &report->first) = mistake;
  report->last = mistake;
}

static char *diagnostics_format_message(const char *format, va_list arguments)
{
  char *message;
  return vasprintf(&message, format, arguments) < 0 ? NULL : message;
}

enum hipmm_status diagnostics_add_arguments(struct diagnostics *report, enum hipmm_status status, const char *path,
                                            const char *format, va_list arguments)
{
  diagnostics_append(report, (struct diagnostic){.status = status}, path, NULL,
                     diagnostics_format_message(format, arguments));
  return status;
}

enum hipmm_status diagnostics_add(struct diagnostics *report, enum hipmm_status status, const char *path,
                                  const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  diagnostics_add_arguments(report, status, path, format, arguments);
  va_end(arguments);
  return status;
}

enum hipmm_status diagnostics_add_at(struct diagnostics *report, enum hipmm_status status, int line, int column,
                                     const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  struct diagnostic mistake = {.status = status, .line = line, .column = column};
  diagnostics_append(report, mistake, NULL, NULL, diagnostics_format_message(format, arguments));
  va_end(arguments);
  return status;
}

void diagnostics_warn(struct diagnostics *report, const char *path, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  diagnostics_add_arguments(report, HIPMM_OK, path, format, arguments);
  va_end(arguments);
}

enum hipmm_status diagnostics_add_last_error(struct diagnostics *report, const char *path)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error);
  enum hipmm_status status = error.status == HIPMM_OK ? HIPMM_E_INTERNAL : (enum hipmm_status)error.status;
  const char *message = error.message[0] ? error.message : hipmm_status_string(status);
  diagnostics_append(report, (struct diagnostic){.status = status}, path, error.resource, strdup(message));
  return status;
}

/* Appends as much of the text as there is room for, whole characters only. */
static size_t diagnostics_append_text(char *buffer, size_t used, size_t buffer_bytes, const char *text)
{
  size_t room = buffer_bytes - 1 - used, length = strlen(text);
  if (length > room) {
    length = room;
    while (length && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
  }
  memcpy(buffer + used, text, length);
  buffer[used + length] = '\0';
  return used + text_make_plain(buffer + used);
}

/* Long paths lose their tail, so that the message still fits. */
static size_t diagnostics_append_path(char *buffer, size_t used, size_t buffer_bytes, const char *path)
{
  enum { LONGEST_SHOWN = 300 };
  size_t limit = used + LONGEST_SHOWN;
  if (strlen(path) <= LONGEST_SHOWN || limit >= buffer_bytes)
    return diagnostics_append_text(buffer, used, buffer_bytes, path);
  used = diagnostics_append_text(buffer, used, limit, path);
  return diagnostics_append_text(buffer, used, buffer_bytes, "…");
}

const char *diagnostics_line(const struct diagnostics *report, const struct diagnostic *mistake, char *buffer,
                             size_t buffer_bytes)
{
  size_t used = 0;
  if (!buffer_bytes) return "";
  buffer[0] = '\0';
  if (report->source) {
    used = diagnostics_append_path(buffer, used, buffer_bytes, report->source);
    char position[40] = ": ";
    if (mistake->line) snprintf(position, sizeof position, ":%d:%d: ", mistake->line, mistake->column);
    used = diagnostics_append_text(buffer, used, buffer_bytes, position);
  }
  if (mistake->path[0]) {
    used = diagnostics_append_path(buffer, used, buffer_bytes, mistake->path);
    used = diagnostics_append_text(buffer, used, buffer_bytes, ": ");
  }
  diagnostics_append_text(buffer, used, buffer_bytes, mistake->message);
  return buffer;
}

static void diagnostics_log_warnings(const struct diagnostics *report)
{
  char line[2048];
  for (const struct diagnostic *mistake = report->first; mistake; mistake = mistake->next)
    if (mistake->status == HIPMM_OK)
      log_line(HIPMM_LOG_WARNING, NULL, "%s", diagnostics_line(report, mistake, line, sizeof line));
}

static const struct diagnostic *diagnostics_first_error(const struct diagnostics *report)
{
  const struct diagnostic *mistake = report->first;
  while (mistake && mistake->status == HIPMM_OK) mistake = mistake->next;
  return mistake;
}

enum hipmm_status diagnostics_status(const struct diagnostics *report)
{
  const struct diagnostic *mistake = diagnostics_first_error(report);
  return mistake ? mistake->status : HIPMM_E_OUT_OF_MEMORY;
}

enum hipmm_status diagnostics_raise(const struct diagnostics *report)
{
  diagnostics_log_warnings(report);
  if (!report->n_errors) return HIPMM_OK;
  const struct diagnostic *mistake = diagnostics_first_error(report);
  if (!mistake) return error_set(HIPMM_E_OUT_OF_MEMORY, "no host memory to say what is wrong with the graph");
  struct hipmm_error error = {.struct_size = sizeof error, .status = mistake->status};
  error.line = mistake->line;
  error.column = mistake->column;
  snprintf(error.file, sizeof error.file, "%s", report->source ? report->source : "");
  snprintf(error.path, sizeof error.path, "%s", mistake->path);
  snprintf(error.resource, sizeof error.resource, "%s", mistake->resource);
  char more[64] = "";
  size_t others = report->n_errors - 1;
  if (others) snprintf(more, sizeof more, " (and %zu more mistake%s)", others, others == 1 ? "" : "s");
  diagnostics_line(report, mistake, error.message, sizeof error.message - strlen(more));
  strcat(error.message, more);
  return error_set_located(&error);
}

void diagnostics_clear(struct diagnostics *report)
{
  for (struct diagnostic *mistake = report->first, *next; mistake; mistake = next) {
    next = mistake->next;
    diagnostics_free_mistake(mistake);
  }
  *report = (struct diagnostics){.source = report->source};
}
