/* SPDX-License-Identifier: MIT */
/* race_memory.h: the blocks that a program has, and the last work of each stream on them. Compiled into the race
 * detector (race_detector.h), whose lock is held. */
#ifndef HIPMM_PLUGINS_RACE_RACE_MEMORY_H
#define HIPMM_PLUGINS_RACE_RACE_MEMORY_H

#include "race_detector.h"
#include "race_remains.h"

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
