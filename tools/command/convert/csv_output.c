/* SPDX-License-Identifier: MIT */
/* csv_output.c: writes rows as the `logging` resource and RMM do. */
#include "../../../core/base/record_format.h"
#include "../../../core/base/text.h"
#include "convert.h"

#include <inttypes.h>
#include <time.h>

/* A log in CSV has times since midnight, and lasts days at most; a record has times since 1970. */
#define CONVERT_LONGEST_CSV (INT64_C(366) * 86400)

static bool csv_output_begin(struct convert_output *output)
{
  output->has_head = false;
  return true;
}

/* The names of the columns, once the first row is read: before it a log does not tell whether it has tags. RMM's readers find
 * columns by name, and pass over this one. */
static bool csv_output_head(struct convert_output *output)
{
  if (output->has_head) return true;
  output->has_head = true;
  output->has_tags = trace_logs_have_tags(output->logs);
  return fprintf(output->file, "Thread,Time,Action,Pointer,Size,Stream%s\n", output->has_tags ? ",Tag" : "") >= 0;
}

/* The column of tags, from the outermost on, as "step 2;layer 7". */
static void csv_output_tags(FILE *file, const char *tags)
{
  char text[RECORD_MOST_TAG_BYTES + 1], *line, *rest = text, before = '"';
  snprintf(text, sizeof text, "%s", tags ? tags : "");
  putc(',', file);
  while ((line = strsep(&rest, "\n"))) {
    if (!text_make_plain(line)) continue; /* behind the last newline, or in a damaged record */
    putc(before, file);
    before = ';';
    for (; *line; line++) {
      if (*line == '"') putc('"', file);
      if (*line == ';' || *line == '\\') putc('\\', file);
      putc(*line, file);
    }
  }
  if (before == ';') putc('"', file);
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
  if (!csv_output_head(output)) return false;
  csv_output_time(row->nanoseconds, time, sizeof time);
  if (row->pointer) snprintf(pointer, sizeof pointer, "%#" PRIx64, row->pointer);
  if (row->stream) snprintf(stream, sizeof stream, "%#" PRIx64, row->stream);
  fprintf(output->file, "%" PRIu32 ",%s,%s,%s,%" PRIu64 ",%s", row->thread, time, actions[row->action], pointer,
          row->bytes, stream);
  if (output->has_tags) csv_output_tags(output->file, row->tags ? trace_rows_tags(rows, row->tags) : NULL);
  return putc('\n', output->file) != EOF && !ferror(output->file);
}

static bool csv_output_end(struct convert_output *output)
{
  return csv_output_head(output) && fflush(output->file) == 0;
}

const struct convert_output convert_csv = {.begin = csv_output_begin, .row = csv_output_row, .end = csv_output_end};
