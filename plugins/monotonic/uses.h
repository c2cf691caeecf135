/* SPDX-License-Identifier: MIT */
/* uses.h: the streams that a stream must wait for before it uses memory: those that freed blocks before the last
 * rewind, and those that added chunks. Each stream waits once after a rewind, however much it allocates. The caller
 * holds the lock. */
#ifndef HIPMM_PLUGINS_MONOTONIC_USES_H
#define HIPMM_PLUGINS_MONOTONIC_USES_H

#include "../common/stream_order.h"

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

#endif
