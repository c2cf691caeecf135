/* SPDX-License-Identifier: MIT */
/* arena.h: the parts of the resource. allocate.c has the ops, find_memory.c finds memory for an allocation,
 * stream_state.c knows which work may still use which memory, visit.c and dump.c report. Lock order: the global lock
 * before the lock of a local arena; no thread holds the locks of two local arenas. */
#ifndef HIPMM_PLUGINS_ARENA_ARENA_H
#define HIPMM_PLUGINS_ARENA_ARENA_H

#include "../common/biased_lock.h"
#include "../common/stream_order.h"
#include "../heap/backing.h"
#include "local.h"

#include <stdatomic.h>

enum {
  ARENA_MOST_LOCALS = MAX_STREAMS,
  ARENA_SMALL_BYTES = 1 << 20,     /* larger allocations come from the heap, unless the options differ */
  ARENA_SUPERBLOCK_BYTES = 1 << 20 /* the smallest */
};

struct arena {
  const struct hipmm_services *services;
  uint64_t serial;      /* never given twice */
  uint64_t small_bytes; /* larger allocations come from the heap */
  struct thread_watch threads;
  struct local *locals; /* by number; [0] is none */
  uint32_t n_locals;
  struct biased_lock lock; /* the global one */
  struct heap heap;
  struct backing backing;           /* segments */
  int64_t large_count, large_bytes; /* of large allocations */
  uint32_t *first_local;     /* by stream: a list through next_of_stream; at STREAM_READY the arenas without a stream */
  struct stream_set pending; /* arenas with pending blocks, by number */
  struct stream_set holding; /* arenas that may have superblocks */
  struct stream_set seen, waited; /* of stream_state.c, between two steps */
  enum hipmm_status refusal;      /* why the upstream, or the host, refused the allocation */
  uint64_t collections;           /* times that every arena had to return its free superblocks */
  bool dumps;
  atomic_bool is_dumping; /* a thread writes the dump file */
  const char *dump_file;
};

static inline struct local *arena_local(const struct arena *arena, uint32_t number)
{
  return &arena->locals[number];
}

/* ---- stream_state.c. The caller holds the global lock, and no other lock unless stated ---- */

/* The id of the stream of this call. */
enum hipmm_status arena_enter_stream(struct arena *arena, hipmm_stream_t handle, uint32_t *id_out);

/* The calling thread's arena for a stream; NULL if there are ARENA_MOST_LOCALS. */
struct local *arena_enter_local(struct arena *arena, uint32_t stream);

/* Waits for the device: all frees so far have completed then. `user` as in streams_any_captured(). */
enum hipmm_status arena_synchronize(struct arena *arena, uint32_t user);

/* Makes pending blocks of an arena ready whose streams' work has completed; in a call on the arena's stream that `waits`,
 * blocks of all streams that this stream can wait for. */
void arena_settle(struct arena *arena, struct local *local, bool waits);

/* Adds a block that was freed on another stream than the arena's. The caller holds the arena's lock too. */
void arena_add_pending(struct arena *arena, struct local *local, uint32_t id);

/* Fills the list of unused records of an arena. The caller holds its lock too. */
void arena_supply(struct arena *arena, struct local *local);

/* Returns superblocks that are wholly free to the global arena, down to `keep_bytes`. */
void arena_return_idle(struct arena *arena, struct local *local, uint64_t keep_bytes);

/* Gives back the host memory of records that are not in use. */
void arena_trim_records(struct arena *arena);

/* Synchronizes, and has every arena return its free superblocks, which are ready for every stream then. Where an allocation
 * that the upstream refused with `refusal`, or a trim, may not wait, it does not synchronize. */
enum hipmm_status arena_collect(struct arena *arena, uint32_t user, enum hipmm_status refusal);

/* Allocates a block in the arena of any stream, after waiting for the device. BLOCK_NONE if no arena has one, or if HIP
 * refuses. */
uint32_t arena_find_elsewhere(struct arena *arena, const struct request *request);

/* Forgets a stream, which is still valid: its memory is ready for every stream then. */
void arena_retire(struct arena *arena, hipmm_stream_t handle);

/* The callback of the thread_watch. The caller holds no lock. It does not wait for the global lock. */
void arena_thread_ended(struct thread_watch *watch, uint64_t thread);

/* ---- find_memory.c. The caller holds the global lock and no other ---- */

/* A live block for the request. BLOCK_NONE and success if there is no memory and nothing else went wrong. */
enum hipmm_status arena_find_memory(struct arena *arena, const struct request *request, uint32_t *id_out);

/* ---- allocate.c: the ops of the same names (hipmm/plugin.h); `self` is a struct arena ---- */

enum hipmm_status arena_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status arena_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
enum hipmm_status arena_find(void *self, const void *ptr, struct hipmm_block *block_out);
enum hipmm_status arena_locate(void *self, const void *ptr, struct hipmm_location *location_out);
int arena_covers(void *self, const void *ptr);
enum hipmm_status arena_trim(void *self, size_t keep_bytes);
void arena_stream_retire(void *self, hipmm_stream_t stream);
void arena_stream_retain(void *self, hipmm_stream_t stream);

/* ---- visit.c ---- */

enum arena_value {
  ARENA_RESERVED_BYTES,
  ARENA_PEAK_RESERVED_BYTES,
  ARENA_LIVE_BYTES,
  ARENA_LIVE_COUNT,
  ARENA_FREE_BYTES,
  ARENA_LARGEST_FREE_BYTES,
  ARENA_FRAGMENTED_BYTES,
  ARENA_CHUNKS,
  ARENA_SUPERBLOCKS,
  ARENA_SUPERBLOCK_BYTES_HELD,
  ARENA_LOCALS,
  ARENA_COLLECTIONS,
  ARENA_STREAM_WAITS,
  ARENA_METADATA_BYTES,
  ARENA_N_VALUES
};

/* Take the global lock. */
enum hipmm_status arena_query(void *self, size_t index, int64_t *value_out);
enum hipmm_status arena_perform(void *self, size_t index, int64_t *values_out);
enum hipmm_status arena_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                              void *closure);

/* The caller holds the global lock. */
int64_t arena_live_count(const struct arena *arena, int64_t *bytes_out);
uint64_t arena_free_bytes(const struct arena *arena);
uint64_t arena_largest_free(const struct arena *arena);

/* ---- dump.c ---- */

/* The state of an arena when an allocation failed, as text. Zeroed: none. */
struct dump {
  const struct hipmm_services *services;
  char *text;
  size_t length, room;
};

/* Makes the text after an allocation of `bytes` failed. The caller holds the global lock. */
void arena_dump(const struct arena *arena, uint64_t bytes, struct dump *dump);

/* Overwrites the dump file with the text and frees the text. The caller holds no lock: the file may be slow. While
 * another thread writes a dump, this dump is dropped. */
void arena_dump_write(struct arena *arena, struct dump *dump);

#endif
