/* SPDX-License-Identifier: MIT */
/* stack_traces.h: stack traces of allocations, each distinct one stored once while any user has its number. Compiled into
 * adaptors that report the caller of an allocation. To take a trace costs microseconds; names of C are looked up when a trace
 * is written. */
#ifndef HIPMM_PLUGINS_COMMON_STACK_TRACES_H
#define HIPMM_PLUGINS_COMMON_STACK_TRACES_H

#include "../../core/base/key_map.h"

#include <pthread.h>

enum { STACK_TRACE_MOST_FRAMES = 64 /* as in RMM */ };

struct stack_trace {
  uint64_t hash;
  uint32_t users; /* 0: free */
  uint32_t next;  /* with the same hash, or in the list of free traces */
  uint32_t depth;
  uint32_t tag_bytes;
  /* The caller first: return addresses, and places in `lines` with STACK_TRACE_LINE, which no address has. Behind them is the
   * text of the tags, which is forgotten with the trace: a program may give each step a name. */
  void *frames[STACK_TRACE_MOST_FRAMES];
};

#define STACK_TRACE_LINE (UINTPTR_MAX / 2 + 1)

/* Code in memory. */
struct stack_range {
  uintptr_t start, end;
};

struct stack_traces {
  const struct hipmm_services *services;
  pthread_mutex_t lock;
  bool is_guarded;           /* by a lock of the caller: this one is not taken */
  struct stack_trace *items; /* [0] is unused: number 0 is no trace */
  uint32_t capacity, used, first_free;
  struct key_map by_hash; /* to the first of the traces with that hash */
  bool is_for_file;       /* C functions are written as places in their files, for `hipmm` to name */
  char *lines;            /* of Python, each once, with a 0 at its end; [0] is unused */
  size_t lines_bytes, lines_used;
  struct key_map lines_by_hash;    /* to the place of the line */
  struct stack_range core, python; /* libhipmm, unless the program has it; and what has the interpreter; empty: none */
  /* A C++ program has the function that demangles its names; others need none. */
  char *(*demangle)(const char *name, char *buffer, size_t *bytes, int *status);
};

void stack_traces_open(struct stack_traces *traces, const struct hipmm_services *services);
void stack_traces_close(struct stack_traces *traces);

/* ---- What an adaptor's options say ---- */

/* Named as the words of the option. */
enum stack_kind { STACKS_OFF, STACKS_PYTHON, STACKS_ALL };

struct stack_options {
  uint32_t stacks;
  uint64_t stack_sample;
  int64_t stack_depth;
};

/* Rows of an option table, for the member `stack` of the options; `flags_` are those of all three. */
#define STACK_OPTIONS(options_type, flags_, sample_, depth_, more_)                                                    \
  {.name = "stacks",                                                                                                   \
   .type = HIPMM_OPTION_ENUM,                                                                                          \
   .flags = flags_,                                                                                                    \
   .offset = offsetof(struct options_type, stack.stacks),                                                              \
   .initial = "off",                                                                                                   \
   .doc = "Keep the call stacks of allocations" more_ ". python: functions, files and lines of Python; of a thread "   \
          "that does not run Python, or has released the GIL as most functions of PyTorch do, C functions. all: also " \
          "the C functions that Python has called",                                                                    \
   .choices = stack_kind_words},                                                                                       \
      {.name = "stack_sample",                                                                                         \
       .type = HIPMM_OPTION_BYTES,                                                                                     \
       .flags = flags_,                                                                                                \
       .offset = offsetof(struct options_type, stack.stack_sample),                                                    \
       .initial = sample_,                                                                                             \
       .unit = "bytes",                                                                                                \
       .doc = "Keep a stack for one in so many allocated bytes, by chance, and for every block of 1 MiB or more. A "   \
              "stack costs some microseconds. 0: for every allocation",                                                \
       .maximum = "4GiB"},                                                                                             \
  {                                                                                                                    \
    .name = "stack_depth", .type = HIPMM_OPTION_INTEGER, .flags = flags_,                                              \
    .offset = offsetof(struct options_type, stack.stack_depth), .initial = depth_, .unit = "frames",                   \
    .doc = "The most frames of a stack, innermost first", .minimum = "1", .maximum = "64"                              \
  }

extern const char *const stack_kind_words[];

/* Sets options that may be in use, and says what is wanted. */
void stack_options_set(struct stack_options *options, const struct stack_options *given,
                       const struct hipmm_services *services);

/* ---- Taking ---- */

/* The number of the stack of a call that allocates `bytes`; SIZE_MAX: whatever the sample is. `from` as below. It has the
 * thread's tags, and only these if the options do not want the stack; none for a file, which has them beside the
 * stacks. 0: nothing is wanted, or there is no host memory for it. */
uint32_t stack_traces_take(struct stack_traces *traces, const struct stack_options *options, size_t bytes,
                           const void *from);

/* The number of the calling thread's trace, with at most `depth` frames, from the frame that `from` returns to, which is
 * __builtin_return_address(0) of an op. 0 when there is no host memory for the trace. */
uint32_t stack_traces_record(struct stack_traces *traces, const void *from, uint32_t depth);

/* Removes one user. Does nothing for 0. */
void stack_traces_drop(struct stack_traces *traces, uint32_t number);

/* Writes a trace with one line for each frame, or logs it. Does nothing for 0. */
void stack_traces_write(struct stack_traces *traces, uint32_t number, void (*write)(void *closure, const char *line),
                        void *closure);
void stack_traces_log(struct stack_traces *traces, uint32_t number, enum hipmm_log_level level);

/* For stack_names.c. */
void stack_traces_lock(struct stack_traces *traces);
void stack_traces_unlock(struct stack_traces *traces);

int64_t stack_traces_metadata_bytes(struct stack_traces *traces);

#endif
