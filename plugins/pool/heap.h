/* SPDX-License-Identifier: MIT */
/* heap.h: finds, splits and merges blocks, and moves free ones between streams. Knows nothing of where memory comes
 * from. The caller holds the pool's lock. */
#ifndef HIPMM_POOL_HEAP_H
#define HIPMM_POOL_HEAP_H

#include "../common/stream_set.h"
#include "free_index.h"

struct heap {
  struct free_index *free;  /* of each stream */
  uint32_t next_poll;       /* the stream where the next heap_poll() begins */
  uint64_t live_bytes;      /* blocks given out, cached ones included */
  uint64_t large_bytes;     /* those that have a granule and more */
  uint64_t recent_hash;     /* another number for other large blocks that came and went last */
  uint64_t requested_bytes; /* what was asked for when live blocks were taken, less that when they were given back */
  uint64_t bytes;           /* all regions, uncommitted parts included */
  /* Whether there is memory under all of [start, end), which lies in a free block that has uncommitted granules. Set by who
   * provides the memory. */
  bool (*is_committed)(const void *backing, uint64_t start, uint64_t end);
  const void *backing;
  struct streams streams;
  struct stream_set holders; /* streams that have free blocks, STREAM_READY excepted */
  struct blocks blocks;
};

bool heap_open(struct heap *heap, const struct hipmm_services *services, enum record record);
void heap_close(struct heap *heap);

/* Before a stream is first used. False when host memory is short. */
bool heap_cover(struct heap *heap, uint32_t stream);

/* Adds a region, as one free block that is ready for `stream` (STREAM_READY: for any) and has `uncommitted` granules without
 * memory. Returns the block; BLOCK_NONE when host memory is short. */
uint32_t heap_add_region(struct heap *heap, uint64_t start, uint64_t bytes, uint32_t uncommitted, uint32_t stream);

/* Takes a region out if it is one ready free block; false if it is not. */
bool heap_remove_region(struct heap *heap, uint64_t start, uint64_t bytes);

/* What is asked for. */
struct request {
  uint64_t bytes; /* rounded up to HIPMM_ALIGNMENT */
  uint64_t alignment;
  uint64_t requested; /* as the caller said it */
  uint32_t stream;
};

/* How large a block must be so that what is asked for lies in it, wherever it starts. */
static inline uint64_t request_fit_bytes(const struct request *request)
{
  return request->bytes + (request->alignment - HIPMM_ALIGNMENT);
}

/* What fits best of the blocks that are ready for the request's stream, whether or not there is memory under all of it.
 * BLOCK_NONE if there is none. */
uint32_t heap_fit(struct heap *heap, const struct request *request);

/* Makes the free block live, cut to what is asked for, which must have memory under it. BLOCK_NONE when records are
 * short. */
uint32_t heap_allocate(struct heap *heap, uint32_t id, const struct request *request);

/* Where in the free block the allocation would begin. */
uint64_t heap_start_in(const struct heap *heap, uint32_t id, const struct request *request);

/* Each looks in one way for a free block that has memory, and takes it; BLOCK_NONE if that way finds none. In order of
 * cost: */
uint32_t heap_allocate_ready(struct heap *heap, const struct request *request); /* no wait needed */
uint32_t heap_allocate_completed(struct heap *heap,
                                 const struct request *request);                  /* after looking which work is done */
uint32_t heap_allocate_waiting(struct heap *heap, const struct request *request); /* the stream waits for another one */
uint32_t heap_allocate_merged(struct heap *heap, const struct request *request);  /* the stream waits for all others */

/* Looks which work of at most HEAP_POLLS streams is done, in turn: their free blocks become ready. */
enum { HEAP_POLLS = 64 };
void heap_poll(struct heap *heap);

/* Cuts what lies before `start`, with `uncommitted` granules that have no memory, off a free block. Returns the part from
 * `start` on, which is free too; BLOCK_NONE, and nothing done, when records are short. */
uint32_t heap_cut(struct heap *heap, uint32_t id, uint64_t start, uint32_t uncommitted);

/* Makes a live block free, in order with `stream`. */
void heap_free(struct heap *heap, uint32_t id, uint32_t stream);

/* Free bytes that other streams than `stream` hold back because their handles may be gone. */
uint64_t heap_unfenced_bytes(const struct heap *heap, uint32_t stream);

/* Waits for the work behind all free blocks, which become ready. False when a stream's handle may be gone: then only
 * the device can be waited for. */
bool heap_wait(struct heap *heap);

/* Work on the stream may use memory in the free block, up to `end`: as if that part were freed on the stream now.
 * Unless that is all of it, there is memory under it. */
void heap_mark_pending(struct heap *heap, uint32_t id, uint64_t end, uint32_t stream);

/* The device is idle: every free block is ready. */
void heap_complete_all(struct heap *heap);

/* The stream's free blocks become ready; its frees have completed. */
void heap_complete_stream(struct heap *heap, uint32_t stream);

/* Takes a free block out of its list while memory is put under it, and puts it back. */
void heap_unlink(struct heap *heap, uint32_t id);
void heap_link(struct heap *heap, uint32_t id);

/* The next stream after `stream` that has free blocks, from the first on for STREAM_READY; MAX_STREAMS behind the
 * last. */
static inline uint32_t heap_next_holder(const struct heap *heap, uint32_t stream)
{
  return stream_set_next(&heap->holders, stream + 1);
}

/* Bytes of the largest free block, less what has no memory in it. */
uint64_t heap_largest_free(const struct heap *heap);

/* Host memory that all of it takes at most, in bytes. */
uint64_t heap_metadata_bytes(const struct heap *heap);

/* Whether blocks, lists and counts agree. For tests: visits everything. */
bool heap_is_valid(const struct heap *heap);

#endif
