/* SPDX-License-Identifier: MIT */
/* search.c: see tune.h. A local search for the front of memory and time: the neighbours of all points on the front are
 * tried, until none of them joins the front.
 *
 * A neighbour differs in one value. Of an initial size these are the next two up and down; of a maximum the next one, and
 * the next that is below what is held. Without a maximum, the next two above what is held are neighbours too: a pool has less
 * slack near its maximum. The initial size and the maximum also go together, as for a pool that never grows. */
#include "../array.h"
#include "../play/play.h"
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEARCH_NEIGHBOURS = 64, SEARCH_HOST_REPLAYS = 3, SEARCH_STEPS = 2 };

/* ---- One point ------------------------------------------------------------------------------------------------- */

static void search_show_progress(void *closure, uint64_t done, uint64_t total)
{
  struct search *search = closure;
  int64_t spent_ns = cmd_now_ns() - search->start_ns;
  (void)done;
  (void)total;
  progress_show(&search->progress, (uint64_t)spent_ns, (uint64_t)(search->end_ns - search->start_ns));
}

static void search_label(struct search *search)
{
  snprintf(search->label, sizeof search->label, "tune: %zu graphs", search->n_points);
}

/* Adds what one log says. False: the log did not run. */
static bool search_play(struct search *search, const struct trace *trace, const char *graph, struct point *point,
                        double *host_ns)
{
  const struct play play = {trace, 0, search->passes, {search_show_progress, search}};
  struct play_result result = play_graph(&play, graph);
  uint64_t events = trace->n_events * (uint64_t)search->passes;
  search->replays++;
  point->is_good = result.is_good;
  point->line = result.line;
  snprintf(point->reason, sizeof point->reason, "%.*s", (int)sizeof point->reason - 1, result.reason);
  if (!result.is_good) return false;
  if (result.held_bytes > point->held_bytes) point->held_bytes = result.held_bytes;
  point->calls += call_counts_total(&result.calls);
  point->driver_ns += costs_sum(search->costs, &result.calls);
  *host_ns += result.ns * (double)events;
  return true;
}

/* Plays all logs. False: out of memory. */
static bool search_measure(struct search *search, struct point *point, double *host_ns)
{
  uint64_t events = 0;
  json_t *object = space_graph(search->space, point->choice);
  char *graph = object ? json_dumps(object, JSON_COMPACT) : NULL;
  json_decref(object);
  if (!graph) return false;
  *host_ns = 0;
  for (size_t i = 0; i < search->n_traces; i++) {
    if (!search_play(search, &search->traces[i], graph, point, host_ns)) break;
    events += search->traces[i].n_events * (uint64_t)search->passes;
  }
  free(graph);
  if (events) point->driver_ns /= (double)events;
  if (events) *host_ns /= (double)events;
  return true;
}

const struct point *search_try(struct search *search, struct choice choice)
{
  double host_ns;
  for (size_t i = 0; i < search->n_points; i++)
    if (memcmp(&search->points[i].choice, &choice, sizeof choice) == 0) return &search->points[i];
  search->is_out_of_memory = !array_grow(&search->points, search->n_points, &search->capacity, sizeof *search->points);
  if (search->is_out_of_memory) return NULL;
  struct point *point = &search->points[search->n_points];
  *point = (struct point){.choice = choice};
  search->is_out_of_memory = !search_measure(search, point, &host_ns);
  if (search->is_out_of_memory) return NULL;
  search->n_points++;
  search_label(search);
  return point;
}

bool search_measure_host(struct search *search, struct choice choice, double *ns_out)
{
  double ns, least_ns = INFINITY;
  for (size_t i = 0; i < SEARCH_HOST_REPLAYS; i++) {
    struct point point = {.choice = choice};
    if (!search_measure(search, &point, &ns) || !point.is_good) return false;
    if (ns < least_ns) least_ns = ns;
  }
  *ns_out = least_ns;
  return true;
}

/* ---- The front ------------------------------------------------------------------------------------------------- */

bool search_beats(const struct point *point, const struct point *other)
{
  if (!point->is_good || !other->is_good) return point->is_good && !other->is_good;
  if (point->held_bytes > other->held_bytes || point->driver_ns > other->driver_ns) return false;
  return point->held_bytes < other->held_bytes || point->driver_ns < other->driver_ns || point < other;
}

bool search_is_on_front(const struct search *search, const struct point *point)
{
  for (size_t i = 0; i < search->n_points; i++)
    if (&search->points[i] != point && search_beats(&search->points[i], point)) return false;
  return point->is_good;
}

/* ---- Neighbours ------------------------------------------------------------------------------------------------ */

struct search_neighbours {
  const struct space *space;
  struct choice items[SEARCH_NEIGHBOURS];
  size_t n;
};

static void search_add(struct search_neighbours *neighbours, struct choice choice, enum dimension dimension, int value)
{
  if (value < 0) return;
  choice.at[dimension] = (uint8_t)value;
  if (space_allows(neighbours->space, choice) && neighbours->n < SEARCH_NEIGHBOURS)
    neighbours->items[neighbours->n++] = choice;
}

/* Every other allocator and set of bins. */
static void search_add_kinds(struct search_neighbours *neighbours, struct choice choice)
{
  for (enum dimension i = DIMENSION_ALLOCATOR; i <= DIMENSION_BINS; i++)
    for (size_t value = 0; value < neighbours->space->sizes[i]; value++)
      if (value != choice.at[i]) search_add(neighbours, choice, i, (int)value);
}

static void search_add_sizes(struct search_neighbours *neighbours, const struct point *point)
{
  const struct space *space = neighbours->space;
  struct choice choice = point->choice;
  int initial = choice.at[DIMENSION_INITIAL], maximum = choice.at[DIMENSION_MAXIMUM];
  int below = space_level_below(space, point->held_bytes), from = space_level_from(space, point->held_bytes);
  for (int step = 1; step <= SEARCH_STEPS; step++) {
    search_add(neighbours, choice, DIMENSION_INITIAL, initial ? initial - step : below + 1 - step);
    search_add(neighbours, choice, DIMENSION_INITIAL, initial ? initial + step : from - 1 + step);
    if (!maximum) search_add(neighbours, choice, DIMENSION_MAXIMUM, from - 1 + step);
  }
  if (maximum > 1) search_add(neighbours, choice, DIMENSION_MAXIMUM, maximum - 1);
  if (!maximum || maximum - 1 > below) search_add(neighbours, choice, DIMENSION_MAXIMUM, below);
  if (maximum) search_add(neighbours, choice, DIMENSION_MAXIMUM, maximum + 1);
  search_add(neighbours, choice, DIMENSION_MAXIMUM, 0);
  for (int level = below; level <= below + 1; level++) { /* both */
    struct choice both = choice;
    both.at[DIMENSION_INITIAL] = (uint8_t)level;
    search_add(neighbours, both, DIMENSION_MAXIMUM, level);
  }
}

/* Whether it need not be tried: what failed with a maximum fails with a smaller one too. */
static bool search_is_hopeless(const struct search *search, struct choice choice)
{
  for (size_t i = 0; choice.at[DIMENSION_MAXIMUM] && i < search->n_points; i++) {
    const struct point *point = &search->points[i];
    if (point->is_good || point->choice.at[DIMENSION_MAXIMUM] < choice.at[DIMENSION_MAXIMUM]) continue;
    struct choice same = point->choice;
    same.at[DIMENSION_MAXIMUM] = choice.at[DIMENSION_MAXIMUM];
    if (memcmp(&same, &choice, sizeof choice) == 0) return true;
  }
  return false;
}

static bool search_time_is_over(struct search *search)
{
  search->is_out_of_time = search->is_out_of_time || cmd_now_ns() >= search->end_ns;
  return search->is_out_of_time;
}

/* False: out of memory. */
static bool search_expand(struct search *search, size_t index)
{
  struct search_neighbours neighbours = {.space = search->space};
  search->points[index].is_expanded = true;
  search_add_kinds(&neighbours, search->points[index].choice);
  search_add_sizes(&neighbours, &search->points[index]);
  for (size_t i = 0; i < neighbours.n && !search_time_is_over(search); i++)
    if (!search_is_hopeless(search, neighbours.items[i]) && !search_try(search, neighbours.items[i])) return false;
  return true;
}

/* ---- Searches -------------------------------------------------------------------------------------------------- */

/* The first point on the front whose neighbours were not tried; n_points: there is none. */
static size_t search_next(const struct search *search)
{
  size_t i = 0;
  while (i < search->n_points && (search->points[i].is_expanded || !search_is_on_front(search, &search->points[i])))
    i++;
  return i;
}

/* Tries neighbours until the front stays. False: out of memory. */
static bool search_settle(struct search *search)
{
  bool good = true;
  for (size_t next; good && (next = search_next(search)) < search->n_points && !search_time_is_over(search);)
    good = search_expand(search, next);
  return good;
}

/* Every allocator with every set of bins, and all the memory that the default stack takes from the start: a graph that is
 * good by several choices together may have no good neighbour. False: out of memory. */
static bool search_try_together(struct search *search)
{
  struct choice choice = {{0}};
  choice.at[DIMENSION_INITIAL] = (uint8_t)space_level_from(search->space, search->points[0].held_bytes);
  for (size_t allocator = 0; allocator < search->space->sizes[DIMENSION_ALLOCATOR]; allocator++)
    for (size_t bins = 0; bins < search->space->sizes[DIMENSION_BINS]; bins++) {
      choice.at[DIMENSION_ALLOCATOR] = (uint8_t)allocator;
      choice.at[DIMENSION_BINS] = (uint8_t)bins;
      if (search_time_is_over(search) || !space_allows(search->space, choice)) continue;
      if (!search_try(search, choice)) return false;
    }
  return true;
}

bool search_run(struct search *search)
{
  return search_try(search, (struct choice){{0}}) && search_settle(search) && search_try_together(search) &&
         search_settle(search);
}

bool search_run_all(struct search *search)
{
  struct choice choice = {{0}};
  bool good = true;
  do good = search_try(search, choice);
  while (good && !search_time_is_over(search) && space_next(search->space, &choice));
  return good;
}

void search_open(struct search *search, long seconds)
{
  search->start_ns = cmd_now_ns();
  search->end_ns = search->start_ns + seconds * INT64_C(1000000000);
  progress_start(&search->progress, search->label);
  search_label(search);
}

void search_close(struct search *search)
{
  progress_end(&search->progress);
}

void search_clear(struct search *search)
{
  free(search->points);
  search->points = NULL;
  search->n_points = 0;
}
