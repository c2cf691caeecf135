/* SPDX-License-Identifier: MIT */
/* row.h: a row of the log, as it is stored when it happens, and as text in RMM 26's format:
 *
 *     Thread,Time,Action,Pointer,Size,Stream
 *     503,14:46:40.115854,allocate,0x302000000,154389504,0
 */
#ifndef HIPMM_PLUGINS_LOGGING_ROW_H
#define HIPMM_PLUGINS_LOGGING_ROW_H

#include "../../core/base/deadline.h"
#include <hipmm/plugin.h>

#define ROW_HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

enum {
  ROW_TEXT_BYTES = 160, /* for the longest row and the padding behind it */
  ROW_THREAD_BYTES = 16
};

/* RMM has no word for the last: the upstream refused the free of the row before it, of the same thread and pointer. */
enum row_action { ROW_ALLOCATE, ROW_ALLOCATE_FAILURE, ROW_FREE, ROW_FREE_FAILURE };

struct row {
  uint64_t time_and_action; /* nanoseconds of the monotonic clock, and the action in the lowest two bits */
  uint64_t ptr, bytes, stream;
};

static inline uint64_t row_time(const struct row *row)
{
  return row->time_and_action >> 2;
}

/* The beginning of a row: the thread's id and a comma. */
struct row_thread {
  char text[ROW_THREAD_BYTES];
  size_t length;
};

struct row_thread row_thread_now(void);

/* Turns times of rows into wall-clock times. They follow the wall clock when it is set forward, and stay ahead of it when
 * it is set back, so later rows never have earlier times. */
struct row_clock {
  int64_t wall_offset; /* added to the time of a row */
  uint64_t second;     /* the wall-clock second of `text`, in nanoseconds */
  char text[10];       /* "14:46:40." */
};

/* Reads how far the wall clock is ahead of the monotonic clock. Start from {0}. */
void row_clock_set(struct row_clock *clock);

/* Writes a row with its newline, into ROW_TEXT_BYTES. Returns its end. */
char *row_write(struct row_clock *clock, const struct row_thread *thread, const struct row *row, char *text);

#endif
