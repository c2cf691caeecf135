/* SPDX-License-Identifier: MIT */
/* backing.h: where a pool's memory comes from: granules under one range of addresses where the upstream can map, else
 * segments. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_BACKING_H
#define HIPMM_PLUGINS_POOL_BACKING_H

#include "granules.h"
#include "options.h"
#include "segments.h"

struct backing {
  bool mapped;         /* which of the two */
  uint64_t most_bytes; /* that were to be live at once when memory was looked for */
  struct granules granules;
  struct segments segments;
};

/* Chooses, and says in the log what and why. The maximum is rounded down to what can be had. On failure services->fail
 * has said why; backing_close is owed all the same. */
enum hipmm_status backing_open(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                               struct hipmm_resource *upstream, enum growth growth, uint64_t maximum_bytes);
void backing_close(struct backing *backing);

/* Whether there can be memory for the request, whatever is idle and wherever it lies. Fails as backing_allocate() would. */
enum hipmm_status backing_check_available(struct backing *backing, const struct heap *heap,
                                          const struct request *request);

/* Takes a block for the request from memory that the pool holds already but has under other addresses, or that is had
 * for it. HIPMM_E_LIMIT when the maximum forbids it. */
enum hipmm_status backing_allocate(struct backing *backing, struct heap *heap, const struct request *request,
                                   uint32_t *id_out);

/* Whether granules_replay() and granules_record() are for the request. Of segments nothing is noted. */
static inline bool backing_uses_hints(const struct backing *backing, const struct heap *heap,
                                      const struct request *request)
{
  return backing->mapped && granules_use_hints(&backing->granules, heap, request);
}

/* The memory that a pool starts with, ready. */
enum hipmm_status backing_fill(struct backing *backing, struct heap *heap, uint64_t bytes);

/* Gives memory back that ready blocks hold idle, while more than `keep_bytes` are held. */
enum hipmm_status backing_release_idle(struct backing *backing, struct heap *heap, uint64_t keep_bytes);

/* Less than is held means that nothing more is taken until it fits again. */
void backing_set_maximum(struct backing *backing, uint64_t maximum_bytes);

/* Where in [start, end), which lies in a free block, the first part without memory begins, and the first with memory;
 * `end` if there is none. */
uint64_t backing_first_uncommitted(const struct backing *backing, uint64_t start, uint64_t end);
uint64_t backing_first_committed(const struct backing *backing, uint64_t start, uint64_t end);

uint64_t backing_bytes(const struct backing *backing);
uint64_t backing_peak_bytes(const struct backing *backing);
uint64_t backing_maximum_bytes(const struct backing *backing);

/* The least that can be taken from the upstream. */
uint64_t backing_least_bytes(const struct backing *backing);

/* Segments, or granules. */
uint64_t backing_count(const struct backing *backing);

#endif
