/* SPDX-License-Identifier: MIT */
/* block_map.h: the blocks that a source holds from the runtime: a map from address to size. Its memory comes from
 * the operating system, never from the application's malloc. Thread-safe: one lock is enough, since a call of the
 * driver, which takes microseconds, goes with each change. */
#ifndef HIPMM_CORE_BASE_BLOCK_MAP_H
#define HIPMM_CORE_BASE_BLOCK_MAP_H

#include "key_map.h"

#include <pthread.h>

struct block_map {
  pthread_mutex_t lock;
  struct key_map sizes; /* address to bytes + 1 */
  size_t bytes;         /* sum of all blocks */
  size_t cursor;        /* every slot of `sizes` below is empty */
};

void block_map_open(struct block_map *map);
void block_map_close(struct block_map *map);

/* Adds a block that is not in the map. False without host memory to grow. */
bool block_map_insert(struct block_map *map, void *ptr, size_t bytes);

/* Removes the block at `ptr` and writes it to block_out. `bytes` 0: any size. HIPMM_E_POINTER: there is none.
 * HIPMM_E_SIZE: it has another size, which block_out tells, and stays in the map. */
enum hipmm_status block_map_remove(struct block_map *map, const void *ptr, size_t bytes, struct hipmm_block *block_out);
/* Looks the block at `ptr` up; false if there is none. */
bool block_map_find(struct block_map *map, const void *ptr, struct hipmm_block *block_out);

/* Looks for the block that contains `ptr`. For a pointer into a block, not to its start, the time grows with the number
 * of blocks. */
bool block_map_find_holding(struct block_map *map, const void *ptr, struct hipmm_block *block_out);

/* Calls `visitor` for each block, under the map's lock. */
void block_map_visit(struct block_map *map, void (*visitor)(void *closure, const struct hipmm_block *block),
                     void *closure);

/* The number of blocks, and the sum of their sizes in bytes. */
void block_map_sum(struct block_map *map, size_t *blocks_out, size_t *bytes_out);

/* Removes any one block; false if the map is empty. */
bool block_map_remove_any(struct block_map *map, struct hipmm_block *block_out);

#endif
