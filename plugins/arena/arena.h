/* SPDX-License-Identifier: MIT */
/* arena.h: what the resource is made of, and how its parts share the work: order.c knows which work may still use
 * which memory, take.c finds some for an allocation, serve.c is the ops, look.c and dump.c tell. Locks are taken in
 * this order: the global one, then one of a local arena's, never two of those. */
#ifndef HIPMM_ARENA_ARENA_H
#define HIPMM_ARENA_ARENA_H

#include "../common/biased_lock.h"
#include "../common/stream_set.h"
#include "global.h"
#include "local.h"

#include <stdatomic.h>

enum {
  ARENA_MOST_LOCALS = MAX_STREAMS,
  ARENA_SMALL_BYTES = 1 << 20,      /* larger allocations are the global arena's */
  ARENA_SUPERBLOCK_BYTES = 1 << 20, /* the least */
};

struct arena {
  const struct hipmm_services *services;
  uint64_t serial; /* never given twice */
  struct thread_watch threads;
  struct local *locals; /* by number; [0] is none */
  uint32_t n_locals;
  struct biased_lock lock; /* the global one */
  struct global global;
  uint32_t *first_local; /* by stream: a list through next_of_stream; of STREAM_CLEAN those that wait for a stream */
  struct stream_set seen, waited; /* for order.c, between two steps */
  enum hipmm_status refusal;      /* the upstream's last */
  uint64_t collections;           /* times that all superblocks were asked back since there was no room */
  bool dumps;
  atomic_bool is_dumping; /* a thread writes the dump file */
  const char *dump_file;
};

static inline struct local *arena_local(const struct arena *arena, uint32_t number)
{
  return &arena->locals[number];
}

/* An allocation on its way. */
struct arena_allocation {
  uint64_t bytes; /* rounded up */
  uint64_t alignment;
  uint64_t requested;
  hipStream_t handle;
  uint32_t stream;
};

/* ---- order.c. The global lock is held, and no other if nothing is said ---- */

/* The id of a stream that is used now. */
enum hipmm_status arena_enter_stream(struct arena *arena, hipStream_t handle, uint32_t *id_out);

/* The calling thread's arena for a stream; NULL when there is room for no more. */
struct local *arena_enter_local(struct arena *arena, hipStream_t handle, uint32_t stream);

/* All work up to now has passed. `user` as in streams_any_captured(). */
enum hipmm_status arena_synchronize(struct arena *arena, uint32_t user);

/* Pending blocks of an arena become ready: those whose streams' work has passed; all that its stream can wait for, in a
 * call on that stream. */
void arena_end_completed(struct arena *arena, struct local *local);
void arena_wait_for_pending(struct arena *arena, struct local *local);

/* Sees that it has unused ranges at hand. Its lock is held too. */
void arena_supply(struct arena *arena, struct local *local);

/* Gives wholly free superblocks back to the global arena, down to `keep_bytes`. */
void arena_return_idle(struct arena *arena, struct local *local, uint64_t keep_bytes);

/* Gives host memory of records that are not in use back. */
void arena_trim_records(struct arena *arena);

/* Synchronises, and asks every arena for its superblocks: all that is free and whole is clean after that. */
enum hipmm_status arena_collect(struct arena *arena, uint32_t user);

/* A block of another arena than `local`, live, once the device has been waited for. RANGE_NONE if none has one, or HIP
 * refuses. */
uint32_t arena_find_elsewhere(struct arena *arena, const struct local *local,
                              const struct arena_allocation *allocation);

/* The stream is valid still: its memory becomes anybody's, and it is forgotten. */
void arena_retire(struct arena *arena, hipStream_t handle);

/* What the thread_watch calls. No lock is held. Does not wait for an arena that is busy. */
void arena_thread_ended(struct thread_watch *watch, uint64_t thread);

/* ---- take.c. The global lock is held, and no other ---- */

/* A range for it, live. RANGE_NONE, and success, if there is none and nothing else went wrong. */
enum hipmm_status arena_find_memory(struct arena *arena, const struct arena_allocation *allocation, uint32_t *id_out);

/* ---- serve.c: the ops of the same names (hipmm/plugin.h); `self` is a struct arena ---- */

enum hipmm_status arena_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out);
enum hipmm_status arena_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream);
enum hipmm_status arena_find(void *self, const void *ptr, struct hipmm_block *block_out);
int arena_covers(void *self, const void *ptr);
enum hipmm_status arena_trim(void *self, size_t keep_bytes);
void arena_stream_retire(void *self, hipStream_t stream);
void arena_stream_retain(void *self, hipStream_t stream);

/* ---- look.c ---- */

enum arena_value {
  ARENA_RESERVED_BYTES,
  ARENA_PEAK_RESERVED_BYTES,
  ARENA_LIVE_BYTES,
  ARENA_LIVE_COUNT,
  ARENA_FREE_BYTES,
  ARENA_LARGEST_FREE_BYTES,
  ARENA_CHUNKS,
  ARENA_SUPERBLOCKS,
  ARENA_SUPERBLOCK_BYTES_HELD,
  ARENA_LOCALS,
  ARENA_COLLECTIONS,
  ARENA_STREAM_WAITS,
  ARENA_METADATA_BYTES,
  ARENA_N_VALUES
};

/* The lock is taken. */
enum hipmm_status arena_query(void *self, size_t index, int64_t *value_out);
enum hipmm_status arena_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                              void *closure);

/* The lock is held. */
int64_t arena_live_count(const struct arena *arena, int64_t *bytes_out);
uint64_t arena_free_bytes(const struct arena *arena);
uint64_t arena_largest_free(const struct arena *arena);

/* ---- dump.c ---- */

/* What an arena had when an allocation failed, as text. Zero: none. */
struct dump {
  const struct hipmm_services *services;
  char *text;
  size_t length, room;
};

/* Makes the text, after an allocation of `bytes` failed. The lock is held. */
void arena_dump(const struct arena *arena, uint64_t bytes, struct dump *dump);

/* Writes the text over the dump file, and frees it. No lock is held: the file may be slow. While another thread writes
 * a dump, this one is dropped. */
void arena_dump_write(struct arena *arena, struct dump *dump);

#endif
