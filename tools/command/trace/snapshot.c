/* SPDX-License-Identifier: MIT */
/* snapshot.c: reads what torch.cuda.memory._snapshot() gives, as the pickle of _dump_snapshot() or as JSON:
 *
 *   {"device_traces": [[{"action": "alloc", "addr": …, "size": …, "stream": …, "time_us": …, "frames": […]}, …], …],
 *    "segments": [{"address": …, "stream": …, "blocks": [{"state": "active_allocated", "size": …, …}, …]}, …]}
 *
 * A free is "free_requested", when the program gives the block back; "free_completed" follows when all streams are done with
 * it. The history has the last events only: blocks that lived before it began are found by their frees and in the segments,
 * and become allocations before all events. */
#include "../array.h"
#include "format.h"
#include "live.h"
#include "snapshot_frames.h"
#include "stack_texts.h"
#include "tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No event, or block, takes fewer bytes of a file. */
enum { SNAPSHOT_LEAST_EVENT_BYTES = 8 };

struct snapshot_event {
  struct trace_row row;
  const struct tree_value *frames; /* NULL: none */
  int64_t order;                   /* its time, or the latest before it on its device */
  size_t place;
};

struct snapshot {
  struct tree tree;
  char *data;
  struct snapshot_event *events; /* in order of time; blocks of before the history first */
  size_t n_events, capacity, next_event;
  struct trace_live live; /* while the events are collected */
  struct key_map stacks;  /* place of the frames to number */
  struct stack_texts texts;
  struct key_map lines; /* of frames */
  uint64_t process;     /* whose events or segments are collected: of a list, the place of the snapshot */
  int32_t device;       /* the same */
  size_t n_snapshots, n_devices, n_before, n_unknown;
  size_t most_events; /* that a file of its size can have */
  size_t looks;       /* at entries of lists, that are left: a file has fewer, each of which is looked at twice */
};

/* ---- Call stacks ----------------------------------------------------------------------------------------------- */

/* The number of a stack. Pickles have equal stacks once, and JSON often. */
static bool snapshot_stack_of(struct snapshot *snapshot, const struct tree_value *frames, uint32_t *number_out)
{
  uint64_t place = (uint64_t)(uintptr_t)frames;
  *number_out = 0;
  if (!frames || !frames->first) return true;
  *number_out = (uint32_t)key_map_get(&snapshot->stacks, place);
  if (*number_out) return true;
  return snapshot_frames_add(&snapshot->texts, &snapshot->lines, frames, number_out) &&
         key_map_put(&snapshot->stacks, place, *number_out);
}

/* ---- Events ---------------------------------------------------------------------------------------------------- */

static struct trace_space snapshot_space(const struct snapshot *snapshot)
{
  return (struct trace_space){.process = snapshot->process, .device = snapshot->device};
}

static bool snapshot_add(struct snapshot *snapshot, struct snapshot_event event)
{
  if (snapshot->n_events >= snapshot->most_events) {
    snapshot->looks = 0;
    return false;
  }
  if (!array_grow(&snapshot->events, snapshot->n_events, &snapshot->capacity, sizeof *snapshot->events)) return false;
  event.place = snapshot->n_events;
  snapshot->events[snapshot->n_events++] = event;
  return true;
}

/* A block that was allocated before the history began. */
static bool snapshot_add_before(struct snapshot *snapshot, uint64_t pointer, uint64_t bytes, uint64_t stream,
                                const struct tree_value *frames)
{
  const struct trace_row row = {.action = TRACE_ALLOCATE,
                                .space = snapshot_space(snapshot),
                                .pointer = pointer,
                                .bytes = bytes,
                                .stream = stream,
                                .nanoseconds = TRACE_NO_TIME};
  snapshot->n_before++;
  return snapshot_add(snapshot, (struct snapshot_event){.row = row, .frames = frames, .order = TRACE_NO_TIME});
}

static bool snapshot_is_allocator_event(const struct tree_value *action)
{
  static const char *const actions[] = {"free_completed", "segment_alloc", "segment_free",      "segment_map",
                                        "segment_unmap",  "snapshot",      "workspace_snapshot"};
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
    if (tree_text_is(action, actions[i])) return true;
  return false;
}

/* A pickle may have one list in many places, and such lists in others: it is damaged where that makes more entries than the
 * file has bytes. */
static bool snapshot_may_look(struct snapshot *snapshot)
{
  if (!snapshot->looks) return false;
  snapshot->looks--;
  return true;
}

/* False: no event of a program. */
static bool snapshot_read_event(struct snapshot *snapshot, const struct tree_value *entry, struct snapshot_event *event)
{
  const struct tree_value *action = tree_get(entry, "action", TREE_TEXT);
  int64_t time = tree_get_number(entry, "time_us", -1);
  *event = (struct snapshot_event){.row = {.space = snapshot_space(snapshot),
                                           .pointer = (uint64_t)tree_get_number(entry, "addr", 0),
                                           .bytes = (uint64_t)tree_get_number(entry, "size", 0),
                                           .stream = (uint64_t)tree_get_number(entry, "stream", 0),
                                           .nanoseconds = TRACE_NO_TIME},
                                   .frames = tree_get(entry, "frames", TREE_LIST)};
  if (time >= 0 && time <= INT64_MAX / 1000) event->row.nanoseconds = time * 1000;
  if (tree_text_is(action, "alloc"))
    event->row.action = TRACE_ALLOCATE;
  else if (tree_text_is(action, "free_requested") || tree_text_is(action, "free"))
    event->row.action = TRACE_FREE;
  else if (tree_text_is(action, "oom"))
    event->row.action = TRACE_ALLOCATE_FAILURE;
  else {
    snapshot->n_unknown += !snapshot_is_allocator_event(action);
    return false;
  }
  if (event->row.action == TRACE_ALLOCATE_FAILURE) event->row.pointer = 0;
  return true;
}

/* The first pass over a device's events finds the frees of blocks of before, the second takes the events. */
static bool snapshot_read_trace(struct snapshot *snapshot, const struct tree_value *trace, bool takes_events)
{
  struct snapshot_event event;
  struct trace_pair pair;
  size_t unknown = snapshot->n_unknown;
  int64_t order = TRACE_NO_TIME;
  for (const struct tree_item *item = trace->first; item; item = item->next) {
    if (!snapshot_may_look(snapshot)) return false;
    if (!snapshot_read_event(snapshot, item->value, &event)) continue;
    if (takes_events) {
      if (event.row.nanoseconds > order) order = event.row.nanoseconds;
      event.order = order;
      if (!snapshot_add(snapshot, event)) return false;
      continue;
    }
    if (!trace_live_note(&snapshot->live, &event.row, &pair)) return false;
    if (event.row.action != TRACE_FREE || pair.slot) continue;
    if (!snapshot_add_before(snapshot, event.row.pointer, event.row.bytes, event.row.stream, NULL)) return false;
  }
  if (!takes_events) snapshot->n_unknown = unknown;
  return true;
}

/* The blocks that live, and that no event allocated. Older releases do not write a block's address, and have its call stack
 * in a list "history". */
static bool snapshot_read_segment(struct snapshot *snapshot, const struct tree_value *segment)
{
  const struct tree_value *blocks = tree_get(segment, "blocks", TREE_LIST);
  uint64_t address = (uint64_t)tree_get_number(segment, "address", 0);
  uint64_t stream = (uint64_t)tree_get_number(segment, "stream", 0);
  struct trace_pair pair;
  snapshot->device = (int32_t)tree_get_number(segment, "device", 0);
  for (const struct tree_item *item = blocks ? blocks->first : NULL; item; item = item->next) {
    if (!snapshot_may_look(snapshot)) return false;
    const struct tree_value *block = item->value, *frames = tree_get(block, "frames", TREE_LIST);
    const struct tree_value *history = tree_get(block, "history", TREE_LIST);
    uint64_t size = (uint64_t)tree_get_number(block, "size", 0);
    address = (uint64_t)tree_get_number(block, "address", (int64_t)address);
    if (!frames && history && history->first) frames = tree_get(history->first->value, "frames", TREE_LIST);
    const struct trace_row row = {.action = TRACE_FREE, .space = snapshot_space(snapshot), .pointer = address};
    if (!trace_live_note(&snapshot->live, &row, &pair)) return false;
    if (!pair.slot && tree_text_is(tree_get(block, "state", TREE_TEXT), "active_allocated") &&
        !snapshot_add_before(snapshot, address, (uint64_t)tree_get_number(block, "requested_size", (int64_t)size),
                             stream, frames))
      return false;
    address += size;
  }
  return true;
}

/* The order within a device stays, and so does that of equal times. */
static int snapshot_compare(const void *one, const void *other)
{
  const struct snapshot_event *a = one, *b = other;
  if (a->order != b->order) return a->order < b->order ? -1 : 1;
  return a->place < b->place ? -1 : 1;
}

static bool snapshot_read_one(struct snapshot *snapshot, const struct tree_value *traces,
                              const struct tree_value *segments)
{
  for (int pass = 0; pass < 2; pass++) {
    snapshot->device = 0;
    for (const struct tree_item *item = traces ? traces->first : NULL; item; item = item->next, snapshot->device++) {
      if (item->value->kind != TREE_LIST) continue;
      snapshot->n_devices += pass && item->value->first;
      if (!snapshot_read_trace(snapshot, item->value, pass)) return false;
    }
    for (const struct tree_item *item = segments && !pass ? segments->first : NULL; item; item = item->next)
      if (!snapshot_read_segment(snapshot, item->value)) return false;
  }
  snapshot->n_snapshots++;
  return true;
}

static bool snapshot_is_one(const struct tree_value *value)
{
  return tree_get(value, "device_traces", TREE_LIST) || tree_get(value, "segments", TREE_LIST);
}

/* A snapshot; a list of several, such as those that the ranks of a job gathered; or the segments alone. */
static bool snapshot_read(struct snapshot *snapshot, const struct tree_value *root)
{
  bool is_list = root->kind == TREE_LIST, has_several = is_list && snapshot_is_one(root->first->value);
  bool good = has_several || snapshot_read_one(snapshot, tree_get(root, "device_traces", TREE_LIST),
                                               is_list ? root : tree_get(root, "segments", TREE_LIST));
  for (const struct tree_item *item = has_several ? root->first : NULL; good && item; item = item->next) {
    snapshot->process = root->length > 1 ? snapshot->n_snapshots + 1 : 0;
    good = snapshot_may_look(snapshot) && snapshot_read_one(snapshot, tree_get(item->value, "device_traces", TREE_LIST),
                                                            tree_get(item->value, "segments", TREE_LIST));
  }
  if (!good) return false;
  if ((snapshot->n_devices > 1 || snapshot->n_snapshots > 1) && snapshot->n_events)
    qsort(snapshot->events, snapshot->n_events, sizeof *snapshot->events, snapshot_compare);
  if (snapshot->n_events > snapshot->n_before)
    for (size_t i = 0; i < snapshot->n_before; i++)
      snapshot->events[i].row.nanoseconds = snapshot->events[snapshot->n_before].row.nanoseconds;
  return true;
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

/* A log of Umpire, which is JSON too, is tried before. */
static bool snapshot_is(const char *start, size_t bytes)
{
  static const char pickle = (char)0x80, archive[] = "PK\3\4";
  if (bytes > 1 && start[0] == pickle && start[1] <= 5) return true;
  if (bytes > strlen(archive) && memcmp(start, archive, strlen(archive)) == 0) return true;
  while (bytes && (*start == ' ' || *start == '\n' || *start == '\r' || *start == '\t')) start++, bytes--;
  return bytes && (*start == '{' || *start == '[');
}

static void snapshot_close(void *reader)
{
  struct snapshot *snapshot = reader;
  stack_texts_clear(&snapshot->texts);
  free(snapshot->events);
  trace_live_clear(&snapshot->live);
  key_map_clear(&snapshot->stacks);
  key_map_clear(&snapshot->lines);
  tree_clear(&snapshot->tree);
  free(snapshot->data);
  free(snapshot);
}

/* What the file is instead; NULL: a snapshot, or several. */
static const char *snapshot_refusal(const struct tree_value *root)
{
  const struct tree_value *first = root->kind == TREE_LIST && root->first ? root->first->value : NULL;
  if (snapshot_is_one(root) || (first && (snapshot_is_one(first) || tree_get(first, "blocks", TREE_LIST)))) return NULL;
  if (root->kind == TREE_LIST) return "is a list, but neither of PyTorch's snapshots nor of the segments of one";
  return "has no \"device_traces\" and no \"segments\": neither a snapshot of torch.cuda.memory._snapshot(), nor one "
         "of hipmm (\"runtime\", \"stacks\"), the report of a process (\"process\", \"memory\") or a log of Umpire "
         "(\"replay\")";
}

static const struct tree_value *snapshot_parse(struct snapshot *snapshot, size_t bytes, char *message,
                                               size_t message_bytes)
{
  const char *data = snapshot->data;
  const struct tree_value *root = NULL;
  if (memcmp(data, "PK", 2) == 0)
    snprintf(message, message_bytes,
             "is an archive, as torch.save() writes; write the snapshot with torch.cuda.memory._dump_snapshot()");
  else if (*data == (char)0x80)
    root = tree_read_pickle(&snapshot->tree, data, bytes, message, message_bytes);
  else
    root = tree_read_json(&snapshot->tree, data, bytes, message, message_bytes);
  const char *refusal = root ? snapshot_refusal(root) : NULL;
  if (refusal) snprintf(message, message_bytes, "%s", refusal);
  return refusal ? NULL : root;
}

static void *snapshot_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  struct snapshot *snapshot = calloc(1, sizeof *snapshot);
  size_t bytes;
  if (!snapshot || !trace_lines_load(lines, &snapshot->data, &bytes)) {
    snprintf(message, message_bytes, "%s", strerror(errno));
    free(snapshot);
    return NULL;
  }
  const struct tree_value *root = snapshot_parse(snapshot, bytes, message, message_bytes);
  snapshot->looks = bytes < SIZE_MAX / 2 ? 2 * bytes : SIZE_MAX;
  snapshot->most_events = bytes / SNAPSHOT_LEAST_EVENT_BYTES + 16;
  bool good = root && snapshot_read(snapshot, root);
  trace_live_clear(&snapshot->live);
  if (good) return snapshot;
  if (root)
    snprintf(message, message_bytes, "%s",
             snapshot->looks ? "out of memory while reading it"
                             : "is damaged: its lists are in each other, and have more entries than it has bytes");
  snapshot_close(snapshot);
  return NULL;
}

static enum trace_line snapshot_next(void *reader, struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct snapshot *snapshot = reader;
  if (snapshot->next_event == snapshot->n_events) return TRACE_LINE_END;
  const struct snapshot_event *event = &snapshot->events[snapshot->next_event++];
  *row_out = event->row;
  if (snapshot_stack_of(snapshot, event->frames, &row_out->stack)) return TRACE_LINE;
  snprintf(message, message_bytes, "out of memory while reading it");
  return TRACE_LINE_ERROR;
}

static const struct stack_texts *snapshot_stacks(const void *reader)
{
  return &((const struct snapshot *)reader)->texts;
}

static void snapshot_remark(const void *reader, char *text, size_t text_bytes)
{
  const struct snapshot *snapshot = reader;
  char parts[3][160] = {"", "", ""};
  if (!snapshot->n_devices)
    snprintf(parts[0], sizeof parts[0],
             "has no events, so that only its live blocks were read; torch.cuda.memory._record_memory_history() "
             "records events");
  else if (snapshot->n_before)
    snprintf(parts[0], sizeof parts[0], "%zu block%s allocated before its events begin", snapshot->n_before,
             snapshot->n_before == 1 ? " was" : "s were");
  if (snapshot->n_unknown)
    snprintf(parts[1], sizeof parts[1], "left out: %zu event%s of kinds that are not known", snapshot->n_unknown,
             snapshot->n_unknown == 1 ? "" : "s");
  if (snapshot->n_snapshots > 1)
    snprintf(parts[2], sizeof parts[2], "it has %zu snapshots, each of which was read as that of a process",
             snapshot->n_snapshots);
  *text = '\0';
  for (size_t i = 0, used = 0; i < 3 && used < text_bytes; i++)
    if (*parts[i]) used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", used ? "; " : "", parts[i]);
}

const struct trace_format trace_format_snapshot = {.is = snapshot_is,
                                                   .open = snapshot_open,
                                                   .close = snapshot_close,
                                                   .next = snapshot_next,
                                                   .remark = snapshot_remark,
                                                   .stacks = snapshot_stacks};
