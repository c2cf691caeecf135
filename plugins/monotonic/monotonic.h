/* SPDX-License-Identifier: MIT */
/* monotonic.h: the resource, and the ops (hipmm/plugin.h) of allocate.c; `self` is a struct monotonic. */
#ifndef HIPMM_PLUGINS_MONOTONIC_MONOTONIC_H
#define HIPMM_PLUGINS_MONOTONIC_MONOTONIC_H

#include "../common/address_map.h"
#include "../common/biased_lock.h"
#include "../common/sizes.h"
#include "../common/stream_order.h"

/* ---- Blocks and chunks (bump.c) ----
 *
 * A bump allocator over chunks of an upstream: each block follows the last, and when nothing is allocated, a rewind starts
 * again at the first chunk. The order of streams is the concern of uses.c. Records are in host memory; device memory is never
 * touched. The caller holds the lock.
 *
 * Invariant: chunks before the cursor are used up, chunks behind it are unused since the last rewind. */

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

/* ---- Order between streams (uses.c) ----
 *
 * The streams that a stream must wait for before it uses memory: those that freed blocks before the last rewind, and those
 * that added chunks. Each stream waits once after a rewind, however much it allocates. The caller holds the lock. */

struct uses {
  const struct hipmm_services *services;
  struct streams streams;
  struct stream_set freed;   /* streams that freed since the last rewind */
  struct stream_set earlier; /* streams that may have work on the memory, up to their epoch */
  struct stream_set ordered; /* streams that come after all work of `earlier` */
  uint64_t *epochs;          /* by stream, of the streams in `earlier` */
};

/* False when host memory is short; uses_close() must be called all the same. */
bool uses_open(struct uses *uses, const struct hipmm_services *services, enum record record);
void uses_close(struct uses *uses);

/* The id of the stream of this call. */
enum hipmm_status uses_enter(struct uses *uses, hipmm_stream_t handle, uint32_t *id_out);

/* Orders the stream of this call after all work of `earlier`. */
enum hipmm_status uses_order(struct uses *uses, uint32_t stream);

/* The upstream has added a chunk for the stream of this call: other streams must wait for it. */
void uses_note_chunk(struct uses *uses, uint32_t stream);

void uses_note_free(struct uses *uses, uint32_t stream);

/* The memory is rewound: frees so far come before later allocations. */
void uses_rewind(struct uses *uses);

/* Waits for the device: all work so far has completed then. `user` as in streams_any_captured(). */
enum hipmm_status uses_synchronize(struct uses *uses, uint32_t user);

uint64_t uses_metadata_bytes(const struct uses *uses);

/* Forgets a stream, which is still valid, after waiting for it. */
void uses_retire(struct uses *uses, hipmm_stream_t handle);

/* The stream stays valid until it is retired. */
void uses_retain(struct uses *uses, hipmm_stream_t handle);

/* ---- The resource ---- */

struct monotonic {
  const struct hipmm_services *services;
  struct biased_lock lock; /* all below */
  struct bump bump;
  struct uses uses;
  int64_t rewinds;
};

enum hipmm_status monotonic_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status monotonic_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
enum hipmm_status monotonic_find(void *self, const void *ptr, struct hipmm_block *block_out);
enum hipmm_status monotonic_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                  void *closure);
int monotonic_covers(void *self, const void *ptr);
enum hipmm_status monotonic_trim(void *self, size_t keep_bytes);
void monotonic_stream_retire(void *self, hipmm_stream_t stream);
void monotonic_stream_retain(void *self, hipmm_stream_t stream);

/* Frees unused chunks while more than `keep_bytes` are held, and gives back unused records. The caller holds the
 * lock. */
enum hipmm_status monotonic_release(struct monotonic *monotonic, uint64_t keep_bytes);

#endif
