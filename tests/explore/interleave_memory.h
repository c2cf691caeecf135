/* SPDX-License-Identifier: MIT */
/* interleave_memory.h: what the two threads of interleave.h see of memory: store buffers, and which accesses are ordered (vector
 * clocks). Called by interleave*.c alone. */
#ifndef HIPMM_TESTS_EXPLORE_INTERLEAVE_MEMORY_H
#define HIPMM_TESTS_EXPLORE_INTERLEAVE_MEMORY_H

#include "interleave.h"

#include <stdint.h>

/* How much of each thread's past is known: the numbers of its releases. */
struct interleave_clock {
  uint16_t at[INTERLEAVE_THREADS];
};

/* An atomic variable, or a mutex. */
struct interleave_place {
  uintptr_t at;
  unsigned users;                 /* in all runs of a scenario: a bit for each thread that reads, and that writes */
  unsigned run;                   /* that the rest is about */
  struct interleave_clock synced; /* what an acquire learns */
  int holder;                     /* of a mutex: 1 + the thread; 0: none */
};

enum interleave_kind {
  INTERLEAVE_READ,
  INTERLEAVE_WRITE,
  INTERLEAVE_ATOMIC_READ,
  INTERLEAVE_ATOMIC_WRITE,
  INTERLEAVE_KINDS
};

/* Begins the runs of a scenario; a run. */
void interleave_memory_open(void);
void interleave_memory_begin(void);

/* The place at the address, which the thread uses now. */
struct interleave_place *interleave_memory_place(const volatile void *at, int thread, bool writes);

/* Whether the other thread can tell of that use, as far as the runs so far have shown. */
bool interleave_memory_is_step(const struct interleave_place *place, int thread, bool writes);

/* Whether a place came to be shared since interleave_memory_open(), or since the last question: then steps were left out. */
bool interleave_memory_was_shared(void);

/* Notes an access; fails the run if it is a race. `code` is where it is. */
void interleave_memory_access(int thread, const volatile void *at, size_t bytes, enum interleave_kind kind,
                              const void *code);

/* The thread that runs gets the bytes, which it alone knows, and fills them: another thread's access must come after that. */
void interleave_memory_make(const void *start, size_t bytes);

/* From now on, no thread may access the bytes. */
void interleave_memory_free(const void *start, size_t bytes);

/* interleave_share(), interleave_weaken(). */
bool interleave_memory_is_free_of_order(const volatile void *at);
bool interleave_memory_is_weak(const volatile void *at);

void interleave_memory_acquire(int thread, const struct interleave_place *place);
void interleave_memory_release(int thread, struct interleave_place *place, bool goes_on); /* goes_on: of a change */

/* ---- Store buffers ---- */

size_t interleave_memory_waiting(int thread);       /* stores in the buffer */
void interleave_memory_flush(int thread, size_t n); /* the oldest ones */
void interleave_memory_flush_for(int thread, const volatile void *at,
                                 size_t bytes); /* up to the last one to these bytes */

/* The thread is at a fence of the compiler: its stores so far are in front of it. The second flushes those alone. */
void interleave_memory_fence(int thread);
void interleave_memory_flush_fenced(int thread);

/* False: no store of the thread to exactly these bytes waits. */
bool interleave_memory_forwards(int thread, const volatile void *at, size_t bytes, uint64_t *value_out);

void interleave_memory_delay(int thread, volatile void *at, size_t bytes, uint64_t value, bool releases);

/* The store of a change, on a weaker processor: loads behind it may come before it. Whether any waits. Flushes up to the last one to
 * these bytes: what the other thread stores there comes after it. */
void interleave_memory_delay_change(int thread, volatile void *at, size_t bytes, uint64_t value, bool releases);
bool interleave_memory_has_changes(int thread);
void interleave_memory_flush_changes(int thread, const volatile void *at);

/* interleave.c: something reached memory, so that threads that wait look again. */
void interleave_wake(void);

/* ---- interleave.c, for the files above it ---- */

enum { INTERLEAVE_NOBODY = -1 };

/* The thread that runs; INTERLEAVE_NOBODY outside of runs. The same, and in interleave_alone() its thread. */
extern int interleave_running, interleave_caller;

/* The plain accesses of the run so far. */
enum { INTERLEAVE_MOST_ACCESSES = 1000000 };
extern unsigned interleave_accesses;

/* A step: the other thread may come first. */
void interleave_point(void);

/* The thread goes on when something has reached memory, or `holder` is 0. */
void interleave_pause(void);
void interleave_await(const int *holder);

/* Tells that a thread has seen a value: one that sees nothing else, again and again, waits. */
void interleave_look(const volatile void *at, uint64_t value);

void interleave_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The destructors of a thread's values, in interleave_wraps.c. */
void interleave_destroy_values(int thread);
void interleave_forget_values(int thread);
bool interleave_has_no_fences(void);

/* Whether malloc() and calloc() give memory that lasts to the end of the run. */
void interleave_open_heap(bool is_open);

#endif
