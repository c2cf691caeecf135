/* SPDX-License-Identifier: MIT */
/* live_blocks.h: the live blocks of an adaptor that must know them: a map from pointer to a record of the adaptor's own.
 * Compiled into each such adaptor. In shards with a lock each, so that threads seldom meet; host memory comes from the
 * core, never from the application's malloc.
 *
 * A free takes the record out before it goes on, since another thread may get the same address as soon as the
 * upstream has it, and either settles that or restores the record: so two frees of one block never both pass. What
 * is taken out keeps its room until then: restoring cannot fail. */
#ifndef HIPMM_PLUGINS_COMMON_LIVE_BLOCKS_H
#define HIPMM_PLUGINS_COMMON_LIVE_BLOCKS_H

#include <hipmm/plugin.h>

#include <pthread.h>
#include <stdbool.h>

enum { LIVE_BLOCKS_SHARDS = 16 };

/* What every record begins with. Records are copied as bytes. */
struct live_block {
  void *ptr; /* not NULL, aligned to HIPMM_ALIGNMENT */
  size_t bytes;
  uint64_t number; /* of the allocation, from 1: live_blocks_next_number(); 0 where nobody asks */
  hipStream_t stream;
};

struct live_blocks_shard {
  _Alignas(128) pthread_mutex_t lock;
  char *slots;     /* open addressing; ptr NULL: empty */
  size_t capacity; /* a power of two, or 0 */
  size_t count;
  size_t promised; /* room for records that may be restored, atomic; count + promised is at most half of capacity */
  uint64_t bytes;  /* sum of all blocks */
};

struct live_blocks {
  const struct hipmm_services *services;
  size_t record_bytes;
  struct live_blocks_shard shards[LIVE_BLOCKS_SHARDS];
  _Alignas(128) uint64_t numbers;
};

struct live_blocks_counts {
  int64_t count, bytes, metadata_bytes;
};

/* `record_bytes` is the size of the adaptor's record, a multiple of eight. */
void live_blocks_open(struct live_blocks *live, const struct hipmm_services *services, size_t record_bytes);
void live_blocks_close(struct live_blocks *live);

uint64_t live_blocks_next_number(struct live_blocks *live);

/* False when there is no memory to grow; that has been reported. A record of the same pointer is replaced, and
 * copied to `replaced_out`, whose ptr else is NULL: that block was freed where the adaptor did not see it. */
bool live_blocks_insert(struct live_blocks *live, const void *record, void *replaced_out);

/* Takes a record out, for a free of `bytes` (0: unknown). A refusal has been reported: HIPMM_E_POINTER if there is
 * none, HIPMM_E_SIZE if it has another size; record_out then has it, and it stays. */
enum hipmm_status live_blocks_take(struct live_blocks *live, const void *ptr, size_t bytes, void *record_out);

/* The same for who then asks elsewhere: that there is none has not been reported. */
enum hipmm_status live_blocks_try_take(struct live_blocks *live, const void *ptr, size_t bytes, void *record_out);

/* Afterwards, one of them. */
void live_blocks_settle(struct live_blocks *live, const void *ptr);
void live_blocks_restore(struct live_blocks *live, const void *record);

/* A copy of the record; false if there is none. */
bool live_blocks_find(struct live_blocks *live, const void *ptr, void *record_out);

/* What ops->find answers. */
enum hipmm_status live_blocks_find_block(struct live_blocks *live, const void *ptr, struct hipmm_block *block_out);

struct live_blocks_counts live_blocks_count(struct live_blocks *live);

/* Gives host memory back that there are no records for any more: for ops->trim. */
void live_blocks_trim(struct live_blocks *live);

/* Nothing is inserted, taken or restored between these. */
void live_blocks_lock(struct live_blocks *live);
void live_blocks_unlock(struct live_blocks *live);

/* Calls see for each record; live_blocks_lock() holds. `see` may change what follows the struct live_block. */
void live_blocks_each(struct live_blocks *live, void (*see)(void *closure, void *record), void *closure);

/* All records at one moment, by address or by number. False when there is no memory. Free with live_blocks_drop_list(). */
struct live_blocks_list {
  char *records;
  size_t count;
};

bool live_blocks_list(struct live_blocks *live, bool by_address, struct live_blocks_list *list_out);
void live_blocks_drop_list(struct live_blocks *live, struct live_blocks_list list);

/* For ops->visit: every block as a live extent, in the order of addresses. */
enum hipmm_status live_blocks_visit(struct live_blocks *live,
                                    void (*see)(void *closure, const struct hipmm_extent *extent), void *closure);

#endif
