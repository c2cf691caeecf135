/* SPDX-License-Identifier: MIT */
/* block_map.h: which blocks a source holds from the runtime: a map from pointer to size, outside the application's
 * malloc. Thread-safe. Sources talk to a driver, which costs microseconds: one lock is no burden here. */
#ifndef HIPMM_CORE_BASE_BLOCK_MAP_H
#define HIPMM_CORE_BASE_BLOCK_MAP_H

#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdbool.h>

struct ledger {
  pthread_mutex_t lock;
  struct hipmm_block *slots; /* open addressing; ptr NULL: empty */
  size_t capacity;           /* a power of two, or 0 */
  size_t count;              /* at most half of capacity, and if that is large, a sixteenth at least */
  size_t bytes;              /* sum of all blocks */
  size_t cursor;             /* ledger_remove_any has emptied every slot below */
};

void ledger_open(struct ledger *ledger);
void ledger_close(struct ledger *ledger);

/* False when there is no memory to grow. `ptr` must not be in the ledger. */
bool ledger_insert(struct ledger *ledger, void *ptr, size_t bytes);

/* Takes the block out. `bytes` 0: any size. HIPMM_E_POINTER: not there; HIPMM_E_SIZE: of another size (given in
 * block_out), and stays. */
enum hipmm_status ledger_remove(struct ledger *ledger, const void *ptr, size_t bytes, struct hipmm_block *block_out);
bool ledger_find(struct ledger *ledger, const void *ptr, struct hipmm_block *block_out);

/* How many blocks there are, and their bytes. */
void ledger_sum(struct ledger *ledger, size_t *blocks_out, size_t *bytes_out);

/* Takes any one block out; false when there is none. */
bool ledger_remove_any(struct ledger *ledger, struct hipmm_block *block_out);

#endif
