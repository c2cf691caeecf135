/* SPDX-License-Identifier: MIT */
/* print.c: what `hipmm tune` found as JSON, and as text that is made of it. Called by tune.c. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../lines.h"
#include "../play/fit.h"
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TUNE_TEXT = 256, PLOT_ROWS = 10, PLOT_MOST_COLUMNS = 64, PLOT_LABEL = 9, FRONT_MOST = 16 };

const char *tune_number(double number, char *buffer)
{
  snprintf(buffer, TUNE_NUMBER, number < 100 ? "%.3g" : "%.0f", number);
  return buffer;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

/* "8 bins to 1 MiB, pool segments, initial 1 GiB, maximum 2 GiB". */
static json_t *tune_words(const struct space *space, struct choice choice)
{
  static const char *const allocators[] = {"pool", "pool segments", "arena"};
  char bins_text[TUNE_TEXT / 4] = "", text[TUNE_TEXT];
  const struct space_bins *bins = &space->bins[choice.at[DIMENSION_BINS]];
  uint64_t initial = space->levels[choice.at[DIMENSION_INITIAL]], maximum = space->levels[choice.at[DIMENSION_MAXIMUM]];
  if (bins->n)
    snprintf(bins_text, sizeof bins_text, "%zu bins to %s, ", bins->n, UNITS_BYTES(bins->sizes[bins->n - 1]));
  snprintf(text, sizeof text, "%s%s%s%s%s%s", bins_text, allocators[choice.at[DIMENSION_ALLOCATOR]],
           initial ? ", initial " : "", initial ? UNITS_BYTES(initial) : "", maximum ? ", maximum " : "",
           maximum ? UNITS_BYTES(maximum) : "");
  return json_string(text);
}

static int tune_compare(const void *one, const void *other)
{
  const struct point *const *a = one, *const *b = other;
  return (*a)->held_bytes < (*b)->held_bytes ? -1 : (*a)->held_bytes > (*b)->held_bytes;
}

/* The points on the front, from the least memory on. NULL: out of memory. */
static const struct point **tune_front(const struct tune *tune, size_t *n_out)
{
  const struct search *search = &tune->search;
  const struct point **front = calloc(search->n_points + 1, sizeof *front);
  *n_out = 0;
  for (size_t i = 0; front && i < search->n_points; i++)
    if (search_is_on_front(search, &search->points[i])) front[(*n_out)++] = &search->points[i];
  if (front) qsort(front, *n_out, sizeof *front, tune_compare);
  return front;
}

static json_t *tune_point_json(const struct tune *tune, const struct point *point)
{
  return json_pack("{s:o, s:I, s:f, s:f, s:o, s:I, s:o}", "name", tune_words(&tune->space, point->choice), "held_bytes",
                   (json_int_t)point->held_bytes, "overhead", lines_overhead(point->held_bytes, tune->space.peak_bytes),
                   "driver_ns", point->driver_ns, "host_ns",
                   point->host_ns > 0 ? json_real(point->host_ns) : json_null(), "driver_calls",
                   (json_int_t)point->calls, "graph", space_graph(&tune->space, point->choice));
}

json_t *tune_json(const struct tune *tune)
{
  static const char *const goals[] = {[GOAL_BOTH] = "both", [GOAL_MEMORY] = "memory", [GOAL_SPEED] = "speed"};
  const struct search *search = &tune->search;
  size_t n;
  const struct point **front = tune_front(tune, &n);
  json_t *points = json_array();
  uint64_t events = 0;
  for (size_t i = 0; i < tune->n_traces; i++) events += tune->traces[i].n_events;
  for (size_t i = 0; front && i < n; i++) json_array_append_new(points, tune_point_json(tune, front[i]));
  free(front);
  return json_pack(
      "{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:O, s:I, s:I, s:b, s:o}", "goal", goals[tune->goal], "logs",
      (json_int_t)tune->n_traces, "events", (json_int_t)events, "streams", (json_int_t)tune->space.n_streams,
      "peak_requested_bytes", (json_int_t)tune->space.peak_bytes, "device_memory_bytes",
      tune->device_bytes ? json_integer((json_int_t)tune->device_bytes) : json_null(), "default",
      tune_point_json(tune, search->points), "winner", tune_point_json(tune, &search->points[tune->winner]), "front",
      points, "reasons", tune->reasons, "graphs", (json_int_t)search->n_points, "replays", (json_int_t)search->replays,
      "is_complete", !search->is_out_of_time, "costs", costs_json(&tune->costs));
}

/* ---- The plot -------------------------------------------------------------------------------------------------- */

struct plot {
  size_t columns;
  double least_held, most_held, least_time, most_time; /* times as logarithms */
  char cells[PLOT_ROWS][PLOT_MOST_COLUMNS + 1];
};

static double plot_held(const json_t *point)
{
  return (double)lines_count(point, "held_bytes");
}

static double plot_time(const json_t *point)
{
  return log10(json_number_value(json_object_get(point, "driver_ns")) + 1);
}

static void plot_widen(struct plot *plot, const json_t *point)
{
  plot->least_held = fmin(plot->least_held, plot_held(point));
  plot->most_held = fmax(plot->most_held, plot_held(point));
  plot->least_time = fmin(plot->least_time, plot_time(point));
  plot->most_time = fmax(plot->most_time, plot_time(point));
}

static size_t plot_cell(double value, double least, double most, size_t cells)
{
  return most > least ? (size_t)((value - least) / (most - least) * (double)(cells - 1) + 0.5) : 0;
}

static void plot_mark(struct plot *plot, const json_t *point, char mark)
{
  size_t column = plot_cell(plot_held(point), plot->least_held, plot->most_held, plot->columns);
  size_t row = plot_cell(plot_time(point), plot->least_time, plot->most_time, PLOT_ROWS);
  plot->cells[PLOT_ROWS - 1 - row][column] = mark;
}

static void plot_print(const struct plot *plot)
{
  char number[TUNE_NUMBER];
  const char *least = UNITS_BYTES((uint64_t)plot->least_held), *most = UNITS_BYTES((uint64_t)plot->most_held);
  for (size_t row = 0; row < PLOT_ROWS; row++) {
    double time = row == 0 ? plot->most_time : plot->least_time;
    if (row == 0 || row == PLOT_ROWS - 1)
      printf("%*s ns ", PLOT_LABEL - 3, tune_number(pow(10, time) - 1, number));
    else
      printf("%*s ", PLOT_LABEL, "");
    printf("|%s\n", plot->cells[row]);
  }
  printf("%*s +", PLOT_LABEL, "");
  for (size_t i = 0; i < plot->columns; i++) putchar('-');
  printf("\n%*s  %s%*s\n", PLOT_LABEL, "", least, (int)(plot->columns - strlen(least)), most);
}

/* Memory to the right, time upwards. */
static void plot_draw(const json_t *result)
{
  const json_t *stack = json_object_get(result, "default"), *winner = json_object_get(result, "winner");
  const json_t *front = json_object_get(result, "front");
  size_t room = terminal_width() - PLOT_LABEL - 3, i;
  json_t *point;
  struct plot plot = {
      .columns = room < PLOT_MOST_COLUMNS ? room : PLOT_MOST_COLUMNS, .least_held = INFINITY, .least_time = INFINITY};
  for (size_t row = 0; row < PLOT_ROWS; row++) memset(plot.cells[row], ' ', plot.columns);
  plot_widen(&plot, stack);
  plot_widen(&plot, winner);
  json_array_foreach(front, i, point) plot_widen(&plot, point);
  json_array_foreach(front, i, point) plot_mark(&plot, point, '*');
  plot_mark(&plot, stack, 'D');
  plot_mark(&plot, winner, 'W');
  printf("\n");
  lines_say(STYLE_NAME, "Time of the driver for an event, against memory held");
  plot_print(&plot);
  lines_say(STYLE_OFF, "D default stack, W winner, * the least");
}

/* ---- Text ------------------------------------------------------------------------------------------------------ */

static void tune_print_point(const json_t *point, char mark)
{
  char numbers[128], time[TUNE_NUMBER];
  struct wrap wrap = {.prefix = "      "};
  snprintf(numbers, sizeof numbers, "%c %12s %8.3f %9s ns ", mark, UNITS_BYTES(lines_count(point, "held_bytes")),
           json_number_value(json_object_get(point, "overhead")),
           tune_number(json_number_value(json_object_get(point, "driver_ns")), time));
  wrap_item(&wrap, 0, STYLE_OFF, numbers);
  wrap_words(&wrap, STYLE_OFF, lines_text(point, "name"));
  wrap_end(&wrap);
}

/* The front, of many points some; then the winner and the default stack if they are not on it. */
static void tune_print_front(const json_t *result)
{
  const json_t *stack = json_object_get(result, "default"), *winner = json_object_get(result, "winner");
  const json_t *front = json_object_get(result, "front");
  size_t n = json_array_size(front), i;
  bool has_winner = false, has_stack = json_equal(stack, winner);
  json_t *point;
  printf("\n%s  held at most overhead  driver time  graph%s\n", style(STYLE_FAINT), style(STYLE_OFF));
  json_array_foreach(front, i, point)
  {
    bool is_winner = json_equal(point, winner), is_stack = json_equal(point, stack);
    has_winner |= is_winner;
    has_stack |= is_stack;
    if (is_winner || is_stack || n <= FRONT_MOST || i % (n / FRONT_MOST + 1) == 0)
      tune_print_point(point, is_winner ? 'W' : is_stack ? 'D' : '*');
  }
  if (!has_winner) tune_print_point(winner, 'W');
  if (!has_stack) tune_print_point(stack, 'D');
}

static void tune_print_head(const json_t *result)
{
  uint64_t logs = lines_count(result, "logs"), streams = lines_count(result, "streams");
  lines_say(STYLE_OFF, "%llu log%s, %llu events, %llu stream%s; %s requested at the peak.", (unsigned long long)logs,
            text_plural(logs), (unsigned long long)lines_count(result, "events"), (unsigned long long)streams,
            text_plural(streams), UNITS_BYTES(lines_count(result, "peak_requested_bytes")));
  lines_say(STYLE_OFF, "%llu graphs were tried, in %llu replays; %s.",
            (unsigned long long)lines_count(result, "graphs"), (unsigned long long)lines_count(result, "replays"),
            json_is_true(json_object_get(result, "is_complete")) ? "no graph next to the best ones is better"
                                                                 : "then the time was over (--seconds)");
}

/* "It needs 12.4 GiB, and fits on a device of 16 GiB with 3.6 GiB to spare." */
static void tune_print_need(uint64_t needs_bytes, uint64_t device_bytes)
{
  uint64_t card_bytes = fit_smallest_card(needs_bytes);
  if (device_bytes)
    lines_item("It needs %s, and fits on the device of %s (--device-memory) with %s to spare.",
               UNITS_BYTES(needs_bytes), UNITS_BYTES(device_bytes), UNITS_BYTES(device_bytes - needs_bytes));
  else if (card_bytes)
    lines_item("It needs %s: the smallest card on which it fits has %s (--device-memory says what yours has).",
               UNITS_BYTES(needs_bytes), UNITS_BYTES(card_bytes));
  else
    lines_item("It needs %s, more than any card has.", UNITS_BYTES(needs_bytes));
}

static void tune_print_winner(const json_t *result)
{
  char *words = json_dumps(lines_at(result, "winner.graph"), JSON_INDENT(2));
  putchar('\n');
  lines_heading("The winner");
  lines_items(json_object_get(result, "reasons"));
  lines_item("The host's own time for an event: %.0f ns, %.0f ns with the default stack.",
             json_number_value(lines_at(result, "winner.host_ns")),
             json_number_value(lines_at(result, "default.host_ns")));
  tune_print_need(lines_count(result, "winner.held_bytes"), lines_count(result, "device_memory_bytes"));
  if (json_equal(json_object_get(result, "winner"), json_object_get(result, "default")))
    lines_say(STYLE_OFF, "It is the default stack: nothing that was tried is better for this goal.");
  printf("\n%s\n", words ? words : "");
  free(words);
}

void tune_print(const json_t *result)
{
  tune_print_head(result);
  plot_draw(result);
  tune_print_front(result);
  tune_print_winner(result);
}
