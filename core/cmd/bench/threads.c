/* SPDX-License-Identifier: MIT */
/* threads.c: runs a workload in threads and measures it. All are ready, warm and waiting before the measured part
 * begins, and all have ended it before any of them cleans up. */
#include "streams.h"
#include "worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* What a thread has live between two batches; each in a cache line of its own. */
struct published {
  _Alignas(64) _Atomic int64_t live_bytes;
};

/* What the threads of a run share. */
struct squad {
  const struct bench_plan *plan;
  const struct bench_ops *ops;
  int64_t run_ns, began_ns;
  uint64_t began_tick;
  double ns_per_tick;
  struct bench_calls calls;
  struct published *published; /* one for each thread */
  pthread_mutex_t gate;        /* held until it is known how many threads there are */
  bool given_up;
  pthread_barrier_t barrier;
};

struct member {
  struct squad *squad;
  struct bench_worker *worker;
  pthread_t thread;
  uint64_t ops;
  int64_t spent_ns, peak_bytes; /* the most that all threads together had live when this one looked */
};

static const struct bench_ops *bench_threads_squad_ops(enum bench_workload workload)
{
  switch (workload) {
  case BENCH_RANDOM: return &bench_random_ops;
  case BENCH_CROSS: return &bench_cross_ops;
  case BENCH_HANDOFF: return &bench_handoff_ops;
  default: return &bench_pair_ops;
  }
}

/* ---- In the thread --------------------------------------------------------------------------------------------- */

/* Between batches, unmeasured: what do all have live? */
static void bench_threads_member_look(struct member *member)
{
  struct squad *squad = member->squad;
  const struct bench_worker *worker = member->worker;
  int64_t together = 0;
  atomic_store_explicit(&squad->published[worker->index].live_bytes, worker->live_bytes, memory_order_release);
  for (size_t i = 0; i < squad->plan->threads; i++)
    together += atomic_load_explicit(&squad->published[i].live_bytes, memory_order_acquire);
  if (together > member->peak_bytes) member->peak_bytes = together;
}

static void bench_threads_member_warm_up(struct member *member)
{
  const struct bench_ops *ops = member->squad->ops;
  bench_times_start(&member->worker->times);
  if (ops->begin) ops->begin(member->worker);
  for (int i = 0; i < BENCH_WARM_BATCHES; i++) {
    if (ops->ready) ops->ready(member->worker);
    ops->batch(member->worker);
    bench_threads_member_look(member);
  }
}

/* Every so many batches one is sampled, and does not count for the mean: reading the clock takes as long as a fast
 * operation. */
static void bench_threads_member_measure(struct member *member)
{
  const struct bench_ops *ops = member->squad->ops;
  struct bench_worker *worker = member->worker;
  int64_t began_ns = bench_now_ns(), end_ns;
  uint64_t batches = 0;
  do {
    if (ops->ready && !ops->ready(worker)) break;
    if (batches++ % BENCH_SAMPLED == 0) {
      ops->sample(worker);
      if (ops->ready && !ops->ready(worker)) break;
    }
    int64_t start_ns = bench_now_ns();
    member->ops += ops->batch(worker);
    end_ns = bench_now_ns();
    member->spent_ns += end_ns - start_ns;
    bench_threads_member_look(member);
  } while (end_ns - began_ns < member->squad->run_ns || (ops->drains && ops->drains(worker)));
  if (ops->end) ops->end(worker);
}

static void bench_threads_member_begin_together(struct squad *squad)
{
  if (pthread_barrier_wait(&squad->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
    squad->began_ns = bench_now_ns();
    squad->began_tick = bench_tick_before();
    bench_calls_start(&squad->calls);
  }
  pthread_barrier_wait(&squad->barrier);
}

static void bench_threads_member_end_together(struct squad *squad)
{
  if (pthread_barrier_wait(&squad->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
    bench_calls_stop(&squad->calls);
    uint64_t ticks = bench_tick_after() - squad->began_tick;
    squad->ns_per_tick = (double)(bench_now_ns() - squad->began_ns) / (double)(ticks ? ticks : 1);
  }
  pthread_barrier_wait(&squad->barrier);
}

static void *bench_threads_member_run(void *closure)
{
  struct member *member = closure;
  struct squad *squad = member->squad;
  pthread_mutex_lock(&squad->gate);
  pthread_mutex_unlock(&squad->gate);
  if (squad->given_up) return NULL;
  bench_threads_member_warm_up(member);
  bench_threads_member_begin_together(squad);
  bench_threads_member_measure(member);
  bench_threads_member_end_together(squad);
  if (squad->ops->clean) squad->ops->clean(member->worker);
  return NULL;
}

/* ---- Around the threads ---------------------------------------------------------------------------------------- */

/* Starts all threads and waits for their end. False: not all could be started, and none did anything. */
static bool bench_threads_squad_run(struct squad *squad, struct member *members)
{
  size_t n = squad->plan->threads, started = 0;
  pthread_mutex_init(&squad->gate, NULL);
  pthread_barrier_init(&squad->barrier, NULL, (unsigned)n);
  pthread_mutex_lock(&squad->gate);
  while (started < n &&
         pthread_create(&members[started].thread, NULL, bench_threads_member_run, &members[started]) == 0)
    started++;
  squad->given_up = started < n;
  pthread_mutex_unlock(&squad->gate);
  for (size_t i = 0; i < started; i++) pthread_join(members[i].thread, NULL);
  pthread_barrier_destroy(&squad->barrier);
  pthread_mutex_destroy(&squad->gate);
  if (squad->given_up) say("bench: only %zu of %zu threads could be started", started, n);
  return !squad->given_up;
}

static void bench_threads_squad_add_up(const struct squad *squad, const struct member *members,
                                       struct bench_round *round)
{
  int64_t spent_ns = 0;
  for (size_t i = 0; i < squad->plan->threads; i++) {
    struct bench_worker *worker = members[i].worker;
    round->ops += members[i].ops;
    spent_ns += members[i].spent_ns;
    int64_t peak_bytes = worker->peak_bytes > members[i].peak_bytes ? worker->peak_bytes : members[i].peak_bytes;
    if (peak_bytes > (int64_t)round->peak_requested_bytes) round->peak_requested_bytes = (uint64_t)peak_bytes;
    round->failures += worker->failures;
    if (!round->failure_reason) {
      round->failure_reason = worker->failure_reason;
      worker->failure_reason = NULL;
    }
    worker->times.ns_per_tick = squad->ns_per_tick;
    bench_times_merge(round->times, &worker->times);
  }
  round->ns_per_op = round->ops ? (double)spent_ns / (double)round->ops : 0;
  round->calls = squad->calls;
}

/* How many streams there are from one thread's first to the next thread's. */
static size_t bench_threads_squad_first_stream(const struct bench_plan *plan, size_t thread)
{
  return plan->workload == BENCH_HANDOFF ? thread / 2 * plan->streams : thread * plan->streams;
}

static bool bench_threads_squad_prepare(struct squad *squad, struct member *members, struct bench_worker *workers,
                                        const struct bench_worker *model)
{
  for (size_t i = 0; i < squad->plan->threads; i++) {
    workers[i] = *model;
    workers[i].index = i;
    workers[i].streams += bench_threads_squad_first_stream(squad->plan, i);
    members[i] = (struct member){.squad = squad, .worker = &workers[i]};
    if (squad->ops->prepare && !squad->ops->prepare(&workers[i], workers)) return false;
  }
  return true;
}

static void bench_threads_squad_release(const struct squad *squad, struct bench_worker *workers)
{
  for (size_t i = 0; workers && i < squad->plan->threads; i++) {
    if (squad->ops->release) squad->ops->release(&workers[i]);
    free(workers[i].failure_reason);
  }
  free(workers);
}

static bool bench_threads_squad_play(struct squad *squad, const struct bench_worker *model, struct bench_round *round)
{
  size_t n = squad->plan->threads;
  struct bench_worker *workers = calloc(n, sizeof *workers);
  struct member *members = calloc(n, sizeof *members);
  squad->published = aligned_alloc(sizeof *squad->published, n * sizeof *squad->published);
  for (size_t i = 0; squad->published && i < n; i++) squad->published[i] = (struct published){0};
  bool good = workers && members && squad->published && bench_threads_squad_prepare(squad, members, workers, model);
  if (!good)
    say("bench: out of memory");
  else if ((good = bench_threads_squad_run(squad, members)))
    bench_threads_squad_add_up(squad, members, round);
  bench_threads_squad_release(squad, workers);
  free(members);
  free(squad->published);
  return good;
}

bool bench_threads_play(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                        struct bench_round *round)
{
  struct squad squad = {.plan = plan, .ops = bench_threads_squad_ops(plan->workload), .run_ns = run_ns};
  struct bench_worker model = {.plan = plan, .resource = resource};
  size_t n_streams = bench_threads_squad_first_stream(plan, plan->threads);
  if (!bench_streams_make(n_streams, &model.streams)) return false;
  bool good = bench_threads_squad_play(&squad, &model, round);
  bench_streams_destroy(n_streams, model.streams);
  return good;
}
