/* SPDX-License-Identifier: MIT */
/* state.c: see state.h. */
#include "state.h"
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../cmd.h"

#include <string.h>

enum { STATE_WORDS = 64 };

struct state {
  json_t *findings, *tables;
};

/* ---- Values ---------------------------------------------------------------------------------------------------- */

/* The number at "key" of the object at "part", or of `object` itself if that is NULL; 0 where it is none, or below
 * 0. */
static uint64_t state_number(const json_t *object, const char *part, const char *key)
{
  json_int_t number = json_integer_value(json_object_get(part ? json_object_get(object, part) : object, key));
  return number > 0 ? (uint64_t)number : 0;
}

static const char *state_words(const json_t *object, const char *key)
{
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* A number or a text as it is; null for anything else. */
static json_t *state_copy(const json_t *object, const char *key)
{
  json_t *value = json_object_get(object, key);
  return json_is_integer(value) || json_is_string(value) ? json_incref(value) : json_null();
}

static json_t *state_count(uint64_t number)
{
  return json_integer((json_int_t)number);
}

/* ---- Tables ---------------------------------------------------------------------------------------------------- */

/* Adds a table; a column's name that ends in "*" is of bytes. Returns its rows. */
static json_t *state_table(struct state *state, const char *heading, const char *const *columns)
{
  json_t *list = json_array(), *rows = json_array();
  for (; *columns; columns++) {
    size_t length = strlen(*columns);
    bool is_bytes = (*columns)[length - 1] == '*';
    json_array_append_new(list, json_pack("{s:s%, s:o}", "name", *columns, length - is_bytes, "unit",
                                          is_bytes ? json_string("bytes") : json_null()));
  }
  json_array_append_new(state->tables, json_pack("{s:o, s:o, s:O}", "heading", output_json_string(heading), "columns",
                                                 list, "rows", rows));
  json_decref(rows); /* the table has it */
  return rows;
}

/* ---- Snapshots ------------------------------------------------------------------------------------------------- */

static void state_find_memory(struct state *state, const json_t *resource, const char *name)
{
  char live[STATE_WORDS], idle[STATE_WORDS], largest[STATE_WORDS];
  const json_t *memory = json_object_get(resource, "memory");
  uint64_t blocks = state_number(memory, "live", "blocks"), free_bytes = state_number(memory, "free", "bytes");
  units_format_bytes(state_number(memory, "live", "bytes"), live, sizeof live);
  if (json_is_true(json_object_get(resource, "suspended"))) {
    output_add_sentence(state->findings,
                        "%s is suspended: its %llu live block%s of %s have no memory until it resumes.", name,
                        (unsigned long long)blocks, text_plural(blocks), live);
    return;
  }
  units_format_bytes(free_bytes + state_number(memory, "pending", "bytes") + state_number(memory, "cached", "bytes"),
                     idle, sizeof idle);
  units_format_bytes(state_number(memory, NULL, "largest_free_bytes"), largest, sizeof largest);
  output_add_sentence(state->findings, "%s has %s in %llu live block%s, and %s that no block uses.", name, live,
                      (unsigned long long)blocks, text_plural(blocks), idle);
  double fragmentation = json_number_value(json_object_get(memory, "fragmentation"));
  if (free_bytes && fragmentation > 0.05)
    output_add_sentence(state->findings, "Its free memory is fragmented: the largest free block has %s (%.0f %% less).",
                        largest, 100 * fragmentation);
}

/* The blocks whose free would join the most memory. */
static void state_find_blockers(struct state *state, const json_t *resource, const char *name, json_t *rows)
{
  size_t i;
  json_t *blocker;
  char joined[STATE_WORDS];
  json_array_foreach(json_object_get(json_object_get(resource, "memory"), "blockers"), i, blocker)
  {
    json_t *first = json_array_get(json_object_get(blocker, "blocks"), 0);
    uint64_t blocks = state_number(blocker, NULL, "n_blocks");
    json_array_append_new(rows,
                          json_pack("[s, o, o, o, o]", name, state_copy(first, "address"), state_copy(first, "stream"),
                                    state_count(blocks), state_count(state_number(blocker, NULL, "joined_bytes"))));
    if (i) continue;
    units_format_bytes(state_number(blocker, NULL, "joined_bytes"), joined, sizeof joined);
    output_add_sentence(state->findings, "In %s %llu block%s from %s on keep%s %s of free memory apart.", name,
                        (unsigned long long)blocks, text_plural(blocks), state_words(first, "address"),
                        blocks == 1 ? "s" : "", joined);
  }
}

static void state_add_streams(const json_t *resource, const char *name, json_t *rows)
{
  size_t i;
  json_t *stream;
  json_array_foreach(json_object_get(json_object_get(resource, "memory"), "streams"), i, stream)
      json_array_append_new(rows, json_pack("[s, o, o, o, o, o]", name, state_copy(stream, "stream"),
                                            state_count(state_number(stream, "live", "blocks")),
                                            state_count(state_number(stream, "live", "bytes")),
                                            state_count(state_number(stream, "pending", "bytes")),
                                            state_count(state_number(stream, "cached", "bytes"))));
}

struct state_rows {
  json_t *resources, *streams, *blockers;
};

static void state_add_resource(struct state *state, const json_t *resource, const struct state_rows *rows)
{
  const char *name = *state_words(resource, "path") ? state_words(resource, "path") : state_words(resource, "name");
  bool has_memory = json_is_object(json_object_get(resource, "memory"));
  const json_t *memory = json_object_get(resource, "memory");
  json_array_append_new(
      rows->resources,
      json_pack("[s, s, o, o, o, o, o, o]", name, state_words(resource, "type"),
                has_memory ? state_count(state_number(memory, "live", "blocks")) : json_null(),
                has_memory ? state_count(state_number(memory, "live", "bytes")) : json_null(),
                has_memory ? state_count(state_number(memory, "free", "bytes")) : json_null(),
                has_memory ? state_count(state_number(memory, "pending", "bytes")) : json_null(),
                has_memory ? state_count(state_number(memory, "cached", "bytes")) : json_null(),
                has_memory ? state_count(state_number(memory, NULL, "largest_free_bytes")) : json_null()));
  if (!has_memory) return;
  state_find_memory(state, resource, name);
  state_find_blockers(state, resource, name, rows->blockers);
  state_add_streams(resource, name, rows->streams);
}

static void state_add_snapshot(struct state *state, const json_t *snapshot)
{
  static const char *const stack_columns[] = {"device", "graph", "top", "held*", "most held*", NULL};
  static const char *const resource_columns[] = {"resource", "type",    "live blocks",   "live*", "free*",
                                                 "pending*", "cached*", "largest free*", NULL};
  static const char *const stream_columns[] = {"resource", "stream",  "live blocks", "live*",
                                               "pending*", "cached*", NULL};
  static const char *const blocker_columns[] = {"resource", "from", "stream", "blocks", "joins*", NULL};
  size_t i, j;
  json_t *stack, *resource, *stacks = state_table(state, "Stacks", stack_columns);
  char held[STATE_WORDS], most[STATE_WORDS];
  const struct state_rows rows = {.resources = state_table(state, "Resources", resource_columns),
                                  .streams = state_table(state, "Streams", stream_columns),
                                  .blockers =
                                      state_table(state, "Blocks that keep free memory apart", blocker_columns)};
  json_array_foreach(json_object_get(snapshot, "stacks"), i, stack)
  {
    json_array_append_new(stacks,
                          json_pack("[o, o, o, o, o]", state_copy(stack, "device"), state_copy(stack, "source"),
                                    state_copy(stack, "top"), state_count(state_number(stack, NULL, "held_bytes")),
                                    state_count(state_number(stack, NULL, "peak_held_bytes"))));
    units_format_bytes(state_number(stack, NULL, "held_bytes"), held, sizeof held);
    units_format_bytes(state_number(stack, NULL, "peak_held_bytes"), most, sizeof most);
    output_add_sentence(state->findings, "The stack of %s holds %s of device %llu, and held at most %s.",
                        state_words(stack, "top"), held, (unsigned long long)state_number(stack, NULL, "device"), most);
    json_array_foreach(json_object_get(stack, "resources"), j, resource) state_add_resource(state, resource, &rows);
  }
}

/* ---- Reports of processes --------------------------------------------------------------------------------------- */

static void state_find_process(struct state *state, const json_t *report, const char *name)
{
  const char *failure = state_words(report, "first_failure"), *signal = state_words(report, "signal");
  size_t i;
  json_t *memory;
  char requested[STATE_WORDS], live[STATE_WORDS];
  if (*signal) output_add_sentence(state->findings, "%s was ended by %s.", name, signal);
  json_array_foreach(json_object_get(report, "memory"), i, memory)
  {
    uint64_t blocks = state_number(memory, NULL, "live_blocks"), device = state_number(memory, NULL, "device");
    units_format_bytes(state_number(memory, NULL, "peak_requested_bytes"), requested, sizeof requested);
    units_format_bytes(state_number(memory, NULL, "live_bytes"), live, sizeof live);
    if (json_object_get(memory, "peak_requested_bytes"))
      output_add_sentence(state->findings, "%s had at most %s of %s memory at once on device %llu.", name, requested,
                          state_words(memory, "kind"), (unsigned long long)device);
    if (blocks)
      output_add_sentence(state->findings, "%s had %llu block%s with %s of it when the report was made.", name,
                          (unsigned long long)blocks, text_plural(blocks), live);
  }
  if (*failure) output_add_sentence(state->findings, "The first failure of %s: %s", name, failure);
}

static void state_add_lines(struct state *state, const json_t *report)
{
  static const char *const columns[] = {"line", NULL};
  size_t i, j;
  json_t *resource, *line;
  char heading[256];
  json_array_foreach(json_object_get(report, "resources"), i, resource)
  {
    snprintf(heading, sizeof heading, "Device %llu, %.200s", (unsigned long long)state_number(resource, NULL, "device"),
             state_words(resource, "name"));
    json_t *rows = state_table(state, heading, columns);
    json_array_foreach(json_object_get(resource, "report"), j, line) if (json_is_string(line))
        json_array_append_new(rows, json_pack("[O]", line));
  }
}

static void state_add_report(struct state *state, const json_t *report)
{
  static const char *const memory_columns[] = {
      "device", "memory", "stack", "peak requested*", "peak reserved*", "driver alone*", "live*", "live blocks", NULL};
  static const char *const function_columns[] = {"function", "calls", "passed on", "failed", NULL};
  size_t i;
  json_t *entry;
  const char *function;
  char name[192], heading[256];
  snprintf(name, sizeof name, "%.120s (process %llu)", state_words(report, "program"),
           (unsigned long long)state_number(report, NULL, "process"));
  state_find_process(state, report, name);
  snprintf(heading, sizeof heading, "Memory of %s", name);
  json_t *rows = state_table(state, heading, memory_columns);
  json_array_foreach(json_object_get(report, "memory"), i, entry) json_array_append_new(
      rows, json_pack("[o, o, o, o, o, o, o, o]", state_copy(entry, "device"), state_copy(entry, "kind"),
                      state_copy(entry, "stack"), state_copy(entry, "peak_requested_bytes"),
                      state_copy(entry, "peak_reserved_bytes"), state_copy(entry, "driver_alone_bytes"),
                      state_copy(entry, "live_bytes"), state_copy(entry, "live_blocks")));
  snprintf(heading, sizeof heading, "Calls of %s", name);
  rows = state_table(state, heading, function_columns);
  json_object_foreach(json_object_get(report, "functions"), function, entry)
      json_array_append_new(rows, json_pack("[s, o, o, o]", function, state_copy(entry, "calls"),
                                            state_copy(entry, "passed"), state_copy(entry, "failed")));
  state_add_lines(state, report);
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

json_t *state_summary(const json_t *states, const char *title)
{
  struct state state = {json_array(), json_array()};
  json_t *missing = json_array(), *one;
  bool has_snapshot = false, has_report = false;
  size_t i;
  json_array_foreach(states, i, one)
  {
    bool is_snapshot = json_is_array(json_object_get(one, "stacks"));
    if (is_snapshot)
      state_add_snapshot(&state, one);
    else
      state_add_report(&state, one);
    has_snapshot |= is_snapshot;
    has_report |= !is_snapshot;
  }
  if (has_snapshot)
    output_add_sentence(missing,
                        "A snapshot is of one moment: it does not tell how the memory changed, what the peak was "
                        "made of, how long blocks live, and which threads and calls allocated them.");
  if (has_report)
    output_add_sentence(missing,
                        "The report of a process has sums: it does not tell how the memory changed, what the peak "
                        "was made of, and where and for how long blocks lived.");
  output_add_sentence(missing, "A log tells that: put the resource `recording` on top of the stack.");
  return json_pack("{s:o, s:o, s:o, s:o}", "title", output_json_string(title), "findings", state.findings, "missing",
                   missing, "tables", state.tables);
}
