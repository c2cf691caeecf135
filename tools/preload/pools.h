/* SPDX-License-Identifier: MIT */
/* pools.h: pools of the driver that the program uses. hipmm serves allocations from most of them out of the stack of
 * their device; answers about a pool then include the blocks that hipmm gave out in its place. */
#ifndef HIPMM_TOOLS_PRELOAD_POOLS_H
#define HIPMM_TOOLS_PRELOAD_POOLS_H

#include "hooks.h"
#include <hipmm/plugin.h>
#include <stdatomic.h>

/* The blocks that hipmm gave out in the place of one pool. Lives as long as the pool and the last of the blocks. */
struct pool_account {
  atomic_uint references;
  atomic_uint forbidden; /* ways of reuse that the program forbids: a bit for each attribute */
  atomic_int_fast64_t bytes, used_peak_bytes, reserved_peak_bytes;
  atomic_int_fast64_t freed_bytes; /* that the program could have back: neither allocated again nor trimmed since */
};

/* ---- The program's calls: each calls the runtime's function first ---- */

/* `props` is a hipMemPoolProps or a cudaMemPoolProps. */
int pools_create(enum hook hook, hipmm_hip_mempool_t *pool, const void *props);
int pools_destroy(enum hook hook, hipmm_hip_mempool_t pool);
int pools_of_device(enum hook hook, hipmm_hip_mempool_t *pool, int device);
int pools_set_current(enum hook hook, int device, hipmm_hip_mempool_t pool);

/* The same for a location, which may be a device: a CUmemLocation or a cudaMemLocation, and a type of allocations. */
int pools_of_location(enum hook hook, hipmm_hip_mempool_t *pool, const void *location, int type);
int pools_set_for_location(enum hook hook, const void *location, int type, hipmm_hip_mempool_t pool);

/* The blocks count as used; they, and freed ones up to the pool's release threshold, count as reserved. Allocations
 * from a pool for which the program forbids a way of reuse go to the runtime from then on. */
int pools_get_attribute(enum hook hook, hipmm_hip_mempool_t pool, int attribute, void *value);
int pools_set_attribute(enum hook hook, hipmm_hip_mempool_t pool, int attribute, void *value);

/* Trims the stack of the device too, unless a stream of the device has work: the stack would wait for it, HIP does not. */
int pools_trim(enum hook hook, hipmm_hip_mempool_t pool, size_t keep_bytes);

/* ---- For other files ---- */

/* The account of a pool that hipmm serves, and its device: a pool without a limit of its own, which other processes
 * cannot share, and for which the program forbids no way of reuse. Returns a reference, or NULL for another pool. */
struct pool_account *pools_find(hipmm_hip_mempool_t pool, int *device_out);

/* The same for the pool that is current on a device, from which hipMallocAsync() allocates. */
struct pool_account *pools_find_current(int device);

/* As pools_find(), also for a pool for which the program forbids a way of reuse. */
struct pool_account *pools_find_any(hipmm_hip_mempool_t pool, int *device_out);

/* `account` may be NULL. `bytes` is negative for a block that is freed. */
struct pool_account *pools_retain(struct pool_account *account);
void pools_release(struct pool_account *account);
void pools_count(struct pool_account *account, int64_t bytes);

/* After a device was reset: its default pool is current again. */
void pools_reset(int device);

#endif
