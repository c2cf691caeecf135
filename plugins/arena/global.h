/* SPDX-License-Identifier: MIT */
/* global.h: the global arena. It has its memory in a heap over segments, as a pool has (../heap/heap.h, ../heap/segments.c). A
 * block of that heap becomes a range: a superblock of a local arena, or a large allocation. The caller holds the global
 * lock. */
#ifndef HIPMM_PLUGINS_ARENA_GLOBAL_H
#define HIPMM_PLUGINS_ARENA_GLOBAL_H

#include "../heap/backing.h"
#include "range.h"

enum { ARENA_SUPERBLOCK_BYTES = 1 << 20 /* the smallest */ };

struct global {
  const struct hipmm_services *services;
  struct arena_ranges ranges;
  struct heap heap;
  struct backing backing;         /* segments */
  int64_t live_count, live_bytes; /* of large allocations */
};

/* False when host memory is short; global_close() must be called all the same. */
bool global_open(struct global *global, const struct hipmm_services *services, struct hipmm_resource *upstream,
                 uint64_t maximum_bytes, enum record record);

/* Gives all memory back. The device is idle. */
void global_close(struct global *global);

/* Makes an allocated block of the heap a range; its state is the caller's to set. RANGE_NONE when records are short: the
 * block is free again, on `stream`. */
uint32_t global_lend(struct global *global, uint32_t block, uint32_t stream);

/* Frees a range: free since `epoch` of `stream`. */
void global_take_back(struct global *global, uint32_t id, uint32_t stream, uint64_t epoch);

/* Gives back the host memory of unused records, and of the address map for free memory. */
void global_trim_records(struct global *global);

/* Calls `look` for each free block. */
void global_visit_free(const struct global *global, void (*look)(void *closure, const struct block *block),
                       void *closure);

#endif
