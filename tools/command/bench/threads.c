/* SPDX-License-Identifier: MIT */
/* threads.c: runs a workload in threads and measures it. The measured part begins when all threads have warmed up, and
 * no thread cleans up before all have ended the measured part. */
#include "../play/streams.h"
#include "worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* What the threads of a run share. */
struct team {
  const struct bench_plan *plan;
  const struct bench_ops *ops;
  int64_t run_ns, began_ns;
  uint64_t began_tick;
  double ns_per_tick;
  struct call_counts calls;
  struct progress progress; /* shown by the first thread */
  pthread_mutex_t gate;     /* held until the number of threads is known */
  bool given_up;
  pthread_barrier_t barrier;
  _Alignas(64) _Atomic int64_t live_bytes; /* of all threads, between two batches */
};

struct member {
  struct team *team;
  struct bench_worker *worker;
  pthread_t thread;
  uint64_t ops;
  int64_t spent_ns;
};

static const struct bench_ops *bench_threads_ops_of(enum bench_workload workload)
{
  switch (workload) {
  case BENCH_RANDOM: return &bench_random_ops;
  case BENCH_CROSS: return &bench_cross_ops;
  case BENCH_HANDOFF: return &bench_handoff_ops;
  default: return &bench_pair_ops;
  }
}

/* ---- In the thread --------------------------------------------------------------------------------------------- */

static void bench_threads_warm_up(struct member *member)
{
  const struct bench_ops *ops = member->team->ops;
  bench_times_start(&member->worker->times);
  if (ops->begin) ops->begin(member->worker);
  for (int i = 0; i < BENCH_WARM_BATCHES; i++) {
    if (ops->ready) ops->ready(member->worker);
    ops->batch(member->worker);
    bench_publish(member->worker);
  }
}

/* One batch in BENCH_SAMPLED is sampled. It does not count for the mean, since reading the clock takes as long as a fast
 * operation. */
static void bench_threads_measure(struct member *member)
{
  const struct bench_ops *ops = member->team->ops;
  struct bench_worker *worker = member->worker;
  int64_t began_ns = cmd_now_ns(), end_ns;
  uint64_t batches = 0;
  do {
    if (ops->ready && !ops->ready(worker)) break;
    if (batches++ % BENCH_SAMPLED == 0) {
      ops->sample(worker);
      if (ops->ready && !ops->ready(worker)) break;
    }
    int64_t start_ns = cmd_now_ns();
    member->ops += ops->batch(worker);
    end_ns = cmd_now_ns();
    member->spent_ns += end_ns - start_ns;
    bench_publish(worker);
    if (worker->index == 0)
      progress_show(&member->team->progress, (uint64_t)(end_ns - began_ns), (uint64_t)member->team->run_ns);
  } while (end_ns - began_ns < member->team->run_ns || (ops->drains && ops->drains(worker)));
  if (ops->end) ops->end(worker);
}

static void bench_threads_begin_together(struct team *team)
{
  if (pthread_barrier_wait(&team->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
    team->began_ns = cmd_now_ns();
    team->began_tick = bench_tick_before();
    call_counts_start(&team->calls);
  }
  pthread_barrier_wait(&team->barrier);
}

static void bench_threads_end_together(struct team *team)
{
  if (pthread_barrier_wait(&team->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
    call_counts_stop(&team->calls);
    uint64_t ticks = bench_tick_after() - team->began_tick;
    team->ns_per_tick = (double)(cmd_now_ns() - team->began_ns) / (double)(ticks ? ticks : 1);
  }
  pthread_barrier_wait(&team->barrier);
}

static void *bench_threads_main(void *closure)
{
  struct member *member = closure;
  struct team *team = member->team;
  pthread_mutex_lock(&team->gate);
  pthread_mutex_unlock(&team->gate);
  if (team->given_up) return NULL;
  bench_threads_warm_up(member);
  bench_threads_begin_together(team);
  bench_threads_measure(member);
  bench_threads_end_together(team);
  if (team->ops->clean) team->ops->clean(member->worker);
  return NULL;
}

/* ---- Around the threads ---------------------------------------------------------------------------------------- */

/* Starts all threads and waits for their end. False: a thread could not be started, and no thread did anything. */
static bool bench_threads_run(struct team *team, struct member *members)
{
  size_t n = team->plan->threads, started = 0;
  pthread_mutex_init(&team->gate, NULL);
  pthread_barrier_init(&team->barrier, NULL, (unsigned)n);
  pthread_mutex_lock(&team->gate);
  while (started < n && pthread_create(&members[started].thread, NULL, bench_threads_main, &members[started]) == 0)
    started++;
  team->given_up = started < n;
  pthread_mutex_unlock(&team->gate);
  for (size_t i = 0; i < started; i++) pthread_join(members[i].thread, NULL);
  pthread_barrier_destroy(&team->barrier);
  pthread_mutex_destroy(&team->gate);
  if (team->given_up) say("bench: only %zu of %zu threads could be started", started, n);
  return !team->given_up;
}

static void bench_threads_add_up(const struct team *team, const struct member *members, struct bench_round *round)
{
  int64_t spent_ns = 0;
  for (size_t i = 0; i < team->plan->threads; i++) {
    struct bench_worker *worker = members[i].worker;
    round->ops += members[i].ops;
    spent_ns += members[i].spent_ns;
    if (worker->peak_bytes > (int64_t)round->peak_requested_bytes)
      round->peak_requested_bytes = (uint64_t)worker->peak_bytes;
    round->failures += worker->failures;
    if (!round->failure_reason) {
      round->failure_reason = worker->failure_reason;
      worker->failure_reason = NULL;
    }
    worker->times.ns_per_tick = team->ns_per_tick;
    bench_times_merge(round->times, &worker->times);
  }
  round->ns_per_op = round->ops ? (double)spent_ns / (double)round->ops : 0;
  round->calls = team->calls;
}

/* How many streams there are from one thread's first to the next thread's. */
static size_t bench_threads_first_stream(const struct bench_plan *plan, size_t thread)
{
  return plan->workload == BENCH_HANDOFF ? thread / 2 * plan->streams : thread * plan->streams;
}

static bool bench_threads_prepare(struct team *team, struct member *members, struct bench_worker *workers,
                                  const struct bench_worker *model)
{
  for (size_t i = 0; i < team->plan->threads; i++) {
    workers[i] = *model;
    workers[i].index = i;
    workers[i].all_live_bytes = &team->live_bytes;
    workers[i].streams += bench_threads_first_stream(team->plan, i);
    members[i] = (struct member){.team = team, .worker = &workers[i]};
    if (team->ops->prepare && !team->ops->prepare(&workers[i], workers)) return false;
  }
  return true;
}

static void bench_threads_release(const struct team *team, struct bench_worker *workers)
{
  for (size_t i = 0; workers && i < team->plan->threads; i++) {
    if (team->ops->release) team->ops->release(&workers[i]);
    free(workers[i].failure_reason);
  }
  free(workers);
}

static bool bench_threads_play_on(struct team *team, const struct bench_worker *model, struct bench_round *round)
{
  size_t n = team->plan->threads;
  struct bench_worker *workers = calloc(n, sizeof *workers);
  struct member *members = calloc(n, sizeof *members);
  bool good = workers && members && bench_threads_prepare(team, members, workers, model);
  if (!good)
    say("bench: out of memory");
  else if ((good = bench_threads_run(team, members)))
    bench_threads_add_up(team, members, round);
  bench_threads_release(team, workers);
  free(members);
  return good;
}

bool bench_threads_play(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                        struct bench_round *round)
{
  struct team team = {.plan = plan, .ops = bench_threads_ops_of(plan->workload), .run_ns = run_ns};
  struct bench_worker model = {.plan = plan, .resource = resource};
  size_t n_streams = bench_threads_first_stream(plan, plan->threads);
  if (!streams_make(NULL, n_streams, BENCH_DEVICE, &model.streams)) return false;
  if (!plan->compare) progress_start(&team.progress, bench_workload_name(plan->workload));
  bool good = bench_threads_play_on(&team, &model, round);
  progress_end(&team.progress);
  streams_destroy(NULL, n_streams, BENCH_DEVICE, model.streams);
  return good;
}
