/* SPDX-License-Identifier: MIT */
/* pieces.h: ranges of addresses and the physical pieces that lie under them. A piece is a whole number of granules, the
 * runtime's smallest; the driver charges for pieces, not for bytes. Knows nothing of blocks. The caller holds the pool's
 * lock. */
#ifndef HIPMM_POOL_PIECES_H
#define HIPMM_POOL_PIECES_H

#include <hipmm/plugin.h>

#include <stdbool.h>

struct piece {
  void *handle;
  uint32_t granules; /* its size; 0: no piece begins here */
};

/* A reserved range of addresses. */
struct range {
  uint64_t start, bytes;
  struct piece *pieces; /* per granule: the piece that begins there */
  uint64_t *backed;     /* per granule a bit: there is memory */
};

enum { MAX_RANGES = 32 };

struct pieces {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const struct hipmm_mapping *mapping;
  uint64_t granule_bytes; /* a power of two */
  struct range ranges[MAX_RANGES];
  uint32_t n_ranges;
  uint64_t bytes, peak_bytes; /* physical memory held */
  uint64_t maximum_bytes;     /* never held more */
  struct piece *spares;       /* that lie nowhere, since the driver would not have them */
  uint32_t n_spares;
};

/* Asks the upstream for its mapping. HIPMM_E_NOT_SUPPORTED when it has none, HIPMM_E_LIMIT when the maximum is below a
 * granule. */
enum hipmm_status pieces_open(struct pieces *pieces, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, uint64_t maximum_bytes);

/* Gives everything back. No work uses it. */
void pieces_close(struct pieces *pieces);

/* Reserves another range of at least `bytes`. */
enum hipmm_status pieces_reserve(struct pieces *pieces, uint64_t bytes, const struct range **range_out);

/* The address of the last granule in [start, end) that has memory, or that has none, as asked; `end` if there is none.
 * Both are multiples of the granule in one range. */
uint64_t pieces_last(const struct pieces *pieces, uint64_t start, uint64_t end, bool backed);

/* Where the piece under `address` begins, and its size in bytes. */
uint64_t pieces_begin(const struct pieces *pieces, uint64_t address, uint64_t *bytes_out);

/* Single pieces. create takes what there is room for, at most `granules`; HIPMM_E_LIMIT when the maximum is reached.
 * destroy and keep_spare take the piece over, whatever comes of it. take_spare gives one of at most `granules`. */
enum hipmm_status piece_create(struct pieces *pieces, uint64_t granules, struct piece *piece_out);
enum hipmm_status piece_destroy(struct pieces *pieces, struct piece piece);
enum hipmm_status piece_map(struct pieces *pieces, uint64_t address, struct piece piece);
enum hipmm_status piece_unmap(struct pieces *pieces, uint64_t address, struct piece *piece_out);
void piece_keep_spare(struct pieces *pieces, struct piece piece);
bool piece_take_spare(struct pieces *pieces, uint64_t granules, struct piece *piece_out);

static inline uint64_t pieces_round_up(const struct pieces *pieces, uint64_t bytes)
{
  return (bytes + pieces->granule_bytes - 1) & ~(pieces->granule_bytes - 1);
}

static inline uint64_t pieces_round_down(const struct pieces *pieces, uint64_t bytes)
{
  return bytes & ~(pieces->granule_bytes - 1);
}

#endif
