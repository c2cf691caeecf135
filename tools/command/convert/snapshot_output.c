/* SPDX-License-Identifier: MIT */
/* snapshot_output.c: writes rows as a pickle of what torch.cuda.memory._snapshot() gives, which https://pytorch.org/memory_viz
 * shows. A row becomes "alloc" or "oom", or "free_requested" and "free_completed"; threads, inner tags and failed frees have no
 * place there. Each device has a list of its own, in a file without a name until the end. In each list a stack is pickled once, as
 * are the keys: the memo has the keys, then the stacks by number.
 *
 * The page's reader knows the operations alone that PyTorch writes: there is no POP, and a number of nine bytes breaks its
 * sums. */
#include "../../../core/base/record_format.h"
#include "../../../core/base/text.h"
#include "../array.h"
#include "../trace/stack_frames.h"
#include "convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum snapshot_word {
  WORD_ACTION,
  WORD_ADDR,
  WORD_SIZE,
  WORD_STREAM,
  WORD_TIME,
  WORD_FRAMES,
  WORD_NAME,
  WORD_FILE,
  WORD_LINE,
  WORD_FREE,
  WORD_ALLOC,
  WORD_REQUESTED,
  WORD_COMPLETED,
  WORD_OOM,
  WORD_METADATA,
  SNAPSHOT_WORDS
};

enum { SNAPSHOT_MOST_DEVICES = 1024 };

struct snapshot_device {
  FILE *file;      /* its events; NULL: none */
  bool *has_stack; /* by number: it is in the memo */
  size_t n_stacks;
  bool has_word[SNAPSHOT_WORDS]; /* the same */
};

struct snapshot_output {
  struct snapshot_device *devices;
  size_t n_devices, capacity;
  int64_t microseconds; /* of the last row */
};

static const char *const snapshot_words[SNAPSHOT_WORDS] = {
    "action", "addr",        "size",  "stream",         "time_us",        "frames", "name",         "filename",
    "line",   "device_free", "alloc", "free_requested", "free_completed", "oom",    "user_metadata"};

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static void snapshot_put_bytes(FILE *file, uint64_t number, unsigned bytes)
{
  for (unsigned i = 0; i < bytes; i++) putc(i < 8 ? (int)(number >> 8 * i & 255) : 0, file);
}

/* In the fewest bytes; all but those without a sign have one. */
static void snapshot_put_number(FILE *file, uint64_t number)
{
  unsigned bytes = number ? (64u - (unsigned)__builtin_clzll(number)) / 8 + 1 : 1;
  if (number <= UINT8_MAX || number <= UINT16_MAX) {
    bytes = number <= UINT8_MAX ? 1 : 2;
    putc(bytes == 1 ? 'K' : 'M', file);
  } else if (number <= INT32_MAX) {
    bytes = 4;
    putc('J', file);
  } else {
    putc(0x8a, file);
    putc((int)bytes, file);
  }
  snapshot_put_bytes(file, number, bytes);
}

static void snapshot_put_text(FILE *file, const char *text, size_t bytes)
{
  putc('X', file);
  snapshot_put_bytes(file, bytes, 4);
  fwrite(text, 1, bytes, file);
}

static void snapshot_put_word(struct snapshot_device *device, enum snapshot_word word)
{
  if (!device->has_word[word]) snapshot_put_text(device->file, snapshot_words[word], strlen(snapshot_words[word]));
  putc(device->has_word[word] ? 'h' : 'q', device->file);
  putc((int)word, device->file);
  device->has_word[word] = true;
}

static void snapshot_put_entry(struct snapshot_device *device, enum snapshot_word key, uint64_t number)
{
  snapshot_put_word(device, key);
  snapshot_put_number(device->file, number);
}

/* ---- Call stacks ----------------------------------------------------------------------------------------------- */

static void snapshot_put_frame(struct snapshot_device *device, const struct stack_frame *frame)
{
  fputs("}(", device->file);
  snapshot_put_word(device, WORD_NAME);
  snapshot_put_text(device->file, frame->name, (size_t)(frame->name_end - frame->name));
  snapshot_put_word(device, WORD_FILE);
  snapshot_put_text(device->file, frame->file, (size_t)(frame->file_end - frame->file));
  snapshot_put_entry(device, WORD_LINE, frame->line);
  putc('u', device->file);
}

/* Writes a stack's frames, or what the memo has of it. False: out of memory. */
static bool snapshot_put_frames(struct snapshot_device *device, uint32_t stack, const struct trace_rows *rows)
{
  FILE *file = device->file;
  bool is_known = stack < device->n_stacks && device->has_stack[stack];
  const char *text = stack && !is_known ? trace_rows_stack(rows, stack) : NULL;
  if (!is_known && !text) return putc(']', file), true;
  if (!array_grow_zeroed(&device->has_stack, stack, &device->n_stacks, sizeof *device->has_stack)) return false;
  putc(is_known ? 'j' : ']', file);
  if (!is_known) {
    putc('(', file);
    for (struct stack_frame frame; stack_frames_next(&text, &frame);) snapshot_put_frame(device, &frame);
    putc('e', file);
    putc('r', file);
  }
  device->has_stack[stack] = true;
  snapshot_put_bytes(file, SNAPSHOT_WORDS + (uint64_t)stack, 4);
  return true;
}

/* The outermost tag, as torch.cuda.memory._set_memory_metadata() names a step. */
static void snapshot_put_step(struct snapshot_device *device, const struct trace_row *row,
                              const struct trace_rows *rows)
{
  char step[RECORD_MOST_TAG_BYTES + 1];
  const char *tags = row->tags ? trace_rows_tags(rows, row->tags) : NULL;
  snprintf(step, sizeof step, "%.*s", tags ? (int)strcspn(tags, "\n") : 0, tags ? tags : "");
  if (!*step || !text_is_utf8(step)) return; /* Python would refuse the pickle */
  snapshot_put_word(device, WORD_METADATA);
  snapshot_put_text(device->file, step, strlen(step));
}

/* ---- Output ---------------------------------------------------------------------------------------------------- */

static bool snapshot_output_begin(struct convert_output *output)
{
  output->snapshot = calloc(1, sizeof *output->snapshot);
  return output->snapshot;
}

/* NULL: errno tells. */
static struct snapshot_device *snapshot_device_of(struct snapshot_output *snapshot, const struct trace_space *space)
{
  size_t index = space->device > 0 ? (size_t)space->device : 0;
  errno = ERANGE;
  if (index >= SNAPSHOT_MOST_DEVICES) return NULL;
  errno = ENOMEM;
  if (!array_grow_zeroed(&snapshot->devices, index, &snapshot->capacity, sizeof *snapshot->devices)) return NULL;
  if (index >= snapshot->n_devices) snapshot->n_devices = index + 1;
  struct snapshot_device *device = &snapshot->devices[index];
  if (!device->file) device->file = tmpfile();
  return device->file ? device : NULL;
}

static bool snapshot_output_event(struct convert_output *output, enum snapshot_word action, const struct trace_row *row,
                                  const struct trace_rows *rows)
{
  struct snapshot_device *device = snapshot_device_of(output->snapshot, &row->space);
  if (!device) return false;
  fputs("}(", device->file);
  snapshot_put_word(device, WORD_ACTION);
  snapshot_put_word(device, action);
  snapshot_put_entry(device, action == WORD_OOM ? WORD_FREE : WORD_ADDR, row->pointer);
  snapshot_put_entry(device, WORD_SIZE,
                     row->bytes <= INT64_MAX ? row->bytes : INT64_MAX); /* which a program may ask for */
  snapshot_put_entry(device, WORD_STREAM, row->stream);
  snapshot_put_entry(device, WORD_TIME, (uint64_t)output->snapshot->microseconds);
  snapshot_put_word(device, WORD_FRAMES);
  if (!snapshot_put_frames(device, row->stack, rows)) return false;
  snapshot_put_step(device, row, rows);
  fputs("ua", device->file);
  return !ferror(device->file);
}

static bool snapshot_output_row(struct convert_output *output, const struct trace_row *row,
                                const struct trace_rows *rows)
{
  static const enum snapshot_word actions[] = {
      [TRACE_ALLOCATE] = WORD_ALLOC, [TRACE_FREE] = WORD_REQUESTED, [TRACE_ALLOCATE_FAILURE] = WORD_OOM};
  if (row->action == TRACE_FREE_FAILURE) return true;
  if (row->nanoseconds >= 0) output->snapshot->microseconds = row->nanoseconds / 1000;
  return snapshot_output_event(output, actions[row->action], row, rows) &&
         (row->action != TRACE_FREE || snapshot_output_event(output, WORD_COMPLETED, row, rows));
}

/* Writes the list of a device. False: errno tells. */
static bool snapshot_copy(FILE *to, FILE *from)
{
  char buffer[1 << 14];
  size_t bytes;
  putc(']', to);
  if (!from) return true;
  if (fflush(from) || fseek(from, 0, SEEK_SET)) return false;
  while ((bytes = fread(buffer, 1, sizeof buffer, from)) > 0)
    if (fwrite(buffer, 1, bytes, to) < bytes) return false;
  return !ferror(from);
}

static bool snapshot_write(const struct snapshot_output *snapshot, FILE *file)
{
  bool good = true;
  fputs("\x80\x02}(", file);
  snapshot_put_text(file, "segments", strlen("segments"));
  putc(']', file);
  snapshot_put_text(file, "device_traces", strlen("device_traces"));
  fputs("](", file);
  if (!snapshot->n_devices) putc(']', file);
  for (size_t i = 0; good && i < snapshot->n_devices; i++) good = snapshot_copy(file, snapshot->devices[i].file);
  return good && fputs("eu.", file) >= 0 && fflush(file) == 0;
}

static bool snapshot_output_end(struct convert_output *output)
{
  struct snapshot_output *snapshot = output->snapshot;
  errno = ENOMEM;
  bool good = snapshot && snapshot_write(snapshot, output->file);
  int code = errno;
  for (size_t i = 0; snapshot && i < snapshot->n_devices; i++) {
    if (snapshot->devices[i].file) fclose(snapshot->devices[i].file);
    free(snapshot->devices[i].has_stack);
  }
  if (snapshot) free(snapshot->devices);
  free(snapshot);
  errno = code;
  return good;
}

const struct convert_output convert_snapshot = {
    .begin = snapshot_output_begin, .row = snapshot_output_row, .end = snapshot_output_end, .has_devices = true};
