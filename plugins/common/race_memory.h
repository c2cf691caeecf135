/* SPDX-License-Identifier: MIT */
/* race_memory.h: the blocks that a program has, and the last work of each stream on them. Compiled into the race detector
 * (race_detector.h), whose lock is held. */
#ifndef HIPMM_PLUGINS_COMMON_RACE_MEMORY_H
#define HIPMM_PLUGINS_COMMON_RACE_MEMORY_H

#include "race_detector.h"
#include "race_remains.h"

struct race_block;

/* Reports where the block is not ordered after what was in its place, or lies over one that is in use. */
void race_memory_allocate(const struct memory_event *event, const struct race_line *line, const struct race_use *use,
                          bool checks_written);

/* The live block that starts at `ptr` is live no longer; NULL if there is none. `remembers`: what follows in its place is
 * checked against this free. */
struct race_block *race_memory_free(const void *ptr, const struct race_line *line, const struct race_use *use,
                                    bool remembers);
/* The free was refused, so that the block is live again; or it was done, and work that it is not ordered after is reported.
 * Takes the block. */
void race_memory_undo_free(struct race_block *block);
void race_memory_end_free(struct race_block *block, const struct race_site *site);
/* A free of what is not live: reports a second free, if a first one is known. `is_refused`: the resource has noticed. */
void race_memory_free_again(const void *ptr, const struct race_site *site, bool is_refused);

/* A copy or a fill. `use` gets its call stack when it is needed first. */
void race_memory_work(const struct race_line *line, struct race_use *use, struct race_access to,
                      struct race_access from);

/* The resource is no more, and its blocks are not either. */
void race_memory_forget_owner(const void *owner);

void race_memory_driver_gave(uintptr_t start, size_t bytes);
void race_memory_driver_took(uintptr_t start, size_t bytes);
/* Another process may write to the range from here on, which is given: what was written is not known any more. */
void race_memory_share(uintptr_t start, size_t bytes);

#endif
