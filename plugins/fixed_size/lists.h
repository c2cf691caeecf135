/* SPDX-License-Identifier: MIT */
/* lists.h: the free blocks of a stream, and the path that most allocations and frees take: a lock that only threads on
 * the same stream want, no search and no driver call. */
#ifndef HIPMM_FIXED_LISTS_H
#define HIPMM_FIXED_LISTS_H

#include "../common/spin_lock.h"
#include "../common/thread_cache.h"
#include "chunks.h"

/* All but `aside` is under `busy`. A stream's count of frees (../streams.h) is too. */
struct fixed_list {
  _Alignas(128) atomic_flag busy;
  bool is_open; /* serves the stream below */
  hipStream_t handle;
  uint64_t thread; /* of a per-thread default stream: whose; 0 otherwise */
  struct fixed_chain free;
  int64_t live_count, live_bytes; /* allocated from it less freed to it */
  struct fixed_chain aside; /* under the fixed's lock: blocks out of reach while a wait shows that they are clean */
  uint64_t aside_frees;     /* of the stream when they were put aside */
};

/* ---- With the list's lock held ---- */

/* A thread may remember a list that serves another stream by now. */
static inline bool list_is_for(const struct fixed_list *list, hipStream_t handle)
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

#endif
