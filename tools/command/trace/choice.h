/* SPDX-License-Identifier: MIT */
/* choice.h: which spaces (spaces.h) of logs a command takes: --device and --process. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_CHOICE_H
#define HIPMM_TOOLS_COMMAND_TRACE_CHOICE_H

#include "../cmd.h"
#include "spaces.h"

enum { TRACE_SPACE_NAME_BYTES = 256 };

/* What a space is called where it differs from the others, such as "device 1", "process 12, host memory" or "b.csv"; "" if it
 * is alone. `files`: the logs, by the number in the space. */
void trace_space_name(const struct trace_spaces *spaces, size_t index, char *const *files, char *name,
                      size_t name_bytes);

/* What the options choose. All zero: nothing is chosen. */
struct trace_choice {
  const char *command; /* as messages begin: "plan" */
  const char *through; /* of a command without the options: what has them, as "`hipmm convert` and "; else NULL */
  const char *device_text, *process_text;
  bool has_device, has_process;
  int32_t device;
  enum trace_memory memory;
  uint64_t process;
  bool
      is_of_stack; /* the number is that of a stack's device too: the memory of a log with one device is taken whatever its
                     * number */
};

/* What --process is of several logs that are read as one, and of logs that are read apart. */
#define TRACE_CHOICE_OF_ALL \
  "the process that is read, of several: its number, or the place of its log if the log does not tell it"
#define TRACE_CHOICE_OF_EACH "the process that is read, of a log with several: its number"

/* The rows of commands that read logs; `more` follows the text of --device, and `process` is that of --process. */
#define TRACE_CHOICE_ARGUMENTS(choice, more, process)                                                           \
  {"device", "NAME", "the memory that is read, of a log with several: a device's number, managed or host" more, \
   .value = &(choice).device_text},                                                                             \
  {                                                                                                             \
    "process", "N", process, .value = &(choice).process_text                                                    \
  }

/* Reads the texts. False: the error was printed. */
bool trace_choice_read(struct trace_choice *choice);
bool trace_choice_takes(const struct trace_choice *choice, const struct trace_space *space);

/* The spaces that a command takes which serves device memory: those that are chosen; without a device, memory of devices
 * alone, and a note names what was left out. Marks them in `takes`. Returns how many; 0: the error was printed. */
size_t trace_choice_mark(const struct trace_choice *choice, const struct trace_spaces *spaces, char *const *files,
                         bool *takes);

/* Says that one space is needed, and how each can be chosen. */
void trace_choice_refuse(const struct trace_choice *choice, const struct trace_spaces *spaces, char *const *files,
                         const char *why);

#endif
