/* SPDX-License-Identifier: MIT */
/* live_blocks.h: the live blocks of an adaptor: a map from a pointer to a record of the adaptor. Compiled into each such
 * adaptor. The map has shards with a lock each, so that threads seldom meet. Host memory comes from the core, never from
 * the application's malloc.
 *
 * A free takes the record out before it calls the upstream, since another thread may get the same address as soon as the
 * upstream has it. Afterwards the free either settles the removal or restores the record. So two frees of one block never
 * both succeed. The map reserves space for each record that may be restored: restoring cannot fail. */
#ifndef HIPMM_PLUGINS_COMMON_LIVE_BLOCKS_H
#define HIPMM_PLUGINS_COMMON_LIVE_BLOCKS_H

#include <hipmm/plugin.h>

#include <pthread.h>
#include <stdbool.h>

enum { LIVE_BLOCKS_SHARDS = 16 };

/* The first member of every record. Records are copied as bytes. */
struct live_block {
  void *ptr; /* not NULL, aligned to HIPMM_ALIGNMENT */
  size_t bytes;
  uint64_t number; /* of the allocation, from 1: live_blocks_next_number(); 0 if unused */
  hipmm_stream_t stream;
};

struct live_blocks_shard {
  _Alignas(128) pthread_mutex_t lock;
  char *slots;     /* open addressing; ptr NULL: empty */
  size_t capacity; /* a power of two, or 0 */
  size_t count;
  size_t promised; /* records that may be restored, atomic; count + promised is at most half of capacity */
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

/* False when there is no memory to grow, which has been reported. Replaces a record of the same pointer, whose block was
 * freed where the adaptor did not see it, and copies it to `replaced_out`; otherwise sets its ptr to NULL. */
bool live_blocks_insert(struct live_blocks *live, const void *record, void *replaced_out);

/* Takes a record out, for a free of `bytes` (0: unknown). A refusal has been reported: HIPMM_E_POINTER if there is no
 * record, HIPMM_E_SIZE if the size differs; then record_out has the record, and it remains. */
enum hipmm_status live_blocks_extract(struct live_blocks *live, const void *ptr, size_t bytes, void *record_out);

/* The same, but does not report that there is no record: the caller tries elsewhere. */
enum hipmm_status live_blocks_try_extract(struct live_blocks *live, const void *ptr, size_t bytes, void *record_out);

/* The caller calls one of these after a successful take. */
void live_blocks_settle(struct live_blocks *live, const void *ptr);
void live_blocks_restore(struct live_blocks *live, const void *record);

/* A copy of the record; false if there is none. */
bool live_blocks_find(struct live_blocks *live, const void *ptr, void *record_out);

/* For ops->find. */
enum hipmm_status live_blocks_find_block(struct live_blocks *live, const void *ptr, struct hipmm_block *block_out);

struct live_blocks_counts live_blocks_count(struct live_blocks *live);

/* Releases host memory that the records do not need any more: for ops->trim. */
void live_blocks_trim(struct live_blocks *live);

/* No record is inserted, taken or restored between these. */
void live_blocks_lock(struct live_blocks *live);
void live_blocks_unlock(struct live_blocks *live);

/* Calls the visitor for each record, which may change what follows the struct live_block. The caller has called
 * live_blocks_lock(). */
void live_blocks_each(struct live_blocks *live, void (*visitor)(void *closure, void *record), void *closure);

/* All records at one moment, by address or by number. False when there is no memory. Free with live_blocks_drop_list(). */
struct live_blocks_list {
  char *records;
  size_t count;
};

bool live_blocks_list(struct live_blocks *live, bool by_address, struct live_blocks_list *list_out);
void live_blocks_drop_list(struct live_blocks *live, struct live_blocks_list list);

/* For ops->visit: shows every block as a live extent, in the order of addresses. */
enum hipmm_status live_blocks_visit(struct live_blocks *live,
                                    void (*visitor)(void *closure, const struct hipmm_extent *extent), void *closure);

#endif
