/* SPDX-License-Identifier: MIT */
/* result_file.h: the file that `hipmm convert` writes. A command that fails leaves none in part: a new file is removed, and one
 * that was there stays what it was, since another beside it takes its name at the end. A pipe or a device is written at once,
 * and so is a file in a folder where no other can be made. */
#ifndef HIPMM_TOOLS_COMMAND_CONVERT_RESULT_FILE_H
#define HIPMM_TOOLS_COMMAND_CONVERT_RESULT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct result_file {
  FILE *file;
  char path[PATH_MAX];      /* of the result, without links; "": it is written at once */
  char temporary[PATH_MAX]; /* what takes its name; "": none, the result is new */
};

/* "-": standard output. False with errno. */
bool result_file_open(struct result_file *result, const char *name);

/* Closes the file and gives it its name. False with errno: it could not be written whole, and was dropped. */
bool result_file_keep(struct result_file *result);

/* Closes the file. True: nothing is left of what was written. */
bool result_file_drop(struct result_file *result);

#endif
