/* SPDX-License-Identifier: MIT */
/* output.h: rows on their way into the file, in the order in which they come. One thread at a time. The buffer is our
 * own and not the C library's, which a forked child would write once more when it exits. */
#ifndef HIPMM_LOGGING_OUTPUT_H
#define HIPMM_LOGGING_OUTPUT_H

#include "file.h"
#include "row.h"

enum { OUTPUT_BYTES = 1 << 16 };

struct output {
  const struct hipmm_services *services;
  struct file file;
  struct row_clock clock;
  int write_error; /* errno of the first loss that nobody was told of; 0: none */
  int64_t lost_rows;
  int64_t rows; /* in `text` */
  char *end;    /* of what is in `text` */
  char text[OUTPUT_BYTES + ROW_TEXT_BYTES];
};

void output_start(struct output *output, const struct hipmm_services *services, struct file file);

void output_row(struct output *output, const struct row_thread *thread, const struct row *row);

/* Hands all rows so far to the operating system. */
void output_flush(struct output *output);

#endif
