/* SPDX-License-Identifier: MIT */
/* fixed.h: blocks of one size, cut from chunks of an upstream. What `fixed_size` is made of, and the bins of `binning`
 * that have no resource of their own. Allocating and freeing cost the same however many blocks there are.
 *
 * Free blocks stand in a list for each stream that freed them, last in, first out; those that no work uses any more in
 * the list of STREAM_CLEAN (../streams.h). A list has a lock of its own: threads on different streams do not meet
 * as long as their lists have blocks. Everything else is under one lock. Device memory is never touched. */
#ifndef HIPMM_FIXED_H
#define HIPMM_FIXED_H

#include "../common/address_map.h"
#include "../common/biased_lock.h"
#include "../common/sizes.h"
#include "../common/stream_set.h"

enum { FIXED_MOST_BLOCKS_PER_CHUNK = 4096 };

struct fixed_record; /* of a block */
struct fixed_chunk;
struct fixed_list;

struct fixed {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  uint64_t serial;      /* never given twice */
  uint64_t block_bytes; /* a multiple of HIPMM_ALIGNMENT */
  uint32_t blocks_per_chunk;
  struct address_map starts;
  struct fixed_list *lists;   /* by stream; what is in them is under their own locks */
  struct fixed_chunk *chunks; /* a chunk stays in its place; blocks have numbers that count on from place to place */

  struct biased_lock lock; /* all below, and which chunks and lists there are; taken before a list's */
  struct streams streams;
  struct stream_set filled; /* whose lists may have free blocks: every list outside is empty and not open */
  uint32_t next_poll;       /* where the next search for work that has passed goes on */
  uint32_t *order;          /* places of chunks, by address */
  uint32_t n_chunks, n_places;
  uint32_t n_blocks;
  uint64_t records_bytes; /* host memory of the records of `n_blocks` */
  uint64_t reserved_bytes, peak_reserved_bytes;
};

/* `block_bytes` is rounded up. On failure nothing is left behind. */
enum hipmm_status fixed_open(struct fixed *fixed, const struct hipmm_services *services,
                             struct hipmm_resource *upstream, uint64_t block_bytes, uint32_t blocks_per_chunk,
                             enum record record);

/* Waits for the device and gives everything back. The device is current. */
void fixed_close(struct fixed *fixed);

/* Takes blocks from the upstream, which no work has used, before the first allocation. */
enum hipmm_status fixed_preallocate(struct fixed *fixed, uint32_t n_blocks);

/* The ops of the same names, for alignments up to HIPMM_ALIGNMENT. `bytes` is at most block_bytes; 0 gives NULL. */
enum hipmm_status fixed_allocate(struct fixed *fixed, size_t bytes, hipStream_t stream, void **ptr_out);
enum hipmm_status fixed_deallocate(struct fixed *fixed, void *ptr, size_t bytes, hipStream_t stream);
enum hipmm_status fixed_trim(struct fixed *fixed, size_t keep_bytes);
void fixed_stream_retire(struct fixed *fixed, hipStream_t stream);
void fixed_stream_retain(struct fixed *fixed, hipStream_t stream);

/* The live block that starts at `ptr`; false, and no report, if there is none. */
bool fixed_find(const struct fixed *fixed, const void *ptr, struct hipmm_block *block_out);

/* Whether a block, live or free, starts at `ptr`. */
bool fixed_starts_at(const struct fixed *fixed, const void *ptr);

/* Calls `see` for every block, in the order of addresses. */
enum hipmm_status fixed_visit(struct fixed *fixed, void (*see)(void *closure, const struct hipmm_extent *extent),
                              void *closure);

/* What there is to tell; `stream_waits` as in streams.h. */
struct fixed_counts {
  int64_t reserved_bytes, peak_reserved_bytes, live_bytes, live_count, free_count, chunks, stream_waits, metadata_bytes;
};

enum hipmm_status fixed_count(struct fixed *fixed, struct fixed_counts *counts_out);

#endif
