/* SPDX-License-Identifier: MIT */
/* fragments.c: idle memory that would be enough, and serves nothing, since it lies in pieces; see backing.h. */
#include "backing.h"

/* Less is nobody's trouble. */
static const uint64_t least_idle_bytes = 64 << 20;

/* The largest request that the held memory could serve. */
static uint64_t fragments_largest(const struct backing *backing, const struct heap *heap)
{
  uint64_t largest = heap_largest_free(heap), moved = backing->ops->moves ? backing_available_bytes(backing, heap) : 0;
  return largest > moved ? largest : moved;
}

uint64_t fragments_bytes(const struct backing *backing, const struct heap *heap)
{
  uint64_t free_bytes = backing_free_bytes(backing, heap), largest = fragments_largest(backing, heap);
  return free_bytes > largest ? free_bytes - largest : 0;
}

void fragments_warn(const struct backing *backing, struct heap *heap, const struct request *request)
{
  const double mib = 1 << 20;
  uint64_t bytes = request_fit_bytes(request), held_bytes = backing_bytes(backing);
  uint64_t idle_bytes = backing_free_bytes(backing, heap);
  const struct slack *slack = backing->ops->moves ? &backing->granules.slack : &backing->segments.slack;
  if (!heap->remedy || idle_bytes < least_idle_bytes || idle_bytes < bytes || idle_bytes < held_bytes / 4) return;
  if (slack_room(slack) >= held_bytes) return; /* for now, more memory is no trouble */
  uint64_t largest = fragments_largest(backing, heap);
  if (largest >= bytes) return;
  heap->blocks.services->log(heap->blocks.services, HIPMM_LOG_WARNING,
                             "%.1f MiB are wanted, and of the %.1f MiB that are held %.1f MiB are idle, but in pieces "
                             "of at most %.1f MiB: %s",
                             (double)bytes / mib, (double)held_bytes / mib, (double)idle_bytes / mib,
                             (double)largest / mib, heap->remedy);
  heap->remedy = NULL;
}
