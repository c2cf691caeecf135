/* SPDX-License-Identifier: MIT */
/* chunks.h: the ranges that an arena has of its upstream. The caller holds the global lock. */
#ifndef HIPMM_ARENA_CHUNKS_H
#define HIPMM_ARENA_CHUNKS_H

#include "../common/sizes.h"

#include <stdbool.h>

struct chunk {
  void *ptr;
  uint64_t bytes;
  uint32_t first; /* its first range */
};

struct chunks {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct chunk *items; /* by address */
  uint32_t count;
  uint64_t bytes, peak_bytes;
  uint64_t maximum_bytes; /* no more is taken */
};

bool chunks_open(struct chunks *chunks, const struct hipmm_services *services, struct hipmm_resource *upstream,
                 uint64_t maximum_bytes);

/* Gives all of them back. No work uses them. */
void chunks_close(struct chunks *chunks);

/* Takes a chunk that has `bytes`: more, so that there are few, if that can be had. It is ready for work on `stream`.
 * HIPMM_E_LIMIT when the maximum forbids it. `chunk_out` is good until the next change. */
enum hipmm_status chunks_allocate(struct chunks *chunks, uint64_t bytes, hipStream_t stream, struct chunk **chunk_out);

/* The same with just so many bytes. */
enum hipmm_status chunks_allocate_exactly(struct chunks *chunks, uint64_t bytes, hipStream_t stream,
                                          struct chunk **chunk_out);

/* Whether `ptr` is in one of them. */
bool chunks_contain(const struct chunks *chunks, const void *ptr);

/* How much more the maximum allows. */
uint64_t chunks_room(const struct chunks *chunks);

/* Gives one back; should the upstream not have it, it stays. */
enum hipmm_status chunks_free(struct chunks *chunks, struct chunk *chunk);

#endif
