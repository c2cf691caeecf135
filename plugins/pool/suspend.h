/* SPDX-License-Identifier: MIT */
/* suspend.h: a mapped pool without physical memory. The records of blocks and chunks stay as they are, so that every
 * pointer stays valid: frees work, and memory comes back under the same addresses. The content of allocated blocks
 * is saved in pinned host memory, or dropped. Idle memory is released first. Blocks that are freed meanwhile get no
 * memory at the resume. Called by pool.c, never on the path of allocations. */
#ifndef HIPMM_POOL_SUSPEND_H
#define HIPMM_POOL_SUSPEND_H

#include <hipmm/plugin.h>

struct pool;

/* A range of addresses whose content is saved: allocated blocks, and gaps of less than a granule between them, so
 * that no granule in it is uncommitted. */
struct saved_range {
  uint64_t start, bytes;
};

/* The saved content, in the order of the ranges, in pieces of pinned host memory. Empty where nothing is saved. */
struct saved {
  struct saved_range *ranges;
  void **pieces;
  uint64_t n_ranges, n_pieces;
  uint64_t bytes;
  double pin_seconds; /* that the pieces took */
};

/* The ops of the same names (hipmm/plugin.h); `self` is a struct pool. */
enum hipmm_status pool_suspend(void *self, enum hipmm_content content);
enum hipmm_status pool_resume(void *self);

/* Frees what is saved. */
void suspend_close(struct pool *pool);

#endif
