/* SPDX-License-Identifier: MIT */
/* chunks.h: the inside of struct fixed: chunks, and the blocks that they are cut into. Knows nothing of when a block
 * may be used again: that is fixed.c's. The caller holds the lock, but for what says that it needs none. */
#ifndef HIPMM_FIXED_CHUNKS_H
#define HIPMM_FIXED_CHUNKS_H

#include "fixed.h"

/* Blocks have numbers from 1. */
enum { FIXED_NONE = 0, FIXED_MOST_CHUNKS = (1 << 20) - 1 };

/* `requested` changes from and to 0 by whoever allocates or frees the block; the rest is the list's that it is in, but
 * for `seen`. Who looks on without the list's lock may read `note`, which changes atomically. */
struct fixed_record {
  uint64_t requested; /* live: as asked for; 0: free */
  uint64_t note;      /* live: the stream that it was allocated for; free: the epoch of its free (../streams.h) */
  uint32_t next;      /* free: in its list */
  uint16_t seen;      /* fixed_visit's: the stream on whose list it is */
};

/* n_blocks is 0 where no chunk is in this place. Records stay with the place: who frees a block twice, a little late,
 * must find that out and not a hole. */
struct fixed_chunk {
  uint64_t start;
  struct fixed_record *records;
  uint32_t n_records, n_blocks;
  uint32_t clean_count; /* while it is decided what to give back */
  bool is_leaving;
};

/* Free blocks, one behind the other; empty when `head` is FIXED_NONE. */
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

/* What was asked for; 0 of a free block. Needs no lock. */
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

/* A free block that is in no list goes to its new owner. */
static inline void fixed_block_set_live(const struct fixed *fixed, uint32_t number, uint64_t requested,
                                        hipStream_t handle)
{
  fixed_block_set_note(fixed, number, (uintptr_t)handle);
  fixed_block_set_requested(fixed, number, requested);
}

/* Makes a live block free; false if somebody else was faster. Needs no lock. */
static inline bool fixed_block_claim(const struct fixed *fixed, uint32_t number, uint64_t requested)
{
  return __atomic_compare_exchange_n(&record_of(fixed, number)->requested, &requested, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* Puts the second behind the first. */
struct fixed_chain chain_join(const struct fixed *fixed, struct fixed_chain first, struct fixed_chain second);

/* False when host memory is short; chunks_close is owed all the same. */
bool chunks_open(struct fixed *fixed);

/* Gives all chunks back to the upstream. */
void chunks_close(struct fixed *fixed);

/* Takes a chunk from the upstream: `n_blocks`, or fewer if it has no room for that many, but at least `least_blocks`.
 * They are ready for work on `stream`, and free since `epoch`, which the caller sets. */
enum hipmm_status chunks_grow(struct fixed *fixed, uint32_t n_blocks, uint32_t least_blocks, hipStream_t stream,
                              struct fixed_chain *chain_out);

/* Gives chunks back whose blocks are all clean, down to `keep_bytes`; takes theirs out of the chain of clean blocks.
 * The first failure. */
enum hipmm_status chunks_release_idle(struct fixed *fixed, size_t keep_bytes, struct fixed_chain *clean);

uint64_t chunks_metadata_bytes(const struct fixed *fixed);

#endif
