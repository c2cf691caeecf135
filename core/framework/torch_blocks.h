/* SPDX-License-Identifier: MIT */
/* torch_blocks.h: what PyTorch said about single live blocks: which further streams use them, and which private pool
 * they belong to. Most blocks have no note, and finding that out costs one load. */
#ifndef HIPMM_CORE_FRAMEWORK_TORCH_BLOCKS_H
#define HIPMM_CORE_FRAMEWORK_TORCH_BLOCKS_H

#include <hipmm/hipmm.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct torch_pool;

/* A stream that uses a block, beside the one that it was allocated for, and the device that was current when that was
 * said: the stream's, in all likelihood. */
struct torch_use {
  hipStream_t stream;
  int device;
  struct torch_use *next;
};

struct torch_block {
  struct torch_pool *pool; /* NULL: none */
  bool kept;               /* freed by PyTorch, and not yet here */
  struct torch_use *uses;
};

enum { TORCH_MARKS = 4096 };

extern atomic_ushort torch_marks[TORCH_MARKS]; /* how many notes there are of pointers that share a mark */
extern atomic_uint torch_marks_all;            /* and in all: mostly none, which it takes one line to see */

static inline size_t torch_mark_of(const void *ptr)
{
  return ((uintptr_t)ptr >> 8) * 0x9E3779B97F4A7C15u >> 52;
}

/* False: there is no note of this block. A caller who may free a block knows of all that was noted of it. */
static inline bool torch_blocks_may_have(const void *ptr)
{
  return atomic_load_explicit(&torch_marks_all, memory_order_relaxed) &&
         atomic_load_explicit(&torch_marks[torch_mark_of(ptr)], memory_order_relaxed);
}

/* Without host memory for the note, freeing the block will wait for its device. */
void torch_block_use(void *ptr, hipStream_t stream, int device);

/* False when there is no host memory; never for a block that has a note. */
bool torch_block_pool(void *ptr, struct torch_pool *pool, bool kept);

/* Takes the note away; the uses belong to the caller. */
struct torch_block torch_blocks_take(void *ptr);

void torch_blocks_forget(void);
void torch_drop_uses(struct torch_use *uses);

/* Makes what is done on `stream` of `device` from now on wait for what `uses` have been given so far, and frees them.
 * Where events fail it waits for the devices concerned. */
void torch_settle(struct torch_use *uses, int device, hipStream_t stream);

#endif
