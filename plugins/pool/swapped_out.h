/* SPDX-License-Identifier: MIT */
/* swapped_out.h: the content of a suspended pool, in pinned host memory. Called by suspend.c with the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_SWAPPED_OUT_H
#define HIPMM_PLUGINS_POOL_SWAPPED_OUT_H

#include <hipmm/plugin.h>
#include <stdbool.h>

struct pool;

/* A range of addresses whose content is saved: allocated blocks, and gaps of less than a granule between them, so
 * that no granule in it is uncommitted. Its content begins at `offset` of what is saved. */
struct swapped_out_range {
  uint64_t start, bytes, offset;
};

/* The saved content, in the order of the ranges. It is pinned and copied in pieces, each by one thread. Empty where
 * nothing is saved. */
struct swapped_out {
  struct swapped_out_range *ranges;
  char *content;
  bool *is_pinned; /* of each piece */
  uint64_t n_ranges, n_pieces;
  uint64_t bytes;
};

/* Copies the content of all allocated blocks to the host. After a failure nothing is saved; what is copied is still in
 * the pool. */
enum hipmm_status swapped_out_open(struct pool *pool);

/* Copies it back, except for what was freed since, and keeps it. */
enum hipmm_status swapped_out_restore(struct pool *pool);

/* Frees what is saved. */
void swapped_out_close(struct pool *pool);

#endif
