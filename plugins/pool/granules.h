/* SPDX-License-Identifier: MIT */
/* granules.h: a pool's memory as ranges of addresses with physical pieces under the parts in use. A piece that lies
 * wholly in free memory can be moved under another address, so no hole is ever too small to be of use: only addresses
 * fragment, and there are plenty.
 *
 * Invariant: a granule without memory lies wholly in one free block, and block.vacant counts them. The caller holds the
 * pool's lock. */
#ifndef HIPMM_POOL_GRANULES_H
#define HIPMM_POOL_GRANULES_H

#include "chunks.h"
#include "heap.h"
#include "placement_hints.h"

struct granules {
  struct history history;
  uint64_t moves;      /* pieces mapped under other addresses so far */
  uint64_t returns;    /* pieces that went back to where they had been, which costs nothing */
  uint64_t rest_bytes; /* of pieces that were made to move no more */
  struct pieces pieces;
};

/* HIPMM_E_NOT_SUPPORTED when the upstream cannot map, HIPMM_E_LIMIT when the maximum is below a granule. */
enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, uint64_t maximum_bytes);

/* Gives everything back. The device is idle. */
void granules_close(struct granules *granules);

/* Whether there can be memory for the request, whatever is idle and wherever it lies. Asked only for what takes many
 * new pieces, so that none is taken in vain, which others may want meanwhile. Fails as granules_take() would. */
enum hipmm_status granules_expect(struct granules *granules, const struct heap *heap, const struct request *request);

/* Takes what fits best of what is ready for the request's stream, after putting memory under it: idle pieces of clean
 * blocks first, then, if `may_create`, new ones. Fails with HIPMM_E_LIMIT, HIPMM_E_OUT_OF_MEMORY or the upstream's
 * status; what was done in vain stays as free memory. */
enum hipmm_status granules_take(struct granules *granules, struct heap *heap, const struct request *request,
                                bool may_create, uint32_t *id_out);

/* Whether it is noted what the request gets. With several streams that depends on what their work has come to. */
static inline bool granules_have_history(const struct granules *granules, const struct heap *heap,
                                         const struct request *request)
{
  return request->bytes >= granules->pieces.granule_bytes && heap->streams.active == 1;
}

/* Takes what such a request got when it was made before at such a moment (history.h), after putting idle pieces under
 * it, or a few new ones, so that the next time there is nothing to do. BLOCK_NONE if that is not known, or not free, or
 * there are too few. And notes what it got in the end. */
uint32_t granules_take_again(struct granules *granules, struct heap *heap, const struct request *request);
void granules_note(struct granules *granules, const struct heap *heap, uint32_t id);

/* Puts new memory under `bytes` of addresses, clean. */
enum hipmm_status granules_fill(struct granules *granules, struct heap *heap, uint64_t bytes);

#endif
