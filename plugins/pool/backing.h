/* SPDX-License-Identifier: MIT */
/* backing.h: the memory behind a pool's addresses: granules, which are mapped under ranges of addresses, where the
 * upstream can map; otherwise segments. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_BACKING_H
#define HIPMM_PLUGINS_POOL_BACKING_H

#include "granules.h"
#include "options.h"
#include "segments.h"

struct backing {
  bool mapped; /* granules, not segments */
  struct granules granules;
  struct segments segments;
};

/* Chooses granules or segments, and logs the choice with its reason. Rounds the maximum down to what the backing can
 * hold. On failure services->fail() has reported why, and the caller still calls backing_close(). */
enum hipmm_status backing_open(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                               struct hipmm_resource *upstream, const struct pool_options *options);
void backing_close(struct backing *backing);

/* Whether the request can succeed at all, if all idle memory is used for it. Fails with the status that backing_grow()
 * would fail with. */
enum hipmm_status backing_check_available(struct backing *backing, const struct heap *heap,
                                          const struct request *request);

/* Each allocates a block: with new memory, although other memory is idle, as far as the slack allows (mapped only); in
 * held memory that is mapped elsewhere (mapped only); with new memory, if that is not enough. HIPMM_E_OUT_OF_MEMORY when
 * there is not enough, HIPMM_E_LIMIT when the maximum forbids it. */
enum hipmm_status backing_use_slack(struct backing *backing, struct heap *heap, const struct request *request,
                                    uint32_t *id_out);
enum hipmm_status backing_move(struct backing *backing, struct heap *heap, const struct request *request,
                               uint32_t *id_out);
enum hipmm_status backing_grow(struct backing *backing, struct heap *heap, const struct request *request,
                               uint32_t *id_out);

/* Adds the memory that a pool starts with. It is ready for every stream. */
enum hipmm_status backing_fill(struct backing *backing, struct heap *heap, uint64_t bytes);

/* Releases idle memory of ready blocks to the upstream while more than `keep_bytes` are held. */
enum hipmm_status backing_release_idle(struct backing *backing, struct heap *heap, uint64_t keep_bytes);

/* With a maximum below what is held, the pool does not grow until it holds less. */
void backing_set_maximum(struct backing *backing, uint64_t maximum_bytes);

/* In [start, end), which lies in a free block: the first address that is uncommitted, and the first that is committed;
 * `end` if there is none. */
uint64_t backing_first_uncommitted(const struct backing *backing, uint64_t start, uint64_t end);
uint64_t backing_first_committed(const struct backing *backing, uint64_t start, uint64_t end);

uint64_t backing_bytes(const struct backing *backing);
uint64_t backing_peak_bytes(const struct backing *backing);
void backing_reset_peak(struct backing *backing);
uint64_t backing_maximum_bytes(const struct backing *backing);

/* Bytes held and not allocated. Blocks in caches count as allocated. Of a granule that is partly in use, the other part
 * counts. */
static inline uint64_t backing_free_bytes(const struct backing *backing, const struct heap *heap)
{
  return backing_bytes(backing) - heap->live_bytes;
}

/* The least that the upstream can provide. */
uint64_t backing_least_bytes(const struct backing *backing);

/* The number of granules, or of segments. */
uint64_t backing_count(const struct backing *backing);

#endif
