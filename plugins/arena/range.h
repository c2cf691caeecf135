/* SPDX-License-Identifier: MIT */
/* range.h: what `arena` knows of memory. A piece is a range or a block. Ranges are what the global arena deals in: a
 * chunk of the upstream is divided into them without a gap. A range is free, live (a large allocation), or lent to a
 * local arena as a superblock, whose memory is divided into blocks in the same way. All this is in host memory of its
 * own; device memory is never touched.
 *
 * Invariant: following `after` from the first piece of a chunk, or of a superblock, visits its bytes once, in the order
 * of addresses. The first piece stays the first: of two that merge the lower one remains. */
#ifndef HIPMM_PLUGINS_ARENA_RANGE_H
#define HIPMM_PLUGINS_ARENA_RANGE_H

#include "../common/address_map.h"
#include "../common/host_array.h"

enum { PIECE_NONE = 0, PIECE_UNIT_BITS = 8 /* of HIPMM_ALIGNMENT */ };

enum piece_state {
  PIECE_UNUSED,
  PIECE_SPARE,   /* not in use: at hand in a local arena */
  PIECE_FREE,    /* a range: in an index of the global arena */
  PIECE_LENT,    /* a range: a superblock */
  PIECE_LIVE,    /* allocated: a range of the global arena, or a block */
  PIECE_READY,   /* a block: in the index of its arena */
  PIECE_QUICK,   /* a block: in a quick list of its arena */
  PIECE_PENDING, /* a block: freed on another stream than its arena's */
};

/* Who looks at a piece without a lock looks at start, arena, state and requested; those change atomically. */
struct piece {
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

_Static_assert(sizeof(struct piece) <= 64, "a piece fits in a cache line");

/* All pieces, and the way from an address to the piece of the allocation that starts there. */
struct pieces {
  const struct hipmm_services *services;
  struct piece *items;   /* in `records` */
  uint32_t unused;       /* list, to use again, through `next` */
  uint32_t count;        /* used since all behind them were given back, 0 included */
  uint32_t most;         /* that there can be */
  uint32_t next_trimmed; /* pieces from here on may be unused and in no list */
  struct host_array records;
  struct address_map starts;
};

/* False when host memory is short; pieces_close is owed all the same. */
bool pieces_open(struct pieces *pieces, const struct hipmm_services *services);
void pieces_close(struct pieces *pieces);

/* A piece that nobody uses; PIECE_NONE when there are no more. Both under the global arena's lock. */
uint32_t piece_take(struct pieces *pieces);
void piece_drop(struct pieces *pieces, uint32_t id);

/* Whether there are no more: piece_take() fails until a piece is dropped. Under the same lock. */
bool pieces_are_exhausted(const struct pieces *pieces);

/* Gives back the host memory of pieces that are not in use. Under the same lock. */
void pieces_trim(struct pieces *pieces);

/* Host memory of the records, without the map of addresses. Under the same lock. */
uint64_t pieces_metadata_bytes(const struct pieces *pieces);

static inline struct piece *piece_of(const struct pieces *pieces, uint32_t id)
{
  return &pieces->items[id];
}

static inline void piece_set_state(struct piece *piece, enum piece_state state)
{
  __atomic_store_n(&piece->state, (uint8_t)state, __ATOMIC_RELEASE);
}

static inline enum piece_state piece_state(const struct piece *piece)
{
  return __atomic_load_n(&piece->state, __ATOMIC_ACQUIRE);
}

static inline uint32_t piece_arena(const struct piece *piece)
{
  return __atomic_load_n(&piece->arena, __ATOMIC_RELAXED);
}

/* Makes it a piece of `arena`, in no list. The map is told of blocks here, of ranges when they become live. */
static inline void piece_set_place(struct piece *piece, uint64_t start, uint64_t bytes, uint32_t arena)
{
  __atomic_store_n(&piece->start, start, __ATOMIC_RELAXED);
  __atomic_store_n(&piece->arena, arena, __ATOMIC_RELAXED);
  piece->bytes = bytes;
}

static inline void piece_set_live(struct piece *piece, uint64_t requested, hipStream_t handle)
{
  __atomic_store_n(&piece->requested, requested, __ATOMIC_RELAXED);
  piece->handle = handle;
  piece_set_state(piece, PIECE_LIVE);
}

/* What may be the piece of the allocation that starts at `ptr`; PIECE_NONE if there is none. Needs no lock. */
static inline uint32_t piece_at(const struct pieces *pieces, const void *ptr)
{
  return (uintptr_t)ptr % HIPMM_ALIGNMENT ? PIECE_NONE : address_map_get(&pieces->starts, (uintptr_t)ptr);
}

static inline bool piece_is_live_at(const struct piece *piece, const void *ptr)
{
  return piece_state(piece) == PIECE_LIVE && __atomic_load_n(&piece->start, __ATOMIC_RELAXED) == (uintptr_t)ptr;
}

/* Cuts `piece` after `bytes`: the new piece `rest` has what is behind. Neither is put in a list. */
static inline void piece_cut(const struct pieces *pieces, uint32_t id, uint64_t bytes, uint32_t rest)
{
  struct piece *piece = piece_of(pieces, id), *behind = piece_of(pieces, rest);
  piece_set_place(behind, piece->start + bytes, piece->bytes - bytes, piece->arena);
  piece->bytes = bytes;
  behind->superblock = piece->superblock;
  behind->stream = piece->stream;
  behind->epoch = piece->epoch;
  behind->before = id;
  behind->after = piece->after;
  if (behind->after) piece_of(pieces, behind->after)->before = rest;
  piece->after = rest;
}

/* Adds what `second` stands for, which comes next, to `first`. The caller drops `second`. */
static inline void piece_join(const struct pieces *pieces, uint32_t first, uint32_t second)
{
  struct piece *lower = piece_of(pieces, first), *upper = piece_of(pieces, second);
  lower->bytes += upper->bytes;
  lower->after = upper->after;
  if (lower->after) piece_of(pieces, lower->after)->before = first;
}

#endif
