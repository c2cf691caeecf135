/* SPDX-License-Identifier: MIT */
/* summary.c: see report.h. */
#include "../trace/moment.h"
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUMMARY_BINS = 1000, SUMMARY_GROUPS = 20, SUMMARY_MARKS = 2000 };

/* The live bytes after each event, and what is found on the way. */
struct summary_curve {
  uint64_t *live;
  uint64_t requested; /* of all allocations */
  uint32_t peak;      /* event */
};

static bool summary_curve_make(const struct blocks *blocks, struct summary_curve *curve)
{
  *curve = (struct summary_curve){.live = calloc(blocks->n_events + 1, sizeof *curve->live)};
  if (!curve->live) return false;
  for (size_t i = 0; i < blocks->n; i++) curve->requested += blocks->items[i].bytes;
  curve->peak = moment_curve(blocks, NULL, 0, curve->live);
  return true;
}

/* ---- Timeline -------------------------------------------------------------------------------------------------- */

struct summary_bins {
  size_t n_events;
  size_t n;
  uint64_t pages[SUMMARY_BINS];
};

static size_t summary_bin_of(const struct summary_bins *bins, uint32_t event)
{
  return (size_t)((uint64_t)event * bins->n / bins->n_events);
}

static void summary_note_pages(void *closure, uint32_t event, uint64_t bytes)
{
  struct summary_bins *bins = closure;
  uint64_t *most = &bins->pages[summary_bin_of(bins, event)];
  if (bytes > *most) *most = bytes;
}

/* The most pages in a part of the events and in those beside it: a line that joins the middles of the parts then lies nowhere
 * below the pages. */
static uint64_t summary_pages(const struct summary_bins *bins, size_t bin)
{
  uint64_t most = 0;
  for (size_t i = bin ? bin - 1 : 0; i <= bin + 1 && i < bins->n; i++)
    if (bins->pages[i] > most) most = bins->pages[i];
  return most;
}

/* The least and the most live bytes in each of equal parts of the events, and the pages. */
static json_t *summary_timeline(const struct blocks *blocks, const struct summary_curve *curve,
                                const struct summary_bins *bins)
{
  json_t *least = json_array(), *most = json_array(), *pages = json_array();
  uint32_t event = 0;
  for (size_t bin = 0; bin < bins->n; bin++) {
    uint64_t low = UINT64_MAX, high = 0;
    for (; event < blocks->n_events && summary_bin_of(bins, event) == bin; event++) {
      if (curve->live[event] < low) low = curve->live[event];
      if (curve->live[event] > high) high = curve->live[event];
    }
    json_array_append_new(least, json_integer((json_int_t)low));
    json_array_append_new(most, json_integer((json_int_t)high));
    json_array_append_new(pages, json_integer((json_int_t)summary_pages(bins, bin)));
  }
  json_t *timeline = json_pack("{s:o, s:o, s:o}", "least", least, "most", most, "pages", pages);
  if (blocks->held.n)
    json_object_set_new(timeline, "held", held_timeline(&blocks->held, blocks->n_events, bins->n, false));
  if (blocks->device_free.n)
    json_object_set_new(timeline, "device_free", held_timeline(&blocks->device_free, blocks->n_events, bins->n, true));
  return timeline;
}

/* ---- Moments --------------------------------------------------------------------------------------------------- */

static json_t *summary_time(const struct blocks *blocks, uint32_t event)
{
  return blocks->has_times ? json_integer((json_int_t)blocks->times[event]) : json_null();
}

static json_t *summary_groups(const struct blocks *blocks, struct moment moment, enum moment_key by)
{
  struct moment_groups groups;
  if (!moment_group(blocks, moment, by, &groups)) return NULL;
  json_t *array = moment_groups_json(blocks, &groups, by, SUMMARY_GROUPS);
  free(groups.items);
  return array;
}

/* Who holds what at a moment. */
static json_t *summary_moment(const struct blocks *blocks, uint32_t event)
{
  const struct moment moment = {.event = event};
  struct moment_groups groups;
  if (!moment_group(blocks, moment, MOMENT_BY_SIZE, &groups)) return NULL;
  json_t *object = json_pack(
      "{s:I, s:o, s:I, s:I, s:o, s:o, s:o}", "event", (json_int_t)event, "time_ns", summary_time(blocks, event),
      "bytes", (json_int_t)groups.bytes, "blocks", (json_int_t)groups.blocks, "by_size",
      moment_groups_json(blocks, &groups, MOMENT_BY_SIZE, SUMMARY_GROUPS), "by_stream",
      summary_groups(blocks, moment, MOMENT_BY_STREAM), "by_thread", summary_groups(blocks, moment, MOMENT_BY_THREAD));
  if (object && blocks->stacks.n)
    json_object_set_new(object, "by_stack", summary_groups(blocks, moment, MOMENT_BY_STACK));
  if (object && blocks->tag_names.n)
    json_object_set_new(object, "by_tag", summary_groups(blocks, moment, MOMENT_BY_TAG));
  free(groups.items);
  return object;
}

/* ---- Distributions --------------------------------------------------------------------------------------------- */

static unsigned summary_log2(uint64_t number)
{
  return number ? 63 - (unsigned)__builtin_clzll(number) : 0;
}

struct summary_histogram {
  uint64_t blocks[64], bytes[64];
};

/* The parts that are not empty: from 2^log2 to below 2^(log2 + 1). */
static json_t *summary_histogram_json(const struct summary_histogram *histogram)
{
  json_t *array = json_array();
  for (unsigned i = 0; i < 64; i++)
    if (histogram->blocks[i])
      json_array_append_new(array,
                            json_pack("{s:i, s:I, s:I}", "log2", (int)i, "blocks", (json_int_t)histogram->blocks[i],
                                      "bytes", (json_int_t)histogram->bytes[i]));
  return array;
}

static void summary_count(struct summary_histogram *histogram, uint64_t number, uint64_t bytes)
{
  histogram->blocks[summary_log2(number)]++;
  histogram->bytes[summary_log2(number)] += bytes;
}

/* Sizes in bytes, and lifetimes in events of the blocks that were freed. */
static void summary_distributions(const struct blocks *blocks, json_t *summary)
{
  struct summary_histogram sizes = {{0}, {0}}, lifetimes = {{0}, {0}};
  for (size_t i = 0; i < blocks->n; i++) {
    const struct block *block = &blocks->items[i];
    summary_count(&sizes, block->bytes, block->bytes);
    if (block->to != BLOCK_IS_LIVE) summary_count(&lifetimes, block->to - block->from, block->bytes);
  }
  json_object_set_new(summary, "sizes", summary_histogram_json(&sizes));
  json_object_set_new(summary, "lifetimes", summary_histogram_json(&lifetimes));
}

/* Blocks and bytes of each stream or thread over the whole log. */
static json_t *summary_users(const struct blocks *blocks, const struct block_names *names, bool are_streams)
{
  uint64_t *counts = calloc(2 * ((size_t)BLOCKS_OTHERS + 1), sizeof *counts);
  json_t *array = json_array();
  char text[24];
  for (size_t i = 0; counts && i < blocks->n; i++) {
    size_t index = are_streams ? blocks->items[i].stream : blocks->items[i].thread;
    counts[2 * index]++;
    counts[2 * index + 1] += blocks->items[i].bytes;
  }
  for (size_t i = 0; counts && i < names->n; i++) {
    snprintf(text, sizeof text, are_streams ? "%#" PRIx64 : "%" PRIu64, names->values[i]);
    json_array_append_new(array, json_pack("{s:s, s:I, s:I}", "name", text, "blocks", (json_int_t)counts[2 * i],
                                           "bytes", (json_int_t)counts[2 * i + 1]));
  }
  const uint64_t *others = counts ? &counts[2 * BLOCKS_OTHERS] : NULL;
  if (others && others[0])
    json_array_append_new(array, json_pack("{s:s, s:I, s:I}", "name", "others", "blocks", (json_int_t)others[0],
                                           "bytes", (json_int_t)others[1]));
  free(counts);
  return array;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

static json_t *summary_failure(const struct blocks *blocks, const struct summary_curve *curve)
{
  uint32_t event = blocks->first_failure.event;
  if (!blocks->failures) return json_null();
  uint64_t bytes = blocks->first_failure.bytes; /* a program can ask for any number */
  return json_pack("{s:I, s:o, s:o, s:I}", "event", (json_int_t)event, "time_ns", summary_time(blocks, event), "bytes",
                   bytes <= INT64_MAX ? json_integer((json_int_t)bytes) : json_real((double)bytes), "live_bytes",
                   (json_int_t)curve->live[event]);
}

static json_t *summary_counts(const struct blocks *blocks, const struct summary_curve *curve, const char *title)
{
  uint64_t live = 0;
  for (size_t i = 0; i < blocks->n; i++) live += blocks->items[i].to == BLOCK_IS_LIVE;
  uint32_t last = blocks->n_events ? (uint32_t)blocks->n_events - 1 : 0;
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I}", "title", title, "events",
                   (json_int_t)blocks->n_events, "allocations", (json_int_t)blocks->n, "frees",
                   (json_int_t)(blocks->n - live), "failures", (json_int_t)blocks->failures, "unmatched_frees",
                   (json_int_t)blocks->unmatched_frees, "overlaid", (json_int_t)blocks->overlaid, "duration_ns",
                   blocks->n_events ? summary_time(blocks, last) : json_null(), "requested_bytes",
                   (json_int_t)curve->requested);
}

/* What the program said of its work, in order. */
static json_t *summary_marks(const struct blocks *blocks, json_t *findings)
{
  json_t *array = json_array();
  for (size_t i = 0; i < blocks->n_marks && i < SUMMARY_MARKS; i++) {
    const struct block_mark *mark = &blocks->marks[i];
    const char *name = stack_texts_get(&blocks->mark_names, mark->name);
    json_t *end = mark->to == BLOCK_IS_LIVE ? json_null() : json_integer((json_int_t)mark->to);
    json_array_append_new(array, json_pack("{s:o, s:I, s:o}", "name", output_json_string(name ? name : ""), "event",
                                           (json_int_t)mark->from, "end", end));
  }
  if (blocks->n_marks > SUMMARY_MARKS)
    output_add_sentence(findings, "Of %zu steps of the program the report has the first %d.",
                        blocks->n_marks + blocks->more_marks, SUMMARY_MARKS);
  return array;
}

static void summary_moments(const struct blocks *blocks, const struct summary_curve *curve, json_t *summary)
{
  struct summary_bins bins = {.n_events = blocks->n_events,
                              .n = blocks->n_events < SUMMARY_BINS ? blocks->n_events : SUMMARY_BINS};
  struct pages_result pages;
  uint32_t last = (uint32_t)blocks->n_events - 1;
  if (!pages_count(blocks, summary_note_pages, &bins, &pages)) return;
  json_object_set_new(summary, "peak", summary_moment(blocks, curve->peak));
  json_object_set_new(summary, "end", summary_moment(blocks, last));
  json_object_set_new(summary, "first_failure", summary_failure(blocks, curve));
  json_object_set_new(summary, "fragmentation",
                      json_pack("{s:i, s:I, s:I, s:o, s:I, s:I}", "page_bytes", 1 << PAGES_SHIFT, "peak_pages_bytes",
                                (json_int_t)pages.peak_bytes, "worst_event", (json_int_t)pages.worst_event,
                                "worst_time_ns", summary_time(blocks, pages.worst_event), "worst_pages_bytes",
                                (json_int_t)pages.worst_bytes, "worst_live_bytes", (json_int_t)pages.worst_live_bytes));
  json_object_set_new(summary, "timeline", summary_timeline(blocks, curve, &bins));
  json_t *findings = findings_tell(blocks, curve->live, curve->peak, &pages);
  json_object_set_new(summary, "held", held_summary(blocks, curve->live, curve->peak, findings));
  json_object_set_new(summary, "marks", summary_marks(blocks, findings));
  json_object_set_new(summary, "findings", findings);
}

json_t *summary_make(const struct blocks *blocks, const char *title)
{
  struct summary_curve curve;
  if (!summary_curve_make(blocks, &curve)) return NULL;
  json_t *summary = summary_counts(blocks, &curve, title);
  if (summary && blocks->n_events) {
    summary_moments(blocks, &curve, summary);
    json_object_set_new(summary, "streams", summary_users(blocks, &blocks->streams, true));
    json_object_set_new(summary, "threads", summary_users(blocks, &blocks->threads, false));
    summary_distributions(blocks, summary);
  }
  free(curve.live);
  return summary;
}
