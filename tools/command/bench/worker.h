/* SPDX-License-Identifier: MIT */
/* worker.h: a thread of a benchmark, and the operations of a workload in it. threads.c starts and measures the threads;
 * the workloads are in workloads.c and handoff.c. Between two readings of the clock a workload calls hipmm_allocate and
 * hipmm_deallocate as a program does, and does as little else as possible. */
#ifndef HIPMM_TOOLS_COMMAND_BENCH_WORKER_H
#define HIPMM_TOOLS_COMMAND_BENCH_WORKER_H

#include "bench.h"

#include <stdatomic.h>

struct bench_walk;
struct bench_ring;

struct bench_worker {
  const struct bench_plan *plan;
  struct hipmm_resource *resource;
  hipmm_stream_t *streams;
  size_t index;
  struct bench_walk *walk; /* random */
  struct bench_ring *ring; /* handoff: with its partner */
  void **blocks;           /* cross: those of one turn */
  size_t turn;             /* cross: the stream whose turn it is */

  /* Requested bytes that are live. pair and cross: the most at once in the last batch. handoff: all that the first thread
   * of two ever allocated, less (in the second thread) all that the second thread has freed or begins to free. */
  int64_t live_bytes;
  int64_t published_bytes;         /* the part of `all_live_bytes` that is of this worker */
  _Atomic int64_t *all_live_bytes; /* of all workers together */
  int64_t peak_bytes;              /* the most seen: of this worker, and of all together */
  uint64_t failures;
  char *failure_reason;
  struct bench_times times;
};

/* What a workload does; the ops are called in this order. */
struct bench_ops {
  /* Allocates host memory before any thread runs. False: there is not enough. */
  bool (*prepare)(struct bench_worker *worker, struct bench_worker *workers);
  /* In the thread, before the warm-up. */
  void (*begin)(struct bench_worker *worker);
  /* Waits, unmeasured, until there is work. False: the work has ended. */
  bool (*ready)(struct bench_worker *worker);
  /* True: the thread continues after its time is over, until `ready` returns false. */
  bool (*drains)(const struct bench_worker *worker);
  /* Performs some operations and returns their number. `sample` times each of them. */
  size_t (*batch)(struct bench_worker *worker);
  size_t (*sample)(struct bench_worker *worker);
  /* In the thread, after its last batch; and after the last batch of all threads. */
  void (*end)(struct bench_worker *worker);
  void (*clean)(struct bench_worker *worker);
  /* Frees the host memory. */
  void (*release)(struct bench_worker *worker);
};

extern const struct bench_ops bench_pair_ops, bench_random_ops, bench_cross_ops, bench_handoff_ops;

/* `timed` is a constant in every call, so the compiler removes its tests. A failed allocation gives NULL. */
static inline void *bench_allocate(struct bench_worker *worker, size_t bytes, hipmm_stream_t stream, bool timed)
{
  void *ptr = NULL;
  uint64_t before = timed ? bench_tick_before() : 0;
  enum hipmm_status status = hipmm_allocate(worker->resource, bytes, stream, &ptr);
  if (timed) bench_times_add(&worker->times, before, bench_tick_after());
  if (__builtin_expect(status != HIPMM_OK, 0)) bench_count_failure(&worker->failures, &worker->failure_reason);
  return ptr;
}

static inline void bench_free(struct bench_worker *worker, void *ptr, size_t bytes, hipmm_stream_t stream, bool timed)
{
  if (__builtin_expect(!ptr, 0)) return;
  uint64_t before = timed ? bench_tick_before() : 0;
  enum hipmm_status status = hipmm_deallocate(worker->resource, ptr, bytes, stream);
  if (timed) bench_times_add(&worker->times, before, bench_tick_after());
  if (__builtin_expect(status != HIPMM_OK, 0)) bench_count_failure(&worker->failures, &worker->failure_reason);
}

static inline void bench_raise_peak(struct bench_worker *worker, int64_t live_bytes)
{
  if (live_bytes > worker->peak_bytes) worker->peak_bytes = live_bytes;
}

/* Brings the sum over all workers up to date, after the worker allocated and before the worker frees: the sum is then
 * never more than what is live. */
static inline void bench_publish(struct bench_worker *worker)
{
  int64_t change = worker->live_bytes - worker->published_bytes;
  worker->published_bytes = worker->live_bytes;
  bench_raise_peak(worker, atomic_fetch_add_explicit(worker->all_live_bytes, change, memory_order_acq_rel) + change);
}

#endif
