/* SPDX-License-Identifier: MIT */
/* graph_file.c: reads a graph file. Called by graph.c. Must return soon, with an error message, whatever the file is: a
 * folder, a pipe, a gigabyte of spaces. */
#include "graph_build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bytes {
  char *data;
  size_t count;
};

static void graph_file_report_errno(struct diagnostics *diagnostics)
{
  diagnostics_add(diagnostics, HIPMM_E_IO, "", "cannot be read: %s", strerror(errno));
}

static void graph_file_report_size(struct diagnostics *diagnostics)
{
  diagnostics_add(diagnostics, HIPMM_E_CONFIG, "", GRAPH_TOO_LARGE, GRAPH_MAX_BYTES >> 20);
}

/* Opens the file unless it is a folder, or its size is known to be too large. A pipe without a writer does not block:
 * it is empty. */
static int graph_file_open(const char *file, struct diagnostics *diagnostics)
{
  struct stat status;
  int descriptor;
  do descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (descriptor < 0 && errno == EINTR); /* a folder on another machine */
  bool is_good = descriptor >= 0 && !fstat(descriptor, &status) && fcntl(descriptor, F_SETFL, 0) >= 0;
  if (is_good && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    is_good = false;
  }
  if (!is_good)
    graph_file_report_errno(diagnostics);
  else if (status.st_size > GRAPH_MAX_BYTES)
    graph_file_report_size(diagnostics);
  else
    return descriptor;
  if (descriptor >= 0) close(descriptor);
  return -1;
}

/* Grows the buffer if it is full; false after an error was reported. */
static bool graph_file_grow(struct bytes *bytes, size_t *capacity, struct diagnostics *diagnostics)
{
  if (bytes->count < *capacity) return true;
  size_t wanted = *capacity ? *capacity * 2 : 64 << 10;
  char *data = wanted > 2 * (size_t)GRAPH_MAX_BYTES ? NULL : realloc(bytes->data, wanted);
  if (!data) {
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory to read it");
    return false;
  }
  bytes->data = data;
  *capacity = wanted;
  return true;
}

static bool graph_file_read_all(int descriptor, struct bytes *bytes, struct diagnostics *diagnostics)
{
  size_t capacity = 0;
  ssize_t n;
  do {
    if (!graph_file_grow(bytes, &capacity, diagnostics)) return false;
    n = read(descriptor, bytes->data + bytes->count, capacity - bytes->count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      graph_file_report_errno(diagnostics);
      return false;
    }
    bytes->count += (size_t)n;
    if (bytes->count > GRAPH_MAX_BYTES) {
      graph_file_report_size(diagnostics);
      return false;
    }
  } while (n != 0);
  return true;
}

bool graph_file_read(const char *file, struct diagnostics *diagnostics, char **text_out, size_t *bytes_out)
{
  struct bytes bytes = {0};
  int descriptor = file ? graph_file_open(file, diagnostics) : STDIN_FILENO;
  bool is_good = descriptor >= 0 && graph_file_read_all(descriptor, &bytes, diagnostics);
  if (file && descriptor >= 0) close(descriptor);
  if (is_good) {
    *text_out = bytes.data;
    *bytes_out = bytes.count;
  } else {
    free(bytes.data);
  }
  return is_good;
}
