/* SPDX-License-Identifier: MIT */
/* row.h: takes a line of an allocation log apart. Knows columns and numbers, not what they add up to. */
#ifndef HIPMM_CORE_CMD_TRACE_ROW_H
#define HIPMM_CORE_CMD_TRACE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the columns are. */
struct trace_columns {
  int action, pointer, size, stream; /* stream -1: the log has none, all is on the default stream */
  int count;
};

enum trace_action { TRACE_ALLOCATE, TRACE_FREE, TRACE_FAILURE };

struct trace_row {
  enum trace_action action;
  uint64_t pointer, bytes, stream;
};

/* RMM's order, for a log without a header. */
extern const struct trace_columns trace_default_columns;

/* Whether a line is a header rather than a row: it has a column "Action". */
bool trace_is_header(const char *line, const char *end);

/* Reads the header. On false `message` tells which column is missing. */
bool trace_header_read(const char *line, const char *end, struct trace_columns *columns_out, char *message,
                       size_t message_bytes);

/* Reads a row; [line, end) without its newline. On false `message` tells what is wrong with it. */
bool trace_row_read(const struct trace_columns *columns, const char *line, const char *end, struct trace_row *row_out,
                    char *message, size_t message_bytes);

#endif
