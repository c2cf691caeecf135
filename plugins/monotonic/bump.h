/* SPDX-License-Identifier: MIT */
/* bump.h: a bump allocator over chunks of an upstream: each block follows the last, and when nothing is allocated, a
 * rewind starts again at the first chunk. The order of streams is the concern of uses.h. Records are in host memory;
 * device memory is never touched. The caller holds the lock.
 *
 * Invariant: chunks before the cursor are used up, chunks behind it are unused since the last rewind. */
#ifndef HIPMM_PLUGINS_MONOTONIC_BUMP_H
#define HIPMM_PLUGINS_MONOTONIC_BUMP_H

#include "../common/address_map.h"
#include "../common/sizes.h"

enum { BUMP_NONE = 0, BUMP_MOST_BLOCKS = 1 << 26 };

/* After compaction, one record stands for adjacent freed blocks of a chunk. */
struct bump_block {
  uint64_t start;
  uint64_t requested;    /* 0: freed */
  hipmm_stream_t handle; /* of the stream of its allocation, or of its free */
};

struct bump_chunk {
  uint64_t start, bytes;
  uint32_t first; /* number of its first block, if it is in use */
};

struct bump {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct bump_chunk *chunks;
  uint32_t n_chunks;
  uint32_t cursor; /* the chunk that blocks are allocated from */
  uint64_t offset; /* bytes of that chunk in use */
  uint64_t bytes, peak_bytes, maximum_bytes;
  uint64_t used_bytes; /* in chunks before the cursor, the unused ends of these included */
  uint64_t next_bytes; /* of the next chunk, unless a request or the maximum changes it */
  double growth_factor;
  struct bump_block *blocks; /* in the order of their allocation; [0] is none */
  uint32_t n_blocks;
  uint32_t touched_blocks;   /* records below this may have memory, besides those below n_blocks */
  uint32_t compact_at;       /* number of records at which the next allocation compacts first */
  uint32_t compacted_chunks; /* the cursor at the last compaction */
  int64_t live_count, live_bytes;
  struct address_map starts;
};

/* False when host memory is short; bump_close() must be called all the same. */
bool bump_open(struct bump *bump, const struct hipmm_services *services, struct hipmm_resource *upstream);

/* Frees all chunks. No work uses them. */
void bump_close(struct bump *bump);

/* A block in the chunks that are held; BUMP_NONE if it fits in none, or there are BUMP_MOST_BLOCKS. */
uint32_t bump_allocate(struct bump *bump, uint64_t requested, uint64_t alignment, hipmm_stream_t handle);

/* Adds a chunk that fits the request, ready for `handle`. HIPMM_E_LIMIT when the maximum forbids it. */
enum hipmm_status bump_grow(struct bump *bump, uint64_t requested, uint64_t alignment, hipmm_stream_t handle);

/* Adds a chunk of exactly `bytes`. */
enum hipmm_status bump_add_chunk(struct bump *bump, uint64_t bytes, hipmm_stream_t handle);

/* Whether `ptr` is in one of the chunks. */
bool bump_contains(const struct bump *bump, const void *ptr);

/* The block that starts at `ptr`, live or freed; BUMP_NONE if there is none. */
uint32_t bump_find(const struct bump *bump, const void *ptr);

void bump_free(struct bump *bump, uint32_t number, hipmm_stream_t handle);

/* Nothing is live: the next allocation starts at the first chunk. */
void bump_rewind(struct bump *bump);

/* Frees unused chunks while more than `keep_bytes` are held, the last first. No work uses them. Returns the first
 * failure. */
enum hipmm_status bump_release_untouched(struct bump *bump, uint64_t keep_bytes);

/* Gives back the host memory of unused records, and of the address map for unused chunks. */
void bump_trim_records(struct bump *bump);

void bump_visit(const struct bump *bump, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                void *closure);

uint64_t bump_metadata_bytes(const struct bump *bump);

#endif
