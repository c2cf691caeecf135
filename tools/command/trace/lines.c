/* SPDX-License-Identifier: MIT */
/* lines.c: see lines.h. Logs have millions of lines, so a line is not copied. read() serves pipes and files alike; with
 * mmap() a file that shrinks meanwhile would raise SIGBUS. */
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
  if (lines->spooled) fclose(lines->spooled);
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

size_t trace_lines_peek(struct trace_lines *lines, const char **start_out)
{
  if (lines->start == lines->end && !lines->at_end) (void)trace_lines_fill(lines); /* the next read tells of an error */
  *start_out = lines->buffer + lines->start;
  return lines->end - lines->start;
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

bool trace_lines_is_open(const struct trace_lines *lines)
{
  return lines->at_end && lines->end > 0 && lines->start == lines->end && lines->buffer[lines->end - 1] != '\n';
}

/* What was not handed out yet, in pieces. 0 at the end, or with an errno in *code_out. */
static size_t trace_lines_rest(struct trace_lines *lines, const char **start_out, int *code_out)
{
  if (lines->start == lines->end && !lines->at_end && !trace_lines_fill(lines)) {
    *code_out = errno;
    return 0;
  }
  size_t bytes = lines->end - lines->start;
  *start_out = lines->buffer + lines->start;
  lines->start = lines->end;
  return bytes;
}

bool trace_lines_load(struct trace_lines *lines, char **data_out, size_t *bytes_out)
{
  const char *start;
  char *data = NULL;
  size_t used = 0, capacity = 0, bytes;
  int code = 0;
  while (!code && (bytes = trace_lines_rest(lines, &start, &code)) > 0) {
    if (capacity - used < bytes) {
      capacity = 2 * capacity + bytes + (size_t)lines->total_bytes;
      char *larger = realloc(data, capacity);
      if (!larger) {
        code = ENOMEM;
        break;
      }
      data = larger;
    }
    memcpy(data + used, start, bytes);
    used += bytes;
  }
  if (code) free(data);
  errno = code;
  *data_out = code ? NULL : data;
  *bytes_out = used;
  return !code;
}

int trace_lines_descriptor(struct trace_lines *lines)
{
  const char *start;
  size_t bytes;
  int code = 0;
  if (lines->total_bytes) return lines->fd;
  lines->spooled = tmpfile();
  if (!lines->spooled) return -1;
  while (!code && (bytes = trace_lines_rest(lines, &start, &code)) > 0)
    if (fwrite(start, 1, bytes, lines->spooled) < bytes) code = errno;
  if (!code && fflush(lines->spooled)) code = errno;
  errno = code;
  return code ? -1 : fileno(lines->spooled);
}
