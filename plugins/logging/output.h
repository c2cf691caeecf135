/* SPDX-License-Identifier: MIT */
/* output.h: the file of a log, and the rows on their way into it, in the order in which they come. One thread at a time.
 * The buffer is not the C library's, which a forked child would write again at its exit. */
#ifndef HIPMM_LOGGING_OUTPUT_H
#define HIPMM_LOGGING_OUTPUT_H

#include "row.h"

#include <stdbool.h>
#include <sys/types.h>

/* ---- The file --------------------------------------------------------------------------------------------------- */

struct file {
  int descriptor;  /* -1: not open */
  bool is_regular; /* a regular file, and not a standard stream */
  dev_t device;
  ino_t number;
};

/* Opens or creates the file and keeps its content. A failure is reported for the option "file". */
enum hipmm_status file_open(const struct hipmm_services *services, const char *name, struct file *file_out);
void file_close(struct file *file);

/* Whether both are the same regular file, whatever their names. */
bool file_is_same(const struct file *file, const struct file *other);

/* Truncates the file. A failure is reported. */
enum hipmm_status file_empty(const struct file *file, const struct hipmm_services *services, const char *name);

/* Returns 0 when all is written, else the errno of the failed write. */
int file_write(const struct file *file, const char *text, size_t bytes);

enum hipmm_status file_refuse(const struct hipmm_services *services, const char *name, int code);

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

enum { OUTPUT_BYTES = 1 << 16 };

struct output {
  const struct hipmm_services *services;
  struct file file;
  struct row_clock clock;
  int write_error; /* errno of the first loss not yet reported; 0: none */
  int64_t lost_rows;
  int64_t rows; /* in `text` */
  char *end;    /* of what is in `text` */
  char text[OUTPUT_BYTES + ROW_TEXT_BYTES];
};

void output_start(struct output *output, const struct hipmm_services *services, struct file file);

void output_row(struct output *output, const struct row_thread *thread, const struct row *row);

/* Writes all rows so far. */
void output_flush(struct output *output);

#endif
