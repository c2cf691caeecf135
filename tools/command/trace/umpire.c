/* SPDX-License-Identifier: MIT */
/* umpire.c: reads the replay log of LLNL's Umpire (UMPIRE_REPLAY=On): a line of JSON for each event, of early releases
 * among lines that the program printed. Since Umpire 2022.10, in a file umpire.PID.N.stats, an event is {"category":
 * "operation", "name": "allocate", "numeric_args": {"size": …}, "string_args": {"pointer": …}, "timestamp": …}. Since 1.0 an
 * allocation had two lines, a request and, if it succeeded, its result: {"uid": …, "event": "allocate", "payload": {"size": …},
 * "result": {"memory_ptr": …}, "timestamp": …}; uid is the process, and the lines of several threads come between each other.
 * Since 2025.12 a file begins with {"kind": "umpire_replay", "schema": "v2", "process": {"pid": …}}; a command has two lines, of
 * which the second has the status "committed", and names the block by a number: {"op": "allocate", "allocation_id": "m1",
 * "allocator_id": "a2", "size": …}. Umpire 0.3 wrote CSV, which is refused by name. Frees have no size, and no event has a stream or thread. Memory of the
 * host, which Umpire serves too, is left out: an allocator is made of a resource, such as "HOST" or "DEVICE", or of another
 * allocator, and is named by an address. */
#include "../../../core/base/key_map.h"
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
  json_t *names,
      *refs; /* the memory of allocators by their names, and by their addresses or numbers as text: see umpire_memory() */
  uint64_t releases, of_host, others;
  bool is_out_of_memory;
  uint64_t process;    /* of the lines that follow: the log tells it */
  struct key_map made; /* of "v2": the address that the number of a block stands for */
  uint64_t next_address;

  /* Of an older release. */
  struct umpire_row *rows;
  size_t n_rows, capacity, next_row;
  json_t *requests; /* without a result so far: "PROCESS ALLOCATOR SIZE" to an array of indices of rows */
};

/* Of made-up addresses: the first, and the size from which a block takes none. */
#define UMPIRE_FIRST_ADDRESS (UINT64_C(1) << 32)
#define UMPIRE_MOST_BYTES    (UINT64_C(1) << 48)

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
  static const char *const marks[][2] = {{"\"category\"", "\"name\""},
                                         {"\"kind\"", "\"payload\""},
                                         {"\"event\"", "\"payload\""},
                                         {"\"kind\"", "\"umpire_replay\""}};
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
  json_decref(reader->names);
  json_decref(reader->refs);
  json_decref(reader->requests);
  key_map_clear(&reader->made);
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
    reader->names = json_object();
    reader->refs = json_object();
    reader->requests = json_object();
    reader->next_address = UMPIRE_FIRST_ADDRESS;
  }
  if (reader && reader->names && reader->refs && reader->requests) return reader;
  snprintf(message, message_bytes, "out of memory");
  if (reader) umpire_close(reader);
  return NULL;
}

/* ---- Allocators ------------------------------------------------------------------------------------------------ */

/* The memory of an allocator as a number: UMPIRE_HOST, UMPIRE_MANAGED, or that of a device. */
enum { UMPIRE_HOST = -2, UMPIRE_MANAGED = -1 };

/* The memory of a resource, by its name: "DEVICE::1", "UM", "HOST" and so on. */
static json_int_t umpire_memory(const char *name)
{
  static const char *const hosts[] = {"HOST", "PINNED", "FILE", "SHARED"};
  for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
    if (strncmp(name, hosts[i], strlen(hosts[i])) == 0) return UMPIRE_HOST;
  if (strncmp(name, "UM", 2) == 0) return UMPIRE_MANAGED;
  const char *number = strrchr(name, ':');
  long device = strncmp(name, "DEVICE", 6) == 0 && number ? strtol(number + 1, NULL, 10) : 0;
  return device > 0 && device <= INT32_MAX ? device : 0;
}

/* An allocator in the maps: each process has addresses of its own. */
static const char *umpire_key(const struct umpire_reader *reader, const char *name, char key[256])
{
  snprintf(key, 256, "%llu %.200s", (unsigned long long)reader->process, name);
  return key;
}

/* Notes an allocator that is made. `source` is the allocator that it takes its memory from, by its name or its address; NULL: it
 * is a resource. */
static void umpire_note_allocator(struct umpire_reader *reader, const char *name, const char *source, const char *ref)
{
  char key[256];
  if (!name || !ref) return;
  const json_t *below = source ? json_object_get(reader->names, umpire_key(reader, source, key)) : NULL;
  if (source && !below) below = json_object_get(reader->refs, umpire_key(reader, source, key));
  json_int_t memory = below ? json_integer_value(below) : source ? 0 : umpire_memory(name);
  json_object_set_new(reader->names, umpire_key(reader, name, key), json_integer(memory));
  json_object_set_new(reader->refs, umpire_key(reader, ref, key),
                      json_integer(memory)); /* that of one that is no more */
}

/* Gives a row the space of its allocator. False: it is of host memory, which is counted. */
static bool umpire_place(struct umpire_reader *reader, const json_t *ref, struct trace_row *row)
{
  char key[256];
  const char *text = json_string_value(ref);
  const json_t *found = text ? json_object_get(reader->refs, umpire_key(reader, text, key)) : NULL;
  json_int_t memory = found ? json_integer_value(found) : 0;
  row->space = (struct trace_space){.process = reader->process, .device = memory > 0 ? (int32_t)memory : 0};
  if (memory == UMPIRE_MANAGED) row->space.memory = TRACE_MANAGED_MEMORY;
  reader->of_host += memory == UMPIRE_HOST;
  return memory != UMPIRE_HOST;
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
  if (!umpire_place(reader, ref, row)) return TRACE_LINE_END;
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

/* The process of an event: `mpirun` can put the lines of several into one file. */
static void umpire_note_process(struct umpire_reader *reader, const json_t *uid)
{
  if (json_is_integer(uid) && json_integer_value(uid) > 0) reader->process = (uint64_t)json_integer_value(uid);
}

/* Keeps a row: what is a failed allocation shows only at the end. False: out of memory. */
static bool umpire_keep(struct umpire_reader *reader, uint32_t number, const struct trace_row *row)
{
  if (!array_grow(&reader->rows, reader->n_rows, &reader->capacity, sizeof *reader->rows)) return false;
  reader->rows[reader->n_rows++] = (struct umpire_row){.row = *row, .line = number};
  return true;
}

/* Notes that the last row is a request, or that it is the result of an earlier one with that key: of several that are equal, the
 * last. False: out of memory. */
static bool umpire_match(struct umpire_reader *reader, const char *key, bool is_result)
{
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

static bool umpire_match_payload(struct umpire_reader *reader, const json_t *payload, bool is_result)
{
  char key[160];
  const char *ref = json_string_value(json_object_get(payload, "allocator_ref"));
  snprintf(key, sizeof key, "%llu %.64s %lld", (unsigned long long)reader->process, ref ? ref : "",
           (long long)json_integer_value(json_object_get(payload, "size")));
  return umpire_match(reader, key, is_result);
}

/* Keeps the row of an event of an older release, if it has one. */
static enum trace_line umpire_event(struct umpire_reader *reader, uint32_t number, json_t *event)
{
  const char *name = json_string_value(json_object_get(event, "event"));
  const json_t *payload = json_object_get(event, "payload"), *result = json_object_get(event, "result");
  const json_t *size = json_object_get(payload, "size");
  struct trace_row row = {.nanoseconds = TRACE_NO_TIME};
  umpire_note_process(reader, json_object_get(event, "uid"));
  if (strcmp(name, "makeMemoryResource") == 0)
    umpire_note_allocator(reader, json_string_value(json_object_get(payload, "name")), NULL, json_string_value(result));
  if (strcmp(name, "makeAllocator") == 0 && result)
    umpire_note_allocator(reader, json_string_value(json_object_get(payload, "allocator_name")),
                          umpire_source(json_object_get(payload, "args")),
                          json_string_value(json_object_get(result, "allocator_ref")));
  if (strcmp(name, "release") == 0) reader->releases++;
  bool allocates = strcmp(name, "allocate") == 0, frees = strcmp(name, "deallocate") == 0;
  if ((!allocates && !frees) || !umpire_place(reader, json_object_get(payload, "allocator_ref"), &row))
    return TRACE_LINE_END;
  row.action = frees ? TRACE_FREE : result ? TRACE_ALLOCATE : TRACE_ALLOCATE_FAILURE;
  const json_t *pointer = json_object_get(frees ? payload : result, "memory_ptr");
  if ((allocates && !size) || !umpire_fill(&row, event, allocates ? size : NULL, pointer, !allocates || result))
    return TRACE_LINE_ERROR;
  reader->is_out_of_memory =
      !umpire_keep(reader, number, &row) || (allocates && !umpire_match_payload(reader, payload, result != NULL));
  return reader->is_out_of_memory ? TRACE_LINE_ERROR : TRACE_LINE_END;
}

/* ---- "v2" ------------------------------------------------------------------------------------------------------ */

/* The address that a block's number stands for: of a new block behind the last one. False: out of memory. */
static bool umpire_make_address(struct umpire_reader *reader, struct trace_row *row, const char *block)
{
  uint64_t number = strtoull(block + (*block == 'm'), NULL, 10) + 1,
           bytes = row->bytes < UMPIRE_MOST_BYTES ? row->bytes : 0;
  row->pointer = key_map_get(&reader->made, number);
  if (row->action == TRACE_FREE) return true;
  row->pointer = reader->next_address;
  reader->next_address += (bytes + 511) & ~(uint64_t)255;
  return key_map_put(&reader->made, number, row->pointer);
}

/* The allocator in the arguments of one that is made. */
static const char *umpire_source_of(const struct umpire_reader *reader, json_t *arguments)
{
  char key[256];
  const char *name, *found = NULL;
  json_t *value;
  json_object_foreach(arguments, name, value)
  {
    const char *text = json_string_value(value);
    if (text && json_object_get(reader->refs, umpire_key(reader, text, key))) found = text;
  }
  return found;
}

/* Keeps the row of a command. A request stands as a failed allocation until it is committed. */
static enum trace_line umpire_command(struct umpire_reader *reader, uint32_t number, json_t *command)
{
  const char *name = json_string_value(json_object_get(command, "op"));
  const char *status = json_string_value(json_object_get(command, "status"));
  const char *allocator = json_string_value(json_object_get(command, "allocator_id"));
  const char *block = json_string_value(json_object_get(command, "allocation_id"));
  bool is_committed = !status || strcmp(status, "committed") == 0;
  json_t *arguments = json_object_get(command, "args"), *size = json_object_get(command, "size");
  struct trace_row row = {.nanoseconds = TRACE_NO_TIME};
  char key[96];
  if (name && strcmp(name, "make_allocator") == 0 && is_committed) {
    const char *resource = json_string_value(json_object_get(arguments, "resource_name"));
    const char *text = json_string_value(json_object_get(command, "name"));
    umpire_note_allocator(reader, resource ? resource : text, resource ? NULL : umpire_source_of(reader, arguments),
                          allocator);
  }
  bool allocates = name && strcmp(name, "allocate") == 0, frees = name && strcmp(name, "deallocate") == 0;
  if ((!allocates && !(frees && is_committed)) || !umpire_place(reader, json_object_get(command, "allocator_id"), &row))
    return TRACE_LINE_END;
  if (!block || (allocates && !umpire_fill(&row, command, size ? size : json_null(), NULL, false)))
    return TRACE_LINE_ERROR;
  row.action = frees ? TRACE_FREE : is_committed ? TRACE_ALLOCATE : TRACE_ALLOCATE_FAILURE;
  snprintf(key, sizeof key, "%.64s", block);
  reader->is_out_of_memory = (row.action != TRACE_ALLOCATE_FAILURE && !umpire_make_address(reader, &row, block)) ||
                             !umpire_keep(reader, number, &row) ||
                             (allocates && !umpire_match(reader, key, is_committed));
  return reader->is_out_of_memory ? TRACE_LINE_ERROR : TRACE_LINE_END;
}

/* ---- Lines ----------------------------------------------------------------------------------------------------- */

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
  if (!event && umpire_is_move(line, end)) return TRACE_LINE_END;
  if (!event) {
    snprintf(message, message_bytes, "is cut off or no JSON: column %d: %s", error.column, error.text);
    return TRACE_LINE_ERROR;
  }
  *row_out = (struct trace_row){.nanoseconds = TRACE_NO_TIME};
  enum trace_line found = TRACE_LINE_END;
  if (json_object_get(event, "category"))
    found = umpire_operation(reader, event, row_out);
  else if (json_is_string(json_object_get(event, "event")))
    found = umpire_event(reader, number, event);
  else if (json_object_get(event, "op"))
    found = umpire_command(reader, number, event);
  else if (json_object_get(event, "schema"))
    umpire_note_process(reader, json_object_get(json_object_get(event, "process"), "pid"));
  else
    reader->others++;
  json_decref(event);
  if (found == TRACE_LINE_ERROR)
    snprintf(message, message_bytes, "%s",
             reader->is_out_of_memory
                 ? "out of memory"
                 : "the event lacks a size, or an address as \"0x7f0000000000\"; Umpire 1.0 to 2026 are known");
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
               {reader->others, "line of JSON without an event", "lines of JSON without an event"}};
  const char *sign = reader->made.count ? "; left out: " : "left out: ";
  size_t used =
      (size_t)snprintf(text, text_bytes, "%s",
                       reader->made.count ? "the log has numbers of blocks, for which addresses were made up" : "");
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
