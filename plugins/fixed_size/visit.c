/* SPDX-License-Identifier: MIT */
/* visit.c: every block of a fixed, as ops->visit shows them. First each list says which blocks it has; what is in none
 * is live. Threads allocate and free meanwhile: a block that changes between the two looks is shown as one or the
 * other. */
#include "reuse.h"

enum { SEEN_IN_NO_LIST = UINT16_MAX };

static void fixed_size_visit_note_lists(struct fixed *fixed)
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

/* The stream is read between two looks at the size: if that stays the same, they belong together. */
static bool fixed_size_visit_see_live(const struct fixed *fixed, uint32_t number, struct hipmm_extent *extent)
{
  uint64_t requested = fixed_block_requested(fixed, number);
  extent->stream = (hipStream_t)(uintptr_t)fixed_block_note(fixed, number);
  if (!requested || fixed_block_requested(fixed, number) != requested) return false;
  extent->bytes = requested;
  extent->state = HIPMM_EXTENT_LIVE;
  return true;
}

static struct hipmm_extent fixed_size_extent_of(const struct fixed *fixed, uint32_t number)
{
  uint16_t stream = record_of(fixed, number)->seen;
  struct hipmm_extent extent = {.ptr = (const void *)(uintptr_t)address_of(fixed, number),
                                .flags = HIPMM_EXTENT_BARRIER};
  if (stream == SEEN_IN_NO_LIST && fixed_size_visit_see_live(fixed, number, &extent)) return extent;
  bool is_known = stream != SEEN_IN_NO_LIST; /* otherwise freed just now */
  extent.bytes = fixed->block_bytes;
  extent.state = stream == STREAM_CLEAN ? HIPMM_EXTENT_FREE : HIPMM_EXTENT_PENDING;
  extent.stream = is_known && stream ? stream_of(&fixed->streams, stream)->handle : NULL;
  return extent;
}

enum hipmm_status fixed_visit(struct fixed *fixed, void (*see)(void *closure, const struct hipmm_extent *extent),
                              void *closure)
{
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (status) return status;
  fixed_size_visit_note_lists(fixed);
  for (uint32_t i = 0; i < fixed->n_chunks; i++) {
    uint32_t place = fixed->order[i];
    for (uint32_t index = 0; index < fixed->chunks[place].n_blocks; index++) {
      const struct hipmm_extent extent = fixed_size_extent_of(fixed, place * FIXED_MOST_BLOCKS_PER_CHUNK + index + 1);
      see(closure, &extent);
    }
  }
  biased_lock_release(&fixed->lock);
  return HIPMM_OK;
}
