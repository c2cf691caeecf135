/* SPDX-License-Identifier: MIT */
/* backing_ops.h: what the two kinds of memory behind a pool's addresses have in common: granules.c, which maps chunks under
 * ranges of addresses, and segments.c, which allocates blocks of the upstream. Each function takes the granules or the
 * segments as `self`. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_BACKING_OPS_H
#define HIPMM_PLUGINS_POOL_BACKING_OPS_H

#include "heap.h"

/* The physical memory held from the upstream. */
struct held {
  uint64_t bytes, peak_bytes;
  uint64_t maximum_bytes; /* limit of `bytes` */
  uint64_t least_bytes;   /* the least that the upstream can provide; the others are multiples */
};

/* Changes the limit. With a maximum below what is held, the pool does not grow until it holds less. */
static inline void held_set_maximum(struct held *held, uint64_t maximum_bytes)
{
  held->maximum_bytes = maximum_bytes / held->least_bytes * held->least_bytes;
}

/* Where the memory for an allocation comes from. */
enum source_of_memory {
  MEMORY_FROM_SLACK,  /* new memory, although other memory is idle, as far as the slack allows */
  MEMORY_FROM_MOVE,   /* held memory that is mapped elsewhere */
  MEMORY_FROM_GROWTH, /* the same, and new memory if that is not enough */
  MEMORY_FROM_FILL    /* the same, and chunks may be large */
};

struct backing_ops {
  bool moves; /* idle memory can be mapped where it is needed: new memory and idle memory together serve a request */

  /* Whether the request can succeed at all, if all idle memory is used for it. Fails with the status that allocate() would
   * fail with. NULL where one call of the upstream tells. */
  enum hipmm_status (*check_available)(void *self, const struct heap *heap, const struct request *request);

  /* Allocates a block. HIPMM_E_OUT_OF_MEMORY when there is not enough, HIPMM_E_LIMIT when the maximum forbids it. */
  enum hipmm_status (*allocate)(void *self, struct heap *heap, const struct request *request,
                                enum source_of_memory source_of_memory, uint32_t *id_out);

  /* Releases idle memory of ready blocks to the upstream while more than `keep_bytes` are held. */
  enum hipmm_status (*release_idle)(void *self, struct heap *heap, uint64_t keep_bytes);

  /* The largest request that the held memory could serve, once all work has completed. */
  uint64_t (*available_bytes)(const void *self, const struct heap *heap);

  void (*close)(void *self);
};

#endif
