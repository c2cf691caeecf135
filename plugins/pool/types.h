/* SPDX-License-Identifier: MIT */
/* types.h: the structs of a pool, from the record of a block up to the pool itself, with what always holds between them.
 *
 * The pool's lock (pool.lock) guards everything that no comment excepts. A function that is given the pool, its heap or its
 * backing is called with the lock held, unless its own comment says otherwise. Without the lock:
 *
 *   block.state, block.start     any thread reads them, and claims a live block by its state (block.h)
 *   blocks.large, blocks.leaves  any thread reads their entries
 *   cache                        its owner inside its gate, or with the lock; others with the lock, and with the gate shut
 *   cache.bytes                  any thread reads it
 *   is_abandoned                 of a cache and of the caches: a thread that ends sets it
 *   wants_heap, has_heap         the cache's owner only
 *   thread_heaps.arena           any thread reads it; it is set once, under `making`
 *
 * `making` and the locks of the heaps of threads are taken before the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_TYPES_H
#define HIPMM_PLUGINS_POOL_TYPES_H

#include "../arena/options.h"
#include "../common/biased_lock.h"
#include "../common/host_array.h"
#include "../common/stream_order.h"
#include "options.h"

#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* ---- Blocks (block.h) ----
 *
 * Every byte of the pool lies in exactly one block, which is live or free. The records are in host memory: the pool never
 * touches device memory.
 *
 * Invariant: following `after` from the first block of a region visits its bytes once, in address order, and
 * blocks[b].start + blocks[b].bytes == blocks[after].start at each step. */

enum {
  BLOCK_NONE = 0,    /* ids start at 1 */
  UNIT_BITS = 8,     /* of HIPMM_ALIGNMENT */
  LEAF_BITS = 32,    /* a leaf of the map is for 4 GiB of address space */
  ADDRESS_BITS = 47, /* of user space on the systems that have HIP */
  CELL_BITS = 21
};

enum block_state {
  BLOCK_UNUSED, /* the record is not in use */
  BLOCK_FREE,
  BLOCK_LIVE,
  BLOCK_CACHED, /* freed, and in a cache (cache.h): live to the heap */
  BLOCK_ON_LOAN /* held by the heaps of threads (thread_heaps.c): live to the heap */
};

struct block {
  _Alignas(64) uint64_t start; /* address, a multiple of HIPMM_ALIGNMENT */
  uint64_t bytes;              /* a multiple of HIPMM_ALIGNMENT, not 0 */
  union {
    uint64_t requested; /* live: the bytes that the caller asked for */
    uint64_t epoch;     /* free: of the last free that is part of it, on its stream (stream_order.h) */
  };
  uint32_t before, after;  /* neighbours in the region */
  uint32_t next, previous; /* free: its neighbours in the free_index */
  uint32_t uncommitted;    /* free: the uncommitted granules in it (backing.h); live: 0 */
  uint16_t stream;         /* free: the stream whose work may still use it; STREAM_READY: none */
  uint16_t place;          /* free: its list in the free_index */
  uint8_t state;
  bool is_exported;      /* live: other processes may use its memory (visit_chunks); free: false */
  bool is_for_small;     /* in a segment for small blocks */
  hipmm_stream_t handle; /* live: of the stream of its allocation, for introspection */
};

_Static_assert(sizeof(struct block) == 64, "a block is a cache line");

/* All records, and two maps from an address to the block that starts there. Small blocks may start anywhere. Blocks as
 * large as a cell have a map of their own, with one entry for each cell: a program then uses few cache lines of it. */
struct blocks {
  struct block *items;       /* the memory of `records` */
  uint32_t *large;           /* by cell of the address space, from address 0 on */
  uint32_t *_Atomic *leaves; /* one for 1 << LEAF_BITS of addresses; NULL where the pool has none */
  uint64_t granule_bytes;    /* a power of two (backing.h); 0: segments */
  uint32_t unused;           /* list of unused records, through `next` */
  uint32_t holes;            /* list of runs of unused records whose memory was released; used after `unused` */
  uint32_t count;            /* records in front of the first that was never used, or was released; 0 included */
  uint32_t most;             /* limit of `count` */
  uint32_t live;             /* blocks in state BLOCK_LIVE */
  uint32_t n_leaves;         /* leaves in use */
  const struct hipmm_services *services;
  struct host_array records;
};

/* ---- Free blocks (free_index.h) ---- */

/* What a free block consists of. Requests use the kinds in this order: so whole granules become idle, which can be released
 * or moved. In a pool of segments a block is KIND_BUSY in a segment for small blocks, and otherwise KIND_WHOLE. */
enum kind {
  KIND_BUSY,    /* no whole granule: other blocks are in its granules anyway */
  KIND_WHOLE,   /* whole granules, all committed */
  KIND_PARTIAL, /* uncommitted granules, and maybe committed ones */
  KINDS
};

enum {
  EXACT_LISTS = 256,       /* of one size each, in units of HIPMM_ALIGNMENT: below 64 KiB */
  LISTS_PER_DOUBLING = 16, /* of the sizes from there on */
  LIST_STEPS = 32,         /* adding to a list of several sizes, and searching it, takes no more */
  FREE_LISTS = EXACT_LISTS + 32 * LISTS_PER_DOUBLING, /* of a kind */
  KIND_WORDS = FREE_LISTS / 64
};

/* The lists of all kinds one after another: a block's place is the number of its list. */
struct free_index {
  _Alignas(64) uint64_t words;        /* which of `bits` are not zero: 0 when there is no block */
  uint64_t bits[KINDS * KIND_WORDS];  /* which lists have blocks */
  uint32_t lists[KINDS * FREE_LISTS]; /* the first block of each, roughly the smallest */
};

_Static_assert(64 >= KINDS * KIND_WORDS, "one word tells which of `bits` are not zero");

/* ---- The heap (heap.h) ---- */

struct request {
  uint64_t bytes; /* rounded up to HIPMM_ALIGNMENT */
  uint64_t alignment;
  uint64_t requested; /* as the caller said */
  uint32_t stream;
};

struct heap {
  struct free_index *free;  /* one for each stream */
  uint32_t next_poll;       /* the stream where the next heap_poll() begins */
  uint64_t live_bytes;      /* of live and cached blocks */
  uint64_t requested_bytes; /* of live blocks, as requested */
  uint64_t bytes;           /* of all regions, uncommitted parts included */
  bool is_low_on_memory;    /* when new memory was last needed (slack.c); in a pool of segments always */
  uint64_t small_bytes;     /* of segments: smaller blocks have segments of their own. 0: the memory is mapped */
  uint64_t common_start, common_bytes; /* of segments: the one for blocks of all sizes, which the pool began with */
  uint64_t most_rest; /* of segments: what may be left of an idle one that a large block takes (slack.c) */
  /* The number of uncommitted granules that have a byte of [start, end), which lies in a free block with some. Set by
   * granules.c, with its first argument. */
  uint32_t (*uncommitted_in)(const void *chunks, uint64_t start, uint64_t end);
  const void *chunks;
  struct streams streams;
  struct stream_set holders;    /* streams with free blocks, except STREAM_READY */
  struct stream_set with_event; /* those of them that may be waited for (stream_order.h) */
  struct blocks blocks;
};

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
  bool wants_heap;           /* the owner has waited for the pool's lock too often (thread_heaps.c) */
  bool has_heap;             /* the owner allocates from its heap. Both are the owner's alone */
  uint32_t n_waits;          /* weighed */
  uint32_t bins[CACHE_BINS]; /* by size in units of HIPMM_ALIGNMENT: the first block, which was freed last */
};

enum { MAX_CACHES = 4096, USED_CHAINS = 2 * MAX_CACHES, UNUSED_CHAINS = 256 };

/* Lists of caches through `next`: those in use by thread and stream, the others by thread. Until a thread ends, a cache of
 * it that is not in use is for that thread alone, which may remember it. */
struct cache_index {
  uint16_t used[USED_CHAINS], unused[UNUSED_CHAINS];
};

/* The caches of a pool. */
struct caches {
  const struct hipmm_services *services;
  uint64_t serial; /* of the pool; never used again */
  struct cache *items;
  struct cache_index *index; /* finds items by thread and stream */
  uint32_t count;            /* items ever used */
  bool any_is_abandoned;     /* of any item */
};

/* The sums over all caches of a pool. The pool's lock is held. */
struct cache_totals {
  uint64_t bytes;
  int64_t requested, live;
};

struct thread_heaps {
  _Atomic(void *) arena;           /* NULL: none yet */
  struct hipmm_resource upstream;  /* of the arena: the pool */
  struct arena_options options;    /* of the arena, which may keep a pointer to them */
  pthread_mutex_t making;          /* held while the arena is made */
  uint64_t loan_bytes, loan_count; /* live blocks of the heap that the arena holds. Under the pool's lock */
};

/* ---- The memory behind the addresses (chunks.h, backing.h) ----
 *
 * Invariants: a committed granule lies in exactly one current mapping, and no two mappings overlap. An uncommitted granule
 * lies wholly in one free block, and block.uncommitted counts them. */

/* The physical memory held from the upstream. */
struct held {
  uint64_t bytes, peak_bytes;
  uint64_t maximum_bytes; /* limit of `bytes` */
  uint64_t least_bytes;   /* the least that the upstream can provide; the others are multiples */
};

enum { CHUNK_NONE = 0 /* ids start at 1 */ };

/* One record for each granule of addresses, numbered from 1 through all ranges: the mapping that begins there. */
struct mapping {
  uint32_t chunk;  /* CHUNK_NONE: no mapping begins here */
  uint32_t next;   /* mapping of the chunk; 0: the last */
  uint32_t stream; /* of an alias mapping: the stream that last used these addresses; 0: its work has completed */
  uint64_t epoch;  /* of that work (stream_order.h) */
};

/* A reserved range of addresses. */
struct range {
  uint64_t start, bytes;
  uint32_t first; /* number of its first granule */
  struct mapping *mappings;
  uint64_t *committed; /* a bit for each granule: it lies in a current mapping */
  uint64_t *mapped;    /* a bit for each granule: it lies in any mapping */
};

enum { MAX_RANGES = 32 };

struct addresses {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  uint64_t granule_bytes; /* a power of two */
  uint32_t n_ranges;
  struct range ranges[MAX_RANGES];
};

struct chunk {
  void *handle;      /* NULL: its memory was given back, see is_away */
  uint32_t granules; /* its size; 0: the record is not in use */
  uint32_t current;  /* number of the current mapping; 0: none */
  uint32_t mappings; /* the list of all its mappings */
  uint32_t next;     /* in the list of unmapped chunks, or of unused records */
  bool is_away;      /* suspended: its mappings are in these records alone, and without a handle it has no memory */
  bool is_exported;  /* as of the last suspend: a block of it is exported, so it kept its memory */
};

struct chunks {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const struct hipmm_mapping *ops;
  bool may_alias;  /* a chunk may have several mappings */
  bool may_export; /* another process may get a chunk: each chunk is one granule, and no large block shares one */
  struct held held;
  bool is_suspended;   /* nothing may be created or mapped (suspend.c) */
  uint64_t away_bytes; /* of the memory held: given back, and needed to resume */
  struct chunk *items;
  uint32_t count;    /* records ever used, 0 included */
  uint32_t unused;   /* list of records to use again */
  uint32_t unmapped; /* list of unmapped chunks: neither mapping nor destroying them succeeded */
  struct addresses addresses;
};

enum { SLACK_RELEASES = 16 };

struct slack {
  const struct hipmm_services *services;
  const struct held *held;
  bool moves;            /* idle memory can be mapped where it is needed */
  bool is_of_device;     /* the memory is the device's */
  uint64_t wanted_bytes; /* the option */
  uint64_t peak_bytes;   /* the most that was to be live at once since idle memory was last released */
  uint64_t device_bytes; /* free on the device when it was last asked */
  uint64_t held_bytes;   /* held at that time */
  unsigned n_uses;       /* of that answer */
  /* Segments that were released so far: their number, the sizes of the last ones, and the bytes added again in such sizes. */
  unsigned n_released;
  uint64_t released[SLACK_RELEASES], vain_bytes;
};

struct granules {
  struct slack slack;
  uint64_t moves;   /* chunks mapped at other addresses so far */
  uint64_t returns; /* alias mappings that became current again, without a driver call */
  struct chunks chunks;
};

struct segment {
  void *ptr;
  uint64_t bytes;
  bool is_for_small; /* blocks of less than heap->small_bytes */
};

struct segments {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct segment *items;
  uint32_t count;
  struct held held;
  uint64_t small_bytes; /* the part of it that is for small blocks */
  struct slack slack;
};

/* Where the memory for an allocation comes from. */
enum source_of_memory {
  MEMORY_FROM_SLACK,  /* new memory, although other memory is idle, as far as the slack allows */
  MEMORY_FROM_MOVE,   /* held memory that is mapped elsewhere */
  MEMORY_FROM_GROWTH, /* the same, and new memory if that is not enough */
  MEMORY_FROM_FILL    /* the same, and chunks may be large */
};

struct backing_ops {
  bool moves; /* idle memory can be mapped where it is needed: new memory and idle memory together serve a request */

  /* Whether the request can succeed at all, if all idle memory is used for it. Fails with the status that allocate() would
   * fail with. NULL where one call of the upstream tells. */
  enum hipmm_status (*check_available)(void *self, const struct heap *heap, const struct request *request);

  /* Allocates a block. HIPMM_E_OUT_OF_MEMORY when there is not enough, HIPMM_E_LIMIT when the maximum forbids it. */
  enum hipmm_status (*allocate)(void *self, struct heap *heap, const struct request *request,
                                enum source_of_memory source_of_memory, uint32_t *id_out);

  /* Releases idle memory of ready blocks to the upstream while more than `keep_bytes` are held. */
  enum hipmm_status (*release_idle)(void *self, struct heap *heap, uint64_t keep_bytes);

  /* The largest request that the held memory could serve, once all work has completed. */
  uint64_t (*available_bytes)(const void *self, const struct heap *heap);

  void (*close)(void *self);
};

struct backing {
  const struct backing_ops *ops; /* NULL: it could not be opened */
  void *self;                    /* of the ops */
  struct held *held;
  struct granules granules;
  struct segments segments;
};

/* ---- The content of a suspended pool (suspend.c) ---- */

/* A range of addresses whose content is saved: allocated blocks, and gaps of less than a granule between them, so
 * that no granule in it is uncommitted. Its content begins at `offset` of what is saved. */
struct swapped_out_range {
  uint64_t start, bytes, offset;
};

/* The saved content, in the order of the ranges. It is pinned and copied in pieces, each by one thread. Empty where
 * nothing is saved. */
struct swapped_out {
  struct swapped_out_range *ranges;
  char *content;
  bool *is_pinned; /* of each piece */
  uint64_t n_ranges, n_pieces;
  uint64_t bytes;
};

/* ---- The pool (allocate.h) ---- */

struct pool {
  const struct hipmm_services *services;
  struct caches caches;
  struct biased_lock lock; /* of heap and backing, and of the list of caches */
  struct heap heap;
  struct backing backing;
  uint64_t whole_bytes; /* blocks from this size on have chunks of their own, of this size; UINT64_MAX: none have */
  struct thread_watch threads;
  struct thread_heaps heaps;
  struct swapped_out swapped_out; /* while the pool is suspended */
};

#endif
