/* SPDX-License-Identifier: MIT */
/* range.h: what `arena` knows of memory. A range is a range or a block. Ranges are what the global arena deals in: a
 * chunk of the upstream is divided into them without a gap. A range is free, live (a large allocation), or lent to a
 * local arena as a superblock, whose memory is divided into blocks in the same way. All this is in host memory of its
 * own; device memory is never touched.
 *
 * Invariant: following `after` from the first range of a chunk, or of a superblock, visits its bytes once, in the order
 * of addresses. The first range stays the first: of two that merge the lower one remains. */
#ifndef HIPMM_PLUGINS_ARENA_RANGE_H
#define HIPMM_PLUGINS_ARENA_RANGE_H

#include "../common/address_map.h"
#include "../common/host_array.h"

enum { RANGE_NONE = 0, RANGE_UNIT_BITS = 8 /* of HIPMM_ALIGNMENT */ };

enum range_state {
  RANGE_UNUSED,
  RANGE_SPARE,      /* not in use: at hand in a local arena */
  RANGE_FREE,       /* a range: in an tlsf of the global arena */
  RANGE_SUPERBLOCK, /* a range: a superblock */
  RANGE_LIVE,       /* allocated: a range of the global arena, or a block */
  RANGE_READY,      /* a block: in the tlsf of its arena */
  RANGE_QUICK,      /* a block: in a quick list of its arena */
  RANGE_PENDING,    /* a block: freed on another stream than its arena's */
};

/* Who looks at a range without a lock looks at start, arena, state and requested; those change atomically. */
struct range {
  uint64_t start; /* address */
  uint64_t bytes; /* a multiple of HIPMM_ALIGNMENT, not 0 */
  union {
    uint64_t requested; /* live: as the caller asked for */
    uint32_t first;     /* lent: the superblock's first block */
  };
  union {
    hipStream_t handle; /* live: that it was allocated for */
    uint64_t epoch;     /* free or pending: that of the last free that it holds (../streams.h) */
  };
  uint32_t before, after;  /* neighbours */
  uint32_t next, previous; /* in a list */
  uint32_t arena;          /* whose it is, or to whom it is lent; 0: the global arena's */
  uint32_t superblock;     /* of a block: the range that it lies in */
  uint16_t stream;         /* free or pending: on which; STREAM_CLEAN: no work uses it any more */
  uint8_t state;
};

_Static_assert(sizeof(struct range) <= 64, "a range fits in a cache line");

/* All ranges, and the way from an address to the range of the allocation that starts there. */
struct ranges {
  const struct hipmm_services *services;
  struct range *items;   /* in `records` */
  uint32_t unused;       /* list, to use again, through `next` */
  uint32_t count;        /* used since all behind them were given back, 0 included */
  uint32_t most;         /* that there can be */
  uint32_t next_trimmed; /* ranges from here on may be unused and in no list */
  struct host_array records;
  struct address_map starts;
};

/* False when host memory is short; ranges_close is owed all the same. */
bool ranges_open(struct ranges *ranges, const struct hipmm_services *services);
void ranges_close(struct ranges *ranges);

/* A range that nobody uses; RANGE_NONE when there are no more. Both under the global arena's lock. */
uint32_t range_new(struct ranges *ranges);
void range_discard(struct ranges *ranges, uint32_t id);

/* Whether there are no more: range_new() fails until a range is dropped. Under the same lock. */
bool ranges_are_exhausted(const struct ranges *ranges);

/* Gives back the host memory of ranges that are not in use. Under the same lock. */
void ranges_trim(struct ranges *ranges);

/* Host memory of the records, without the map of addresses. Under the same lock. */
uint64_t ranges_metadata_bytes(const struct ranges *ranges);

static inline struct range *range_of(const struct ranges *ranges, uint32_t id)
{
  return &ranges->items[id];
}

static inline void range_set_state(struct range *range, enum range_state state)
{
  __atomic_store_n(&range->state, (uint8_t)state, __ATOMIC_RELEASE);
}

static inline enum range_state range_state(const struct range *range)
{
  return __atomic_load_n(&range->state, __ATOMIC_ACQUIRE);
}

static inline uint32_t range_arena(const struct range *range)
{
  return __atomic_load_n(&range->arena, __ATOMIC_RELAXED);
}

/* Makes it a range of `arena`, in no list. The map is told of blocks here, of ranges when they become live. */
static inline void range_set_extent(struct range *range, uint64_t start, uint64_t bytes, uint32_t arena)
{
  __atomic_store_n(&range->start, start, __ATOMIC_RELAXED);
  __atomic_store_n(&range->arena, arena, __ATOMIC_RELAXED);
  range->bytes = bytes;
}

static inline void range_set_live(struct range *range, uint64_t requested, hipStream_t handle)
{
  __atomic_store_n(&range->requested, requested, __ATOMIC_RELAXED);
  range->handle = handle;
  range_set_state(range, RANGE_LIVE);
}

/* What may be the range of the allocation that starts at `ptr`; RANGE_NONE if there is none. Needs no lock. */
static inline uint32_t range_at(const struct ranges *ranges, const void *ptr)
{
  return (uintptr_t)ptr % HIPMM_ALIGNMENT ? RANGE_NONE : address_map_get(&ranges->starts, (uintptr_t)ptr);
}

static inline bool range_is_live_at(const struct range *range, const void *ptr)
{
  return range_state(range) == RANGE_LIVE && __atomic_load_n(&range->start, __ATOMIC_RELAXED) == (uintptr_t)ptr;
}

/* Cuts `range` after `bytes`: the new range `rest` has what is behind. Neither is put in a list. */
static inline void range_split(const struct ranges *ranges, uint32_t id, uint64_t bytes, uint32_t rest)
{
  struct range *range = range_of(ranges, id), *behind = range_of(ranges, rest);
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

/* Adds what `second` stands for, which comes next, to `first`. The caller drops `second`. */
static inline void range_merge(const struct ranges *ranges, uint32_t first, uint32_t second)
{
  struct range *lower = range_of(ranges, first), *upper = range_of(ranges, second);
  lower->bytes += upper->bytes;
  lower->after = upper->after;
  if (lower->after) range_of(ranges, lower->after)->before = first;
}

#endif
