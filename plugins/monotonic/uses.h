/* SPDX-License-Identifier: MIT */
/* uses.h: what a stream must wait for before it uses memory that is given out: the work of all streams that freed in it
 * before it was given out anew, and of those that had chunks of the upstream. Each stream waits once, however much it
 * allocates. The caller holds the lock. */
#ifndef HIPMM_MONOTONIC_USES_H
#define HIPMM_MONOTONIC_USES_H

#include "../common/stream_set.h"

struct uses {
  const struct hipmm_services *services;
  struct streams streams;
  struct stream_set freed;   /* have freed since the last rewind */
  struct stream_set earlier; /* may have work on memory that is given out: up to their epoch */
  struct stream_set ordered; /* come after all of that */
  uint64_t *epochs;          /* by stream, of those in `earlier` */
};

/* False when host memory is short; uses_close is owed all the same. */
bool uses_open(struct uses *uses, const struct hipmm_services *services, enum record record);
void uses_close(struct uses *uses);

/* The id of a stream that is used now. */
enum hipmm_status uses_enter(struct uses *uses, hipStream_t handle, uint32_t *id_out);

/* Orders the stream, which is used in this call, after all that has to come first. */
enum hipmm_status uses_order(struct uses *uses, uint32_t stream);

/* Another stream must wait for what was done for this one, in this call. */
void uses_note_chunk(struct uses *uses, uint32_t stream);

void uses_note_free(struct uses *uses, uint32_t stream);

/* All memory is given out anew. */
void uses_rewind(struct uses *uses);

/* All work up to now has passed. `user` as in streams_any_captured(). */
enum hipmm_status uses_synchronize(struct uses *uses, uint32_t user);

uint64_t uses_metadata_bytes(const struct uses *uses);

/* The stream is valid still, and forgotten. */
void uses_retire(struct uses *uses, hipStream_t handle);

/* The stream lasts until it is retired. */
void uses_retain(struct uses *uses, hipStream_t handle);

#endif
