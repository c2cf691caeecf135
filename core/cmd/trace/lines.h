/* SPDX-License-Identifier: MIT */
/* lines.h: hands out the lines of a file or of standard input, in large reads and without copying them twice. */
#ifndef HIPMM_CORE_CMD_TRACE_LINES_H
#define HIPMM_CORE_CMD_TRACE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

void trace_lines_close(struct trace_lines *lines);

#endif
