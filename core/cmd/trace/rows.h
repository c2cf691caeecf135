/* SPDX-License-Identifier: MIT */
/* rows.h: the rows of an allocation log, in order, whatever its format: RMM's CSV (csv.h) or the binary record of the
 * `recording` adaptor (record.h). Used by trace.c and `hipmm convert`. */
#ifndef HIPMM_CORE_CMD_TRACE_ROWS_H
#define HIPMM_CORE_CMD_TRACE_ROWS_H

#include "csv.h"

struct trace_rows;

/* Opens a log; "-" is standard input. NULL: `message` has the reason. */
struct trace_rows *trace_rows_open(const char *file, char *message, size_t message_bytes);
void trace_rows_close(struct trace_rows *rows);

/* The next row. On TRACE_LINE_ERROR trace_rows_message() has the reason. */
enum trace_line trace_rows_next(struct trace_rows *rows, struct trace_row *row_out);
const char *trace_rows_message(const struct trace_rows *rows);

/* The line of the last row in the file; of a record, its number. */
uint32_t trace_rows_line(const struct trace_rows *rows);

/* What is read so far, of how much; total 0: not known. */
uint64_t trace_rows_done_bytes(const struct trace_rows *rows);
uint64_t trace_rows_total_bytes(const struct trace_rows *rows);

/* After the last row: what the log says it lacks, as a sentence; "" if it is complete. */
const char *trace_rows_remark(struct trace_rows *rows);

/* The lines of a call stack, innermost first; NULL if the log does not have it. Valid until the rows are closed. */
const char *trace_rows_stack(const struct trace_rows *rows, uint32_t stack);

#endif
