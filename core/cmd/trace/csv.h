/* SPDX-License-Identifier: MIT */
/* csv.h: the lines of an allocation log, and the columns of each. Called by rows.c. */
#ifndef HIPMM_CORE_CMD_TRACE_CSV_H
#define HIPMM_CORE_CMD_TRACE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Lines of a file or of standard input, in large reads -------------------------------------------------------- */

struct trace_lines {
  int fd;
  char *buffer;
  size_t start, end; /* what is read and not handed out yet */
  bool at_end;
  uint64_t done_bytes, total_bytes; /* total 0: not known */
};

enum trace_line { TRACE_LINE_ERROR = -1, TRACE_LINE_END, TRACE_LINE };

/* "-" is standard input. False: errno tells. */
bool trace_lines_open(struct trace_lines *lines, const char *file);

/* The next line, without its newline; valid until the next call. On TRACE_LINE_ERROR errno tells; EMSGSIZE: too
 * long. */
enum trace_line trace_lines_next(struct trace_lines *lines, const char **line_out, const char **end_out);

/* The first bytes of the file, which stay to be read. Returns how many. */
size_t trace_lines_peek(struct trace_lines *lines, const char **start_out);

/* What was not handed out yet, in pieces, for a file that has no lines. 0 at the end, or with an errno in *code_out. */
size_t trace_lines_rest(struct trace_lines *lines, const char **start_out, int *code_out);

void trace_lines_close(struct trace_lines *lines);

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* The index of each column. */
struct trace_columns {
  int action, pointer, size;
  int stream;       /* -1: the log has none, all is on the default stream */
  int thread, time; /* -1: the log has none */
  int count;
};

enum trace_action { TRACE_ALLOCATE, TRACE_FREE, TRACE_ALLOCATE_FAILURE, TRACE_FREE_FAILURE };

struct trace_row {
  enum trace_action action;
  uint64_t pointer, bytes, stream;
  int64_t nanoseconds; /* since 1970, or of CSV since midnight of the log's first day, UTC; TRACE_NO_TIME: not known */
  uint32_t thread;     /* 0: not known */
  uint32_t stack;      /* number of a call stack; 0: none */
};

#define TRACE_NO_TIME INT64_MIN

/* Counts the days of a log, whose rows have the time of day alone. Start from {0}. */
struct trace_clock {
  int64_t day, last; /* nanoseconds */
};

/* RMM's order, for a log without a header. */
extern const struct trace_columns trace_default_columns;

/* Whether a line is a header rather than a row: it has a column "Action". */
bool trace_is_header(const char *line, const char *end);

/* Reads the header. On false `message` tells which column is missing. */
bool trace_header_read(const char *line, const char *end, struct trace_columns *columns_out, char *message,
                       size_t message_bytes);

/* Reads a row; [line, end) without its newline. On false `message` tells what is wrong with it. A time or thread that is
 * not understood is not known: replay needs neither. */
bool trace_row_read(const struct trace_columns *columns, struct trace_clock *clock, const char *line, const char *end,
                    struct trace_row *row_out, char *message, size_t message_bytes);

#endif
