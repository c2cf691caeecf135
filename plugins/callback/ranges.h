/* SPDX-License-Identifier: MIT */
/* ranges.h: the blocks that the program's functions gave and that are not freed: by address, so that one that overlaps
 * another is noticed. Outside the application's malloc. Thread-safe. */
#ifndef HIPMM_CALLBACK_RANGES_H
#define HIPMM_CALLBACK_RANGES_H

#include "../common/address_tree.h"

#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdbool.h>

struct range {
  struct address_tree_node by_address; /* first; major: start, minor: bytes as requested */
  struct range *next_unused;
  size_t alignment;
  hipStream_t stream;
};

struct ranges {
  const struct hipmm_services *services;
  pthread_mutex_t lock;
  struct address_tree_node *blocks;
  struct range *unused;
  struct ranges_chunk *chunks;
  uint64_t count, bytes;
};

void ranges_open(struct ranges *ranges, const struct hipmm_services *services);
void ranges_close(struct ranges *ranges);

/* What came of it; of RANGES_OVERLAP the other block is in `other_out`. */
enum ranges_result { RANGES_ADDED, RANGES_OVERLAP, RANGES_NO_MEMORY };

enum ranges_result ranges_add(struct ranges *ranges, const struct range *block, struct hipmm_block *other_out);

/* Takes the block out that starts at `ptr`, and copies it to `block_out`. `bytes` 0: any size. HIPMM_E_POINTER: none
 * starts there; HIPMM_E_SIZE: it has another size (in `block_out`), and stays. */
enum hipmm_status ranges_remove(struct ranges *ranges, const void *ptr, size_t bytes, struct range *block_out);

/* False when no block starts there. */
bool ranges_find(struct ranges *ranges, const void *ptr, struct range *block_out);

/* Takes the first block out; false when there is none. */
bool ranges_remove_first(struct ranges *ranges, struct range *block_out);

void ranges_visit(struct ranges *ranges, void (*see)(void *closure, const struct hipmm_extent *extent), void *closure);

#endif
