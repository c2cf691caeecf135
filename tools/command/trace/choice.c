/* SPDX-License-Identifier: MIT */
/* choice.c: see choice.h. */
#include "choice.h"
#include "../../../core/base/text.h"
#include "csv.h"

#include <inttypes.h>
#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------------------------- */

/* In what the spaces differ from each other. */
struct trace_difference {
  bool process, log, memory;
};

static struct trace_difference trace_spaces_compare(const struct trace_spaces *spaces)
{
  struct trace_difference found = {false, false, false};
  for (size_t i = 1; i < spaces->n; i++) {
    const struct trace_space *one = &spaces->items[0], *other = &spaces->items[i];
    found.process = found.process || one->process != other->process;
    found.log = found.log || one->log != other->log;
    found.memory = found.memory || one->device != other->device || one->memory != other->memory;
  }
  return found;
}

/* What a log is called: its name without its folder, unless another log has that too. */
static const char *trace_space_file(const struct trace_spaces *spaces, uint32_t log, char *const *files)
{
  const char *slash = strrchr(files[log], '/'), *name = slash ? slash + 1 : files[log];
  if (!strcmp(files[log], "-")) return "standard input";
  for (size_t i = 0; i < spaces->n; i++) {
    const char *other = files[spaces->items[i].log], *other_slash = strrchr(other, '/');
    if (spaces->items[i].log != log && !strcmp(other_slash ? other_slash + 1 : other, name)) return files[log];
  }
  return name;
}

void trace_space_name(const struct trace_spaces *spaces, size_t index, char *const *files, char *name,
                      size_t name_bytes)
{
  const struct trace_space *space = &spaces->items[index];
  struct trace_difference differ = trace_spaces_compare(spaces);
  char process[48] = "", memory[32] = "";
  const uint64_t number = space->process & UINT32_MAX, host = space->process >> 32; /* see sqlite_queries.c */
  if (differ.process && host)
    snprintf(process, sizeof process, "process %" PRIu64 " of host %" PRIu64, number, host + 1);
  else if (differ.process && space->process)
    snprintf(process, sizeof process, "process %" PRIu64, space->process);
  if (differ.memory && space->memory == TRACE_DEVICE_MEMORY)
    snprintf(memory, sizeof memory, "device %" PRId32, space->device);
  else if (differ.memory)
    snprintf(memory, sizeof memory, "%s", space->memory == TRACE_HOST_MEMORY ? "host memory" : "managed memory");
  snprintf(name, name_bytes, "%s%s%s%s%s", differ.log ? trace_space_file(spaces, space->log, files) : "",
           differ.log && *process ? ", " : "", process, *memory && (differ.log || *process) ? ", " : "", memory);
}

/* The number that chooses a space's process. */
static uint64_t trace_space_process(const struct trace_space *space)
{
  return space->process ? space->process : (uint64_t)space->log + 1;
}

/* Whether processes of two logs have the number, as those of two hosts can. */
static bool trace_space_is_ambiguous(const struct trace_spaces *spaces, const struct trace_space *space)
{
  for (size_t i = 0; i < spaces->n; i++)
    if (spaces->items[i].log != space->log && trace_space_process(&spaces->items[i]) == trace_space_process(space))
      return true;
  return false;
}

/* The options that choose a space from the others. */
static void trace_space_options(const struct trace_spaces *spaces, size_t index, char *const *files, char *text,
                                size_t text_bytes)
{
  const struct trace_space *space = &spaces->items[index];
  struct trace_difference differ = trace_spaces_compare(spaces);
  char process[TRACE_SPACE_NAME_BYTES] = "", memory[32] = "";
  if (trace_space_is_ambiguous(spaces, space))
    snprintf(process, sizeof process, "%s alone", files[space->log]);
  else if (differ.process || differ.log)
    snprintf(process, sizeof process, "--process %" PRIu64, trace_space_process(space));
  if (differ.memory && space->memory == TRACE_DEVICE_MEMORY)
    snprintf(memory, sizeof memory, "--device %" PRId32, space->device);
  else if (differ.memory)
    snprintf(memory, sizeof memory, "--device %s", space->memory == TRACE_HOST_MEMORY ? "host" : "managed");
  snprintf(text, text_bytes, "%s%s%s", process, *process && *memory ? " " : "", memory);
}

/* ---- The choice ------------------------------------------------------------------------------------------------ */

bool trace_choice_read(struct trace_choice *choice)
{
  const char *device = choice->device_text, *process = choice->process_text;
  uint64_t number = 0;
  choice->has_device = device != NULL;
  choice->has_process = process != NULL;
  if (device && strcmp(device, "host") == 0)
    choice->memory = TRACE_HOST_MEMORY;
  else if (device && strcmp(device, "managed") == 0)
    choice->memory = TRACE_MANAGED_MEMORY;
  else if (device && (!csv_read_decimal(device, device + strlen(device), &number) || number > INT32_MAX)) {
    say("%s: --device \"%s\" is neither a device's number, such as 0, nor managed, nor host", choice->command, device);
    return false;
  }
  choice->device = (int32_t)number;
  if (!process || csv_read_decimal(process, process + strlen(process), &choice->process)) return true;
  say("%s: --process \"%s\" is no number of a process", choice->command, process);
  return false;
}

bool trace_choice_takes(const struct trace_choice *choice, const struct trace_space *space)
{
  bool is_device =
      space->memory == choice->memory && (space->memory != TRACE_DEVICE_MEMORY || space->device == choice->device);
  return (!choice->has_device || is_device) && (!choice->has_process || trace_space_process(space) == choice->process);
}

/* "--device 0, --device 1 or --device host" */
static void trace_choice_list(const struct trace_spaces *spaces, char *const *files, char *text, size_t text_bytes)
{
  char option[TRACE_SPACE_NAME_BYTES + 32];
  size_t most = spaces->n < 8 ? spaces->n : 8;
  *text = '\0';
  for (size_t i = 0; i < most; i++) {
    const char *comma = i + 1 < most || spaces->n > most ? ", " : " or ";
    trace_space_options(spaces, i, files, option, sizeof option);
    text_append(text, text_bytes, "%s%s", i ? comma : "", option);
  }
  if (spaces->n > most) text_append(text, text_bytes, ", …");
}

void trace_choice_refuse(const struct trace_choice *choice, const struct trace_spaces *spaces, char *const *files,
                         const char *why)
{
  char list[512], first[TRACE_SPACE_NAME_BYTES], second[TRACE_SPACE_NAME_BYTES];
  trace_choice_list(spaces, files, list, sizeof list);
  trace_space_name(spaces, 0, files, first, sizeof first);
  trace_space_name(spaces, 1, files, second, sizeof second);
  say("%s: %s and %s%s are address spaces of their own%s: choose one with %s%s", choice->command, first, second,
      spaces->n > 2 ? ", and others," : "", why, choice->through ? choice->through : "", list);
}

/* Names the memory of what is chosen that is left out since it is no device's. */
static void trace_choice_note_left(const struct trace_choice *choice, const struct trace_spaces *spaces,
                                   char *const *files, const bool *takes)
{
  char name[TRACE_SPACE_NAME_BYTES], option[TRACE_SPACE_NAME_BYTES + 32];
  const char *through = choice->through ? choice->through : "";
  for (size_t i = 0; i < spaces->n; i++) {
    if (takes[i] || !trace_choice_takes(choice, &spaces->items[i])) continue;
    trace_space_name(spaces, i, files, name, sizeof name);
    trace_space_options(spaces, i, files, option, sizeof option);
    note("left out: %s (%s%s take%s it)", name, through, option, *through ? "" : "s");
  }
}

/* Whether the log has the memory of one device, which has another number than the stack that it is played through. */
static bool trace_choice_takes_sole(const struct trace_choice *choice, const struct trace_spaces *spaces)
{
  return choice->is_of_stack && choice->has_device && choice->memory == TRACE_DEVICE_MEMORY &&
         !trace_spaces_have_several_devices(spaces);
}

/* Says that nothing is taken, and how something can be chosen. */
static void trace_choice_refuse_nothing(const struct trace_choice *choice, const struct trace_spaces *spaces,
                                        char *const *files)
{
  char list[512];
  const struct trace_space *first = spaces->items;
  const char *file = strcmp(files[first->log], "-") ? files[first->log] : "standard input";
  const char *through = choice->through ? choice->through : "";
  const char *memory = first->memory == TRACE_HOST_MEMORY ? "host" : "managed";
  bool is_of_one_kind = first->memory != TRACE_DEVICE_MEMORY && !trace_spaces_compare(spaces).memory;
  trace_choice_list(spaces, files, list, sizeof list);
  if (!choice->has_device && is_of_one_kind)
    say("%s: %s has %s memory alone; choose it with %s--device %s", choice->command, file, memory, through, memory);
  else if (!choice->has_device && !choice->has_process)
    say("%s: %s has no memory of a device; choose %s%s", choice->command, file, through, list);
  else if (*list)
    say("%s: %s has no such memory; choose %s%s", choice->command, file, through, list);
  else
    say("%s: %s has no such memory: leave --device and --process out", choice->command, file);
}

size_t trace_choice_mark(const struct trace_choice *choice, const struct trace_spaces *spaces, char *const *files,
                         bool *takes)
{
  size_t n = 0;
  struct trace_choice wanted = *choice;
  wanted.has_device = choice->has_device && !trace_choice_takes_sole(choice, spaces);
  for (size_t i = 0; i < spaces->n; i++) {
    const struct trace_space *space = &spaces->items[i];
    takes[i] = trace_choice_takes(&wanted, space) && (wanted.has_device || space->memory == TRACE_DEVICE_MEMORY);
    n += takes[i];
  }
  if (n) trace_choice_note_left(choice, spaces, files, takes);
  if (!n && spaces->n) trace_choice_refuse_nothing(choice, spaces, files);
  return n;
}
