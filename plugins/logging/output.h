/* SPDX-License-Identifier: MIT */
/* output.h: the file of a log, and the rows on their way into it, in the order in which they come. When the file has
 * its size, it is renamed to NAME.1, NAME.1 to NAME.2, and so on, and a new one begins. One thread at a time. The
 * buffer is not the C library's, which a forked child would write again at its exit. */
#ifndef HIPMM_PLUGINS_LOGGING_OUTPUT_H
#define HIPMM_PLUGINS_LOGGING_OUTPUT_H

#include "../common/log_file.h"
#include "row.h"

#include <stdbool.h>

/* Makes the file ready for rows: empties it unless `appends`, and writes the header if it is empty. A failure is
 * reported. */
enum hipmm_status output_begin(struct log_file *file, const struct hipmm_services *services,
                               const struct log_file_spec *spec);

enum { OUTPUT_BYTES = 1 << 16 };

struct output {
  const struct hipmm_services *services;
  struct log_file file;
  uint64_t rotate_bytes; /* 0: the file is never rotated */
  int64_t rotated_files;
  char *name; /* absolute, OUTPUT_FILE_NAME_BYTES; NULL if the file is never rotated */
  struct row_clock clock;
  int write_error; /* errno of the first loss not yet reported; 0: none */
  int64_t lost_rows;
  bool is_torn; /* the file ends within a row, whose rest is first in `text` */
  char *end;    /* of what is in `text` */
  char text[OUTPUT_BYTES + ROW_TEXT_BYTES];
};

/* Takes the file over. False without host memory. */
bool output_open(struct output *output, const struct hipmm_services *services, struct log_file file,
                 const struct log_file_spec *spec);
void output_close(struct output *output);

void output_row(struct output *output, const struct row_thread *thread, const struct row *row);

/* Writes all rows so far. */
void output_flush(struct output *output);

#endif
