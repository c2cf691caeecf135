/* SPDX-License-Identifier: MIT */
/* snapshot.h: what the two files that read PyTorch's snapshots share. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_SNAPSHOT_H
#define HIPMM_TOOLS_COMMAND_TRACE_SNAPSHOT_H

#include "live.h"
#include "stack_texts.h"
#include "tree.h"

/* What was there before the history began: a block or a segment. */
struct snapshot_before {
  struct trace_row row;
  const struct tree_value *frames; /* NULL: none */
};

/* An entry is read once more when its row is due: there are millions. */
struct snapshot_event {
  const struct tree_value *entry;
  int64_t order; /* its time, or the latest before it on its device */
  uint32_t trace, place;
};

/* The events of a device. */
struct snapshot_trace {
  struct trace_space space;
  const struct tree_value *metadata; /* what the program has said of the events that follow; NULL: nothing */
};

struct snapshot {
  struct tree tree;
  char *data;
  struct snapshot_before *before;
  struct snapshot_event *events; /* in order of time */
  struct snapshot_trace *traces;
  struct trace_row *after; /* rows behind the last event */
  size_t n_after, after_capacity, next_after;
  size_t n_before, before_capacity, n_events, capacity, n_traces, traces_capacity;
  size_t next_before, next_event;
  bool has_told_free;     /* the free memory of the device, of the next event */
  struct trace_live live; /* while the events are collected */
  struct key_map stacks;  /* place of the frames to number */
  struct key_map pools;   /* entry of a segment to its pool, if the segments at the end alone tell it */
  struct stack_texts texts;
  struct key_map lines; /* of frames */
  uint64_t process;     /* whose events or segments are collected: of a list, the place of the snapshot */
  int32_t device;       /* the same */
  size_t n_snapshots, n_devices, n_blocks_before, n_unknown;
  bool has_notes;     /* of the program, which have times of their own */
  size_t most_events; /* that a file of its size can have */
  size_t looks;       /* at entries of lists, that are left: a file has fewer, each of which is looked at some times */
};

/* Collects the events of a snapshot, of a list of several, such as those that the ranks of a job gathered, or of the segments
 * alone. False: out of memory, or with no looks left. */
bool snapshot_read(struct snapshot *snapshot, const struct tree_value *root);

/* The row of an entry. False: it tells nothing that is read. */
bool snapshot_read_event(struct snapshot *snapshot, const struct tree_value *entry, const struct trace_space *space,
                         struct trace_row *row);

/* Whether a value looks like a snapshot. */
bool snapshot_is_one(const struct tree_value *value);

#endif
