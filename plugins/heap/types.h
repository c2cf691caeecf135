/* SPDX-License-Identifier: MIT */
/* types.h: the structs of the heap that pools and arenas have their memory in, from the record of a block up to the memory
 * behind the addresses, with what always holds between them.
 *
 * The lock of the pool or arena guards everything that no comment excepts. A function that is given a heap or a backing is
 * called with the lock held, unless its own comment says otherwise. Without the lock:
 *
 *   block.state, block.start     any thread reads them, and claims a live block by its state (block.h)
 *   blocks.large, blocks.map     any thread reads their entries */
#ifndef HIPMM_PLUGINS_HEAP_TYPES_H
#define HIPMM_PLUGINS_HEAP_TYPES_H

#include "../../core/base/key_tree.h"
#include "../common/address_map.h"
#include "../common/host_array.h"
#include "../common/stream_order.h"

#include <hipmm/plugin.h>
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
  BLOCK_NONE = 0, /* ids start at 1 */
  UNIT_BITS = 8,  /* of HIPMM_ALIGNMENT */
  CELL_BITS = 21
};

enum block_state {
  BLOCK_UNUSED, /* the record is not in use */
  BLOCK_FREE,
  BLOCK_LIVE,
  BLOCK_CACHED,  /* claimed by a thread that frees it, or in a cache (../pool/cache.h): live to the heap */
  BLOCK_ON_LOAN, /* a superblock (../arena/local.h): live to the heap */

  /* Of a local arena, which has free and live blocks too: the heap knows their superblock only. */
  BLOCK_RESERVED, /* a record without memory, for the arena's next block */
  BLOCK_QUICK,    /* in a quick list */
  BLOCK_PENDING   /* freed on another stream than the arena's */
};

/* What other processes have of a live block. */
enum block_export {
  BLOCK_NOT_EXPORTED,
  BLOCK_EXPORTED,  /* descriptors, at least */
  BLOCK_HAS_HANDLE /* ../pool/share.c: there is an export with its address, which is its own */
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
  uint8_t exported;  /* enum block_export; free: BLOCK_NOT_EXPORTED */
  bool is_for_small; /* in a segment for small blocks */
  bool is_own;       /* it is a region, and all of one chunk */
  uint32_t arena;    /* number of the local arena that has it; 0: none */
  union {
    hipmm_stream_t handle; /* live: of the stream of its allocation, for introspection */
    uint32_t first;        /* a superblock: its first block */
  };
};

_Static_assert(sizeof(struct block) == 64, "a block is a cache line");

/* All records, and two maps from an address to the block that starts there. Small blocks may start anywhere. Blocks as
 * large as a cell have a map of their own, with one entry for each cell: a program then uses few cache lines of it. */
struct blocks {
  struct block *items;    /* the memory of `records` */
  uint32_t *large;        /* by cell of the address space, from address 0 on */
  struct address_map map; /* of small blocks */
  uint64_t granule_bytes; /* a power of two (backing.h); 0: segments */
  uint32_t unused;        /* list of unused records, through `next` */
  uint32_t holes;         /* list of runs of unused records whose memory was released; used after `unused` */
  uint32_t count;         /* records in front of the first that was never used, or was released; 0 included */
  uint32_t most;          /* limit of `count` */
  uint32_t live;          /* blocks in state BLOCK_LIVE */
  const struct hipmm_services *services;
  struct host_array records;
};

/* ---- Free blocks (free_index.h) ---- */

/* What a free block consists of. Requests use the kinds in this order: so whole granules become idle, which can be released
 * or moved. In a pool of segments a block is KIND_PARTIAL if it is a whole segment, otherwise KIND_BUSY in
 * a segment for small blocks, and KIND_WHOLE in another. */
enum kind {
  KIND_BUSY,    /* no whole granule: other blocks are in its granules anyway */
  KIND_WHOLE,   /* whole granules, all committed */
  KIND_PARTIAL, /* uncommitted granules, and maybe committed ones */
  KIND_OWN, /* a chunk of its own (own.c): for other requests than the kinds before, and neither divided nor merged */
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
  bool is_own;   /* for a block with a chunk of its own */
  bool is_loan;  /* for a superblock, which no thread may claim */
  bool is_local; /* for a local arena first (../pool/allocate.c) */
};

struct heap {
  struct free_index *free;  /* one for each stream */
  uint32_t next_poll;       /* the stream where the next heap_poll() begins */
  uint64_t live_bytes;      /* of live and cached blocks, and what spans have committed (../pool/span.c) */
  uint64_t requested_bytes; /* of live blocks, as requested, and the same */
  uint64_t bytes;           /* of all regions, uncommitted parts included */
  bool is_low_on_memory;    /* when new memory was last needed (slack.c); in a pool of segments always */
  uint64_t small_bytes;     /* of segments: smaller blocks have segments of their own. 0: the memory is mapped */
  uint64_t common_start, common_bytes; /* of segments: the one for blocks of all sizes, which the pool began with */
  uint64_t most_rest; /* of segments: what may be left of an idle one that a large block takes (slack.c) */
  bool cuts_evenly;   /* an idle segment that is nearly a multiple of the request may be cut, too */
  const char *remedy; /* of fragmentation, for the one warning (fragments.c); NULL: no warning, or no other */
  /* The number of uncommitted granules that have a byte of [start, end), which lies in a free block with some. Set by
   * granules.c, with its first argument. */
  uint32_t (*uncommitted_in)(const void *chunks, uint64_t start, uint64_t end);
  const void *chunks;
  struct streams streams;
  struct stream_set holders;    /* streams with free blocks, except STREAM_READY */
  struct stream_set with_event; /* those of them that may be waited for (stream_order.h) */
  struct blocks blocks;
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
  bool is_own;         /* each block there is a region, and has a chunk of its own (own.c); all else is uncommitted */
  bool is_of_spans;    /* it has no blocks, but spans (../pool/span.c) */
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
  bool is_own;       /* it was created for other processes, if the upstream can do that for one chunk */
  bool is_exported;  /* as of the last suspend: a block of it is exported, so it kept its memory */
};

struct chunks {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const struct hipmm_mapping *ops;
  bool may_alias;  /* a chunk may have several mappings */
  bool can_export; /* chunks can be created for other processes */
  bool may_export; /* another process may get a chunk: each large block has one of its own */
  struct held held;
  uint64_t most, live; /* the most chunks that there should be at a time, 0: any number; and those that there are */
  bool is_suspended;   /* nothing may be created or mapped (../pool/suspend.c) */
  uint64_t away_bytes; /* of the memory held: given back, and needed to resume */
  struct chunk *items;
  uint32_t count;    /* records ever used, 0 included */
  uint32_t unused;   /* list of records to use again */
  uint32_t unmapped; /* list of unmapped chunks: of spans, or neither mapping nor destroying them succeeded */
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
  struct key_tree_node by_start; /* first; major: its address, minor: its bytes */
  bool is_for_small;             /* blocks of less than heap->small_bytes, when it was added */
  bool is_own;                   /* one block, which the driver's handle of the segment is for */
  uint32_t next_unused;
};

struct segments {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct segment *items;
  uint32_t unused, n_used; /* list of unused items, and items ever used; [0] is none */
  uint32_t count;          /* of `by_start` */
  struct key_tree_node *by_start;
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

  /* In [start, end), which lies in a free block: the first address that is committed, or uncommitted; `end` if there is none. NULL
   * where all is committed. */
  uint64_t (*first)(const void *self, uint64_t start, uint64_t end, bool committed);

  void (*close)(void *self);
};

struct backing {
  const struct backing_ops *ops; /* NULL: it could not be opened */
  void *self;                    /* of the ops */
  struct held *held;
  struct granules granules;
  struct segments segments;
};

#endif
