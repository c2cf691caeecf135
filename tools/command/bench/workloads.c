/* SPDX-License-Identifier: MIT */
/* workloads.c: the workloads whose threads free their own blocks: `pair`, `random` and `cross`. The body of each is
 * inlined twice: into the measured batch, and into the batch that times every operation. */
#include "draw.h"
#include "worker.h"

#include <stdlib.h>

/* ---- pair: allocate, free at once ------------------------------------------------------------------------------ */

static inline size_t bench_pair_run(struct bench_worker *worker, bool timed)
{
  size_t bytes = worker->plan->size_bytes;
  hipmm_stream_t stream = worker->streams[0];
  bool any = false;
  for (int i = 0; i < BENCH_BATCH; i++) {
    void *ptr = bench_allocate(worker, bytes, stream, timed);
    any |= ptr != NULL;
    bench_free(worker, ptr, bytes, stream, timed);
  }
  worker->live_bytes = any ? (int64_t)bytes : 0;
  bench_raise_peak(worker, worker->live_bytes);
  return 2 * BENCH_BATCH;
}

static size_t bench_pair_batch(struct bench_worker *worker)
{
  return bench_pair_run(worker, false);
}

static size_t bench_pair_sample(struct bench_worker *worker)
{
  return bench_pair_run(worker, true);
}

const struct bench_ops bench_pair_ops = {.batch = bench_pair_batch, .sample = bench_pair_sample};

/* ---- random: half allocations and half frees, at random ----------------------------------------------------------- */

struct walk_block {
  void *ptr;
  size_t bytes;
  hipmm_stream_t stream;
};

struct bench_walk {
  struct bench_step *steps;
  size_t at, live;
  struct walk_block *blocks;
};

static void bench_random_release(struct bench_worker *worker)
{
  if (!worker->walk) return;
  free(worker->walk->steps);
  free(worker->walk->blocks);
  free(worker->walk);
}

static bool bench_random_prepare(struct bench_worker *worker, struct bench_worker *workers)
{
  (void)workers;
  struct bench_walk *walk = worker->walk = calloc(1, sizeof *walk);
  if (!walk) return false;
  walk->steps = calloc(BENCH_STEPS, sizeof *walk->steps);
  walk->blocks = calloc(worker->plan->live, sizeof *walk->blocks);
  return walk->steps && walk->blocks;
}

static inline void bench_random_allocate(struct bench_worker *worker, const struct bench_step *step, bool timed)
{
  struct bench_walk *walk = worker->walk;
  struct walk_block block = {NULL, step->bytes, worker->streams[step->stream]};
  block.ptr = bench_allocate(worker, block.bytes, block.stream, timed);
  if (!block.ptr) return;
  walk->blocks[walk->live++] = block;
  worker->live_bytes += (int64_t)block.bytes;
  bench_raise_peak(worker, worker->live_bytes);
}

static inline void bench_random_free(struct bench_worker *worker, size_t index, bool timed)
{
  struct bench_walk *walk = worker->walk;
  struct walk_block block = walk->blocks[index];
  walk->blocks[index] = walk->blocks[--walk->live];
  worker->live_bytes -= (int64_t)block.bytes;
  bench_free(worker, block.ptr, block.bytes, block.stream, timed);
}

static inline size_t bench_random_run(struct bench_worker *worker, bool timed)
{
  struct bench_walk *walk = worker->walk;
  size_t most = worker->plan->live;
  for (int i = 0; i < BENCH_BATCH; i++) {
    const struct bench_step *step = &walk->steps[walk->at++ % BENCH_STEPS];
    if (walk->live == 0 || (walk->live < most && step->allocate))
      bench_random_allocate(worker, step, timed);
    else
      bench_random_free(worker, (size_t)(((uint64_t)step->pick * walk->live) >> 32), timed);
  }
  return BENCH_BATCH;
}

static size_t bench_random_batch(struct bench_worker *worker)
{
  return bench_random_run(worker, false);
}

static size_t bench_random_sample(struct bench_worker *worker)
{
  return bench_random_run(worker, true);
}

/* Half of the blocks are live at the beginning, as on average later. */
static void bench_random_begin(struct bench_worker *worker)
{
  struct bench_walk *walk = worker->walk;
  bench_draw(worker->plan, worker->index, walk->steps);
  for (size_t i = 0; i < worker->plan->live / 2; i++) {
    struct bench_step *step = &walk->steps[walk->at++ % BENCH_STEPS];
    step->allocate = 1;
    bench_random_allocate(worker, step, false);
  }
}

static void bench_random_clean(struct bench_worker *worker)
{
  while (worker->walk->live > 0) bench_random_free(worker, worker->walk->live - 1, false);
}

const struct bench_ops bench_random_ops = {.prepare = bench_random_prepare,
                                           .begin = bench_random_begin,
                                           .batch = bench_random_batch,
                                           .sample = bench_random_sample,
                                           .clean = bench_random_clean,
                                           .release = bench_random_release};

/* ---- cross: a turn allocates and frees on one stream, the next turn on the next ---------------------------------- */

static bool bench_cross_prepare(struct bench_worker *worker, struct bench_worker *workers)
{
  (void)workers;
  worker->blocks = calloc(worker->plan->live, sizeof *worker->blocks);
  return worker->blocks != NULL;
}

static void bench_cross_release(struct bench_worker *worker)
{
  free(worker->blocks);
}

/* Returns how many blocks were live at once. */
static inline size_t bench_cross_turn(struct bench_worker *worker, bool timed)
{
  size_t got = 0;
  size_t bytes = worker->plan->size_bytes, live = worker->plan->live;
  hipmm_stream_t stream = worker->streams[worker->turn];
  worker->turn = worker->turn + 1 < worker->plan->streams ? worker->turn + 1 : 0;
  for (size_t i = 0; i < live; i++) {
    worker->blocks[i] = bench_allocate(worker, bytes, stream, timed);
    got += worker->blocks[i] != NULL;
  }
  for (size_t i = 0; i < live; i++) bench_free(worker, worker->blocks[i], bytes, stream, timed);
  return got;
}

static inline size_t bench_cross_run(struct bench_worker *worker, bool timed)
{
  size_t pairs = 0, most = 0;
  for (; pairs < BENCH_BATCH; pairs += worker->plan->live) {
    size_t got = bench_cross_turn(worker, timed);
    if (got > most) most = got;
  }
  worker->live_bytes = (int64_t)(most * worker->plan->size_bytes);
  bench_raise_peak(worker, worker->live_bytes);
  return 2 * pairs;
}

static size_t bench_cross_batch(struct bench_worker *worker)
{
  return bench_cross_run(worker, false);
}

static size_t bench_cross_sample(struct bench_worker *worker)
{
  return bench_cross_run(worker, true);
}

const struct bench_ops bench_cross_ops = {.prepare = bench_cross_prepare,
                                          .batch = bench_cross_batch,
                                          .sample = bench_cross_sample,
                                          .release = bench_cross_release};
