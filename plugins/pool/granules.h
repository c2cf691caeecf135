/* SPDX-License-Identifier: MIT */
/* granules.h: a pool's memory as ranges of addresses, with chunks mapped under the parts in use. A chunk that lies wholly
 * in free blocks can be mapped elsewhere, so holes never make memory useless: only addresses fragment, and there are
 * many. Called by backing.c and allocate.c. The caller holds the pool's lock.
 *
 * Invariant: an uncommitted granule lies wholly in one free block, and block.uncommitted counts them. */
#ifndef HIPMM_PLUGINS_POOL_GRANULES_H
#define HIPMM_PLUGINS_POOL_GRANULES_H

#include "chunks.h"
#include "heap.h"
#include "slack.h"

struct granules {
  struct slack slack;
  uint64_t moves;   /* chunks mapped at other addresses so far */
  uint64_t returns; /* alias mappings that became current again, without a driver call */
  struct chunks chunks;
};

/* HIPMM_E_NOT_SUPPORTED when the upstream cannot map, HIPMM_E_LIMIT when the maximum is below a granule. */
enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, uint64_t maximum_bytes, uint64_t slack_bytes);

/* Commits the request's part of the best fit of the uncommitted blocks that are ready for its stream, and allocates there,
 * without a host wait for the work on idle chunks. What was committed in vain stays as free memory. */
enum hipmm_status granules_allocate(struct granules *granules, struct heap *heap, const struct request *request,
                                    enum source_of_memory source_of_memory, uint32_t *id_out);

/* In [start, end), which lies in a free block: the first address that is committed, or uncommitted; `end` if there is
 * none. */
uint64_t granules_first(const struct granules *granules, uint64_t start, uint64_t end, bool committed);

extern const struct backing_ops granules_ops;

#endif
