/* SPDX-License-Identifier: MIT */
/* handoff.c: the workload `handoff`: of each two threads the first allocates and the second frees. The blocks pass in
 * batches through a ring with one writer and one reader. The time of waiting for the other thread does not count. */
#include "worker.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { RING_SLOTS = 8, RING_LINE = 64 };

struct bench_ring {
  _Alignas(RING_LINE) atomic_size_t written;     /* batches so far, by the first thread */
  atomic_bool over;                              /* no more will be written */
  _Alignas(RING_LINE) atomic_size_t read;        /* batches so far, by the second thread */
  _Alignas(RING_LINE) size_t blocks[RING_SLOTS]; /* how many blocks of the batch are no failures; of the first thread */
  _Alignas(RING_LINE) void *slots[RING_SLOTS][BENCH_BATCH];
};

static bool bench_handoff_frees(const struct bench_worker *worker)
{
  return worker->index % 2 == 1;
}

static bool bench_handoff_prepare(struct bench_worker *worker, struct bench_worker *workers)
{
  if (bench_handoff_frees(worker)) {
    worker->ring = workers[worker->index - 1].ring;
    return true;
  }
  worker->ring = aligned_alloc(RING_LINE, sizeof *worker->ring);
  if (worker->ring) *worker->ring = (struct bench_ring){0};
  return worker->ring != NULL;
}

static void bench_handoff_release(struct bench_worker *worker)
{
  if (!bench_handoff_frees(worker)) free(worker->ring);
}

static bool bench_handoff_ready_to_write(struct bench_worker *worker)
{
  struct bench_ring *ring = worker->ring;
  size_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
  while (atomic_load_explicit(&ring->read, memory_order_acquire) + RING_SLOTS == written) sched_yield();
  return true;
}

static bool bench_handoff_ready_to_read(struct bench_worker *worker)
{
  struct bench_ring *ring = worker->ring;
  size_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
  for (;;) {
    bool over = atomic_load_explicit(&ring->over, memory_order_acquire); /* read first: nothing is written after it */
    if (atomic_load_explicit(&ring->written, memory_order_acquire) != read) return true;
    if (over) return false;
    sched_yield();
  }
}

static bool bench_handoff_ready(struct bench_worker *worker)
{
  return bench_handoff_frees(worker) ? bench_handoff_ready_to_read(worker) : bench_handoff_ready_to_write(worker);
}

static inline void bench_handoff_write(struct bench_worker *worker, bool timed)
{
  struct bench_ring *ring = worker->ring;
  size_t written = atomic_load_explicit(&ring->written, memory_order_relaxed), bytes = worker->plan->size_bytes;
  hipmm_stream_t stream = worker->streams[0];
  void **slot = ring->slots[written % RING_SLOTS];
  size_t blocks = 0;
  for (int i = 0; i < BENCH_BATCH; i++) {
    slot[i] = bench_allocate(worker, bytes, stream, timed);
    blocks += slot[i] != NULL;
  }
  ring->blocks[written % RING_SLOTS] = blocks;
  worker->live_bytes += (int64_t)(blocks * bytes);
  bench_publish(worker);
  atomic_store_explicit(&ring->written, written + 1, memory_order_release);
}

static inline void bench_handoff_read(struct bench_worker *worker, bool timed)
{
  struct bench_ring *ring = worker->ring;
  size_t read = atomic_load_explicit(&ring->read, memory_order_relaxed), bytes = worker->plan->size_bytes;
  hipmm_stream_t stream = worker->streams[worker->plan->streams - 1];
  void **slot = ring->slots[read % RING_SLOTS];
  worker->live_bytes -= (int64_t)(ring->blocks[read % RING_SLOTS] * bytes);
  bench_publish(worker);
  for (int i = 0; i < BENCH_BATCH; i++) bench_free(worker, slot[i], bytes, stream, timed);
  atomic_store_explicit(&ring->read, read + 1, memory_order_release);
}

static inline size_t bench_handoff_run(struct bench_worker *worker, bool timed)
{
  if (bench_handoff_frees(worker))
    bench_handoff_read(worker, timed);
  else
    bench_handoff_write(worker, timed);
  return BENCH_BATCH;
}

static size_t bench_handoff_batch(struct bench_worker *worker)
{
  return bench_handoff_run(worker, false);
}

static size_t bench_handoff_sample(struct bench_worker *worker)
{
  return bench_handoff_run(worker, true);
}

static void bench_handoff_end(struct bench_worker *worker)
{
  if (!bench_handoff_frees(worker)) atomic_store_explicit(&worker->ring->over, true, memory_order_release);
}

const struct bench_ops bench_handoff_ops = {.prepare = bench_handoff_prepare,
                                            .ready = bench_handoff_ready,
                                            .drains = bench_handoff_frees,
                                            .batch = bench_handoff_batch,
                                            .sample = bench_handoff_sample,
                                            .end = bench_handoff_end,
                                            .release = bench_handoff_release};
