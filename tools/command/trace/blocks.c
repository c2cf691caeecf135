/* SPDX-License-Identifier: MIT */
/* blocks.c: see blocks.h. */
#include "blocks.h"
#include "../../../core/base/key_map.h"
#include "../array.h"
#include "../cmd.h"
#include "live.h"
#include "stack_frames.h"

#include <stdlib.h>
#include <string.h>

/* More marks than a page can show are left out; and of more that are open the first do not end. */
enum { BLOCKS_TELL_EVENTS = 1 << 14, BLOCKS_MOST_MARKS = 1 << 16, BLOCKS_OPEN_MARKS = 64 };

/* A program without a pool has a segment for each block. Those beyond are left out, unless what is held is their sum. */
enum { BLOCKS_MOST_SEGMENTS = 1 << 15 };

struct blocks_reader {
  struct blocks *blocks;           /* of one space */
  struct trace_live live;          /* items are the indices of blocks */
  struct key_map streams, threads; /* to index + 1 */
  struct key_map logs;             /* rows to number of the log */
  uint32_t n_logs;
  struct key_map stacks; /* of log and number, to index */
  const struct trace_rows *lines_of;
  struct key_map lines; /* of the stacks of that log: see stack_texts_copy() */
  const struct trace_rows *tags_of;
  uint32_t tags, tag;     /* of that log, and their innermost: those of the block before, mostly */
  struct key_map waiting; /* bytes by address of what was freed and is not complete */
  uint64_t waiting_bytes;
  bool completes; /* the log tells what is complete */
  int64_t first_time;
  size_t n_open;
  uint32_t open_marks[BLOCKS_OPEN_MARKS]; /* those that have not ended, in order, without those of tags */
  struct key_map tag_marks;               /* by thread: index + 1 of the mark of its outermost tag */
};

/* The index of a value. False: out of memory. */
static bool blocks_name(struct block_names *names, struct key_map *map, uint64_t value, uint16_t *index_out)
{
  uint64_t number = key_map_get(map, value);
  if (!number && names->n == BLOCKS_OTHERS) number = BLOCKS_OTHERS + 1;
  if (!number) {
    number = names->n + 1;
    if (!array_grow(&names->values, names->n, &names->capacity, sizeof *names->values)) return false;
    if (!key_map_put(map, value, number)) return false;
    names->values[names->n++] = value;
  }
  *index_out = (uint16_t)(number - 1);
  return true;
}

/* Adds a stack of a log. False: out of memory. */
static bool blocks_add_stack(struct blocks_reader *reader, const struct trace_rows *rows, uint32_t stack,
                             uint32_t *index_out)
{
  const struct stack_texts *stacks = trace_rows_stacks(rows);
  const char *text = stacks ? NULL : trace_rows_stack(rows, stack);
  if (stacks && reader->lines_of != rows) key_map_clear(&reader->lines);
  reader->lines_of = rows;
  if (stacks)
    return stack >= stacks->n || stack_texts_copy(&reader->blocks->stacks, stacks, stack, &reader->lines, index_out);
  return !text || stack_texts_add(&reader->blocks->stacks, text, index_out);
}

/* The index of a row's stack: each log has numbers of its own. */
static bool blocks_stack(struct blocks_reader *reader, const struct trace_row *row, const struct trace_rows *rows,
                         uint32_t *index_out)
{
  *index_out = 0;
  if (!row->stack) return true;
  uint64_t log = key_map_get(&reader->logs, (uintptr_t)rows);
  if (!log && !key_map_put(&reader->logs, (uintptr_t)rows, log = ++reader->n_logs)) return false;
  uint64_t key = log << 32 | row->stack;
  *index_out = (uint32_t)key_map_get(&reader->stacks, key);
  if (*index_out) return true;
  return blocks_add_stack(reader, rows, row->stack, index_out) &&
         (!*index_out || key_map_put(&reader->stacks, key, *index_out));
}

/* Notes the tag of the last block. False: out of memory. */
static bool blocks_note_tag(struct blocks_reader *reader, const struct trace_row *row, const struct trace_rows *rows)
{
  struct blocks *blocks = reader->blocks;
  char name[256];
  size_t bytes;
  if (!row->tags) return true;
  if (reader->tags_of != rows || reader->tags != row->tags) {
    const char *tag = trace_rows_tag(rows, row, &bytes);
    reader->tag = 0;
    if (tag) snprintf(name, sizeof name, "%.*s", (int)bytes, tag);
    if (tag && !stack_texts_add(&blocks->tag_names, name, &reader->tag)) return false;
    reader->tags_of = rows;
    reader->tags = row->tags;
  }
  if (!array_grow_zeroed(&blocks->tags, blocks->n - 1, &blocks->n_tags, sizeof *blocks->tags)) return false;
  blocks->tags[blocks->n - 1] = reader->tag < BLOCKS_OTHERS ? (uint16_t)reader->tag : BLOCKS_OTHERS;
  return true;
}

static bool blocks_add_event(struct blocks_reader *reader, int64_t nanoseconds)
{
  struct blocks *blocks = reader->blocks;
  int64_t last = blocks->n_events ? blocks->times[blocks->n_events - 1] : 0;
  if (!array_grow(&blocks->times, blocks->n_events, &blocks->event_capacity, sizeof *blocks->times)) return false;
  if (nanoseconds == TRACE_NO_TIME) {
    blocks->times[blocks->n_events++] = last;
    return true;
  }
  if (!blocks->has_times) reader->first_time = nanoseconds;
  blocks->has_times = true;
  if (__builtin_sub_overflow(nanoseconds, reader->first_time, &nanoseconds)) nanoseconds = last;
  blocks->times[blocks->n_events++] = nanoseconds > last ? nanoseconds : last;
  return true;
}

static bool blocks_allocate(struct blocks_reader *reader, const struct trace_row *row, const struct trace_pair *pair,
                            const struct trace_rows *rows)
{
  struct blocks *blocks = reader->blocks;
  if (!array_grow(&blocks->items, blocks->n, &blocks->capacity, sizeof *blocks->items)) return false;
  struct block *block = &blocks->items[blocks->n];
  blocks->stack_sample = row->stack_sample;
  bool is_possible = row->bytes <= BLOCKS_MOST_BYTES;
  blocks->impossible += !is_possible;
  *block = (struct block){.address = row->pointer,
                          .bytes = is_possible ? row->bytes : 0,
                          .from = (uint32_t)blocks->n_events - 1,
                          .to = BLOCK_IS_LIVE};
  if (!blocks_name(&blocks->streams, &reader->streams, row->stream, &block->stream) ||
      !blocks_name(&blocks->threads, &reader->threads, row->thread, &block->thread) ||
      !blocks_stack(reader, row, rows, &block->stack))
    return false;
  if (pair->older) blocks->items[reader->live.blocks[pair->older].item].to = block->from; /* the log lacks its free */
  blocks->overlaid += pair->older != TRACE_NULL_SLOT;
  reader->live.blocks[pair->slot].item = (uint32_t)blocks->n++;
  return blocks_note_tag(reader, row, rows);
}

/* Called when all that follows the last event has been read. */
static void blocks_note_waiting(struct blocks_reader *reader)
{
  struct blocks *blocks = reader->blocks;
  if (reader->waiting_bytes <= blocks->waiting_peak) return;
  blocks->waiting_peak = reader->waiting_bytes;
  blocks->waiting_event = (uint32_t)blocks->n_events - 1;
}

static bool blocks_free(struct blocks_reader *reader, const struct trace_row *row, struct block *block)
{
  block->to = (uint32_t)reader->blocks->n_events - 1;
  if (!row->waits || !block->bytes || key_map_get(&reader->waiting, block->address)) return true;
  reader->waiting_bytes += block->bytes;
  return key_map_put(&reader->waiting, block->address, block->bytes);
}

static bool blocks_add(struct blocks_reader *reader, const struct trace_row *row, const struct trace_rows *rows)
{
  struct blocks *blocks = reader->blocks;
  struct trace_pair pair;
  blocks_note_waiting(reader);
  if (!blocks_add_event(reader, row->nanoseconds)) return false;
  const uint64_t mark = key_map_get(&reader->tag_marks, row->thread);
  if (mark) blocks->marks[mark - 1].to = (uint32_t)blocks->n_events; /* the thread may end without a word */
  bool is_failure = row->action == TRACE_ALLOCATE_FAILURE || row->action == TRACE_FREE_FAILURE;
  if (is_failure && !blocks->failures++)
    blocks->first_failure = (struct block_failure){row->bytes, (uint32_t)blocks->n_events - 1};
  if (!trace_live_note(&reader->live, row, &pair)) return false;
  if (row->action == TRACE_ALLOCATE) return !pair.slot || blocks_allocate(reader, row, &pair, rows);
  if (pair.slot) return blocks_free(reader, row, &blocks->items[reader->live.blocks[pair.slot].item]);
  blocks->unmatched_frees += row->action == TRACE_FREE && row->pointer;
  return true;
}

/* ---- Held memory, and marks ---- */

static bool blocks_add_level(struct block_levels *levels, uint64_t bytes, uint32_t event)
{
  if (bytes > BLOCKS_MOST_BYTES) bytes = BLOCKS_MOST_BYTES;
  if (!array_grow(&levels->items, levels->n, &levels->capacity, sizeof *levels->items)) return false;
  levels->items[levels->n++] = (struct block_level){bytes, event};
  return true;
}

static bool blocks_sum_segments(struct blocks *blocks)
{
  return blocks->is_held_told ||
         blocks_add_level(&blocks->held, blocks->segments.held_bytes, (uint32_t)blocks->n_events);
}

static bool blocks_add_segment(struct blocks_reader *reader, const struct trace_row *row, const struct trace_rows *rows)
{
  struct blocks *blocks = reader->blocks;
  struct segments *segments = &blocks->segments;
  char holder[256] = "";
  size_t bytes;
  const char *tag = blocks->is_held_told ? trace_rows_tag(rows, row, &bytes) : NULL;
  uint32_t stack, pool = row->pool;
  if (tag) snprintf(holder, sizeof holder, "%.*s", (int)bytes, tag);
  if ((tag && !stack_texts_add(&blocks->holders, holder, &pool)) || !blocks_stack(reader, row, rows, &stack) ||
      !segments_hold(segments, (uint32_t)blocks->n_events, row->pointer, row->bytes, pool))
    return false;
  if (row->bytes) segments->items[segments->n - 1].stack = stack;
  return true;
}

static void blocks_close_mark(struct blocks_reader *reader, size_t at)
{
  reader->n_open--;
  memmove(reader->open_marks + at, reader->open_marks + at + 1, (reader->n_open - at) * sizeof *reader->open_marks);
}

/* Ends the last mark with that name. */
static void blocks_end_mark(struct blocks_reader *reader, uint32_t name, uint32_t event)
{
  for (size_t i = reader->n_open; i-- > 0;) {
    struct block_mark *mark = &reader->blocks->marks[reader->open_marks[i]];
    if (mark->name != name) continue;
    mark->to = event;
    blocks_close_mark(reader, i);
    return;
  }
}

static bool blocks_add_mark(struct blocks_reader *reader, const struct trace_row *row, const struct trace_rows *rows)
{
  struct blocks *blocks = reader->blocks;
  const char *text = row->tags    ? trace_rows_tags(rows, row->tags)
                     : row->stack ? trace_rows_stack(rows, row->stack)
                                  : NULL;
  const uint32_t event = (uint32_t)blocks->n_events;
  uint32_t name = 0;
  char *line = text ? strndup(text, strcspn(text, "\n")) : NULL;
  bool good = !text || (line && stack_texts_add(&blocks->mark_names, line, &name));
  free(line);
  if (!good) return false;
  if (row->action == TRACE_MARK_END && row->tags) return key_map_extract(&reader->tag_marks, row->thread), true;
  if (row->action == TRACE_MARK_END) return blocks_end_mark(reader, name, event), true;
  if (blocks->n_marks == BLOCKS_MOST_MARKS) return blocks->more_marks++, true;
  if (!array_grow(&blocks->marks, blocks->n_marks, &blocks->marks_capacity, sizeof *blocks->marks)) return false;
  blocks->marks[blocks->n_marks++] = (struct block_mark){event, BLOCK_IS_LIVE, name};
  if (row->tags) return key_map_put(&reader->tag_marks, row->thread, blocks->n_marks);
  if (reader->n_open == BLOCKS_OPEN_MARKS) blocks_close_mark(reader, 0);
  reader->open_marks[reader->n_open++] = (uint32_t)blocks->n_marks - 1;
  return true;
}

/* A row that is not of blocks. */
static bool blocks_add_other(struct blocks_reader *reader, const struct trace_row *row, const struct trace_rows *rows)
{
  struct blocks *blocks = reader->blocks;
  const uint32_t event = (uint32_t)blocks->n_events;
  switch (row->action) {
  case TRACE_HELD: return blocks->is_held_told = true, blocks_add_level(&blocks->held, row->bytes, event);
  case TRACE_DEVICE_FREE: return blocks_add_level(&blocks->device_free, row->bytes, event);
  case TRACE_ROUNDED: return blocks->rounded_bytes += row->bytes < BLOCKS_MOST_BYTES ? row->bytes : 0, true;
  case TRACE_COMPLETE:
    reader->completes = true;
    reader->waiting_bytes -= key_map_extract(&reader->waiting, row->pointer);
    return true;
  case TRACE_HOLD:
    if (row->bytes > BLOCKS_MOST_BYTES) return true;
    if (blocks->is_held_told && blocks->segments.n_held == BLOCKS_MOST_SEGMENTS) return true;
    return blocks_add_segment(reader, row, rows) && blocks_sum_segments(blocks);
  case TRACE_RELEASE:
    return segments_release(&blocks->segments, event, row->pointer, row->bytes) && blocks_sum_segments(blocks);
  default: return blocks_add_mark(reader, row, rows);
  }
}

struct blocks_readers {
  struct blocks_list list;
  struct blocks_reader *items; /* of each space */
  size_t capacity, blocks_capacity, events;
};

/* The reader of a row's space. NULL: out of memory. */
static struct blocks_reader *blocks_readers_find(struct blocks_readers *readers, const struct trace_space *space)
{
  size_t index, n = readers->list.n;
  if (!trace_spaces_find(&readers->list.spaces, space, &index)) return NULL;
  if (index == n) {
    if (!array_grow_zeroed(&readers->items, n, &readers->capacity, sizeof *readers->items) ||
        !array_grow_zeroed(&readers->list.items, n, &readers->blocks_capacity, sizeof *readers->list.items))
      return NULL;
    readers->list.n++;
  }
  readers->items[index].blocks = &readers->list.items[index];
  return &readers->items[index];
}

static bool blocks_read_logs(struct blocks_readers *readers, struct trace_logs *logs)
{
  struct progress progress;
  const struct trace_row *row;
  const struct trace_rows *rows;
  uint64_t done, total;
  bool good = true;
  progress_start(&progress, "reading");
  while (good && trace_logs_next(logs, &row, &rows)) {
    struct blocks_reader *reader = blocks_readers_find(readers, &row->space);
    good =
        reader && reader->blocks->n_events < BLOCK_IS_LIVE &&
        (trace_action_is_of_blocks(row->action) ? blocks_add(reader, row, rows) : blocks_add_other(reader, row, rows));
    if (++readers->events % BLOCKS_TELL_EVENTS) continue;
    trace_logs_progress(logs, &done, &total);
    progress_show(&progress, done, total);
  }
  progress_end(&progress);
  if (!good) say("out of memory, or more events than can be counted, after %zu events", readers->events);
  return good && !logs->has_failed;
}

/* Whether a choice took something; else the error is printed. */
static bool blocks_check_choice(const struct trace_logs *logs, const struct blocks_list *list)
{
  bool takes[TRACE_MOST_SPACES];
  return list->n || !logs->choice || !logs->spaces.n ||
         trace_choice_mark(logs->choice, &logs->spaces, logs->files, takes) > 0;
}

bool blocks_read(struct blocks_list *list, struct trace_logs *logs)
{
  struct blocks_readers readers = {.list = {0}};
  const struct trace_space nowhere = {0};
  bool good = blocks_read_logs(&readers, logs) && blocks_check_choice(logs, &readers.list);
  if (good && !readers.list.n && !blocks_readers_find(&readers, &nowhere)) good = false, say("out of memory");
  for (size_t i = 0; i < readers.list.n; i++) {
    struct blocks_reader *reader = &readers.items[i];
    reader->blocks = &readers.list.items[i]; /* they may have moved */
    if (reader->completes)
      blocks_note_waiting(reader);
    else
      reader->blocks->waiting_peak = 0;
    trace_live_clear(&reader->live);
    key_map_clear(&reader->waiting);
    key_map_clear(&reader->streams);
    key_map_clear(&reader->threads);
    key_map_clear(&reader->logs);
    key_map_clear(&reader->stacks);
    key_map_clear(&reader->lines);
    key_map_clear(&reader->tag_marks);
  }
  free(readers.items);
  trace_logs_close(logs);
  if (!good) blocks_list_clear(&readers.list);
  *list = readers.list;
  return good;
}

static void blocks_clear(struct blocks *blocks)
{
  stack_texts_clear(&blocks->stacks);
  free(blocks->streams.values);
  free(blocks->threads.values);
  free(blocks->times);
  free(blocks->items);
  free(blocks->held.items);
  free(blocks->device_free.items);
  segments_clear(&blocks->segments);
  stack_texts_clear(&blocks->holders);
  free(blocks->marks);
  stack_texts_clear(&blocks->mark_names);
  stack_texts_clear(&blocks->tag_names);
  free(blocks->tags);
}

void blocks_list_clear(struct blocks_list *list)
{
  for (size_t i = 0; i < list->n; i++) blocks_clear(&list->items[i]);
  free(list->items);
  trace_spaces_clear(&list->spaces);
  *list = (struct blocks_list){0};
}

const char *blocks_tag_name(const struct blocks *blocks, uint32_t tag)
{
  return tag == BLOCKS_OTHERS ? "(others)" : stack_texts_get(&blocks->tag_names, tag);
}

void blocks_stack_name(const struct blocks *blocks, uint32_t stack, char *name, size_t name_bytes)
{
  const char *text = stack_texts_get(&blocks->stacks, stack);
  if (text)
    stack_frames_name(text, name, name_bytes);
  else
    snprintf(name, name_bytes, "(no call stack recorded)");
}

void blocks_pool_name(const struct blocks *blocks, uint32_t pool, char name[BLOCKS_POOL_NAME_BYTES])
{
  const char *holder = blocks->is_held_told ? stack_texts_get(&blocks->holders, pool) : NULL;
  if (holder)
    snprintf(name, BLOCKS_POOL_NAME_BYTES, "%s", holder);
  else if (pool)
    snprintf(name, BLOCKS_POOL_NAME_BYTES, "private (%u, %u)", pool >> 16, pool & UINT16_MAX);
  else
    snprintf(name, BLOCKS_POOL_NAME_BYTES, "shared");
}

const char *blocks_pool_word(const struct blocks *blocks)
{
  return blocks->is_held_told ? "resource" : "pool";
}
