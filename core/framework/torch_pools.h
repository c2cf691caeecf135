/* SPDX-License-Identifier: MIT */
/* torch_pools.h: PyTorch's private pools, which captured graphs live on: a graph that is replayed writes to the
 * addresses that it was captured with, so no other allocation may get them before the pool is released. */
#ifndef HIPMM_CORE_FRAMEWORK_TORCH_POOLS_H
#define HIPMM_CORE_FRAMEWORK_TORCH_POOLS_H

#include "framework_device.h"

#include <hipmm/torch.h>

struct torch_pool;

/* `filter`: as in hipmm/torch.h. */
void torch_pool_begin(struct framework_device *device, struct hipmm_torch_pool id, const void *filter);
void torch_pool_end(struct framework_device *device, struct hipmm_torch_pool id);
void torch_pool_release(struct framework_device *device, struct hipmm_torch_pool id);

/* A cached block of the pool that the allocation belongs to. NULL: there is none of that size for that stream; then the
 * caller allocates a block, and torch_pool_adopt() follows if there is a pool. */
void *torch_pool_allocate(struct framework_device *device, size_t bytes, hipmm_stream_t stream,
                          struct torch_pool **pool_out);

/* Makes a new block belong to the pool; NULL: there is no block after all. False when there is no host memory. */
bool torch_pool_adopt(struct torch_pool *pool, void *ptr);

/* Frees a block that has a record (torch_blocks.h). The block is cached if its pool retains it, or if further streams
 * use it and one of its streams is being captured, when events must not be recorded. A block that is not freed is logged. */
void torch_pool_free(struct framework_device *device, void *ptr, size_t bytes, hipmm_stream_t stream);

/* Frees the blocks that were cached for such a capture and whose streams are not captured any more, as end and release
 * do. */
void torch_pool_free_waiting(struct framework_device *device);

#endif
