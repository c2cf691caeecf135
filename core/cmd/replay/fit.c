/* SPDX-License-Identifier: MIT */
/* fit.c: `hipmm replay --fit`: the least budget, the smallest maximum_size with which the whole log runs without a failure. It
 * is found by playing the log again and again, each time on a new stack, with a maximum between one that was too small and
 * one that was enough. Called by replay.c.
 *
 * With several pools, each gets its least maximum in turn, from the top of the stack down, while those that come later have
 * none: a pool asks less of the pool below it when it has less itself. */
#include "replay.h"

#include "../../base/text.h"
#include "../../base/units.h"
#include "../streams.h"
#include <stdlib.h>
#include <string.h>

/* The budget is found to one part in so many, or to a page. */
enum { FIT_PARTS = 2048, FIT_LEAST_STEP = 4096, FIT_MOST_WIDENINGS = 24 };

struct fit {
  const struct replay *replay;
  struct fit_graph graph;
  struct progress progress;
  uint64_t done_events, planned_events;
  uint64_t replays;
  uint64_t peak_requested_bytes;
  uint64_t held_bytes; /* by the device's stack at most, in the last replay that succeeded */
  char *runtime;
};

/* One replay: whether all of the log ran, and if not, why. */
struct fit_outcome {
  bool is_good;
  uint32_t line; /* 0: the stack could not be built */
  char reason[1024];
};

/* ---- One replay ------------------------------------------------------------------------------------------------ */

static void fit_show_progress(void *closure, uint64_t done, uint64_t total)
{
  struct fit *fit = closure;
  (void)total;
  progress_show(&fit->progress, fit->done_events + done, fit->planned_events);
}

static void fit_fail(struct fit_outcome *outcome, uint32_t line, const char *reason)
{
  outcome->is_good = false;
  outcome->line = line;
  snprintf(outcome->reason, sizeof outcome->reason, "%s", reason ? reason : "out of host memory");
}

static void fit_play(struct fit *fit, struct player *player, struct fit_outcome *outcome)
{
  const struct replay *replay = fit->replay;
  uint64_t live_at_end;
  size_t held_now, held_bytes;
  player->watcher = (struct trace_watcher){fit_show_progress, fit};
  player->stops_at_failure = true;
  for (long pass = 0; pass < replay->passes && !player->failures; pass++) {
    player_play(player);
    fit->done_events += replay->trace.n_events;
  }
  if (player->failures) {
    fit_fail(outcome, player->failure_line, player->failure_reason);
  } else if (hipmm_device_held_bytes((int)replay->device, &held_now, &held_bytes) != HIPMM_OK) {
    fit_fail(outcome, 0, hipmm_last_error_message());
  } else {
    player_tally(player, &fit->peak_requested_bytes, &live_at_end);
    fit->held_bytes = held_bytes;
    outcome->is_good = true;
  }
}

static void fit_play_through(struct fit *fit, struct hipmm_resource *resource, struct fit_outcome *outcome)
{
  const struct trace *trace = &fit->replay->trace;
  int device = (int)fit->replay->device;
  hipmm_stream_t *streams;
  struct player player;
  if (!streams_make(trace->streams, trace->n_streams, device, &streams)) {
    fit_fail(outcome, 0, "the streams cannot be created");
    return;
  }
  if (player_start(&player, trace, resource, streams)) {
    fit_play(fit, &player, outcome);
    player_end(&player);
  } else {
    fit_fail(outcome, 0, NULL);
  }
  streams_destroy(trace->streams, trace->n_streams, device, streams);
}

/* Plays the log on a new stack with the maxima that are set. */
static struct fit_outcome fit_try(struct fit *fit)
{
  struct hipmm_resource *resource;
  struct fit_outcome outcome = {.is_good = false};
  char *text = fit_graph_text(&fit->graph);
  fit->replays++;
  if (!text) {
    fit_fail(&outcome, 0, NULL);
    return outcome;
  }
  enum hipmm_status status = hipmm_init_from_string(text);
  free(text);
  if (status != HIPMM_OK) {
    fit_fail(&outcome, 0, hipmm_last_error_message());
    return outcome;
  }
  if (hipmm_resource_get_for_device((int)fit->replay->device, &resource) == HIPMM_OK) {
    fit_play_through(fit, resource, &outcome);
    hipmm_resource_release(resource);
  } else {
    fit_fail(&outcome, 0, hipmm_last_error_message());
  }
  if (!fit->runtime) fit->runtime = strdup(hipmm_runtime());
  hipmm_finalize();
  return outcome;
}

/* ---- The search ------------------------------------------------------------------------------------------------ */

static uint64_t fit_step(uint64_t bytes)
{
  uint64_t step = bytes / FIT_PARTS;
  return step > FIT_LEAST_STEP ? step : FIT_LEAST_STEP;
}

/* So many replays halve the range to one step. */
static uint64_t fit_count_replays(uint64_t bytes)
{
  uint64_t n = 2;
  for (uint64_t range = bytes; range > fit_step(bytes); range /= 2) n++;
  return n;
}

/* A maximum that is enough, from what was held without one upwards. False: none was found. */
static bool fit_find_enough(struct fit *fit, struct fit_pool *pool)
{
  uint64_t bytes = fit->held_bytes ? fit->held_bytes : FIT_LEAST_STEP;
  for (int i = 0; i < FIT_MOST_WIDENINGS; i++, bytes += bytes / 8) {
    pool->maximum_bytes = bytes;
    if (fit_try(fit).is_good) return true;
  }
  return false;
}

static bool fit_find_least(struct fit *fit, struct fit_pool *pool)
{
  if (!fit_find_enough(fit, pool)) return false;
  uint64_t too_small = 0, enough = pool->maximum_bytes, step = fit_step(enough);
  while (enough - too_small > step) {
    pool->maximum_bytes = too_small + (enough - too_small) / 2;
    *(fit_try(fit).is_good ? &enough : &too_small) = pool->maximum_bytes;
  }
  pool->maximum_bytes = enough;
  return true;
}

/* The last replay tells what is held with all least maxima. */
static bool fit_search(struct fit *fit)
{
  progress_start(&fit->progress, "fit");
  fit->planned_events = 2 * fit->replay->trace.n_events * (uint64_t)fit->replay->passes;
  struct fit_outcome outcome = fit_try(fit);
  uint64_t n_replays = 2 + fit->graph.n_pools * fit_count_replays(fit->held_bytes);
  fit->planned_events = n_replays * fit->replay->trace.n_events * (uint64_t)fit->replay->passes;
  for (size_t i = 0; outcome.is_good && i < fit->graph.n_pools; i++)
    if (!fit_find_least(fit, &fit->graph.pools[i]))
      fit_fail(&outcome, 0, "it runs without a maximum_size, and with none that was tried");
  if (outcome.is_good) outcome = fit_try(fit);
  progress_end(&fit->progress);
  if (outcome.is_good) return true;
  if (outcome.line)
    say("replay: --fit: the log does not run here, whatever the maximum: line %u: %s", outcome.line, outcome.reason);
  else
    say("replay: --fit: %s", outcome.reason);
  return false;
}

/* ---- Printing -------------------------------------------------------------------------------------------------- */

/* Memory of cards, in GiB. */
static const uint16_t fit_cards[] = {2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 141, 192, 256, 288};

/* The card that the user named, or the smallest on which the program fits; 0: there is none so large. */
static uint64_t fit_card(const struct fit *fit)
{
  if (fit->replay->card_bytes) return fit->replay->card_bytes;
  for (size_t i = 0; i < sizeof fit_cards / sizeof *fit_cards; i++)
    if ((uint64_t)fit_cards[i] << 30 >= fit->held_bytes) return (uint64_t)fit_cards[i] << 30;
  return 0;
}

static double fit_overhead(const struct fit *fit)
{
  return fit->peak_requested_bytes ? (double)fit->held_bytes / (double)fit->peak_requested_bytes : 0;
}

static int fit_print_json(const struct fit *fit, uint64_t card_bytes, int status)
{
  json_t *pools = json_array();
  for (size_t i = 0; i < fit->graph.n_pools; i++)
    json_array_append_new(pools, json_pack("{s:s, s:I}", "name", fit->graph.pools[i].node->name, "maximum_size",
                                           (json_int_t)fit->graph.pools[i].maximum_bytes));
  return output_json(
      json_pack("{s:I, s:I, s:f, s:o, s:I, s:o, s:o, s:b, s:o}", "needs_bytes", (json_int_t)fit->held_bytes,
                "peak_requested_bytes", (json_int_t)fit->peak_requested_bytes, "overhead", fit_overhead(fit), "pools",
                pools, "replays", (json_int_t)fit->replays, "card_bytes",
                card_bytes ? json_integer((json_int_t)card_bytes) : json_null(), "spare_bytes",
                card_bytes ? json_integer((json_int_t)card_bytes - (json_int_t)fit->held_bytes) : json_null(), "fits",
                card_bytes >= fit->held_bytes, "runtime", output_json_string(fit->runtime)),
      status);
}

/* "This program needs 12.4 GiB; it fits on a 16 GiB card with 3.6 GiB to spare." */
static void fit_print_verdict(const struct fit *fit, uint64_t card_bytes)
{
  char needs[64], card[64], rest[64];
  bool fits = card_bytes >= fit->held_bytes;
  units_format_bytes(fit->held_bytes, needs, sizeof needs);
  units_format_bytes(card_bytes, card, sizeof card);
  units_format_bytes(fits ? card_bytes - fit->held_bytes : fit->held_bytes - card_bytes, rest, sizeof rest);
  printf("\n%sThis program needs %s", style(fits ? STYLE_GOOD : STYLE_BAD), needs);
  if (!card_bytes)
    printf(", more than any card has");
  else if (fits)
    printf("; it fits on a %s card with %s to spare", card, rest);
  else
    printf("; it does not fit on a %s card: %s are missing", card, rest);
  printf(".%s\n", style(STYLE_OFF));
}

static int fit_print(const struct fit *fit, uint64_t card_bytes, int status)
{
  replay_print_head(fit->replay, fit->runtime);
  replay_print_bytes("peak requested", fit->peak_requested_bytes);
  replay_print_bytes("needed", fit->held_bytes);
  replay_print_ratio("overhead", fit_overhead(fit), "needed over requested");
  replay_print_count("replays", fit->replays, "");
  fit_print_verdict(fit, card_bytes);
  for (size_t i = 0; i < fit->graph.n_pools; i++) {
    const struct fit_pool *pool = &fit->graph.pools[i];
    printf("The least for %s: \"maximum_size\": %llu\n", pool->node->name, (unsigned long long)pool->maximum_bytes);
  }
  return output_finish(status);
}

/* The software device shall not be what a program has to fit on, unless somebody says so. */
static void fit_enlarge_software(const struct graph *graph)
{
  if (!json_object_get(graph->runtime_object, "memory")) setenv("HIPMM_SOFTWARE", "memory=1TiB", 0);
}

int fit_run(const struct replay *replay)
{
  struct fit fit = {.replay = replay};
  int status = CMD_BAD;
  if (!replay->trace.allocations) {
    say("replay: --fit: the log has no allocations");
    return CMD_BAD;
  }
  if (!fit_graph_open(&replay->source, (int)replay->device, &fit.graph)) return CMD_BAD;
  fit_enlarge_software(fit.graph.graph);
  if (fit_search(&fit)) {
    uint64_t card_bytes = fit_card(&fit);
    status = card_bytes >= fit.held_bytes ? CMD_GOOD : CMD_BAD;
    status = replay->json ? fit_print_json(&fit, card_bytes, status) : fit_print(&fit, card_bytes, status);
  }
  fit_graph_close(&fit.graph);
  free(fit.runtime);
  return status;
}
