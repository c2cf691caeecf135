/* SPDX-License-Identifier: MIT */
/* recorder.h: where a thread records its events: at the end of its own block. To record is to read the clock and
 * to store some bytes; there is no lock and no other thread. */
#ifndef HIPMM_PLUGINS_RECORDING_RECORDER_H
#define HIPMM_PLUGINS_RECORDING_RECORDER_H

#include "../common/stack_traces.h"
#include "../common/thread_cache.h"
#include "clock.h"
#include "record_file.h"

#include <stdatomic.h>

/* A thread's, or nobody's until a thread takes it. */
struct recorder_thread {
  char *at, *end; /* in the block; too near to each other for an event: no block, or it is full */
  struct record_context context;
  char tags[RECORD_MOST_TAG_BYTES + 1]; /* of the events that the block has last */
  struct record_block *block;           /* NULL: none */
  uint32_t generation;                  /* of the block's file */
  uint64_t events_before;               /* `events` when the block was begun */
  uint64_t lost_since_block;            /* events lost since a block was begun */
  atomic_uint_fast64_t events, lost_events;
  atomic_uint_fast64_t owner;   /* the thread's number; 0: that thread has ended, or its end would not be told */
  struct recorder_thread *next; /* of the recorder */
};

struct recorder {
  uint64_t serial;     /* unique number */
  size_t memory_index; /* of the recorder in thread_memories */
  const struct hipmm_services *services;
  struct stack_options stack;
  struct record_file file;
  struct thread_watch threads_watch;
  struct recorder_thread *_Atomic threads; /* new ones are added in front, under the lock */
  pthread_mutex_t lock;
  struct stack_traces traces;
  uint32_t *generations; /* by number of a trace: the last file that has its text; under the lock */
  uint32_t n_generations;
  struct record_block *texts; /* of traces, where only the last blocks of events are kept; NULL: none. Under the lock */
  char *texts_at;
  atomic_uint_fast64_t lost_events; /* of threads without a recorder_thread */
};

/* Begins a record; see record_file_open(). */
enum hipmm_status recorder_open(struct recorder *recorder, const struct hipmm_services *services,
                                const struct log_file_spec *spec, enum log_file_clash *clash_out);
void recorder_close(struct recorder *recorder);

struct recorder_counts {
  int64_t events, lost_events, file_bytes, metadata_bytes;
};

struct recorder_counts recorder_count(struct recorder *recorder);

static inline void recorder_count_event(struct recorder_thread *thread)
{
  uint_fast64_t events = atomic_load_explicit(&thread->events, memory_order_relaxed);
  atomic_store_explicit(&thread->events, events + 1, memory_order_relaxed);
}

/* Records an event, in the general way. */
void recorder_add(struct recorder *recorder, struct record_event event);

/* Records what is held. */
void recorder_add_held(struct recorder *recorder, struct record_held held);

/* Records where it is, or is no longer. The holder is NULL if nobody has it: see RECORD_NOWHERE. */
void recorder_add_place(struct recorder *recorder, const char *holder, struct record_place place);

/* Records an event that happens now, without a stack; the clock is the counter. In line: nearly all events have one of two
 * fixed forms, a short one and one for distant moments, addresses or large sizes. The clock is read for each event. A time that
 * threads share, or that a thread reads anew after some events, would be old by as long as the program allocates nothing, and
 * then a free could precede its allocation by any time. */
static inline __attribute__((always_inline)) void recorder_add_now(struct recorder *recorder, enum record_action action,
                                                                   const void *ptr, size_t bytes, hipmm_stream_t stream)
{
  const struct record_event event = {action, clock_ticks(true), (uintptr_t)ptr, bytes, (uintptr_t)stream, 0};
  struct recorder_thread *thread = thread_recall_only(recorder->serial, recorder->memory_index);
  char *end = NULL;
  if (__builtin_expect(thread && thread->end - thread->at >= RECORD_PUT_BYTES && thread->context.stream == event.stream,
                       1)) {
    end = record_put_fixed(thread->at, &thread->context, &event, 2, 3, 3);
    if (__builtin_expect(!end, 0)) end = record_put_fixed(thread->at, &thread->context, &event, 4, 4, 4);
  }
  if (__builtin_expect(!end, 0)) {
    recorder_add(recorder, event);
    return;
  }
  thread->at = end;
  recorder_count_event(thread);
}

/* The number of the stack of an allocation; see stack_traces_take(). 0: not this time. */
uint32_t recorder_take_stack(struct recorder *recorder, size_t bytes, const void *from);

#endif
