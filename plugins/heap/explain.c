/* SPDX-License-Identifier: MIT */
/* explain.c: what the pool holds when an allocation has failed, and the most that could be allocated instead. By then
 * the pool has waited for all streams, merged free blocks, and released idle memory. */
#include "backing.h"

static uint64_t explain_headroom(const struct backing *backing)
{
  return sizes_headroom(backing->held->maximum_bytes, backing_bytes(backing));
}

static enum hipmm_status explain_maximum(const struct backing *backing, const struct heap *heap,
                                         const struct request *request)
{
  const struct hipmm_services *services = heap->blocks.services;
  uint64_t headroom = explain_headroom(backing), available = backing_available_bytes(backing, heap);
  /* A new segment does not merge with free memory of another one. */
  uint64_t most = backing->ops->moves ? available + headroom : available > headroom ? available : headroom;
  enum hipmm_status status = services->refuse(
      services, HIPMM_E_OUT_OF_MEMORY,
      headroom ? "cannot allocate {0:bytes}: maximum_size {1:bytes} leaves no room for it, with {2:bytes} of it free"
               : "cannot allocate {0:bytes}: maximum_size {1:bytes} is reached, with {2:bytes} of it free",
      request->requested, backing->held->maximum_bytes, backing_free_bytes(backing, heap) + headroom);
  return services->explain(services, status,
                           backing->ops->moves
                               ? "after waiting for all streams, {0:bytes} are held, {1:bytes} of it reclaimable, and "
                                 "{2:bytes} more are allowed: at most {3:bytes} can be allocated"
                               : "after waiting for all streams, {0:bytes} are held, {1:bytes} of it free in one "
                                 "block, and {2:bytes} more are allowed: at most {3:bytes} can be allocated",
                           backing_bytes(backing), available, headroom, most);
}

static enum hipmm_status explain_memory(const struct backing *backing, const struct heap *heap,
                                        enum hipmm_status status, const struct request *request)
{
  const struct hipmm_services *services = heap->blocks.services;
  if (status == HIPMM_E_LIMIT && (backing->ops->moves || request_fit_bytes(request) > explain_headroom(backing)))
    return explain_maximum(backing, heap, request);
  if (!hipmm_is_out_of_memory(status)) return status;
  if (streams_any_captured(&heap->streams, request->stream))
    return services->explain(
        services, status,
        "cannot allocate {0:bytes}: holds {1:bytes}, {2:bytes} free, and waits for no stream while "
        "one is being captured; the upstream cannot provide more",
        request->requested, backing_bytes(backing), backing_free_bytes(backing, heap), 0);
  return services->explain(services, status,
                           backing->ops->moves
                               ? "cannot allocate {0:bytes}: holds {1:bytes}, {2:bytes} free ({3:bytes} of it "
                                 "reclaimable) after waiting for all streams; the upstream cannot provide more"
                               : "cannot allocate {0:bytes}: holds {1:bytes}, {2:bytes} free ({3:bytes} of it in one "
                                 "block) after waiting for all streams; the upstream cannot provide more",
                           request->requested, backing_bytes(backing), backing_free_bytes(backing, heap),
                           backing_available_bytes(backing, heap));
}

enum hipmm_status explain_failure(const struct backing *backing, const struct heap *heap, enum hipmm_status status,
                                  const struct request *request)
{
  const struct hipmm_services *services = heap->blocks.services;
  status = explain_memory(backing, heap, status, request);
  if (!hipmm_is_out_of_memory(status) || request->alignment == HIPMM_ALIGNMENT) return status;
  return services->explain(services, status, "an alignment of {0:bytes} can need a hole of {1:bytes}",
                           request->alignment, request_fit_bytes(request), 0, 0);
}

enum hipmm_status explain_exhausted_records(const struct backing *backing, const struct heap *heap,
                                            const struct request *request)
{
  const struct blocks *blocks = &heap->blocks;
  const struct hipmm_services *services = blocks->services;
  enum hipmm_status status =
      services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                       "cannot allocate {0:bytes}: {1} blocks are allocated, and with the free ones between them the "
                       "pool has records for {2} and no more; free some, or allocate fewer and larger blocks",
                       request->requested, blocks->live, blocks->most - 1);
  return services->explain(services, status, "{0:bytes} are held, {1:bytes} of it free", backing_bytes(backing),
                           backing_free_bytes(backing, heap), 0, 0);
}
