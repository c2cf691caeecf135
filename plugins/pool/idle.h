/* SPDX-License-Identifier: MIT */
/* idle.h: the idle chunks: those that lie wholly in free blocks. An idle chunk can be mapped elsewhere, or go back to the
 * upstream. Each idle_detach function detaches one of at most `most` granules, or returns HIPMM_E_OUT_OF_MEMORY if there
 * is none. Called by granules.c, backing.c and explain.c. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_IDLE_H
#define HIPMM_PLUGINS_POOL_IDLE_H

#include "chunks.h"
#include "heap.h"

/* Bytes of the idle chunks in a free block. */
uint64_t idle_bytes_in(const struct chunks *chunks, const struct block *block);

/* Detaches a chunk that lies wholly in the free block `holder`, which is in an index, or is not. */
enum hipmm_status idle_detach_chunk(struct chunks *chunks, struct heap *heap, uint32_t chunk, uint32_t holder,
                                    bool is_listed);

/* Detaches a chunk of a free block that is in no index, from the address `from` on. */
enum hipmm_status idle_detach_from(struct chunks *chunks, struct heap *heap, uint32_t id, uint64_t from, uint64_t most,
                                   uint32_t *chunk_out);

/* Detaches a chunk of the stream's free blocks. */
enum hipmm_status idle_detach(struct chunks *chunks, struct heap *heap, uint32_t stream, uint64_t most,
                              uint32_t *chunk_out);

/* Detaches a chunk of another stream's free blocks, after `stream` was made to wait for that stream. */
enum hipmm_status idle_detach_waiting(struct chunks *chunks, struct heap *heap, uint32_t stream, uint64_t most,
                                      uint32_t *chunk_out);

/* Whether there are idle chunks in pending blocks. */
bool idle_is_pending(const struct chunks *chunks, const struct heap *heap);

/* Waits on the host until no work uses an alias mapping. The handle of `user` is valid during this call. Refused, without a wait, where only the device could be waited for and a graph is captured. */
enum hipmm_status idle_await_mapping(const struct chunks *chunks, struct heap *heap, uint32_t mapping, uint32_t user);

/* Takes an unmapped chunk of at most `most` granules off the list, after such a wait for each of its alias mappings; CHUNK_NONE if there is none. */
uint32_t idle_obtain_unmapped(struct chunks *chunks, struct heap *heap, uint64_t most, uint32_t user);

/* Releases idle chunks of ready blocks, and unmapped chunks, to the upstream while more than `keep_bytes` are held. */
enum hipmm_status idle_release(struct chunks *chunks, struct heap *heap, uint64_t keep_bytes);

#endif
