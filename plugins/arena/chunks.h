/* SPDX-License-Identifier: MIT */
/* chunks.h: the memory that an arena holds from its upstream. The caller holds the global lock. */
#ifndef HIPMM_PLUGINS_ARENA_CHUNKS_H
#define HIPMM_PLUGINS_ARENA_CHUNKS_H

#include "../common/sizes.h"

#include <stdbool.h>

struct arena_chunk {
  void *ptr;
  uint64_t bytes;
  uint32_t first; /* its first range */
};

struct arena_chunks {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct arena_chunk *items; /* by address */
  uint32_t count;
  uint64_t bytes, peak_bytes;
  uint64_t maximum_bytes; /* that may be held */
};

bool arena_chunks_open(struct arena_chunks *chunks, const struct hipmm_services *services,
                       struct hipmm_resource *upstream, uint64_t maximum_bytes);

/* Frees all chunks. No work uses them. */
void arena_chunks_close(struct arena_chunks *chunks);

/* Allocates a chunk of at least `bytes`, ready for work on `stream`; a larger one where possible, to have few chunks.
 * HIPMM_E_LIMIT when the maximum forbids it. `chunk_out` is valid until the next change. */
enum hipmm_status arena_chunks_allocate(struct arena_chunks *chunks, uint64_t bytes, hipmm_stream_t stream,
                                        struct arena_chunk **chunk_out);

/* The same with exactly `bytes`. */
enum hipmm_status arena_chunks_allocate_exactly(struct arena_chunks *chunks, uint64_t bytes, hipmm_stream_t stream,
                                                struct arena_chunk **chunk_out);

/* Whether `ptr` is in one of them. */
bool arena_chunks_contain(const struct arena_chunks *chunks, const void *ptr);

/* How much more the maximum allows. */
uint64_t arena_chunks_room(const struct arena_chunks *chunks);

/* Frees a chunk; if the upstream refuses, the chunk stays. */
enum hipmm_status arena_chunks_free(struct arena_chunks *chunks, struct arena_chunk *chunk);

#endif
