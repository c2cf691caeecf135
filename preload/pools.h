/* SPDX-License-Identifier: MIT */
/* pools.h: pools of the driver that the program got from its runtime, so that what it allocates from them can come from
 * hipmm instead. */
#ifndef HIPMM_PRELOAD_POOLS_H
#define HIPMM_PRELOAD_POOLS_H

#include "hooks.h"
#include <hipmm/plugin.h>

/* These call the real function and note what came of it. `props` is a hipMemPoolProps or a cudaMemPoolProps. */
int pools_create(enum hook hook, hipMemPool_t *pool, const void *props);
int pools_destroy(enum hook hook, hipMemPool_t pool);
int pools_of_device(enum hook hook, hipMemPool_t *pool, int device);

/* The device of a pool whose memory may come from hipmm: one that no other process is to share. */
bool pools_find(hipMemPool_t pool, int *device_out);

#endif
