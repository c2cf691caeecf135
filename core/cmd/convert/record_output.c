/* SPDX-License-Identifier: MIT */
/* record_output.c: writes rows as a binary record, whose clock counts nanoseconds. All threads share its blocks. */
#include "../../base/record_format.h"
#include "convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct record_output {
  struct record_context context;
  uint32_t thread;
  uint64_t sequence; /* of the block; 0: there is none */
  bool *has_stack;   /* by number: its text is written */
  uint32_t n_stacks;
  char *at, *end;
  uint64_t data[RECORD_BLOCK_BYTES / sizeof(uint64_t)];
};

static bool record_output_begin(struct convert_output *output)
{
  struct record_head head = {.byte_order = RECORD_BYTE_ORDER,
                             .block_bytes = RECORD_BLOCK_BYTES,
                             .ticks_per_second = 1000000000,
                             .device = 0,
                             .magic = RECORD_MAGIC};
  output->record = calloc(1, sizeof *output->record);
  if (!output->record) return false;
  memcpy(output->record->data, &head, sizeof head);
  bool good = fwrite(output->record->data, RECORD_BLOCK_BYTES, 1, output->file) == 1;
  memset(output->record->data, 0, sizeof output->record->data);
  return good;
}

static bool record_output_flush(struct convert_output *output)
{
  struct record_output *record = output->record;
  if (!record->sequence) return true;
  bool good = fwrite(record->data, RECORD_BLOCK_BYTES, 1, output->file) == 1;
  memset(record->data, 0, sizeof record->data);
  return good;
}

/* Room for `bytes` in the block, or in a new one that begins at `ticks`. */
static bool record_output_room(struct convert_output *output, size_t bytes, const struct trace_row *row, uint64_t ticks)
{
  struct record_output *record = output->record;
  if (record->sequence && (size_t)(record->end - record->at) >= bytes) return true;
  if (!record_output_flush(output)) return false;
  struct record_block block = {.magic = RECORD_BLOCK_MAGIC,
                               .thread = row->thread,
                               .ticks = ticks,
                               .nanoseconds = ticks,
                               .sequence = ++record->sequence};
  memcpy(record->data, &block, sizeof block);
  record->at = (char *)record->data + sizeof block;
  record->end = (char *)record->data + sizeof record->data;
  record->context = (struct record_context){.ticks = ticks};
  record->thread = row->thread;
  return true;
}

/* Writes the text of the row's stack unless it is written. */
static bool record_output_stack(struct convert_output *output, const struct trace_row *row,
                                const struct trace_rows *rows, uint64_t ticks)
{
  struct record_output *record = output->record;
  const char *text = row->stack ? trace_rows_stack(rows, row->stack) : NULL;
  struct {
    uint32_t number, length;
    char text[RECORD_MOST_TEXT_BYTES];
  } meta = {.number = row->stack};
  if (!text || (row->stack < record->n_stacks && record->has_stack[row->stack])) return true;
  if (row->stack >= record->n_stacks) {
    uint32_t count = 2 * row->stack + 64;
    bool *larger = reallocarray(record->has_stack, count, sizeof *larger);
    if (!larger) return false;
    memset(larger + record->n_stacks, 0, count - record->n_stacks);
    record->has_stack = larger;
    record->n_stacks = count;
  }
  record->has_stack[row->stack] = true;
  meta.length = (uint32_t)strnlen(text, sizeof meta.text);
  memcpy(meta.text, text, meta.length);
  size_t bytes = 2 * sizeof(uint32_t) + meta.length;
  if (!record_output_room(output, bytes + 2, row, ticks)) return false;
  record->at = record_put_meta(record->at, RECORD_META_STACK, &meta, bytes);
  return true;
}

static bool record_output_row(struct convert_output *output, const struct trace_row *row, const struct trace_rows *rows)
{
  static const enum record_action actions[] = {[TRACE_ALLOCATE] = RECORD_ALLOCATE,
                                               [TRACE_FREE] = RECORD_FREE,
                                               [TRACE_ALLOCATE_FAILURE] = RECORD_ALLOCATE_FAILURE,
                                               [TRACE_FREE_FAILURE] = RECORD_FREE_FAILURE};
  struct record_output *record = output->record;
  uint64_t ticks = row->nanoseconds < 0 ? record->context.ticks : (uint64_t)row->nanoseconds;
  if (!record_output_stack(output, row, rows, ticks)) return false;
  if (!record_output_room(output, RECORD_PUT_BYTES + 2 + sizeof row->thread, row, ticks)) return false;
  if (record->thread != row->thread)
    record->at = record_put_meta(record->at, RECORD_META_THREAD, &row->thread, sizeof row->thread);
  record->thread = row->thread;
  const struct record_event event = {actions[row->action], ticks, row->pointer, row->bytes, row->stream, row->stack};
  record->at = record_put(record->at, &record->context, &event);
  return true;
}

static bool record_output_end(struct convert_output *output)
{
  bool good = record_output_flush(output) && fflush(output->file) == 0;
  int code = errno;
  free(output->record->has_stack);
  free(output->record);
  errno = code;
  return good;
}

const struct convert_output convert_record = {
    .begin = record_output_begin, .row = record_output_row, .end = record_output_end};
