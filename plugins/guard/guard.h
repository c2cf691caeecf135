/* SPDX-License-Identifier: MIT */
/* guard.h: what the files of guard share. A block of the upstream has four parts: padding that keeps the requested
 * alignment, a zone, the application's bytes, another zone. Records are in host memory, not in the block.
 *
 * Lock order: the locks of `live`, then `lock`. No upstream is called while one is held. */
#ifndef HIPMM_PLUGINS_GUARD_GUARD_H
#define HIPMM_PLUGINS_GUARD_GUARD_H

#include "../common/live_blocks.h"
#include "../common/stack_traces.h"
#include "memory.h"

/* Named as the words of the option "on_damage". */
enum guard_on_damage { GUARD_LOG, GUARD_ERROR };

struct guard_options {
  uint64_t zone_size;
  uint64_t quarantine_size;
  uint32_t poison;
  uint32_t on_damage;
  uint32_t capture_stacks;
  int64_t stack_depth;
};

struct guard_record {
  struct live_block block; /* the application's bytes; after the free, `stream` is the stream of the free */
  void *upstream_ptr;
  size_t upstream_bytes, alignment, zone_bytes;
  uint32_t allocated_by, freed_by; /* traces; 0: none */
  uint64_t is_poisoned;            /* was filled when it was freed */
  uint64_t is_captured;            /* allocated in a graph capture, or as one began: a launch may fill the zones */
  hipmm_hip_event_t filled;        /* live: recorded when the zones were filled; NULL if is_captured */
};

/* Freed blocks, oldest first, in a ring. */
struct quarantine {
  struct guard_record *items;
  size_t capacity, head, count;
  size_t leaving; /* removed and perhaps restored; their room is kept */
  uint64_t bytes; /* of the upstream's blocks */
};

struct guard {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct guard_options options; /* may change while in use: read and written atomically */
  struct live_blocks live;
  struct stack_traces traces;
  pthread_mutex_t lock; /* all below */
  struct memory memory; /* filling on the application's streams needs no lock */
  struct quarantine quarantine;
  int64_t overruns, underruns, writes_after_free, double_frees;
};

static inline uint64_t guard_option(const uint64_t *option)
{
  return __atomic_load_n(option, __ATOMIC_RELAXED);
}

static inline bool guard_is_on(const uint32_t *option)
{
  return __atomic_load_n(option, __ATOMIC_RELAXED);
}

static inline char *guard_tail(const struct guard_record *record)
{
  return (char *)record->block.ptr + record->block.bytes;
}

static inline size_t guard_tail_bytes(const struct guard_record *record)
{
  return (size_t)((char *)record->upstream_ptr + record->upstream_bytes - guard_tail(record));
}

static inline char *guard_front(const struct guard_record *record)
{
  return (char *)record->block.ptr - record->zone_bytes;
}

#endif
