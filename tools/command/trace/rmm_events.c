/* SPDX-License-Identifier: MIT */
/* rmm_events.c: reads the CSV of RMM 0.5 to 0.13: "Event Type,Device ID,Address,Stream,Size (bytes),…,Start,End,…". Its
 * frees have 0 bytes; a reallocation has the new address only; times are seconds since a moment that it does not tell. */
#include "../../../core/base/text.h"
#include "csv.h"
#include "format.h"

#include <stdlib.h>
#include <string.h>

struct rmm_events_reader {
  int event, device, address, stream, size, start; /* the index of each column; -1: none */
  int count;
  uint64_t reallocations;
};

/* The header's columns. */
static struct rmm_events_reader rmm_events_columns(const char *line, const char *end)
{
  struct csv_field fields[CSV_MOST_COLUMNS];
  int n = csv_split(line, end, fields);
  return (struct rmm_events_reader){.event = csv_find_column(fields, n, "Event Type"),
                                    .device = csv_find_column(fields, n, "Device ID"),
                                    .address = csv_find_column(fields, n, "Address"),
                                    .stream = csv_find_column(fields, n, "Stream"),
                                    .size = csv_find_column(fields, n, "Size (bytes)"),
                                    .start = csv_find_column(fields, n, "Start"),
                                    .count = n};
}

static bool rmm_events_is(const char *start, size_t bytes)
{
  const char *end = memchr(start, '\n', bytes);
  struct rmm_events_reader found = rmm_events_columns(start, end ? end : start + bytes);
  return found.event >= 0 && found.address >= 0 && found.size >= 0 && found.count <= CSV_MOST_COLUMNS;
}

static void *rmm_events_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  struct rmm_events_reader *reader = calloc(1, sizeof *reader);
  (void)lines;
  if (!reader) snprintf(message, message_bytes, "out of memory");
  return reader;
}

static bool rmm_events_action(struct rmm_events_reader *reader, struct csv_field field, enum trace_action *action_out)
{
  bool is_reallocation = csv_field_is(field, "Realloc");
  reader->reallocations += is_reallocation;
  *action_out = csv_field_is(field, "Free") ? TRACE_FREE : TRACE_ALLOCATE;
  return is_reallocation || *action_out == TRACE_FREE || csv_field_is(field, "Alloc");
}

static enum trace_line rmm_events_line(void *state, uint32_t number, const char *line, const char *end,
                                       struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct rmm_events_reader *reader = state;
  struct csv_field fields[CSV_MOST_COLUMNS];
  struct trace_row row = {.nanoseconds = TRACE_NO_TIME};
  uint64_t device = 0;
  if (number == 1) {
    *reader = rmm_events_columns(line, end);
    return TRACE_LINE_END;
  }
  int n = csv_split(line, end, fields);
  bool good = n == reader->count;
  if (!good) snprintf(message, message_bytes, "%d column%s instead of %d", n, text_plural((uint64_t)n), reader->count);
  if (good && !rmm_events_action(reader, fields[reader->event], &row.action))
    good = csv_refuse(message, message_bytes, fields[reader->event], "is no event; RMM writes Alloc, Realloc and Free");
  if (good && !csv_read_address(fields[reader->address], &row.pointer))
    good = csv_refuse(message, message_bytes, fields[reader->address], "is no address; RMM writes 0x7f613be00000");
  if (good && !csv_read_decimal(fields[reader->size].start, fields[reader->size].end, &row.bytes))
    good = csv_refuse(message, message_bytes, fields[reader->size], "is no size in bytes");
  if (good && reader->device >= 0 &&
      (!csv_read_decimal(fields[reader->device].start, fields[reader->device].end, &device) || device > INT32_MAX))
    good = csv_refuse(message, message_bytes, fields[reader->device], "is no number of a device");
  if (!good) return TRACE_LINE_ERROR;
  row.space.device = (int32_t)device;
  if (reader->stream >= 0) (void)csv_read_address(fields[reader->stream], &row.stream);
  if (reader->start >= 0 && !csv_read_seconds(fields[reader->start], &row.nanoseconds)) row.nanoseconds = TRACE_NO_TIME;
  *row_out = row;
  return TRACE_LINE;
}

static void rmm_events_remark(const void *state, char *text, size_t text_bytes)
{
  const struct rmm_events_reader *reader = state;
  *text = '\0';
  if (reader->reallocations)
    snprintf(text, text_bytes,
             "%llu block%s reallocated: the log lacks the old address, so that the old block seems not to be freed",
             (unsigned long long)reader->reallocations, reader->reallocations == 1 ? " was" : "s were");
}

const struct trace_format trace_format_rmm_events = {.is = rmm_events_is,
                                                     .open = rmm_events_open,
                                                     .close = free,
                                                     .line = rmm_events_line,
                                                     .frees_lack_sizes = true,
                                                     .remark = rmm_events_remark};
