/* SPDX-License-Identifier: MIT */
/* backing_ops.h: what the two kinds of memory behind a pool's addresses have in common: granules.c, which maps chunks under
 * ranges of addresses, and segments.c, which allocates blocks of the upstream. Each function takes the granules or the
 * segments as `self`. The caller holds the pool's lock. */
#ifndef HIPMM_POOL_BACKING_OPS_H
#define HIPMM_POOL_BACKING_OPS_H

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

struct backing_ops {
  bool moves; /* idle memory can be mapped where it is needed: new memory and idle memory together serve a request */

  /* Whether the request can succeed at all, if all idle memory is used for it. Fails with the status that grow() would
   * fail with. */
  enum hipmm_status (*check_available)(void *self, const struct heap *heap, const struct request *request);

  /* Each allocates a block: with new memory, although other memory is idle, as far as the slack allows; in held memory that
   * is mapped elsewhere; with new memory, if that is not enough. HIPMM_E_OUT_OF_MEMORY when there is not enough,
   * HIPMM_E_LIMIT when the maximum forbids it. The first two are NULL where nothing moves. */
  enum hipmm_status (*use_slack)(void *self, struct heap *heap, const struct request *request, uint32_t *id_out);
  enum hipmm_status (*move)(void *self, struct heap *heap, const struct request *request, uint32_t *id_out);
  enum hipmm_status (*grow)(void *self, struct heap *heap, const struct request *request, uint32_t *id_out);

  /* Adds memory that is ready for every stream. */
  enum hipmm_status (*fill)(void *self, struct heap *heap, uint64_t bytes);

  /* Releases idle memory of ready blocks to the upstream while more than `keep_bytes` are held. */
  enum hipmm_status (*release_idle)(void *self, struct heap *heap, uint64_t keep_bytes);

  /* In [start, end), which lies in a free block: the first address that is committed, or uncommitted; `end` if there is
   * none. */
  uint64_t (*first)(const void *self, uint64_t start, uint64_t end, bool committed);

  /* The largest request that the held memory could serve, once all work has completed. */
  uint64_t (*available_bytes)(const void *self, const struct heap *heap);

  /* The number of granules, or of segments. */
  uint64_t (*count)(const void *self);

  void (*close)(void *self);
};

#endif
