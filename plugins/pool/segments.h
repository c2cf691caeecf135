/* SPDX-License-Identifier: MIT */
/* segments.h: a pool's memory as blocks of its upstream, each of which is a region of the heap. Called by backing.c. The
 * caller holds the pool's lock. */
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
  uint64_t maximum_bytes; /* limit of `bytes` */
};

bool segments_open(struct segments *segments, const struct hipmm_services *services, struct hipmm_resource *upstream,
                   uint64_t maximum_bytes);

/* Releases every segment, also after a failure. Returns the first failure. The device is idle. */
enum hipmm_status segments_close(struct segments *segments);

/* Adds one segment of at least `bytes`: larger where the upstream has enough, so that there are few segments. It is ready
 * for `stream`. HIPMM_E_LIMIT when the maximum does not allow it. */
enum hipmm_status segments_grow(struct segments *segments, struct heap *heap, uint64_t bytes, uint32_t stream);

/* Whether `ptr` lies in a segment. */
bool segments_contain(const struct segments *segments, const void *ptr);

/* Releases idle segments while more than `keep_bytes` are held. */
enum hipmm_status segments_release_idle(struct segments *segments, struct heap *heap, uint64_t keep_bytes);

#endif
