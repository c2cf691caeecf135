/* SPDX-License-Identifier: MIT */
/* reuse.h: the lists of free blocks by stream, and the search for a block when the list of a stream is empty. The
 * caller holds the lock of struct fixed unless stated; meanwhile other threads use their lists under the locks of
 * these. */
#ifndef HIPMM_PLUGINS_FIXED_SIZE_REUSE_H
#define HIPMM_PLUGINS_FIXED_SIZE_REUSE_H

#include "../common/spin_lock.h"
#include "../common/thread_cache.h"
#include "chunks.h"

/* ---- The free blocks of a stream ---- */

/* `busy` protects all fields but `snapshot` and `snapshot_frees`, and the stream's count of frees (stream_order.h).
 * While is_open is false, only holders of the lock of struct fixed use `free`, so that reuse_retire_stream() takes it
 * without `busy`. */
struct fixed_list {
  _Alignas(128) atomic_flag busy;
  bool is_open; /* threads that remember it may use it for the stream below */
  hipmm_stream_t handle;
  uint64_t thread; /* of a per-thread default stream: its thread; 0 otherwise */
  struct fixed_chain free;
  int64_t live_count, live_bytes; /* allocations on the stream less frees */
  struct fixed_chain snapshot;    /* blocks that were free when a wait for the device began */
  uint64_t snapshot_frees;        /* the count of frees at that time */
};

/* ---- The caller holds the list's lock alone ---- */

/* A thread may remember a list that belongs to another stream by now. */
static inline bool list_is_for(const struct fixed_list *list, hipmm_stream_t handle)
{
  return list->is_open && list->handle == handle && (!list->thread || list->thread == thread_number());
}

static inline uint32_t chain_pop(const struct fixed *fixed, struct fixed_chain *chain)
{
  uint32_t number = chain->head;
  if (number) chain->head = record_of(fixed, number)->next;
  return number;
}

static inline void chain_push(const struct fixed *fixed, struct fixed_chain *chain, uint32_t number, uint64_t epoch)
{
  struct fixed_record *record = record_of(fixed, number);
  fixed_block_set_note(fixed, number, epoch);
  record->next = chain->head;
  if (!chain->head) chain->tail = number;
  chain->head = number;
}

static inline void list_count(struct fixed_list *list, int64_t count, int64_t bytes)
{
  list->live_count += count;
  list->live_bytes += bytes;
}

/* ---- Finding a block ---- */

/* Blocks that no work uses. */
struct fixed_chain *reuse_ready(const struct fixed *fixed);
void reuse_add_ready(struct fixed *fixed, struct fixed_chain chain);

/* Waits for the device: the blocks that were free are ready for every stream then. `user` as in
 * streams_any_captured(). */
enum hipmm_status reuse_synchronize_device(struct fixed *fixed, uint32_t user);

/* The id of the stream of this call. */
enum hipmm_status reuse_enter_stream(struct fixed *fixed, hipmm_stream_t handle, uint32_t *id_out);

/* The stream stays valid until it ends. */
void reuse_retain_stream(struct fixed *fixed, hipmm_stream_t handle);

/* A block that work on the stream may use, in no list and not yet live. */
enum hipmm_status reuse_find(struct fixed *fixed, uint32_t stream, uint32_t *number_out);

/* Forgets a stream, which is still valid, after waiting for it: its blocks are ready for every stream then. If HIP
 * cannot wait, the blocks stay with the lost stream until the device was waited for. */
void reuse_retire_stream(struct fixed *fixed, uint32_t stream, hipmm_stream_t handle);

#endif
