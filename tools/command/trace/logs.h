/* SPDX-License-Identifier: MIT */
/* logs.h: how commands read allocation logs: the rows of several as one, in order of time, and of equal times in the order of
 * the logs; or one log as events to play. Errors are printed, and so is what a log lacks or was left out. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_LOGS_H
#define HIPMM_TOOLS_COMMAND_TRACE_LOGS_H

#include "choice.h"
#include "trace.h"

enum { TRACE_MOST_LOGS = 1024 };

struct trace_logs {
  struct trace_log *items;
  size_t n;
  bool has_failed;  /* a log is malformed */
  bool is_compared; /* the clocks of the logs */
  bool is_quiet;    /* set after opening: another reading of the same logs has told what they lack */
  char *const *files;
  const struct trace_choice *choice; /* set after opening: rows of other spaces are left out; NULL: none are */
  struct trace_spaces spaces;        /* of all rows so far, those left out too */
};

/* Opens all. Logs are of processes of their own, unless a log's name is that of another with a number behind it, as
 * rotated logs have. False: the error was printed; nothing is open. */
bool trace_logs_open(struct trace_logs *logs, char *const *files, size_t n);
void trace_logs_close(struct trace_logs *logs);

/* See trace_rows_want_all(). */
void trace_logs_want_all(struct trace_logs *logs);

/* The next row, and the log that has its stack; valid until the next call. False at the end, or if a log is malformed: then
 * the error was printed and has_failed is set. */
bool trace_logs_next(struct trace_logs *logs, const struct trace_row **row_out, const struct trace_rows **rows_out);

/* Whether rows can have tags; asked once the first row is read. */
bool trace_logs_have_tags(const struct trace_logs *logs);

/* What a file has that is no log, by the number of the file: see trace_rows_state(); and prints what it lacks. */
const struct json_t *trace_logs_state(const struct trace_logs *logs, size_t file);
void trace_logs_tell_state(const struct trace_logs *logs, size_t file);

/* Read one log for player.c, with a progress bar: the spaces that the choice takes (trace_choice_mark()), or the one that it must
 * take. False: the error was printed, and nothing is allocated. */
bool trace_load_each(const char *file, const struct trace_choice *choice, struct traces *traces_out);
bool trace_load(const char *file, const struct trace_choice *choice, struct trace *trace_out);

/* What is read so far of all logs, and of how much; total 0: not known. */
void trace_logs_progress(const struct trace_logs *logs, uint64_t *done_out, uint64_t *total_out);

#endif
