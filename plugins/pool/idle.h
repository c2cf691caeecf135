/* SPDX-License-Identifier: MIT */
/* idle.h: the chunks that lie wholly in free memory. They can be had for another address, or go back to the upstream.
 * Each `take` gives one of at most `most` granules that lies nowhere any more, or HIPMM_E_OUT_OF_MEMORY if there is
 * none. The caller holds the pool's lock. */
#ifndef HIPMM_POOL_IDLE_H
#define HIPMM_POOL_IDLE_H

#include "chunks.h"
#include "heap.h"

/* For `most`: of any size. */
static const uint64_t IDLE_ANY = UINT32_MAX;

/* Bytes of the whole granules in a free block that have memory: what it could give, or be put together from. */
uint64_t idle_bytes_in(const struct chunks *chunks, const struct block *block);

/* Of a free block, from the address `from` on. */
enum hipmm_status idle_detach_from(struct chunks *chunks, struct block *block, uint64_t from, uint64_t most,
                                   uint32_t *chunk_out);

/* Of the stream's free blocks: a large one at a high address, where it would be reused last. */
enum hipmm_status idle_detach(struct chunks *chunks, struct heap *heap, uint32_t stream, uint64_t most,
                              uint32_t *chunk_out);

/* Of another stream, whose work `stream` then waits for. */
enum hipmm_status idle_detach_waiting(struct chunks *chunks, struct heap *heap, uint32_t stream, uint64_t most,
                                      uint32_t *chunk_out);

/* Whether there are any in free blocks whose work may not have completed yet. */
bool idle_is_pending(const struct chunks *chunks, const struct heap *heap);

/* Waits until no work uses a place that a chunk has left, or any of its places, for `user`, whose handle is good during
 * this call. Refused, and not waited, while only the device could be waited for and a graph is captured. */
enum hipmm_status idle_await_mapping(const struct chunks *chunks, struct heap *heap, uint32_t mapping, uint32_t user);
enum hipmm_status idle_await(const struct chunks *chunks, struct heap *heap, uint32_t chunk, uint32_t user);

/* A unmapped of at most `most` granules, after such a wait; CHUNK_NONE if there is none. */
uint32_t idle_obtain_unmapped(struct chunks *chunks, struct heap *heap, uint64_t most, uint32_t user);

/* Gives those of ready blocks, and unmapped, back to the upstream as long as `keep_bytes` stay. */
enum hipmm_status idle_release(struct chunks *chunks, struct heap *heap, uint64_t keep_bytes);

#endif
