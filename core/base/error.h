/* SPDX-License-Identifier: MIT */
/* error.h: the calling thread's error record, and reports of what is wrong with a graph. */
#ifndef HIPMM_CORE_BASE_ERROR_H
#define HIPMM_CORE_BASE_ERROR_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* Writes the calling thread's record and returns `status`. The function that decides what the error is calls it; all
 * above only return. error_set formats at once; error_refuse keeps `text` (a string constant) and the numbers, and
 * formats when somebody asks; error_hip likewise, for a HIP call that returned `code`. `resource` may be NULL and must
 * live until the message is asked for or the next error. */
enum hipmm_status error_set(enum hipmm_status status, const char *format, ...) HIPMM_PRINTF(2, 3);
enum hipmm_status error_refuse(enum hipmm_status status, const char *resource, const char *text, uint64_t first,
                               uint64_t second, uint64_t third);
enum hipmm_status error_hip(enum hipmm_status status, const char *resource, const char *call, int code,
                            const char *code_name, size_t bytes);

/* Adds to the record of a failure with this status what another resource knows of it, made into text likewise, with {3}
 * for a fourth number; `resource` is copied. As error_refuse if the record is of something else. */
enum hipmm_status error_explain(enum hipmm_status status, const char *resource, const char *text,
                                const uint64_t numbers[4]);

/* The same with every field given by the caller. */
enum hipmm_status error_set_located(const struct hipmm_error *error);

/* A mistake found in a graph, or a warning. */
struct diagnostic {
  enum hipmm_status status; /* HIPMM_OK marks a warning */
  int line, column;         /* of a syntax error; 0 otherwise */
  char *path;               /* JSON pointer, "" for the whole file */
  char *resource;           /* name of the resource, "" if none */
  char *message;            /* without file and path */
  struct diagnostic *next;
};

/* Beyond this number mistakes are counted, but their texts not kept: nobody reads them. */
enum { REPORT_MOST_KEPT = 1000 };

/* All mistakes of one graph, in the order they were found. Start from {.source = "file name"}. */
struct diagnostics {
  const char *source;
  struct diagnostic *first, *last;
  size_t n_errors, n_warnings;
};

/* Adds a mistake and returns `status`, so that `return diagnostics_add(…)` reads well. */
enum hipmm_status diagnostics_add(struct diagnostics *report, enum hipmm_status status, const char *path,
                                  const char *format, ...) HIPMM_PRINTF(4, 5);
enum hipmm_status diagnostics_add_at(struct diagnostics *report, enum hipmm_status status, int line, int column,
                                     const char *format, ...) HIPMM_PRINTF(5, 6);
void diagnostics_warn(struct diagnostics *report, const char *path, const char *format, ...) HIPMM_PRINTF(3, 4);

enum hipmm_status diagnostics_add_arguments(struct diagnostics *report, enum hipmm_status status, const char *path,
                                            const char *format, va_list arguments);

/* Copies the calling thread's record into the report, as a mistake at `path`: for what a plugin or the loader said. */
enum hipmm_status diagnostics_add_last_error(struct diagnostics *report, const char *path);

/* The status of the report's first error; HIPMM_E_OUT_OF_MEMORY if there was no memory to keep it. */
enum hipmm_status diagnostics_status(const struct diagnostics *report);

/* Makes the first error of the report the calling thread's record and returns its status (HIPMM_OK if there is none);
 * says in its message how many more there are. Logs the warnings. */
enum hipmm_status diagnostics_raise(const struct diagnostics *report);

/* A mistake or warning in one line, as users see it: "FILE: /path: what is wrong", or "FILE:LINE:COLUMN: …". Control
 * characters are shown as "?", so that a file's keys cannot play with the terminal. Returns `buffer`. */
const char *diagnostics_line(const struct diagnostics *report, const struct diagnostic *mistake, char *buffer,
                             size_t buffer_bytes);

/* Releases all mistakes; the report is as at its start. */
void diagnostics_clear(struct diagnostics *report);

#endif
