/* SPDX-License-Identifier: MIT */
/* pprof_output.c: writes who allocated the memory as a profile of pprof (profile.proto, not compressed), with Go's names of the
 * values: what each call stack allocated in all, by tag, what of it is live at the end, and what was live when most memory was.
 *
 * Most is live at many moments of a growing program. So a stack keeps what it had at the last of them only when its own
 * blocks change: until then it has the same. */
#include "../../../core/base/text.h"
#include "../array.h"
#include "../trace/live.h"
#include "../trace/stack_frames.h"
#include "../trace/stack_texts.h"
#include "convert.h"

#include <errno.h>
#include <stdlib.h>

/* Fields of profile.proto's messages. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_LOCATION = 4, PROFILE_FUNCTION, PROFILE_STRING };
enum { PROFILE_TIME = 9, PROFILE_DURATION, PROFILE_DEFAULT_TYPE = 14 };
enum { TYPE_NAME = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT };
enum { LOCATION_ID = 1, LOCATION_LINE = 4, LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_FILE = 4 };

enum pprof_value { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, PEAK_OBJECTS, PEAK_SPACE, PPROF_VALUES };

static const char *const pprof_names[PPROF_VALUES] = {"alloc_objects", "alloc_space",  "inuse_objects",
                                                      "inuse_space",   "peak_objects", "peak_space"};

/* Of one call stack and one tag. */
struct pprof_stack {
  uint64_t values[PPROF_VALUES];
  uint64_t peak;       /* the number of the peak that its values are of */
  uint32_t stack, tag; /* in `texts` and `tags`; 0: none */
};

struct pprof_output {
  struct trace_live live;
  struct stack_texts texts, tags;
  struct pprof_stack *stacks;
  size_t n_stacks, capacity;
  struct key_map samples; /* of stack and tag, to their index in `stacks`, plus 1 */
  uint32_t *numbers;      /* in `texts`, by the log's number; 0: not seen yet */
  size_t n_numbers;
  uint64_t live_bytes, peak_bytes, n_peaks, stack_sample;
  int64_t first, last; /* nanoseconds */
  FILE *file;
  uint64_t n_strings;
  bool *has_location; /* by line of `texts`; then that of no call stack */
};

/* ---- Messages ---- */

/* A part of a message; none here is longer than a name. */
struct pprof_message {
  char *bytes;
  size_t n;
  FILE *stream; /* NULL: out of memory */
};

static void pprof_put_number(FILE *file, uint64_t number)
{
  for (; number > 127; number >>= 7) putc((int)(number & 127) | 128, file);
  putc((int)number, file);
}

static void pprof_put_field(FILE *file, unsigned field, uint64_t number)
{
  pprof_put_number(file, field << 3);
  pprof_put_number(file, number);
}

static void pprof_put_bytes(FILE *file, unsigned field, const char *bytes, size_t n)
{
  pprof_put_number(file, field << 3 | 2);
  pprof_put_number(file, n);
  fwrite(bytes, 1, n, file);
}

/* The number of a new string. */
static uint64_t pprof_put_string(struct pprof_output *pprof, const char *text, size_t n)
{
  pprof_put_bytes(pprof->file, PROFILE_STRING, text, n);
  return pprof->n_strings++;
}

static FILE *pprof_begin(struct pprof_message *message)
{
  *message = (struct pprof_message){0};
  return message->stream = open_memstream(&message->bytes, &message->n);
}

/* False: out of memory. */
static bool pprof_end(struct pprof_message *message, FILE *to, unsigned field)
{
  bool good = message->stream && fclose(message->stream) == 0;
  if (good) pprof_put_bytes(to, field, message->bytes, message->n);
  free(message->bytes);
  return good;
}

/* ---- Rows ---- */

static bool pprof_output_begin(struct convert_output *output)
{
  struct pprof_output *pprof = output->pprof = calloc(1, sizeof *output->pprof);
  if (!pprof) return false;
  pprof->first = pprof->last = TRACE_NO_TIME;
  return true;
}

/* The number of a row's stack in `texts`. False: out of memory. */
static bool pprof_number_stack(struct pprof_output *pprof, uint32_t stack, const struct trace_rows *rows,
                               uint32_t *number_out)
{
  *number_out = 0;
  if (!stack) return true;
  if (!array_grow_zeroed(&pprof->numbers, stack, &pprof->n_numbers, sizeof *pprof->numbers)) return false;
  const char *text = pprof->numbers[stack] ? NULL : trace_rows_stack(rows, stack);
  if (text && !stack_texts_add(&pprof->texts, text, &pprof->numbers[stack])) return false;
  *number_out = pprof->numbers[stack];
  return true;
}

/* The index of a row's stack and tag in `stacks`. False: out of memory. */
static bool pprof_stack_of(struct pprof_output *pprof, const struct trace_row *row, const struct trace_rows *rows,
                           uint32_t *index_out)
{
  char name[256];
  size_t bytes;
  uint32_t stack, number = 0;
  if (!pprof_number_stack(pprof, row->stack, rows, &stack)) return false;
  const char *tag = trace_rows_tag(rows, row, &bytes);
  if (tag) snprintf(name, sizeof name, "%.*s", (int)bytes, tag);
  if (tag && !stack_texts_add(&pprof->tags, name, &number)) return false;
  const uint64_t key = (uint64_t)number << 32 | stack, found = key_map_get(&pprof->samples, key);
  *index_out = (uint32_t)(found ? found - 1 : pprof->n_stacks);
  if (found) return true;
  if (!array_grow_zeroed(&pprof->stacks, pprof->n_stacks, &pprof->capacity, sizeof *pprof->stacks) ||
      !key_map_put(&pprof->samples, key, pprof->n_stacks + 1))
    return false;
  pprof->stacks[pprof->n_stacks].stack = stack;
  pprof->stacks[pprof->n_stacks++].tag = number;
  return true;
}

static void pprof_keep_peak(const struct pprof_output *pprof, struct pprof_stack *stack)
{
  if (stack->peak == pprof->n_peaks) return;
  stack->peak = pprof->n_peaks;
  stack->values[PEAK_OBJECTS] = stack->values[INUSE_OBJECTS];
  stack->values[PEAK_SPACE] = stack->values[INUSE_SPACE];
}

static void pprof_change(struct pprof_output *pprof, uint32_t number, bool is_freed, uint64_t bytes)
{
  struct pprof_stack *stack = &pprof->stacks[number];
  uint64_t objects = stack_sample_blocks(pprof->stack_sample, bytes, stack->stack),
           space = stack_sample_bytes(pprof->stack_sample, bytes, stack->stack);
  pprof_keep_peak(pprof, stack);
  stack->values[INUSE_OBJECTS] += is_freed ? -objects : objects;
  stack->values[INUSE_SPACE] += is_freed ? -space : space;
  pprof->live_bytes += is_freed ? -bytes : bytes;
  if (is_freed) return;
  stack->values[ALLOC_OBJECTS] += objects;
  stack->values[ALLOC_SPACE] += space;
  if (pprof->live_bytes <= pprof->peak_bytes) return;
  pprof->peak_bytes = pprof->live_bytes;
  pprof->n_peaks++;
}

static bool pprof_output_row(struct convert_output *output, const struct trace_row *row, const struct trace_rows *rows)
{
  struct pprof_output *pprof = output->pprof;
  struct trace_pair pair;
  uint32_t number;
  if (row->nanoseconds != TRACE_NO_TIME) {
    if (pprof->first == TRACE_NO_TIME) pprof->first = row->nanoseconds;
    pprof->last = row->nanoseconds;
  }
  errno = ENOMEM;
  if (!trace_live_note(&pprof->live, row, &pair)) return false;
  if (pair.older) pprof_change(pprof, pprof->live.blocks[pair.older].item, true, pprof->live.blocks[pair.older].bytes);
  if (pair.slot && row->action == TRACE_FREE) pprof_change(pprof, pprof->live.blocks[pair.slot].item, true, pair.bytes);
  if (!pair.slot || row->action != TRACE_ALLOCATE) return true;
  pprof->stack_sample = row->stack_sample;
  if (!pprof_stack_of(pprof, row, rows, &number)) return false;
  pprof->live.blocks[pair.slot].item = number;
  pprof_change(pprof, number, false, row->bytes);
  return true;
}

/* ---- The profile ---- */

/* A location has the number of its line in `texts`, plus 1, and a function of its own. 0 is none. */
static bool pprof_put_location(struct pprof_output *pprof, uint64_t id, const struct stack_frame *frame)
{
  struct pprof_message function, location, line;
  uint64_t name = pprof_put_string(pprof, frame->name, (size_t)(frame->name_end - frame->name));
  uint64_t file = pprof_put_string(pprof, frame->file, (size_t)(frame->file_end - frame->file));
  if (pprof_begin(&function)) {
    pprof_put_field(function.stream, FUNCTION_ID, id);
    pprof_put_field(function.stream, FUNCTION_NAME, name);
    pprof_put_field(function.stream, FUNCTION_FILE, file);
  }
  bool good = pprof_end(&function, pprof->file, PROFILE_FUNCTION);
  if (pprof_begin(&line)) {
    pprof_put_field(line.stream, LINE_FUNCTION, id);
    pprof_put_field(line.stream, LINE_NUMBER, frame->line);
  }
  if (pprof_begin(&location)) pprof_put_field(location.stream, LOCATION_ID, id);
  good = location.stream && pprof_end(&line, location.stream, LOCATION_LINE) && good;
  return pprof_end(&location, pprof->file, PROFILE_LOCATION) && good;
}

/* Writes the numbers of a stack's locations, and those locations that are new. */
static bool pprof_put_stack(struct pprof_output *pprof, uint32_t number, FILE *locations)
{
  static const char unknown[] = "[no call stack]";
  const struct stack_frame none = {unknown, unknown + sizeof unknown - 1, unknown, unknown, 0};
  const size_t n_lines = pprof->texts.n_lines;
  const char *text = number ? stack_texts_get(&pprof->texts, number) : NULL;
  if (!text) {
    bool is_known = pprof->has_location[n_lines];
    pprof->has_location[n_lines] = true;
    pprof_put_number(locations, n_lines + 1);
    return is_known || pprof_put_location(pprof, n_lines + 1, &none);
  }
  for (size_t at = pprof->texts.ends[number - 1]; at < pprof->texts.ends[number]; at++) {
    const uint32_t line = pprof->texts.frames[at];
    const char *end = text + pprof->texts.lines[line].length, *next = text;
    struct stack_frame frame;
    bool is_frame = stack_frames_next(&next, &frame) && frame.name < end;
    text = end;
    if (!is_frame) continue;
    pprof_put_number(locations, (uint64_t)line + 1);
    if (!pprof->has_location[line] && !pprof_put_location(pprof, (uint64_t)line + 1, &frame)) return false;
    pprof->has_location[line] = true;
  }
  return true;
}

static bool pprof_put_tag(struct pprof_output *pprof, uint32_t tag, FILE *sample)
{
  struct pprof_message label;
  const char *text = tag ? stack_texts_get(&pprof->tags, tag) : NULL;
  if (!text) return true;
  const uint64_t key = pprof_put_string(pprof, "tag", 3), name = pprof_put_string(pprof, text, strlen(text));
  if (pprof_begin(&label)) {
    pprof_put_field(label.stream, LABEL_KEY, key);
    pprof_put_field(label.stream, LABEL_TEXT, name);
  }
  return pprof_end(&label, sample, SAMPLE_LABEL);
}

static bool pprof_put_sample(struct pprof_output *pprof, struct pprof_stack *stack)
{
  struct pprof_message sample, locations, values;
  pprof_keep_peak(pprof, stack);
  if (!stack->values[ALLOC_OBJECTS]) return true;
  bool good = pprof_begin(&sample) && pprof_begin(&locations) && pprof_put_stack(pprof, stack->stack, locations.stream);
  if (sample.stream) good = pprof_end(&locations, sample.stream, SAMPLE_LOCATIONS) && good;
  if (good && pprof_begin(&values)) {
    for (int i = 0; i < PPROF_VALUES; i++) pprof_put_number(values.stream, stack->values[i]);
    good = pprof_end(&values, sample.stream, SAMPLE_VALUES) && pprof_put_tag(pprof, stack->tag, sample.stream);
  }
  return pprof_end(&sample, pprof->file, PROFILE_SAMPLE) && good;
}

static bool pprof_put_types(struct pprof_output *pprof)
{
  bool good = true;
  uint64_t name = 0;
  pprof_put_string(pprof, "", 0);
  uint64_t units[] = {pprof_put_string(pprof, "count", 5), pprof_put_string(pprof, "bytes", 5)};
  for (int i = 0; i < PPROF_VALUES; i++) {
    struct pprof_message type;
    name = pprof_put_string(pprof, pprof_names[i], strlen(pprof_names[i]));
    if (pprof_begin(&type)) {
      pprof_put_field(type.stream, TYPE_NAME, name);
      pprof_put_field(type.stream, TYPE_UNIT, units[i % 2]);
    }
    good = pprof_end(&type, pprof->file, PROFILE_SAMPLE_TYPE) && good;
  }
  pprof_put_field(pprof->file, PROFILE_DEFAULT_TYPE, name);
  return good;
}

static bool pprof_write(struct pprof_output *pprof)
{
  pprof->has_location = calloc(pprof->texts.n_lines + 1, sizeof *pprof->has_location);
  bool good = pprof->has_location && pprof_put_types(pprof);
  for (size_t i = 0; good && i < pprof->n_stacks; i++) good = pprof_put_sample(pprof, &pprof->stacks[i]);
  if (pprof->last > 0) {
    pprof_put_field(pprof->file, PROFILE_TIME, (uint64_t)pprof->first);
    pprof_put_field(pprof->file, PROFILE_DURATION, (uint64_t)(pprof->last - pprof->first));
  }
  return good && fflush(pprof->file) == 0;
}

static bool pprof_output_end(struct convert_output *output)
{
  struct pprof_output *pprof = output->pprof;
  errno = ENOMEM;
  if (!pprof) return false;
  pprof->file = output->file;
  bool good = pprof_write(pprof);
  int code = errno;
  trace_live_clear(&pprof->live);
  stack_texts_clear(&pprof->texts);
  stack_texts_clear(&pprof->tags);
  key_map_clear(&pprof->samples);
  free(pprof->stacks);
  free(pprof->numbers);
  free(pprof->has_location);
  free(pprof);
  errno = code;
  return good;
}

const struct convert_output convert_pprof = {
    .begin = pprof_output_begin, .row = pprof_output_row, .end = pprof_output_end};
