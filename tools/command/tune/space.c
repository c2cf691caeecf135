/* SPDX-License-Identifier: MIT */
/* space.c: see tune.h. */
#include "tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Memory sizes come in steps of what drivers map. */
#define SPACE_STEP_BYTES (UINT64_C(2) << 20)

static const double space_ratios[] = {1.002, 1.005, 1.01, 1.02, 1.035, 1.05, 1.075, 1.1, 1.15,
                                      1.2,   1.3,   1.4,  1.5,  1.75,  2,    2.5,   3};
static const double space_quick_ratios[] = {1.01, 1.05, 1.2, 1.5, 2.5};

/* Requests up to so many bytes go into bins. */
static const uint64_t space_limits[SPACE_MOST_LIMITS] = {1 << 12, 1 << 16, 1 << 20, 1 << 24};
static const uint64_t space_quick_limits[] = {1 << 20};

/* ---- Making ---------------------------------------------------------------------------------------------------- */

static uint64_t space_peak(const struct trace *trace)
{
  uint64_t bytes = 0, peak = 0;
  for (size_t i = 0; i < trace->n_events; i++) {
    const struct trace_event *event = &trace->events[i];
    bytes = event->is_free ? bytes - event->bytes : bytes + event->bytes;
    if (bytes > peak) peak = bytes;
  }
  return peak;
}

static void space_make_levels(struct space *space, const double *ratios, size_t n)
{
  size_t used = 1;
  space->levels[0] = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t bytes = (uint64_t)((double)space->peak_bytes * ratios[i]);
    bytes = (bytes / SPACE_STEP_BYTES + 1) * SPACE_STEP_BYTES;
    if (bytes > space->levels[used - 1]) space->levels[used++] = bytes;
  }
  space->sizes[DIMENSION_INITIAL] = space->sizes[DIMENSION_MAXIMUM] = used;
}

/* A limit that adds nothing to the bins of the one before it is left out. */
static bool space_make_bins(struct space *space, const struct trace *traces, size_t n_traces, const uint64_t *limits,
                            size_t n)
{
  size_t used = 1;
  space->bins[0] = (struct space_bins){.n = 0};
  for (size_t i = 0; i < n; i++) {
    struct space_bins *bins = &space->bins[used];
    if (!bins_find(traces, n_traces, limits[i], SPACE_MOST_BINS, bins)) return false;
    if (bins->n && bins->share > space->bins[used - 1].share) used++;
  }
  space->sizes[DIMENSION_BINS] = used;
  return true;
}

bool space_make(struct space *space, const struct trace *traces, size_t n_traces, bool is_quick)
{
  *space = (struct space){.sizes = {[DIMENSION_ALLOCATOR] = N_ALLOCATORS}};
  for (size_t i = 0; i < n_traces; i++) {
    uint64_t peak = space_peak(&traces[i]);
    if (peak > space->peak_bytes) space->peak_bytes = peak;
    if (traces[i].n_streams > space->n_streams) space->n_streams = traces[i].n_streams;
  }
  if (is_quick) {
    space_make_levels(space, space_quick_ratios, sizeof space_quick_ratios / sizeof *space_quick_ratios);
    return space_make_bins(space, traces, n_traces, space_quick_limits, 1);
  }
  space_make_levels(space, space_ratios, sizeof space_ratios / sizeof *space_ratios);
  return space_make_bins(space, traces, n_traces, space_limits, SPACE_MOST_LIMITS);
}

void space_limit(struct space *space, uint64_t device_bytes)
{
  size_t used = space->sizes[DIMENSION_MAXIMUM];
  while (used > 1 && space->levels[used - 1] > device_bytes) used--;
  space->sizes[DIMENSION_INITIAL] = space->sizes[DIMENSION_MAXIMUM] = used;
}

/* ---- Choices --------------------------------------------------------------------------------------------------- */

bool space_allows(const struct space *space, struct choice choice)
{
  for (size_t i = 0; i < N_DIMENSIONS; i++)
    if (choice.at[i] >= space->sizes[i]) return false;
  return !choice.at[DIMENSION_MAXIMUM] || choice.at[DIMENSION_INITIAL] <= choice.at[DIMENSION_MAXIMUM];
}

bool space_next(const struct space *space, struct choice *choice)
{
  do {
    size_t i = 0;
    while (i < N_DIMENSIONS && ++choice->at[i] == space->sizes[i]) choice->at[i++] = 0;
    if (i == N_DIMENSIONS) return false;
  } while (!space_allows(space, *choice));
  return true;
}

uint8_t space_level_below(const struct space *space, uint64_t bytes)
{
  size_t level = space->sizes[DIMENSION_MAXIMUM] - 1;
  while (level && space->levels[level] >= bytes) level--;
  return (uint8_t)level;
}

uint8_t space_level_from(const struct space *space, uint64_t bytes)
{
  uint8_t below = space_level_below(space, bytes);
  return below + 1u < space->sizes[DIMENSION_MAXIMUM] ? (uint8_t)(below + 1) : 0;
}

/* ---- Graphs ---------------------------------------------------------------------------------------------------- */

/* "512MiB", or a number where that is not exact. */
static json_t *space_size(uint64_t bytes)
{
  static const char *const units[] = {"KiB", "MiB", "GiB"};
  char text[32];
  int unit = -1;
  for (; unit < 2 && bytes % 1024 == 0 && bytes; unit++) bytes /= 1024;
  if (unit < 0) return json_integer((json_int_t)bytes);
  snprintf(text, sizeof text, "%" PRIu64 "%s", bytes, units[unit]);
  return json_string(text);
}

static json_t *space_binning(const struct space_bins *bins)
{
  json_t *array = json_array();
  for (size_t i = 0; i < bins->n; i++)
    json_array_append_new(array, json_pack("{s:o}", "size", space_size(bins->sizes[i])));
  return json_pack("{s:s, s:o}", "type", "binning", "bins", array);
}

static json_t *space_allocator(const struct space *space, struct choice choice)
{
  enum allocator allocator = choice.at[DIMENSION_ALLOCATOR];
  uint64_t initial = space->levels[choice.at[DIMENSION_INITIAL]], maximum = space->levels[choice.at[DIMENSION_MAXIMUM]];
  const char *type = allocator == ALLOCATOR_ARENA ? "arena" : "pool";
  json_t *object = json_pack("{s:s}", "type", type);
  if (allocator == ALLOCATOR_SEGMENTS) json_object_set_new(object, "growth", json_string("segments"));
  const char *initial_key = allocator == ALLOCATOR_ARENA ? "arena_size" : "initial_size";
  if (initial) json_object_set_new(object, initial_key, space_size(initial));
  if (maximum) json_object_set_new(object, "maximum_size", space_size(maximum));
  if (json_object_size(object) > 1) return object;
  json_decref(object);
  return json_string(type);
}

json_t *space_graph(const struct space *space, struct choice choice)
{
  json_t *stack = json_array();
  const struct space_bins *bins = &space->bins[choice.at[DIMENSION_BINS]];
  if (bins->n) json_array_append_new(stack, space_binning(bins));
  json_array_append_new(stack, space_allocator(space, choice));
  json_array_append_new(stack, json_string("device"));
  return json_pack("{s:o}", "stack", stack);
}
