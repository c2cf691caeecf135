/* SPDX-License-Identifier: MIT */
/* global.h: the global arena: all memory of the upstream in ranges, which become superblocks of local arenas and
 * large allocations. Free ranges are kept by the stream that they were freed on, and merged. The caller holds the
 * global lock. */
#ifndef HIPMM_ARENA_GLOBAL_H
#define HIPMM_ARENA_GLOBAL_H

#include "../common/stream_order.h"
#include "chunks.h"
#include "tlsf.h"

struct global {
  const struct hipmm_services *services;
  struct ranges ranges;
  struct streams streams;
  struct tlsf *free; /* by stream; of STREAM_CLEAN what no work uses */
  struct chunks chunks;
  int64_t live_count, live_bytes; /* of large allocations */
};

/* Opens all but the chunks. False when host memory is short; global_close is owed all the same. */
bool global_open(struct global *global, const struct hipmm_services *services, enum record record);

/* Gives everything back to the upstream. The device is idle. */
void global_close(struct global *global);

/* What is asked for. */
struct request {
  uint64_t bytes;      /* at least */
  uint64_t most_bytes; /* if there is that much */
  uint64_t least_rest; /* what is left over stays with it if it is smaller */
  uint64_t alignment;
  uint32_t stream;
};

/* Each looks in one way for a free range and takes it out; RANGE_NONE if that way finds none. It is in no list then,
 * and its state is for the caller to change. In order of cost: */
uint32_t global_find_ready(struct global *global, const struct request *request); /* no wait needed */
uint32_t global_find_completed(struct global *global,
                               const struct request *request); /* after looking which work is done */
uint32_t global_find_waiting(struct global *global, const struct request *request); /* the stream waits for another */

/* Adds a range, free since `epoch` of `stream`. */
void global_free(struct global *global, uint32_t id, uint32_t stream, uint64_t epoch);

/* Takes memory from the upstream that has room for the request, ready for its stream; as much more as suits, or none.
 * HIPMM_E_LIMIT when the maximum forbids it. */
enum hipmm_status global_grow(struct global *global, const struct request *request, bool exactly);

/* The same without a stream, clean. */
enum hipmm_status global_fill(struct global *global, uint64_t bytes);

/* The stream's free ranges become clean: its frees have passed. */
void global_complete_stream(struct global *global, uint32_t stream);

/* Gives clean chunks back while more than `keep_bytes` are held. The first failure. */
enum hipmm_status global_release_idle(struct global *global, uint64_t keep_bytes);

/* Gives back host memory of records that are not in use, and of the map of addresses where nothing is allocated. */
void global_trim_records(struct global *global);

/* Free bytes that other streams than `stream` hold back because their handles may be gone. */
uint64_t global_unfenced_bytes(const struct global *global, uint32_t stream);

uint64_t global_free_bytes(const struct global *global);
uint64_t global_largest_free(const struct global *global);

/* The stream has waited for another: what that freed is as if freed on it now. The call is one on that stream. */
static inline void global_note_wait(struct global *global, uint32_t stream)
{
  if (global->streams.record == RECORD_ON_FREE) stream_note_free(&global->streams, stream);
}

#endif
