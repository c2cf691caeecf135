/* SPDX-License-Identifier: MIT */
/* held.c: see report.h. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../cmd.h"
#include "../table.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

enum { HELD_BINS = 40 };

/* ---- Levels ---------------------------------------------------------------------------------------------------- */

json_t *held_timeline(const struct block_levels *levels, size_t n_events, size_t bins, bool is_least)
{
  json_t *array = json_array();
  uint64_t now = levels->items[0].event ? 0 : levels->items[0].bytes, bound = now;
  size_t next = 0;
  for (size_t bin = 0; bin < bins; bin++, bound = now) {
    const size_t end = (bin + 1) * n_events / bins;
    for (; next < levels->n && (levels->items[next].event < end || bin + 1 == bins); next++) {
      now = levels->items[next].bytes;
      if (is_least ? now < bound : now > bound) bound = now;
    }
    json_array_append_new(array, json_integer((json_int_t)bound));
  }
  return array;
}

struct held {
  const struct blocks *blocks;
  uint64_t bytes, live_bytes; /* after `event`, when the difference is greatest */
  uint32_t event;
  uint64_t peak, end, at_live_peak;
  uint32_t peak_event;
};

static struct held held_measure(const struct blocks *blocks, const uint64_t *live, uint32_t live_peak)
{
  struct held held = {.blocks = blocks};
  const struct block_levels *levels = &blocks->held;
  size_t next = 0;
  for (uint32_t event = 0; event < blocks->n_events; event++) {
    for (; next < levels->n && blocks_event(blocks, levels->items[next].event) <= event; next++) {
      held.end = levels->items[next].bytes;
      if (held.end <= held.peak) continue;
      held.peak = held.end;
      held.peak_event = event;
    }
    if (event == live_peak) held.at_live_peak = held.end;
    if (held.end < live[event] || held.end - live[event] <= held.bytes - held.live_bytes) continue;
    held.bytes = held.end;
    held.live_bytes = live[event];
    held.event = event;
  }
  return held;
}

/* ---- Pools ----------------------------------------------------------------------------------------------------- */

struct held_change {
  uint64_t bytes;
  uint32_t pool, event, call;
  bool is_release;
};

/* By pool, then in order. */
static int held_compare_changes(const void *one, const void *other)
{
  const struct held_change *a = one, *b = other;
  if (a->pool != b->pool) return a->pool < b->pool ? -1 : 1;
  return a->call < b->call ? -1 : a->call > b->call;
}

static struct held_change *held_changes(const struct blocks *blocks, size_t *n_out)
{
  const struct segments *segments = &blocks->segments;
  struct held_change *changes = calloc(2 * segments->n + 1, sizeof *changes);
  size_t n = 0;
  for (size_t i = 0; changes && i < segments->n; i++) {
    const struct segment *segment = &segments->items[i];
    changes[n++] = (struct held_change){segment->bytes, segment->pool, segment->from, segment->taken, false};
    if (segment->to != SEGMENT_IS_HELD)
      changes[n++] = (struct held_change){segment->bytes, segment->pool, segment->to, segment->given_back, true};
  }
  if (changes) qsort(changes, n, sizeof *changes, held_compare_changes);
  *n_out = n;
  return changes;
}

/* Adds the row of the pool whose changes begin there. Returns how many it has. */
static size_t held_add_pool(const struct blocks *blocks, const struct held_change *changes, size_t n, json_t *table,
                            const struct table_column *columns)
{
  struct block_levels levels = {.items = calloc(n, sizeof *levels.items)};
  char name[BLOCKS_POOL_NAME_BYTES], line[4 * HELD_BINS];
  uint64_t now = 0, peak = 0;
  uint32_t peak_event = 0;
  const uint32_t pool = changes->pool;
  for (; levels.n < n && changes[levels.n].pool == pool; levels.n++) {
    const struct held_change *change = &changes[levels.n];
    now += change->is_release ? -change->bytes : change->bytes;
    if (levels.items) levels.items[levels.n] = (struct block_level){now, change->event};
    if (now > peak) peak = now, peak_event = blocks_event(blocks, change->event);
  }
  const size_t bins = blocks->n_events < HELD_BINS ? blocks->n_events : HELD_BINS;
  json_t *timeline = levels.items ? held_timeline(&levels, blocks->n_events, bins, false) : json_array();
  blocks_pool_name(blocks, pool, name);
  json_t *row = json_pack("{s:I, s:I, s:I, s:s}", "peak", (json_int_t)peak, "event", (json_int_t)peak_event, "end",
                          (json_int_t)now, "line", text_spark(timeline, peak, bins, line));
  table_add(table, columns, name, row);
  json_decref(row);
  json_decref(timeline);
  free(levels.items);
  return levels.n;
}

/* NULL: out of memory. */
static json_t *held_pools(const struct blocks *blocks)
{
  const struct table_column columns[] = {{blocks_pool_word(blocks), ""}, {"at most*", "peak"},
                                         {"after event", "event"},       {"at the end*", "end"},
                                         {"over the events", "line"},    {NULL, NULL}};
  char heading[32];
  size_t n;
  struct held_change *changes = held_changes(blocks, &n);
  snprintf(heading, sizeof heading, "Held by each %s", blocks_pool_word(blocks));
  json_t *table = table_make(heading, columns);
  for (size_t i = 0; changes && i < n;) i += held_add_pool(blocks, changes + i, n - i, table, columns);
  free(changes);
  return table;
}

/* ---- What is told ---------------------------------------------------------------------------------------------- */

static unsigned held_percent(uint64_t part, uint64_t whole)
{
  return whole ? (unsigned)(100.0 * (double)part / (double)whole + 0.5) : 0;
}

static void held_tell(const struct held *held, uint64_t live_peak, json_t *sentences)
{
  const uint64_t idle = held->at_live_peak > live_peak ? held->at_live_peak - live_peak : 0;
  output_add_sentence(
      sentences,
      "The allocator held at most %s of the device: after event %u. At the peak of live bytes %s are held, %s "
      "(%u %%) of them idle.",
      UNITS_BYTES(held->peak), (unsigned)held->peak_event, UNITS_BYTES(held->at_live_peak), UNITS_BYTES(idle),
      held_percent(idle, held->at_live_peak));
  if (held->bytes <= held->live_bytes) return;
  output_add_sentence(sentences, "Most is idle after event %u: %s are held, and %s of that are live (%u %%).",
                      (unsigned)held->event, UNITS_BYTES(held->bytes), UNITS_BYTES(held->live_bytes),
                      held_percent(held->live_bytes, held->bytes));
}

static void held_tell_free(const struct blocks *blocks, json_t *sentences)
{
  const struct block_level *least = blocks->device_free.items;
  for (size_t i = 1; i < blocks->device_free.n; i++)
    if (blocks->device_free.items[i].bytes < least->bytes) least = &blocks->device_free.items[i];
  output_add_sentence(sentences,
                      "The device was asked %zu time%s for its free memory: at least %s were left, at event %u.",
                      blocks->device_free.n, text_plural(blocks->device_free.n), UNITS_BYTES(least->bytes),
                      (unsigned)blocks_event(blocks, least->event));
}

static void held_tell_blocks(const struct blocks *blocks, json_t *sentences)
{
  if (blocks->rounded_bytes)
    output_add_sentence(sentences, "Blocks that are live at the end take %s more than was asked for: that is rounding.",
                        UNITS_BYTES(blocks->rounded_bytes));
  if (blocks->waiting_peak)
    output_add_sentence(
        sentences,
        "At most %s of what is idle were freed, and wait for other streams (record_stream) or a capture: after "
        "event %u.",
        UNITS_BYTES(blocks->waiting_peak), blocks->waiting_event);
}

json_t *held_summary(const struct blocks *blocks, const uint64_t *live, uint32_t live_peak, json_t *sentences)
{
  if (blocks->device_free.n) held_tell_free(blocks, sentences);
  if (!blocks->held.n) return json_null();
  const struct held held = held_measure(blocks, live, live_peak);
  json_t *tables = json_array();
  held_tell(&held, live[live_peak], sentences);
  held_tell_blocks(blocks, sentences);
  if (blocks->segments.n) {
    json_array_append_new(tables, held_pools(blocks));
    json_array_append_new(tables, pins_table(blocks, held.event, sentences));
  }
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "peak_bytes", (json_int_t)held.peak,
                   "peak_event", (json_int_t)held.peak_event, "live_peak_bytes", (json_int_t)held.at_live_peak,
                   "end_bytes", (json_int_t)held.end, "worst_event", (json_int_t)held.event, "worst_bytes",
                   (json_int_t)held.bytes, "worst_live_bytes", (json_int_t)held.live_bytes, "waiting_peak_bytes",
                   (json_int_t)blocks->waiting_peak, "rounded_bytes", (json_int_t)blocks->rounded_bytes, "tables",
                   tables);
}
