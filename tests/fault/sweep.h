/* SPDX-License-Identifier: MIT */
/* sweep.h: runs a scenario again and again. Each time another step fails: a HIP call, an allocation of host memory,
 * or a call on a file. For each failure it checks that
 *
 *   - the call that it hits fails with a status for it and a message that names it, or succeeds all the same;
 *   - no output was written by a call that failed;
 *   - the same call then succeeds, and so does the rest of the scenario, which looks after its own data;
 *   - in the end nothing is left: device memory, host memory, mappings, files; the same device is current.
 *
 * HIPMM_TEST_FAULTS=N makes at most N steps of each kind, or calls of a HIP function, fail, evenly spread from a
 * place that HIPMM_TEST_SEED moves (it is printed). HIPMM_TEST_ONLY="SCENARIO/KIND/N", as a failure names it, runs
 * that step alone; HIPMM_TEST_PLACE=1 prints the backtrace of the call that failed. */
#ifndef HIPMM_TESTS_FAULT_SWEEP_H
#define HIPMM_TESTS_FAULT_SWEEP_H

#include "interpose.h"

#include <hipmm/plugin.h>
#include <stdbool.h>
#include <stddef.h>

/* What fails. */
enum sweep_kind {
  SWEEP_HIP,
  SWEEP_MEMORY,
  SWEEP_FULL,        /* a file: no space */
  SWEEP_FILLED,      /* a file: half is written, and then there is no space */
  SWEEP_INTERRUPTED, /* a file: EINTR, once; nothing may be noticed of it */
  SWEEP_SHORT,       /* a file: half is read or written; nor of this */
  SWEEP_KINDS
};

struct sweep_scenario {
  const char *name;
  void (*begin)(const void *argument); /* nothing fails; NULL: nothing to do */
  void (*run)(const void *argument);
  void (*end)(const void *argument); /* nothing fails. hipmm is finalized here, unless run() has done it */
  const void *argument;
  unsigned left_out;            /* bits 1 << kind */
  const char *reason;           /* what a message may say instead of the step's name; NULL: nothing */
  const char *const *own_calls; /* HIP functions that run() itself calls, up to NULL: they never fail. NULL: none */
};

/* Sweeps over all kinds; fails the test that is running with a line for each step that went wrong. */
void sweep_over(const struct sweep_scenario *scenario);

/* Prints what was swept so far: for the end of a program. */
void sweep_print_sums(void);

/* ---- For scenarios ---- */

/* Calls a function of hipmm that returns a status, and calls it again if it failed. Evaluates to its last status. */
#define SWEEP(function, ...) \
  (sweep_mark(#function),    \
   sweep_has_failed(#function, function(__VA_ARGS__)) ? sweep_again(#function, function(__VA_ARGS__)) : HIPMM_OK)

/* The same for a function whose last argument is the output, the variable `out`. */
#define SWEEP_OUT(out, function, ...)                                                      \
  (sweep_mark(#function), sweep_keep(&(out), sizeof(out)),                                 \
   sweep_has_failed(#function, function(__VA_ARGS__, &(out)))                              \
       ? (sweep_compare(#function), sweep_again(#function, function(__VA_ARGS__, &(out)))) \
       : HIPMM_OK)
#define SWEEP_OUT_ONLY(out, function)                                         \
  (sweep_mark(#function), sweep_keep(&(out), sizeof(out)),                    \
   sweep_has_failed(#function, function(&(out)))                              \
       ? (sweep_compare(#function), sweep_again(#function, function(&(out)))) \
       : HIPMM_OK)

/* Functions without a status: evaluates to what it returns. */
#define SWEEP_PLAIN(function, ...) (sweep_mark(#function), function(__VA_ARGS__))

bool sweep_has_failed(const char *function, enum hipmm_status status);
enum hipmm_status sweep_again(const char *function, enum hipmm_status status);
void sweep_keep(const void *out, size_t bytes);
void sweep_compare(const char *function);
void sweep_mark(const char *function);

/* Whether a step that was to fail has failed, so that a function without a status may have failed. */
bool sweep_may_fail(void);

/* What must not be; the first of a run counts. */
void sweep_note(const char *format, ...) HIPMM_PRINTF(1, 2);

/* For a test that makes calls fail by itself: forgets what was noted; and what has been noted since. */
void sweep_begin_alone(void);
const char *sweep_failure(void);

/* Whether the functions above were called with this one. */
bool sweep_has_called(const char *function);

#endif
