/* SPDX-License-Identifier: MIT */
/* chrome_output.c: writes rows as Chrome's trace events in JSON, for Perfetto and chrome://tracing: each block is an
 * asynchronous event from its allocation to its free, by the name of what allocated it; the live bytes of each device are a
 * counter; a failure is an instant. Times are microseconds since the first row; "otherData" has the time of that row. */
#include "../../../core/base/units.h"
#include "../array.h"
#include "../cmd.h"
#include "../trace/live.h"
#include "../trace/stack_frames.h"
#include "convert.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct chrome_device {
  int32_t device;
  uint64_t live_bytes;
};

struct chrome_output {
  struct trace_live live;
  struct chrome_device *devices;
  size_t n_devices, capacity;
  char **names; /* of call stacks, by number; NULL: not asked for yet */
  size_t n_names;
  int64_t first, last; /* nanoseconds; TRACE_NO_TIME: no row had a time yet */
  const char *separator;
};

enum { CHROME_NAME_BYTES = 240 };

static bool chrome_output_begin(struct convert_output *output)
{
  output->chrome = calloc(1, sizeof *output->chrome);
  if (!output->chrome) return false;
  output->chrome->first = output->chrome->last = TRACE_NO_TIME;
  output->chrome->separator = "";
  return fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", output->file) >= 0;
}

/* Writes an event of a row, and drops the reference. NULL stands for a lack of memory. */
static bool chrome_put(struct convert_output *output, const struct trace_row *row, json_t *event)
{
  struct chrome_output *chrome = output->chrome;
  const int64_t since = chrome->last == TRACE_NO_TIME ? 0 : chrome->last - chrome->first;
  char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
  json_decref(event);
  errno = ENOMEM;
  if (!text) return false;
  fprintf(output->file, "%s{\"pid\":%" PRIu64 ",\"tid\":%" PRIu32 ",\"ts\":%" PRId64 ".%03d,%s", chrome->separator,
          row->space.process, row->thread, since / 1000, (int)(since % 1000), text + 1);
  chrome->separator = ",\n";
  free(text);
  return !ferror(output->file);
}

static struct chrome_device *chrome_device_of(struct chrome_output *chrome, int32_t device)
{
  for (size_t i = 0; i < chrome->n_devices; i++)
    if (chrome->devices[i].device == device) return &chrome->devices[i];
  errno = ENOMEM;
  if (!array_grow(&chrome->devices, chrome->n_devices, &chrome->capacity, sizeof *chrome->devices)) return NULL;
  chrome->devices[chrome->n_devices] = (struct chrome_device){device, 0};
  return &chrome->devices[chrome->n_devices++];
}

/* What a block is called: by its call stack, else by its size. NULL: out of memory. */
static const char *chrome_name(struct chrome_output *chrome, uint32_t stack, uint64_t bytes,
                               const struct trace_rows *rows, char *buffer)
{
  errno = ENOMEM;
  if (stack && !array_grow_zeroed(&chrome->names, stack, &chrome->n_names, sizeof *chrome->names)) return NULL;
  const char *text = stack && !chrome->names[stack] ? trace_rows_stack(rows, stack) : NULL;
  if (text) {
    stack_frames_name(text, buffer, CHROME_NAME_BYTES);
    chrome->names[stack] = strdup(buffer);
    if (!chrome->names[stack]) return NULL;
  }
  return stack && chrome->names[stack] && *chrome->names[stack] ? chrome->names[stack]
                                                                : units_format_bytes(bytes, buffer, CHROME_NAME_BYTES);
}

/* The begin and the end of a block have the same name, category and number. */
static bool chrome_put_block(struct convert_output *output, const struct trace_row *row, const struct trace_rows *rows,
                             uint32_t slot, uint64_t bytes, bool is_end)
{
  char buffer[CHROME_NAME_BYTES], category[32];
  const struct trace_live_block *block = &output->chrome->live.blocks[slot];
  const char *name = chrome_name(output->chrome, block->item, bytes, rows, buffer);
  if (!name) return false;
  snprintf(category, sizeof category, "device %d", (int)row->space.device);
  json_t *event = json_pack("{s:s, s:s, s:I, s:o}", "ph", is_end ? "e" : "b", "cat", category, "id", (json_int_t)slot,
                            "name", output_json_string(name));
  size_t tag_bytes;
  const char *tag = is_end ? NULL : trace_rows_tag(rows, row, &tag_bytes);
  if (event && !is_end)
    json_object_set_new(event, "args",
                        json_pack("{s:I, s:I, s:I, s:o*}", "bytes", (json_int_t)bytes, "address",
                                  (json_int_t)row->pointer, "stream", (json_int_t)row->stream, "tag",
                                  tag ? json_stringn(tag, tag_bytes) : NULL));
  return chrome_put(output, row, event);
}

static bool chrome_put_live(struct convert_output *output, const struct trace_row *row, uint64_t more, uint64_t less)
{
  char name[32];
  struct chrome_device *device = chrome_device_of(output->chrome, row->space.device);
  if (!device) return false;
  device->live_bytes += more - less;
  snprintf(name, sizeof name, "live, device %d", (int)device->device);
  return chrome_put(
      output, row,
      json_pack("{s:s, s:s, s:{s:I}}", "ph", "C", "name", name, "args", "bytes", (json_int_t)device->live_bytes));
}

static bool chrome_put_failure(struct convert_output *output, const struct trace_row *row)
{
  return chrome_put(output, row,
                    json_pack("{s:s, s:s, s:s, s:{s:I, s:i}}", "ph", "i", "s", "p", "name",
                              row->action == TRACE_FREE_FAILURE ? "free failed" : "out of memory", "args", "bytes",
                              (json_int_t)row->bytes, "device", (int)row->space.device));
}

static bool chrome_output_row(struct convert_output *output, const struct trace_row *row, const struct trace_rows *rows)
{
  struct chrome_output *chrome = output->chrome;
  struct trace_pair pair;
  if (row->nanoseconds != TRACE_NO_TIME && chrome->first == TRACE_NO_TIME)
    chrome->first = chrome->last = row->nanoseconds;
  if (row->nanoseconds > chrome->last) chrome->last = row->nanoseconds;
  if (row->action == TRACE_ALLOCATE_FAILURE || row->action == TRACE_FREE_FAILURE)
    return chrome_put_failure(output, row);
  errno = ENOMEM;
  if (!trace_live_note(&chrome->live, row, &pair)) return false;
  const uint64_t older = pair.older ? chrome->live.blocks[pair.older].bytes : 0;
  if (pair.older && !chrome_put_block(output, row, rows, pair.older, older, true)) return false;
  if (!pair.slot) return true;
  if (row->action == TRACE_FREE)
    return chrome_put_block(output, row, rows, pair.slot, pair.bytes, true) &&
           chrome_put_live(output, row, 0, pair.bytes);
  chrome->live.blocks[pair.slot].item = row->stack;
  return chrome_put_block(output, row, rows, pair.slot, row->bytes, false) &&
         chrome_put_live(output, row, row->bytes, older);
}

static bool chrome_output_end(struct convert_output *output)
{
  struct chrome_output *chrome = output->chrome;
  errno = ENOMEM;
  if (!chrome) return false;
  fputs("\n]", output->file);
  if (chrome->first != TRACE_NO_TIME)
    fprintf(output->file, ",\"otherData\":{\"first_row_nanoseconds\":\"%" PRId64 "\"}", chrome->first);
  bool good = fputs("}\n", output->file) >= 0 && fflush(output->file) == 0;
  int code = errno;
  for (size_t i = 0; i < chrome->n_names; i++) free(chrome->names[i]);
  trace_live_clear(&chrome->live);
  free(chrome->names);
  free(chrome->devices);
  free(chrome);
  errno = code;
  return good;
}

const struct convert_output convert_chrome = {
    .begin = chrome_output_begin, .row = chrome_output_row, .end = chrome_output_end, .has_devices = true};
