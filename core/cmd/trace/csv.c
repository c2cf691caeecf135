/* SPDX-License-Identifier: MIT */
/* csv.c: see csv.h. Logs have millions of lines, so a line is neither copied nor given to scanf(). read() serves pipes
 * and files alike; with mmap() a file that shrinks meanwhile would raise SIGBUS. */
#include "csv.h"
#include "../../base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Lines ----------------------------------------------------------------------------------------------------- */

enum { TRACE_LINES_BUFFER = 1 << 20 };

bool trace_lines_open(struct trace_lines *lines, const char *file)
{
  struct stat about;
  *lines = (struct trace_lines){.fd = STDIN_FILENO};
  if (strcmp(file, "-") != 0) lines->fd = open(file, O_RDONLY | O_CLOEXEC);
  if (lines->fd < 0) return false;
  if (fstat(lines->fd, &about) == 0 && S_ISREG(about.st_mode)) lines->total_bytes = (uint64_t)about.st_size;
  lines->buffer = malloc(TRACE_LINES_BUFFER);
  if (lines->buffer) return true;
  trace_lines_close(lines);
  errno = ENOMEM;
  return false;
}

void trace_lines_close(struct trace_lines *lines)
{
  if (lines->fd > STDIN_FILENO) close(lines->fd);
  free(lines->buffer);
  *lines = (struct trace_lines){.fd = -1};
}

/* Reads more behind what is there. False: errno tells. */
static bool trace_csv_fill(struct trace_lines *lines)
{
  size_t kept = lines->end - lines->start;
  memmove(lines->buffer, lines->buffer + lines->start, kept);
  lines->start = 0;
  lines->end = kept;
  if (kept == TRACE_LINES_BUFFER) {
    errno = EMSGSIZE;
    return false;
  }
  ssize_t got;
  do got = read(lines->fd, lines->buffer + kept, TRACE_LINES_BUFFER - kept);
  while (got < 0 && errno == EINTR);
  if (got < 0) return false;
  lines->at_end = got == 0;
  lines->end += (size_t)got;
  lines->done_bytes += (uint64_t)got;
  return true;
}

size_t trace_lines_peek(struct trace_lines *lines, const char **start_out)
{
  if (lines->start == lines->end && !lines->at_end) (void)trace_csv_fill(lines); /* the next read tells of an error */
  *start_out = lines->buffer + lines->start;
  return lines->end - lines->start;
}

size_t trace_lines_rest(struct trace_lines *lines, const char **start_out, int *code_out)
{
  if (lines->start == lines->end && !lines->at_end && !trace_csv_fill(lines)) {
    *code_out = errno;
    return 0;
  }
  size_t bytes = lines->end - lines->start;
  *start_out = lines->buffer + lines->start;
  lines->start = lines->end;
  return bytes;
}

enum trace_line trace_lines_next(struct trace_lines *lines, const char **line_out, const char **end_out)
{
  const char *start, *newline;
  for (;;) {
    start = lines->buffer + lines->start;
    newline = memchr(start, '\n', lines->end - lines->start);
    if (newline || lines->at_end) break;
    if (!trace_csv_fill(lines)) return TRACE_LINE_ERROR;
  }
  if (!newline && lines->start == lines->end) return TRACE_LINE_END;
  *line_out = start;
  *end_out = newline ? newline : lines->buffer + lines->end;
  lines->start = (size_t)(*end_out - lines->buffer) + (newline != NULL);
  return TRACE_LINE;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------ */

enum { TRACE_MOST_COLUMNS = 32, TRACE_QUOTED = 40 };

struct field {
  const char *start, *end;
};

const struct trace_columns trace_default_columns = {
    .thread = 0, .time = 1, .action = 2, .pointer = 3, .size = 4, .stream = 5, .count = 6};

static struct field trace_csv_trim(const char *start, const char *end)
{
  while (start < end && (*start == ' ' || *start == '\t')) start++;
  while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
  return (struct field){start, end};
}

/* Splits at commas; returns how many columns there are, of which at most TRACE_MOST_COLUMNS are stored. */
static int trace_csv_split(const char *line, const char *end, struct field *fields)
{
  int n = 0;
  for (const char *start = line, *at = line;; at++) {
    if (at < end && *at != ',') continue;
    if (n < TRACE_MOST_COLUMNS) fields[n] = trace_csv_trim(start, at);
    n++;
    if (at == end) return n;
    start = at + 1;
  }
}

static bool trace_csv_field_is(struct field field, const char *word)
{
  size_t length = strlen(word);
  return (size_t)(field.end - field.start) == length && strncasecmp(field.start, word, length) == 0;
}

static bool trace_csv_refuse(char *message, size_t message_bytes, struct field field, const char *what)
{
  int length = (int)(field.end - field.start);
  snprintf(message, message_bytes, "\"%.*s%s\" %s", length < TRACE_QUOTED ? length : TRACE_QUOTED, field.start,
           length < TRACE_QUOTED ? "" : "…", what);
  return false;
}

static bool trace_csv_read_decimal(const char *at, const char *end, uint64_t *number_out)
{
  uint64_t number = 0;
  if (at == end) return false;
  for (; at < end; at++) {
    unsigned digit = (unsigned)*at - '0';
    if (digit > 9 || __builtin_mul_overflow(number, 10u, &number) || __builtin_add_overflow(number, digit, &number))
      return false;
  }
  *number_out = number;
  return true;
}

static int trace_csv_digit_of(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

static bool trace_csv_read_hexadecimal(const char *at, const char *end, uint64_t *number_out)
{
  uint64_t number = 0;
  if (at == end) return false;
  for (; at < end; at++) {
    int digit = trace_csv_digit_of(*at);
    if (digit < 0 || number >> 60) return false;
    number = number << 4 | (unsigned)digit;
  }
  *number_out = number;
  return true;
}

/* "0x302000000", "(nil)", "0", and plain decimal as some write streams. */
static bool trace_csv_read_address(struct field field, uint64_t *number_out)
{
  const char *at = field.start;
  if (field.end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
    return trace_csv_read_hexadecimal(at + 2, field.end, number_out);
  if (!trace_csv_field_is(field, "(nil)")) return trace_csv_read_decimal(at, field.end, number_out);
  *number_out = 0;
  return true;
}

static bool trace_csv_read_action(struct field field, enum trace_action *action_out)
{
  if (trace_csv_field_is(field, "allocate"))
    *action_out = TRACE_ALLOCATE;
  else if (trace_csv_field_is(field, "free"))
    *action_out = TRACE_FREE;
  else if (trace_csv_field_is(field, "allocate failure"))
    *action_out = TRACE_ALLOCATE_FAILURE;
  else if (trace_csv_field_is(field, "free failure"))
    *action_out = TRACE_FREE_FAILURE;
  else
    return false;
  return true;
}

static int trace_csv_find_column(const struct field *fields, int n, const char *name)
{
  for (int i = 0; i < n && i < TRACE_MOST_COLUMNS; i++)
    if (trace_csv_field_is(fields[i], name)) return i;
  return -1;
}

bool trace_is_header(const char *line, const char *end)
{
  struct field fields[TRACE_MOST_COLUMNS];
  return trace_csv_find_column(fields, trace_csv_split(line, end, fields), "Action") >= 0;
}

bool trace_header_read(const char *line, const char *end, struct trace_columns *columns_out, char *message,
                       size_t message_bytes)
{
  struct field fields[TRACE_MOST_COLUMNS];
  int n = trace_csv_split(line, end, fields);
  struct trace_columns columns = {.action = trace_csv_find_column(fields, n, "Action"),
                                  .pointer = trace_csv_find_column(fields, n, "Pointer"),
                                  .size = trace_csv_find_column(fields, n, "Size"),
                                  .stream = trace_csv_find_column(fields, n, "Stream"),
                                  .thread = trace_csv_find_column(fields, n, "Thread"),
                                  .time = trace_csv_find_column(fields, n, "Time"),
                                  .count = n};
  if (n > TRACE_MOST_COLUMNS) {
    snprintf(message, message_bytes, "the header has %d columns; at most %d are allowed", n, TRACE_MOST_COLUMNS);
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

/* A time of day, as "14:46:40.115854" or, of older releases, "14:46:40:115854". */
static bool trace_csv_read_time(struct field field, int64_t *nanoseconds_out)
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
  if (at < field.end && *at != '.' && *at != ':') return false;
  int64_t unit = 100000000;
  for (at += at < field.end; at < field.end && *at >= '0' && *at <= '9'; at++, unit /= 10)
    *nanoseconds_out += (*at - '0') * unit;
  return at == field.end;
}

/* A time that is half a day earlier than the row before is of the next day. */
static int64_t trace_csv_time(struct field field, struct trace_clock *clock)
{
  const int64_t half_day = INT64_C(43200000000000);
  int64_t time;
  if (!trace_csv_read_time(field, &time)) return TRACE_NO_TIME;
  if (clock->day + time < clock->last - half_day) clock->day += 2 * half_day;
  clock->last = clock->day + time;
  return clock->last;
}

bool trace_row_read(const struct trace_columns *columns, struct trace_clock *clock, const char *line, const char *end,
                    struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct field fields[TRACE_MOST_COLUMNS];
  int n = trace_csv_split(line, end, fields);
  if (n != columns->count) {
    snprintf(message, message_bytes, "%d column%s instead of %d", n, text_plural((uint64_t)n), columns->count);
    return false;
  }
  struct trace_row row = {.nanoseconds = TRACE_NO_TIME};
  uint64_t thread = 0;
  if (!trace_csv_read_action(fields[columns->action], &row.action))
    return trace_csv_refuse(message, message_bytes, fields[columns->action],
                            "is no action; allowed are allocate, free, allocate failure and free failure");
  if (!trace_csv_read_address(fields[columns->pointer], &row.pointer))
    return trace_csv_refuse(message, message_bytes, fields[columns->pointer], "is no pointer; write it as 0x302000000");
  if (!trace_csv_read_decimal(fields[columns->size].start, fields[columns->size].end, &row.bytes))
    return trace_csv_refuse(message, message_bytes, fields[columns->size], "is no size; write it in bytes, as 4096");
  if (columns->stream >= 0 && !trace_csv_read_address(fields[columns->stream], &row.stream))
    return trace_csv_refuse(message, message_bytes, fields[columns->stream],
                            "is no stream; write it as 0x0 or 0x7f41c40036a0");
  if (columns->thread >= 0 && trace_csv_read_address(fields[columns->thread], &thread)) row.thread = (uint32_t)thread;
  if (columns->time >= 0) row.nanoseconds = trace_csv_time(fields[columns->time], clock);
  *row_out = row;
  return true;
}
