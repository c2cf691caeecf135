/* SPDX-License-Identifier: MIT */
/* stack_traces.h: stack traces of allocations, each distinct one stored once while any user has its number. Compiled into
 * adaptors that report the caller of an allocation. To take a trace costs microseconds; names are looked up when a trace is
 * written. */
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
  uint32_t unused;
  void *frames[STACK_TRACE_MOST_FRAMES]; /* return addresses, the caller of hipmm's plugin first */
};

struct stack_traces {
  const struct hipmm_services *services;
  pthread_mutex_t lock;
  bool is_guarded;           /* by a lock of the caller: this one is not taken */
  struct stack_trace *items; /* [0] is unused: number 0 is no trace */
  uint32_t capacity, used, first_free;
  struct key_map by_hash; /* to the first of the traces with that hash */
  /* A C++ program has the function that demangles its names; others need none. */
  char *(*demangle)(const char *name, char *buffer, size_t *bytes, int *status);
};

void stack_traces_open(struct stack_traces *traces, const struct hipmm_services *services);
void stack_traces_close(struct stack_traces *traces);

/* The number of the calling thread's trace, with at most `depth` frames, from the frame that `from` returns to, which is
 * __builtin_return_address(0) of an op. 0 when there is no host memory for the trace. */
uint32_t stack_traces_record(struct stack_traces *traces, const void *from, uint32_t depth);

/* Removes one user. Does nothing for 0. */
void stack_traces_drop(struct stack_traces *traces, uint32_t number);

/* Writes a trace with one line for each frame, or logs it. Does nothing for 0. */
void stack_traces_write(struct stack_traces *traces, uint32_t number, void (*write)(void *closure, const char *line),
                        void *closure);
void stack_traces_log(struct stack_traces *traces, uint32_t number, enum hipmm_log_level level);

int64_t stack_traces_metadata_bytes(struct stack_traces *traces);

#endif
