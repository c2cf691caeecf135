/* SPDX-License-Identifier: MIT */
/* chunks.h: ranges of addresses and the physical pieces that lie under them. A piece is a whole number of granules, the
 * runtime's smallest; the driver charges for pieces, not for bytes. Knows nothing of blocks. The caller holds the
 * pool's lock.
 *
 * A piece lies in one place, or nowhere. Where the upstream lets memory be mapped at several addresses, a piece that is
 * taken stays mapped where it lay: putting it there again costs nothing, and taking it need not wait for work that used
 * it, as long as later work is ordered after that. So a program that does the same over and over moves pieces between
 * the same places without a call of the driver.
 *
 * Invariant: a granule with memory (`backed`) lies under one piece that lies there; no two places overlap. */
#ifndef HIPMM_PLUGINS_POOL_CHUNKS_H
#define HIPMM_PLUGINS_POOL_CHUNKS_H

#include <hipmm/plugin.h>

#include <stdbool.h>

enum { PIECE_NONE = 0 /* ids start at 1 */ };

struct piece {
  void *handle;
  uint32_t granules; /* its size; 0: the record is not in use */
  uint32_t home;     /* the place where it lies; 0: nowhere */
  uint32_t places;   /* all where it is mapped, a list */
  uint32_t next;     /* in the list of spares, or of unused records */
};

/* Per granule of addresses, numbered from 1 through all ranges: the piece that is mapped from there on. */
struct place {
  uint32_t piece;  /* PIECE_NONE: none */
  uint32_t next;   /* of the piece's places; 0: the last */
  uint32_t stream; /* whose work used these addresses last, when the piece was taken away; 0: that had passed */
  uint64_t epoch;  /* of that work (streams.h) */
};

/* A reserved range of addresses. */
struct range {
  uint64_t start, bytes;
  uint32_t first; /* number of its first granule */
  struct place *places;
  uint64_t *backed; /* per granule a bit: there is memory */
  uint64_t *mapped; /* per granule a bit: a piece is mapped there, whether or not it lies there */
};

enum { MAX_RANGES = 32 };

struct pieces {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const struct hipmm_mapping *mapping;
  uint64_t granule_bytes;     /* a power of two */
  bool may_alias;             /* a piece stays mapped where it lay */
  bool is_slow;               /* mapping takes its time */
  uint64_t bytes, peak_bytes; /* physical memory held */
  uint64_t maximum_bytes;     /* never held more */
  struct piece *items;
  uint32_t count;  /* records ever used, 0 included */
  uint32_t unused; /* records to use again */
  uint32_t spares; /* pieces that lie nowhere, since they could neither be put anywhere nor given back */
  uint32_t n_ranges;
  struct range ranges[MAX_RANGES];
};

/* Why the upstream's mapping is not for who was not told to use it; NULL if it is, or there is none. */
const char *pieces_doubt(const struct hipmm_resource *upstream);

/* Asks the upstream for its mapping. HIPMM_E_NOT_SUPPORTED when it has none, HIPMM_E_LIMIT when the maximum is below a
 * granule. */
enum hipmm_status pieces_open(struct pieces *pieces, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, uint64_t maximum_bytes);

/* Gives everything back. No work uses it. */
void pieces_close(struct pieces *pieces);

/* Reserves another range of at least `bytes`. */
enum hipmm_status pieces_reserve(struct pieces *pieces, uint64_t bytes, const struct range **range_out);

/* The address of the first, and of the last, granule in [start, end) that has memory, or that has none, as asked; `end`
 * if there is none. Both are multiples of the granule in one range. */
uint64_t pieces_first(const struct pieces *pieces, uint64_t start, uint64_t end, bool backed);
uint64_t pieces_last(const struct pieces *pieces, uint64_t start, uint64_t end, bool backed);

/* How many granules in [start, end), which is as above, have no memory. */
uint32_t pieces_vacant(const struct pieces *pieces, uint64_t start, uint64_t end);

/* The piece that is mapped at the granule, and the address where it begins; PIECE_NONE if there is none. */
uint32_t pieces_at(const struct pieces *pieces, uint64_t address, uint64_t *begin_out);

/* Places by number. */
const struct place *pieces_place(const struct pieces *pieces, uint32_t place);

/* The last place in [start, end) where a piece is mapped that does not lie there; 0 if there is none. And unmapping it:
 * no work may use these addresses any more. */
uint32_t pieces_stale(const struct pieces *pieces, uint64_t start, uint64_t end);
enum hipmm_status pieces_unmap(struct pieces *pieces, uint32_t place);

/* A place of the piece where it does not lie, after `place`, or the first for 0; 0 at the end. */
uint32_t piece_next_stale(const struct pieces *pieces, uint32_t id, uint32_t place);

/* Whether so many bytes more are to be had at all, before they are taken piece by piece: HIPMM_E_LIMIT if not under the
 * maximum, the upstream's status if not from it. */
enum hipmm_status pieces_expect(struct pieces *pieces, uint64_t bytes);

/* A new piece that lies nowhere, of what there is room for, at most `granules`; HIPMM_E_LIMIT when the maximum is
 * reached.
 */
enum hipmm_status piece_create(struct pieces *pieces, uint64_t granules, uint32_t *id_out);

/* Gives the memory of a piece that lies nowhere back. No work uses it. Failing that, it is kept as a spare. */
enum hipmm_status piece_destroy(struct pieces *pieces, uint32_t id);

/* Puts a piece that lies nowhere at `address`, where nothing else is mapped. */
enum hipmm_status piece_put(struct pieces *pieces, uint32_t id, uint64_t address);

/* Takes it from where it lies, where work of the stream up to the epoch may use it yet; 0: none does, as must be unless
 * pieces may alias. */
enum hipmm_status piece_take(struct pieces *pieces, uint32_t id, uint32_t stream, uint64_t epoch);

/* Spares. take_spare finds one of at most `granules`; PIECE_NONE if there is none. Work may still use one through the
 * places that it has left (idle_take_spare). */
void piece_keep_spare(struct pieces *pieces, uint32_t id);
uint32_t piece_take_spare(struct pieces *pieces, uint64_t granules);

static inline struct piece *piece_of(const struct pieces *pieces, uint32_t id)
{
  return &pieces->items[id];
}

static inline uint64_t piece_bytes(const struct pieces *pieces, uint32_t id)
{
  return piece_of(pieces, id)->granules * pieces->granule_bytes;
}

/* Whether the piece is mapped from there on. */
bool pieces_is_place(const struct pieces *pieces, uint32_t id, uint64_t address);

/* Where a piece lies that lies somewhere. */
uint64_t piece_address(const struct pieces *pieces, uint32_t id);

static inline uint64_t pieces_round_up(const struct pieces *pieces, uint64_t bytes)
{
  return (bytes + pieces->granule_bytes - 1) & ~(pieces->granule_bytes - 1);
}

static inline uint64_t pieces_round_down(const struct pieces *pieces, uint64_t bytes)
{
  return bytes & ~(pieces->granule_bytes - 1);
}

#endif
