/* SPDX-License-Identifier: MIT */
/* rocprof.c: reads the CSV that AMD's profiler writes: rocprofv3 --memory-allocation-trace --output-format csv, whose file
 * ends in memory_allocation_trace.csv. Its frees have no size, no row has a stream or thread, and times are nanoseconds since
 * the machine started. */
#include "../../base/text.h"
#include "csv.h"
#include "format.h"

#include <stdlib.h>
#include <string.h>

struct rocprof_reader {
  int operation, size, address, time; /* the index of each column; time -1: none */
  int count;
  uint64_t others; /* rows of other operations */
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
                                    .time = csv_find_column(fields, n, "Start_Timestamp"),
                                    .count = n};
  if (reader->size >= 0 && reader->address >= 0 && n <= CSV_MOST_COLUMNS) return TRACE_LINE_END;
  snprintf(message, message_bytes,
           "the header has no columns \"Allocation_Size\" and \"Address\"; of rocprofv3's files only the one of "
           "--memory-allocation-trace has allocations");
  return TRACE_LINE_ERROR;
}

/* MEMORY_ALLOCATION_ALLOCATE, MEMORY_ALLOCATION_VMEM_FREE and so on. */
static bool rocprof_read_action(struct csv_field field, enum trace_action *action_out)
{
  static const char *const allocations[] = {"ALLOCATE", "VMEM_ALLOCATE"}, *const frees[] = {"FREE", "VMEM_FREE"};
  static const char prefix[] = "MEMORY_ALLOCATION_";
  size_t length = strlen(prefix);
  if ((size_t)(field.end - field.start) > length && memcmp(field.start, prefix, length) == 0) field.start += length;
  for (int i = 0; i < 2; i++) {
    *action_out = csv_field_is(field, allocations[i]) ? TRACE_ALLOCATE : TRACE_FREE;
    if (*action_out == TRACE_ALLOCATE || csv_field_is(field, frees[i])) return true;
  }
  return false;
}

static enum trace_line rocprof_line(void *state, uint32_t number, const char *line, const char *end,
                                    struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct rocprof_reader *reader = state;
  struct csv_field fields[CSV_MOST_COLUMNS];
  int n = csv_split(line, end, fields);
  uint64_t time;
  if (number == 1) return rocprof_header(reader, fields, n, message, message_bytes);
  if (n != reader->count) {
    snprintf(message, message_bytes, "%d column%s instead of %d", n, text_plural((uint64_t)n), reader->count);
    return TRACE_LINE_ERROR;
  }
  struct trace_row row = {.nanoseconds = TRACE_NO_TIME};
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
  if (reader->time >= 0 && csv_read_decimal(fields[reader->time].start, fields[reader->time].end, &time) &&
      time <= INT64_MAX)
    row.nanoseconds = (int64_t)time;
  *row_out = row;
  return TRACE_LINE;
}

static void rocprof_remark(const void *state, char *text, size_t text_bytes)
{
  const struct rocprof_reader *reader = state;
  *text = '\0';
  if (reader->others)
    snprintf(text, text_bytes, "left out: %llu row%s that neither allocate nor free",
             (unsigned long long)reader->others, text_plural(reader->others));
}

const struct trace_format trace_format_rocprof = {.is = rocprof_is,
                                                  .open = rocprof_open,
                                                  .close = free,
                                                  .line = rocprof_line,
                                                  .frees_lack_sizes = true,
                                                  .remark = rocprof_remark};
