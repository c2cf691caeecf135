/* SPDX-License-Identifier: MIT */
/* visit.c: the visit of every block. reuse_see_lists() goes first; a block in no list is live. Threads allocate and free
 * meanwhile: a block that changes between the two passes is shown in its old or its new state. */
#include "fixed.h"

/* The stream is read between two reads of the size: if the size stays the same, both belong together. */
static bool visit_live_extent(const struct fixed *fixed, uint32_t number, struct hipmm_extent *extent)
{
  uint64_t requested = fixed_block_requested(fixed, number);
  extent->stream = (hipmm_stream_t)(uintptr_t)fixed_block_note(fixed, number);
  if (!requested || fixed_block_requested(fixed, number) != requested) return false;
  extent->bytes = requested;
  extent->state = HIPMM_EXTENT_LIVE;
  return true;
}

static struct hipmm_extent visit_block_extent(const struct fixed *fixed, uint32_t number)
{
  uint16_t stream = record_of(fixed, number)->seen;
  struct hipmm_extent extent = {.ptr = (const void *)(uintptr_t)address_of(fixed, number),
                                .flags = HIPMM_EXTENT_BARRIER};
  if (stream == SEEN_IN_NO_LIST && visit_live_extent(fixed, number, &extent)) return extent;
  bool is_known = stream != SEEN_IN_NO_LIST; /* otherwise freed just now */
  extent.bytes = fixed->block_bytes;
  extent.state = stream == STREAM_READY ? HIPMM_EXTENT_FREE : HIPMM_EXTENT_PENDING;
  extent.stream = is_known && stream ? stream_of(&fixed->streams, stream)->handle : NULL;
  return extent;
}

enum hipmm_status fixed_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                              void *closure)
{
  struct fixed *fixed = self;
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (status) return status;
  reuse_see_lists(fixed);
  const struct key_tree_node *chunk = key_tree_at_least(fixed->chunks, 0, 0);
  for (; chunk; chunk = key_tree_next(fixed->chunks, chunk))
    for (uint64_t at = chunk->major; at < chunk->major + chunk->minor; at += fixed->block_bytes) {
      const struct hipmm_extent extent = visit_block_extent(fixed, fixed_block_at(fixed, at));
      visitor(closure, &extent);
    }
  biased_lock_release(&fixed->lock);
  return HIPMM_OK;
}
