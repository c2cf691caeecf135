/* SPDX-License-Identifier: MIT */
/* block_map.h: which blocks a source holds from the runtime: a map from pointer to size, outside the application's
 * malloc. Thread-safe. Sources talk to a driver, which costs microseconds: one lock is no burden here. */
#ifndef HIPMM_CORE_BASE_BLOCK_MAP_H
#define HIPMM_CORE_BASE_BLOCK_MAP_H

#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdbool.h>

struct block_map {
  pthread_mutex_t lock;
  struct hipmm_block *slots; /* open addressing; ptr NULL: empty */
  size_t capacity;           /* a power of two, or 0 */
  size_t count;              /* at most half of capacity, and if that is large, a sixteenth at least */
  size_t bytes;              /* sum of all blocks */
  size_t cursor;             /* block_map_remove_any has emptied every slot below */
};

void block_map_open(struct block_map *block_map);
void block_map_close(struct block_map *block_map);

/* False when there is no memory to grow. `ptr` must not be in the block_map. */
bool block_map_insert(struct block_map *block_map, void *ptr, size_t bytes);

/* Takes the block out. `bytes` 0: any size. HIPMM_E_POINTER: not there; HIPMM_E_SIZE: of another size (given in
 * block_out), and stays. */
enum hipmm_status block_map_remove(struct block_map *block_map, const void *ptr, size_t bytes,
                                   struct hipmm_block *block_out);
bool block_map_find(struct block_map *block_map, const void *ptr, struct hipmm_block *block_out);

/* How many blocks there are, and their bytes. */
void block_map_sum(struct block_map *block_map, size_t *blocks_out, size_t *bytes_out);

/* Takes any one block out; false when there is none. */
bool block_map_remove_any(struct block_map *block_map, struct hipmm_block *block_out);

#endif
