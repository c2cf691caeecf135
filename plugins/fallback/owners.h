/* SPDX-License-Identifier: MIT */
/* owners.h: whose a block is, for the blocks that did not come from the first upstream. Thread-safe.
 *
 * Every free asks whether its block is here, and nearly always it is not: an address that no block here shares its mark
 * with says so without a lock. A block's own mark cannot be missed that way, since the program ordered its allocation
 * before its free. */
#ifndef HIPMM_FALLBACK_OWNERS_H
#define HIPMM_FALLBACK_OWNERS_H

#include "../common/live_blocks.h"

#include <stdatomic.h>

/* Many marks, so that few of them are in use: they are address space until they are. */
enum { OWNERS_MARKS = 65536 };

struct owner {
  struct live_block block;
  size_t upstream;
};

struct owners {
  struct live_blocks live; /* of struct owner */
  atomic_uint *marks;      /* how many blocks have each */
  atomic_bool is_used;     /* there has been a block; stays true */
};

/* False when there is no memory. */
bool owners_open(struct owners *owners, const struct hipmm_services *services);
void owners_close(struct owners *owners);

/* False when there is no memory; that has been reported. */
bool owners_add(struct owners *owners, const struct owner *owner);

/* After a block was taken out of `live`, which can also restore it: it is gone. */
void owners_drop(struct owners *owners, const struct owner *owner);

static inline atomic_uint *owners_mark(const struct owners *owners, const void *ptr)
{
  uint64_t key = (uint64_t)(uintptr_t)ptr / HIPMM_ALIGNMENT;
  return &owners->marks[key * 0x9E3779B97F4A7C15ull >> 48]; /* as many bits as there are marks */
}

static inline bool owners_are_used(const struct owners *owners)
{
  return atomic_load_explicit(&owners->is_used, memory_order_relaxed);
}

/* False: it certainly is not here. */
static inline bool owners_may_have(const struct owners *owners, const void *ptr)
{
  return owners_are_used(owners) && atomic_load_explicit(owners_mark(owners, ptr), memory_order_relaxed);
}

#endif
