/* SPDX-License-Identifier: MIT */
/* heap.h: finds, splits and merges blocks, and moves free blocks between streams. Called by a pool, by the files of the
 * backing, and by arena. Knows nothing of where memory comes from. The caller holds the lock of the pool or arena. */
#ifndef HIPMM_PLUGINS_HEAP_HEAP_H
#define HIPMM_PLUGINS_HEAP_HEAP_H

#include "free_index.h"

static inline struct block *heap_block(const struct heap *heap, uint32_t id)
{
  return block_of(&heap->blocks, id);
}

bool heap_open(struct heap *heap, const struct hipmm_services *services, enum record record);
void heap_close(struct heap *heap);

/* Adds a region as one free block with `uncommitted` granules, ready for `stream` (STREAM_READY: for every stream).
 * Returns the block; BLOCK_NONE when host memory is short. */
uint32_t heap_add_region(struct heap *heap, uint64_t start, uint64_t bytes, uint32_t uncommitted, uint32_t stream);

/* The same for a segment. */
uint32_t heap_add_segment(struct heap *heap, const struct segment *segment, uint32_t stream);

/* The same for a chunk that is one block. */
uint32_t heap_add_own(struct heap *heap, uint64_t start, uint64_t bytes);

/* Removes a region if the block is all of it, and ready for every stream; false otherwise. */
bool heap_remove_region(struct heap *heap, uint32_t id);

/* The size of a block that fits the request, wherever the block starts. */
static inline uint64_t request_fit_bytes(const struct request *request)
{
  return request->bytes + (request->alignment - HIPMM_ALIGNMENT);
}

/* The best fit of the blocks with uncommitted granules of the request's stream, or else of the ready ones; while memory is
 * short, the block of any kind at the lowest address. BLOCK_NONE if there is none. */
uint32_t heap_fit_uncommitted(const struct heap *heap, const struct request *request);

/* Splits the request off the free block, and makes it live. The request's part is committed. BLOCK_NONE when records are
 * short. */
uint32_t heap_allocate(struct heap *heap, uint32_t id, const struct request *request);

/* The address in the free block where the allocation would begin. */
uint64_t heap_start_in(const struct heap *heap, uint32_t id, const struct request *request);

/* Attempts to allocate a committed block, the cheapest first; BLOCK_NONE if there is none. heap_allocate_ready() needs no
 * wait. While memory is short it passes a block over for a lower address where memory has to be mapped first, and
 * heap_allocate_fit() takes such a block, of the kinds from `kind` on. heap_allocate_completed() first asks which work has
 * completed. heap_allocate_waiting() makes the request's stream wait for another one, heap_allocate_merged() for all
 * others. */
uint32_t heap_allocate_ready(struct heap *heap, const struct request *request);
uint32_t heap_allocate_fit(struct heap *heap, enum kind kind, const struct request *request);
uint32_t heap_allocate_completed(struct heap *heap, const struct request *request);
uint32_t heap_allocate_waiting(struct heap *heap, const struct request *request);
uint32_t heap_allocate_merged(struct heap *heap, const struct request *request);

/* Asks which work of the next HEAP_POLLS streams has completed: their free blocks become ready. */
enum { HEAP_POLLS = 64 };
void heap_poll(struct heap *heap);

/* Frees a live block in the order of `stream`, which is not STREAM_READY; and one that has been free since that epoch of it. */
void heap_free(struct heap *heap, uint32_t id, uint32_t stream);
void heap_free_later(struct heap *heap, uint32_t id, uint32_t stream, uint64_t epoch);

/* Whether blocks without an event have that many bytes: pending on streams other than `stream`, which no event covers
 * yet. */
bool heap_has_without_event(const struct heap *heap, uint32_t stream, uint64_t least_bytes);

/* Of the ready blocks of the kinds from `first` on: a small one of at least `bytes`, or else a large one; BLOCK_NONE if there
 * is none. */
uint32_t heap_find_idle(const struct heap *heap, enum kind first, uint64_t bytes);

/* Whether work of a stream may still use a free block of these kinds. */
bool heap_has_pending(const struct heap *heap, enum kind first);

/* See stream_retain(). */
void heap_retain_stream(struct heap *heap, uint32_t stream);

/* Waits on the host until all free blocks are ready. False when the handle of a stream may be gone: only a wait for the
 * device helps then. */
bool heap_wait(struct heap *heap);

/* Marks the free block up to `end` as pending on the stream, as if it were freed there now. */
void heap_mark_pending(struct heap *heap, uint32_t id, uint64_t end, uint32_t stream);

/* The device is idle: every free block is ready. */
void heap_complete_all(struct heap *heap);

/* All work of the stream is done: its free blocks become ready. */
void heap_complete_stream(struct heap *heap, uint32_t stream);

/* Removes a free block from its list, and adds it again. */
void heap_unlink(struct heap *heap, uint32_t id);
void heap_link(struct heap *heap, uint32_t id);

/* Adds a free block that is in no list, after merging it with its neighbours. Returns the merged block. */
uint32_t heap_merge(struct heap *heap, uint32_t id);

/* The best fit of a kind on a stream, if the request's part of it is committed; BLOCK_NONE otherwise. In a pool of segments,
 * only of the request's kind, and no idle segment of which too much would be left. */
uint32_t heap_fit(const struct heap *heap, uint32_t stream, enum kind kind, const struct request *request);

/* Of two blocks the one at the lower address; the other one if one is BLOCK_NONE. */
static inline uint32_t heap_lower_of(const struct heap *heap, uint32_t a, uint32_t b)
{
  if (!a || !b) return a ? a : b;
  return heap_block(heap, a)->start < heap_block(heap, b)->start ? a : b;
}

/* The next stream after `stream` with free blocks, or the first for STREAM_READY; MAX_STREAMS at the end. */
static inline uint32_t heap_next_holder(const struct heap *heap, uint32_t stream)
{
  return stream_set_next(&heap->holders, stream + 1);
}

/* The same, of streams that may be waited for. */
static inline uint32_t heap_next_with_event(const struct heap *heap, uint32_t stream)
{
  return stream_set_next(&heap->with_event, stream + 1);
}

/* Committed bytes of the largest free block. */
uint64_t heap_largest_free(const struct heap *heap);

/* The first block of the next region, in no order, or of one for BLOCK_NONE; BLOCK_NONE at the end. */
uint32_t heap_next_region(const struct heap *heap, uint32_t first);

/* The most host memory that the heap takes, in bytes. */
uint64_t heap_metadata_bytes(const struct heap *heap);

/* Whether blocks, lists and counts agree. For tests: visits every block. */
bool heap_is_valid(const struct heap *heap);

#endif
