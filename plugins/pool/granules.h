/* SPDX-License-Identifier: MIT */
/* granules.h: a pool's memory as ranges of addresses with physical chunks under the parts in use. A chunk that lies
 * wholly in free memory can be moved under another address, so no hole is ever too small to be of use: only addresses
 * fragment, and there are plenty.
 *
 * Invariant: a granule without memory lies wholly in one free block, and block.uncommitted counts them. The caller holds the
 * pool's lock. */
#ifndef HIPMM_POOL_GRANULES_H
#define HIPMM_POOL_GRANULES_H

#include "chunks.h"
#include "heap.h"
#include "placement_hints.h"

struct granules {
  struct hints hints;
  uint64_t moves;       /* chunks mapped under other addresses so far */
  uint64_t returns;     /* chunks that went back to where they had been, which costs nothing */
  uint64_t extra_bytes; /* of chunks that were made to move no more */
  struct chunks chunks;
};

/* HIPMM_E_NOT_SUPPORTED when the upstream cannot map, HIPMM_E_LIMIT when the maximum is below a granule. */
enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, uint64_t maximum_bytes);

/* Gives everything back. The device is idle. */
void granules_close(struct granules *granules);

/* Whether there can be memory for the request, whatever is idle and wherever it lies. Asked only for what takes many
 * new chunks, so that none is taken in vain, which others may want meanwhile. Fails as granules_allocate() would. */
enum hipmm_status granules_check_available(struct granules *granules, const struct heap *heap,
                                           const struct request *request);

/* Takes what fits best of what is ready for the request's stream, after putting memory under it: idle chunks of ready
 * blocks first, then, if `may_create`, new ones. Fails with HIPMM_E_LIMIT, HIPMM_E_OUT_OF_MEMORY or the upstream's
 * status; what was done in vain stays as free memory. */
enum hipmm_status granules_allocate(struct granules *granules, struct heap *heap, const struct request *request,
                                    bool may_create, uint32_t *id_out);

/* Whether it is noted what the request gets. With several streams that depends on what their work has come to. */
static inline bool granules_use_hints(const struct granules *granules, const struct heap *heap,
                                      const struct request *request)
{
  return request->bytes >= granules->chunks.granule_bytes && heap->streams.active == 1;
}

/* Takes what such a request got when it was made before at such a moment (history.h), after putting idle chunks under
 * it, or a few new ones, so that the next time there is nothing to do. BLOCK_NONE if that is not known, or not free, or
 * there are too few. And notes what it got in the end. */
uint32_t granules_replay(struct granules *granules, struct heap *heap, const struct request *request);
void granules_record(struct granules *granules, const struct heap *heap, uint32_t id);

/* Puts new memory under `bytes` of addresses, ready. */
enum hipmm_status granules_fill(struct granules *granules, struct heap *heap, uint64_t bytes);

#endif
