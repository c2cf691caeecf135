/* SPDX-License-Identifier: MIT */
/* arena.h: a heap that threads share, with its memory and its lock, and local arenas of threads in it. This is all of the type
 * `arena`, and the part of a pool below its caches (../pool/types.h).
 *
 * at_hand.h has the calls that a local arena serves, allocate.c the ops that both types have; find_memory.c finds memory for a
 * local arena; stream_state.c knows which work may still use which memory; visit.c reports. The rest of the type is in arena.c
 * and dump.c. Lock order: the global lock before the lock of a local arena; no thread holds the locks of two local arenas. */
#ifndef HIPMM_PLUGINS_ARENA_ARENA_H
#define HIPMM_PLUGINS_ARENA_ARENA_H

#include "../common/biased_lock.h"
#include "../common/refusals.h"
#include "../common/stream_order.h"
#include "../heap/backing.h"
#include "local.h"

#include <stdatomic.h>

enum { ARENA_MOST_LOCALS = MAX_STREAMS };

/* Of superblocks. A large local arena gets larger ones, so that less is lost at their ends. */
enum { ARENA_SUPERBLOCK_BYTES = 1 << 20, ARENA_MOST_SUPERBLOCK_BYTES = 16 << 20 };

struct arena;

/* What a type has beside its arena. Called with the global lock, unless stated. */
struct arena_type {
  bool is_merging; /* before memory is added, a stream waits for all others, if idle memory then serves it */
  bool (*flush)(struct arena *arena); /* frees what caches hold; false if there is nothing. NULL: no caches */
  void (*end_stream)(struct arena *arena, uint32_t stream); /* caches free what they hold for it. NULL: no caches */

  /* Refuses a pointer that is no live block. Without the lock. */
  enum hipmm_status (*refuse)(struct arena *arena, const void *ptr);

  /* A value of the type's table, which has so many. */
  int64_t (*value)(struct arena *arena, size_t index);
  size_t n_values;
};

/* The local arenas of an arena. */
struct locals {
  /* The first of each stream's list through next_of_stream; at STREAM_READY the arenas without a stream. */
  uint32_t first[MAX_STREAMS];
  struct stream_set pending;             /* arenas with pending blocks, by number */
  struct stream_set holding;             /* arenas that may have superblocks */
  struct stream_set seen, waited;        /* of stream_state.c, between two steps */
  struct local items[ARENA_MOST_LOCALS]; /* by number; [0] is none. Committed on touch, as all here */
};

struct arena {
  const struct hipmm_services *services;
  const struct arena_type *type;
  uint64_t serial; /* never given twice */
  struct thread_watch threads;
  struct biased_lock lock; /* the global one, of all below */
  struct heap heap;
  struct backing backing;
  struct locals *locals; /* NULL: none yet. What has a local arena's number may read it without the lock */
  uint32_t n_locals;     /* items ever used, [0] included */
  uint64_t superblock_bytes, most_superblock_bytes; /* the smallest and the largest, but for a larger block */
  enum hipmm_status refusal;                        /* why the upstream, or the host, refused the allocation */
  uint64_t collections;                             /* times that every arena had to return its free superblocks */
};

/* Begins with an arena whose backing, type and services the caller sets. False when host memory is short; arena_close() must be
 * called all the same. */
bool arena_open(struct arena *arena, enum record record);
void arena_close(struct arena *arena);

/* Takes so many bytes from the upstream, which are ready on the default stream at first, and after a wait on every stream. `option`
 * is the name of the option for it. */
enum hipmm_status arena_fill(struct arena *arena, uint64_t bytes, const char *option);

/* Warns if blocks are still allocated. */
void arena_warn_of_live(const struct arena *arena, int64_t count, int64_t bytes);

static inline struct local *arena_local(const struct arena *arena, uint32_t number)
{
  return &arena->locals->items[number];
}

/* ---- stream_state.c. The caller holds the global lock, and no other lock unless stated ---- */

/* The id of the stream of this call. */
enum hipmm_status arena_enter_stream(struct arena *arena, hipmm_stream_t handle, uint32_t *id_out);

/* The calling thread's arena for a stream; NULL if there are ARENA_MOST_LOCALS, or host memory is short. */
struct local *arena_enter_local(struct arena *arena, uint32_t stream);

/* Waits for the device: all frees so far have completed then. `user` as in streams_any_captured(). */
enum hipmm_status arena_synchronize(struct arena *arena, uint32_t user);

/* Makes pending blocks of an arena ready whose streams' work has completed; in a call on the arena's stream that `waits`,
 * blocks of all streams that this stream can wait for. */
void arena_settle(struct arena *arena, struct local *local, bool waits);

/* Adds a claimed block that was freed on another stream than the arena's. The caller holds the arena's lock too. */
void arena_add_pending(struct arena *arena, struct local *local, uint32_t id);

/* Gives back the host memory of records that are not in use. */
void arena_trim_records(struct arena *arena);

/* Fills the list of unused records of an arena. The caller holds its lock too. */
void arena_supply(struct arena *arena, struct local *local);

/* Gives a superblock of the heap to a local arena, with the arena's lock; false, and nothing done, when records are short. */
bool arena_add_superblock(struct arena *arena, struct local *local, uint32_t superblock);

/* Returns superblocks that are wholly free to the heap, down to `keep_bytes`. */
void arena_return_idle(struct arena *arena, struct local *local, uint64_t keep_bytes);

/* Every arena returns its free superblocks, as frees on its stream. */
void arena_return_all(struct arena *arena);

/* Synchronizes, and has every arena return its free superblocks, which are ready for every stream then. Where an allocation
 * that the upstream refused with `refusal`, or a trim, may not wait, it asks which work has completed instead. */
enum hipmm_status arena_collect(struct arena *arena, uint32_t user, enum hipmm_status refusal);

/* Allocates a block in the arena of any stream, after waiting for the device. BLOCK_NONE if no arena has one, or if HIP
 * refuses. */
uint32_t arena_find_elsewhere(struct arena *arena, const struct request *request);

/* A thread ends. The caller holds the lock, or `is_locked` says that it does not: then free superblocks stay in the thread's arenas
 * until arena_collect(). */
void arena_end_thread(struct arena *arena, uint64_t thread, bool is_locked);

/* The ops of the same names, which take the lock; `self` is a struct arena, or what begins with one. */
void arena_stream_retire(void *self, hipmm_stream_t stream);
void arena_stream_retain(void *self, hipmm_stream_t stream);

/* ---- miss.c. The caller holds the global lock ---- */

enum stage {
  STAGE_HELD, /* only free memory */
  STAGE_NEW,  /* and new memory */
  STAGE_LAST  /* and new memory in place of idle memory, after a wait for the device */
};

/* Makes the attempts up to `last` until one has found a block. BLOCK_NONE and success if there is no memory, which `refusal` tells. */
uint32_t arena_attempt(struct arena *arena, const struct request *request, enum stage last,
                       enum hipmm_status *status_out);

/* ---- find_memory.c. The caller holds the global lock and no other ---- */

/* A live block in the calling thread's arena for the stream, for a request without a special alignment. BLOCK_NONE and success if
 * that needs a wait for the device, or records, or there is no arena, and nothing else went wrong: arena_find_shared() is next. */
enum hipmm_status arena_find_small(struct arena *arena, const struct request *request, uint32_t *id_out);

/* A live block of the heap, which has none at hand (arena_find_ready()); before it fails, of any arena. Likewise. */
enum hipmm_status arena_find_shared(struct arena *arena, const struct request *request, uint32_t *id_out);

/* Where a large block goes decides how well the rest packs, and beside the work on so much memory a few event queries cost
 * little: with several streams a request of ARENA_LARGE_BYTES looks for completed work first, unless there is slack. */
enum { ARENA_LARGE_BYTES = 1 << 20 };

/* A free block of the request's stream, or of none: a search. BLOCK_NONE if there is none. */
static inline uint32_t arena_find_ready(struct arena *arena, const struct request *request)
{
  struct heap *heap = &arena->heap;
  bool looks_first = heap->streams.active > 1 && request->bytes >= ARENA_LARGE_BYTES &&
                     (heap->is_low_on_memory || !arena->backing.ops->moves);
  if (__builtin_expect(looks_first, 0)) heap_poll(heap);
  return heap_allocate_ready(heap, request);
}

/* ---- allocate.c, beside at_hand.h. The caller holds no lock ---- */

/* The ops of the same names (hipmm/plugin.h); `self` is a struct arena, or what begins with one. */
enum hipmm_status arena_find(void *self, const void *ptr, struct hipmm_block *block_out);
enum hipmm_status arena_locate(void *self, const void *ptr, struct hipmm_location *location_out);
int arena_covers(void *self, const void *ptr);
enum hipmm_status arena_trim(void *self, size_t keep_bytes);

/* Claims a live block, so that no other thread can free it. */
static inline enum hipmm_status arena_claim(struct arena *arena, uint32_t id, const void *ptr, size_t bytes)
{
  struct block *block = block_of(&arena->heap.blocks, id);
  if (!block_claim(block)) return arena->type->refuse(arena, ptr);
  uint64_t requested = block->requested;          /* the claim makes the record this thread's */
  bool is_there = block->start == (uintptr_t)ptr; /* else it was freed meanwhile, and allocated anew elsewhere */
  if (__builtin_expect(is_there && (bytes == requested || !bytes), 1)) return HIPMM_OK;
  block_set_state(block, BLOCK_LIVE);
  return is_there ? refuse_size(arena->services, ptr, bytes, requested) : arena->type->refuse(arena, ptr);
}

/* ---- visit.c ---- */

/* The ops. Take the global lock. */
enum hipmm_status arena_query(void *self, size_t index, int64_t *value_out);
enum hipmm_status arena_perform(void *self, size_t index, int64_t *values_out);

/* Below, the caller holds the global lock. */

/* Shows all blocks, of a region after the other, each in the order of addresses. */
void arena_visit_blocks(const struct arena *arena, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                        void *closure);

/* Sums over the local arenas. */
struct locals_totals {
  int64_t live_count, live_bytes;      /* of live blocks, as requested */
  uint64_t bytes, free_bytes, largest; /* of superblocks; of what is free in them; of the largest free block there */
  uint32_t n_superblocks;
};
struct locals_totals arena_totals(const struct arena *arena);

/* Of all blocks: what is allocated, and free; the largest free block; host memory, without caches. */
int64_t arena_live_count(const struct arena *arena, int64_t *bytes_out);
uint64_t arena_free_bytes(const struct arena *arena);
uint64_t arena_largest_free(const struct arena *arena);
uint64_t arena_metadata_bytes(const struct arena *arena);

/* ---- The type `arena` (arena.c, dump.c) ---- */

struct arena_resource {
  struct arena arena; /* first */
  bool dumps;
  atomic_bool is_dumping; /* a thread writes the dump file */
  const char *dump_file;
};

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
void arena_dump_write(struct arena_resource *resource, struct dump *dump);

#endif
