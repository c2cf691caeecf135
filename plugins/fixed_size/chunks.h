/* SPDX-License-Identifier: MIT */
/* chunks.h: the inside of struct fixed: chunks of blocks, and lists of free blocks. Knows nothing of when a block
 * may be used again: that is fixed.c's. The caller holds the lock. */
#ifndef HIPMM_FIXED_CHUNKS_H
#define HIPMM_FIXED_CHUNKS_H

#include "fixed.h"

/* Blocks have numbers from 1. */
enum { FIXED_NONE = 0, FIXED_MOST_CHUNKS = (1 << 20) - 1, FIXED_MOST_STREAMS = 4096 };

struct fixed_record {
  uint64_t requested; /* live: as asked for; 0: free */
  uint64_t epoch;     /* free: that of its free (../pool/streams.h) */
  uint32_t next;      /* free: in its list */
};

/* n_blocks is 0 where no chunk is in this place. */
struct fixed_chunk {
  uint64_t start;
  uint32_t n_blocks, live_count;
  bool is_leaving;
  struct fixed_record *records;
};

struct fixed_list {
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

static inline void *address_of(const struct fixed *fixed, uint32_t number)
{
  uint64_t index = (number - 1) % FIXED_MOST_BLOCKS_PER_CHUNK;
  return (void *)(uintptr_t)(chunk_of(fixed, number)->start + index * fixed->block_bytes);
}

/* False when host memory is short; chunks_close is owed all the same. */
bool chunks_open(struct fixed *fixed);

/* Gives all chunks back to the upstream. */
void chunks_close(struct fixed *fixed);

/* The live block that starts at `ptr`; FIXED_NONE if there is none. */
uint32_t chunks_live_at(const struct fixed *fixed, const void *ptr);

/* Whether `ptr` lies in a chunk. */
bool chunks_contain(const struct fixed *fixed, const void *ptr);

/* Takes a chunk from the upstream: `n_blocks`, or fewer if it has no room for that many, but at least `least_blocks`.
 * They join the list of `stream`, which may use them at once. */
enum hipmm_status chunks_grow(struct fixed *fixed, uint32_t n_blocks, uint32_t least_blocks, uint32_t stream);

/* Gives chunks back whose blocks are all free, down to `keep_bytes`. All free blocks are clean. The first failure. */
enum hipmm_status chunks_release_idle(struct fixed *fixed, size_t keep_bytes);

/* The list of a stream's free blocks. */
void list_push(struct fixed *fixed, uint32_t stream, uint32_t number, uint64_t epoch);
uint32_t list_pop(struct fixed *fixed, uint32_t stream); /* FIXED_NONE when empty */
void list_move(struct fixed *fixed, uint32_t from, uint32_t to);

#endif
