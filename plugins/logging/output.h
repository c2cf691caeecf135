/* SPDX-License-Identifier: MIT */
/* output.h: the file of a log, and the rows on their way into it, in the order in which they come. When the file has
 * its size, it is renamed to NAME.1, NAME.1 to NAME.2, and so on, and a new one begins. One thread at a time. The
 * buffer is not the C library's, which a forked child would write again at its exit. */
#ifndef HIPMM_LOGGING_OUTPUT_H
#define HIPMM_LOGGING_OUTPUT_H

#include "../../core/base/output_file.h"
#include "row.h"

#include <stdbool.h>
#include <sys/types.h>

/* ---- The file --------------------------------------------------------------------------------------------------- */

/* What the user wants of the file. */
struct file_wish {
  const char *name;
  uint32_t appends;      /* the contents stay */
  uint64_t rotate_bytes; /* the most that one file has; 0: any */
  int64_t rotated_files; /* old files that stay */
};

struct file {
  int descriptor;  /* -1: not open */
  bool is_regular; /* a regular file, and not a standard stream */
  dev_t device;
  ino_t number;
  uint64_t bytes; /* its size; of a regular file */
};

/* Opens or creates the file and keeps its content. A failure is reported for the option "file". */
enum hipmm_status file_open(const struct hipmm_services *services, const char *name, struct file *file_out);
void file_close(struct file *file);

/* Whether both are the same regular file, whatever their names. */
bool file_is_same(const struct file *file, const struct file *other);

/* Whether no other process writes the file as a log of its own. Locks it for this process, as long as it is open, where
 * the file system can. */
bool file_lock(const struct file *file);

/* Makes the file ready for rows: empties it unless `appends`, and writes the header if it is empty. A failure is
 * reported. */
enum hipmm_status file_begin(struct file *file, const struct hipmm_services *services, const struct file_wish *wish);

/* Inserts `tag` before the extension, in place: ".dev1" makes "a/rmm.dev1.log" of "a/rmm.log". `name` has
 * OUTPUT_FILE_NAME_BYTES. False if it does not fit. */
bool file_tag_name(char *name, const char *tag);

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

enum { OUTPUT_BYTES = 1 << 16 };

struct output {
  const struct hipmm_services *services;
  struct file file;
  uint64_t rotate_bytes; /* 0: the file is never rotated */
  int64_t rotated_files;
  char *name; /* absolute, OUTPUT_FILE_NAME_BYTES; NULL if the file is never rotated */
  struct row_clock clock;
  int write_error; /* errno of the first loss not yet reported; 0: none */
  int64_t lost_rows;
  int64_t rows; /* in `text` */
  char *end;    /* of what is in `text` */
  char text[OUTPUT_BYTES + ROW_TEXT_BYTES];
};

/* Takes the file over. False without host memory. */
bool output_open(struct output *output, const struct hipmm_services *services, struct file file,
                 const struct file_wish *wish);
void output_close(struct output *output);

void output_row(struct output *output, const struct row_thread *thread, const struct row *row);

/* Writes all rows so far. */
void output_flush(struct output *output);

#endif
