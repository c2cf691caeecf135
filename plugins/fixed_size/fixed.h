/* SPDX-License-Identifier: MIT */
/* fixed.h: blocks of one size, cut from chunks of an upstream: the core of `fixed_size`, and of the bins of `binning`
 * that have no resource of their own. Allocating and freeing take constant time.
 *
 * Each stream has a list of the blocks that were freed on it, last in, first out; blocks that no work uses are in the
 * list of STREAM_READY (stream_order.h). A list has a lock of its own: threads on different streams do not contend as
 * long as their lists have blocks. One lock protects everything else. Device memory is never touched. */
#ifndef HIPMM_PLUGINS_FIXED_SIZE_FIXED_H
#define HIPMM_PLUGINS_FIXED_SIZE_FIXED_H

#include "../common/address_map.h"
#include "../common/biased_lock.h"
#include "../common/sizes.h"
#include "../common/stream_order.h"

enum { FIXED_MOST_BLOCKS_PER_CHUNK = 4096, FIXED_CHUNK_CLASSES = 13 };

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
  struct fixed_list *lists;   /* by stream; each has a lock of its own */
  struct fixed_chunk *chunks; /* slots; a block's number tells the slot of its chunk */

  struct biased_lock lock; /* of all below, and of which chunks and lists there are; taken before a list's lock */
  struct streams streams;
  struct stream_set filled;     /* streams whose lists may have free blocks: the other lists are empty and not open */
  struct stream_set with_event; /* those of them that may be waited for (stream_order.h) */
  uint32_t next_poll;           /* the stream where the next search for completed work starts */
  uint32_t *order;              /* slots of chunks, by address */
  uint32_t n_chunks, n_slots;
  uint32_t
      unused[FIXED_CHUNK_CLASSES]; /* slots + 1 without a chunk, by the binary logarithm of their records' number */
  uint32_t n_blocks;
  uint64_t records_bytes; /* host memory of the records of `n_blocks` */
  uint64_t reserved_bytes, peak_reserved_bytes;
};

/* `block_bytes` is rounded up. Allocates the option's blocks_to_preallocate from the upstream; no work uses them. On failure
 * nothing is left behind, and services->fail has the reason, unless the upstream's call has it. */
enum hipmm_status fixed_open(struct fixed *fixed, const struct hipmm_services *services,
                             struct hipmm_resource *upstream, uint64_t block_bytes, uint32_t blocks_per_chunk,
                             int64_t blocks_to_preallocate, enum record record);

/* Waits for the device and releases all chunks. The device is current. */
void fixed_close(struct fixed *fixed);

/* The ops of the same names, for alignments up to HIPMM_ALIGNMENT. `bytes` is at most block_bytes; 0 gives NULL. */
enum hipmm_status fixed_allocate(struct fixed *fixed, size_t bytes, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status fixed_deallocate(struct fixed *fixed, void *ptr, size_t bytes, hipmm_stream_t stream);

/* The live block that starts at `ptr`; false, and no error, if there is none. */
bool fixed_find(const struct fixed *fixed, const void *ptr, struct hipmm_block *block_out);

/* The same; `self` is a struct fixed. Of locate(), HIPMM_E_POINTER is no error. A block that it covers, live or free, starts at
 * `ptr`. The visit is in the order of addresses. */
enum hipmm_status fixed_trim(void *self, size_t keep_bytes);
void fixed_stream_retire(void *self, hipmm_stream_t stream);
void fixed_stream_retain(void *self, hipmm_stream_t stream);
enum hipmm_status fixed_locate(void *self, const void *ptr, struct hipmm_location *location_out);
int fixed_covers(void *self, const void *ptr);
enum hipmm_status fixed_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                              void *closure);

/* The values of `fixed_size`, in the order of its table of them. */
struct fixed_counts {
  int64_t reserved_bytes, peak_reserved_bytes, live_bytes, live_count, free_count, chunks, stream_waits, metadata_bytes;
};

/* `resets_peak`: the peak starts again from what is reserved now. */
enum hipmm_status fixed_count(struct fixed *fixed, bool resets_peak, struct fixed_counts *counts_out);

#endif
