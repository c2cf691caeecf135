/* SPDX-License-Identifier: MIT */
/* range.h: records of ranges of device memory, and the map from an address to its range. A range of the global arena is live
 * (a large allocation), or a superblock of a local arena. The ranges of a local arena, called blocks, divide a superblock
 * without a hole. Records are in host memory of their own; device memory is never touched.
 *
 * Invariant: the list `after` from the first block of a superblock has each byte once, in the order of addresses. When two
 * blocks merge, the record of the lower one stays, so the first block stays the first. */
#ifndef HIPMM_PLUGINS_ARENA_RANGE_H
#define HIPMM_PLUGINS_ARENA_RANGE_H

#include "../common/address_map.h"
#include "../common/host_array.h"

enum { RANGE_NONE = 0, RANGE_UNIT_BITS = 8 /* of HIPMM_ALIGNMENT */ };

enum range_state {
  RANGE_UNUSED,
  RANGE_RESERVED,   /* a record that was handed out and has no memory yet, in the list of a local arena */
  RANGE_SUPERBLOCK, /* of the global arena: a local arena has it */
  RANGE_LIVE,       /* allocated: a large allocation, or a block */
  RANGE_CLAIMED,    /* a thread frees it, or has left it in the messages of its arena */
  RANGE_READY,      /* a block: in the free index of its arena */
  RANGE_QUICK,      /* a block: in a quick list of its arena */
  RANGE_PENDING,    /* a block: freed on another stream than its arena's */
};

/* Readers without a lock read `start`, `arena`, `state` and `requested` only; these change atomically. */
struct arena_range {
  uint64_t start; /* address */
  uint64_t bytes; /* a multiple of HIPMM_ALIGNMENT, not 0 */
  union {
    uint64_t requested; /* live: as the caller asked */
    uint32_t first;     /* superblock: its first block */
  };
  union {
    hipmm_stream_t handle; /* live: of the stream of its allocation */
    uint64_t epoch;        /* pending: of the free (stream_order.h) */
  };
  uint32_t before, after;  /* neighbours */
  uint32_t next, previous; /* in a list */
  uint32_t arena;          /* number of the local arena that has it; 0: the global arena */
  union {
    uint32_t superblock; /* of a block: the superblock around it */
    uint32_t block;      /* of the global arena: the heap's block (../heap/heap.h) */
  };
  uint16_t stream; /* pending: where it was freed */
  uint8_t state;
};

_Static_assert(sizeof(struct arena_range) <= 64, "a record fits in a cache line");

/* All records of an arena, and the map from the address of an allocation to its record. */
struct arena_ranges {
  const struct hipmm_services *services;
  struct arena_range *items; /* in `records` */
  uint32_t unused;           /* list of unused records, through `next` */
  uint32_t count;            /* records used so far, since the last trim cut the end off; [0] is none */
  uint32_t most;             /* records that there can be */
  uint32_t next_trimmed;     /* records from here on may be unused and in no list */
  struct host_array records;
  struct address_map starts;
};

/* False when host memory is short; ranges_close() must be called all the same. */
bool ranges_open(struct arena_ranges *ranges, const struct hipmm_services *services);
void ranges_close(struct arena_ranges *ranges);

/* A new record; RANGE_NONE when there are no more. The caller of both holds the global lock. */
uint32_t range_new(struct arena_ranges *ranges);
void range_discard(struct arena_ranges *ranges, uint32_t id);

/* Whether range_new() fails until a record is discarded. The caller holds the global lock. */
bool ranges_are_exhausted(const struct arena_ranges *ranges);

/* Gives back the host memory of unused records. The caller holds the global lock. */
void ranges_trim(struct arena_ranges *ranges);

/* Host memory of the records, without the address map. The caller holds the global lock. */
uint64_t ranges_metadata_bytes(const struct arena_ranges *ranges);

static inline struct arena_range *range_of(const struct arena_ranges *ranges, uint32_t id)
{
  return &ranges->items[id];
}

static inline void range_set_state(struct arena_range *range, enum range_state state)
{
  __atomic_store_n(&range->state, (uint8_t)state, __ATOMIC_RELEASE);
}

static inline enum range_state range_state(const struct arena_range *range)
{
  return __atomic_load_n(&range->state, __ATOMIC_ACQUIRE);
}

static inline uint32_t range_arena(const struct arena_range *range)
{
  return __atomic_load_n(&range->arena, __ATOMIC_RELAXED);
}

/* Sets where a range is and which arena has it. The caller enters a block in the address map now, and a range of the
 * global arena when it becomes live. */
static inline void range_set_extent(struct arena_range *range, uint64_t start, uint64_t bytes, uint32_t arena)
{
  __atomic_store_n(&range->start, start, __ATOMIC_RELAXED);
  __atomic_store_n(&range->arena, arena, __ATOMIC_RELAXED);
  range->bytes = bytes;
}

static inline void range_set_live(struct arena_range *range, uint64_t requested, hipmm_stream_t handle)
{
  __atomic_store_n(&range->requested, requested, __ATOMIC_RELAXED);
  range->handle = handle;
  range_set_state(range, RANGE_LIVE);
}

/* The range that may be the allocation at `ptr`; RANGE_NONE if there is none. Needs no lock. */
static inline uint32_t range_at(const struct arena_ranges *ranges, const void *ptr)
{
  return (uintptr_t)ptr % HIPMM_ALIGNMENT ? RANGE_NONE : address_map_get(&ranges->starts, (uintptr_t)ptr);
}

static inline bool range_is_live_at(const struct arena_range *range, const void *ptr)
{
  return range_state(range) == RANGE_LIVE && __atomic_load_n(&range->start, __ATOMIC_RELAXED) == (uintptr_t)ptr;
}

/* Claims a live range in order to free it: the record is the caller's then. False if the range is not live at `ptr`, or another
 * thread has claimed it. */
static inline bool range_claim(struct arena_range *range, const void *ptr)
{
  uint8_t live = RANGE_LIVE;
  if (!range_is_live_at(range, ptr) ||
      !__atomic_compare_exchange_n(&range->state, &live, RANGE_CLAIMED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  if (__builtin_expect(__atomic_load_n(&range->start, __ATOMIC_RELAXED) == (uintptr_t)ptr, 1)) return true;
  range_set_state(range, RANGE_LIVE); /* freed meanwhile, and allocated anew elsewhere */
  return false;
}

/* Allocated, as far as its arena knows. */
static inline bool range_is_taken(const struct arena_range *range)
{
  enum range_state state = range_state(range);
  return state == RANGE_LIVE || state == RANGE_CLAIMED;
}

/* Splits a range after `bytes`: `rest`, a new record, gets what follows. Neither is put in a list. */
static inline void range_split(const struct arena_ranges *ranges, uint32_t id, uint64_t bytes, uint32_t rest)
{
  struct arena_range *range = range_of(ranges, id), *behind = range_of(ranges, rest);
  range_set_extent(behind, range->start + bytes, range->bytes - bytes, range->arena);
  range->bytes = bytes;
  behind->superblock = range->superblock;
  behind->stream = range->stream;
  behind->epoch = range->epoch;
  behind->before = id;
  behind->after = range->after;
  if (behind->after) range_of(ranges, behind->after)->before = rest;
  range->after = rest;
}

/* Adds the memory of `second`, which follows `first`, to `first`. The caller discards `second`. */
static inline void range_merge(const struct arena_ranges *ranges, uint32_t first, uint32_t second)
{
  struct arena_range *lower = range_of(ranges, first), *upper = range_of(ranges, second);
  lower->bytes += upper->bytes;
  lower->after = upper->after;
  if (lower->after) range_of(ranges, lower->after)->before = first;
}

/* ---- An index of free ranges by size (tlsf.c) ----
 *
 * Two-level segregated fit (Masmano, Ripoll, Crespo, Real 2004). The sizes in one list differ by less than 1/32. Adding,
 * removing and finding take constant time. The caller holds the lock of the arena that has the ranges. */

enum {
  TLSF_COLUMN_BITS = 5,
  TLSF_COLUMNS = 1 << TLSF_COLUMN_BITS,
  TLSF_ROWS = 36 /* up to 2^40 units */
};

struct tlsf {
  uint64_t rows; /* bits: which rows have ranges */
  uint32_t columns[TLSF_ROWS];
  uint32_t heads[TLSF_ROWS][TLSF_COLUMNS];
  uint64_t bytes; /* in all */
};

void tlsf_add(struct tlsf *tlsf, const struct arena_ranges *ranges, uint32_t id);
void tlsf_remove(struct tlsf *tlsf, const struct arena_ranges *ranges, uint32_t id);

/* A range of at least `bytes`, close to it if there is one; RANGE_NONE if there is none. */
uint32_t tlsf_fit(const struct tlsf *tlsf, const struct arena_ranges *ranges, uint64_t bytes);

/* Bytes of the largest range. Visits all ranges in the list of the largest sizes. */
uint64_t tlsf_largest(const struct tlsf *tlsf, const struct arena_ranges *ranges);

#endif
