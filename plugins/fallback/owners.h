/* SPDX-License-Identifier: MIT */
/* owners.h: the upstream of each block that did not come from the first one. Thread-safe.
 *
 * Every free asks whether its block is here, and nearly always it is not. A filter answers that without a lock: if the
 * slot of an address counts no block, the block is not here. The slot of a block is never missed, since the program
 * orders the allocation of a block before its free. */
#ifndef HIPMM_PLUGINS_FALLBACK_OWNERS_H
#define HIPMM_PLUGINS_FALLBACK_OWNERS_H

#include "../common/live_blocks.h"

#include <stdatomic.h>

/* Many slots, so that few are in use. Unused slots take address space only. */
enum { OWNERS_FILTER_SLOTS = 65536 };

struct owner {
  struct live_block block;
  size_t upstream;
};

struct owners {
  struct live_blocks live; /* of struct owner */
  atomic_uint *filter;     /* number of blocks by slot of their address */
  atomic_bool is_used;     /* a block was added at some time */
};

/* False when there is no memory. */
bool owners_open(struct owners *owners, const struct hipmm_services *services);
void owners_close(struct owners *owners);

/* False if there is no memory, which has been reported. */
bool owners_add(struct owners *owners, const struct owner *owner);

/* After live_blocks_extract(), when the block is freed. */
void owners_remove(struct owners *owners, const struct owner *owner);

static inline atomic_uint *owners_filter_slot(const struct owners *owners, const void *ptr)
{
  uint64_t key = (uint64_t)(uintptr_t)ptr / HIPMM_ALIGNMENT;
  return &owners->filter[key * 0x9E3779B97F4A7C15ull >> 48]; /* the upper 16 bits select a slot */
}

static inline bool owners_are_used(const struct owners *owners)
{
  return atomic_load_explicit(&owners->is_used, memory_order_relaxed);
}

/* False: the block is certainly not here. */
static inline bool owners_may_have(const struct owners *owners, const void *ptr)
{
  return owners_are_used(owners) && atomic_load_explicit(owners_filter_slot(owners, ptr), memory_order_relaxed);
}

#endif
