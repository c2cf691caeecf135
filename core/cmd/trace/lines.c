/* SPDX-License-Identifier: MIT */
/* lines.c: see trace_lines.h. read() and not mmap(): pipes work the same way, and a file that shrinks meanwhile
 * is no SIGBUS. */
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRACE_LINES_BUFFER = 1 << 20 };

bool trace_lines_open(struct trace_lines *lines, const char *file)
{
  struct stat about;
  *lines = (struct trace_lines){.fd = STDIN_FILENO};
  if (strcmp(file, "-") != 0) lines->fd = open(file, O_RDONLY | O_CLOEXEC);
  if (lines->fd < 0) return false;
  if (fstat(lines->fd, &about) == 0 && S_ISREG(about.st_mode)) lines->total_bytes = (uint64_t)about.st_size;
  lines->buffer = malloc(TRACE_LINES_BUFFER);
  if (lines->buffer) return true;
  trace_lines_close(lines);
  errno = ENOMEM;
  return false;
}

void trace_lines_close(struct trace_lines *lines)
{
  if (lines->fd > STDIN_FILENO) close(lines->fd);
  free(lines->buffer);
  *lines = (struct trace_lines){.fd = -1};
}

/* Reads more behind what is there. False: errno tells. */
static bool trace_lines_fill(struct trace_lines *lines)
{
  size_t kept = lines->end - lines->start;
  memmove(lines->buffer, lines->buffer + lines->start, kept);
  lines->start = 0;
  lines->end = kept;
  if (kept == TRACE_LINES_BUFFER) {
    errno = EMSGSIZE;
    return false;
  }
  ssize_t got;
  do got = read(lines->fd, lines->buffer + kept, TRACE_LINES_BUFFER - kept);
  while (got < 0 && errno == EINTR);
  if (got < 0) return false;
  lines->at_end = got == 0;
  lines->end += (size_t)got;
  lines->done_bytes += (uint64_t)got;
  return true;
}

enum trace_line trace_lines_next(struct trace_lines *lines, const char **line_out, const char **end_out)
{
  const char *start, *newline;
  for (;;) {
    start = lines->buffer + lines->start;
    newline = memchr(start, '\n', lines->end - lines->start);
    if (newline || lines->at_end) break;
    if (!trace_lines_fill(lines)) return TRACE_LINE_ERROR;
  }
  if (!newline && lines->start == lines->end) return TRACE_LINE_END;
  *line_out = start;
  *end_out = newline ? newline : lines->buffer + lines->end;
  lines->start = (size_t)(*end_out - lines->buffer) + (newline != NULL);
  return TRACE_LINE;
}
