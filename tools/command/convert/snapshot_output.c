/* SPDX-License-Identifier: MIT */
/* snapshot_output.c: writes rows as a pickle of what torch.cuda.memory._snapshot() gives, which https://pytorch.org/memory_viz
 * shows. A row becomes "alloc" or "oom", or "free_requested" and "free_completed"; threads and failed frees have no place
 * there. A stack is pickled once, as are the keys: the memo has the keys, then the stacks by number. */
#include "../array.h"
#include "../trace/stack_frames.h"
#include "convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum snapshot_word {
  WORD_ACTION,
  WORD_ADDR,
  WORD_SIZE,
  WORD_STREAM,
  WORD_TIME,
  WORD_FRAMES,
  WORD_NAME,
  WORD_FILE,
  WORD_LINE,
  WORD_FREE,
  WORD_ALLOC,
  WORD_REQUESTED,
  WORD_COMPLETED,
  WORD_OOM,
  SNAPSHOT_WORDS
};

struct snapshot_output {
  bool *has_stack; /* by number: it is in the memo */
  size_t n_stacks;
  int64_t microseconds; /* of the last row */
};

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static void snapshot_put_number(FILE *file, uint64_t number, unsigned bytes)
{
  for (unsigned i = 0; i < bytes; i++) putc((int)(number >> 8 * i & 255), file);
}

/* LONG1 has a sign: addresses need a ninth byte. */
static void snapshot_put_long(FILE *file, uint64_t number)
{
  putc(0x8a, file);
  putc(9, file);
  snapshot_put_number(file, number, 8);
  putc(0, file);
}

static void snapshot_put_text(FILE *file, const char *text, size_t bytes)
{
  putc('X', file);
  snapshot_put_number(file, bytes, 4);
  fwrite(text, 1, bytes, file);
}

static void snapshot_put_word(FILE *file, enum snapshot_word word)
{
  putc('h', file);
  putc((int)word, file);
}

static void snapshot_put_entry(FILE *file, enum snapshot_word key, uint64_t number)
{
  snapshot_put_word(file, key);
  snapshot_put_long(file, number);
}

/* ---- Call stacks ----------------------------------------------------------------------------------------------- */

static void snapshot_put_frame(FILE *file, const struct stack_frame *frame)
{
  putc('}', file);
  putc('(', file);
  snapshot_put_word(file, WORD_NAME);
  snapshot_put_text(file, frame->name, (size_t)(frame->name_end - frame->name));
  snapshot_put_word(file, WORD_FILE);
  snapshot_put_text(file, frame->file, (size_t)(frame->file_end - frame->file));
  snapshot_put_entry(file, WORD_LINE, frame->line);
  putc('u', file);
}

/* Writes a stack's frames, or what the memo has of it. False: out of memory. */
static bool snapshot_put_frames(struct convert_output *output, uint32_t stack, const char *text)
{
  struct snapshot_output *snapshot = output->snapshot;
  FILE *file = output->file;
  if (!array_grow_zeroed(&snapshot->has_stack, stack, &snapshot->n_stacks, sizeof *snapshot->has_stack)) return false;
  putc(snapshot->has_stack[stack] ? 'j' : ']', file);
  if (!snapshot->has_stack[stack]) {
    putc('(', file);
    for (struct stack_frame frame; stack_frames_next(&text, &frame);) snapshot_put_frame(file, &frame);
    putc('e', file);
    putc('r', file);
  }
  snapshot->has_stack[stack] = true;
  snapshot_put_number(file, SNAPSHOT_WORDS + (uint64_t)stack, 4);
  return true;
}

/* ---- Output ---------------------------------------------------------------------------------------------------- */

static bool snapshot_output_begin(struct convert_output *output)
{
  static const char *const words[SNAPSHOT_WORDS] = {
      "action",   "addr", "size",        "stream", "time_us",        "frames",         "name",
      "filename", "line", "device_free", "alloc",  "free_requested", "free_completed", "oom"};
  FILE *file = output->file;
  output->snapshot = calloc(1, sizeof *output->snapshot);
  if (!output->snapshot) return false;
  fputs("\x80\x02", file);
  for (int i = 0; i < SNAPSHOT_WORDS; i++) {
    snapshot_put_text(file, words[i], strlen(words[i]));
    putc('q', file);
    putc(i, file);
    putc('0', file);
  }
  fputs("}(", file);
  snapshot_put_text(file, "segments", strlen("segments"));
  putc(']', file);
  snapshot_put_text(file, "device_traces", strlen("device_traces"));
  fputs("]]", file);
  return !ferror(file);
}

static bool snapshot_output_event(struct convert_output *output, enum snapshot_word action, const struct trace_row *row,
                                  const struct trace_rows *rows)
{
  FILE *file = output->file;
  const char *stack = row->stack ? trace_rows_stack(rows, row->stack) : NULL;
  fputs("}(", file);
  snapshot_put_word(file, WORD_ACTION);
  snapshot_put_word(file, action);
  snapshot_put_entry(file, action == WORD_OOM ? WORD_FREE : WORD_ADDR, row->pointer);
  snapshot_put_entry(file, WORD_SIZE, row->bytes);
  snapshot_put_entry(file, WORD_STREAM, row->stream);
  snapshot_put_entry(file, WORD_TIME, (uint64_t)output->snapshot->microseconds);
  snapshot_put_word(file, WORD_FRAMES);
  if (!stack) putc(']', file);
  if (stack && !snapshot_put_frames(output, row->stack, stack)) return false;
  fputs("ua", file);
  return !ferror(file);
}

static bool snapshot_output_row(struct convert_output *output, const struct trace_row *row,
                                const struct trace_rows *rows)
{
  static const enum snapshot_word actions[] = {
      [TRACE_ALLOCATE] = WORD_ALLOC, [TRACE_FREE] = WORD_REQUESTED, [TRACE_ALLOCATE_FAILURE] = WORD_OOM};
  if (row->action == TRACE_FREE_FAILURE) return true;
  if (row->nanoseconds >= 0) output->snapshot->microseconds = row->nanoseconds / 1000;
  return snapshot_output_event(output, actions[row->action], row, rows) &&
         (row->action != TRACE_FREE || snapshot_output_event(output, WORD_COMPLETED, row, rows));
}

static bool snapshot_output_end(struct convert_output *output)
{
  struct snapshot_output *snapshot = output->snapshot;
  errno = ENOMEM;
  bool good = snapshot && fputs("au.", output->file) >= 0 && fflush(output->file) == 0;
  int code = errno;
  if (snapshot) free(snapshot->has_stack);
  free(snapshot);
  errno = code;
  return good;
}

const struct convert_output convert_snapshot = {
    .begin = snapshot_output_begin, .row = snapshot_output_row, .end = snapshot_output_end};
