/* SPDX-License-Identifier: MIT */
/* replay_workload.c: the workload `replay`: the events of a trace in order, several times on one stack. player.c plays
 * the passes; this file adds a last pass in which every operation is timed. */
#include "bench.h"

#include "../play/player.h"
#include "../play/streams.h"
#include <stdlib.h>
#include <string.h>

/* ---- The pass that times every operation --------------------------------------------------------------------- */

struct timed_pass {
  struct player *player;
  struct bench_round *round;
  void **live; /* by slot; NULL: its allocation failed, or it is the null slot's */
};

/* The player has counted the events that failed in an earlier pass. */
static void bench_replay_count_failure(struct timed_pass *pass, enum hipmm_status status, size_t index)
{
  if (status != HIPMM_OK && !pass->player->failed[index])
    bench_count_failure(&pass->round->failures, &pass->round->failure_reason);
}

static void bench_replay_timed_allocate(struct timed_pass *pass, size_t index)
{
  struct player *player = pass->player;
  const struct trace_event *event = &player->trace->events[index];
  void *ptr = NULL;
  uint64_t before = bench_tick_before();
  enum hipmm_status status = hipmm_allocate(player->resource, event->bytes, player->streams[event->stream], &ptr);
  bench_times_add(pass->round->times, before, bench_tick_after());
  bench_replay_count_failure(pass, status, index);
  pass->live[event->slot] = ptr;
}

static void bench_replay_timed_free(struct timed_pass *pass, size_t index)
{
  struct player *player = pass->player;
  const struct trace_event *event = &player->trace->events[index];
  void *ptr = pass->live[event->slot];
  if (!ptr && event->slot != TRACE_NULL_SLOT) return;
  uint64_t before = bench_tick_before();
  enum hipmm_status status = hipmm_deallocate(player->resource, ptr, event->bytes, player->streams[event->stream]);
  bench_times_add(pass->round->times, before, bench_tick_after());
  bench_replay_count_failure(pass, status, index);
}

static bool bench_replay_timed_pass(struct player *player, struct bench_round *round)
{
  const struct trace *trace = player->trace;
  struct timed_pass pass = {player, round, calloc(trace->n_slots, sizeof *pass.live)};
  if (!pass.live) return false;
  int64_t began_ns = cmd_now_ns();
  uint64_t began_tick = bench_tick_before();
  for (size_t i = 0; i < trace->n_events; i++) {
    if (trace->events[i].is_free)
      bench_replay_timed_free(&pass, i);
    else
      bench_replay_timed_allocate(&pass, i);
  }
  uint64_t ticks = bench_tick_after() - began_tick;
  round->times->ns_per_tick = (double)(cmd_now_ns() - began_ns) / (double)(ticks ? ticks : 1);
  for (size_t i = 0; i < player->n_leftovers; i++) bench_replay_timed_free(&pass, player->leftovers[i]);
  free(pass.live);
  return true;
}

/* ---- The passes ------------------------------------------------------------------------------------------------ */

static void bench_replay_cold(struct player *player, struct bench_round *round)
{
  uint64_t live_at_end;
  call_counts_start(&round->cold_calls);
  round->cold_ns_per_op = player_play(player);
  call_counts_stop(&round->cold_calls);
  player_tally(player, &round->peak_requested_bytes, &live_at_end);
}

/* At least one pass; the time of all of them over all their operations. */
static void bench_replay_warm(struct player *player, int64_t run_ns, struct progress *progress,
                              struct bench_round *round)
{
  int64_t began_ns = cmd_now_ns();
  double spent_ns = 0;
  call_counts_start(&round->calls);
  do {
    double ns_per_op = player_play(player);
    uint64_t ops = player->trace->n_events - player->skipped;
    round->ops += ops;
    spent_ns += ns_per_op * (double)ops;
    progress_show(progress, (uint64_t)(cmd_now_ns() - began_ns), (uint64_t)run_ns);
  } while (cmd_now_ns() - began_ns < run_ns);
  call_counts_stop(&round->calls);
  round->ns_per_op = round->ops ? spent_ns / (double)round->ops : 0;
}

static bool bench_replay_passes(struct player *player, const struct bench_plan *plan, int64_t run_ns,
                                struct bench_round *round)
{
  struct progress progress = {.visible = false};
  if (!plan->compare) progress_start(&progress, "replay");
  bench_replay_cold(player, round);
  bench_replay_warm(player, run_ns, &progress, round);
  progress_end(&progress);
  round->failures = player->failures;
  round->failure_reason = player->failure_reason ? strdup(player->failure_reason) : NULL;
  bench_times_start(round->times);
  return bench_replay_timed_pass(player, round);
}

bool bench_replay_play(const struct bench_plan *plan, struct hipmm_resource *resource, int64_t run_ns,
                       struct bench_round *round)
{
  const struct trace *trace = &plan->trace;
  hipmm_stream_t *streams;
  struct player player;
  if (!streams_make(trace->streams, trace->n_streams, BENCH_DEVICE, &streams)) return false;
  bool good = player_start(&player, trace, resource, streams);
  if (good) {
    good = bench_replay_passes(&player, plan, run_ns, round);
    player_end(&player);
  }
  if (!good) say("bench: out of memory");
  streams_destroy(trace->streams, trace->n_streams, BENCH_DEVICE, streams);
  return good;
}
