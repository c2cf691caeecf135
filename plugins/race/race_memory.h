/* SPDX-License-Identifier: MIT */
/* race_memory.h: the blocks that a program has, the last work of each stream on them, what freed blocks have left, and what was
 * found. Compiled into the race detector (race_detector.h), whose lock is held. */
#ifndef HIPMM_PLUGINS_RACE_RACE_MEMORY_H
#define HIPMM_PLUGINS_RACE_RACE_MEMORY_H

#include "../../core/base/key_tree.h"
#include "race_detector.h"
#include "race_order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- What was found, as text (race_report.c) ----
 *
 * Each pair of call stacks once, and not more of them than a person reads. */

enum race_kind {
  RACE_REUSE,          /* given to a stream that is not ordered after the free before */
  RACE_EARLY_USE,      /* used by a stream that is not ordered after the allocation */
  RACE_UNORDERED,      /* used by two streams without order, one of which writes */
  RACE_FREE_IN_USE,    /* freed on a stream that is not ordered after work on the memory */
  RACE_USE_AFTER_FREE, /* work on freed memory */
  RACE_DOUBLE_FREE,
  RACE_OVERLAP,       /* given out while it is in use */
  RACE_PAST_END,      /* work past the end of a block */
  RACE_NEVER_WRITTEN, /* bytes are read that were never written */
  RACE_KINDS
};

/* A call of the program. */
struct race_site {
  const char *call;
  void *stream; /* as the program knows it */
  int device;
  uint32_t trace; /* of the call stack; 0: not known */
};

struct race_finding {
  enum race_kind kind;
  uintptr_t start; /* the bytes that the call is about */
  size_t bytes;
  uintptr_t block; /* the block that they are of, or were of */
  size_t block_bytes;
  const char *resource;
  struct race_site now, before;
};

void race_report_open(void);
/* The call stack of the calling thread. */
uint32_t race_report_trace(void);
void race_report_add(const struct race_finding *finding);
size_t race_report_count(void); /* without the lock too */
/* In a forked child: the reports are the parent's. */
void race_report_forget(void);
const char *race_report_text(size_t index, const char **kind_out);
/* One line of how many reports of each kind there are. */
void race_report_summary(char *text, size_t bytes);

/* ---- What is known of addresses that hold no block (race_remains.c) ----
 *
 * That the runtime has given them, and the last free of each. */

/* A call, and where it stands in its stream. */
struct race_use {
  struct race_point point;
  struct race_site site;
};

/* A range of a freed block; the range may be a part of it. */
struct race_remains {
  struct key_tree_node by_address;
  struct race_remains *older, *newer;
  struct race_use freed;
  uintptr_t block; /* the whole one */
  size_t block_bytes;
  const char *resource;
  bool is_returned; /* to the runtime: what is there now is not known */
};

/* The addresses of the range hold what a free has left, and nothing else. Without host memory they hold nothing. */
void race_remains_add(const struct race_remains *model, uintptr_t start, size_t bytes);
/* Forgets the range. Calls `visit` before, if there is one, for each part. */
void race_remains_cut(uintptr_t start, size_t bytes, void (*visit)(void *closure, const struct race_remains *remains),
                      void *closure);
/* The first in the range; NULL if there is none. */
const struct race_remains *race_remains_in(uintptr_t start, size_t bytes);

/* The range is the runtime's to give, and was given; or was given back. */
void race_remains_driver_gave(uintptr_t start, size_t bytes);
void race_remains_driver_took(uintptr_t start, size_t bytes);
/* Another process may write to the range from here on. */
void race_remains_share(uintptr_t start, size_t bytes);
bool race_remains_is_shared(uintptr_t address);
bool race_remains_is_given(uintptr_t address);
size_t race_remains_given_bytes(uintptr_t start); /* 0 if nothing was given there */

/* ---- The parts of a block that were never written (race_unwritten.c) ----
 *
 * A short sorted list of offsets. Where a block would have more parts than the list may have, the smallest counts as
 * written. */

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

/* ---- Blocks (race_memory.c) ---- */

struct race_block;

/* Reports if the block is not ordered after earlier work in its place, or overlaps a block that is in use. */
void race_memory_allocate(const struct memory_event *event, const struct race_line *line, const struct race_use *use,
                          bool checks_written);

/* Takes the block that starts at `ptr` out of the live blocks; NULL if there is none. `remembers`: later blocks in
 * its place are checked against this free. */
struct race_block *race_memory_free(const void *ptr, const struct race_line *line, const struct race_use *use,
                                    bool remembers);
/* If the free was refused, the block is live again. Otherwise, work that the free is not ordered after is reported.
 * Takes ownership of the block. */
void race_memory_undo_free(struct race_block *block);
void race_memory_end_free(struct race_block *block, const struct race_site *site);
/* A free of what is not live: reports a second free, if a first one is known. `is_refused`: the resource has
 * noticed. */
void race_memory_free_again(const void *ptr, const struct race_site *site, bool is_refused);

/* A copy or a fill. `use` gets its call stack when it is needed first. */
void race_memory_work(const struct race_line *line, struct race_use *use, struct race_access to,
                      struct race_access from);

/* The resource is destroyed, and its blocks with it. */
void race_memory_forget_owner(const void *owner);

void race_memory_driver_gave(uintptr_t start, size_t bytes);
void race_memory_driver_took(uintptr_t start, size_t bytes);
/* Another process may write to the range from here on, which is given: what was written is not known any more. */
void race_memory_share(uintptr_t start, size_t bytes);

#endif
