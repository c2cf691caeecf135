/* SPDX-License-Identifier: MIT */
/* rmm.c: reads RMM's CSV, as the `logging` resource writes it too. It is the format of a file that is no other. In the log of
 * an executor of Spark RAPIDS its rows stand among other lines, without a header. */
#include "../../../core/base/record_format.h"
#include "../../../core/base/text.h"
#include "csv.h"
#include "format.h"
#include "stack_texts.h"

#include <stdlib.h>
#include <string.h>

/* The index of each column. */
struct rmm_columns {
  int action, pointer, size;
  int stream;       /* -1: the log has none, all is on the default stream */
  int thread, time; /* -1: the log has none */
  int tag;          /* of hipmm; -1: the log has none */
  int count;
};

/* Counts the days of a log, whose rows have the time of day alone. */
struct rmm_clock {
  int64_t day, last; /* nanoseconds */
};

struct rmm_reader {
  struct rmm_columns columns;
  struct rmm_clock clock;
  struct stack_texts tags;
  const struct trace_lines *lines;
  uint64_t others; /* lines that are no rows, of a mixed log */
};

/* RMM's order, for a log without a header. */
static const struct rmm_columns rmm_default_columns = {
    .thread = 0, .time = 1, .action = 2, .pointer = 3, .size = 4, .stream = 5, .tag = -1, .count = 6};

static bool rmm_read_action(struct csv_field field, enum trace_action *action_out)
{
  static const struct {
    const char *word;
    enum trace_action action;
  } words[] = {{"allocate", TRACE_ALLOCATE},         {"free", TRACE_FREE},
               {"deallocate", TRACE_FREE},           {"allocate failure", TRACE_ALLOCATE_FAILURE},
               {"free failure", TRACE_FREE_FAILURE}, {"deallocate failure", TRACE_FREE_FAILURE}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    *action_out = words[i].action;
    if (csv_field_is(field, words[i].word)) return true;
  }
  return false;
}

/* Whether a line is a header rather than a row: it has a column "Action". */
static bool rmm_is_header(const char *line, const char *end)
{
  struct csv_field fields[CSV_MOST_COLUMNS];
  return csv_find_column(fields, csv_split(line, end, fields), "Action") >= 0;
}

/* On false `message` tells which column is missing. */
static bool rmm_read_header(const char *line, const char *end, struct rmm_columns *columns_out, char *message,
                            size_t message_bytes)
{
  struct csv_field fields[CSV_MOST_COLUMNS];
  int n = csv_split(line, end, fields);
  struct rmm_columns columns = {.action = csv_find_column(fields, n, "Action"),
                                .pointer = csv_find_column(fields, n, "Pointer"),
                                .size = csv_find_column(fields, n, "Size"),
                                .stream = csv_find_column(fields, n, "Stream"),
                                .thread = csv_find_column(fields, n, "Thread"),
                                .time = csv_find_column(fields, n, "Time"),
                                .tag = csv_find_column(fields, n, "Tag"),
                                .count = n};
  if (n > CSV_MOST_COLUMNS) {
    snprintf(message, message_bytes, "the header has %d columns; at most %d are allowed", n, CSV_MOST_COLUMNS);
    return false;
  }
  if (columns.pointer < 0 || columns.size < 0) {
    snprintf(message, message_bytes,
             "the header has no column \"%s\"; RMM writes Thread,Time,Action,Pointer,Size,Stream",
             columns.pointer < 0 ? "Pointer" : "Size");
    return false;
  }
  *columns_out = columns;
  return true;
}

/* Adds the digits behind a point, or the colon of older releases, if there is one. False: something else follows. */
static bool rmm_read_fraction(const char *at, const char *end, int64_t *nanoseconds)
{
  int64_t unit = 100000000;
  if (at < end && *at != '.' && *at != ':') return false;
  for (at += at < end; at < end && *at >= '0' && *at <= '9'; at++, unit /= 10) *nanoseconds += (*at - '0') * unit;
  return at == end;
}

/* A time of day, as "14:46:40.115854" or, of older releases, "14:46:40:115854". */
static bool rmm_read_time(struct csv_field field, int64_t *nanoseconds_out)
{
  static const int64_t units[] = {INT64_C(3600000000000), INT64_C(60000000000), INT64_C(1000000000)};
  const char *at = field.start;
  *nanoseconds_out = 0;
  for (int i = 0; i < 3; i++) {
    if (field.end - at < 2 || at[0] < '0' || at[0] > '9' || at[1] < '0' || at[1] > '9') return false;
    *nanoseconds_out += ((at[0] - '0') * 10 + (at[1] - '0')) * units[i];
    at += 2;
    if (i < 2 && (at == field.end || *at++ != ':')) return false;
  }
  return rmm_read_fraction(at, field.end, nanoseconds_out);
}

/* Seconds since 1970, as "1700000000.100001". */
static bool rmm_read_seconds(struct csv_field field, int64_t *nanoseconds_out)
{
  const char *point = memchr(field.start, '.', (size_t)(field.end - field.start)), *at = point ? point : field.end;
  uint64_t seconds;
  if (!csv_read_decimal(field.start, at, &seconds) || seconds > INT64_MAX / 1000000000 - 1) return false;
  *nanoseconds_out = (int64_t)seconds * 1000000000;
  return rmm_read_fraction(at, field.end, nanoseconds_out);
}

/* A time that is half a day earlier than the row before is of the next day. */
static int64_t rmm_time(struct csv_field field, struct rmm_clock *clock)
{
  const int64_t half_day = INT64_C(43200000000000);
  int64_t time;
  if (rmm_read_seconds(field, &time)) return time;
  if (!rmm_read_time(field, &time)) return TRACE_NO_TIME;
  bool is_later_day = clock->day + time < clock->last - half_day;
  if (is_later_day && clock->day < INT64_MAX / 2) clock->day += 2 * half_day;
  clock->last = clock->day + time;
  return clock->last;
}

/* The number of tags as csv_output.c writes them: the outermost first, with a semicolon between them. Without memory the row
 * has none. */
static bool rmm_read_tags(struct rmm_reader *reader, struct csv_field field, uint32_t *number_out)
{
  char text[RECORD_MOST_TAG_BYTES + 1];
  size_t used = 0;
  bool is_escaped = false;
  *number_out = 0;
  for (const char *at = field.start; at < field.end; at++) {
    if (*at == '"' && (++at == field.end || *at != '"')) return false;
    const bool is_end = *at == ';' && !is_escaped;
    is_escaped = *at == '\\' && !is_escaped;
    if (is_escaped || (is_end && (!used || text[used - 1] == '\n'))) continue; /* a name that is empty is left out */
    if (!*at || used == sizeof text - 2) return false;
    text[used++] = is_end ? '\n' : *at;
  }
  if (used && text[used - 1] != '\n') text[used++] = '\n';
  text[used] = '\0';
  if (used && !stack_texts_add(&reader->tags, text, number_out)) *number_out = 0;
  return true;
}

/* Reads a row. A time or thread that is not understood is not known: replay needs neither. */
static bool rmm_read_row(struct rmm_reader *reader, const char *line, const char *end, struct trace_row *row_out,
                         char *message, size_t message_bytes)
{
  struct csv_field fields[CSV_MOST_COLUMNS];
  const struct rmm_columns *columns = &reader->columns;
  int n = csv_split(line, end, fields);
  if (n != columns->count) {
    snprintf(message, message_bytes, "%d column%s instead of %d", n, text_plural((uint64_t)n), columns->count);
    return false;
  }
  struct trace_row row = {.nanoseconds = TRACE_NO_TIME};
  uint64_t thread = 0;
  if (!rmm_read_action(fields[columns->action], &row.action))
    return csv_refuse(message, message_bytes, fields[columns->action],
                      "is no action; allowed are allocate, free, deallocate, allocate failure and free failure");
  if (!csv_read_address(fields[columns->pointer], &row.pointer))
    return csv_refuse(message, message_bytes, fields[columns->pointer], "is no pointer; write it as 0x302000000");
  if (!csv_read_decimal(fields[columns->size].start, fields[columns->size].end, &row.bytes))
    return csv_refuse(message, message_bytes, fields[columns->size], "is no size; write it in bytes, as 4096");
  if (columns->stream >= 0 && !csv_read_address(fields[columns->stream], &row.stream))
    return csv_refuse(message, message_bytes, fields[columns->stream],
                      "is no stream; write it as 0x0 or 0x7f41c40036a0");
  if (columns->thread >= 0 && csv_read_address(fields[columns->thread], &thread)) row.thread = (uint32_t)thread;
  if (columns->time >= 0) row.nanoseconds = rmm_time(fields[columns->time], &reader->clock);
  if (columns->tag >= 0 && !rmm_read_tags(reader, fields[columns->tag], &row.tags))
    return csv_refuse(message, message_bytes, fields[columns->tag],
                      "is no tag; write \"step 2;layer 7\", with quotes doubled, in at most 254 bytes");
  *row_out = row;
  return true;
}

static void *rmm_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  struct rmm_reader *reader = calloc(1, sizeof *reader);
  if (!reader) return snprintf(message, message_bytes, "out of memory"), NULL;
  reader->columns = rmm_default_columns;
  reader->lines = lines;
  return reader;
}

static void rmm_close(void *state)
{
  struct rmm_reader *reader = state;
  stack_texts_clear(&reader->tags);
  free(reader);
}

static const char *rmm_tags(void *state, uint32_t number)
{
  const struct rmm_reader *reader = state;
  return stack_texts_get(&reader->tags, number);
}

static bool rmm_has_tags(void *state)
{
  const struct rmm_reader *reader = state;
  return reader->columns.tag >= 0;
}

static enum trace_line rmm_line(void *state, uint32_t number, const char *line, const char *end,
                                struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct rmm_reader *reader = state;
  if (number == 1 && rmm_is_header(line, end))
    return rmm_read_header(line, end, &reader->columns, message, message_bytes) ? TRACE_LINE_END : TRACE_LINE_ERROR;
  if (rmm_read_row(reader, line, end, row_out, message, message_bytes)) return TRACE_LINE;
  size_t length = strlen(message);
  if (number == 1) /* perhaps another kind of file */
    snprintf(message + length, message_bytes - length, "; a log begins with Thread,Time,Action,Pointer,Size,Stream");
  return TRACE_LINE_ERROR;
}

static bool rmm_is(const char *start, size_t bytes)
{
  (void)start, (void)bytes;
  return true;
}

const struct trace_format trace_format_rmm = {.is = rmm_is,
                                              .open = rmm_open,
                                              .line = rmm_line,
                                              .close = rmm_close,
                                              .tags = rmm_tags,
                                              .has_tags = rmm_has_tags,
                                              .ends_in_number = true};

/* ---- Rows among other lines ------------------------------------------------------------------------------------ */

/* Whether a line is a row, or one that is damaged, rather than something else with commas: it has the columns, and an action, a
 * time or a pointer where a row has them. */
static bool rmm_is_row(const char *line, const char *end)
{
  struct csv_field fields[CSV_MOST_COLUMNS];
  const struct rmm_columns *columns = &rmm_default_columns;
  enum trace_action action;
  int64_t time;
  uint64_t pointer;
  if (csv_split(line, end, fields) != columns->count) return false;
  return rmm_read_action(fields[columns->action], &action) || rmm_read_time(fields[columns->time], &time) ||
         (fields[columns->pointer].end - fields[columns->pointer].start > 2 &&
          csv_read_address(fields[columns->pointer], &pointer));
}

/* A log of another program has a row, and something else before it. */
static bool rmm_mixed_is(const char *start, size_t bytes)
{
  const char *end = start + bytes;
  for (const char *line = start, *newline; line < end; line = newline + 1) {
    newline = memchr(line, '\n', (size_t)(end - line));
    if (!newline) return false;
    if (rmm_is_header(line, newline) || rmm_is_row(line, newline)) return line > start;
  }
  return false;
}

static enum trace_line rmm_mixed_line(void *state, uint32_t number, const char *line, const char *end,
                                      struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct rmm_reader *reader = state;
  (void)number;
  if (rmm_is_header(line, end))
    return rmm_read_header(line, end, &reader->columns, message, message_bytes) ? TRACE_LINE_END : TRACE_LINE_ERROR;
  if (rmm_is_row(line, end))
    return rmm_read_row(reader, line, end, row_out, message, message_bytes) ? TRACE_LINE : TRACE_LINE_ERROR;
  reader->others++;
  if (!trace_lines_is_open(reader->lines)) return TRACE_LINE_END;
  snprintf(message, message_bytes, "is cut off");
  return TRACE_LINE_ERROR;
}

static void rmm_mixed_remark(const void *state, char *text, size_t text_bytes)
{
  const struct rmm_reader *reader = state;
  *text = '\0';
  if (reader->others)
    snprintf(text, text_bytes, "left out: %llu line%s that %s no row of RMM's log", (unsigned long long)reader->others,
             text_plural(reader->others), reader->others == 1 ? "is" : "are");
}

const struct trace_format trace_format_rmm_mixed = {.is = rmm_mixed_is,
                                                    .open = rmm_open,
                                                    .line = rmm_mixed_line,
                                                    .close = rmm_close,
                                                    .tags = rmm_tags,
                                                    .has_tags = rmm_has_tags,
                                                    .remark = rmm_mixed_remark,
                                                    .ends_in_number = true};
