/* SPDX-License-Identifier: MIT */
/* fit.c: finds the least budget: plays the log again and again, each time on a new stack, with a maximum between one that was
 * too small and one that was enough. See fit.h.
 *
 * With several pools, each gets its least maximum in turn, from the top of the stack down, while those that come later have
 * none: a pool asks less of the pool below it when it has less itself. */
#include "fit.h"
#include "../../../core/graph/graph.h"
#include "play.h"

#include <stdlib.h>
#include <string.h>

/* The budget is found to one part in so many, or to a page. */
enum { FIT_PARTS = 2048, FIT_LEAST_STEP = 4096, FIT_MOST_WIDENINGS = 24 };

/* ---- One replay ------------------------------------------------------------------------------------------------ */

static void fit_show_progress(void *closure, uint64_t done, uint64_t total)
{
  struct fit *fit = closure;
  (void)total;
  progress_show(&fit->progress, fit->done_events + done, fit->planned_events);
}

/* Plays the log on a new stack with the maxima that are set. */
static struct play_result fit_try(struct fit *fit)
{
  const struct play play = {fit->request.trace, fit->request.device, fit->request.passes, {fit_show_progress, fit}};
  char *text = fit_graph_text(&fit->graph);
  struct play_result result = play_graph(&play, text);
  free(text);
  fit->replays++;
  fit->done_events += fit->request.trace->n_events * (uint64_t)fit->request.passes;
  if (result.is_good) {
    fit->peak_requested_bytes = result.peak_requested_bytes;
    fit->held_bytes = result.held_bytes;
  }
  snprintf(fit->runtime, sizeof fit->runtime, "%s", result.runtime);
  return result;
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

static void fit_plan_events(struct fit *fit, uint64_t n_replays)
{
  fit->planned_events = n_replays * fit->request.trace->n_events * (uint64_t)fit->request.passes;
}

/* The last replay tells what is held with all least maxima. */
static bool fit_search(struct fit *fit)
{
  const char *command = fit->request.command;
  bool is_found = true;
  progress_start(&fit->progress, "fit");
  fit_plan_events(fit, 2);
  struct play_result result = fit_try(fit);
  fit_plan_events(fit, 2 + fit->graph.n_pools * fit_count_replays(fit->held_bytes));
  for (size_t i = 0; result.is_good && is_found && i < fit->graph.n_pools; i++)
    is_found = fit_find_least(fit, &fit->graph.pools[i]);
  if (result.is_good && is_found) result = fit_try(fit);
  progress_end(&fit->progress);
  if (result.is_good && is_found) return true;
  if (!is_found)
    say("%s: it runs without a maximum_size, and with none that was tried", command);
  else if (result.line)
    say("%s: the log does not run here, whatever the maximum: line %u: %s", command, result.line, result.reason);
  else
    say("%s: %s", command, result.reason);
  return false;
}

/* The software device shall not be what a program has to fit on, unless the user says so. */
static void fit_enlarge_software(const struct graph *graph)
{
  if (!json_object_get(graph->runtime_object, "memory")) play_set_software("memory", "1TiB");
}

bool fit_find(struct fit *fit, const struct fit_request *request)
{
  *fit = (struct fit){.request = *request};
  if (!request->trace->allocations) {
    say("%s: the log has no allocations", request->command);
    return false;
  }
  if (!fit_graph_open(request, &fit->graph)) return false;
  fit_enlarge_software(fit->graph.graph);
  if (fit_search(fit)) return true;
  fit_clear(fit);
  return false;
}

void fit_clear(struct fit *fit)
{
  fit_graph_close(&fit->graph);
}

/* ---- Cards ----------------------------------------------------------------------------------------------------- */

/* Memory of cards, in GiB. */
static const uint16_t fit_cards[] = {2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 141, 192, 256, 288};

uint64_t fit_smallest_card(uint64_t bytes)
{
  for (size_t i = 0; i < sizeof fit_cards / sizeof *fit_cards; i++)
    if ((uint64_t)fit_cards[i] << 30 >= bytes) return (uint64_t)fit_cards[i] << 30;
  return 0;
}
