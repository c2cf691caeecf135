/* SPDX-License-Identifier: MIT */
/* play.c: see play.h. */
#include "play.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void play_fail(struct play_result *result, uint32_t line, const char *reason)
{
  result->is_good = false;
  result->line = line;
  snprintf(result->reason, sizeof result->reason, "%s", reason ? reason : "out of host memory");
}

static void play_measure(const struct play *play, struct player *player, struct play_result *result)
{
  uint64_t live_at_end;
  size_t held_now, held_bytes;
  struct call_counts calls;
  double ns = 0;
  player->watcher = play->watcher;
  player->stops_at_failure = true;
  player->clock = CLOCK_THREAD_CPUTIME_ID; /* whatever else the machine does */
  call_counts_start(&calls);
  for (long pass = 0; pass < play->passes && !player->failures; pass++) ns += player_play(player);
  call_counts_stop(&calls);
  call_counts_add(&result->calls, &calls);
  if (player->failures) {
    play_fail(result, player->failure_line, player->failure_reason);
  } else if (hipmm_device_held_bytes(play->device, &held_now, &held_bytes) != HIPMM_OK) {
    play_fail(result, 0, hipmm_last_error_message());
  } else {
    player_tally(player, &result->peak_requested_bytes, &live_at_end);
    result->held_bytes = held_bytes;
    result->ns = ns / (double)play->passes;
    result->is_good = true;
  }
}

static void play_through(const struct play *play, struct hipmm_resource *resource, struct play_result *result)
{
  const struct trace *trace = play->trace;
  hipmm_stream_t *streams;
  struct player player;
  if (!streams_make(trace->streams, trace->n_streams, play->device, &streams)) {
    play_fail(result, 0, "the streams cannot be created");
    return;
  }
  if (player_start(&player, trace, resource, streams)) {
    play_measure(play, &player, result);
    player_end(&player);
  } else {
    play_fail(result, 0, NULL);
  }
  streams_destroy(trace->streams, trace->n_streams, play->device, streams);
}

static void play_build(const struct play *play, struct play_result *result)
{
  struct hipmm_resource *resource;
  result->counts_calls = call_counts_find();
  call_counts_start(&result->calls);
  bool is_built = hipmm_resource_get_for_device(play->device, &resource) == HIPMM_OK;
  call_counts_stop(&result->calls);
  if (!is_built) {
    play_fail(result, 0, hipmm_last_error_message());
    return;
  }
  play_through(play, resource, result);
  hipmm_resource_release(resource);
}

void play_set_software(const char *name, const char *value)
{
  char settings[1024];
  const char *given = getenv("HIPMM_SOFTWARE");
  size_t length = strlen(name);
  for (const char *at = given; at; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, name, length) == 0 && at[length] == '=') return;
  }
  bool is_first = !given || !*given;
  snprintf(settings, sizeof settings, "%s%s%s=%s", is_first ? "" : given, is_first ? "" : ",", name, value);
  setenv("HIPMM_SOFTWARE", settings, 1);
}

struct play_result play_graph(const struct play *play, const char *graph)
{
  struct play_result result = {.is_good = false};
  if (!graph) {
    play_fail(&result, 0, NULL);
  } else if (hipmm_init_from_string(graph) != HIPMM_OK) {
    play_fail(&result, 0, hipmm_last_error_message());
  } else {
    play_build(play, &result);
    snprintf(result.runtime, sizeof result.runtime, "%s", hipmm_runtime());
    hipmm_finalize();
  }
  return result;
}
