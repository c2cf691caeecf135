/* SPDX-License-Identifier: MIT */
/* pools.h: pools of the driver that the program got from its runtime, so that what it allocates from them can come from
 * hipmm instead. What it asks of a pool is answered for that memory too. */
#ifndef HIPMM_PRELOAD_POOLS_H
#define HIPMM_PRELOAD_POOLS_H

#include "hooks.h"
#include <hipmm/plugin.h>
#include <stdatomic.h>

/* What the program has out of one pool, from hipmm. Lives as long as the pool and the last block out of it. */
struct served_pool {
  atomic_uint references;
  atomic_uint forbidden; /* ways of reuse that the program forbids: a bit for each attribute */
  atomic_int_fast64_t bytes, used_peak_bytes, reserved_peak_bytes;
};

/* These call the real function and note what came of it. `props` is a hipMemPoolProps or a cudaMemPoolProps. */
int pools_create(enum hook hook, hipMemPool_t *pool, const void *props);
int pools_destroy(enum hook hook, hipMemPool_t pool);
int pools_of_device(enum hook hook, hipMemPool_t *pool, int device);
int pools_set_current(enum hook hook, int device, hipMemPool_t pool);

/* Get or set an attribute. What hipmm gave counts as used by the program; that and the memory that the stack has idle
 * count as reserved. A pool for which the program forbids a way of reuse stays with the runtime from then on. */
int pools_get_attribute(enum hook hook, hipMemPool_t pool, int attribute, void *value);
int pools_set_attribute(enum hook hook, hipMemPool_t pool, int attribute, void *value);

/* Gives idle memory of the device's stack back too, unless a stream of the device has work: HIP does not wait here. */
int pools_trim(enum hook hook, hipMemPool_t pool, size_t keep_bytes);

/* What other devices may do with the pool's memory holds for what hipmm gave out of it. `access` are `count` of
 * hipMemAccessDesc or cudaMemAccessDesc. */
int pools_set_access(enum hook hook, hipMemPool_t pool, const void *access, size_t count);

/* The device of a pool whose memory may come from hipmm: one without a limit of its own, that no other process is to
 * share, and whose memory may be reused in every way. Returns a reference, or NULL for another pool. */
struct served_pool *pools_find(hipMemPool_t pool, int *device_out);

/* The same for the pool that serves hipMallocAsync() on a device. */
struct served_pool *pools_find_current(int device);

/* `served_pool` may be NULL. */
struct served_pool *pools_retain(struct served_pool *served_pool);
void pools_release(struct served_pool *served_pool);
void pools_count(struct served_pool *served_pool, int64_t bytes);

/* After a device was reset: its own pool is current again. */
void pools_reset(int device);

#endif
