/* SPDX-License-Identifier: MIT */
/* types.h: the structs of a pool over those of its arena (../arena/arena.h) and heap (../heap/types.h), with what always holds
 * between them.
 *
 * The pool's lock (pool.arena.lock) guards everything that no comment excepts. A function that is given the pool is called with
 * the lock held, unless its own comment says otherwise. Without the lock:
 *
 *   cache                        its owner inside its gate, or with the lock; others with the lock, and with the gate shut
 *   cache.bytes                  any thread reads it
 *   is_abandoned                 of a cache and of the caches: a thread that ends sets it
 *   wants_heap, has_heap         the cache's owner only */
#ifndef HIPMM_PLUGINS_POOL_TYPES_H
#define HIPMM_PLUGINS_POOL_TYPES_H

#include "../arena/arena.h"
#include "../common/content_file.h"
#include "options.h"

#include <pthread.h>

/* ---- What a thread has of its own (cache.h) ---- */

/* A cache holds blocks of at most CACHE_BLOCK_BYTES: the price of a search matters to small blocks, and small blocks prevent
 * few merges. */
enum { CACHE_BLOCK_BYTES = 4096, CACHE_BINS = CACHE_BLOCK_BYTES / HIPMM_ALIGNMENT + 1 };

/* Aligned, so that threads share no cache line. */
struct cache {
  _Alignas(64) struct gate gate;
  uint32_t stream; /* its id; STREAM_READY: the cache is not in use */
  hipmm_stream_t handle;
  uint64_t thread;           /* the owner; 0: none */
  bool is_abandoned;         /* the owner has ended, and set this without a lock */
  uint64_t bytes;            /* in all bins */
  uint64_t most_bytes;       /* limit of `bytes` */
  int64_t requested;         /* bytes allocated from it less bytes freed to it, as requested */
  int64_t live;              /* the same in blocks */
  uint32_t next_bin;         /* a counter: the next bin to flush */
  uint16_t next;             /* in a list of the index: 1 + number of the cache; 0: the last */
  bool wants_heap;           /* the owner has waited for the pool's lock too often (cache_weigh()) */
  bool has_heap;             /* the owner allocates from its heap. Both are the owner's alone */
  uint32_t n_waits;          /* weighed */
  uint32_t bins[CACHE_BINS]; /* by size in units of HIPMM_ALIGNMENT: the first block, which was freed last */
};

enum { MAX_CACHES = 4096, USED_CHAINS = 2 * MAX_CACHES, UNUSED_CHAINS = 256 };

/* A cache without an owner, for holders of the pool's lock: blocks that a thread's cache had too much of, and that a cache of
 * another thread for the stream can have at once (the depots of Bonwick and Adams 2001). */
static const uint64_t DEPOT_THREAD = UINT64_MAX;

/* Lists of caches through `next`: those in use by thread and stream, the others by thread. Until a thread ends, a cache of
 * it that is not in use is for that thread alone, which may remember it. */
struct cache_index {
  uint16_t used[USED_CHAINS], unused[UNUSED_CHAINS];
  uint32_t in_depots[MAX_STREAMS]; /* by stream: the bins that its depots may have blocks in, as bits */
};

/* The caches of a pool. */
struct caches {
  const struct hipmm_services *services;
  uint64_t serial; /* of the pool; never used again */
  struct cache *items;
  struct cache_index *index; /* finds items by thread and stream */
  uint32_t count;            /* items ever used */
  bool any_is_abandoned;     /* of any item */
  bool any_is_depot;         /* or was one */
};

/* The sums over all caches of a pool. The pool's lock is held. */
struct cache_totals {
  uint64_t bytes;
  int64_t requested, live;
};

/* ---- The content of a suspended pool (suspend.c) ---- */

/* A range of addresses whose content is saved: a part of a span, or allocated blocks, and gaps of less than a granule between
 * them, so that no granule in it is uncommitted. Its content begins at `offset` of what is saved. */
struct swapped_out_range {
  uint64_t start, bytes, offset;
};

/* The saved content, in the order of the ranges. It is pinned and copied in pieces, each by one thread. Empty where
 * nothing is saved, but for the memory of SAVE_TO_PINNED_KEPT. */
struct swapped_out {
  struct swapped_out_range *ranges;
  uint64_t n_ranges, n_pieces;
  uint64_t bytes;
  char *content;
  bool *is_pinned;          /* of each piece of the memory */
  uint64_t n_mapped;        /* pieces, of which the content may need fewer */
  struct content_file file; /* of SAVE_TO_FILE, which has the content instead */
};

/* ---- Spans (span.c) ---- */

struct spans {
  struct key_tree_node *by_start; /* major: a span's address, minor: its bytes, multiples of the granule */
  uint32_t n;
  uint64_t range_bytes; /* of the ranges that are for spans */
};

/* ---- The pool (allocate.h) ---- */

/* Its heap and lock are those of an arena. A thread that has waited for the lock too often gets a local arena. */
struct pool {
  struct arena arena; /* first */
  struct caches caches;
  uint64_t most_local_bytes; /* of a block in a local arena */
  uint64_t whole_bytes;      /* blocks from this size on have a chunk or segment of their own; UINT64_MAX: none have */
  uint64_t whole_unit;       /* of the sizes of such blocks */
  struct spans spans;
  struct swapped_out swapped_out; /* while the pool is suspended */
  uint32_t save_to;               /* enum save_to */
};

#endif
