/* SPDX-License-Identifier: MIT */
/* race_unwritten.h: the parts of a block that were never written, as a short sorted list of offsets. Where a block
 * would have more parts than the list may have, the smallest counts as written. Compiled into the race detector. */
#ifndef HIPMM_PLUGINS_RACE_RACE_UNWRITTEN_H
#define HIPMM_PLUGINS_RACE_RACE_UNWRITTEN_H

#include <stdbool.h>
#include <stddef.h>

enum { RACE_UNWRITTEN_MOST = 32 };

struct race_part {
  size_t start, end;
};

struct race_unwritten {
  struct race_part *parts; /* NULL: all is written */
  size_t count, capacity;
};

void race_unwritten_add(struct race_unwritten *unwritten, size_t start, size_t end);
void race_unwritten_remove(struct race_unwritten *unwritten, size_t start, size_t end);
/* The first part of [start, end) that was never written; false if all was. */
bool race_unwritten_find(const struct race_unwritten *unwritten, size_t start, size_t end, struct race_part *part_out);
void race_unwritten_clear(struct race_unwritten *unwritten);

#endif
