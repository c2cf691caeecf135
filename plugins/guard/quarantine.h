/* SPDX-License-Identifier: MIT */
/* quarantine.h: freed blocks are kept for a while before they go back, so that a write which comes too late finds
 * nobody else's data, and is found. The device is current in all of it. */
#ifndef HIPMM_GUARD_QUARANTINE_H
#define HIPMM_GUARD_QUARANTINE_H

#include "guard.h"

/* Adds a block; the guard's lock is held. False when there is no host memory for it: nothing was done. */
bool quarantine_add(struct guard *guard, const struct guard_record *record);

/* The block that starts at `ptr`, or NULL; the lock is held. */
const struct guard_record *quarantine_find(const struct guard *guard, const void *ptr);

/* Gives the oldest blocks back, each after a last look, until no more than `bytes` are left. A block whose look or
 * return fails stays. `stream` is valid now. The lock is not held. */
enum hipmm_status quarantine_shrink(struct guard *guard, uint64_t bytes, hipStream_t stream);

/* Looks at all of them; the lock is held. Adds to `damaged`. */
enum hipmm_status quarantine_verify(struct guard *guard, uint64_t *damaged);

/* Shows all of them; the lock is held. */
void quarantine_visit(const struct guard *guard, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                      void *closure);

/* Gives everything back, whatever fails. No other thread is in the guard. */
void quarantine_close(struct guard *guard);

#endif
