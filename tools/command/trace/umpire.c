/* SPDX-License-Identifier: MIT */
/* umpire.c: reads the replay log of LLNL's Umpire (UMPIRE_REPLAY=On): a line of JSON for each event, of early releases
 * among lines that the program printed. Since Umpire 2022.10, in a file umpire.PID.N.stats, an event is {"category":
 * "operation", "name": "allocate", "numeric_args": {"size": …}, "string_args": {"pointer": …}, "timestamp": …}. Since 1.0 an
 * allocation had two lines, a request and, if it succeeded, its result: {"uid": …, "event": "allocate", "payload": {"size": …},
 * "result": {"memory_ptr": …}, "timestamp": …}; uid is the process, and the lines of several threads come between each other.
 * Umpire 0.3 wrote CSV, which is refused by name. Frees have no size, and no event has a stream or thread. Memory of the
 * host, which Umpire serves too, is left out: an allocator is made of a resource, such as "HOST" or "DEVICE", or of another
 * allocator, and is named by an address. */
#include "../array.h"
#include "format.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A row of an older release. A request stands as a failed allocation until its result comes, which any number of lines of
 * other threads can precede. */
struct umpire_row {
  struct trace_row row;
  uint32_t line;
  bool is_answered; /* a request; the row is void */
};

struct umpire_reader {
  const struct trace_lines *lines;
  json_t *host_names, *host_refs; /* the allocators of host memory, as keys: their names, and their addresses as text */
  uint64_t events, releases, of_host, others;
  bool is_cut, is_out_of_memory;

  /* Of an older release. */
  struct umpire_row *rows;
  size_t n_rows, capacity, next_row;
  json_t *requests; /* without a result so far: "ALLOCATOR SIZE" to an array of indices of rows */
  json_t *process;  /* whose events are read; NULL: not known */
  uint64_t of_others;
};

/* What Umpire's replay tool makes of a log, to read the log faster a second time, and the CSV of Umpire 0.3 are refused. */
enum umpire_kind { UMPIRE_NONE, UMPIRE_COMPILED, UMPIRE_CSV, UMPIRE_JSON };

static bool umpire_begins(const char *start, size_t bytes, const char *mark)
{
  return bytes >= strlen(mark) && memcmp(start, mark, strlen(mark)) == 0;
}

/* What the beginning of a file tells: of JSON, a line with an object that begins with the key that Umpire's releases write
 * first. Other JSON can have the word "replay" too. */
static enum umpire_kind umpire_kind_of(const char *start, size_t bytes)
{
  static const char *const marks[][2] = {
      {"\"category\"", "\"name\""}, {"\"kind\"", "\"payload\""}, {"\"event\"", "\"payload\""}};
  const char *end = start + bytes;
  if (umpire_begins(start, bytes, "YALPER\x7f")) return UMPIRE_COMPILED;
  for (const char *line = start, *next; line < end; line = next) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    next = newline ? newline + 1 : end;
    if (umpire_begins(line, (size_t)(end - line), "REPLAY,")) return UMPIRE_CSV;
    if (*line != '{') continue;
    for (line++; line < next && *line == ' ';) line++;
    size_t length = (size_t)(next - line);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
      if (umpire_begins(line, length, marks[i][0]) && memmem(line, length, marks[i][1], strlen(marks[i][1])))
        return UMPIRE_JSON;
  }
  return UMPIRE_NONE;
}

static bool umpire_is(const char *start, size_t bytes)
{
  return umpire_kind_of(start, bytes) != UMPIRE_NONE;
}

static void umpire_close(void *state)
{
  struct umpire_reader *reader = state;
  json_decref(reader->host_names);
  json_decref(reader->host_refs);
  json_decref(reader->requests);
  json_decref(reader->process);
  free(reader->rows);
  free(reader);
}

static void *umpire_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  const char *start;
  size_t bytes = trace_lines_peek(lines, &start);
  static const char *const refusals[] = {
      [UMPIRE_COMPILED] = "is what Umpire's replay tool compiles from a log; name the log, whose name lacks \".bin\"",
      [UMPIRE_CSV] = "is a log of Umpire 0.3, which wrote CSV; logs of Umpire 1.0 and later can be read",
      [UMPIRE_JSON] = NULL};
  const char *refusal = refusals[umpire_kind_of(start, bytes)];
  if (refusal) {
    snprintf(message, message_bytes, "%s", refusal);
    return NULL;
  }
  struct umpire_reader *reader = calloc(1, sizeof *reader);
  if (reader) {
    reader->lines = lines;
    reader->host_names = json_object();
    reader->host_refs = json_object();
    reader->requests = json_object();
  }
  if (reader && reader->host_names && reader->host_refs && reader->requests) return reader;
  snprintf(message, message_bytes, "out of memory");
  if (reader) umpire_close(reader);
  return NULL;
}

/* ---- Allocators of host memory --------------------------------------------------------------------------------- */

/* Notes an allocator that is made. `source` is the allocator that it takes its memory from; NULL: it is a resource. */
static void umpire_note_allocator(struct umpire_reader *reader, const char *name, const char *source, const char *ref)
{
  static const char *const resources[] = {"HOST", "PINNED", "FILE", "SHARED"};
  bool is_host = source && json_object_get(reader->host_names, source);
  for (size_t i = 0; name && !source && i < sizeof resources / sizeof *resources; i++)
    is_host = is_host || strncmp(name, resources[i], strlen(resources[i])) == 0;
  if (!name || !ref) return;
  if (is_host) {
    json_object_set_new(reader->host_names, name, json_true());
    json_object_set_new(reader->host_refs, ref, json_true());
  } else { /* an address can be that of an allocator that is no more */
    json_object_del(reader->host_refs, ref);
  }
}

/* Whether the event is of host memory, which is counted. */
static bool umpire_is_of_host(struct umpire_reader *reader, const json_t *ref)
{
  bool is_host = json_is_string(ref) && json_object_get(reader->host_refs, json_string_value(ref));
  reader->of_host += is_host;
  return is_host;
}

/* ---- Events ---------------------------------------------------------------------------------------------------- */

/* An address as text: "0x7f0000000000", "(nil)". */
static bool umpire_address(const json_t *value, uint64_t *address_out)
{
  const char *text = json_string_value(value);
  char *end;
  if (!text) return false;
  *address_out = strcmp(text, "(nil)") == 0 ? 0 : strtoull(text, &end, 16);
  return strcmp(text, "(nil)") == 0 || (*text == '0' && end > text && !*end);
}

/* A failed allocation has no pointer. */
static bool umpire_fill(struct trace_row *row, const json_t *event, const json_t *size, const json_t *pointer,
                        bool has_pointer)
{
  const json_t *time = json_object_get(event, "timestamp");
  if (json_is_integer(time)) row->nanoseconds = json_integer_value(time);
  if (size && !(json_is_integer(size) && json_integer_value(size) >= 0)) return false;
  row->bytes = size ? (uint64_t)json_integer_value(size) : 0;
  return !has_pointer || umpire_address(pointer, &row->pointer);
}

/* The row of an event of Umpire 2022.10 or later; TRACE_LINE_END: it has none. */
static enum trace_line umpire_operation(struct umpire_reader *reader, const json_t *event, struct trace_row *row)
{
  const char *name = json_string_value(json_object_get(event, "name"));
  const json_t *numbers = json_object_get(event, "numeric_args"), *texts = json_object_get(event, "string_args");
  const json_t *size = json_object_get(numbers, "size"), *pointer = json_object_get(texts, "pointer");
  const json_t *ref = json_object_get(texts, "allocator_ref");
  bool allocates = name && (strcmp(name, "allocate") == 0 || strcmp(name, "named_allocate") == 0);
  if (name && strcmp(name, "release") == 0) reader->releases++;
  if (name && (strcmp(name, "make_memory_resource") == 0 || strcmp(name, "make_allocator") == 0))
    umpire_note_allocator(reader, json_string_value(json_object_get(json_object_get(event, "tags"), "allocator_name")),
                          json_string_value(json_object_get(texts, "arg0")), json_string_value(ref));
  if (!allocates && !(name && strcmp(name, "deallocate") == 0)) return TRACE_LINE_END;
  if (umpire_is_of_host(reader, ref)) return TRACE_LINE_END;
  row->action = allocates ? TRACE_ALLOCATE : TRACE_FREE;
  return (size || !allocates) && umpire_fill(row, event, allocates ? size : NULL, pointer, true) ? TRACE_LINE
                                                                                                 : TRACE_LINE_ERROR;
}

/* The allocator that an older release makes an allocator of: the first argument that is no number, which some types have
 * before it. Numbers are texts too. */
static const char *umpire_source(const json_t *arguments)
{
  for (size_t i = 0; i < json_array_size(arguments); i++) {
    const char *text = json_string_value(json_array_get(arguments, i));
    if (text && text[strspn(text, "0123456789")]) return text;
  }
  return NULL;
}

/* Whether the event is of another process than those before, which is counted: `mpirun` can put the lines of several into one
 * file, and each has addresses of its own. */
static bool umpire_is_of_other_process(struct umpire_reader *reader, json_t *event)
{
  json_t *process = json_object_get(event, "uid");
  if (!process) return false;
  if (!reader->process) reader->process = json_incref(process);
  bool is_other = !json_equal(process, reader->process);
  reader->of_others += is_other;
  return is_other;
}

/* Keeps a row: what is a failed allocation shows only at the end. False: out of memory. */
static bool umpire_keep(struct umpire_reader *reader, uint32_t number, const struct trace_row *row)
{
  if (!array_grow(&reader->rows, reader->n_rows, &reader->capacity, sizeof *reader->rows)) return false;
  reader->rows[reader->n_rows++] = (struct umpire_row){.row = *row, .line = number};
  return true;
}

/* Notes that the last row is a request, or that it is the result of an earlier one: of several that are equal, the last. False:
 * out of memory. */
static bool umpire_match(struct umpire_reader *reader, const json_t *payload, bool is_result)
{
  char key[128];
  const char *ref = json_string_value(json_object_get(payload, "allocator_ref"));
  snprintf(key, sizeof key, "%.64s %lld", ref ? ref : "",
           (long long)json_integer_value(json_object_get(payload, "size")));
  json_t *requests = json_object_get(reader->requests, key);
  if (is_result) {
    size_t n = json_array_size(requests);
    if (!n) return true; /* the log begins between the two */
    reader->rows[json_integer_value(json_array_get(requests, n - 1))].is_answered = true;
    return n > 1 ? !json_array_remove(requests, n - 1) : !json_object_del(reader->requests, key);
  }
  if (!requests && json_object_set_new(reader->requests, key, json_array())) return false;
  return !json_array_append_new(json_object_get(reader->requests, key), json_integer((json_int_t)reader->n_rows - 1));
}

/* Keeps the row of an event of an older release, if it has one. */
static enum trace_line umpire_event(struct umpire_reader *reader, uint32_t number, json_t *event)
{
  const char *name = json_string_value(json_object_get(event, "event"));
  const json_t *payload = json_object_get(event, "payload"), *result = json_object_get(event, "result");
  const json_t *size = json_object_get(payload, "size");
  if (umpire_is_of_other_process(reader, event)) return TRACE_LINE_END;
  if (strcmp(name, "makeMemoryResource") == 0)
    umpire_note_allocator(reader, json_string_value(json_object_get(payload, "name")), NULL, json_string_value(result));
  if (strcmp(name, "makeAllocator") == 0 && result)
    umpire_note_allocator(reader, json_string_value(json_object_get(payload, "allocator_name")),
                          umpire_source(json_object_get(payload, "args")),
                          json_string_value(json_object_get(result, "allocator_ref")));
  if (strcmp(name, "release") == 0) reader->releases++;
  bool allocates = strcmp(name, "allocate") == 0, frees = strcmp(name, "deallocate") == 0;
  if ((!allocates && !frees) || umpire_is_of_host(reader, json_object_get(payload, "allocator_ref")))
    return TRACE_LINE_END;
  struct trace_row row = {.action = frees    ? TRACE_FREE
                                    : result ? TRACE_ALLOCATE
                                             : TRACE_ALLOCATE_FAILURE,
                          .nanoseconds = TRACE_NO_TIME};
  const json_t *pointer = json_object_get(frees ? payload : result, "memory_ptr");
  if ((allocates && !size) || !umpire_fill(&row, event, allocates ? size : NULL, pointer, !allocates || result))
    return TRACE_LINE_ERROR;
  reader->is_out_of_memory =
      !umpire_keep(reader, number, &row) || (allocates && !umpire_match(reader, payload, result != NULL));
  return reader->is_out_of_memory ? TRACE_LINE_ERROR : TRACE_LINE_END;
}

/* Releases 2 to 2022.03 wrote the first line of a move() with a quotation mark too many. What it allocates and frees has lines
 * of its own. */
static bool umpire_is_move(const char *line, const char *end)
{
  static const char mark[] = "\"event\": \"move\"";
  return memmem(line, (size_t)(end - line), mark, strlen(mark)) != NULL;
}

static enum trace_line umpire_line(void *state, uint32_t number, const char *line, const char *end,
                                   struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct umpire_reader *reader = state;
  json_error_t error;
  if (*line != '{') return TRACE_LINE_END; /* what the program printed */
  json_t *event = json_loadb(line, (size_t)(end - line), 0, &error);
  reader->is_cut = !event && reader->events && trace_lines_is_open(reader->lines); /* the program was killed */
  if (reader->is_cut || (!event && umpire_is_move(line, end))) return TRACE_LINE_END;
  if (!event) {
    snprintf(message, message_bytes, "is cut off or no JSON: column %d: %s", error.column, error.text);
    return TRACE_LINE_ERROR;
  }
  *row_out = (struct trace_row){.nanoseconds = TRACE_NO_TIME};
  enum trace_line found = TRACE_LINE_END;
  reader->events++;
  if (json_object_get(event, "category"))
    found = umpire_operation(reader, event, row_out);
  else if (json_is_string(json_object_get(event, "event")))
    found = umpire_event(reader, number, event);
  else
    reader->others++;
  json_decref(event);
  if (found == TRACE_LINE_ERROR)
    snprintf(message, message_bytes, "%s",
             reader->is_out_of_memory
                 ? "out of memory"
                 : "the event lacks a size, or an address as \"0x7f0000000000\"; Umpire 1.0 to 2025 are known");
  return found;
}

static enum trace_line umpire_next(void *state, struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct umpire_reader *reader = state;
  (void)message, (void)message_bytes;
  while (reader->next_row < reader->n_rows && reader->rows[reader->next_row].is_answered) reader->next_row++;
  if (reader->next_row == reader->n_rows) return TRACE_LINE_END;
  *row_out = reader->rows[reader->next_row++].row;
  return TRACE_LINE;
}

static uint32_t umpire_line_of_row(const void *state)
{
  const struct umpire_reader *reader = state;
  return reader->rows[reader->next_row - 1].line;
}

static void umpire_remark(const void *state, char *text, size_t text_bytes)
{
  const struct umpire_reader *reader = state;
  const struct {
    uint64_t count;
    const char *one, *many;
  } parts[] = {{reader->of_host, "event of host memory", "events of host memory"},
               {reader->releases, "release of a pool's idle memory", "releases of a pool's idle memory"},
               {reader->of_others, "event of another process (\"uid\")", "events of other processes (\"uid\")"},
               {reader->others, "line of JSON without an event", "lines of JSON without an event"}};
  const char *sign = reader->is_cut ? "; left out: " : "left out: ";
  size_t used =
      (size_t)snprintf(text, text_bytes, "%s", reader->is_cut ? "the file is cut off: its last line is not whole" : "");
  for (size_t i = 0; i < sizeof parts / sizeof *parts && used < text_bytes; i++)
    if (parts[i].count) {
      used += (size_t)snprintf(text + used, text_bytes - used, "%s%llu %s", sign, (unsigned long long)parts[i].count,
                               parts[i].count == 1 ? parts[i].one : parts[i].many);
      sign = ", ";
    }
}

const struct trace_format trace_format_umpire = {.is = umpire_is,
                                                 .open = umpire_open,
                                                 .close = umpire_close,
                                                 .line = umpire_line,
                                                 .next = umpire_next,
                                                 .line_of_row = umpire_line_of_row,
                                                 .frees_lack_sizes = true,
                                                 .remark = umpire_remark};
