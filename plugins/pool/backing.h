/* SPDX-License-Identifier: MIT */
/* backing.h: the memory behind a pool's addresses: granules, which are mapped under ranges of addresses, where the
 * upstream can map; otherwise segments. backing_ops.h says what each function does. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_BACKING_H
#define HIPMM_PLUGINS_POOL_BACKING_H

#include "granules.h"
#include "options.h"
#include "segments.h"

struct backing {
  const struct backing_ops *ops; /* NULL: it could not be opened */
  void *self;                    /* of the ops */
  struct held *held;
  struct granules granules;
  struct segments segments;
};

/* Chooses granules or segments, and logs the choice with its reason. Rounds the maximum down to what the backing can
 * hold. On failure services->fail() has reported why, and the caller still calls backing_close(). */
enum hipmm_status backing_open(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                               struct hipmm_resource *upstream, const struct pool_options *options);
void backing_close(struct backing *backing);

/* Adds memory that is ready for every stream. */
enum hipmm_status backing_fill(const struct backing *backing, struct heap *heap, uint64_t bytes);

static inline enum hipmm_status backing_check_available(const struct backing *backing, const struct heap *heap,
                                                        const struct request *request)
{
  return backing->ops->check_available ? backing->ops->check_available(backing->self, heap, request) : HIPMM_OK;
}

static inline enum hipmm_status backing_use_slack(const struct backing *backing, struct heap *heap,
                                                  const struct request *request, uint32_t *id_out)
{
  return backing->ops->allocate(backing->self, heap, request, MEMORY_FROM_SLACK, id_out);
}

static inline enum hipmm_status backing_move(const struct backing *backing, struct heap *heap,
                                             const struct request *request, uint32_t *id_out)
{
  return backing->ops->allocate(backing->self, heap, request, MEMORY_FROM_MOVE, id_out);
}

static inline enum hipmm_status backing_grow(const struct backing *backing, struct heap *heap,
                                             const struct request *request, uint32_t *id_out)
{
  return backing->ops->allocate(backing->self, heap, request, MEMORY_FROM_GROWTH, id_out);
}

static inline enum hipmm_status backing_release_idle(const struct backing *backing, struct heap *heap,
                                                     uint64_t keep_bytes)
{
  return backing->ops->release_idle(backing->self, heap, keep_bytes);
}

static inline uint64_t backing_bytes(const struct backing *backing)
{
  return backing->held->bytes;
}

/* The number of granules, or of segments. */
static inline uint64_t backing_count(const struct backing *backing)
{
  return backing->ops->moves ? backing->held->bytes / backing->held->least_bytes : backing->segments.count;
}

/* Bytes held and not allocated. Blocks in caches count as allocated. Of a granule that is partly in use, the other part
 * counts. */
static inline uint64_t backing_free_bytes(const struct backing *backing, const struct heap *heap)
{
  return backing_bytes(backing) - heap->live_bytes;
}

#endif
