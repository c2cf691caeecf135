/* SPDX-License-Identifier: MIT */
/* worker.h: a thread of a benchmark, and what the workloads do in it. bench_threads.c starts and measures them;
 * the workloads are in bench_workloads.c and bench_handoff.c. Between two readings of the clock a workload calls
 * hipmm_allocate and hipmm_deallocate as a program does, and does as little else as it can. */
#ifndef HIPMM_CORE_CMD_BENCH_WORKER_H
#define HIPMM_CORE_CMD_BENCH_WORKER_H

#include "bench.h"

struct bench_walk;
struct bench_ring;

struct bench_worker {
  const struct bench_plan *plan;
  struct hipmm_resource *resource;
  hipStream_t *streams;
  size_t index;
  struct bench_walk *walk; /* random */
  struct bench_ring *ring; /* handoff: with its partner */
  void **blocks;           /* cross: those of one turn */
  size_t turn;             /* cross: the stream whose turn it is */

  /* Requested, allocated here less freed here: below 0 in a thread that frees others'. pair and cross: what a turn
   * needs. */
  int64_t live_bytes, peak_bytes;
  uint64_t failures;
  char *failure_reason;
  struct bench_times times;
};

/* What a workload does; the ops are called in this order. */
struct bench_ops {
  /* Memory, before any thread runs. False: none left. */
  bool (*prepare)(struct bench_worker *worker, struct bench_worker *workers);
  /* In the thread, before the warm-up. */
  void (*begin)(struct bench_worker *worker);
  /* Waits, unmeasured, until there is something to do. False: there will be nothing any more. */
  bool (*ready)(struct bench_worker *worker);
  /* It goes on, when its time is over, until ready says no. */
  bool (*drains)(const struct bench_worker *worker);
  /* Some operations; returns how many. `sample`: each is timed and noted. */
  size_t (*batch)(struct bench_worker *worker);
  size_t (*sample)(struct bench_worker *worker);
  /* In the thread: it will do no more; after that, when none of the threads does any more. */
  void (*end)(struct bench_worker *worker);
  void (*clean)(struct bench_worker *worker);
  /* Gives the memory back. */
  void (*release)(struct bench_worker *worker);
};

extern const struct bench_ops bench_pair_ops, bench_random_ops, bench_cross_ops, bench_handoff_ops;

/* `timed` is a constant where these are called, and no test is left of it. A failed allocation gives NULL. */
static inline void *bench_allocate(struct bench_worker *worker, size_t bytes, hipStream_t stream, bool timed)
{
  void *ptr = NULL;
  uint64_t before = timed ? bench_tick_before() : 0;
  enum hipmm_status status = hipmm_allocate(worker->resource, bytes, stream, &ptr);
  if (timed) bench_times_add(&worker->times, before, bench_tick_after());
  if (__builtin_expect(status != HIPMM_OK, 0)) bench_note_failure(&worker->failures, &worker->failure_reason);
  return ptr;
}

static inline void bench_free(struct bench_worker *worker, void *ptr, size_t bytes, hipStream_t stream, bool timed)
{
  if (__builtin_expect(!ptr, 0)) return;
  uint64_t before = timed ? bench_tick_before() : 0;
  enum hipmm_status status = hipmm_deallocate(worker->resource, ptr, bytes, stream);
  if (timed) bench_times_add(&worker->times, before, bench_tick_after());
  if (__builtin_expect(status != HIPMM_OK, 0)) bench_note_failure(&worker->failures, &worker->failure_reason);
}

static inline void bench_note_live(struct bench_worker *worker)
{
  if (worker->live_bytes > worker->peak_bytes) worker->peak_bytes = worker->live_bytes;
}

#endif
