/* SPDX-License-Identifier: MIT */
/* rocprof.c: reads the CSV that AMD's profiler writes: rocprofv3 --memory-allocation-trace --output-format csv, whose file
 * ends in memory_allocation_trace.csv. Its frees have no size, no row has a stream or thread, and times are nanoseconds since
 * the machine started.
 *
 * A row is a call, from its start to its end, in no promised order. An address is free at some time after its free starts, and
 * taken at some time before its allocation ends. So allocations by their end, and frees by their start, are in the order of
 * the address, also where two threads hand it on. */
#include "../../../core/base/text.h"
#include "../array.h"
#include "csv.h"
#include "format.h"

#include <stdlib.h>
#include <string.h>

struct rocprof_row {
  struct trace_row row;
  uint32_t line;
};

struct rocprof_reader {
  int operation, size, address, start, end, agent; /* the index of each column; the last three -1: none */
  int count;
  struct rocprof_row *rows;
  size_t n_rows, capacity, next_row;
  uint64_t others; /* rows of other operations */
  bool is_sorted;
  uint64_t other_agents; /* allocations of agents above 0, of which another one may be the host too */
  int32_t first_agent;
};

static bool rocprof_is(const char *start, size_t bytes)
{
  struct csv_field fields[CSV_MOST_COLUMNS];
  const char *end = memchr(start, '\n', bytes);
  int n = csv_split(start, end ? end : start + bytes, fields);
  return csv_find_column(fields, n, "Kind") >= 0 && csv_find_column(fields, n, "Operation") >= 0 &&
         csv_find_column(fields, n, "Correlation_Id") >= 0;
}

static void *rocprof_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  struct rocprof_reader *reader = calloc(1, sizeof *reader);
  (void)lines;
  if (!reader) snprintf(message, message_bytes, "out of memory");
  return reader;
}

static enum trace_line rocprof_header(struct rocprof_reader *reader, const struct csv_field *fields, int n,
                                      char *message, size_t message_bytes)
{
  *reader = (struct rocprof_reader){.operation = csv_find_column(fields, n, "Operation"),
                                    .size = csv_find_column(fields, n, "Allocation_Size"),
                                    .address = csv_find_column(fields, n, "Address"),
                                    .start = csv_find_column(fields, n, "Start_Timestamp"),
                                    .end = csv_find_column(fields, n, "End_Timestamp"),
                                    .agent = csv_find_column(fields, n, "Agent_Id"),
                                    .count = n};
  if (reader->size >= 0 && reader->address >= 0 && n <= CSV_MOST_COLUMNS) return TRACE_LINE_END;
  snprintf(message, message_bytes,
           "the header has no columns \"Allocation_Size\" and \"Address\"; of rocprofv3's files only the one of "
           "--memory-allocation-trace has allocations");
  return TRACE_LINE_ERROR;
}

/* MEMORY_ALLOCATION_ALLOCATE, MEMORY_ALLOCATION_VMEM_FREE and so on, with ROCPROFILER_ before it in some releases. */
static bool rocprof_read_action(struct csv_field field, enum trace_action *action_out)
{
  static const char *const allocations[] = {"ALLOCATE", "VMEM_ALLOCATE"}, *const frees[] = {"FREE", "VMEM_FREE"};
  static const char *const prefixes[] = {"ROCPROFILER_", "MEMORY_ALLOCATION_"};
  for (int i = 0; i < 2; i++) {
    size_t length = strlen(prefixes[i]);
    if ((size_t)(field.end - field.start) > length && memcmp(field.start, prefixes[i], length) == 0)
      field.start += length;
  }
  for (int i = 0; i < 2; i++) {
    *action_out = csv_field_is(field, allocations[i]) ? TRACE_ALLOCATE : TRACE_FREE;
    if (*action_out == TRACE_ALLOCATE || csv_field_is(field, frees[i])) return true;
  }
  return false;
}

/* A time of the row; -1: it has none. */
static int64_t rocprof_time(const struct csv_field *fields, int column)
{
  uint64_t time;
  if (column < 0 || !csv_read_decimal(fields[column].start, fields[column].end, &time) || time > INT64_MAX)
    return TRACE_NO_TIME;
  return (int64_t)time;
}

/* The space of an allocation: "Agent 4", "GPU 0" or "4". Agent 0 is the host: the first processor is the first agent. */
static struct trace_space rocprof_space(struct rocprof_reader *reader, struct csv_field field)
{
  struct trace_space space = {0};
  const char *digits = field.end;
  uint64_t number = 0;
  while (digits > field.start && digits[-1] >= '0' && digits[-1] <= '9') digits--;
  if (!csv_read_decimal(digits, field.end, &number) || number > INT32_MAX) return space;
  bool has_word = digits - field.start >= 3, is_gpu = has_word && memcmp(field.start, "GPU", 3) == 0;
  if ((!number && !is_gpu) || (has_word && memcmp(field.start, "CPU", 3) == 0)) {
    space.memory = TRACE_HOST_MEMORY;
    return space;
  }
  space.device = (int32_t)number;
  if (!reader->first_agent) reader->first_agent = space.device;
  reader->other_agents += !is_gpu && reader->first_agent != space.device;
  return space;
}

static enum trace_line rocprof_line(void *state, uint32_t number, const char *line, const char *end,
                                    struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct rocprof_reader *reader = state;
  struct csv_field fields[CSV_MOST_COLUMNS];
  int n = csv_split(line, end, fields);
  struct trace_row row = {.nanoseconds = TRACE_NO_TIME};
  (void)row_out;
  if (number == 1) return rocprof_header(reader, fields, n, message, message_bytes);
  if (n != reader->count) {
    snprintf(message, message_bytes, "%d column%s instead of %d", n, text_plural((uint64_t)n), reader->count);
    return TRACE_LINE_ERROR;
  }
  if (!rocprof_read_action(fields[reader->operation], &row.action)) {
    reader->others++;
    return TRACE_LINE_END;
  }
  if (!csv_read_address(fields[reader->address], &row.pointer)) {
    csv_refuse(message, message_bytes, fields[reader->address], "is no address; rocprofv3 writes 0x00007f0000000000");
    return TRACE_LINE_ERROR;
  }
  if (!csv_read_decimal(fields[reader->size].start, fields[reader->size].end, &row.bytes)) {
    csv_refuse(message, message_bytes, fields[reader->size], "is no size in bytes");
    return TRACE_LINE_ERROR;
  }
  if (reader->start >= 0 && reader->end >= 0 &&
      rocprof_time(fields, reader->end) < rocprof_time(fields, reader->start)) {
    csv_refuse(message, message_bytes, fields[reader->end], "is earlier than the start of the call");
    return TRACE_LINE_ERROR;
  }
  row.nanoseconds =
      rocprof_time(fields, row.action == TRACE_ALLOCATE && reader->end >= 0 ? reader->end : reader->start);
  if (reader->agent >= 0 && row.action == TRACE_ALLOCATE)
    row.space = rocprof_space(reader, fields[reader->agent]);
  else if (reader->agent >= 0)
    row.space.device = TRACE_ANY_DEVICE; /* of some releases "null" */
  if (!array_grow(&reader->rows, reader->n_rows, &reader->capacity, sizeof *reader->rows)) {
    snprintf(message, message_bytes, "out of memory");
    return TRACE_LINE_ERROR;
  }
  reader->rows[reader->n_rows++] = (struct rocprof_row){row, number};
  return TRACE_LINE_END;
}

static int rocprof_compare(const void *one, const void *other)
{
  const struct rocprof_row *a = one, *b = other;
  if (a->row.nanoseconds != b->row.nanoseconds) return a->row.nanoseconds < b->row.nanoseconds ? -1 : 1;
  return a->line < b->line ? -1 : a->line > b->line;
}

static enum trace_line rocprof_next(void *state, struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct rocprof_reader *reader = state;
  (void)message, (void)message_bytes;
  if (reader->next_row == reader->n_rows) return TRACE_LINE_END;
  if (!reader->is_sorted) qsort(reader->rows, reader->n_rows, sizeof *reader->rows, rocprof_compare);
  reader->is_sorted = true;
  *row_out = reader->rows[reader->next_row++].row;
  return TRACE_LINE;
}

static uint32_t rocprof_line_of_row(const void *state)
{
  const struct rocprof_reader *reader = state;
  return reader->rows[reader->next_row - 1].line;
}

static void rocprof_close(void *state)
{
  struct rocprof_reader *reader = state;
  free(reader->rows);
  free(reader);
}

static void rocprof_remark(const void *state, char *text, size_t text_bytes)
{
  const struct rocprof_reader *reader = state;
  *text = '\0';
  if (reader->others)
    text_append(text, text_bytes, "left out: %llu row%s that neither allocate nor free",
                (unsigned long long)reader->others, text_plural(reader->others));
  if (reader->other_agents)
    text_append(text, text_bytes,
                "%sagent 0 was read as the host; an agent that is another processor was read as a device",
                reader->others ? "; " : "");
}

const struct trace_format trace_format_rocprof = {.is = rocprof_is,
                                                  .open = rocprof_open,
                                                  .close = rocprof_close,
                                                  .line = rocprof_line,
                                                  .next = rocprof_next,
                                                  .line_of_row = rocprof_line_of_row,
                                                  .frees_lack_sizes = true,
                                                  .remark = rocprof_remark};
