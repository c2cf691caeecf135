/* SPDX-License-Identifier: MIT */
/* print.c: what `hipmm tune` found, as text and as JSON. Called by tune.c. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../replay/fit.h"
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TUNE_WORDS = 64, TUNE_TEXT = 256, PLOT_ROWS = 10, PLOT_MOST_COLUMNS = 64, PLOT_LABEL = 9, FRONT_MOST = 16 };

const char *tune_number(double number, char *buffer)
{
  snprintf(buffer, TUNE_NUMBER, number < 100 ? "%.3g" : "%.0f", number);
  return buffer;
}

/* ---- Points ---------------------------------------------------------------------------------------------------- */

/* "binning(8) > pool segments, initial 1 GiB, maximum 2 GiB". */
static const char *tune_words(const struct tune *tune, struct choice choice, char *text)
{
  static const char *const allocators[] = {"pool", "pool segments", "arena"};
  char words[TUNE_WORDS];
  const struct space *space = &tune->space;
  const struct space_bins *bins = &space->bins[choice.at[DIMENSION_BINS]];
  uint64_t initial = space->levels[choice.at[DIMENSION_INITIAL]], maximum = space->levels[choice.at[DIMENSION_MAXIMUM]];
  size_t used = 0;
  if (bins->n)
    used += (size_t)snprintf(text, TUNE_TEXT, "%zu bins to %s, ", bins->n,
                             units_format_bytes(bins->sizes[bins->n - 1], words, sizeof words));
  used += (size_t)snprintf(text + used, TUNE_TEXT - used, "%s", allocators[choice.at[DIMENSION_ALLOCATOR]]);
  if (initial)
    used += (size_t)snprintf(text + used, TUNE_TEXT - used, ", initial %s",
                             units_format_bytes(initial, words, sizeof words));
  if (maximum)
    snprintf(text + used, TUNE_TEXT - used, ", maximum %s", units_format_bytes(maximum, words, sizeof words));
  return text;
}

static double tune_overhead(const struct tune *tune, const struct point *point)
{
  return tune->space.peak_bytes ? (double)point->held_bytes / (double)tune->space.peak_bytes : 0;
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

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static json_t *tune_point_json(const struct tune *tune, const struct point *point)
{
  return json_pack("{s:I, s:f, s:f, s:o, s:I, s:o}", "held_bytes", (json_int_t)point->held_bytes, "overhead",
                   tune_overhead(tune, point), "driver_ns", point->driver_ns, "host_ns",
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
  for (size_t i = 0; front && i < n; i++) json_array_append_new(points, tune_point_json(tune, front[i]));
  free(front);
  return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:O, s:I, s:I, s:b, s:o}", "goal", goals[tune->goal],
                   "peak_requested_bytes", (json_int_t)tune->space.peak_bytes, "device_memory_bytes",
                   tune->device_bytes ? json_integer((json_int_t)tune->device_bytes) : json_null(), "default",
                   tune_point_json(tune, search->points), "winner",
                   tune_point_json(tune, &search->points[tune->winner]), "front", points, "reasons", tune->reasons,
                   "graphs", (json_int_t)search->n_points, "replays", (json_int_t)search->replays, "is_complete",
                   !search->is_out_of_time, "costs", costs_json(&tune->costs));
}

static void tune_say(enum style kind, const char *first, const char *text)
{
  struct wrap wrap = {.prefix = *first ? "  " : ""};
  printf("%s", first);
  wrap.column = text_width(first);
  wrap_words(&wrap, kind, text);
  wrap_end(&wrap);
}

/* ---- The plot -------------------------------------------------------------------------------------------------- */

struct plot {
  size_t columns;
  double least_held, most_held, least_time, most_time; /* times as logarithms */
  char cells[PLOT_ROWS][PLOT_MOST_COLUMNS + 1];
};

static double plot_time(const struct point *point)
{
  return log10(point->driver_ns + 1);
}

static void plot_widen(struct plot *plot, const struct point *point)
{
  double held = (double)point->held_bytes, time = plot_time(point);
  plot->least_held = fmin(plot->least_held, held);
  plot->most_held = fmax(plot->most_held, held);
  plot->least_time = fmin(plot->least_time, time);
  plot->most_time = fmax(plot->most_time, time);
}

static size_t plot_cell(double value, double least, double most, size_t cells)
{
  return most > least ? (size_t)((value - least) / (most - least) * (double)(cells - 1) + 0.5) : 0;
}

static void plot_mark(struct plot *plot, const struct point *point, char mark)
{
  size_t column = plot_cell((double)point->held_bytes, plot->least_held, plot->most_held, plot->columns);
  size_t row = plot_cell(plot_time(point), plot->least_time, plot->most_time, PLOT_ROWS);
  plot->cells[PLOT_ROWS - 1 - row][column] = mark;
}

static void plot_print(const struct plot *plot)
{
  char least[TUNE_WORDS], most[TUNE_WORDS], number[TUNE_NUMBER];
  for (size_t row = 0; row < PLOT_ROWS; row++) {
    double time = row == 0 ? plot->most_time : plot->least_time;
    if (row == 0 || row == PLOT_ROWS - 1)
      printf("%*s ns ", PLOT_LABEL - 3, tune_number(pow(10, time) - 1, number));
    else
      printf("%*s ", PLOT_LABEL, "");
    printf("|%s\n", plot->cells[row]);
  }
  units_format_bytes((uint64_t)plot->least_held, least, sizeof least);
  units_format_bytes((uint64_t)plot->most_held, most, sizeof most);
  printf("%*s +", PLOT_LABEL, "");
  for (size_t i = 0; i < plot->columns; i++) putchar('-');
  printf("\n%*s  %s%*s\n", PLOT_LABEL, "", least, (int)(plot->columns - strlen(least)), most);
}

/* Memory to the right, time upwards. */
static void plot_draw(const struct tune *tune, const struct point *const *front, size_t n)
{
  const struct point *stack = tune->search.points, *winner = &stack[tune->winner];
  size_t room = terminal_width() - PLOT_LABEL - 3;
  struct plot plot = {
      .columns = room < PLOT_MOST_COLUMNS ? room : PLOT_MOST_COLUMNS, .least_held = INFINITY, .least_time = INFINITY};
  for (size_t row = 0; row < PLOT_ROWS; row++) memset(plot.cells[row], ' ', plot.columns);
  plot_widen(&plot, stack);
  plot_widen(&plot, winner);
  for (size_t i = 0; i < n; i++) plot_widen(&plot, front[i]);
  for (size_t i = 0; i < n; i++) plot_mark(&plot, front[i], '*');
  plot_mark(&plot, stack, 'D');
  plot_mark(&plot, winner, 'W');
  printf("\n");
  tune_say(STYLE_NAME, "", "Time of the driver for an event, against memory held");
  plot_print(&plot);
  tune_say(STYLE_OFF, "", "D default stack, W winner, * the least");
}

/* ---- Text ------------------------------------------------------------------------------------------------------ */

static void tune_row(const struct tune *tune, const struct point *point, const char *mark)
{
  char held[TUNE_WORDS], text[TUNE_TEXT], numbers[3 * TUNE_WORDS], time[TUNE_NUMBER];
  struct wrap wrap = {.prefix = "      "};
  snprintf(numbers, sizeof numbers, "%s %12s %8.3f %9s ns ", mark,
           units_format_bytes(point->held_bytes, held, sizeof held), tune_overhead(tune, point),
           tune_number(point->driver_ns, time));
  wrap_item(&wrap, 0, STYLE_OFF, numbers);
  wrap_words(&wrap, STYLE_OFF, tune_words(tune, point->choice, text));
  wrap_end(&wrap);
}

static void tune_print_front(const struct tune *tune, const struct point *const *front, size_t n)
{
  const struct point *stack = tune->search.points, *winner = &stack[tune->winner];
  printf("\n%s  held at most overhead  driver time  graph%s\n", style(STYLE_FAINT), style(STYLE_OFF));
  for (size_t i = 0; i < n; i++) {
    bool is_left_out = n > FRONT_MOST && i % (n / FRONT_MOST + 1) && front[i] != winner && front[i] != stack;
    if (!is_left_out) tune_row(tune, front[i], front[i] == winner ? "W" : front[i] == stack ? "D" : "*");
  }
  if (!search_is_on_front(&tune->search, winner)) tune_row(tune, winner, "W");
  if (winner != stack && !search_is_on_front(&tune->search, stack)) tune_row(tune, stack, "D");
}

static void tune_print_head(const struct tune *tune)
{
  const struct search *search = &tune->search;
  uint64_t events = 0;
  char peak[TUNE_WORDS], text[TUNE_TEXT];
  for (size_t i = 0; i < tune->n_traces; i++) events += tune->traces[i].n_events;
  snprintf(text, sizeof text, "%zu log%s, %llu events, %zu stream%s; %s requested at the peak.", tune->n_traces,
           text_plural(tune->n_traces), (unsigned long long)events, tune->space.n_streams,
           text_plural(tune->space.n_streams), units_format_bytes(tune->space.peak_bytes, peak, sizeof peak));
  tune_say(STYLE_OFF, "", text);
  snprintf(text, sizeof text, "%zu graphs were tried, in %llu replays; %s.", search->n_points,
           (unsigned long long)search->replays,
           search->is_out_of_time ? "then the time was over (--seconds)" : "no graph next to the best ones is better");
  tune_say(STYLE_OFF, "", text);
}

/* "It needs 12.4 GiB, and fits on a device of 16 GiB with 3.6 GiB to spare." */
static void tune_print_need(const struct tune *tune, const struct point *winner)
{
  char needs[TUNE_WORDS], device[TUNE_WORDS], rest[TUNE_WORDS], text[2 * TUNE_TEXT];
  uint64_t device_bytes = tune->device_bytes ? tune->device_bytes : fit_smallest_card(winner->held_bytes);
  units_format_bytes(winner->held_bytes, needs, sizeof needs);
  units_format_bytes(device_bytes, device, sizeof device);
  units_format_bytes(device_bytes - winner->held_bytes, rest, sizeof rest);
  if (tune->device_bytes)
    snprintf(text, sizeof text, "It needs %s, and fits on the device of %s (--device-memory) with %s to spare.", needs,
             device, rest);
  else if (device_bytes)
    snprintf(text, sizeof text,
             "It needs %s: the smallest card on which it fits has %s (--device-memory says what yours has).", needs,
             device);
  else
    snprintf(text, sizeof text, "It needs %s, more than any card has.", needs);
  tune_say(STYLE_OFF, "- ", text);
}

static void tune_print_winner(const struct tune *tune)
{
  const struct point *stack = tune->search.points, *winner = &stack[tune->winner];
  char text[TUNE_TEXT];
  size_t i;
  json_t *reason;
  json_t *graph = space_graph(&tune->space, winner->choice);
  char *words = graph ? json_dumps(graph, JSON_INDENT(2)) : NULL;
  printf("\n%sThe winner%s\n", style(STYLE_NAME), style(STYLE_OFF));
  json_array_foreach(tune->reasons, i, reason) tune_say(STYLE_OFF, "- ", json_string_value(reason));
  snprintf(text, sizeof text, "The host's own time for an event: %.0f ns, %.0f ns with the default stack.",
           winner->host_ns, stack->host_ns);
  tune_say(STYLE_OFF, "- ", text);
  tune_print_need(tune, winner);
  if (winner == stack)
    tune_say(STYLE_OFF, "", "It is the default stack: nothing that was tried is better for this goal.");
  printf("\n%s\n", words ? words : "");
  free(words);
  json_decref(graph);
}

void tune_print(const struct tune *tune)
{
  size_t n;
  const struct point **front = tune_front(tune, &n);
  tune_print_head(tune);
  if (front) plot_draw(tune, front, n);
  if (front) tune_print_front(tune, front, n);
  tune_print_winner(tune);
  free(front);
}
