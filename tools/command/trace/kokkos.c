/* SPDX-License-Identifier: MIT */
/* kokkos.c: reads what the tool memory-events of Kokkos Tools writes, HOST-PID.mem_events: "TIME POINTER SIZE SPACE OPERATION
 * NAME" in columns of blanks. A size is negative where memory is freed. The name of the block, which the program gave, stands
 * in for its call stack. */
#include "../../../core/base/text.h"
#include "csv.h"
#include "format.h"
#include "stack_texts.h"

#include <stdlib.h>
#include <string.h>

enum { KOKKOS_FIELDS = 5 };

struct kokkos_reader {
  struct stack_texts names;
  uint64_t others; /* lines of regions */
};

static bool kokkos_is(const char *start, size_t bytes)
{
  static const char mark[] = "# Memory Events";
  return bytes >= sizeof mark - 1 && memcmp(start, mark, sizeof mark - 1) == 0;
}

static void *kokkos_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  struct kokkos_reader *reader = calloc(1, sizeof *reader);
  (void)lines;
  if (!reader) snprintf(message, message_bytes, "out of memory");
  return reader;
}

static void kokkos_close(void *state)
{
  struct kokkos_reader *reader = state;
  stack_texts_clear(&reader->names);
  free(reader);
}

/* The first fields of a line; `*at` moves behind them. Returns how many there are. */
static int kokkos_split(const char **at, const char *end, struct csv_field *fields)
{
  int n = 0;
  while (n < KOKKOS_FIELDS) {
    while (*at < end && (**at == ' ' || **at == '\t')) ++*at;
    if (*at == end) break;
    fields[n].start = *at;
    while (*at < end && **at != ' ' && **at != '\t' && **at != '\r') ++*at;
    fields[n++].end = *at;
    if (*at < end && **at == '\r') break;
  }
  return n;
}

static bool kokkos_has(struct csv_field field, const char *word)
{
  return memmem(field.start, (size_t)(field.end - field.start), word, strlen(word)) != NULL;
}

/* The memory of "Host", "CudaHostPinned", "CudaUVM", "HIPManaged", "SYCLShared", "HIP" and so on. */
static enum trace_memory kokkos_memory(struct csv_field space)
{
  if (kokkos_has(space, "Host")) return TRACE_HOST_MEMORY;
  return kokkos_has(space, "UVM") || kokkos_has(space, "Managed") || kokkos_has(space, "Shared") ? TRACE_MANAGED_MEMORY
                                                                                                 : TRACE_DEVICE_MEMORY;
}

/* The number of a name; blanks around it are none of it. */
static bool kokkos_name(struct kokkos_reader *reader, const char *at, const char *end, uint32_t *number_out)
{
  char text[512];
  *number_out = 0;
  while (at < end && (*at == ' ' || *at == '\t')) at++;
  while (end > at && (end[-1] == ' ' || end[-1] == '\r')) end--;
  if (at == end) return true;
  int length = end - at < 400 ? (int)(end - at) : 400;
  snprintf(text, sizeof text, "  #0 in %.*s", length, at);
  strcpy(text + text_make_plain(text), "\n");
  return stack_texts_add(&reader->names, text, number_out);
}

static enum trace_line kokkos_row(struct kokkos_reader *reader, const struct csv_field *fields, const char *name,
                                  const char *end, struct trace_row *row, char *message, size_t message_bytes)
{
  struct csv_field size = fields[2];
  size.start += row->action == TRACE_FREE && size.start < size.end && *size.start == '-';
  row->space.memory = kokkos_memory(fields[3]);
  bool good = true;
  if (!csv_read_seconds(fields[0], &row->nanoseconds))
    good = csv_refuse(message, message_bytes, fields[0], "is no time in seconds");
  else if (!csv_read_address(fields[1], &row->pointer))
    good = csv_refuse(message, message_bytes, fields[1], "is no pointer; write it as 0x7f2c40000000");
  else if (!csv_read_decimal(size.start, size.end, &row->bytes))
    good = csv_refuse(message, message_bytes, fields[2], "is no size; it is positive where memory is allocated");
  else if (!kokkos_name(reader, name, end, &row->stack))
    good = (snprintf(message, message_bytes, "out of memory"), false);
  return good ? TRACE_LINE : TRACE_LINE_ERROR;
}

static enum trace_line kokkos_line(void *state, uint32_t number, const char *line, const char *end,
                                   struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct kokkos_reader *reader = state;
  struct csv_field fields[KOKKOS_FIELDS];
  const char *at = line;
  (void)number;
  if (*line == '#') return TRACE_LINE_END;
  int n = kokkos_split(&at, end, fields);
  *row_out = (struct trace_row){.nanoseconds = TRACE_NO_TIME};
  if (n > 1 && (csv_field_is(fields[1], "PushRegion") || csv_field_is(fields[1], "}"))) {
    reader->others++;
    return TRACE_LINE_END;
  }
  if (n == KOKKOS_FIELDS && csv_field_is(fields[4], "DeAllocate"))
    row_out->action = TRACE_FREE;
  else if (n < KOKKOS_FIELDS || !csv_field_is(fields[4], "Allocate")) {
    snprintf(message, message_bytes, "is no row \"TIME POINTER SIZE SPACE Allocate NAME\" of Kokkos Tools");
    return TRACE_LINE_ERROR;
  }
  return kokkos_row(reader, fields, at, end, row_out, message, message_bytes);
}

static const struct stack_texts *kokkos_stacks(const void *state)
{
  return &((const struct kokkos_reader *)state)->names;
}

static void kokkos_remark(const void *state, char *text, size_t text_bytes)
{
  const struct kokkos_reader *reader = state;
  *text = '\0';
  if (reader->others)
    snprintf(text, text_bytes, "left out: %llu line%s of regions", (unsigned long long)reader->others,
             text_plural(reader->others));
}

const struct trace_format trace_format_kokkos = {.is = kokkos_is,
                                                 .open = kokkos_open,
                                                 .close = kokkos_close,
                                                 .line = kokkos_line,
                                                 .remark = kokkos_remark,
                                                 .stacks = kokkos_stacks};
