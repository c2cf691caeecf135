/* SPDX-License-Identifier: MIT */
/* state.c: see report.h. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../lines.h"
#include "../table.h"
#include "report.h"

struct state {
  json_t *findings, *tables;
};

static json_t *state_table(struct state *state, const char *heading, const struct table_column *columns)
{
  json_t *table = table_make(heading, columns);
  json_array_append_new(state->tables, table);
  return table;
}

/* ---- Snapshots ------------------------------------------------------------------------------------------------- */

static void state_find_memory(struct state *state, const json_t *memory, const char *name, bool is_suspended)
{
  unsigned long long blocks = lines_count(memory, "live.blocks");
  uint64_t live = lines_count(memory, "live.bytes"), free_bytes = lines_count(memory, "free.bytes");
  if (is_suspended) {
    output_add_sentence(state->findings,
                        "%s is suspended: its %llu live block%s of %s have no memory until it resumes.", name, blocks,
                        text_plural(blocks), UNITS_BYTES(live));
    return;
  }
  uint64_t idle = free_bytes + lines_count(memory, "pending.bytes") + lines_count(memory, "cached.bytes");
  output_add_sentence(state->findings, "%s has %s in %llu live block%s, and %s that no block uses.", name,
                      UNITS_BYTES(live), blocks, text_plural(blocks), UNITS_BYTES(idle));
  double fragmentation = json_number_value(json_object_get(memory, "fragmentation"));
  if (free_bytes && fragmentation > 0.05)
    output_add_sentence(state->findings, "Its free memory is fragmented: the largest free block has %s (%.0f %% less).",
                        UNITS_BYTES(lines_count(memory, "largest_free_bytes")), 100 * fragmentation);
}

/* The blocks whose free would join the most memory. */
static void state_find_blocker(struct state *state, const json_t *blocker, const char *name)
{
  unsigned long long blocks = lines_count(blocker, "n_blocks");
  output_add_sentence(state->findings, "In %s %llu block%s from %s on keep%s %s of free memory apart.", name, blocks,
                      text_plural(blocks), lines_text(blocker, "blocks.0.address"), blocks == 1 ? "s" : "",
                      UNITS_BYTES(lines_count(blocker, "joined_bytes")));
}

static const struct table_column stack_columns[] = {{"device", "device"},
                                                    {"graph", "source"},
                                                    {"top", "top"},
                                                    {"held*", "held_bytes"},
                                                    {"most held*", "peak_held_bytes"},
                                                    {NULL, NULL}};
static const struct table_column resource_columns[] = {{"resource", ""},
                                                       {"type", "type"},
                                                       {"live blocks", "memory.live.blocks"},
                                                       {"live*", "memory.live.bytes"},
                                                       {"free*", "memory.free.bytes"},
                                                       {"pending*", "memory.pending.bytes"},
                                                       {"cached*", "memory.cached.bytes"},
                                                       {"largest free*", "memory.largest_free_bytes"},
                                                       {NULL, NULL}};
static const struct table_column stream_columns[] = {{"resource", ""},
                                                     {"stream", "stream"},
                                                     {"live blocks", "live.blocks"},
                                                     {"live*", "live.bytes"},
                                                     {"pending*", "pending.bytes"},
                                                     {"cached*", "cached.bytes"},
                                                     {NULL, NULL}};
static const struct table_column blocker_columns[] = {
    {"resource", ""},       {"from", "blocks.0.address"}, {"stream", "blocks.0.stream"},
    {"blocks", "n_blocks"}, {"joins*", "joined_bytes"},   {NULL, NULL}};

struct state_tables {
  json_t *stacks, *resources, *streams, *blockers;
};

static void state_add_resource(struct state *state, const json_t *resource, const struct state_tables *tables)
{
  const char *path = lines_text(resource, "path"), *name = *path ? path : lines_text(resource, "name");
  const json_t *memory = json_object_get(resource, "memory");
  size_t i;
  json_t *item;
  table_add(tables->resources, resource_columns, name, resource);
  if (!json_is_object(memory)) return;
  state_find_memory(state, memory, name, json_is_true(json_object_get(resource, "suspended")));
  json_array_foreach(json_object_get(memory, "blockers"), i, item)
  {
    table_add(tables->blockers, blocker_columns, name, item);
    if (i == 0) state_find_blocker(state, item, name);
  }
  json_array_foreach(json_object_get(memory, "streams"), i, item)
      table_add(tables->streams, stream_columns, name, item);
}

static void state_add_snapshot(struct state *state, const json_t *snapshot)
{
  size_t i, j;
  json_t *stack, *resource;
  const struct state_tables tables = {.stacks = state_table(state, "Stacks", stack_columns),
                                      .resources = state_table(state, "Resources", resource_columns),
                                      .streams = state_table(state, "Streams", stream_columns),
                                      .blockers =
                                          state_table(state, "Blocks that keep free memory apart", blocker_columns)};
  json_array_foreach(json_object_get(snapshot, "stacks"), i, stack)
  {
    table_add(tables.stacks, stack_columns, NULL, stack);
    output_add_sentence(state->findings, "The stack of %s holds %s of device %llu, and held at most %s.",
                        lines_text(stack, "top"), UNITS_BYTES(lines_count(stack, "held_bytes")),
                        (unsigned long long)lines_count(stack, "device"),
                        UNITS_BYTES(lines_count(stack, "peak_held_bytes")));
    json_array_foreach(json_object_get(stack, "resources"), j, resource) state_add_resource(state, resource, &tables);
  }
}

/* ---- Reports of processes --------------------------------------------------------------------------------------- */

static void state_find_process(struct state *state, const json_t *report, const char *name)
{
  const char *failure = lines_text(report, "first_failure"), *signal = lines_text(report, "signal");
  size_t i;
  json_t *memory;
  if (*signal) output_add_sentence(state->findings, "%s was ended by %s.", name, signal);
  json_array_foreach(json_object_get(report, "memory"), i, memory)
  {
    unsigned long long blocks = lines_count(memory, "live_blocks"), device = lines_count(memory, "device");
    if (json_object_get(memory, "peak_requested_bytes"))
      output_add_sentence(state->findings, "%s had at most %s of %s memory at once on device %llu.", name,
                          UNITS_BYTES(lines_count(memory, "peak_requested_bytes")), lines_text(memory, "kind"), device);
    if (blocks)
      output_add_sentence(state->findings, "%s had %llu block%s with %s of it when the report was made.", name, blocks,
                          text_plural(blocks), UNITS_BYTES(lines_count(memory, "live_bytes")));
  }
  if (*failure) output_add_sentence(state->findings, "The first failure of %s: %s", name, failure);
}

/* What the resources say of themselves. */
static void state_add_lines(struct state *state, const json_t *report)
{
  static const struct table_column columns[] = {{"line", ""}, {NULL, NULL}};
  size_t i, j;
  json_t *resource, *line;
  char heading[256];
  json_array_foreach(json_object_get(report, "resources"), i, resource)
  {
    snprintf(heading, sizeof heading, "Device %llu, %.200s", (unsigned long long)lines_count(resource, "device"),
             lines_text(resource, "name"));
    json_t *table = state_table(state, heading, columns);
    json_array_foreach(json_object_get(resource, "report"), j, line) if (json_is_string(line))
        table_add(table, columns, json_string_value(line), NULL);
  }
}

static void state_add_report(struct state *state, const json_t *report)
{
  static const struct table_column memory_columns[] = {{"device", "device"},
                                                       {"memory", "kind"},
                                                       {"stack", "stack"},
                                                       {"peak requested*", "peak_requested_bytes"},
                                                       {"peak reserved*", "peak_reserved_bytes"},
                                                       {"driver alone*", "driver_alone_bytes"},
                                                       {"live*", "live_bytes"},
                                                       {"live blocks", "live_blocks"},
                                                       {NULL, NULL}};
  static const struct table_column function_columns[] = {
      {"function", ""}, {"calls", "calls"}, {"passed on", "passed"}, {"failed", "failed"}, {NULL, NULL}};
  size_t i;
  json_t *entry;
  const char *function;
  char name[192], heading[256];
  snprintf(name, sizeof name, "%.120s (process %llu)", lines_text(report, "program"),
           (unsigned long long)lines_count(report, "process"));
  state_find_process(state, report, name);
  snprintf(heading, sizeof heading, "Memory of %s", name);
  json_t *table = state_table(state, heading, memory_columns);
  json_array_foreach(json_object_get(report, "memory"), i, entry) table_add(table, memory_columns, NULL, entry);
  snprintf(heading, sizeof heading, "Calls of %s", name);
  table = state_table(state, heading, function_columns);
  json_object_foreach(json_object_get(report, "functions"), function, entry)
      table_add(table, function_columns, function, entry);
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
    output_add_sentence(missing, "A snapshot is of one moment: it does not tell how the memory changed, what the peak "
                                 "was made of, how long blocks live, and which threads and calls allocated them.");
  if (has_report)
    output_add_sentence(missing, "The report of a process has sums: it does not tell how the memory changed, what the "
                                 "peak was made of, and where and for how long blocks lived.");
  output_add_sentence(missing, "A log tells that: put the resource `recording` on top of the stack.");
  return json_pack("{s:o, s:o, s:o, s:o}", "title", output_json_string(title), "findings", state.findings, "missing",
                   missing, "tables", state.tables);
}
