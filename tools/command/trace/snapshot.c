/* SPDX-License-Identifier: MIT */
/* snapshot.c: reads what torch.cuda.memory._snapshot() gives, as the pickle of _dump_snapshot() or as JSON:
 *
 *   {"device_traces": [[{"action": "alloc", "addr": …, "size": …, "stream": …, "time_us": …, "frames": […]}, …], …],
 *    "segments": [{"address": …, "stream": …, "blocks": [{"state": "active_allocated", "size": …, …}, …]}, …],
 *    "external_annotations": [{"stage": "START", "name": …, "time_us": …}, …]}
 *
 * A free is "free_requested", when the program gives the block back; "free_completed" follows when all streams are done with
 * it. The history has the last events only: blocks that lived before it began are found by their frees and in the segments,
 * and become allocations before all events. */
#include "snapshot.h"
#include "../../../core/base/text.h"
#include "format.h"
#include "snapshot_frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No event, or block, takes fewer bytes of a file. */
enum { SNAPSHOT_LEAST_EVENT_BYTES = 8, SNAPSHOT_NAME_BYTES = 200 };

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
  free(snapshot->before);
  free(snapshot->after);
  free(snapshot->events);
  free(snapshot->traces);
  trace_live_clear(&snapshot->live);
  key_map_clear(&snapshot->stacks);
  key_map_clear(&snapshot->pools);
  key_map_clear(&snapshot->lines);
  tree_clear(&snapshot->tree);
  free(snapshot->data);
  free(snapshot);
}

/* What the file is instead; NULL: a snapshot, or several. */
static const char *snapshot_refusal(const struct tree_value *root)
{
  const struct tree_value *first = tree_first(root);
  if (snapshot_is_one(root) || (first && (snapshot_is_one(first) || tree_get(first, "blocks", TREE_LIST)))) return NULL;
  if (tree_kind_of(root) == TREE_LIST)
    return "is a list, but neither of PyTorch's snapshots nor of the segments of one";
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
  snapshot->tree.gives_back = true;
  const struct tree_value *root = snapshot_parse(snapshot, bytes, message, message_bytes);
  free(snapshot->data);
  snapshot->data = NULL;
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

/* The number of a note's text. */
static bool snapshot_name(struct snapshot *snapshot, const struct tree_value *name, uint32_t *number_out)
{
  char line[SNAPSHOT_NAME_BYTES + 1];
  size_t length = !name ? 0 : name->length < sizeof line ? name->length : sizeof line - 1;
  while (length && length < name->length && (name->text[length] & 0xc0) == 0x80) length--; /* within a character */
  snprintf(line, sizeof line, "%.*s", (int)length, length ? name->text : "");
  text_make_plain(line);
  return stack_texts_add(&snapshot->texts, line, number_out);
}

/* Whether the event has a row before it, of what the program says of it or what the device has left. */
static bool snapshot_has_more(struct snapshot *snapshot, const struct snapshot_event *event, struct trace_row *row,
                              const struct tree_value **name_out)
{
  const struct tree_value **told = &snapshot->traces[event->trace].metadata;
  const struct tree_value *metadata = tree_get(event->entry, "user_metadata", TREE_TEXT);
  const int64_t bytes = tree_get_number(event->entry, "device_free", -1);
  if (metadata && !metadata->length) metadata = NULL;
  if (metadata != *told && !(metadata && *told && tree_texts_are_equal(metadata, *told))) {
    row->action = *told ? TRACE_MARK_END : TRACE_MARK; /* what was told before ends first */
    *name_out = *told ? *told : metadata;
    *told = *told ? NULL : metadata;
    return true;
  }
  if (row->action != TRACE_ALLOCATE_FAILURE || bytes < 0 || snapshot->has_told_free) return false;
  row->action = TRACE_DEVICE_FREE;
  row->bytes = (uint64_t)bytes;
  return snapshot->has_told_free = true;
}

/* What was there before the history: the segments, then the blocks. NULL: that was all. */
static const struct snapshot_before *snapshot_next_before(struct snapshot *snapshot)
{
  while (snapshot->next_before < 2 * snapshot->n_before) {
    const struct snapshot_before *before = &snapshot->before[snapshot->next_before % snapshot->n_before];
    if ((before->row.action == TRACE_HOLD) == (snapshot->next_before++ < snapshot->n_before)) return before;
  }
  return NULL;
}

static bool snapshot_next_row(struct snapshot *snapshot, const struct snapshot_before *before, struct trace_row *row)
{
  if (before) {
    *row = before->row;
    return snapshot_stack_of(snapshot, before->frames, &row->stack);
  }
  const struct snapshot_event *event = &snapshot->events[snapshot->next_event];
  const struct tree_value *name = NULL;
  snapshot_read_event(snapshot, event->entry, &snapshot->traces[event->trace].space, row);
  if (!snapshot_has_more(snapshot, event, row, &name)) {
    snapshot->next_event++;
    snapshot->has_told_free = false;
  }
  if (row->action == TRACE_MARK || row->action == TRACE_MARK_END)
    return snapshot_name(snapshot, name ? name : tree_get(event->entry, "name", TREE_TEXT), &row->stack);
  return snapshot_stack_of(snapshot, tree_get(event->entry, "frames", TREE_LIST), &row->stack);
}

static enum trace_line snapshot_next(void *reader, struct trace_row *row_out, char *message, size_t message_bytes)
{
  struct snapshot *snapshot = reader;
  const struct snapshot_before *before = snapshot_next_before(snapshot);
  if (!before && snapshot->next_event == snapshot->n_events) {
    if (snapshot->next_after == snapshot->n_after) return TRACE_LINE_END;
    *row_out = snapshot->after[snapshot->next_after++];
    return TRACE_LINE;
  }
  if (snapshot_next_row(snapshot, before, row_out)) return TRACE_LINE;
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
  else if (snapshot->n_blocks_before)
    snprintf(parts[0], sizeof parts[0], "%zu block%s allocated before its events begin", snapshot->n_blocks_before,
             snapshot->n_blocks_before == 1 ? " was" : "s were");
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
