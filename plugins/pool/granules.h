/* SPDX-License-Identifier: MIT */
/* granules.h: a pool's memory as ranges of addresses with physical pieces ("granules") under the parts in use. A granule
 * that lies wholly in a free block can be moved under another address, so no hole is ever too small to be of use: only
 * addresses fragment, and there are plenty.
 *
 * Invariant: a granule without memory lies wholly in one free block, and block.vacant counts them. The caller holds the
 * pool's lock. */
#ifndef HIPMM_POOL_GRANULES_H
#define HIPMM_POOL_GRANULES_H

#include "heap.h"

/* A reserved range of addresses. */
struct range {
  uint64_t start, bytes;
  void **pieces;    /* per granule: what lies there; NULL: nothing */
  uint64_t *backed; /* a bit for each piece that is not NULL */
};

enum { MAX_RANGES = 32 };

struct granules {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const struct hipmm_mapping *mapping;
  uint64_t granule_bytes;
  uint64_t range_bytes; /* of the next range */
  struct range ranges[MAX_RANGES];
  uint32_t n_ranges;
  uint64_t bytes, peak_bytes; /* physical memory held */
  uint64_t maximum_bytes;     /* never held more */
  uint64_t moves;             /* granules moved so far */
  void **spares;              /* pieces that lie nowhere, since the driver would not take them back */
  uint32_t n_spares;
};

/* Asks the upstream for its mapping. HIPMM_E_NOT_SUPPORTED when it has none. */
enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, uint64_t maximum_bytes);

/* Gives everything back. The device is idle. */
void granules_close(struct granules *granules);

/* Takes what fits best of what is ready for the request's stream, after putting memory under it: idle granules of clean
 * blocks first, then, if `may_create`, new ones. Fails with HIPMM_E_LIMIT, HIPMM_E_OUT_OF_MEMORY or the upstream's status;
 * what was done in vain stays as free memory. */
enum hipmm_status granules_take(struct granules *granules, struct heap *heap, const struct request *request,
                                bool may_create, uint32_t *id_out);

/* Puts new memory under `bytes` of addresses, clean. */
enum hipmm_status granules_fill(struct granules *granules, struct heap *heap, uint64_t bytes);

/* Gives idle granules of clean blocks back while more than `keep_bytes` are held. */
enum hipmm_status granules_release_idle(struct granules *granules, struct heap *heap, uint64_t keep_bytes);

/* Bytes of whole granules that lie in free blocks whose work may not have passed yet. */
uint64_t granules_pending_idle_bytes(const struct granules *granules, const struct heap *heap);

#endif
