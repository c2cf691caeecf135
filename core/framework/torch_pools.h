/* SPDX-License-Identifier: MIT */
/* torch_pools.h: PyTorch's blocks and private pools, which captured graphs live on: a graph that is replayed writes to the
 * addresses that it was captured with, so no other allocation may get them before the pool is released. */
#ifndef HIPMM_CORE_FRAMEWORK_TORCH_POOLS_H
#define HIPMM_CORE_FRAMEWORK_TORCH_POOLS_H

#include "../runtime/hip.h"
#include "framework_device.h"

#include <hipmm/torch.h>

/* ---- torch_blocks.c: what PyTorch said about single blocks: which further streams use a block, and which private pool it
 * belongs to. Most blocks have no record, and a filter finds that out with one load ---- */

struct torch_pool;

/* A stream that uses a block beside the stream that the block was allocated for. PyTorch does not tell the stream's
 * device: `device` was current when PyTorch recorded the stream. */
struct torch_use {
  hipmm_stream_t stream;
  int device;
  hipmm_hip_event_t event; /* of the stream's work until the block was freed; NULL: none was recorded */
  struct torch_use *next;
};

struct torch_block {
  struct torch_pool *pool; /* NULL: none */
  bool is_cached;          /* PyTorch freed the block, and the resource has not got it yet */
  struct torch_use *uses;
};

enum { TORCH_FILTER_SLOTS = 4096 };

extern atomic_ushort torch_filter[TORCH_FILTER_SLOTS]; /* records of the blocks of each slot */
extern atomic_uint torch_filter_records;               /* of all slots: usually 0 */

static inline size_t torch_filter_slot(const void *ptr)
{
  return ((uintptr_t)ptr >> 8) * 0x9E3779B97F4A7C15u >> 52;
}

/* False: the block has no record. A thread that may free a block sees every record that was made of it before. */
static inline bool torch_blocks_may_have(const void *ptr)
{
  return atomic_load_explicit(&torch_filter_records, memory_order_relaxed) &&
         atomic_load_explicit(&torch_filter[torch_filter_slot(ptr)], memory_order_relaxed);
}

/* The record of a block, to be read at once; all 0 where there is none. */
struct torch_block torch_block_find(void *ptr);

/* Records a use. Without host memory for it, freeing the block will wait for its device. */
void torch_block_add_use(void *ptr, hipmm_stream_t stream, int device);

/* The block is in PyTorch's hands and belongs to `pool`. False when there is no host memory; never for a block that has
 * a record. */
bool torch_block_set_pool(void *ptr, struct torch_pool *pool);

/* PyTorch freed a block that has a record. The record stays, without a break, so that a second free finds it. The uses
 * belong to the caller. */
struct torch_use *torch_block_set_cached(void *ptr);

/* Removes the record, if there is one; the uses belong to the caller. */
struct torch_use *torch_block_remove(void *ptr);

void torch_uses_free(struct torch_use *uses);

/* Whether the stream is among the uses. `removes`: it is not any more. */
bool torch_uses_have(struct torch_use **uses, hipmm_stream_t stream, bool removes);

/* Makes work that `stream` of `device` is given from now on wait for the work that the streams of `uses` had been given
 * when their events were recorded, or so far, and frees `uses`. Waits for the devices concerned where events fail. */
void torch_uses_settle(struct torch_use *uses, int device, hipmm_stream_t stream);

/* Records the events of the streams of `uses`, but for `stream` of `device`. False: some event is missing, or a use is. */
bool torch_uses_record(struct torch_use *uses, int device, hipmm_stream_t stream);

/* Whether the work of all events is over. */
bool torch_uses_are_over(const struct torch_use *uses);

/* ---- torch_waiting.c: blocks that PyTorch freed while further streams had work on them. The stream of a block must not wait for
 * that work if it need not: the work of the next block's owner would wait, too. So the resource gets a block once the work is over,
 * or earlier, and then the stream waits, when memory is short. A block whose streams are being captured stays until they are not,
 * since no event must be recorded ---- */

/* A block that PyTorch freed and the resource has not got yet. */
struct cached {
  void *ptr;
  size_t bytes;
  int device;
  hipmm_stream_t stream;
  struct torch_use *uses; /* that the next owner would have to wait for: such a block of a pool has no next owner */
  bool is_recorded;       /* all uses have their events */
  struct cached *next;
};

/* Takes a block with uses. */
void torch_waiting_add(struct framework_device *device, struct cached *block);

/* Gives the resource the blocks that need not wait any more; `all`: all but those of captured streams. False: there was none. */
bool torch_waiting_free(struct framework_device *device, bool all);

/* The same, at most each 100 us: for the path of allocations. */
void torch_waiting_look(struct framework_device *device);

/* Gives the resource a block whose streams may wait. */
void torch_cached_free(struct framework_device *device, struct cached *block);

/* Whether blocks of the list were freed on the stream, or are used by it; `forgets`: they are of the default stream then. */
bool torch_cached_end_stream(struct cached *list, int device, hipmm_stream_t stream, bool forgets);

/* The same for the blocks that wait. */
bool torch_waiting_end_stream(int device, hipmm_stream_t stream, bool forgets);

/* ---- torch_pools.c: private pools ---- */

/* Appends to the thread's error what the device's private pools keep idle, if they do. */
void torch_pools_explain(int device);

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

/* Frees a block that has a record. The block is cached if its pool retains it, and waits if further streams use it. A block that
 * is not freed is logged. */
void torch_pool_free(struct framework_device *device, void *ptr, size_t bytes, hipmm_stream_t stream);

#endif
