/* SPDX-License-Identifier: MIT */
/* row.h: a row of the log, as it is noted when it happens, and as text in RMM 26's format:
 *
 *     Thread,Time,Action,Pointer,Size,Stream
 *     503,14:46:40.115854,allocate,0x302000000,154389504,0
 */
#ifndef HIPMM_LOGGING_ROW_H
#define HIPMM_LOGGING_ROW_H

#include <hipmm/plugin.h>
#include <time.h>

#define ROW_HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

enum {
  ROW_TEXT_BYTES = 160, /* for the longest row, and what is written beyond its end */
  ROW_THREAD_BYTES = 16
};

enum row_action { ROW_ALLOCATE, ROW_ALLOCATE_FAILURE, ROW_FREE };

struct row {
  uint64_t time_and_action; /* nanoseconds of the monotonic clock, and the action in the lowest two bits */
  uint64_t ptr, bytes, stream;
};

/* In order of time, and it is time that matters most. The monotonic clock, as the wall's may be set back. */
static inline uint64_t row_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t row_time(const struct row *row)
{
  return row->time_and_action >> 2;
}

/* The number of the calling thread as a row begins, with its comma. */
struct row_thread {
  char text[ROW_THREAD_BYTES];
  size_t length;
};

struct row_thread row_thread_now(void);

/* Turns times of rows into those of the wall. They follow the wall's clock where it is set forward, and stay ahead of it
 * where it is set back: later rows never have earlier times. */
struct row_clock {
  int64_t wall_offset; /* what to add to a time of a row */
  uint64_t second;     /* that `text` stands for: the wall's time in nanoseconds */
  char text[10];       /* "14:46:40." */
};

/* Reads how far the wall's clock is ahead of the monotonic one. Start from {0}. */
void row_clock_set(struct row_clock *clock);

/* Writes a row with its newline, into ROW_TEXT_BYTES. Returns its end. */
char *row_write(struct row_clock *clock, const struct row_thread *thread, const struct row *row, char *text);

#endif
