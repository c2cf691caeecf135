/* SPDX-License-Identifier: MIT */
/* quarantine.h: freed blocks are kept for a while, so that a late write finds no data of others and is detected. The
 * device is current in all calls. */
#ifndef HIPMM_PLUGINS_GUARD_QUARANTINE_H
#define HIPMM_PLUGINS_GUARD_QUARANTINE_H

#include "guard.h"

/* Makes room for one more block. False when there is no host memory for it. The guard's lock is held. */
bool quarantine_reserve(struct guard *guard);

/* Adds a block, for which there is room; the guard's lock is still held. */
void quarantine_add(struct guard *guard, const struct guard_record *record);

/* The block that starts at `ptr`, or NULL; the lock is held. */
const struct guard_record *quarantine_find(const struct guard *guard, const void *ptr);

/* Frees the oldest blocks, each after a last check, until at most `bytes` are left. A block whose check or free fails
 * stays. `stream` is valid now. The lock is not held. */
enum hipmm_status quarantine_shrink(struct guard *guard, uint64_t bytes, hipmm_stream_t stream);

/* Checks all blocks and adds the number of damaged ones to `damaged`. The lock is held. */
enum hipmm_status quarantine_verify(struct guard *guard, uint64_t *damaged);

/* Visits all blocks. The lock is held. */
void quarantine_visit(const struct guard *guard, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                      void *closure);

/* Frees all blocks, whatever fails. No other thread is in the guard. */
void quarantine_close(struct guard *guard);

#endif
