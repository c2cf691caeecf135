/* SPDX-License-Identifier: MIT */
/* recorder.h: where a thread records its events: at the end of its own block. To record is to read the clock and
 * to store some bytes; there is no lock and no other thread. */
#ifndef HIPMM_RECORDING_RECORDER_H
#define HIPMM_RECORDING_RECORDER_H

#include "../common/stack_traces.h"
#include "../common/thread_cache.h"
#include "clock.h"
#include "record_file.h"

#include <stdatomic.h>

/* A thread's, or that of a thread that ended, until another thread takes it. */
struct recorder_thread {
  char *at, *end; /* in the block; too near to each other for an event: no block, or it is full */
  struct record_context context;
  struct record_block *block; /* NULL: none */
  uint32_t generation;        /* of the block's file */
  uint32_t until_stack;       /* allocations until a stack trace is taken */
  uint64_t events_before;     /* `events` when the block was begun */
  uint64_t lost_since_block;  /* events lost since a block was begun */
  atomic_uint_fast64_t events, lost_events;
  atomic_uint_fast64_t owner;   /* the thread's number; 0: that thread has ended */
  struct recorder_thread *next; /* of the recorder */
};

struct recorder {
  uint64_t serial; /* unique number */
  const struct hipmm_services *services;
  uint32_t stack_interval, stack_depth; /* interval 0: no stack traces */
  struct record_file file;
  struct thread_watch threads_watch;
  struct recorder_thread *_Atomic threads; /* new ones are added in front, under the lock */
  pthread_mutex_t lock;
  struct stack_traces traces;
  uint32_t *generations; /* by number of a trace: the last file that has its text; under the lock */
  uint32_t n_generations;
  atomic_uint_fast64_t lost_events; /* of threads without a recorder_thread */
};

/* Begins a record; see record_file_open(). */
enum hipmm_status recorder_open(struct recorder *recorder, const struct hipmm_services *services,
                                const struct log_file_wish *wish, enum log_file_conflict *conflict_out);
void recorder_close(struct recorder *recorder);

struct recorder_counts {
  int64_t events, lost_events, file_bytes, metadata_bytes;
};

struct recorder_counts recorder_count(struct recorder *recorder);

/* Records an event that happens now. */
void recorder_add(struct recorder *recorder, enum record_action action, const void *ptr, size_t bytes,
                  hipmm_stream_t stream, uint32_t stack);

/* The number of a trace of the caller whose return address is `from`, taken for every Nth allocation; 0: not this time. */
uint32_t recorder_take_stack(struct recorder *recorder, const void *from);

#endif
