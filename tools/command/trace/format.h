/* SPDX-License-Identifier: MIT */
/* format.h: the formats of allocation logs. A reader gets a file that nobody vouches for: it trusts no number in it, and
 * runs nothing.
 *
 * A new format is a file in this folder with a struct trace_format, in the list of rows.c; tests/cmd/test_formats.c damages
 * its files. rows.h gives the rows, logs.h those of several logs in order of time. replay, bench and tune play them
 * (player.h), report and plan read them, convert writes them. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_FORMAT_H
#define HIPMM_TOOLS_COMMAND_TRACE_FORMAT_H

#include "rows.h"

struct trace_format {
  /* Whether a file that begins with these bytes, at most 1 MiB, has the format. */
  bool (*is)(const char *start, size_t bytes);

  /* A reader of the file; `lines` stays the caller's and is open until close. NULL: `message` has the reason. */
  void *(*open)(struct trace_lines *lines, char *message, size_t message_bytes);
  void (*close)(void *reader);

  /* `line`: of a format with lines, the row in one, without its newline; TRACE_LINE_END: it has none. Blank lines are left
   * out. `next`: the next row of another format; of one with lines, the next of those that `line` kept to sort them. On
   * TRACE_LINE_ERROR `message` has the reason. */
  enum trace_line (*line)(void *reader, uint32_t number, const char *line, const char *end, struct trace_row *row_out,
                          char *message, size_t message_bytes);
  enum trace_line (*next)(void *reader, struct trace_row *row_out, char *message, size_t message_bytes);

  /* The line of the row that `next` gave last, of a format with lines that sorts them. Else NULL: the rows are counted. */
  uint32_t (*line_of_row)(const void *reader);

  bool frees_lack_sizes; /* rows.c adds those of the allocations to frees of 0 bytes, and their spaces if told so */
  bool ends_in_number;   /* of a format with lines: a line that is cut off in its last number reads as a whole one */

  /* As the functions of rows.h; NULL: nothing to tell. */
  void (*progress)(const void *reader, uint64_t *done_out, uint64_t *total_out);
  void (*remark)(const void *reader, char *text, size_t text_bytes);
  const char *(*stack)(void *reader, uint32_t number);
  const struct stack_texts *(*stacks)(const void *reader); /* in place of `stack` */
  const char *(*tags)(void *reader, uint32_t number);
  bool (*has_tags)(void *reader);
  const struct json_t *(*state)(const void *reader);
};

extern const struct trace_format trace_format_record;   /* record.c: the binary record of base/record_format.h */
extern const struct trace_format trace_format_state;    /* state.c: hipmm's own snapshots and reports of processes */
extern const struct trace_format trace_format_snapshot; /* snapshot.c: torch.cuda.memory._snapshot(), pickle or JSON */
extern const struct trace_format trace_format_sqlite; /* sqlite.c: databases of Nsight Systems, rocprofv3 and PyTorch */
extern const struct trace_format trace_format_umpire; /* umpire.c: replay log of Umpire */
extern const struct trace_format trace_format_rocprof;    /* rocprof.c: CSV of rocprofv3 --memory-allocation-trace */
extern const struct trace_format trace_format_kokkos;     /* kokkos.c: the memory events of Kokkos Tools */
extern const struct trace_format trace_format_rmm_events; /* rmm_events.c: the CSV of RMM 0.5 to 0.13 */
extern const struct trace_format trace_format_rmm_mixed;  /* rmm.c: rows of RMM's CSV among lines of a program */
extern const struct trace_format trace_format_rmm;        /* rmm.c: RMM's CSV */

#endif
