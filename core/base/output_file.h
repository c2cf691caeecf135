/* SPDX-License-Identifier: MIT */
/* output_file.h: opens the files that hipmm writes for people: logs, reports, dumps. */
#ifndef HIPMM_CORE_BASE_OUTPUT_FILE_H
#define HIPMM_CORE_BASE_OUTPUT_FILE_H

enum output_file_mode {
  OUTPUT_FILE_KEEP,   /* what is there stays; writing begins at its start */
  OUTPUT_FILE_APPEND, /* each write goes to the end */
  OUTPUT_FILE_EMPTY   /* what is there goes, if it is a regular file */
};

/* 1 for a name of standard output ("/dev/stdout", "/dev/fd/1"), 2 for one of standard error; else -1. */
int output_file_standard(const char *name);

/* Opens `name` for writing, and makes it if it does not exist. A descriptor, which the caller closes, or -1 with errno.
 * Never waits: a pipe that nobody reads is an error. In a folder that every user can write, such as /tmp, a link is an
 * error, since another user may have put it there. A standard stream is written where the program's own words go: a
 * file opened anew by that name would be written over from its start. Allocates nothing; thread-safe. */
int output_file_open(const char *name, enum output_file_mode mode);

/* Why a file could not be opened, by its errno, for messages. */
const char *output_file_reason(int code);

#endif
