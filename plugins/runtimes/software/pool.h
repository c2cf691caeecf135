/* SPDX-License-Identifier: MIT */
/* pool.h: a stream-ordered pool, shared by pool_blocks.c (its memory), pool.c (its life), pool_order.c (allocation and
 * free), and the calls on pools: pool_api.c, pool_attribute.c and pool_share.c (pools between processes). The lock is held
 * throughout. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_POOL_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_POOL_H

#include "internal.h"

struct software_pool {
  struct software_handle handle;
  struct software_pool *next; /* of the device */
  int device;
  hipMemAllocationHandleType handle_type;
  bool is_destroyed;
  bool is_managed;               /* of memory that every device and the host share */
  bool is_host;                  /* of pinned memory of the host */
  struct software_file imported; /* of a pool of another process; none for a pool of this process */
  struct software_heap *heap;    /* the device's, or own_heap if it can be exported */
  struct software_heap own_heap;
  struct key_tree_node *idle; /* blocks that are not allocated, by size */
  uint64_t idle_bytes;
  size_t n_allocations;
  int follow_event_dependencies, allow_opportunistic, allow_internal_dependencies;
  uint64_t release_threshold;
  uint64_t max_bytes; /* the most that it may reserve, in whole pages */
  uint64_t reserved_bytes, reserved_high, used_bytes, used_high;
  hipMemAccessFlags access[SOFTWARE_MAX_DEVICES];
};

/* A part of a chunk, in whole pages. */
struct software_pool_block {
  struct key_tree_node by_size; /* in idle; major: bytes; minor: start */
  struct software_block *chunk;
  struct software_pool_block *previous, *next; /* of the chunk, by address */
  bool is_idle;
  const struct software_queue *queue; /* of an idle block: on which it was freed; NULL for several, or none */
  struct software_marker *freed;      /* of an idle block: the free in that queue; NULL if the free has executed */
};

extern struct software_handles software_pool_handles;

/* ---- pool_blocks.c --------------------------------------------------------------------------------------------- */

/* A new chunk as one block, allocated. hipErrorOutOfMemory when the pool has its maximum; fails else as
 * software_heap_allocate() does. */
hipError_t software_pool_reserve(struct software_pool *pool, size_t bytes, struct software_pool_block **block_out);
/* Makes an allocated block idle. The pool may merge it with others, and then frees the record. */
void software_pool_add_idle(struct software_pool *pool, struct software_pool_block *block);
/* Allocates the first `bytes` of an idle block, which are whole pages. */
void software_pool_cut(struct software_pool *pool, struct software_pool_block *block, size_t bytes);
/* Idle blocks from `bytes` on, the smallest first: the first for NULL, else the one after `block`. */
struct software_pool_block *software_pool_next_idle(const struct software_pool *pool, size_t bytes,
                                                    const struct software_pool_block *block);
/* Whether the free of the idle block has executed. */
bool software_pool_block_is_ready(const struct software_pool_block *block);
/* Merges idle neighbours, if that can give `bytes`; whether it merged any. */
bool software_pool_merge_idle(struct software_pool *pool, size_t bytes);
/* Frees chunks that are idle and whose frees have executed, until no more than `keep_bytes` are reserved. */
void software_pool_trim(struct software_pool *pool, uint64_t keep_bytes);

/* ---- pool.c ---------------------------------------------------------------------------------------------------- */

/* begin, for functions that this device may not have; and the pool of a handle that may be any value. */
hipError_t software_pool_begin(enum software_call call);
hipError_t software_pool_find(hipMemPool_t handle, struct software_pool **pool_out);
/* NULL when there is no memory. */
struct software_pool *software_pool_create(int device, hipMemAllocationHandleType handle_type);
/* Before anything is allocated from it. */
void software_pool_make_managed(struct software_pool *pool);
void software_pool_make_host(struct software_pool *pool);
struct software_pool *software_pool_default(int device, bool is_managed);
struct software_pool *software_pool_current(int device, bool is_managed);
/* Frees a destroyed pool once it has no allocation and no idle block. To be called whenever an allocation is freed. */
void software_pool_destroy_if_unused(struct software_pool *pool);

/* ---- pool_order.c ---------------------------------------------------------------------------------------------- */

hipError_t software_pool_allocate(struct software_pool *pool, size_t bytes, struct software_queue *queue,
                                  enum software_call call, void **pointer_out);
/* The block is idle from here on; the free takes effect when the queue comes to it. */
hipError_t software_pool_free_async(struct software_allocation *allocation, struct software_queue *queue);

#endif
