/* SPDX-License-Identifier: MIT */
/* explain.h: adds to the error record why an allocation failed, in numbers. Called by allocate.c once for each failure,
 * after every attempt in its table; on no other path. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_EXPLAIN_H
#define HIPMM_PLUGINS_POOL_EXPLAIN_H

#include "backing.h"

/* Explains why the backing failed with `status`. Returns the status for the caller of the pool. */
enum hipmm_status explain_failure(const struct backing *backing, const struct heap *heap, enum hipmm_status status,
                                  const struct request *request);

/* The pool has no record for another block. */
enum hipmm_status explain_exhausted_records(const struct backing *backing, const struct heap *heap,
                                            const struct request *request);

#endif
