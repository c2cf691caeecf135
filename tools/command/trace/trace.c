/* SPDX-License-Identifier: MIT */
/* trace.c: turns the rows of an allocation log into events. Called by
 * logs.c, for the commands that play logs. Never allocates device memory. */
#include "trace.h"
#include "../../../core/base/key_map.h"
#include "../array.h"

#include "live.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_TELL_ROWS = 1 << 14 };

/* Reads the events of one space. */
struct reader {
  const struct trace_rows *rows;
  struct trace trace;
  size_t capacity, line_capacity; /* of trace.events and trace.lines */
  struct trace_live live;
  struct key_map streams; /* to index + 1 */
  size_t stream_capacity;
};

struct readers {
  struct trace_rows *rows;
  struct trace_spaces spaces;
  struct reader *items; /* of each space */
  size_t n, capacity;
};

static bool trace_reader_add_event(struct reader *reader, struct trace_event event)
{
  struct trace *trace = &reader->trace;
  if (!array_grow(&trace->events, trace->n_events, &reader->capacity, sizeof *trace->events) ||
      !array_grow(&trace->lines, trace->n_events, &reader->line_capacity, sizeof *trace->lines))
    return false;
  trace->lines[trace->n_events] = trace_rows_line(reader->rows);
  trace->events[trace->n_events++] = event;
  return true;
}

/* The index of a stream; a new stream gets a new index. False: out of memory. */
static bool trace_reader_stream(struct reader *reader, uint64_t handle, uint32_t *index_out)
{
  struct trace *trace = &reader->trace;
  uint64_t number = key_map_get(&reader->streams, handle);
  if (!number) {
    number = trace->n_streams + 1;
    if (!array_grow(&trace->streams, trace->n_streams, &reader->stream_capacity, sizeof *trace->streams)) return false;
    if (!key_map_put(&reader->streams, handle, number)) return false;
    trace->streams[trace->n_streams++] = handle;
  }
  *index_out = (uint32_t)(number - 1);
  return true;
}

static bool trace_reader_allocate(struct reader *reader, const struct trace_row *row, uint32_t slot, uint32_t stream)
{
  reader->trace.allocations++;
  return trace_reader_add_event(reader,
                                (struct trace_event){.bytes = row->bytes, .slot = slot, .stream = stream & INT32_MAX});
}

static bool trace_reader_free(struct reader *reader, const struct trace_row *row, const struct trace_pair *pair,
                              uint32_t stream)
{
  if (row->pointer && !pair->slot) {
    reader->trace.unmatched_frees++;
    return true;
  }
  reader->trace.other_sizes += row->pointer && row->bytes != pair->bytes;
  reader->trace.frees++;
  return trace_reader_add_event(
      reader,
      (struct trace_event){.bytes = pair->bytes, .slot = pair->slot, .stream = stream & INT32_MAX, .is_free = 1});
}

static bool trace_reader_add_row(struct reader *reader, const struct trace_row *row)
{
  uint32_t stream;
  struct trace_pair pair;
  reader->trace.rows++;
  if (row->action == TRACE_ALLOCATE_FAILURE || row->action == TRACE_FREE_FAILURE ||
      (row->action == TRACE_ALLOCATE && row->pointer == 0 && row->bytes > 0)) {
    reader->trace.failed_rows++;
    return true;
  }
  if (!trace_reader_stream(reader, row->stream, &stream) || !trace_live_note(&reader->live, row, &pair)) return false;
  reader->trace.overlaid += pair.older != TRACE_NULL_SLOT;
  return row->action == TRACE_FREE ? trace_reader_free(reader, row, &pair, stream)
                                   : trace_reader_allocate(reader, row, pair.slot, stream);
}

/* The reader of a row's space. NULL: out of memory, or too many spaces. */
static struct reader *trace_readers_find(struct readers *readers, const struct trace_space *space)
{
  size_t index;
  if (!trace_spaces_find(&readers->spaces, space, &index)) return NULL;
  if (index == readers->n) {
    if (!array_grow_zeroed(&readers->items, index, &readers->capacity, sizeof *readers->items)) return NULL;
    readers->items[readers->n++].rows = readers->rows;
  }
  return &readers->items[index];
}

static bool trace_readers_rows(struct readers *readers, const struct trace_watcher *watcher, const char *file,
                               char *message, size_t message_bytes)
{
  struct trace_row row;
  enum trace_line state;
  uint64_t rows = 0;
  while ((state = trace_rows_next(readers->rows, &row)) == TRACE_LINE) {
    struct reader *reader = trace_readers_find(readers, &row.space);
    if (!reader || !trace_reader_add_row(reader, &row)) {
      snprintf(message, message_bytes, "%s: %s while reading it", strcmp(file, "-") ? file : "standard input",
               readers->spaces.n == TRACE_MOST_SPACES ? "more processes and devices than can be counted"
                                                      : "out of memory");
      return false;
    }
    if (watcher && ++rows % TRACE_TELL_ROWS == 0)
      watcher->notify(watcher->closure, trace_rows_done_bytes(readers->rows), trace_rows_total_bytes(readers->rows));
  }
  if (state == TRACE_LINE_ERROR) snprintf(message, message_bytes, "%s", trace_rows_message(readers->rows));
  return state == TRACE_LINE_END;
}

/* Ends the readers: their traces become those of `out` if all is good. */
static bool trace_readers_end(struct readers *readers, bool good, struct traces *out, char *message,
                              size_t message_bytes)
{
  const struct trace_space nowhere = {0};
  bool has_reader = good && (readers->n || trace_readers_find(readers, &nowhere));
  out->items = has_reader ? calloc(readers->n, sizeof *out->items) : NULL;
  if (good && !out->items) good = false, snprintf(message, message_bytes, "out of memory");
  for (size_t i = 0; i < readers->n; i++) {
    struct reader *reader = &readers->items[i];
    reader->trace.n_slots = reader->live.n_slots ? reader->live.n_slots : 1;
    trace_live_clear(&reader->live);
    key_map_clear(&reader->streams);
    if (good)
      out->items[i] = reader->trace;
    else
      trace_clear(&reader->trace);
  }
  free(readers->items);
  out->n = good ? readers->n : 0;
  out->spaces = readers->spaces;
  if (!good) traces_clear(out);
  return good;
}

bool traces_read(const char *file, const struct trace_watcher *watcher, struct traces *traces_out, char *message,
                 size_t message_bytes)
{
  struct readers readers = {.rows = trace_rows_open(file, message, message_bytes)};
  *traces_out = (struct traces){0};
  if (!readers.rows) return false;
  bool good = trace_readers_rows(&readers, watcher, file, message, message_bytes);
  if (good) snprintf(traces_out->remark, sizeof traces_out->remark, "%s", trace_rows_remark(readers.rows));
  good = trace_readers_end(&readers, good, traces_out, message, message_bytes);
  trace_rows_close(readers.rows);
  return good;
}

void trace_clear(struct trace *trace)
{
  free(trace->events);
  free(trace->lines);
  free(trace->streams);
  *trace = (struct trace){0};
}

void traces_clear(struct traces *traces)
{
  for (size_t i = 0; i < traces->n; i++) trace_clear(&traces->items[i]);
  free(traces->items);
  trace_spaces_clear(&traces->spaces);
  *traces = (struct traces){0};
}
