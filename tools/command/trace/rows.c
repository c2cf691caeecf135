/* SPDX-License-Identifier: MIT */
/* rows.c: see rows.h. The first bytes of a file tell its format. */
#include "rows.h"
#include "../../../core/base/key_map.h"
#include "format.h"
#include "live.h"
#include "stack_texts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char *trace_rows_command = "replay";

void trace_rows_set_command(const char *name)
{
  trace_rows_command = name;
}

/* In the order in which they are tried. */
static const struct trace_format *const trace_formats[] = {
    &trace_format_record,    &trace_format_umpire,  &trace_format_state,      &trace_format_snapshot,
    &trace_format_sqlite,    &trace_format_rocprof, &trace_format_rmm_events, &trace_format_kokkos,
    &trace_format_rmm_mixed, &trace_format_rmm};

struct trace_rows {
  const char *file; /* as messages name it */
  bool from_standard_input;
  struct trace_lines lines;
  const struct trace_format *format;
  void *reader;
  struct trace_live live; /* for formats whose frees lack sizes */
  bool wants_all;
  struct key_map marks;     /* by thread: the tags of its last row, whose outermost is a mark that has not ended */
  struct trace_row pending; /* comes after its marks */
  bool is_pending;
  uint32_t line;
  uint32_t good_lines;                          /* that were read, up to one that is not whole */
  enum { ROWS_WHOLE, ROWS_OPEN, ROWS_CUT } end; /* of the last line; open: it is whole, but has no newline */
  char remark[512];
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

/* ---- Formats with lines ---------------------------------------------------------------------------------------- */

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
  char what[512];
  while ((state = trace_lines_next(&rows->lines, &line, &end)) == TRACE_LINE) {
    if (rows->line == UINT32_MAX) return trace_rows_fail(rows, "has more lines than can be counted");
    rows->line++;
    if (trace_line_is_blank(line, end)) continue;
    state = rows->format->line(rows->reader, rows->line, line, end, row_out, what, sizeof what);
    bool is_open = trace_lines_is_open(&rows->lines);
    if (state == TRACE_LINE_ERROR && is_open && rows->good_lines) { /* the program was killed while it wrote */
      rows->end = ROWS_CUT;
      return TRACE_LINE_END;
    }
    if (state == TRACE_LINE_ERROR) return trace_rows_fail_here(rows, what);
    rows->good_lines++;
    if (is_open) rows->end = ROWS_OPEN;
    if (state == TRACE_LINE) return TRACE_LINE;
  }
  return trace_rows_end_of_lines(rows, state);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------ */

static enum trace_line trace_rows_next_row(struct trace_rows *rows, struct trace_row *row_out)
{
  char what[512];
  enum trace_line state;
  do state = rows->format->next(rows->reader, row_out, what, sizeof what);
  while (state == TRACE_LINE && !rows->wants_all && !trace_action_is_of_blocks(row_out->action));
  if (state == TRACE_LINE && rows->format->line_of_row)
    rows->line = rows->format->line_of_row(rows->reader);
  else if (state == TRACE_LINE && rows->line < UINT32_MAX)
    rows->line++;
  return state == TRACE_LINE_ERROR ? trace_rows_fail(rows, what) : state;
}

static enum trace_line trace_rows_read(struct trace_rows *rows, struct trace_row *row_out)
{
  struct trace_pair pair;
  enum trace_line state = rows->format->line ? trace_rows_next_line(rows, row_out) : TRACE_LINE_END;
  if (state == TRACE_LINE_END && rows->format->next) state = trace_rows_next_row(rows, row_out);
  if (state != TRACE_LINE || !rows->format->frees_lack_sizes) return state;
  if (row_out->action == TRACE_FREE && row_out->space.device == TRACE_ANY_DEVICE)
    trace_live_place(&rows->live, row_out);
  if (row_out->space.device < 0) row_out->space.device = 0;
  if (!trace_live_note(&rows->live, row_out, &pair)) return trace_rows_fail(rows, "out of memory while reading it");
  if (pair.slot && row_out->action == TRACE_FREE && !row_out->bytes) row_out->bytes = pair.bytes;
  return TRACE_LINE;
}

/* Whether the outermost tags are the same. */
static bool trace_rows_is_same_step(const struct trace_rows *rows, uint32_t one, uint32_t other)
{
  const char *text = one && other ? trace_rows_tags(rows, one) : NULL;
  char *step = text ? strndup(text, strcspn(text, "\n") + 1) : NULL;
  text = step ? trace_rows_tags(rows, other) : NULL;
  const bool is_same = text && strncmp(step, text, strlen(step)) == 0;
  free(step);
  return is_same;
}

/* A thread's outermost tag is a mark from its first row with it to the next without. Gives the row of one that ends or begins
 * with this row. False: there is none, or no memory for it. */
static bool trace_rows_mark(struct trace_rows *rows, const struct trace_row *row, struct trace_row *mark_out)
{
  const uint32_t last = (uint32_t)key_map_get(&rows->marks, row->thread);
  if (last == row->tags) return false;
  const bool is_same = trace_rows_is_same_step(rows, last, row->tags);
  const uint32_t now = last && !is_same ? 0 : row->tags;
  if (!now) key_map_extract(&rows->marks, row->thread);
  if ((now && !key_map_put(&rows->marks, row->thread, now)) || is_same) return false;
  *mark_out = *row;
  mark_out->action = now ? TRACE_MARK : TRACE_MARK_END;
  mark_out->tags = now ? now : last;
  mark_out->stack = 0;
  return true;
}

enum trace_line trace_rows_next(struct trace_rows *rows, struct trace_row *row_out)
{
  if (!rows->is_pending) {
    enum trace_line state = trace_rows_read(rows, &rows->pending);
    if (state != TRACE_LINE) return state;
  }
  rows->is_pending = rows->wants_all && rows->format->tags && trace_action_is_of_blocks(rows->pending.action) &&
                     trace_rows_mark(rows, &rows->pending, row_out);
  if (!rows->is_pending) *row_out = rows->pending;
  return TRACE_LINE;
}

void trace_rows_want_all(struct trace_rows *rows)
{
  rows->wants_all = true;
}

const char *trace_rows_message(const struct trace_rows *rows)
{
  return rows->message;
}

uint32_t trace_rows_line(const struct trace_rows *rows)
{
  return rows->line;
}

static void trace_rows_progress(const struct trace_rows *rows, uint64_t *done_out, uint64_t *total_out)
{
  *done_out = rows->lines.done_bytes - (rows->lines.end - rows->lines.start);
  *total_out = rows->lines.total_bytes;
  if (rows->format->progress) rows->format->progress(rows->reader, done_out, total_out);
}

uint64_t trace_rows_done_bytes(const struct trace_rows *rows)
{
  uint64_t done, total;
  trace_rows_progress(rows, &done, &total);
  return done;
}

uint64_t trace_rows_total_bytes(const struct trace_rows *rows)
{
  uint64_t done, total;
  trace_rows_progress(rows, &done, &total);
  return total;
}

const char *trace_rows_remark(struct trace_rows *rows)
{
  static const char *const ends[] = {
      [ROWS_CUT] = "the file is cut off: its last line is not whole",
      [ROWS_OPEN] = "its last line has no newline: if the file is cut off there, a number in that line is too small"};
  const char *end =
      rows->end == ROWS_CUT || (rows->end == ROWS_OPEN && rows->format->ends_in_number) ? ends[rows->end] : NULL;
  char text[sizeof rows->remark] = "";
  if (rows->format->remark) rows->format->remark(rows->reader, text, sizeof text);
  snprintf(rows->remark, sizeof rows->remark, "%s%s%.*s", end ? end : "", end && *text ? "; " : "",
           (int)(sizeof rows->remark - 128), text);
  return rows->remark;
}

const struct stack_texts *trace_rows_stacks(const struct trace_rows *rows)
{
  return rows->format->stacks ? rows->format->stacks(rows->reader) : NULL;
}

const char *trace_rows_stack(const struct trace_rows *rows, uint32_t stack)
{
  if (rows->format->stacks) return stack_texts_get(rows->format->stacks(rows->reader), stack);
  return rows->format->stack ? rows->format->stack(rows->reader, stack) : NULL;
}

const char *trace_rows_tags(const struct trace_rows *rows, uint32_t tags)
{
  return rows->format->tags ? rows->format->tags(rows->reader, tags) : NULL;
}

bool trace_rows_have_tags(const struct trace_rows *rows)
{
  return rows->format->has_tags && rows->format->has_tags(rows->reader);
}

const char *trace_rows_tag(const struct trace_rows *rows, const struct trace_row *row, size_t *bytes_out)
{
  const char *text = row->tags ? trace_rows_tags(rows, row->tags) : NULL, *end = text ? text + strlen(text) : NULL;
  if (end > text && end[-1] == '\n') end--;
  const char *start = end;
  while (start > text && start[-1] != '\n') start--;
  *bytes_out = (size_t)(end - start);
  return *bytes_out ? start : NULL;
}

const struct json_t *trace_rows_state(const struct trace_rows *rows)
{
  return rows->format->state ? rows->format->state(rows->reader) : NULL;
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

/* The tool that unpacks a file with this beginning; NULL if the file is not packed. */
static const char *trace_packer(const char *start, size_t bytes)
{
  static const struct {
    const char *tool, *magic;
    size_t bytes;
  } packers[] = {{"xz",
                  "\xfd"
                  "7zXZ\0",
                  6},
                 {"gzip", "\x1f\x8b", 2},
                 {"zstd", "\x28\xb5\x2f\xfd", 4},
                 {"bzip2", "BZh", 3}};
  for (size_t i = 0; i < sizeof packers / sizeof *packers; i++)
    if (bytes >= packers[i].bytes && memcmp(start, packers[i].magic, packers[i].bytes) == 0) return packers[i].tool;
  return NULL;
}

static bool trace_rows_begin(struct trace_rows *rows, const char *file)
{
  char what[PATH_MAX + 64];
  const char *start;
  if (!trace_lines_open(&rows->lines, file)) return trace_rows_fail(rows, strerror(errno)) == TRACE_LINE;
  size_t bytes = trace_lines_peek(&rows->lines, &start), i = 0;
  const char *tool = trace_packer(start, bytes);
  if (tool) {
    snprintf(what, sizeof what, "is %s-compressed; pipe it: %s -dc %s | hipmm %s -", tool, tool,
             rows->from_standard_input ? "FILE" : rows->file, trace_rows_command);
    return trace_rows_fail(rows, what) == TRACE_LINE;
  }
  while (!trace_formats[i]->is(start, bytes)) i++; /* the last one takes any */
  rows->format = trace_formats[i];
  rows->reader = rows->format->open(&rows->lines, what, sizeof what);
  return rows->reader || trace_rows_fail(rows, what) == TRACE_LINE;
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
  if (trace_rows_begin(rows, file)) return rows;
  snprintf(message, message_bytes, "%s", rows->message);
  trace_rows_close(rows);
  return NULL;
}

void trace_rows_close(struct trace_rows *rows)
{
  if (rows->reader) rows->format->close(rows->reader);
  trace_lines_close(&rows->lines);
  trace_live_clear(&rows->live);
  key_map_clear(&rows->marks);
  free(rows);
}
