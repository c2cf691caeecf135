/* SPDX-License-Identifier: MIT */
/* sink.h: where the rows of one log go: a buffer, and a file that it is written to when full. Rows stand in the file in
 * the order in which threads entered sink_add(). What is in the buffer when the process exits is written then. */
#ifndef HIPMM_LOGGING_SINK_H
#define HIPMM_LOGGING_SINK_H

#include "row.h"

struct sink;

/* Opens the file, empties it and writes the header. A regular file that another sink of this process writes is refused
 * with HIPMM_E_STATE and no report: `device_out` then says whose it is. Other failures are reported as of the option
 * "file". */
enum hipmm_status sink_open(const struct hipmm_services *services, const char *name, uint32_t auto_flush,
                            int32_t *device_out, struct sink **sink_out);

/* Writes what is left, and closes. */
void sink_close(struct sink *sink);

void sink_add(struct sink *sink, enum row_action action, const void *ptr, size_t bytes, hipStream_t stream);

/* Hands all rows so far to the operating system. HIPMM_E_IO, reported, if rows were lost since the last flush. */
enum hipmm_status sink_flush(struct sink *sink);

struct sink_counts {
  int64_t rows, lost_rows;
};

struct sink_counts sink_count(struct sink *sink);

#endif
