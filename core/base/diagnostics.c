/* SPDX-License-Identifier: MIT */
/* diagnostics.c: collects the errors and warnings about a graph. Never fails: without host memory for the text of an
 * error, the error still counts. */
#include "diagnostics.h"
#include "log.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void diagnostics_free_one(struct diagnostic *diagnostic)
{
  free(diagnostic->path);
  free(diagnostic->resource);
  free(diagnostic->message);
  free(diagnostic);
}

/* Takes ownership of `message`. */
static void diagnostics_append(struct diagnostics *diagnostics, enum hipmm_status status, ptrdiff_t offset,
                               const char *path, const char *resource, char *message)
{
  *(status == HIPMM_OK ? &diagnostics->n_warnings : &diagnostics->n_errors) += 1;
  bool is_kept = diagnostics->n_errors + diagnostics->n_warnings <= DIAGNOSTICS_MOST_KEPT;
  struct diagnostic *diagnostic = is_kept ? malloc(sizeof *diagnostic) : NULL;
  if (!diagnostic) {
    free(message);
    return;
  }
  *diagnostic = (struct diagnostic){.status = status,
                                    .offset = offset,
                                    .path = strdup(path ? path : ""),
                                    .resource = strdup(resource ? resource : ""),
                                    .message = message};
  if (!diagnostic->path || !diagnostic->resource || !message) {
    diagnostics_free_one(diagnostic);
    return;
  }
  *(diagnostics->last ? &diagnostics->last->next : &diagnostics->first) = diagnostic;
  diagnostics->last = diagnostic;
}

static char *diagnostics_format_message(const char *format, va_list arguments)
{
  char *message;
  return vasprintf(&message, format, arguments) < 0 ? NULL : message;
}

enum hipmm_status diagnostics_add_arguments(struct diagnostics *diagnostics, enum hipmm_status status, const char *path,
                                            const char *format, va_list arguments)
{
  diagnostics_append(diagnostics, status, -1, path, NULL, diagnostics_format_message(format, arguments));
  return status;
}

enum hipmm_status diagnostics_add(struct diagnostics *diagnostics, enum hipmm_status status, const char *path,
                                  const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  diagnostics_add_arguments(diagnostics, status, path, format, arguments);
  va_end(arguments);
  return status;
}

enum hipmm_status diagnostics_add_at(struct diagnostics *diagnostics, enum hipmm_status status, size_t offset,
                                     const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  diagnostics_append(diagnostics, status, (ptrdiff_t)offset, NULL, NULL, diagnostics_format_message(format, arguments));
  va_end(arguments);
  return status;
}

void diagnostics_warn(struct diagnostics *diagnostics, const char *path, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  diagnostics_add_arguments(diagnostics, HIPMM_OK, path, format, arguments);
  va_end(arguments);
}

enum hipmm_status diagnostics_add_last_error(struct diagnostics *diagnostics, const char *path)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error);
  enum hipmm_status status = error.status == HIPMM_OK ? HIPMM_E_INTERNAL : (enum hipmm_status)error.status;
  const char *message = error.message[0] ? error.message : hipmm_status_string(status);
  diagnostics_append(diagnostics, status, -1, path, error.resource, strdup(message));
  return status;
}

/* Appends as much of the text as fits, without cutting a character. */
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

/* Cuts the tail off a long path, so that the message still fits. */
static size_t diagnostics_append_path(char *buffer, size_t used, size_t buffer_bytes, const char *path)
{
  enum { LONGEST_SHOWN = 300 };
  size_t limit = used + LONGEST_SHOWN;
  if (strlen(path) <= LONGEST_SHOWN || limit >= buffer_bytes)
    return diagnostics_append_text(buffer, used, buffer_bytes, path);
  used = diagnostics_append_text(buffer, used, limit, path);
  return diagnostics_append_text(buffer, used, buffer_bytes, "…");
}

const char *diagnostics_line(const struct diagnostics *diagnostics, const struct diagnostic *diagnostic, char *buffer,
                             size_t buffer_bytes)
{
  size_t used = 0;
  buffer[0] = '\0';
  if (diagnostics->source) {
    used = diagnostics_append_path(buffer, used, buffer_bytes, diagnostics->source);
    char position[40] = ": ";
    if (diagnostic->line) snprintf(position, sizeof position, ":%d:%d: ", diagnostic->line, diagnostic->column);
    used = diagnostics_append_text(buffer, used, buffer_bytes, position);
  }
  if (diagnostic->path[0]) {
    used = diagnostics_append_path(buffer, used, buffer_bytes, diagnostic->path);
    used = diagnostics_append_text(buffer, used, buffer_bytes, ": ");
  }
  diagnostics_append_text(buffer, used, buffer_bytes, diagnostic->message);
  return buffer;
}

static void diagnostics_log_warnings(const struct diagnostics *diagnostics)
{
  char line[2048];
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next)
    if (diagnostic->status == HIPMM_OK)
      log_line(HIPMM_LOG_WARNING, NULL, "%s", diagnostics_line(diagnostics, diagnostic, line, sizeof line));
}

/* What could not be read for want of host memory comes first: other errors may follow from it. */
static const struct diagnostic *diagnostics_first_error(const struct diagnostics *diagnostics)
{
  const struct diagnostic *first = NULL;
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next) {
    if (diagnostic->status == HIPMM_E_OUT_OF_MEMORY) return diagnostic;
    if (!first && diagnostic->status != HIPMM_OK) first = diagnostic;
  }
  return first;
}

enum hipmm_status diagnostics_status(const struct diagnostics *diagnostics)
{
  const struct diagnostic *diagnostic = diagnostics_first_error(diagnostics);
  return diagnostic ? diagnostic->status : HIPMM_E_OUT_OF_MEMORY;
}

enum hipmm_status diagnostics_raise(const struct diagnostics *diagnostics)
{
  diagnostics_log_warnings(diagnostics);
  if (!diagnostics->n_errors) return HIPMM_OK;
  const struct diagnostic *diagnostic = diagnostics_first_error(diagnostics);
  if (!diagnostic) return error_set(HIPMM_E_OUT_OF_MEMORY, "no host memory to say what is wrong with the graph");
  struct hipmm_error error = {.struct_size = sizeof error, .status = diagnostic->status};
  error.line = diagnostic->line;
  error.column = diagnostic->column;
  snprintf(error.file, sizeof error.file, "%s", diagnostics->source ? diagnostics->source : "");
  snprintf(error.path, sizeof error.path, "%s", diagnostic->path);
  snprintf(error.resource, sizeof error.resource, "%s", diagnostic->resource);
  char more[96] = "";
  size_t others = diagnostics->n_errors - 1;
  if (others)
    snprintf(more, sizeof more, " (and %zu more error%s%s)", others, text_plural(others),
             diagnostics->is_graph_file ? "; `hipmm check` lists all" : "");
  diagnostics_line(diagnostics, diagnostic, error.message, sizeof error.message - strlen(more));
  strcat(error.message, more);
  return error_set_located(&error);
}

void diagnostics_clear(struct diagnostics *diagnostics)
{
  for (struct diagnostic *diagnostic = diagnostics->first, *next; diagnostic; diagnostic = next) {
    next = diagnostic->next;
    diagnostics_free_one(diagnostic);
  }
  *diagnostics = (struct diagnostics){.source = diagnostics->source, .is_graph_file = diagnostics->is_graph_file};
}
