/* SPDX-License-Identifier: MIT */
/* bump.h: memory of an upstream that is given out from the front to the back, and all of it anew once nothing is
 * allocated. Knows nothing of streams. Device memory is never touched: what is allocated stands in host memory. The
 * caller holds the lock.
 *
 * Invariant: chunks before the cursor's are used up, chunks behind it are untouched since the last rewind. */
#ifndef HIPMM_MONOTONIC_BUMP_H
#define HIPMM_MONOTONIC_BUMP_H

#include "../common/address_map.h"
#include "../common/sizes.h"

enum { BUMP_NONE = 0, BUMP_MOST_BLOCKS = 1 << 26 };

/* After compaction one record stands for all freed blocks that follow one another in a chunk. */
struct bump_block {
  uint64_t start;
  uint64_t requested; /* 0: freed */
  hipStream_t handle; /* that it was allocated for, or freed on */
};

struct bump_chunk {
  uint64_t start, bytes;
  uint32_t first; /* number of the first block in it, if it is not untouched */
};

struct bump {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct bump_chunk *chunks;
  uint32_t n_chunks;
  uint32_t cursor; /* the chunk that is given out */
  uint64_t offset; /* how much of it has been */
  uint64_t bytes, peak_bytes, maximum_bytes;
  uint64_t used_bytes; /* in chunks before the cursor's, what their blocks do not have included */
  uint64_t next_bytes; /* of the chunk that is taken next, if that is not too small or too much */
  double growth_factor;
  struct bump_block *blocks; /* in the order in which they were given out; [0] is none */
  uint32_t n_blocks;
  uint32_t touched_blocks;   /* records up to here may have memory, besides those of blocks */
  uint32_t compact_at;       /* so many blocks are compacted before another is added */
  uint32_t compacted_chunks; /* those before were behind the cursor at the last time */
  int64_t live_count, live_bytes;
  struct address_map starts;
};

/* False when host memory is short; bump_close is owed all the same. */
bool bump_open(struct bump *bump, const struct hipmm_services *services, struct hipmm_resource *upstream);

/* Gives all chunks back. No work uses them. */
void bump_close(struct bump *bump);

/* A block out of the chunks that there are; BUMP_NONE if none has room for it. */
uint32_t bump_take(struct bump *bump, uint64_t requested, uint64_t alignment, hipStream_t handle);

/* Takes a chunk with room for that from the upstream, ready for `handle`. HIPMM_E_LIMIT when the maximum forbids it. */
enum hipmm_status bump_grow(struct bump *bump, uint64_t requested, uint64_t alignment, hipStream_t handle);

/* Takes a chunk of just so many bytes. */
enum hipmm_status bump_add_chunk(struct bump *bump, uint64_t bytes, hipStream_t handle);

/* Whether `ptr` is in one of the chunks. */
bool bump_has(const struct bump *bump, const void *ptr);

/* The block that starts at `ptr`, live or freed; BUMP_NONE if there is none. */
uint32_t bump_at(const struct bump *bump, const void *ptr);

void bump_free(struct bump *bump, uint32_t number, hipStream_t handle);

/* Nothing is live: all memory is to be given out anew. */
void bump_rewind(struct bump *bump);

/* Gives untouched chunks back while more than `keep_bytes` are held, the last first. No work uses them. The first
 * failure. */
enum hipmm_status bump_release_untouched(struct bump *bump, uint64_t keep_bytes);

/* Gives back host memory of records and addresses that no block has. */
void bump_trim_records(struct bump *bump);

void bump_visit(const struct bump *bump, void (*see)(void *closure, const struct hipmm_extent *extent), void *closure);

uint64_t bump_metadata_bytes(const struct bump *bump);

#endif
