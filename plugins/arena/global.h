/* SPDX-License-Identifier: MIT */
/* global.h: the global arena. Its ranges divide all chunks of the upstream; a range becomes a superblock of a local
 * arena, or a large allocation. Free ranges are merged, and indexed by the stream that they were freed on. The caller
 * holds the global lock. */
#ifndef HIPMM_PLUGINS_ARENA_GLOBAL_H
#define HIPMM_PLUGINS_ARENA_GLOBAL_H

#include "../common/sizes.h"
#include "../common/stream_order.h"
#include "range.h"

#include <stdbool.h>

/* ---- The memory that the arena holds from its upstream (chunks.c) ---- */

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

/* ---- Its ranges (global.c) ---- */

struct global {
  const struct hipmm_services *services;
  struct arena_ranges ranges;
  struct streams streams;
  struct tlsf *free;            /* by stream; [STREAM_READY]: ranges that no work uses */
  struct stream_set holders;    /* streams with free ranges, except STREAM_READY */
  struct stream_set with_event; /* those of them that may be waited for (stream_order.h) */
  struct arena_chunks chunks;
  int64_t live_count, live_bytes; /* of large allocations */
};

/* Opens all but the chunks. False when host memory is short; global_close() must be called all the same. */
bool global_open(struct global *global, const struct hipmm_services *services, enum record record);

/* Frees all chunks. The device is idle. */
void global_close(struct global *global);

/* A request for a range. */
struct arena_request {
  uint64_t bytes;      /* at least */
  uint64_t most_bytes; /* if there is that much */
  uint64_t least_rest; /* a smaller rest is not split off */
  uint64_t alignment;
  uint32_t stream;
};

/* Each finds a free range in one way and removes it from its index; RANGE_NONE if there is none. The caller changes its
 * state. In order of cost: */
uint32_t global_find_ready(struct global *global, const struct arena_request *request); /* without waiting */
uint32_t global_find_completed(struct global *global,
                               const struct arena_request *request); /* after asking which work has completed */
uint32_t global_find_waiting(struct global *global,
                             const struct arena_request *request); /* the request's stream waits for another */

/* Frees a range: free since `epoch` of `stream`. */
void global_free(struct global *global, uint32_t id, uint32_t stream, uint64_t epoch);

/* Adds a chunk that fits the request, ready for its stream; unless `exactly`, a larger one where possible.
 * HIPMM_E_LIMIT when the maximum forbids it. */
enum hipmm_status global_grow(struct global *global, const struct arena_request *request, bool exactly);

/* Adds a chunk of exactly `bytes` that no work uses. */
enum hipmm_status global_fill(struct global *global, uint64_t bytes);

/* The frees of the stream have completed: its free ranges become ready for every stream. */
void global_complete_stream(struct global *global, uint32_t stream);

/* Frees chunks that no work uses while more than `keep_bytes` are held. Returns the first failure. */
enum hipmm_status global_release_idle(struct global *global, uint64_t keep_bytes);

/* Gives back the host memory of unused records, and of the address map for free ranges. */
void global_trim_records(struct global *global);

/* Whether that many bytes are free on streams other than `stream` that no event covers: their handles may be gone. */
bool global_has_without_event(const struct global *global, uint32_t stream, uint64_t least_bytes);

/* See stream_retain(). */
void global_retain_stream(struct global *global, uint32_t stream);

/* The device is idle: every free range is ready. */
void global_complete_all(struct global *global);

uint64_t global_free_bytes(const struct global *global);
uint64_t global_largest_free(const struct global *global);

/* The stream of this call has waited for another: a range freed there counts as freed on this stream now. */
static inline void global_note_wait(struct global *global, uint32_t stream)
{
  if (global->streams.record == RECORD_ON_FREE) stream_record_free(&global->streams, stream);
}

#endif
