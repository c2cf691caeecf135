/* SPDX-License-Identifier: MIT */
/* fixed.h: blocks of one size, cut from chunks of an upstream: the core of `fixed_size`, and of the bins of `binning`
 * that have no resource of their own. Allocating and freeing take constant time.
 *
 * Each stream has a list of the blocks that were freed on it, last in, first out; blocks that no work uses are in the
 * list of STREAM_READY (stream_order.h). A list has a lock of its own: threads on different streams do not contend as
 * long as their lists have blocks. One lock protects everything else. Device memory is never touched. */
#ifndef HIPMM_PLUGINS_FIXED_SIZE_FIXED_H
#define HIPMM_PLUGINS_FIXED_SIZE_FIXED_H

#include "../../core/base/key_tree.h"
#include "../common/address_map.h"
#include "../common/biased_lock.h"
#include "../common/sizes.h"
#include "../common/spin_lock.h"
#include "../common/stream_order.h"

/* ---- Types ---- */

enum {
  FIXED_NONE = 0,    /* blocks have numbers from 1 */
  FIXED_PART = 4096, /* records that are allocated together */
  SEEN_IN_NO_LIST = UINT16_MAX
};

/* An allocation sets `requested` from 0, a free to 0. The lock of the list that a free block is in protects `next`. The
 * other fields but `seen` change atomically, and any thread may read them: a second free of a block may do so after its
 * chunk was released. */
struct fixed_record {
  uint64_t start;     /* address; 0: the record is not in use */
  uint64_t requested; /* live: bytes, as the caller asked; 0: free */
  uint64_t note;      /* live: the stream of its allocation; free: the epoch of its free (stream_order.h) */
  uint32_t next;      /* free: in its list */
  uint16_t seen;      /* of reuse_see_lists(): the stream whose list it was in */
};

/* The free blocks of a stream, the last freed first. `busy` protects all fields, and the stream's count of frees
 * (stream_order.h). While is_open is false, a user holds the lock of struct fixed too. The list of STREAM_READY is never
 * open: that lock alone protects its blocks. */
struct fixed_list {
  _Alignas(128) atomic_flag busy;
  bool is_open; /* threads that remember it may use it for the stream below */
  hipmm_stream_t handle;
  uint64_t thread;                /* of a per-thread default stream: its thread; 0 otherwise */
  uint32_t first, last;           /* of its blocks; `first` FIXED_NONE: none. STREAM_READY needs no `last` */
  int64_t live_count, live_bytes; /* allocations on the stream less frees */
  uint64_t frees_before_wait;     /* the stream's frees when a wait for the device began */
};

/* The options of `fixed_size`. */
struct fixed_size_options {
  uint64_t block_size;
  int64_t blocks_per_chunk;
  int64_t blocks_to_preallocate;
  uint32_t record; /* enum record (stream_order.h) */
};

struct fixed {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  uint64_t serial;      /* never given twice */
  uint64_t block_bytes; /* a multiple of HIPMM_ALIGNMENT */
  uint32_t blocks_per_chunk;
  struct address_map starts;     /* of all blocks, live or free */
  struct fixed_record **records; /* in parts, by number; a part stays until the end */
  struct fixed_list *lists;      /* by stream; each has a lock of its own */

  struct biased_lock lock; /* of all below, and of which chunks and lists there are; taken before a list's lock */
  struct streams streams;
  struct stream_set filled;     /* streams whose lists may have free blocks: the other lists are empty and not open */
  struct stream_set with_event; /* those of them that may be waited for (stream_order.h) */
  uint32_t next_poll;           /* the stream where the next search for completed work starts */
  uint32_t next_unused;         /* all records before this one are in use */
  uint32_t n_records;           /* all records from this one on are unused */
  uint32_t n_parts, n_chunks, n_nodes;
  struct key_tree_node *chunks;                 /* by address; `minor` has the bytes */
  struct key_tree_node *nodes;                  /* `n_nodes` nodes of chunks, used or not */
  struct key_tree_node *unused_nodes;           /* linked by `left` */
  uint64_t reserved_bytes, peak_reserved_bytes; /* of all chunks */
};

/* The values of `fixed_size`, in the order of its table of them. */
enum fixed_value {
  FIXED_RESERVED_BYTES,
  FIXED_PEAK_RESERVED_BYTES,
  FIXED_LIVE_BYTES,
  FIXED_LIVE_COUNT,
  FIXED_FREE_COUNT,
  FIXED_CHUNKS,
  FIXED_STREAM_WAITS,
  FIXED_METADATA_BYTES,
  FIXED_VALUES
};

/* ---- What the resources call (fixed.c, visit.c) ---- */

/* On failure nothing is left behind, and services->fail has the reason, unless the upstream's call has it. */
enum hipmm_status fixed_open(struct fixed *fixed, const struct hipmm_services *services,
                             struct hipmm_resource *upstream, const struct fixed_size_options *options);

/* Waits for the device and releases all chunks. The device is current. */
void fixed_close(struct fixed *fixed);

/* The ops of the same names, for alignments up to HIPMM_ALIGNMENT. `bytes` is at most block_bytes; 0 gives NULL. */
enum hipmm_status fixed_allocate(struct fixed *fixed, size_t bytes, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status fixed_deallocate(struct fixed *fixed, void *ptr, size_t bytes, hipmm_stream_t stream);

/* The live block that starts at `ptr`; false, and no error, if there is none. */
bool fixed_find(const struct fixed *fixed, const void *ptr, struct hipmm_block *block_out);

/* The ops of the same names; `self` is a struct fixed. fixed_locate() leaves no error behind HIPMM_E_POINTER. fixed_covers() says
 * whether a block, live or free, starts at `ptr`. The visit is in the order of addresses. */
enum hipmm_status fixed_trim(void *self, size_t keep_bytes);
void fixed_stream_retire(void *self, hipmm_stream_t stream);
void fixed_stream_retain(void *self, hipmm_stream_t stream);
enum hipmm_status fixed_locate(void *self, const void *ptr, struct hipmm_location *location_out);
int fixed_covers(void *self, const void *ptr);
enum hipmm_status fixed_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                              void *closure);

/* All values. `resets_peak`: the peak starts again from what is reserved now. */
enum hipmm_status fixed_count(struct fixed *fixed, bool resets_peak, int64_t values_out[FIXED_VALUES]);

/* ---- Blocks; these need no lock ---- */

static inline struct fixed_record *record_of(const struct fixed *fixed, uint32_t number)
{
  return &fixed->records[number / FIXED_PART][number % FIXED_PART];
}

static inline uint64_t address_of(const struct fixed *fixed, uint32_t number)
{
  return __atomic_load_n(&record_of(fixed, number)->start, __ATOMIC_RELAXED);
}

static inline uint64_t fixed_n_blocks(const struct fixed *fixed)
{
  return fixed->reserved_bytes / fixed->block_bytes;
}

/* The block that starts at `ptr`, live or free; FIXED_NONE if there is none. */
static inline uint32_t fixed_block_at(const struct fixed *fixed, uint64_t ptr)
{
  uint32_t number = address_map_get(&fixed->starts, ptr);
  return number && address_of(fixed, number) == ptr ? number : FIXED_NONE;
}

/* Bytes that the caller asked for; 0 of a free block. */
static inline uint64_t fixed_block_requested(const struct fixed *fixed, uint32_t number)
{
  return __atomic_load_n(&record_of(fixed, number)->requested, __ATOMIC_ACQUIRE);
}

static inline void fixed_block_set_requested(const struct fixed *fixed, uint32_t number, uint64_t requested)
{
  __atomic_store_n(&record_of(fixed, number)->requested, requested, __ATOMIC_RELEASE);
}

static inline uint64_t fixed_block_note(const struct fixed *fixed, uint32_t number)
{
  return __atomic_load_n(&record_of(fixed, number)->note, __ATOMIC_RELAXED);
}

/* Makes the live block at `ptr` free. False if another thread freed it first: its record may be another block's by now. */
static inline bool fixed_block_claim(const struct fixed *fixed, uint32_t number, uint64_t ptr, uint64_t requested)
{
  struct fixed_record *record = record_of(fixed, number);
  if (!__atomic_compare_exchange_n(&record->requested, &requested, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  if (__builtin_expect(__atomic_load_n(&record->start, __ATOMIC_RELAXED) == ptr, 1)) return true;
  fixed_block_set_requested(fixed, number, requested);
  return false;
}

/* ---- Lists; the caller holds the lock of the list ---- */

/* A thread may remember a list that belongs to another stream by now. */
static inline bool list_is_for(const struct fixed_list *list, hipmm_stream_t handle)
{
  return list->is_open && list->handle == handle && (!list->thread || list->thread == thread_number());
}

static inline uint32_t list_pop(const struct fixed *fixed, struct fixed_list *list)
{
  uint32_t number = list->first;
  if (number) list->first = record_of(fixed, number)->next;
  return number;
}

static inline void list_push(const struct fixed *fixed, struct fixed_list *list, uint32_t number, uint64_t epoch)
{
  struct fixed_record *record = record_of(fixed, number);
  __atomic_store_n(&record->note, epoch, __ATOMIC_RELAXED);
  record->next = list->first;
  if (!list->first) list->last = number;
  list->first = number;
}

/* ---- Chunks (chunks.c); from here on, the caller holds the lock of struct fixed ---- */

/* False when host memory is short; chunks_close() must be called all the same. */
bool chunks_open(struct fixed *fixed);

/* Releases all chunks. */
void chunks_close(struct fixed *fixed);

/* Allocates a chunk of `n_blocks`, or of fewer if the upstream has no memory for that many, but at least
 * `least_blocks`. Its blocks are in no list yet, and ready for work on `stream`. */
enum hipmm_status chunks_grow(struct fixed *fixed, uint32_t n_blocks, uint32_t least_blocks, hipmm_stream_t stream,
                              const struct key_tree_node **chunk_out);

/* Adds the chunk's blocks that reuse_see_lists() saw in the list of STREAM_READY, and all blocks of a new chunk. */
void chunks_push_ready(const struct fixed *fixed, const struct key_tree_node *chunk, struct fixed_list *list,
                       uint64_t epoch);

/* After reuse_see_lists(), releases chunks whose blocks are all ready, down to `keep_bytes`. Returns the first failure. */
enum hipmm_status chunks_release_idle(struct fixed *fixed, size_t keep_bytes);

uint64_t chunks_metadata_bytes(const struct fixed *fixed);

/* ---- Streams, and the search for a block when the list of a stream is empty (reuse.c) ---- */

/* Blocks that no work uses. */
static inline struct fixed_list *reuse_ready(const struct fixed *fixed)
{
  return &fixed->lists[STREAM_READY];
}

/* Waits for the device: the blocks that were free are ready for every stream then. `user` as in
 * streams_any_captured(). */
enum hipmm_status reuse_synchronize_device(struct fixed *fixed, uint32_t user);

/* The id of the stream of this call. */
enum hipmm_status reuse_enter_stream(struct fixed *fixed, hipmm_stream_t handle, uint32_t *id_out);

/* A block that work on the stream may use, in no list and not yet live. */
enum hipmm_status reuse_find(struct fixed *fixed, uint32_t stream, uint32_t *number_out);

/* Forgets a stream, which is still valid, after waiting for it: its blocks are ready for every stream then. If HIP
 * cannot wait, the blocks stay with the lost stream until the device was waited for. */
void reuse_retire_stream(struct fixed *fixed, uint32_t stream, hipmm_stream_t handle);

/* Sets `seen` of every block. */
void reuse_see_lists(struct fixed *fixed);

#endif
