/* SPDX-License-Identifier: MIT */
/* choose.c: which of the graphs that were tried is best for the goal, and why. Called by tune.c. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../cmd.h"
#include "tune.h"

#include <stdlib.h>
#include <string.h>

enum { CHOOSE_WORDS = 64, CHOOSE_TEXT = 512 };

/* What the goal "both" may take more than the default stack. */
static const double choose_most_memory = 1.02;

/* A value that is not the default's has to gain so much in memory or time. */
static const double choose_least_gain = 0.005;

/* The host's own time varies from run to run. */
static const double choose_host_noise = 1.5;

/* ---- The best point -------------------------------------------------------------------------------------------- */

static bool choose_is_allowed(const struct tune *tune, const struct point *point)
{
  const struct point *stack = tune->search.points; /* the default one */
  if (!point->is_good || point->is_slow || (point != stack && search_beats(stack, point))) return false;
  if (tune->goal != GOAL_BOTH) return true;
  return (double)point->held_bytes <= (double)stack->held_bytes * choose_most_memory &&
         point->driver_ns <= stack->driver_ns;
}

/* Of equals, the one that was tried first stays. */
static bool choose_is_better(enum goal goal, const struct point *point, const struct point *best)
{
  double held = (double)point->held_bytes - (double)best->held_bytes, time = point->driver_ns - best->driver_ns;
  double first = goal == GOAL_MEMORY ? held : time, second = goal == GOAL_MEMORY ? time : held;
  return first < 0 || (first <= 0 && second < 0);
}

static size_t choose_best(const struct tune *tune)
{
  const struct search *search = &tune->search;
  size_t best = 0;
  for (size_t i = 1; i < search->n_points; i++) {
    if (!choose_is_allowed(tune, &search->points[i])) continue;
    if (choose_is_better(tune->goal, &search->points[i], &search->points[best])) best = i;
  }
  return best;
}

/* The index of a choice, which is tried if it was not; n_points: out of memory. */
static size_t choose_try(struct tune *tune, struct choice choice)
{
  const struct point *point = search_try(&tune->search, choice);
  return point ? (size_t)(point - tune->search.points) : tune->search.n_points;
}

static bool choose_is_as_good(const struct tune *tune, const struct point *simpler, const struct point *point)
{
  return choose_is_allowed(tune, simpler) &&
         (double)simpler->held_bytes <= (double)point->held_bytes * (1 + choose_least_gain) &&
         simpler->driver_ns <= point->driver_ns * (1 + choose_least_gain);
}

/* Takes values back to the default's that gain next to nothing. False: out of memory. */
static bool choose_simplify(struct tune *tune, size_t *best)
{
  struct search *search = &tune->search;
  for (enum dimension i = N_DIMENSIONS; i-- > 0;) {
    struct choice choice = search->points[*best].choice;
    if (!choice.at[i]) continue;
    choice.at[i] = 0;
    size_t simpler = choose_try(tune, choice);
    if (simpler == search->n_points) return false;
    if (choose_is_as_good(tune, &search->points[simpler], &search->points[*best])) *best = simpler;
  }
  return true;
}

static double choose_total_ns(const struct point *point)
{
  return point->driver_ns + point->host_ns;
}

static bool choose_measure_host(struct tune *tune, size_t index)
{
  struct point *point = &tune->search.points[index];
  return point->host_ns > 0 || search_measure_host(&tune->search, point->choice, &point->host_ns);
}

bool tune_choose(struct tune *tune)
{
  struct search *search = &tune->search;
  for (;;) {
    tune->winner = choose_best(tune);
    if (!choose_simplify(tune, &tune->winner)) return false;
    if (!choose_measure_host(tune, 0) || !choose_measure_host(tune, tune->winner)) return false;
    struct point *winner = &search->points[tune->winner];
    if (tune->goal == GOAL_MEMORY || !tune->winner) return true;
    if (choose_total_ns(winner) <= choose_total_ns(search->points) * choose_host_noise) return true;
    winner->is_slow = true;
  }
}

/* ---- Reasons --------------------------------------------------------------------------------------------------- */

/* "the driver would take 612.4 ns an event instead of 41.0, with 988 MiB held instead of 1.4 GiB". */
static const char *choose_compare(const struct point *other, const struct point *winner, char *text)
{
  char time[TUNE_NUMBER], winner_time[TUNE_NUMBER];
  const char *held = UNITS_BYTES(other->held_bytes), *winner_held = UNITS_BYTES(winner->held_bytes);
  if (!other->is_good) {
    snprintf(text, CHOOSE_TEXT, "the log would not run (line %u)", other->line);
    return text;
  }
  int used = snprintf(text, CHOOSE_TEXT, "the driver would take %s ns an event instead of %s, with ",
                      tune_number(other->driver_ns, time), tune_number(winner->driver_ns, winner_time));
  if (strcmp(held, winner_held) == 0)
    snprintf(text + used, CHOOSE_TEXT - (size_t)used, "the same memory");
  else
    snprintf(text + used, CHOOSE_TEXT - (size_t)used, "%s held instead of %s", held, winner_held);
  return text;
}

/* The winner with another value. NULL: it is not allowed, or out of memory. */
static const struct point *choose_other(struct tune *tune, enum dimension dimension, size_t value)
{
  struct choice choice = tune->search.points[tune->winner].choice;
  choice.at[dimension] = (uint8_t)value;
  return space_allows(&tune->space, choice) ? search_try(&tune->search, choice) : NULL;
}

/* What the winner does in a dimension, and what another value would do. */
static bool choose_explain(struct tune *tune, enum dimension dimension, size_t value, const char *does,
                           const char *other)
{
  char text[CHOOSE_TEXT];
  const struct point *point = choose_other(tune, dimension, value);
  if (!point) return !tune->search.is_out_of_memory;
  const struct point *winner = &tune->search.points[tune->winner];
  return output_add_sentence(tune->reasons, "%s; %s %s.", does, other, choose_compare(point, winner, text));
}

static bool choose_explain_allocator(struct tune *tune)
{
  static const char *const does[] = {
      [ALLOCATOR_POOL] = "pool, which maps memory where it is needed (\"growth\": \"auto\")",
      [ALLOCATOR_SEGMENTS] = "pool with \"growth\": \"segments\", blocks of the driver as they are",
      [ALLOCATOR_ARENA] = "arena, with memory of its own for each thread and stream",
  };
  static const char *const others[] = {[ALLOCATOR_POOL] = "with mapped growth",
                                       [ALLOCATOR_SEGMENTS] = "with segments",
                                       [ALLOCATOR_ARENA] = "with arena"};
  enum allocator allocator = tune->search.points[tune->winner].choice.at[DIMENSION_ALLOCATOR];
  enum allocator other = allocator == ALLOCATOR_POOL ? ALLOCATOR_SEGMENTS : ALLOCATOR_POOL;
  return choose_explain(tune, DIMENSION_ALLOCATOR, other, does[allocator], others[other]);
}

static bool choose_explain_streams(struct tune *tune)
{
  size_t n = tune->space.n_streams;
  char does[CHOOSE_WORDS * 2];
  if (n < 2) return output_add_sentence(tune->reasons, "One stream: nothing is to be shared or kept apart.");
  bool is_arena = tune->search.points[tune->winner].choice.at[DIMENSION_ALLOCATOR] == ALLOCATOR_ARENA;
  if (is_arena) return output_add_sentence(tune->reasons, "%zu streams, each with an arena.", n);
  snprintf(does, sizeof does, "%zu streams share the pool's memory", n);
  return choose_explain(tune, DIMENSION_ALLOCATOR, ALLOCATOR_ARENA, does, "with an arena for each");
}

static bool choose_explain_bins(struct tune *tune)
{
  size_t value = tune->search.points[tune->winner].choice.at[DIMENSION_BINS];
  const struct space_bins *bins = &tune->space.bins[value ? value : 1];
  char does[CHOOSE_WORDS * 3], other[CHOOSE_WORDS * 2];
  if (!value && tune->space.sizes[DIMENSION_BINS] < 2) return true;
  const char *words = UNITS_BYTES(bins->sizes[bins->n - 1]);
  if (value)
    snprintf(does, sizeof does, "%zu bins for the %.0f %% of requests up to %s, where they waste least", bins->n,
             100 * bins->share, words);
  else
    snprintf(does, sizeof does, "No bins");
  snprintf(other, sizeof other, value ? "without bins" : "with %zu, for requests up to %s,", bins->n, words);
  return choose_explain(tune, DIMENSION_BINS, value ? 0 : 1, does, other);
}

static bool choose_explain_size(struct tune *tune, enum dimension dimension, const char *name)
{
  const struct point *winner = &tune->search.points[tune->winner];
  size_t value = winner->choice.at[dimension];
  size_t other_value = value                            ? 0
                       : dimension == DIMENSION_INITIAL ? space_level_from(&tune->space, winner->held_bytes)
                                                        : space_level_below(&tune->space, winner->held_bytes);
  char does[CHOOSE_WORDS * 3], other[CHOOSE_WORDS * 2];
  if (!value && !other_value) return true;
  const char *words = UNITS_BYTES(tune->space.levels[value ? value : other_value]);
  const char *remark = dimension == DIMENSION_MAXIMUM ? " (a run that needs more fails)" : " at once";
  snprintf(does, sizeof does, value ? "%s of %s%s" : "No %s", name, words, remark);
  snprintf(other, sizeof other, value ? "without it" : "with %s", words);
  return choose_explain(tune, dimension, other_value, does, other);
}

bool tune_explain(struct tune *tune)
{
  bool is_arena = tune->search.points[tune->winner].choice.at[DIMENSION_ALLOCATOR] == ALLOCATOR_ARENA;
  tune->reasons = json_array();
  return tune->reasons && choose_explain_allocator(tune) && choose_explain_streams(tune) && choose_explain_bins(tune) &&
         choose_explain_size(tune, DIMENSION_INITIAL, is_arena ? "arena_size" : "initial_size") &&
         choose_explain_size(tune, DIMENSION_MAXIMUM, "maximum_size");
}
