/* SPDX-License-Identifier: MIT */
/* logs.c: see logs.h. */
#include "logs.h"
#include "../cmd.h"

#include <stdlib.h>
#include <string.h>

struct trace_log {
  const char *file;
  struct trace_rows *rows;
  struct trace_row row; /* the next one */
  bool is_read;         /* `row` was handed out: another is due */
  bool is_at_end;
  uint32_t group; /* of rotated logs of one process: the number of the first */
};

/* What a log lacks, if anything. */
static void trace_logs_tell(const char *file, const char *remark)
{
  if (*remark) note("%s: %s", strcmp(file, "-") ? file : "standard input", remark);
}

static void trace_log_advance(struct trace_logs *logs, struct trace_log *log)
{
  enum trace_line state = trace_rows_next(log->rows, &log->row);
  log->is_read = false;
  log->is_at_end = state != TRACE_LINE;
  log->row.space.log = log->group;
  if (state == TRACE_LINE_ERROR) {
    say("%s", trace_rows_message(log->rows));
    logs->has_failed = true;
  } else if (log->is_at_end && !logs->is_quiet) {
    trace_logs_tell(log->file, trace_rows_remark(log->rows));
  }
}

/* Whether a name is another one with ".N" behind it, as that of a log that was rotated. */
static bool trace_log_is_rotated(const char *name, const char *of)
{
  if (!strncmp(name, "./", 2)) name += 2;
  if (!strncmp(of, "./", 2)) of += 2;
  size_t length = strlen(of);
  if (strncmp(name, of, length) != 0 || name[length] != '.') return false;
  const char *number = name + length + 1;
  return *number && !number[strspn(number, "0123456789")];
}

static void trace_logs_group(struct trace_logs *logs, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    logs->items[i].group = (uint32_t)i;
    for (size_t of = 0; of < n; of++)
      if (trace_log_is_rotated(logs->files[i], logs->files[of])) logs->items[i].group = (uint32_t)of;
  }
}

bool trace_logs_open(struct trace_logs *logs, char *const *files, size_t n)
{
  char message[PATH_MAX + 512];
  *logs = (struct trace_logs){.items = calloc(n, sizeof *logs->items), .files = files};
  if (!logs->items) {
    say("out of memory");
    return false;
  }
  trace_logs_group(logs, n);
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

void trace_logs_want_all(struct trace_logs *logs)
{
  for (size_t i = 0; i < logs->n; i++) trace_rows_want_all(logs->items[i].rows);
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
  trace_spaces_clear(&logs->spaces);
  *logs = (struct trace_logs){0};
}

/* The next row of all. */
static bool trace_logs_read(struct trace_logs *logs, const struct trace_row **row_out,
                            const struct trace_rows **rows_out)
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

static bool trace_logs_take(const struct trace_logs *logs, const struct trace_space *space)
{
  return !logs->choice || trace_choice_takes(logs->choice, space);
}

bool trace_logs_next(struct trace_logs *logs, const struct trace_row **row_out, const struct trace_rows **rows_out)
{
  size_t index;
  while (trace_logs_read(logs, row_out, rows_out)) {
    if (!trace_spaces_find(&logs->spaces, &(*row_out)->space, &index)) {
      say("out of memory, or more processes and devices than can be counted");
      logs->has_failed = true;
      return false;
    }
    if (trace_logs_take(logs, &(*row_out)->space)) return true;
  }
  return false;
}

bool trace_logs_have_tags(const struct trace_logs *logs)
{
  for (size_t i = 0; i < logs->n; i++)
    if (trace_rows_have_tags(logs->items[i].rows)) return true;
  return false;
}

static void trace_logs_show_progress(void *closure, uint64_t done, uint64_t total)
{
  progress_show(closure, done, total);
}

static bool trace_load_all(const char *file, struct traces *traces_out)
{
  char message[PATH_MAX + 512];
  struct progress progress;
  progress_start(&progress, "reading");
  const struct trace_watcher watcher = {trace_logs_show_progress, &progress};
  bool good = traces_read(file, &watcher, traces_out, message, sizeof message);
  progress_end(&progress);
  if (good)
    trace_logs_tell(file, traces_out->remark);
  else
    say("%s", message);
  return good;
}

/* Drops the traces of spaces that are not marked. */
static void traces_keep(struct traces *traces, const bool *takes)
{
  size_t kept = 0;
  for (size_t i = 0; i < traces->n; i++) {
    if (!takes[i]) {
      trace_clear(&traces->items[i]);
      continue;
    }
    traces->items[kept] = traces->items[i];
    traces->spaces.items[kept++] = traces->spaces.items[i];
  }
  traces->n = traces->spaces.n = kept;
}

bool trace_load_each(const char *file, const struct trace_choice *choice, struct traces *traces_out)
{
  char *files[] = {(char *)file};
  bool takes[TRACE_MOST_SPACES];
  if (!trace_load_all(file, traces_out)) return false;
  bool good = trace_choice_mark(choice, &traces_out->spaces, files, takes) > 0;
  bool is_of_several = trace_spaces_have_several_devices(&traces_out->spaces);
  for (size_t i = 0; i < traces_out->n; i++) traces_out->items[i].is_of_several = is_of_several;
  if (good)
    traces_keep(traces_out, takes);
  else
    traces_clear(traces_out);
  return good;
}

bool trace_load(const char *file, const struct trace_choice *choice, struct trace *trace_out)
{
  char *files[] = {(char *)file};
  struct traces traces;
  if (!trace_load_each(file, choice, &traces)) return false;
  bool good = traces.n == 1;
  if (good) {
    *trace_out = traces.items[0];
    traces.items[0] = (struct trace){0};
  } else {
    trace_choice_refuse(choice, &traces.spaces, files, ", and one is played");
  }
  traces_clear(&traces);
  return good;
}

const struct json_t *trace_logs_state(const struct trace_logs *logs, size_t file)
{
  return trace_rows_state(logs->items[file].rows);
}

void trace_logs_tell_state(const struct trace_logs *logs, size_t file)
{
  trace_logs_tell(logs->items[file].file, trace_rows_remark(logs->items[file].rows));
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
