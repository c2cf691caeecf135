/* SPDX-License-Identifier: MIT */
/* lines.h: a log's file or standard input, in large reads: line by line, or whole. Called by rows.c and the readers of the
 * formats. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_LINES_H
#define HIPMM_TOOLS_COMMAND_TRACE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct trace_lines {
  int fd;
  char *buffer;
  size_t start, end; /* what is read and not handed out yet */
  bool at_end;
  uint64_t done_bytes, total_bytes; /* total 0: not known */
  FILE *spooled;                    /* the copy of a pipe; else NULL */
};

enum trace_line { TRACE_LINE_ERROR = -1, TRACE_LINE_END, TRACE_LINE };

/* "-" is standard input. False: errno tells. */
bool trace_lines_open(struct trace_lines *lines, const char *file);
void trace_lines_close(struct trace_lines *lines);

/* The next line, without its newline; valid until the next call. On TRACE_LINE_ERROR errno tells; EMSGSIZE: too
 * long. */
enum trace_line trace_lines_next(struct trace_lines *lines, const char **line_out, const char **end_out);

/* Whether the last line that was handed out ends with the file, without a newline. */
bool trace_lines_is_open(const struct trace_lines *lines);

/* The first bytes of the file, which stay to be read. Returns how many. */
size_t trace_lines_peek(struct trace_lines *lines, const char **start_out);

/* All that was not handed out yet, in memory that the caller frees. False: errno tells. */
bool trace_lines_load(struct trace_lines *lines, char **data_out, size_t *bytes_out);

/* A descriptor of the whole file that can seek: of a pipe, that of a copy without a name. -1: errno tells. */
int trace_lines_descriptor(struct trace_lines *lines);

#endif
