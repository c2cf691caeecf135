/* SPDX-License-Identifier: MIT */
/* diagnostics.h: a list of all errors and warnings about one graph, so that a user sees every error of a file at once.
 * Filled by option and graph; read by the command, and by initialisation through diagnostics_raise(). A list belongs to
 * one thread. */
#ifndef HIPMM_CORE_BASE_DIAGNOSTICS_H
#define HIPMM_CORE_BASE_DIAGNOSTICS_H

#include "error.h"

/* One error or warning. */
struct diagnostic {
  enum hipmm_status status; /* HIPMM_OK marks a warning */
  ptrdiff_t offset;         /* of its place in the text; -1: its path says the place */
  int line, column;         /* from 1; 0 without a place in the file, and until the text was read */
  char *path;               /* JSON pointer, "" for the whole file */
  char *resource;           /* name of the resource, "" if none */
  char *message;            /* without file and path */
  struct diagnostic *next;
};

/* Further diagnostics are counted, but their texts are not kept. */
enum { DIAGNOSTICS_MOST_KEPT = 1000 };

/* Diagnostics in the order in which they were found, and in the order of the file once the graph was read. Start from
 * {.source = "file name"}; diagnostics_clear() frees. */
struct diagnostics {
  const char *source;
  bool is_graph_file; /* `hipmm check` can list all errors of the source */
  struct diagnostic *first, *last;
  size_t n_errors, n_warnings;
};

/* Adds an error at a JSON pointer (add, add_arguments) or at an offset in the text (add_at), and returns `status`.
 * Without host memory for the text, the error still counts. */
enum hipmm_status diagnostics_add(struct diagnostics *diagnostics, enum hipmm_status status, const char *path,
                                  const char *format, ...) HIPMM_PRINTF(4, 5);
enum hipmm_status diagnostics_add_arguments(struct diagnostics *diagnostics, enum hipmm_status status, const char *path,
                                            const char *format, va_list arguments);
enum hipmm_status diagnostics_add_at(struct diagnostics *diagnostics, enum hipmm_status status, size_t offset,
                                     const char *format, ...) HIPMM_PRINTF(4, 5);

/* Adds a warning. */
void diagnostics_warn(struct diagnostics *diagnostics, const char *path, const char *format, ...) HIPMM_PRINTF(3, 4);

/* Adds the calling thread's error record as an error at `path`: for failures of a plugin or of the loader. */
enum hipmm_status diagnostics_add_last_error(struct diagnostics *diagnostics, const char *path);

/* The status of the first error; HIPMM_E_OUT_OF_MEMORY if one is for want of host memory, or was not kept for that. */
enum hipmm_status diagnostics_status(const struct diagnostics *diagnostics);

/* Copies the first error into the calling thread's error record, with the number of further errors in its message, and
 * returns its status; HIPMM_OK without errors. Logs the warnings. */
enum hipmm_status diagnostics_raise(const struct diagnostics *diagnostics);

/* Formats one diagnostic as a line for users: "FILE:LINE:COLUMN: /path: what is wrong". A control
 * character becomes "?", so that keys of a file cannot control the terminal. Returns `buffer`, of one byte at least. */
const char *diagnostics_line(const struct diagnostics *diagnostics, const struct diagnostic *diagnostic, char *buffer,
                             size_t buffer_bytes);

/* Frees all diagnostics. The list is empty afterwards and keeps its source. */
void diagnostics_clear(struct diagnostics *diagnostics);

#endif
