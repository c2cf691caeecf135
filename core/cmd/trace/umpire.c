/* SPDX-License-Identifier: MIT */
/* umpire.c: reads the replay log of LLNL's Umpire (UMPIRE_REPLAY=On): a line of JSON for each event, among lines that the
 * program printed. Since Umpire 5 an event is {"category": "operation", "name": "allocate", "numeric_args": {"size": …},
 * "string_args": {"pointer": …}, "timestamp": …}. Before, an allocation had two lines, of which the second has the result:
 * {"event": "allocate", "payload": {"size": …}, "result": {"memory_ptr": …}, "timestamp": …}. Frees have no size, and no
 * event has a stream or thread. */
#include "format.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct umpire_reader {
  json_t *request; /* of an older release: the allocation whose result is due */
  uint64_t releases, others;
};

/* Whether the beginning has a line with an event for a replay. */
static bool umpire_is(const char *start, size_t bytes)
{
  static const char *const marks[] = {"\"replay\"", "\"payload\""};
  const char *end = start + bytes;
  for (const char *line = start, *next; line < end; line = next) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    next = newline ? newline + 1 : end;
    for (size_t i = 0; *line == '{' && i < sizeof marks / sizeof *marks; i++)
      if (memmem(line, (size_t)(next - line), marks[i], strlen(marks[i]))) return true;
  }
  return false;
}

static void *umpire_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  struct umpire_reader *reader = calloc(1, sizeof *reader);
  (void)lines;
  if (!reader) snprintf(message, message_bytes, "out of memory");
  return reader;
}

static void umpire_close(void *state)
{
  struct umpire_reader *reader = state;
  json_decref(reader->request);
  free(reader);
}

/* An address as text: "0x7f0000000000", "(nil)". */
static bool umpire_address(const json_t *value, uint64_t *address_out)
{
  const char *text = json_string_value(value);
  char *end;
  if (!text) return false;
  *address_out = strcmp(text, "(nil)") == 0 ? 0 : strtoull(text, &end, 16);
  return strcmp(text, "(nil)") == 0 || (*text == '0' && end > text && !*end);
}

static bool umpire_fill(struct trace_row *row, const json_t *event, const json_t *size, const json_t *pointer)
{
  const json_t *time = json_object_get(event, "timestamp");
  if (json_is_integer(time)) row->nanoseconds = json_integer_value(time);
  if (size && !(json_is_integer(size) && json_integer_value(size) >= 0)) return false;
  row->bytes = size ? (uint64_t)json_integer_value(size) : 0;
  return umpire_address(pointer, &row->pointer);
}

/* The row of an event of Umpire 5 or later; TRACE_LINE_END: it has none. */
static enum trace_line umpire_operation(struct umpire_reader *reader, const json_t *event, struct trace_row *row)
{
  const char *name = json_string_value(json_object_get(event, "name"));
  const json_t *numbers = json_object_get(event, "numeric_args"), *texts = json_object_get(event, "string_args");
  const json_t *size = json_object_get(numbers, "size"), *pointer = json_object_get(texts, "pointer");
  bool allocates = name && (strcmp(name, "allocate") == 0 || strcmp(name, "named_allocate") == 0);
  if (name && strcmp(name, "release") == 0) reader->releases++;
  if (!allocates && !(name && strcmp(name, "deallocate") == 0)) return TRACE_LINE_END;
  row->action = allocates ? TRACE_ALLOCATE : TRACE_FREE;
  return (size || !allocates) && umpire_fill(row, event, allocates ? size : NULL, pointer) ? TRACE_LINE
                                                                                           : TRACE_LINE_ERROR;
}

/* The row of an event of an older release. A request whose result does not follow is a failed allocation. */
static enum trace_line umpire_event(struct umpire_reader *reader, json_t *event, struct trace_row *row)
{
  const char *name = json_string_value(json_object_get(event, "event"));
  const json_t *payload = json_object_get(event, "payload"), *result = json_object_get(event, "result");
  const json_t *size = json_object_get(payload, "size");
  if (strcmp(name, "deallocate") == 0) {
    row->action = TRACE_FREE;
    return umpire_fill(row, event, NULL, json_object_get(payload, "memory_ptr")) ? TRACE_LINE : TRACE_LINE_ERROR;
  }
  if (strcmp(name, "release") == 0) reader->releases++;
  if (strcmp(name, "allocate") != 0) return TRACE_LINE_END;
  if (!size) return TRACE_LINE_ERROR;
  json_t *before = reader->request;
  reader->request = result ? NULL : json_incref(event);
  const json_t *pointer = json_object_get(result, "memory_ptr");
  enum trace_line state = TRACE_LINE_END;
  if (result) {
    row->action = TRACE_ALLOCATE;
    state = umpire_fill(row, event, size, pointer) ? TRACE_LINE : TRACE_LINE_ERROR;
  } else if (before) {
    row->action = TRACE_ALLOCATE_FAILURE;
    json_t *null = json_string("(nil)");
    state = umpire_fill(row, before, json_object_get(json_object_get(before, "payload"), "size"), null)
                ? TRACE_LINE
                : TRACE_LINE_ERROR;
    json_decref(null);
  }
  json_decref(before);
  return state;
}

static enum trace_line umpire_line(void *state, uint32_t number, const char *line, const char *end,
                                   struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct umpire_reader *reader = state;
  json_error_t error;
  (void)number;
  if (*line != '{') return TRACE_LINE_END; /* what the program printed */
  json_t *event = json_loadb(line, (size_t)(end - line), 0, &error);
  if (!event) {
    snprintf(message, message_bytes, "is cut off or no JSON: column %d: %s", error.column, error.text);
    return TRACE_LINE_ERROR;
  }
  *row_out = (struct trace_row){.nanoseconds = TRACE_NO_TIME};
  enum trace_line found = TRACE_LINE_END;
  if (json_object_get(event, "category"))
    found = umpire_operation(reader, event, row_out);
  else if (json_is_string(json_object_get(event, "event")))
    found = umpire_event(reader, event, row_out);
  else
    reader->others++;
  json_decref(event);
  if (found == TRACE_LINE_ERROR)
    snprintf(message, message_bytes,
             "the event lacks a size, or an address as \"0x7f0000000000\"; Umpire 0.3 to 2025 are known");
  return found;
}

static void umpire_remark(const void *state, char *text, size_t text_bytes)
{
  const struct umpire_reader *reader = state;
  int used = 0;
  *text = '\0';
  if (reader->releases)
    used = snprintf(text, text_bytes, "left out: %llu release%s of a pool's idle memory",
                    (unsigned long long)reader->releases, reader->releases == 1 ? "" : "s");
  if (reader->others && used >= 0 && (size_t)used < text_bytes)
    snprintf(text + used, text_bytes - (size_t)used, "%s%llu line%s of JSON without an event",
             used ? ", " : "left out: ", (unsigned long long)reader->others, reader->others == 1 ? "" : "s");
}

const struct trace_format trace_format_umpire = {.is = umpire_is,
                                                 .open = umpire_open,
                                                 .close = umpire_close,
                                                 .line = umpire_line,
                                                 .frees_lack_sizes = true,
                                                 .remark = umpire_remark};
