/* SPDX-License-Identifier: MIT */
/* segments.h: memory that an allocator holds from the driver, as the segments that a log names, from the event at which each
 * is taken to that at which it is given back. Called by snapshot.c, blocks.c and the report. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_SEGMENTS_H
#define HIPMM_TOOLS_COMMAND_TRACE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_IS_HELD UINT32_MAX

struct segment {
  uint64_t address, bytes;
  uint32_t from, to;          /* events; SEGMENT_IS_HELD: to the end */
  uint32_t pool;              /* as of struct trace_row */
  uint32_t stack;             /* of blocks.c: of the call that took it; 0: not known */
  uint32_t taken, given_back; /* numbers of these calls, which tell the order of those of one event */
};

/* All zero is empty. */
struct segments {
  struct segment *items;
  size_t n, capacity;
  size_t *held; /* those that are held, by address */
  size_t n_held, held_capacity;
  uint64_t held_bytes;
  uint32_t calls;
};

/* Takes memory. What is held there already is given back first. False: out of memory. */
bool segments_hold(struct segments *segments, uint32_t event, uint64_t address, uint64_t bytes, uint32_t pool);

/* Gives memory back: a part of a segment, or several. What is not held does not count. False: out of memory. */
bool segments_release(struct segments *segments, uint32_t event, uint64_t address, uint64_t bytes);

/* The pool of what is held at an address; 0 if nothing is. */
uint32_t segments_pool(const struct segments *segments, uint64_t address);

void segments_clear(struct segments *segments);

#endif
