/* SPDX-License-Identifier: MIT */
/* logs.c: see logs.h. */
#include "logs.h"
#include "../cmd.h"

#include <stdlib.h>

struct trace_log {
  const char *file;
  struct trace_rows *rows;
  struct trace_row row; /* the next one */
  bool is_read;         /* `row` was handed out: another is due */
  bool is_at_end;
};

static void trace_log_advance(struct trace_logs *logs, struct trace_log *log)
{
  enum trace_line state = trace_rows_next(log->rows, &log->row);
  log->is_read = false;
  log->is_at_end = state != TRACE_LINE;
  if (state == TRACE_LINE_ERROR) {
    say("%s", trace_rows_message(log->rows));
    logs->has_failed = true;
  } else if (log->is_at_end && *trace_rows_remark(log->rows)) {
    note("%s: %s", log->file, trace_rows_remark(log->rows));
  }
}

bool trace_logs_open(struct trace_logs *logs, char *const *files, size_t n)
{
  char message[PATH_MAX + 512];
  *logs = (struct trace_logs){.items = calloc(n, sizeof *logs->items)};
  if (!logs->items) {
    say("out of memory");
    return false;
  }
  for (; logs->n < n; logs->n++) {
    struct trace_log *log = &logs->items[logs->n];
    log->file = files[logs->n];
    log->is_read = true;
    log->rows = trace_rows_open(log->file, message, sizeof message);
    if (log->rows) continue;
    say("%s", message);
    trace_logs_close(logs);
    return false;
  }
  return true;
}

/* Says what of the order of several logs is not known, once their first rows are read: RMM's CSV has times of the day,
 * and others of the calendar or none. */
static void trace_logs_compare_clocks(struct trace_logs *logs)
{
  const int64_t year = INT64_C(366) * 86400 * INT64_C(1000000000);
  const char *of_day = NULL, *of_calendar = NULL;
  logs->is_compared = true;
  for (size_t i = 0; i < logs->n && logs->n > 1; i++) {
    const struct trace_log *log = &logs->items[i];
    if (log->is_at_end) continue;
    if (log->row.nanoseconds == TRACE_NO_TIME)
      note("%s has no times: its rows come before those of other logs", log->file);
    else if (log->row.nanoseconds < year)
      of_day = log->file;
    else
      of_calendar = log->file;
  }
  if (of_day && of_calendar)
    note("%s has times of the day and %s of the calendar: how their rows follow each other is not known", of_day,
         of_calendar);
}

void trace_logs_close(struct trace_logs *logs)
{
  for (size_t i = 0; i < logs->n; i++) trace_rows_close(logs->items[i].rows);
  free(logs->items);
  *logs = (struct trace_logs){0};
}

bool trace_logs_next(struct trace_logs *logs, const struct trace_row **row_out, const struct trace_rows **rows_out)
{
  struct trace_log *first = NULL;
  for (size_t i = 0; i < logs->n; i++) {
    struct trace_log *log = &logs->items[i];
    if (log->is_read) trace_log_advance(logs, log);
    if (logs->has_failed) return false;
    if (!log->is_at_end && (!first || log->row.nanoseconds < first->row.nanoseconds)) first = log;
  }
  if (!first) return false;
  if (!logs->is_compared) trace_logs_compare_clocks(logs);
  first->is_read = true;
  *row_out = &first->row;
  *rows_out = first->rows;
  return true;
}

const struct json_t *trace_logs_state(const struct trace_logs *logs, size_t file)
{
  return trace_rows_state(logs->items[file].rows);
}

void trace_logs_progress(const struct trace_logs *logs, uint64_t *done_out, uint64_t *total_out)
{
  *done_out = *total_out = 0;
  bool is_known = true;
  for (size_t i = 0; i < logs->n; i++) {
    uint64_t total = trace_rows_total_bytes(logs->items[i].rows);
    is_known = is_known && total;
    *done_out += trace_rows_done_bytes(logs->items[i].rows);
    *total_out += total;
  }
  if (!is_known) *total_out = 0;
}
