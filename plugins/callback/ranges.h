/* SPDX-License-Identifier: MIT */
/* ranges.h: the live blocks of `callback` in order of addresses, so that overlaps are found. Records are in host memory
 * outside of the application's malloc. Thread-safe. */
#ifndef HIPMM_PLUGINS_CALLBACK_RANGES_H
#define HIPMM_PLUGINS_CALLBACK_RANGES_H

#include "../../core/base/key_tree.h"

#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdbool.h>

struct range {
  struct key_tree_node by_address; /* first; major: start, minor: bytes as requested */
  struct range *next_unused;
  size_t alignment;
  hipmm_stream_t stream;
};

struct ranges {
  const struct hipmm_services *services;
  pthread_mutex_t lock;
  struct key_tree_node *blocks;
  struct range *unused;
  struct ranges_chunk *chunks;
  uint64_t count, bytes;
};

void ranges_open(struct ranges *ranges, const struct hipmm_services *services);
void ranges_close(struct ranges *ranges);

/* The result of ranges_add(); with RANGES_OVERLAP the other block is in `other_out`. */
enum ranges_result { RANGES_ADDED, RANGES_OVERLAP, RANGES_NO_MEMORY };

enum ranges_result ranges_add(struct ranges *ranges, const struct range *block, struct hipmm_block *other_out);

/* Removes the block that starts at `ptr` and copies its record to `block_out`. `bytes` 0: any size. HIPMM_E_POINTER: no
 * block starts there. HIPMM_E_SIZE: the block has another size (in `block_out`), and stays. */
enum hipmm_status ranges_remove(struct ranges *ranges, const void *ptr, size_t bytes, struct range *block_out);

/* False if no block starts there. */
bool ranges_find(struct ranges *ranges, const void *ptr, struct range *block_out);

/* Removes the first block, when no other thread uses the ranges; false if there is none. */
bool ranges_remove_first(struct ranges *ranges, struct range *block_out);

void ranges_visit(struct ranges *ranges, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                  void *closure);

#endif
