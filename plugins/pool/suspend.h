/* SPDX-License-Identifier: MIT */
/* suspend.h: a mapped pool without physical memory. The records of blocks and chunks stay as they are, so that every
 * pointer stays valid: frees work, and memory comes back under the same addresses. The content of allocated blocks
 * is saved in pinned host memory, or dropped. Idle memory is released first. Blocks that are freed meanwhile get no
 * memory at the resume. Called by pool.c, never on the path of allocations. */
#ifndef HIPMM_POOL_SUSPEND_H
#define HIPMM_POOL_SUSPEND_H

#include <hipmm/plugin.h>

/* The ops of the same names (hipmm/plugin.h); `self` is a struct pool. */
enum hipmm_status pool_suspend(void *self, enum hipmm_content content);
enum hipmm_status pool_resume(void *self);

#endif
