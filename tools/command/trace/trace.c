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

struct reader {
  const char *file; /* as messages name it */
  struct trace_rows *rows;
  struct trace trace;
  size_t capacity, line_capacity; /* of trace.events and trace.lines */
  struct trace_live live;
  struct key_map streams; /* to index + 1 */
  size_t stream_capacity;
  char *message;
  size_t message_bytes;
};

static bool trace_reader_fail(struct reader *reader, const char *what)
{
  snprintf(reader->message, reader->message_bytes, "%s: %s", reader->file, what);
  return false;
}

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

static bool trace_reader_rows(struct reader *reader, const struct trace_watcher *watcher)
{
  struct trace_row row;
  enum trace_line state;
  while ((state = trace_rows_next(reader->rows, &row)) == TRACE_LINE) {
    if (!trace_reader_add_row(reader, &row)) return trace_reader_fail(reader, "out of memory while reading it");
    if (watcher && reader->trace.rows % TRACE_TELL_ROWS == 0)
      watcher->notify(watcher->closure, trace_rows_done_bytes(reader->rows), trace_rows_total_bytes(reader->rows));
  }
  if (state == TRACE_LINE_END) {
    snprintf(reader->trace.remark, sizeof reader->trace.remark, "%s", trace_rows_remark(reader->rows));
    return true;
  }
  snprintf(reader->message, reader->message_bytes, "%s", trace_rows_message(reader->rows));
  return false;
}

static bool trace_reader_file(struct reader *reader, const char *file, const struct trace_watcher *watcher)
{
  reader->rows = trace_rows_open(file, reader->message, reader->message_bytes);
  if (!reader->rows) return false;
  bool good = trace_reader_rows(reader, watcher);
  trace_rows_close(reader->rows);
  return good;
}

bool trace_read(const char *file, const struct trace_watcher *watcher, struct trace *trace_out, char *message,
                size_t message_bytes)
{
  struct reader reader = {
      .file = strcmp(file, "-") == 0 ? "standard input" : file, .message = message, .message_bytes = message_bytes};
  bool good = trace_reader_file(&reader, file, watcher);
  reader.trace.n_slots = reader.live.n_slots ? reader.live.n_slots : 1;
  trace_live_clear(&reader.live);
  key_map_clear(&reader.streams);
  if (good)
    *trace_out = reader.trace;
  else
    trace_clear(&reader.trace);
  return good;
}

void trace_clear(struct trace *trace)
{
  free(trace->events);
  free(trace->lines);
  free(trace->streams);
  *trace = (struct trace){0};
}
