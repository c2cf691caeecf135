/* SPDX-License-Identifier: MIT */
/* csv_output.c: writes rows as the `logging` resource and RMM do. */
#include "convert.h"

#include <inttypes.h>
#include <time.h>

/* A log in CSV has times since midnight, and lasts days at most; a record has times since 1970. */
#define CONVERT_LONGEST_CSV (INT64_C(366) * 86400)

static bool csv_output_begin(struct convert_output *output)
{
  return fputs("Thread,Time,Action,Pointer,Size,Stream\n", output->file) >= 0;
}

/* The local time of day, as RMM writes it, with microseconds. */
static void csv_output_time(int64_t nanoseconds, char *text, size_t text_bytes)
{
  time_t seconds = (time_t)(nanoseconds / 1000000000);
  struct tm time = {0};
  size_t used = 0;
  if (nanoseconds == TRACE_NO_TIME || nanoseconds < 0) {
    seconds = 0;
    nanoseconds = 0;
  }
  if (seconds < CONVERT_LONGEST_CSV ? gmtime_r(&seconds, &time) != NULL : localtime_r(&seconds, &time) != NULL)
    used = strftime(text, text_bytes, "%H:%M:%S", &time);
  snprintf(text + used, text_bytes - used, ".%06d", (int)(nanoseconds % 1000000000 / 1000));
}

static bool csv_output_row(struct convert_output *output, const struct trace_row *row, const struct trace_rows *rows)
{
  static const char *const actions[] = {[TRACE_ALLOCATE] = "allocate",
                                        [TRACE_FREE] = "free",
                                        [TRACE_ALLOCATE_FAILURE] = "allocate failure",
                                        [TRACE_FREE_FAILURE] = "free failure"};
  char time[64], pointer[24] = "0x0", stream[24] = "0";
  (void)rows;
  csv_output_time(row->nanoseconds, time, sizeof time);
  if (row->pointer) snprintf(pointer, sizeof pointer, "%#" PRIx64, row->pointer);
  if (row->stream) snprintf(stream, sizeof stream, "%#" PRIx64, row->stream);
  return fprintf(output->file, "%" PRIu32 ",%s,%s,%s,%" PRIu64 ",%s\n", row->thread, time, actions[row->action],
                 pointer, row->bytes, stream) >= 0;
}

static bool csv_output_end(struct convert_output *output)
{
  return fflush(output->file) == 0;
}

const struct convert_output convert_csv = {.begin = csv_output_begin, .row = csv_output_row, .end = csv_output_end};
