/* SPDX-License-Identifier: MIT */
/* pins.c: see report.h. Mapped memory is in chunks, so that a block can be in several segments. */
#include "../../../core/base/key_tree.h"
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../cmd.h"
#include "../table.h"
#include "../trace/moment.h"
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PINS_ROWS = 12, PINS_LOOKS_PER_EVENT = 64 };

struct pin {
  struct key_tree_node by_address; /* first; of those that are held */
  const struct segment *segment;
  uint64_t live_bytes, blocks;
  const struct block *largest; /* of its blocks, at the moment that the table shows */
};

/* A segment is taken, or given back. */
struct pin_change {
  uint32_t event, call;
  struct pin *pin;
  bool is_release;
};

struct pins {
  const struct blocks *blocks;
  struct pin *items; /* of all segments */
  struct key_tree_node *held;
  struct key_tree_node *nodes, *live; /* of all blocks, and the tree of those that are live */
  uint64_t pinned_bytes, looks;       /* how many segments or blocks may still be looked at */
};

/* ---- At one moment ---- */

static uint64_t pin_idle(const struct pin *pin)
{
  return pin->segment->bytes > pin->live_bytes ? pin->segment->bytes - pin->live_bytes : 0;
}

static bool pin_counts(const struct pin *pin)
{
  return pin->blocks && pin->live_bytes < pin->segment->bytes / 2;
}

/* How many bytes two ranges share. */
static uint64_t pins_shared(const struct key_tree_node *one, const struct key_tree_node *other)
{
  const uint64_t from = one->major > other->major ? one->major : other->major;
  const uint64_t one_end = one->major + one->minor, other_end = other->major + other->minor;
  const uint64_t end = one_end < other_end ? one_end : other_end;
  return end > from ? end - from : 0;
}

static void pins_change_pin(struct pins *pins, struct pin *pin, const struct key_tree_node *block, bool is_free)
{
  const uint64_t bytes = pins_shared(&pin->by_address, block);
  if (pin_counts(pin)) pins->pinned_bytes -= pin_idle(pin);
  pin->live_bytes += is_free ? -bytes : bytes;
  pin->blocks += is_free ? -UINT64_C(1) : 1;
  if (pin_counts(pin)) pins->pinned_bytes += pin_idle(pin);
}

/* The next range of the tree that shares a byte with `range`, after `last`; the first for NULL. NULL: there is none. */
static struct key_tree_node *pins_next(struct pins *pins, struct key_tree_node *tree, const struct key_tree_node *range,
                                       const struct key_tree_node *last)
{
  if (!pins->looks) return NULL;
  pins->looks--;
  if (!last) return key_tree_overlapping(tree, range->major, range->minor);
  struct key_tree_node *next = key_tree_next(tree, last);
  return next && pins_shared(next, range) ? next : NULL;
}

/* ---- From event to event ---- */

static void pins_change_block(struct pins *pins, const struct block *block, bool is_free)
{
  struct key_tree_node *node = &pins->nodes[block - pins->blocks->items], *pin = NULL;
  if (!node->minor) return; /* it has no bytes, or ends beyond the addresses */
  if (is_free)
    key_tree_remove(&pins->live, node);
  else
    key_tree_insert(&pins->live, node);
  while ((pin = pins_next(pins, pins->held, node, pin)) != NULL)
    pins_change_pin(pins, (struct pin *)pin, node, is_free);
}

/* Blocks may be live where it is taken: a suspended pool gets its memory back. */
static void pins_change_segment(struct pins *pins, struct pin *pin, bool is_release)
{
  struct key_tree_node *block = NULL;
  if (is_release && pin_counts(pin)) pins->pinned_bytes -= pin_idle(pin);
  if (is_release) key_tree_remove(&pins->held, &pin->by_address);
  if (is_release) return;
  key_tree_insert(&pins->held, &pin->by_address);
  while ((block = pins_next(pins, pins->live, &pin->by_address, block)) != NULL)
    pins_change_pin(pins, pin, block, false);
}

static int pins_compare_calls(const void *one, const void *other)
{
  const struct pin_change *a = one, *b = other;
  return a->call < b->call ? -1 : a->call > b->call;
}

/* In order. NULL: out of memory. */
static struct pin_change *pins_changes(const struct pins *pins, size_t *n_out)
{
  const size_t n_segments = pins->blocks->segments.n;
  struct pin_change *changes = calloc(2 * n_segments + 1, sizeof *changes);
  size_t n = 0;
  for (size_t i = 0; changes && i < n_segments; i++) {
    const struct segment *segment = pins->items[i].segment;
    changes[n++] = (struct pin_change){segment->from, segment->taken, &pins->items[i], false};
    if (segment->to != SEGMENT_IS_HELD)
      changes[n++] = (struct pin_change){segment->to, segment->given_back, &pins->items[i], true};
  }
  if (changes) qsort(changes, n, sizeof *changes, pins_compare_calls);
  *n_out = n;
  return changes;
}

static int pins_compare_frees(const void *one, const void *other)
{
  const struct block *const *a = one, *const *b = other;
  return (*a)->to < (*b)->to ? -1 : (*a)->to > (*b)->to;
}

/* The event after which most is pinned; `idle_event` if nothing ever is, or out of memory. */
static uint32_t pins_worst_event(struct pins *pins, const struct pin_change *changes, size_t n_changes,
                                 const struct block **by_free, uint32_t idle_event)
{
  const struct blocks *blocks = pins->blocks;
  uint32_t worst = idle_event;
  uint64_t most = 0;
  size_t next = 0, changed = 0, freed = 0;
  for (uint32_t event = 0; pins->looks && event < blocks->n_events; event++) {
    while (changed < n_changes && blocks_event(blocks, changes[changed].event) <= event) {
      pins_change_segment(pins, changes[changed].pin, changes[changed].is_release);
      changed++;
    }
    while (freed < blocks->n && by_free[freed]->to == event) pins_change_block(pins, by_free[freed++], true);
    while (next < blocks->n && blocks->items[next].from == event)
      pins_change_block(pins, &blocks->items[next++], false);
    if (pins->pinned_bytes <= most) continue;
    most = pins->pinned_bytes;
    worst = event;
  }
  return worst;
}

static struct key_tree_node pins_node(uint64_t address, uint64_t bytes)
{
  return (struct key_tree_node){.major = address, .minor = bytes < UINT64_MAX - address ? bytes : 0};
}

/* The same, with what it needs. */
static uint32_t pins_find_event(struct pins *pins, uint32_t idle_event)
{
  const struct blocks *blocks = pins->blocks;
  const struct block **by_free = calloc(blocks->n + 1, sizeof *by_free);
  size_t n_changes;
  struct pin_change *changes = pins_changes(pins, &n_changes);
  pins->nodes = calloc(blocks->n + 1, sizeof *pins->nodes);
  for (size_t i = 0; pins->nodes && i < blocks->n; i++)
    pins->nodes[i] = pins_node(blocks->items[i].address, blocks->items[i].bytes);
  for (size_t i = 0; by_free && i < blocks->n; i++) by_free[i] = &blocks->items[i];
  if (by_free) qsort(by_free, blocks->n, sizeof *by_free, pins_compare_frees);
  pins->looks = PINS_LOOKS_PER_EVENT * (blocks->n_events + (uint64_t)n_changes);
  if (changes && pins->nodes && by_free) idle_event = pins_worst_event(pins, changes, n_changes, by_free, idle_event);
  free(pins->nodes);
  free(changes);
  free(by_free);
  return idle_event;
}

/* ---- The table ------------------------------------------------------------------------------------------------- */

static bool pin_is_held(const struct blocks *blocks, const struct pin *pin, uint32_t event)
{
  const struct segment *segment = pin->segment;
  return blocks_event(blocks, segment->from) <= event && (segment->to > event || segment->to == SEGMENT_IS_HELD);
}

/* Counts the blocks that are live after the event. */
static void pins_count(struct pins *pins, uint32_t event)
{
  const struct blocks *blocks = pins->blocks;
  const struct moment moment = {.event = event};
  pins->held = NULL;
  pins->looks = PINS_LOOKS_PER_EVENT * ((uint64_t)blocks->n + blocks->segments.n);
  for (size_t i = 0; i < blocks->segments.n; i++) {
    struct pin *pin = &pins->items[i];
    pin->live_bytes = pin->blocks = 0;
    if (pin_is_held(blocks, pin, event)) key_tree_insert(&pins->held, &pin->by_address);
  }
  for (size_t i = 0; i < blocks->n; i++) {
    const struct block *block = &blocks->items[i];
    const struct key_tree_node node = pins_node(block->address, block->bytes);
    struct pin *pin = NULL;
    if (!moment_has(&moment, block) || !node.minor) continue;
    while ((pin = (struct pin *)pins_next(pins, pins->held, &node, pin ? &pin->by_address : NULL)) != NULL) {
      pins_change_pin(pins, pin, &node, false);
      if (!pin->largest || block->bytes > pin->largest->bytes) pin->largest = block;
    }
  }
}

/* By idle memory. */
static int pins_compare_idle(const void *one, const void *other)
{
  const struct pin *const *a = one, *const *b = other;
  if (pin_idle(*a) != pin_idle(*b)) return pin_idle(*a) > pin_idle(*b) ? -1 : 1;
  return (*a)->segment->address < (*b)->segment->address ? -1 : (*a)->segment->address > (*b)->segment->address;
}

static void pins_add_row(const struct blocks *blocks, const struct pin *pin, json_t *table,
                         const struct table_column *columns)
{
  char address[24], pool[BLOCKS_POOL_NAME_BYTES], by[BLOCKS_STACK_NAME_BYTES + 64], taken[BLOCKS_STACK_NAME_BYTES];
  snprintf(address, sizeof address, "%#" PRIx64, pin->segment->address);
  blocks_pool_name(blocks, pin->segment->pool, pool);
  int used = snprintf(by, sizeof by, "%s since event %u", UNITS_BYTES(pin->largest->bytes), pin->largest->from);
  if (pin->largest->stack && used > 0) {
    used += snprintf(by + used, sizeof by - (size_t)used, ", ");
    blocks_stack_name(blocks, pin->largest->stack, by + used, sizeof by - (size_t)used);
  }
  blocks_stack_name(blocks, pin->segment->stack, taken, sizeof taken);
  json_t *row = json_pack("{s:I, s:I, s:I, s:s, s:o, s:o}", "bytes", (json_int_t)pin->segment->bytes, "live",
                          (json_int_t)pin->live_bytes, "blocks", (json_int_t)pin->blocks, "pool", pool, "by",
                          output_json_string(by), "taken", output_json_string(taken));
  table_add(table, columns, address, row);
  json_decref(row);
}

static void pins_tell(const struct pins *pins, uint32_t event, size_t n_pinned, json_t *sentences)
{
  uint64_t unused_bytes = 0;
  size_t n = 0, unused = 0;
  for (size_t i = 0; i < pins->blocks->segments.n; i++) {
    const struct pin *pin = &pins->items[i];
    if (!pin_is_held(pins->blocks, pin, event)) continue;
    n++;
    if (pin->blocks) continue;
    unused++;
    unused_bytes += pin->segment->bytes;
  }
  if (n_pinned)
    output_add_sentence(
        sentences,
        "Most is pinned after event %u: of %zu segment%s %zu %s less than half live, and keep%s %s idle; %zu %s "
        "no live block (%s, which can be given back).",
        event, n, text_plural(n), n_pinned, n_pinned == 1 ? "is" : "are", n_pinned == 1 ? "s" : "",
        UNITS_BYTES(pins->pinned_bytes), unused, unused == 1 ? "has" : "have", UNITS_BYTES(unused_bytes));
  else
    output_add_sentence(
        sentences,
        "No segment is less than half live at any time. Of %zu segment%s after event %u, %zu %s no live block "
        "(%s, which can be given back).",
        n, text_plural(n), event, unused, unused == 1 ? "has" : "have", UNITS_BYTES(unused_bytes));
}

/* Only some of PyTorch's snapshots have the call stacks that took segments. */
static bool pins_have_stacks(const struct blocks *blocks)
{
  size_t i = 0;
  while (i < blocks->segments.n && !blocks->segments.items[i].stack) i++;
  return i < blocks->segments.n;
}

/* What keeps segments that are mostly idle. */
static json_t *pins_make_table(struct pins *pins, const struct pin **pinned, uint32_t event, json_t *sentences)
{
  const struct table_column columns[] = {{"segment", ""},
                                         {"size*", "bytes"},
                                         {"live*", "live"},
                                         {"blocks", "blocks"},
                                         {blocks_pool_word(pins->blocks), "pool"},
                                         {"its largest block", "by"},
                                         {pins_have_stacks(pins->blocks) ? "taken by" : NULL, "taken"},
                                         {NULL, NULL}};
  char heading[96];
  size_t n = 0;
  snprintf(heading, sizeof heading, "What pins segments that are less than half live, after event %u", event);
  json_t *table = table_make(heading, columns);
  for (size_t i = 0; i < pins->blocks->segments.n; i++)
    if (pin_counts(&pins->items[i]) && pin_is_held(pins->blocks, &pins->items[i], event)) pinned[n++] = &pins->items[i];
  qsort(pinned, n, sizeof *pinned, pins_compare_idle);
  for (size_t i = 0; i < n && i < PINS_ROWS; i++) pins_add_row(pins->blocks, pinned[i], table, columns);
  pins_tell(pins, event, n, sentences);
  return table;
}

json_t *pins_table(const struct blocks *blocks, uint32_t idle_event, json_t *sentences)
{
  struct pins pins = {.blocks = blocks, .items = calloc(blocks->segments.n, sizeof *pins.items)};
  const struct pin **pinned = calloc(blocks->segments.n, sizeof(const struct pin *));
  json_t *table = NULL;
  for (size_t i = 0; pins.items && i < blocks->segments.n; i++) {
    const struct segment *segment = &blocks->segments.items[i];
    pins.items[i] = (struct pin){.by_address = pins_node(segment->address, segment->bytes), .segment = segment};
  }
  if (pins.items && pinned) {
    const uint32_t event = pins_find_event(&pins, idle_event);
    pins.pinned_bytes = 0;
    pins_count(&pins, event);
    table = pins_make_table(&pins, pinned, event, sentences);
  }
  free(pins.items);
  free(pinned);
  return table;
}
