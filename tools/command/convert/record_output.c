/* SPDX-License-Identifier: MIT */
/* record_output.c: writes rows as a binary record, whose clock counts nanoseconds. */
#include "../../../core/base/record_format.h"
#include "../array.h"
#include "convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Threads with a block of their own; the others share the last. */
enum { RECORD_OUTPUT_THREADS = 256 };

struct record_output_block {
  struct record_context context;
  uint32_t thread;
  char tags[RECORD_MOST_TAG_BYTES + 1]; /* of the row before */
  char *at, *end;                       /* NULL: not begun */
  uint64_t data[RECORD_BLOCK_BYTES / sizeof(uint64_t)];
};

struct record_output {
  struct record_output_block *blocks[RECORD_OUTPUT_THREADS];
  size_t n_blocks;
  uint64_t sequence, ticks; /* of the last block, and of the last row */
  bool *has_stack;          /* by number: its text is written */
  size_t n_stacks;
  bool has_head;
};

/* Writes the head, before the first row, which has what it says of stacks. */
static bool record_output_head(struct convert_output *output, uint64_t stack_sample)
{
  union {
    struct record_head head;
    char bytes[RECORD_BLOCK_BYTES];
  } * first;
  if (output->record->has_head) return true;
  first = calloc(1, sizeof *first);
  if (first)
    first->head = (struct record_head){.magic = RECORD_MAGIC,
                                       .byte_order = RECORD_BYTE_ORDER,
                                       .block_bytes = RECORD_BLOCK_BYTES,
                                       .ticks_per_second = 1000000000,
                                       .stack_sample = stack_sample};
  output->record->has_head = true;
  bool good = first && fwrite(first, sizeof *first, 1, output->file) == 1;
  free(first);
  return good;
}

static bool record_output_begin(struct convert_output *output)
{
  output->record = calloc(1, sizeof *output->record);
  return output->record;
}

/* The block of a thread; NULL without memory. */
static struct record_output_block *record_output_block_of(struct record_output *record, uint32_t thread)
{
  size_t i = 0;
  while (i < record->n_blocks && record->blocks[i]->thread != thread) i++;
  if (i == RECORD_OUTPUT_THREADS) return record->blocks[i - 1];
  if (i < record->n_blocks) return record->blocks[i];
  struct record_output_block *block = calloc(1, sizeof *block);
  if (!block) return NULL;
  block->thread = thread;
  record->blocks[record->n_blocks++] = block;
  return block;
}

static bool record_output_flush(struct convert_output *output, struct record_output_block *block)
{
  return !block->at || fwrite(block->data, RECORD_BLOCK_BYTES, 1, output->file) == 1;
}

/* Room for `bytes` in the block, which is written and begun anew if it has too few. */
static bool record_output_room(struct convert_output *output, struct record_output_block *block, size_t bytes)
{
  struct record_output *record = output->record;
  if (block->at && (size_t)(block->end - block->at) >= bytes) return true;
  if (!record_output_flush(output, block)) return false;
  memset(block->data, 0, sizeof block->data);
  *(struct record_block *)block->data = (struct record_block){.magic = RECORD_BLOCK_MAGIC,
                                                              .thread = block->thread,
                                                              .ticks = record->ticks,
                                                              .nanoseconds = record->ticks,
                                                              .sequence = ++record->sequence};
  block->at = (char *)block->data + sizeof(struct record_block);
  block->end = (char *)block->data + sizeof block->data;
  block->context = (struct record_context){.ticks = record->ticks};
  block->tags[0] = '\0';
  return true;
}

/* Writes the text of the row's stack unless it is written. */
static bool record_output_stack(struct convert_output *output, struct record_output_block *block, uint32_t stack,
                                const struct trace_rows *rows)
{
  struct record_output *record = output->record;
  if (!stack || (stack < record->n_stacks && record->has_stack[stack])) return true;
  const char *text = trace_rows_stack(rows, stack);
  if (!text) return true;
  struct {
    uint32_t number, length;
    char text[RECORD_MOST_TEXT_BYTES];
  } meta = {.number = stack};
  if (!array_grow_zeroed(&record->has_stack, stack, &record->n_stacks, sizeof *record->has_stack)) return false;
  record->has_stack[stack] = true;
  meta.length = (uint32_t)strnlen(text, sizeof meta.text);
  if (text[meta.length]) /* whole frames only */
    while (meta.length && text[meta.length - 1] != '\n') meta.length--;
  memcpy(meta.text, text, meta.length);
  size_t bytes = 2 * sizeof(uint32_t) + meta.length;
  if (!record_output_room(output, block, 2 + bytes + 1)) return false;
  block->at = record_put_meta(block->at, RECORD_META_STACK, &meta, bytes);
  return true;
}

/* Room for the row, and its tags unless they are those of the row before. */
static bool record_output_tags(struct convert_output *output, struct record_output_block *block,
                               const struct trace_row *row, const struct trace_rows *rows)
{
  char tags[sizeof block->tags];
  const char *text = row->tags ? trace_rows_tags(rows, row->tags) : NULL;
  snprintf(tags, sizeof tags, "%s", text ? text : "");
  if (!record_output_room(output, block, RECORD_PUT_BYTES + 2 + sizeof row->thread + 1 + 2 + 1 + strlen(tags) + 1))
    return false;
  if (strcmp(block->tags, tags) != 0) block->at = record_put_tags(block->at, tags);
  memcpy(block->tags, tags, sizeof tags);
  return true;
}

/* The rows of a log in CSV have times in microseconds: each row gets a later time than the row before it, so that the order
 * stays. */
static bool record_output_row(struct convert_output *output, const struct trace_row *row, const struct trace_rows *rows)
{
  static const enum record_action actions[] = {[TRACE_ALLOCATE] = RECORD_ALLOCATE,
                                               [TRACE_FREE] = RECORD_FREE,
                                               [TRACE_ALLOCATE_FAILURE] = RECORD_ALLOCATE_FAILURE,
                                               [TRACE_FREE_FAILURE] = RECORD_FREE_FAILURE};
  struct record_output *record = output->record;
  struct record_output_block *block = record_output_block_of(record, row->thread);
  bool is_later = row->nanoseconds > 0 && (uint64_t)row->nanoseconds > record->ticks;
  record->ticks = is_later ? (uint64_t)row->nanoseconds : record->ticks + 1;
  if (!block || !record_output_head(output, row->stack_sample) ||
      !record_output_stack(output, block, row->stack, rows) || !record_output_tags(output, block, row, rows))
    return false;
  if (block->thread != row->thread)
    block->at = record_put_meta(block->at, RECORD_META_THREAD, &row->thread, sizeof row->thread);
  block->thread = row->thread;
  const struct record_event event = {actions[row->action], record->ticks, row->pointer,
                                     row->bytes,           row->stream,   row->stack};
  block->at = record_put(block->at, &block->context, &event);
  return true;
}

static bool record_output_end(struct convert_output *output)
{
  struct record_output *record = output->record;
  bool good = record != NULL;
  int code = record ? 0 : ENOMEM;
  if (good && !record_output_head(output, 0)) {
    code = errno;
    good = false;
  }
  for (size_t i = 0; record && i < record->n_blocks; i++) {
    if (good && !record_output_flush(output, record->blocks[i])) {
      code = errno;
      good = false;
    }
    free(record->blocks[i]);
  }
  if (good && fflush(output->file)) {
    code = errno;
    good = false;
  }
  if (record) free(record->has_stack);
  free(record);
  errno = code;
  return good;
}

const struct convert_output convert_record = {
    .begin = record_output_begin, .row = record_output_row, .end = record_output_end};
