/* SPDX-License-Identifier: MIT */
/* rows.h: the rows of an allocation log, in order, whatever its format (format.h). Used by trace.c, logs.c and the tests. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_ROWS_H
#define HIPMM_TOOLS_COMMAND_TRACE_ROWS_H

#include "../../../core/base/stack_sample.h"
#include "lines.h"

enum trace_action {
  TRACE_ALLOCATE,
  TRACE_FREE,
  TRACE_ALLOCATE_FAILURE,
  TRACE_FREE_FAILURE,
  /* Not of the program's blocks: only who asks with trace_rows_want_all() gets the following. */
  TRACE_HOLD,        /* the allocator took a segment from the driver */
  TRACE_RELEASE,     /* and gave it back, or a part */
  TRACE_COMPLETE,    /* a block that a free with `waits` gave back can be used again */
  TRACE_HELD,        /* it holds `bytes` in all now */
  TRACE_ROUNDED,     /* the blocks that are live now have `bytes` more than was asked for */
  TRACE_DEVICE_FREE, /* the device has `bytes` that nobody uses */
  TRACE_MARK,        /* the program begins what the text of `tags` or `stack` names in its first line, such as a step */
  TRACE_MARK_END
};

static inline bool trace_action_is_of_blocks(enum trace_action action)
{
  return action <= TRACE_FREE_FAILURE;
}

/* Where an address is. Equal addresses of different spaces are different memory. What a format does not tell is 0. */
enum trace_memory { TRACE_DEVICE_MEMORY, TRACE_MANAGED_MEMORY, TRACE_HOST_MEMORY };

struct trace_space {
  uint64_t process;
  int32_t device; /* of managed and host memory 0: all devices reach it */
  enum trace_memory memory;
  uint32_t log; /* number of the log among several; 0 of the rows of one */
};

/* The device of a free that does not tell it: that of its allocation, in a format whose frees lack sizes. */
#define TRACE_ANY_DEVICE (-1)

bool trace_space_is(const struct trace_space *one, const struct trace_space *other);

struct trace_row {
  enum trace_action action;
  uint32_t pool; /* of a segment: the private pool that has it; 0: none, or not known */
  bool waits;    /* of a free: the allocator keeps the block until its TRACE_COMPLETE */
  struct trace_space space;
  uint64_t pointer, bytes, stream;
  int64_t
      nanoseconds; /* since 1970; of RMM's CSV since midnight of the log's first day, UTC; TRACE_NO_TIME: not known */
  uint32_t thread; /* 0: not known */
  uint32_t stack;  /* number of a call stack; 0: none */
  uint32_t tags;   /* number of the text of the thread's tags, or of the resource that has a segment; 0: none */
  uint64_t stack_sample; /* of the log: what a stack stands for, as in stack_sample.h */
};

#define TRACE_NO_TIME INT64_MIN

struct trace_rows;

/* Opens a log; "-" is standard input. NULL: `message` has the reason. */
struct trace_rows *trace_rows_open(const char *file, char *message, size_t message_bytes);
void trace_rows_close(struct trace_rows *rows);

/* The next row. On TRACE_LINE_ERROR trace_rows_message() has the reason. */
enum trace_line trace_rows_next(struct trace_rows *rows, struct trace_row *row_out);
const char *trace_rows_message(const struct trace_rows *rows);

/* From now on rows that are not of blocks are given, too. */
void trace_rows_want_all(struct trace_rows *rows);

/* The line of the last row in the file; of a format without lines, the row's number. */
uint32_t trace_rows_line(const struct trace_rows *rows);

/* What is read so far, of how much; total 0: not known. */
uint64_t trace_rows_done_bytes(const struct trace_rows *rows);
uint64_t trace_rows_total_bytes(const struct trace_rows *rows);

/* After the last row: what the log says it lacks, and what of it was left out, as a sentence; "" if it is complete. */
const char *trace_rows_remark(struct trace_rows *rows);

/* The command that messages advise with, "replay" by default. The text stays the caller's. */
void trace_rows_set_command(const char *name);

/* What a file has that is no log: an array of hipmm's snapshots and reports of processes (state.c). NULL: it is a log. Valid
 * until the rows are closed. */
const struct json_t *trace_rows_state(const struct trace_rows *rows);

/* The lines of a call stack, innermost first; NULL if the log does not have it. Valid until the next call. */
const char *trace_rows_stack(const struct trace_rows *rows, uint32_t stack);

/* The tags of that number, the outermost first, each with a newline. Otherwise the same. */
const char *trace_rows_tags(const struct trace_rows *rows, uint32_t tags);

/* Whether any row can have tags; asked once the first row is read. */
bool trace_rows_have_tags(const struct trace_rows *rows);

/* The innermost of a row, and how long it is. NULL: it has none. */
const char *trace_rows_tag(const struct trace_rows *rows, const struct trace_row *row, size_t *bytes_out);

/* All stacks of a log whose reader keeps them so; else NULL. */
const struct stack_texts *trace_rows_stacks(const struct trace_rows *rows);

#endif
