/* SPDX-License-Identifier: MIT */
/* ranges.h: the naive model of an allocator: a sorted list of the ranges that are live. Thread-safe. */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_RANGES_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_RANGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
  uintptr_t start;
  size_t bytes;
};

struct ranges {
  pthread_mutex_t lock;
  struct range *items;
  size_t count, capacity;
  uint64_t bytes; /* sum of all */
};

void ranges_open(struct ranges *ranges);
void ranges_close(struct ranges *ranges);

/* False, and nothing is added, when it overlaps one that is there, which is then written to `other_out`. */
bool ranges_add(struct ranges *ranges, uintptr_t start, size_t bytes, struct range *other_out);

/* False when no such range is there. */
bool ranges_remove(struct ranges *ranges, uintptr_t start, size_t bytes);

#endif
