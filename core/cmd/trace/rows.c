/* SPDX-License-Identifier: MIT */
/* rows.c: see rows.h. The first bytes of a file tell its format. */
#include "rows.h"
#include "record.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRACE_MAGIC = 6 };

struct trace_rows {
  const char *file; /* as messages name it */
  bool from_standard_input;
  struct trace_lines lines; /* of a CSV log; and the file of a record */
  struct trace_columns columns;
  struct trace_clock clock;
  struct record *record; /* NULL: the log is CSV */
  FILE *spooled;         /* the record from standard input; else NULL */
  uint32_t line;
  char remark[256];
  char message[PATH_MAX + 512];
};

static enum trace_line trace_rows_fail(struct trace_rows *rows, const char *what)
{
  snprintf(rows->message, sizeof rows->message, "%s: %s", rows->file, what);
  return TRACE_LINE_ERROR;
}

static enum trace_line trace_rows_fail_here(struct trace_rows *rows, const char *what)
{
  snprintf(rows->message, sizeof rows->message, "%s:%u: %s", rows->file, rows->line, what);
  return TRACE_LINE_ERROR;
}

/* ---- CSV ------------------------------------------------------------------------------------------------------- */

/* The tool that unpacks a file with this beginning; NULL if the file is not packed. */
static const char *trace_packer(const char *line, size_t bytes)
{
  static const struct {
    const char *tool, *magic;
    size_t bytes;
  } packers[] = {{"xz",
                  "\xfd"
                  "7zXZ\0",
                  TRACE_MAGIC},
                 {"gzip", "\x1f\x8b", 2},
                 {"zstd", "\x28\xb5\x2f\xfd", 4},
                 {"bzip2", "BZh", 3}};
  for (size_t i = 0; i < sizeof packers / sizeof *packers; i++)
    if (bytes >= packers[i].bytes && memcmp(line, packers[i].magic, packers[i].bytes) == 0) return packers[i].tool;
  return NULL;
}

static enum trace_line trace_rows_first_line(struct trace_rows *rows, const char *line, const char *end,
                                             bool *is_header_out)
{
  char what[PATH_MAX + 64];
  const char *tool = trace_packer(line, (size_t)(end - line));
  if (tool) {
    const char *file = rows->from_standard_input ? "FILE" : rows->file;
    snprintf(what, sizeof what, "is %s-compressed; pipe it: %s -dc %s | hipmm replay -", tool, tool, file);
    return trace_rows_fail(rows, what);
  }
  *is_header_out = trace_is_header(line, end);
  if (!*is_header_out || trace_header_read(line, end, &rows->columns, what, sizeof what)) return TRACE_LINE;
  return trace_rows_fail_here(rows, what);
}

static bool trace_line_is_blank(const char *line, const char *end)
{
  while (line < end && (*line == ' ' || *line == '\t' || *line == '\r')) line++;
  return line == end;
}

static enum trace_line trace_rows_end_of_lines(struct trace_rows *rows, enum trace_line state)
{
  if (state == TRACE_LINE_ERROR) {
    rows->line++; /* the error is in the next line, which could not be read */
    return errno == EMSGSIZE ? trace_rows_fail_here(rows, "the line is longer than 1 MiB")
                             : trace_rows_fail(rows, strerror(errno));
  }
  if (!rows->line) return trace_rows_fail(rows, "is empty; expected a log as the `logging` resource writes it");
  return TRACE_LINE_END;
}

static enum trace_line trace_rows_next_line(struct trace_rows *rows, struct trace_row *row_out)
{
  const char *line, *end;
  enum trace_line state;
  char what[192];
  while ((state = trace_lines_next(&rows->lines, &line, &end)) == TRACE_LINE) {
    bool is_header = false;
    if (rows->line == UINT32_MAX) return trace_rows_fail(rows, "has more lines than can be counted");
    rows->line++;
    if (rows->line == 1 && trace_rows_first_line(rows, line, end, &is_header) == TRACE_LINE_ERROR)
      return TRACE_LINE_ERROR;
    if (is_header || trace_line_is_blank(line, end)) continue;
    if (trace_row_read(&rows->columns, &rows->clock, line, end, row_out, what, sizeof what)) return TRACE_LINE;
    size_t length = strlen(what);
    if (rows->line == 1) /* perhaps another kind of file */
      snprintf(what + length, sizeof what - length, "; a log begins with Thread,Time,Action,Pointer,Size,Stream");
    return trace_rows_fail_here(rows, what);
  }
  return trace_rows_end_of_lines(rows, state);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------ */

enum trace_line trace_rows_next(struct trace_rows *rows, struct trace_row *row_out)
{
  if (!rows->record) return trace_rows_next_line(rows, row_out);
  enum trace_line state = record_next(rows->record, row_out);
  if (state == TRACE_LINE && rows->line < UINT32_MAX) rows->line++;
  return state == TRACE_LINE_ERROR ? trace_rows_fail(rows, "out of memory while reading it") : state;
}

const char *trace_rows_message(const struct trace_rows *rows)
{
  return rows->message;
}

uint32_t trace_rows_line(const struct trace_rows *rows)
{
  return rows->line;
}

uint64_t trace_rows_done_bytes(const struct trace_rows *rows)
{
  return rows->record ? record_done_bytes(rows->record)
                      : rows->lines.done_bytes - (rows->lines.end - rows->lines.start);
}

uint64_t trace_rows_total_bytes(const struct trace_rows *rows)
{
  return rows->record ? record_total_bytes(rows->record) : rows->lines.total_bytes;
}

const char *trace_rows_remark(struct trace_rows *rows)
{
  if (rows->record) record_remark(rows->record, rows->remark, sizeof rows->remark);
  return rows->remark;
}

const char *trace_rows_stack(const struct trace_rows *rows, uint32_t stack)
{
  return rows->record ? record_stack(rows->record, stack) : NULL;
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

/* A pipe cannot seek, so the record is copied into a file without a name. An errno; 0: done. */
static int trace_rows_spool(struct trace_rows *rows)
{
  const char *start;
  size_t bytes;
  int code = 0;
  rows->spooled = tmpfile();
  if (!rows->spooled) return errno;
  while (!code && (bytes = trace_lines_rest(&rows->lines, &start, &code)) > 0)
    if (fwrite(start, 1, bytes, rows->spooled) < bytes) code = errno;
  return !code && fflush(rows->spooled) ? errno : code;
}

static bool trace_rows_begin(struct trace_rows *rows, const char *file)
{
  char what[256];
  const char *start;
  if (!trace_lines_open(&rows->lines, file)) return trace_rows_fail(rows, strerror(errno)) == TRACE_LINE;
  size_t bytes = trace_lines_peek(&rows->lines, &start);
  if (!record_is(start, bytes)) return true;
  int descriptor = rows->lines.fd, code = 0;
  if (!rows->lines.total_bytes) {
    code = trace_rows_spool(rows);
    descriptor = rows->spooled ? fileno(rows->spooled) : -1;
  }
  if (code) return trace_rows_fail(rows, strerror(code)) == TRACE_LINE;
  rows->record = record_open(descriptor, what, sizeof what);
  return rows->record || trace_rows_fail(rows, what) == TRACE_LINE;
}

struct trace_rows *trace_rows_open(const char *file, char *message, size_t message_bytes)
{
  struct trace_rows *rows = calloc(1, sizeof *rows);
  if (!rows) {
    snprintf(message, message_bytes, "%s: out of memory", file);
    return NULL;
  }
  rows->from_standard_input = strcmp(file, "-") == 0;
  rows->file = rows->from_standard_input ? "standard input" : file;
  rows->columns = trace_default_columns;
  if (trace_rows_begin(rows, file)) return rows;
  snprintf(message, message_bytes, "%s", rows->message);
  trace_rows_close(rows);
  return NULL;
}

void trace_rows_close(struct trace_rows *rows)
{
  if (rows->record) record_close(rows->record);
  if (rows->spooled) fclose(rows->spooled);
  trace_lines_close(&rows->lines);
  free(rows);
}
