/* SPDX-License-Identifier: MIT */
/* record.h: reads a binary record (base/record_format.h), also one whose writer was killed or runs, and merges the threads'
 * events in order of time. Called by rows.c. */
#ifndef HIPMM_CORE_CMD_TRACE_RECORD_H
#define HIPMM_CORE_CMD_TRACE_RECORD_H

#include "csv.h"

struct record;

/* Whether a file with this beginning is a record. */
bool record_is(const void *start, size_t bytes);

/* Reads the file from `descriptor`, which must be able to seek and stays the caller's. NULL: `message` has the reason. */
struct record *record_open(int descriptor, char *message, size_t message_bytes);
void record_close(struct record *record);

/* The next event as a row. TRACE_LINE_ERROR: out of memory, or errno. */
enum trace_line record_next(struct record *record, struct trace_row *row_out);

uint64_t record_done_bytes(const struct record *record);
uint64_t record_total_bytes(const struct record *record);

/* What was lost, as a sentence; "" if nothing. */
void record_remark(const struct record *record, char *text, size_t text_bytes);

/* The text of a stack trace; NULL if it was not read. */
const char *record_stack(const struct record *record, uint32_t number);

#endif
