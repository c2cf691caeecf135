/* SPDX-License-Identifier: MIT */
/* file.h: the file of a log. */
#ifndef HIPMM_LOGGING_FILE_H
#define HIPMM_LOGGING_FILE_H

#include <hipmm/plugin.h>

#include <stdbool.h>
#include <sys/types.h>

struct file {
  int descriptor;  /* -1: not open */
  bool is_regular; /* and the log's alone: not a standard stream */
  dev_t device;
  ino_t number;
};

/* Opens or makes it, and leaves what is in it. A failure is reported as of the option "file". */
enum hipmm_status file_open(const struct hipmm_services *services, const char *name, struct file *file_out);
void file_close(struct file *file);

/* Whether both are one regular file, under whatever names. */
bool file_is_same(const struct file *file, const struct file *other);

/* Empties it. A failure is reported. */
enum hipmm_status file_empty(const struct file *file, const struct hipmm_services *services, const char *name);

/* Returns errno of what did not work, 0 when all is written. */
int file_write(const struct file *file, const char *text, size_t bytes);

enum hipmm_status file_refuse(const struct hipmm_services *services, const char *name, int code);

#endif
