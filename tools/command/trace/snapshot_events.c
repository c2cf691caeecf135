/* SPDX-License-Identifier: MIT */
/* snapshot_events.c: collects the events of a snapshot of PyTorch, and finds what was there before the first: blocks by their
 * frees and in the segments, segments by undoing the events. */
#include "../array.h"
#include "segments.h"
#include "snapshot.h"

#include <stdlib.h>

/* Of more devices only the blocks are read. */
enum { SNAPSHOT_DEVICES = 128 };

/* ---- Events ---------------------------------------------------------------------------------------------------- */

static struct trace_space snapshot_space(const struct snapshot *snapshot)
{
  return (struct trace_space){.process = snapshot->process, .device = snapshot->device};
}

/* Room for one more event or block. */
static bool snapshot_has_room(struct snapshot *snapshot)
{
  if (snapshot->n_events + snapshot->n_before < snapshot->most_events) return true;
  snapshot->looks = 0;
  return false;
}

static bool snapshot_add(struct snapshot *snapshot, const struct tree_value *entry, int64_t order)
{
  if (!snapshot_has_room(snapshot) ||
      !array_grow(&snapshot->events, snapshot->n_events, &snapshot->capacity, sizeof *snapshot->events))
    return false;
  snapshot->events[snapshot->n_events] =
      (struct snapshot_event){entry, order, (uint32_t)snapshot->n_traces - 1, (uint32_t)snapshot->n_events};
  return ++snapshot->n_events < UINT32_MAX;
}

/* The events that are added next are of the present device. */
static bool snapshot_begin_trace(struct snapshot *snapshot)
{
  if (snapshot->n_traces == UINT32_MAX ||
      !array_grow(&snapshot->traces, snapshot->n_traces, &snapshot->traces_capacity, sizeof *snapshot->traces))
    return false;
  snapshot->traces[snapshot->n_traces++] = (struct snapshot_trace){snapshot_space(snapshot), NULL};
  return true;
}

/* A block, or a segment, that was allocated before the history began. */
static bool snapshot_add_before(struct snapshot *snapshot, struct trace_row row, const struct tree_value *frames)
{
  if (!snapshot_has_room(snapshot) ||
      !array_grow(&snapshot->before, snapshot->n_before, &snapshot->before_capacity, sizeof *snapshot->before))
    return false;
  row.space = snapshot_space(snapshot);
  row.nanoseconds = TRACE_NO_TIME;
  snapshot->n_blocks_before += row.action == TRACE_ALLOCATE;
  snapshot->before[snapshot->n_before++] = (struct snapshot_before){row, frames};
  return true;
}

/* What an entry tells; false: nothing. */
static bool snapshot_action(const struct tree_value *entry, enum trace_action *action_out, bool *is_known_out)
{
  static const struct {
    const char *name;
    enum trace_action action;
  } actions[] = {{"alloc", TRACE_ALLOCATE},       {"free_requested", TRACE_FREE},   {"free", TRACE_FREE},
                 {"oom", TRACE_ALLOCATE_FAILURE}, {"segment_alloc", TRACE_HOLD},    {"segment_map", TRACE_HOLD},
                 {"segment_free", TRACE_RELEASE}, {"segment_unmap", TRACE_RELEASE}, {"free_completed", TRACE_COMPLETE}};
  static const char *const others[] = {"snapshot", "workspace_snapshot"};
  const struct tree_value *action = tree_get(entry, "action", TREE_TEXT), *stage = tree_get(entry, "stage", TREE_TEXT);
  for (size_t i = 0; action && i < sizeof actions / sizeof *actions; i++)
    if (tree_text_is(action, actions[i].name)) return *action_out = actions[i].action, true;
  *is_known_out = false;
  for (size_t i = 0; action && i < sizeof others / sizeof *others; i++)
    *is_known_out = *is_known_out || tree_text_is(action, others[i]);
  *action_out = tree_text_is(stage, "END") ? TRACE_MARK_END : TRACE_MARK;
  return stage != NULL;
}

/* The private pool of a segment or of an event of one: its two numbers, one of which is 0. */
static uint32_t snapshot_pool(const struct tree_value *entry)
{
  const struct tree_value *pool = tree_get(entry, "segment_pool_id", TREE_LIST);
  struct tree_walk walk = tree_walk_of(pool ? pool : tree_get(entry, "pool_id", TREE_LIST));
  int64_t numbers[2] = {0, 0};
  for (int i = 0; i < 2; i++) {
    const struct tree_value *number = tree_next(&walk);
    if (number) numbers[i] = tree_number_of(number);
  }
  return (uint32_t)(numbers[0] & UINT16_MAX) << 16 | (uint32_t)(numbers[1] & UINT16_MAX);
}

/* A pickle may have one list in many places, and such lists in others: it is damaged where that makes more entries than the
 * file has bytes. */
static bool snapshot_may_look(struct snapshot *snapshot)
{
  if (!snapshot->looks) return false;
  snapshot->looks--;
  return true;
}

bool snapshot_read_event(struct snapshot *snapshot, const struct tree_value *entry, const struct trace_space *space,
                         struct trace_row *row)
{
  bool is_known = true;
  int64_t time = tree_get_number(entry, "time_us", -1);
  *row = (struct trace_row){.space = *space,
                            .pointer = (uint64_t)tree_get_number(entry, "addr", 0),
                            .bytes = (uint64_t)tree_get_number(entry, "size", 0),
                            .stream = (uint64_t)tree_get_number(entry, "stream", 0),
                            .nanoseconds = TRACE_NO_TIME};
  if (time >= 0 && time <= INT64_MAX / 1000) row->nanoseconds = time * 1000;
  bool is_read = snapshot_action(entry, &row->action, &is_known);
  snapshot->n_unknown += !is_read && !is_known;
  row->waits = row->action == TRACE_FREE && tree_text_is(tree_get(entry, "action", TREE_TEXT), "free_requested");
  if (row->action == TRACE_ALLOCATE_FAILURE) row->pointer = 0;
  if (row->action == TRACE_HOLD || row->action == TRACE_RELEASE) row->pool = snapshot_pool(entry);
  if (row->action == TRACE_HOLD && !row->pool) row->pool = (uint32_t)key_map_get(&snapshot->pools, (uintptr_t)entry);
  return is_read;
}

/* The first pass over a device's events finds the frees of blocks of before, the second takes the events. */
static bool snapshot_read_trace(struct snapshot *snapshot, const struct tree_value *trace, bool takes_events)
{
  const struct trace_space space = snapshot_space(snapshot);
  struct trace_row row;
  struct trace_pair pair;
  size_t unknown = snapshot->n_unknown;
  int64_t order = TRACE_NO_TIME;
  struct tree_walk walk = tree_walk_of(trace);
  if (takes_events && !snapshot_begin_trace(snapshot)) return false;
  for (const struct tree_value *entry; (entry = tree_next(&walk)) != NULL;) {
    if (!snapshot_may_look(snapshot)) return false;
    if (!snapshot_read_event(snapshot, entry, &space, &row)) continue;
    if (takes_events) {
      if (row.nanoseconds > order) order = row.nanoseconds;
      if (!snapshot_add(snapshot, entry, order)) return false;
      continue;
    }
    if (!trace_live_note(&snapshot->live, &row, &pair)) return false;
    if (row.action != TRACE_FREE || pair.slot) continue;
    row.action = TRACE_ALLOCATE;
    if (!snapshot_add_before(snapshot, row, NULL)) return false;
  }
  if (!takes_events) snapshot->n_unknown = unknown;
  return true;
}

/* A block that is live at the end has `bytes` more than was asked for. False: out of memory. */
static bool snapshot_add_rounding(struct snapshot *snapshot, uint64_t bytes)
{
  const struct trace_row row = {
      .action = TRACE_ROUNDED, .space = snapshot_space(snapshot), .bytes = bytes, .nanoseconds = TRACE_NO_TIME};
  struct trace_row *last = snapshot->n_after ? &snapshot->after[snapshot->n_after - 1] : NULL;
  if (last && trace_space_is(&last->space, &row.space)) return last->bytes += bytes, true;
  if (!array_grow(&snapshot->after, snapshot->n_after, &snapshot->after_capacity, sizeof *snapshot->after))
    return false;
  snapshot->after[snapshot->n_after++] = row;
  return true;
}

/* The blocks that live, and that no event allocated. Older releases do not write a block's address, and have its call stack
 * in a list "history". */
static bool snapshot_read_segment(struct snapshot *snapshot, const struct tree_value *segment)
{
  struct tree_walk walk = tree_walk_of(tree_get(segment, "blocks", TREE_LIST));
  uint64_t address = (uint64_t)tree_get_number(segment, "address", 0);
  struct trace_row row = {.stream = (uint64_t)tree_get_number(segment, "stream", 0)};
  struct trace_pair pair;
  snapshot->device = (int32_t)tree_get_number(segment, "device", 0);
  for (const struct tree_value *block; (block = tree_next(&walk)) != NULL;) {
    if (!snapshot_may_look(snapshot)) return false;
    const struct tree_value *frames = tree_get(block, "frames", TREE_LIST);
    const struct tree_value *history = tree_first(tree_get(block, "history", TREE_LIST));
    uint64_t size = (uint64_t)tree_get_number(block, "size", 0);
    address = (uint64_t)tree_get_number(block, "address", (int64_t)address);
    if (!frames) frames = tree_get(history, "frames", TREE_LIST);
    row.action = TRACE_FREE;
    row.space = snapshot_space(snapshot);
    row.pointer = address;
    row.bytes = (uint64_t)tree_get_number(block, "requested_size", (int64_t)size);
    if (!trace_live_note(&snapshot->live, &row, &pair)) return false;
    row.action = TRACE_ALLOCATE;
    bool is_live = tree_text_is(tree_get(block, "state", TREE_TEXT), "active_allocated");
    if (!pair.slot && is_live && !snapshot_add_before(snapshot, row, frames)) return false;
    if (is_live && size > row.bytes && !snapshot_add_rounding(snapshot, size - row.bytes)) return false;
    address += size;
  }
  return true;
}

/* ---- Segments -------------------------------------------------------------------------------------------------- */

/* What the allocator held before the events: what it holds at the end, after its events have been undone from the last to the
 * first. Most releases of PyTorch name the pool of a segment at the end only. */
static bool snapshot_undo(struct snapshot *snapshot, size_t first_event, struct segments *held)
{
  struct trace_row row;
  for (size_t i = snapshot->n_events; i-- > first_event;) {
    const struct snapshot_event *event = &snapshot->events[i];
    const struct trace_space *space = &snapshot->traces[event->trace].space;
    if (space->device < 0 || space->device >= SNAPSHOT_DEVICES ||
        !snapshot_read_event(snapshot, event->entry, space, &row))
      continue;
    struct segments *segments = &held[space->device];
    const uint32_t pool = row.action == TRACE_HOLD && !row.pool ? segments_pool(segments, row.pointer) : 0;
    if (pool && !key_map_put(&snapshot->pools, (uintptr_t)event->entry, pool)) return false;
    if (row.action == TRACE_HOLD && !segments_release(segments, 0, row.pointer, row.bytes)) return false;
    if (row.action == TRACE_RELEASE && !segments_hold(segments, 0, row.pointer, row.bytes, row.pool)) return false;
  }
  return true;
}

static bool snapshot_read_held(struct snapshot *snapshot, const struct tree_value *segments, size_t first_event)
{
  struct segments held[SNAPSHOT_DEVICES] = {{0}};
  struct tree_walk walk = tree_walk_of(segments);
  bool good = true;
  for (const struct tree_value *segment; good && (segment = tree_next(&walk)) != NULL;) {
    const int64_t device = tree_get_number(segment, "device", 0), bytes = tree_get_number(segment, "total_size", 0);
    const uint64_t address = (uint64_t)tree_get_number(segment, "address", 0);
    if (device >= 0 && device < SNAPSHOT_DEVICES && bytes > 0)
      good = segments_hold(&held[device], 0, address, (uint64_t)bytes, snapshot_pool(segment));
  }
  good = good && snapshot_undo(snapshot, first_event, held);
  for (snapshot->device = 0; snapshot->device < SNAPSHOT_DEVICES; snapshot->device++) {
    struct segments *of = &held[snapshot->device];
    for (size_t i = 0; good && i < of->n_held; i++) {
      const struct segment *segment = &of->items[of->held[i]];
      const struct trace_row row = {
          .action = TRACE_HOLD, .pool = segment->pool, .pointer = segment->address, .bytes = segment->bytes};
      good = snapshot_add_before(snapshot, row, NULL);
    }
    segments_clear(of);
  }
  return good;
}

/* What torch.profiler.record_function() and others noted. */
static bool snapshot_read_notes(struct snapshot *snapshot, const struct tree_value *notes)
{
  struct tree_walk walk = tree_walk_of(notes);
  for (const struct tree_value *note; (note = tree_next(&walk)) != NULL;) {
    const int64_t time = tree_get_number(note, "time_us", -1), device = tree_get_number(note, "device", 0);
    if (!snapshot_may_look(snapshot)) return false;
    if (time < 0 || time > INT64_MAX / 1000 || !tree_get(note, "stage", TREE_TEXT)) continue;
    if (!snapshot->has_notes || snapshot->device != device) {
      snapshot->device = (int32_t)device;
      if (!snapshot_begin_trace(snapshot)) return false;
    }
    snapshot->has_notes = true;
    if (!snapshot_add(snapshot, note, time * 1000)) return false;
  }
  return true;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

/* The order within a device stays, and so does that of equal times. */
static int snapshot_compare(const void *one, const void *other)
{
  const struct snapshot_event *a = one, *b = other;
  if (a->order != b->order) return a->order < b->order ? -1 : 1;
  return a->place < b->place ? -1 : 1;
}

static bool snapshot_read_one(struct snapshot *snapshot, const struct tree_value *one,
                              const struct tree_value *segments)
{
  const size_t first_event = snapshot->n_events;
  const struct tree_value *traces = tree_get(one, "device_traces", TREE_LIST), *value;
  for (int pass = 0; pass < 2; pass++) {
    struct tree_walk walk = tree_walk_of(traces);
    for (snapshot->device = 0; (value = tree_next(&walk)) != NULL; snapshot->device++) {
      if (tree_kind_of(value) != TREE_LIST) continue;
      snapshot->n_devices += pass && value->first;
      if (!snapshot_read_trace(snapshot, value, pass)) return false;
    }
    walk = tree_walk_of(pass ? NULL : segments);
    while ((value = tree_next(&walk)) != NULL)
      if (!snapshot_read_segment(snapshot, value)) return false;
  }
  snapshot->n_snapshots++;
  return snapshot_read_held(snapshot, segments, first_event) &&
         snapshot_read_notes(snapshot, tree_get(one, "external_annotations", TREE_LIST));
}

bool snapshot_is_one(const struct tree_value *value)
{
  return tree_get(value, "device_traces", TREE_LIST) || tree_get(value, "segments", TREE_LIST);
}

/* What was before the history has the time of its first block. */
static void snapshot_date_before(struct snapshot *snapshot)
{
  struct trace_row row = {.nanoseconds = TRACE_NO_TIME};
  for (size_t i = 0; i < snapshot->n_events; i++) {
    const struct snapshot_event *event = &snapshot->events[i];
    snapshot_read_event(snapshot, event->entry, &snapshot->traces[event->trace].space, &row);
    if (trace_action_is_of_blocks(row.action)) break;
  }
  for (size_t i = 0; i < snapshot->n_before; i++) snapshot->before[i].row.nanoseconds = row.nanoseconds;
}

bool snapshot_read(struct snapshot *snapshot, const struct tree_value *root)
{
  const bool is_list = tree_kind_of(root) == TREE_LIST, has_several = is_list && snapshot_is_one(tree_first(root));
  bool good = has_several || snapshot_read_one(snapshot, root, is_list ? root : tree_get(root, "segments", TREE_LIST));
  struct tree_walk walk = tree_walk_of(has_several ? root : NULL);
  for (const struct tree_value *one; good && (one = tree_next(&walk)) != NULL;) {
    snapshot->process = root->length > 1 ? snapshot->n_snapshots + 1 : 0;
    good = snapshot_may_look(snapshot) && snapshot_read_one(snapshot, one, tree_get(one, "segments", TREE_LIST));
  }
  if (!good) return false;
  if ((snapshot->n_devices > 1 || snapshot->n_snapshots > 1 || snapshot->has_notes) && snapshot->n_events)
    qsort(snapshot->events, snapshot->n_events, sizeof *snapshot->events, snapshot_compare);
  snapshot_date_before(snapshot);
  return true;
}
