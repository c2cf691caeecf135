/* SPDX-License-Identifier: MIT */
/* chunks.h: the chunks of struct fixed, and the records of their blocks. When a block may be used again is decided in
 * reuse.c. The caller holds the lock of struct fixed, unless a function says that it needs none. */
#ifndef HIPMM_PLUGINS_FIXED_SIZE_CHUNKS_H
#define HIPMM_PLUGINS_FIXED_SIZE_CHUNKS_H

#include "fixed.h"

/* Blocks have numbers from 1. */
enum { FIXED_NONE = 0, FIXED_MOST_CHUNKS = (1 << 20) - 1 };

/* An allocation sets `requested` from 0, a free to 0. The lock of the list that a free block is in protects the other
 * fields but `seen`. `note` changes atomically and may be read without that lock. */
struct fixed_record {
  uint64_t requested; /* live: bytes, as the caller asked; 0: free */
  uint64_t note;      /* live: the stream of its allocation; free: the epoch of its free (stream_order.h) */
  uint32_t next;      /* free: in its list */
  uint16_t seen;      /* of fixed_visit(): the stream whose list it is in */
};

/* `n_blocks` is 0 in a slot without a chunk. The records stay readable then: a second free of a block may read its
 * record after the chunk was released. */
struct fixed_chunk {
  uint64_t start;
  struct fixed_record *records;
  uint32_t n_records, n_blocks;
  uint32_t next_unused; /* slot + 1, in a slot without a chunk: the next one of its class; 0: none */
  uint32_t ready_count; /* blocks that no work uses; of chunks_release_idle() */
  bool is_leaving;
};

/* A linked list of free blocks; empty when `head` is FIXED_NONE. */
struct fixed_chain {
  uint32_t head, tail;
};

static inline struct fixed_chunk *chunk_of(const struct fixed *fixed, uint32_t number)
{
  return &fixed->chunks[(number - 1) / FIXED_MOST_BLOCKS_PER_CHUNK];
}

static inline struct fixed_record *record_of(const struct fixed *fixed, uint32_t number)
{
  return &chunk_of(fixed, number)->records[(number - 1) % FIXED_MOST_BLOCKS_PER_CHUNK];
}

static inline uint64_t address_of(const struct fixed *fixed, uint32_t number)
{
  uint64_t index = (number - 1) % FIXED_MOST_BLOCKS_PER_CHUNK;
  return __atomic_load_n(&chunk_of(fixed, number)->start, __ATOMIC_RELAXED) + index * fixed->block_bytes;
}

/* The block that starts at `ptr`, live or free; FIXED_NONE if there is none. Needs no lock. */
static inline uint32_t fixed_block_at(const struct fixed *fixed, const void *ptr)
{
  uint32_t number = address_map_get(&fixed->starts, (uintptr_t)ptr);
  return number && address_of(fixed, number) == (uintptr_t)ptr ? number : FIXED_NONE;
}

/* Bytes that the caller asked for; 0 of a free block. Needs no lock. */
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

static inline void fixed_block_set_note(const struct fixed *fixed, uint32_t number, uint64_t note)
{
  __atomic_store_n(&record_of(fixed, number)->note, note, __ATOMIC_RELAXED);
}

/* Makes a free block that is in no list live. */
static inline void fixed_block_set_live(const struct fixed *fixed, uint32_t number, uint64_t requested,
                                        hipmm_stream_t handle)
{
  fixed_block_set_note(fixed, number, (uintptr_t)handle);
  fixed_block_set_requested(fixed, number, requested);
}

/* Makes a live block free; false if another thread freed it first. Needs no lock. */
static inline bool fixed_block_claim(const struct fixed *fixed, uint32_t number, uint64_t requested)
{
  return __atomic_compare_exchange_n(&record_of(fixed, number)->requested, &requested, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* Appends the second to the first. */
struct fixed_chain chain_join(const struct fixed *fixed, struct fixed_chain first, struct fixed_chain second);

/* False when host memory is short; chunks_close() must be called all the same. */
bool chunks_open(struct fixed *fixed);

/* Releases all chunks. */
void chunks_close(struct fixed *fixed);

/* Allocates a chunk of `n_blocks`, or of fewer if the upstream has no memory for that many, but at least
 * `least_blocks`. The blocks are ready for work on `stream`; the caller sets the epoch of their free. */
enum hipmm_status chunks_grow(struct fixed *fixed, uint32_t n_blocks, uint32_t least_blocks, hipmm_stream_t stream,
                              struct fixed_chain *chain_out);

/* Releases chunks whose blocks are all in `ready`, down to `keep_bytes`, and removes their blocks from `ready`. Returns
 * the first failure. */
enum hipmm_status chunks_release_idle(struct fixed *fixed, size_t keep_bytes, struct fixed_chain *ready);

uint64_t chunks_metadata_bytes(const struct fixed *fixed);

#endif
