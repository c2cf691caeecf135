/* SPDX-License-Identifier: MIT */
/* held.c: see report.h. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../cmd.h"
#include "../table.h"
#include "../trace/moment.h"
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { HELD_ROWS = 12, HELD_NAME_BYTES = 48, HELD_BINS = 40 };

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

/* Of what is held after the last event the last event is the time. */
static uint32_t held_event(const struct blocks *blocks, uint32_t event)
{
  return event < blocks->n_events ? event : (uint32_t)blocks->n_events - 1;
}

static struct held held_measure(const struct blocks *blocks, const uint64_t *live, uint32_t live_peak)
{
  struct held held = {.blocks = blocks};
  const struct block_levels *levels = &blocks->held;
  size_t next = 0;
  for (uint32_t event = 0; event < blocks->n_events; event++) {
    for (; next < levels->n && held_event(blocks, levels->items[next].event) <= event; next++) {
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

static void held_pool_name(uint32_t pool, char name[HELD_NAME_BYTES])
{
  if (pool)
    snprintf(name, HELD_NAME_BYTES, "private (%u, %u)", pool >> 16, pool & UINT16_MAX);
  else
    snprintf(name, HELD_NAME_BYTES, "shared");
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
  char name[HELD_NAME_BYTES], line[4 * HELD_BINS];
  uint64_t now = 0, peak = 0;
  uint32_t peak_event = 0;
  const uint32_t pool = changes->pool;
  for (; levels.n < n && changes[levels.n].pool == pool; levels.n++) {
    const struct held_change *change = &changes[levels.n];
    now += change->is_release ? -change->bytes : change->bytes;
    if (levels.items) levels.items[levels.n] = (struct block_level){now, change->event};
    if (now > peak) peak = now, peak_event = held_event(blocks, change->event);
  }
  const size_t bins = blocks->n_events < HELD_BINS ? blocks->n_events : HELD_BINS;
  json_t *timeline = levels.items ? held_timeline(&levels, blocks->n_events, bins, false) : json_array();
  held_pool_name(pool, name);
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
  static const struct table_column columns[] = {
      {"pool", ""},           {"at most*", "peak"},        {"after event", "event"},
      {"at the end*", "end"}, {"over the events", "line"}, {NULL, NULL}};
  size_t n;
  struct held_change *changes = held_changes(blocks, &n);
  json_t *table = table_make("Held by each pool", columns);
  for (size_t i = 0; changes && i < n;) i += held_add_pool(blocks, changes + i, n - i, table, columns);
  free(changes);
  return table;
}

/* ---- Pins ------------------------------------------------------------------------------------------------------ */

/* A segment at a moment. */
struct held_pin {
  const struct segment *segment;
  uint64_t live_bytes, blocks;
  const struct block *largest; /* of its blocks */
};

static int held_compare_addresses(const void *one, const void *other)
{
  const struct held_pin *a = one, *b = other;
  return a->segment->address < b->segment->address ? -1 : a->segment->address > b->segment->address;
}

static uint64_t held_idle(const struct held_pin *pin)
{
  return pin->segment->bytes > pin->live_bytes ? pin->segment->bytes - pin->live_bytes : 0;
}

/* Those with blocks first, and of these those with the most idle memory. */
static int held_compare_idle(const void *one, const void *other)
{
  const struct held_pin *a = one, *b = other;
  if (!a->blocks != !b->blocks) return a->blocks ? -1 : 1;
  if (held_idle(a) != held_idle(b)) return held_idle(a) > held_idle(b) ? -1 : 1;
  return held_compare_addresses(one, other);
}

/* The first segment that begins behind the address. */
static size_t held_find(const struct held_pin *pins, size_t n, uint64_t address)
{
  size_t low = 0, high = n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (pins[middle].segment->address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Counts a block at each segment that has a part of it: mapped memory is in chunks, and a block can be in several. */
static void held_count_block(struct held_pin *pins, size_t n, const struct block *block, uint64_t *looks)
{
  const uint64_t end = block->address + block->bytes < block->address ? UINT64_MAX : block->address + block->bytes;
  size_t i = held_find(pins, n, block->address);
  for (i -= i > 0; i < n && pins[i].segment->address < end && *looks; i++, --*looks) {
    const struct segment *segment = pins[i].segment;
    const uint64_t from = segment->address > block->address ? segment->address : block->address;
    const uint64_t bytes = from - segment->address < segment->bytes ? segment->bytes - (from - segment->address) : 0;
    if (!bytes) continue;
    pins[i].live_bytes += bytes < end - from ? bytes : end - from;
    pins[i].blocks++;
    if (!pins[i].largest || block->bytes > pins[i].largest->bytes) pins[i].largest = block;
  }
}

/* The segments that are held after the event, by idle memory. NULL: out of memory. */
static struct held_pin *held_pins(const struct blocks *blocks, uint32_t event, size_t *n_out)
{
  const struct segments *segments = &blocks->segments;
  const struct moment moment = {.event = event};
  struct held_pin *pins = calloc(segments->n + 1, sizeof *pins);
  size_t n = 0;
  for (size_t i = 0; pins && i < segments->n; i++) {
    const struct segment *segment = &segments->items[i];
    if (held_event(blocks, segment->from) <= event && (segment->to > event || segment->to == SEGMENT_IS_HELD))
      pins[n++].segment = segment;
  }
  if (pins) qsort(pins, n, sizeof *pins, held_compare_addresses);
  uint64_t looks = 2 * (blocks->n + n); /* at segments; only blocks that overlap, of a damaged log, need more */
  for (size_t i = 0; pins && i < blocks->n; i++)
    if (moment_has(&moment, &blocks->items[i])) held_count_block(pins, n, &blocks->items[i], &looks);
  if (pins) qsort(pins, n, sizeof *pins, held_compare_idle);
  *n_out = n;
  return pins;
}

static void held_add_pin(const struct blocks *blocks, const struct held_pin *pin, json_t *table,
                         const struct table_column *columns)
{
  char address[24], pool[HELD_NAME_BYTES], by[BLOCKS_STACK_NAME_BYTES + 64];
  snprintf(address, sizeof address, "%#" PRIx64, pin->segment->address);
  held_pool_name(pin->segment->pool, pool);
  int used = snprintf(by, sizeof by, "%s since event %u", UNITS_BYTES(pin->largest->bytes), pin->largest->from);
  if (pin->largest->stack && used > 0) {
    used += snprintf(by + used, sizeof by - (size_t)used, ", ");
    blocks_stack_name(blocks, pin->largest->stack, by + used, sizeof by - (size_t)used);
  }
  json_t *row = json_pack("{s:I, s:I, s:I, s:s, s:o}", "bytes", (json_int_t)pin->segment->bytes, "live",
                          (json_int_t)pin->live_bytes, "blocks", (json_int_t)pin->blocks, "pool", pool, "by",
                          output_json_string(by));
  table_add(table, columns, address, row);
  json_decref(row);
}

/* What keeps segments that are mostly idle, after the event at which most is idle. */
static json_t *held_pin_table(const struct held *held, json_t *sentences)
{
  static const struct table_column columns[] = {{"segment", ""},      {"size*", "bytes"}, {"live*", "live"},
                                                {"blocks", "blocks"}, {"pool", "pool"},   {"its largest block", "by"},
                                                {NULL, NULL}};
  uint64_t unused_bytes = 0, pinned_bytes = 0;
  size_t n, unused = 0, pinned = 0;
  char heading[96];
  struct held_pin *pins = held_pins(held->blocks, held->event, &n);
  snprintf(heading, sizeof heading, "What pins segments that are less than half live, after event %u", held->event);
  json_t *table = table_make(heading, columns);
  for (size_t i = 0; pins && i < n; i++) {
    const struct held_pin *pin = &pins[i];
    if (!pin->blocks) {
      unused++;
      unused_bytes += pin->segment->bytes;
    } else if (pin->live_bytes < pin->segment->bytes / 2) {
      if (pinned++ < HELD_ROWS) held_add_pin(held->blocks, pin, table, columns);
      pinned_bytes += held_idle(pin);
    }
  }
  free(pins);
  output_add_sentence(sentences,
                      "It holds %zu segment%s then: %zu without a live block (%s, which can be given back), and %zu "
                      "less than half live, which pin %s.",
                      n, text_plural(n), unused, UNITS_BYTES(unused_bytes), pinned, UNITS_BYTES(pinned_bytes));
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
                      (unsigned)held_event(blocks, least->event));
}

json_t *held_summary(const struct blocks *blocks, const uint64_t *live, uint32_t live_peak, json_t *sentences)
{
  if (blocks->device_free.n) held_tell_free(blocks, sentences);
  if (!blocks->held.n) return json_null();
  const struct held held = held_measure(blocks, live, live_peak);
  json_t *tables = json_array();
  held_tell(&held, live[live_peak], sentences);
  if (blocks->segments.n && !blocks->is_held_told) json_array_append_new(tables, held_pools(blocks));
  if (blocks->segments.n) json_array_append_new(tables, held_pin_table(&held, sentences));
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "peak_bytes", (json_int_t)held.peak, "peak_event",
                   (json_int_t)held.peak_event, "live_peak_bytes", (json_int_t)held.at_live_peak, "end_bytes",
                   (json_int_t)held.end, "worst_event", (json_int_t)held.event, "worst_bytes", (json_int_t)held.bytes,
                   "worst_live_bytes", (json_int_t)held.live_bytes, "tables", tables);
}
