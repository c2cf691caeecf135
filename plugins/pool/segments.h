/* SPDX-License-Identifier: MIT */
/* segments.h: a pool's memory as blocks of its upstream, each of which is a region of the heap. Called by backing.c. The
 * caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_SEGMENTS_H
#define HIPMM_PLUGINS_POOL_SEGMENTS_H

#include "../common/sizes.h"
#include "backing_ops.h"

struct segment {
  void *ptr;
  uint64_t bytes;
};

struct segments {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct segment *items;
  uint32_t count;
  struct held held;
};

bool segments_open(struct segments *segments, const struct hipmm_services *services, struct hipmm_resource *upstream,
                   uint64_t maximum_bytes);

/* Whether `ptr` lies in a segment. */
bool segments_contain(const struct segments *segments, const void *ptr);

extern const struct backing_ops segments_ops;

#endif
