/* SPDX-License-Identifier: MIT */
/* visit.c: the visit of every block. The first pass marks the blocks of each list; a block in no list is live. Threads
 * allocate and free meanwhile: a block that changes between the two passes is shown in its old or its new state. */
#include "reuse.h"

enum { SEEN_IN_NO_LIST = UINT16_MAX };

static void visit_mark_lists(struct fixed *fixed)
{
  for (uint32_t i = 0; i < fixed->n_chunks; i++) {
    const struct fixed_chunk *chunk = &fixed->chunks[fixed->order[i]];
    for (uint32_t index = 0; index < chunk->n_blocks; index++) chunk->records[index].seen = SEEN_IN_NO_LIST;
  }
  for (uint32_t stream = 0; stream < fixed->streams.count; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    spin_lock(&list->busy);
    for (uint32_t number = list->free.head; number; number = record_of(fixed, number)->next)
      record_of(fixed, number)->seen = (uint16_t)stream;
    spin_unlock(&list->busy);
  }
}

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
  visit_mark_lists(fixed);
  for (uint32_t i = 0; i < fixed->n_chunks; i++) {
    uint32_t slot = fixed->order[i];
    for (uint32_t index = 0; index < fixed->chunks[slot].n_blocks; index++) {
      const struct hipmm_extent extent = visit_block_extent(fixed, slot * FIXED_MOST_BLOCKS_PER_CHUNK + index + 1);
      visitor(closure, &extent);
    }
  }
  biased_lock_release(&fixed->lock);
  return HIPMM_OK;
}
