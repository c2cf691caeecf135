/* SPDX-License-Identifier: MIT */
/* record.c: reads a binary record (base/record_format.h), even of a writer that was killed or still runs, and merges
 * the threads' events in order of time. A block is read when the time of the merge reaches its beginning, so memory
 * grows with the number of threads and not with the file. Nothing in the file is trusted. */
#include "../../../core/base/key_map.h"
#include "../../../core/base/text.h"
#include "../array.h"
#include "format.h"
#include "record_cursor.h"
#include "symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Times of two threads may be in the wrong order by less than this: see clock.h of the `recording` adaptor. Few events are,
 * so that the reader looks ahead at a number of events for each that it has read, and not further in a file where all
 * are. */
enum { RECORD_DISORDER_NS = 1000, RECORD_LOOKS_PER_EVENT = 16, RECORD_MOST_LOOKS = 1 << 16 };

struct record_index {
  uint64_t offset, sequence, ticks;
  uint32_t bytes; /* fewer than a block where the file ends early */
};

/* A block that is being read. */
struct record_run {
  struct record_cursor cursor; /* its event is the next one */
  bool is_cut;                 /* the file ends in the block, perhaps in an event */
  size_t began, place;         /* number of the block in order of time; index in the heap */
  uint64_t data[RECORD_BLOCK_BYTES / sizeof(uint64_t)];
};

struct record_reader {
  int descriptor;
  struct record_head head;
  double nanoseconds_per_tick;
  struct record_index *blocks; /* in order of time */
  size_t n_blocks, next_block;
  struct record_run **runs; /* a heap: the run whose event is next is the first */
  size_t n_runs, run_capacity;
  struct record_run *urgent; /* goes first, until an event of `urgent_ptr` */
  uint64_t urgent_ptr;
  uint32_t looks;      /* at events to come, before more events are read */
  struct key_map live; /* addresses that are allocated */
  struct record_stacks stacks;
  struct symbols *symbols; /* NULL: no stack was asked for */
  uint64_t damaged_blocks, cut_blocks, lost_events;
  struct record_held held;    /* as the last block or event says it; what the device has left is a row that is due */
  bool is_held_due, has_held; /* the row of what is held is due */
};

static bool record_is(const char *start, size_t bytes)
{
  static const char any_format[] = "hipmm record ";
  return bytes >= sizeof RECORD_MAGIC && memcmp(start, any_format, sizeof any_format - 1) == 0;
}

/* ---- Blocks ---------------------------------------------------------------------------------------------------- */

/* Reads at most `bytes`; how many there were. */
static size_t record_read(int descriptor, void *out, size_t bytes, uint64_t offset)
{
  size_t done = 0;
  while (done < bytes) {
    ssize_t got = pread(descriptor, (char *)out + done, bytes - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += (size_t)got;
  }
  return done;
}

/* ---- The heap of runs ------------------------------------------------------------------------------------------ */

/* Of equal times the block that began earlier. */
static bool record_is_before(const struct record_run *run, const struct record_run *other)
{
  uint64_t ticks = run->cursor.event.ticks, other_ticks = other->cursor.event.ticks;
  return ticks != other_ticks ? ticks < other_ticks : run->began < other->began;
}

static void record_place(struct record_reader *record, struct record_run *run, size_t place)
{
  record->runs[place] = run;
  run->place = place;
}

/* Moves the run from `place` to where it belongs below or above. */
static void record_settle(struct record_reader *record, struct record_run *run, size_t place)
{
  for (; place && record_is_before(run, record->runs[(place - 1) / 2]); place = (place - 1) / 2)
    record_place(record, record->runs[(place - 1) / 2], place);
  for (size_t child; (child = 2 * place + 1) < record->n_runs; place = child) {
    if (child + 1 < record->n_runs && record_is_before(record->runs[child + 1], record->runs[child])) child++;
    if (!record_is_before(record->runs[child], run)) break;
    record_place(record, record->runs[child], place);
  }
  record_place(record, run, place);
}

static void record_remove_run(struct record_reader *record, struct record_run *run)
{
  struct record_run *last = record->runs[--record->n_runs];
  if (last != run) record_settle(record, last, run->place);
  if (record->urgent == run) record->urgent = NULL;
  free(run);
}

/* Decodes the run's next event. False at the end of its block, also where that is damaged. */
static bool record_advance(struct record_reader *record, struct record_run *run)
{
  enum record_step step = record_cursor_next(&run->cursor, &record->stacks);
  record->damaged_blocks += step == RECORD_STEP_DAMAGED && !run->is_cut;
  return step == RECORD_STEP_EVENT;
}

/* ---- Blocks in order of time ----------------------------------------------------------------------------------- */

/* What is held is given as rows before the next event; blocks say it again and again. */
static void record_hold(struct record_reader *record, struct record_held held)
{
  record->is_held_due = record->is_held_due || !record->has_held || held.bytes != record->held.bytes;
  if (record->has_held && held.device_free_bytes == UINT64_MAX) held.device_free_bytes = record->held.device_free_bytes;
  record->held = held;
  record->has_held = true;
}

/* Begins to read the next block. False: out of memory. */
static bool record_begin_run(struct record_reader *record)
{
  const struct record_index *index = &record->blocks[record->next_block];
  if (!array_grow(&record->runs, record->n_runs, &record->run_capacity, sizeof(struct record_run *))) return false;
  struct record_run *run = malloc(sizeof *run);
  if (!run) return false;
  size_t bytes = record_read(record->descriptor, run->data, index->bytes, index->offset);
  const struct record_block *block = (const struct record_block *)run->data;
  run->began = record->next_block++;
  if (bytes < sizeof *block || block->magic != RECORD_BLOCK_MAGIC || block->sequence != index->sequence) {
    record->damaged_blocks++;
    free(run);
    return true;
  }
  run->cursor = (struct record_cursor){.context = {.ticks = block->ticks},
                                       .thread = block->thread,
                                       .at = (const char *)(block + 1),
                                       .end = (const char *)run->data + bytes};
  run->is_cut = bytes < RECORD_BLOCK_BYTES;
  record->lost_events += block->lost_events;
  if (block->held_bytes) record_hold(record, (struct record_held){block->ticks, block->held_bytes - 1, UINT64_MAX});
  if (record_advance(record, run)) {
    record->n_runs++;
    record_settle(record, run, record->n_runs - 1);
  } else {
    free(run);
  }
  return true;
}

/* Of blocks with one sequence number the first in the file comes first. */
static int record_compare_sequence(const void *one, const void *other)
{
  const struct record_index *a = one, *b = other;
  if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
  return a->offset < b->offset ? -1 : 1;
}

static int record_compare_time(const void *one, const void *other)
{
  const struct record_index *a = one, *b = other;
  if (a->ticks != b->ticks) return a->ticks < b->ticks ? -1 : 1;
  return record_compare_sequence(one, other);
}

/* Drops the copies of blocks that are there twice. */
static void record_drop_copies(struct record_reader *record)
{
  size_t kept = 0;
  qsort(record->blocks, record->n_blocks, sizeof *record->blocks, record_compare_sequence);
  for (size_t i = 0; i < record->n_blocks; i++)
    if (!kept || record->blocks[i].sequence != record->blocks[kept - 1].sequence)
      record->blocks[kept++] = record->blocks[i];
  record->n_blocks = kept;
  qsort(record->blocks, record->n_blocks, sizeof *record->blocks, record_compare_time);
}

/* Finds the blocks of the file, and two moments far apart, for the rate of the clock. False: out of memory. */
static bool record_find_blocks(struct record_reader *record, uint64_t file_bytes)
{
  const struct record_head *head = &record->head;
  uint64_t last_ticks = head->end_ticks, last_nanoseconds = head->end_nanoseconds;
  size_t most = (size_t)(file_bytes / RECORD_BLOCK_BYTES) + 1;
  record->blocks = malloc(most * sizeof *record->blocks);
  if (!record->blocks) return false;
  for (uint64_t at = RECORD_BLOCK_BYTES; at < file_bytes && record->n_blocks < most; at += RECORD_BLOCK_BYTES) {
    struct record_block block;
    uint64_t rest = file_bytes - at;
    if (record_read(record->descriptor, &block, sizeof block, at) < sizeof block) {
      record->cut_blocks++;
      break;
    }
    if (rest < RECORD_BLOCK_BYTES) record->cut_blocks++;
    if (block.magic != RECORD_BLOCK_MAGIC) {
      record->damaged_blocks += block.magic != 0;
      continue;
    }
    record->blocks[record->n_blocks++] = (struct record_index){
        at, block.sequence, block.ticks, rest < RECORD_BLOCK_BYTES ? (uint32_t)rest : (uint32_t)RECORD_BLOCK_BYTES};
    if (block.nanoseconds <= last_nanoseconds) continue;
    last_nanoseconds = block.nanoseconds;
    last_ticks = block.ticks;
  }
  record_drop_copies(record);
  record->nanoseconds_per_tick = head->ticks_per_second ? 1e9 / (double)head->ticks_per_second : 1;
  if (last_nanoseconds > head->nanoseconds + 1000000 && last_ticks > head->ticks)
    record->nanoseconds_per_tick = (double)(last_nanoseconds - head->nanoseconds) / (double)(last_ticks - head->ticks);
  return true;
}

/* ---- Merging --------------------------------------------------------------------------------------------------- */

static bool record_is_free(enum record_action action)
{
  return action == RECORD_FREE;
}

static bool record_is_of_address(const struct record_event *event)
{
  return event->ptr && (event->action == RECORD_ALLOCATE || event->action == RECORD_FREE);
}

/* Whether the event cannot follow the events so far: an allocation at an address that is allocated, or a free of an address
 * that is not. */
static bool record_is_out_of_order(const struct record_reader *record, const struct record_event *event)
{
  if (!record_is_of_address(event)) return false;
  bool is_live = key_map_get(&record->live, event->ptr);
  return is_live != record_is_free(event->action);
}

/* Whether the run has, soon after `event`, the event of the address that should come before it. */
static bool record_has_partner(struct record_reader *record, const struct record_run *run,
                               const struct record_event *event)
{
  uint64_t most = (uint64_t)(RECORD_DISORDER_NS / record->nanoseconds_per_tick);
  struct record_cursor look = run->cursor;
  bool found = false;
  while (!found && look.event.ticks - event->ticks < most && record->looks) {
    record->looks--;
    found = look.event.ptr == event->ptr && record_is_of_address(&look.event) &&
            record_is_free(look.event.action) != record_is_free(event->action);
    if (!found && record_cursor_next(&look, &record->stacks) != RECORD_STEP_EVENT) break;
  }
  return found;
}

/* The run whose event comes next. */
static struct record_run *record_choose(struct record_reader *record)
{
  struct record_run *first = record->runs[0];
  if (record->urgent) return record->urgent;
  if (!record_is_out_of_order(record, &first->cursor.event)) return first;
  for (size_t i = 1; i < record->n_runs && record->looks; i++)
    if (record_has_partner(record, record->runs[i], &first->cursor.event)) {
      record->urgent = record->runs[i];
      record->urgent_ptr = first->cursor.event.ptr;
      return record->urgent;
    }
  return first;
}

static bool record_note(struct record_reader *record, const struct record_event *event)
{
  if (record->looks < RECORD_MOST_LOOKS) record->looks += RECORD_LOOKS_PER_EVENT;
  if (!record_is_of_address(event)) return true;
  if (record->urgent && event->ptr == record->urgent_ptr) record->urgent = NULL;
  if (event->action == RECORD_ALLOCATE) return key_map_put(&record->live, event->ptr, 1);
  key_map_extract(&record->live, event->ptr);
  return true;
}

/* Since 1970. Numbers that no clock gives are wrong, whatever they become; a converted record counts nanoseconds, which a
 * double would not hold exactly. */
static int64_t record_time(const struct record_reader *record, uint64_t ticks)
{
  const struct record_head *head = &record->head;
  int64_t since = (int64_t)(ticks - head->ticks);
  if (record->nanoseconds_per_tick < 1 || record->nanoseconds_per_tick > 1) {
    double nanoseconds = (double)since * record->nanoseconds_per_tick;
    since = nanoseconds > -9e18 && nanoseconds < 9e18 ? (int64_t)nanoseconds : 0;
  }
  return (int64_t)((uint64_t)head->wall_offset + head->nanoseconds + (uint64_t)since);
}

static struct trace_row record_row_of(const struct record_reader *record, const struct record_run *run)
{
  static const enum trace_action actions[] = {[RECORD_ALLOCATE] = TRACE_ALLOCATE,
                                              [RECORD_ALLOCATE_FAILURE] = TRACE_ALLOCATE_FAILURE,
                                              [RECORD_FREE] = TRACE_FREE,
                                              [RECORD_FREE_FAILURE] = TRACE_FREE_FAILURE};
  const struct record_event *event = &run->cursor.event;
  return (struct trace_row){
      .action = actions[event->action],
      .space = {.process = record->head.process, .device = record->head.device, .memory = TRACE_DEVICE_MEMORY},
      .pointer = event->ptr,
      .bytes = event->bytes,
      .stream = event->stream,
      .nanoseconds = record_time(record, event->ticks),
      .thread = run->cursor.thread,
      .stack = event->stack,
      .tags = run->cursor.tags,
      .stack_sample = record->head.stack_sample <= STACK_SAMPLE_MOST_BYTES ? record->head.stack_sample : 0};
}

/* Memory is at addresses, or no longer. */
static struct trace_row record_place_row(const struct record_reader *record, const struct record_run *run)
{
  const struct record_event *event = &run->cursor.event;
  const bool is_there = (int64_t)event->bytes > 0;
  return (struct trace_row){
      .action = is_there ? TRACE_HOLD : TRACE_RELEASE,
      .space = {.process = record->head.process, .device = record->head.device, .memory = TRACE_DEVICE_MEMORY},
      .pointer = event->ptr,
      .bytes = is_there ? event->bytes : -event->bytes,
      .nanoseconds = record_time(record, event->ticks),
      .tags = run->cursor.holder};
}

/* The next row of what is held, or of what the device has left. */
static struct trace_row record_held_row(struct record_reader *record)
{
  struct trace_row row = {
      .action = record->is_held_due ? TRACE_HELD : TRACE_DEVICE_FREE,
      .space = {.process = record->head.process, .device = record->head.device, .memory = TRACE_DEVICE_MEMORY},
      .bytes = record->is_held_due ? record->held.bytes : record->held.device_free_bytes,
      .nanoseconds = record_time(record, record->held.ticks)};
  if (!record->is_held_due) record->held.device_free_bytes = UINT64_MAX;
  record->is_held_due = false;
  return row;
}

/* Reads the blocks that begin before the first event. False: out of memory. */
static bool record_begin_runs(struct record_reader *record)
{
  while (record->next_block < record->n_blocks) {
    if (record->n_runs && record->blocks[record->next_block].ticks >= record->runs[0]->cursor.event.ticks) break;
    if (!record_begin_run(record)) return false;
  }
  return true;
}

static enum trace_line record_next(void *reader, struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct record_reader *record = reader;
  for (;;) {
    bool good = record_begin_runs(record);
    if (good && (record->is_held_due || (record->has_held && record->held.device_free_bytes != UINT64_MAX))) {
      *row_out = record_held_row(record);
      return TRACE_LINE;
    }
    if (good && !record->n_runs) return TRACE_LINE_END;
    struct record_run *run = good ? record_choose(record) : NULL;
    if (!run || !record_note(record, &run->cursor.event)) break;
    const struct record_event event = run->cursor.event;
    /* Places alone would have to sum to what is held: no record has them so, and any number of them could take any time. */
    const bool is_row = event.action != RECORD_HELD && (event.action != RECORD_PLACE || record->has_held);
    if (event.action == RECORD_HELD) record_hold(record, (struct record_held){event.ticks, event.bytes, event.ptr});
    if (is_row) *row_out = event.action == RECORD_PLACE ? record_place_row(record, run) : record_row_of(record, run);
    if (record_advance(record, run))
      record_settle(record, run, run->place);
    else
      record_remove_run(record, run);
    if (is_row) return TRACE_LINE;
  }
  snprintf(message, message_bytes, "out of memory while reading it");
  return TRACE_LINE_ERROR;
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

static const char *record_refusal(const struct record_head *head, size_t bytes)
{
  if (bytes >= sizeof head->magic && memcmp(head->magic, RECORD_MAGIC, sizeof RECORD_MAGIC) != 0 &&
      memcmp(head->magic, RECORD_MAGIC_3, sizeof RECORD_MAGIC_3) != 0 &&
      memcmp(head->magic, RECORD_MAGIC_2, sizeof RECORD_MAGIC_2) != 0 &&
      memcmp(head->magic, RECORD_MAGIC_1, sizeof RECORD_MAGIC_1) != 0)
    return "is a record in a format that this hipmm does not know; use the command of the hipmm that wrote it";
  if (bytes < sizeof *head) return "is cut off before the end of its head; nothing can be read";
  if (head->byte_order != RECORD_BYTE_ORDER)
    return "was recorded on a machine with another byte order; convert it there";
  if (head->block_bytes != RECORD_BLOCK_BYTES) return "is damaged: its head has another size of blocks";
  return NULL;
}

static void record_close(void *reader)
{
  struct record_reader *record = reader;
  for (size_t i = 0; i < record->n_runs; i++) free(record->runs[i]);
  free(record->runs);
  record_stacks_clear(&record->stacks);
  symbols_close(record->symbols);
  free(record->blocks);
  key_map_clear(&record->live);
  free(record);
}

static void *record_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  struct stat status;
  int descriptor = trace_lines_descriptor(lines);
  struct record_reader *record = calloc(1, sizeof *record);
  if (!record || descriptor < 0 || fstat(descriptor, &status)) {
    snprintf(message, message_bytes, "%s", record ? strerror(errno) : "out of memory");
    free(record);
    return NULL;
  }
  record->descriptor = descriptor;
  record->looks = RECORD_MOST_LOOKS;
  size_t bytes = record_read(descriptor, &record->head, sizeof record->head, 0);
  const char *refusal = record_refusal(&record->head, bytes);
  if (!refusal && !record_find_blocks(record, (uint64_t)status.st_size)) refusal = "out of memory";
  if (!refusal) return record;
  snprintf(message, message_bytes, "%s", refusal);
  record_close(record);
  return NULL;
}

static void record_progress(const void *reader, uint64_t *done_out, uint64_t *total_out)
{
  const struct record_reader *record = reader;
  *done_out = (uint64_t)record->next_block * RECORD_BLOCK_BYTES;
  *total_out = (uint64_t)record->n_blocks * RECORD_BLOCK_BYTES;
}

static void record_remark(const void *reader, char *text, size_t text_bytes)
{
  const struct record_reader *record = reader;
  int used = 0;
  *text = '\0';
  if (record->damaged_blocks)
    used = snprintf(text, text_bytes, "%llu damaged block%s skipped from the damage on",
                    (unsigned long long)record->damaged_blocks, record->damaged_blocks == 1 ? " was" : "s were");
  if (record->cut_blocks && used >= 0 && (size_t)used < text_bytes)
    used += snprintf(text + used, text_bytes - (size_t)used, "%sthe file is cut off: its last block is not whole",
                     used ? "; " : "");
  if (record->lost_events && used >= 0 && (size_t)used < text_bytes)
    snprintf(text + used, text_bytes - (size_t)used,
             "%s%llu event%s lost while it was recorded, since the file could not grow", used ? "; " : "",
             (unsigned long long)record->lost_events, record->lost_events == 1 ? " was" : "s were");
}

/* Names the functions of a stack when it is asked for. Without memory they stay without names. */
static const char *record_stack(void *reader, uint32_t number)
{
  struct record_reader *record = reader;
  char **text = number < record->stacks.n ? &record->stacks.items[number] : NULL;
  if (!text || !*text) return NULL;
  if (!record->symbols) record->symbols = symbols_open();
  char *named = record->symbols ? symbols_name_frames(record->symbols, *text) : NULL;
  if (!named) return *text;
  free(*text);
  return *text = named;
}

/* Reads up to the first tag, since blocks do not say whether their events have some. */
static bool record_has_tags(void *reader)
{
  struct record_reader *record = reader;
  char *data = malloc(RECORD_BLOCK_BYTES);
  bool has_tags = false;
  for (size_t i = 0; data && i < record->n_blocks && !has_tags; i++) {
    const size_t bytes = record_read(record->descriptor, data, record->blocks[i].bytes, record->blocks[i].offset);
    struct record_cursor cursor = {.at = data + sizeof(struct record_block), .end = data + bytes};
    while (!has_tags && record_cursor_next(&cursor, &record->stacks) == RECORD_STEP_EVENT) has_tags = cursor.tags != 0;
  }
  free(data);
  return has_tags;
}

static const char *record_tags(void *reader, uint32_t number)
{
  struct record_reader *record = reader;
  return stack_texts_get(&record->stacks.tags, number);
}

const struct trace_format trace_format_record = {.is = record_is,
                                                 .open = record_open,
                                                 .close = record_close,
                                                 .next = record_next,
                                                 .progress = record_progress,
                                                 .remark = record_remark,
                                                 .stack = record_stack,
                                                 .tags = record_tags,
                                                 .has_tags = record_has_tags};
