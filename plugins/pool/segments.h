/* SPDX-License-Identifier: MIT */
/* segments.h: a pool's memory as chunks that its upstream gave, each a region of the heap. The caller holds the pool's
 * lock. */
#ifndef HIPMM_POOL_SEGMENTS_H
#define HIPMM_POOL_SEGMENTS_H

#include "../common/sizes.h"
#include "heap.h"

struct segment {
  void *ptr;
  uint64_t bytes;
};

struct segments {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct segment *items;
  uint32_t count;
  uint64_t bytes, peak_bytes;
  uint64_t maximum_bytes; /* never held more */
};

bool segments_open(struct segments *segments, const struct hipmm_services *services, struct hipmm_resource *upstream,
                   uint64_t maximum_bytes);

/* Gives every segment back. The device is idle. Returns the first failure, having tried them all. */
enum hipmm_status segments_close(struct segments *segments);

/* Adds one segment with room for `bytes`: larger when the upstream has it, so that there are few; exactly as large when
 * it has not. It is ready for `stream`. HIPMM_E_LIMIT when the maximum has no room for it. */
enum hipmm_status segments_grow(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream);

/* Whether `ptr` is in one of them. */
bool segments_hold(const struct segments *segments, const void *ptr);

/* Gives idle segments back while more than `keep_bytes` are held, the largest that fit first. */
enum hipmm_status segments_release_idle(struct segments *segments, struct heap *heap, uint64_t keep_bytes);

#endif
