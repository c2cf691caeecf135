/* SPDX-License-Identifier: MIT */
/* row.h: a row of RMM's log, as RMM 26 writes it:
 *
 *     Thread,Time,Action,Pointer,Size,Stream
 *     503,14:46:40.115854,allocate,0x302000000,154389504,0
 */
#ifndef HIPMM_LOGGING_ROW_H
#define HIPMM_LOGGING_ROW_H

#include <hipmm/plugin.h>
#include <time.h>

#define ROW_HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

enum { ROW_BYTES = 128 }; /* of the longest row, and more */

enum row_action { ROW_ALLOCATE, ROW_ALLOCATE_FAILURE, ROW_FREE };

/* The time of day in words, kept from row to row. Start from {0}. */
struct row_clock {
  time_t second;
  char text[10]; /* "14:46:40." */
};

/* Writes the row of the calling thread, now, with its newline. Returns its length, less than ROW_BYTES. */
size_t row_write(struct row_clock *clock, enum row_action action, const void *ptr, size_t bytes, hipStream_t stream,
                 char *row);

#endif
