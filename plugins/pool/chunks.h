/* SPDX-License-Identifier: MIT */
/* chunks.h: ranges of addresses and the physical chunks that lie under them. A chunk is a whole number of granules, the
 * runtime's smallest; the driver charges for chunks, not for bytes. Knows nothing of blocks. The caller holds the
 * pool's lock.
 *
 * A chunk lies in one place, or nowhere. Where the upstream lets memory be mapped at several addresses, a chunk that is
 * taken stays mapped where it lay: putting it there again costs nothing, and taking it need not wait for work that used
 * it, as long as later work is ordered after that. So a program that does the same over and over moves chunks between
 * the same places without a call of the driver.
 *
 * Invariant: a granule with memory (`backed`) lies under one chunk that lies there; no two places overlap. */
#ifndef HIPMM_PLUGINS_POOL_CHUNKS_H
#define HIPMM_PLUGINS_POOL_CHUNKS_H

#include <hipmm/plugin.h>

#include <stdbool.h>

enum { CHUNK_NONE = 0 /* ids start at 1 */ };

struct chunk {
  void *handle;
  uint32_t granules; /* its size; 0: the record is not in use */
  uint32_t current;  /* the place where it lies; 0: nowhere */
  uint32_t mappings; /* all where it is mapped, a list */
  uint32_t next;     /* in the list of unmapped, or of unused records */
};

/* Per granule of addresses, numbered from 1 through all ranges: the chunk that is mapped from there on. */
struct mapping {
  uint32_t chunk;  /* CHUNK_NONE: none */
  uint32_t next;   /* of the chunk's places; 0: the last */
  uint32_t stream; /* whose work used these addresses last, when the chunk was taken away; 0: that had completed */
  uint64_t epoch;  /* of that work (streams.h) */
};

/* A reserved range of addresses. */
struct range {
  uint64_t start, bytes;
  uint32_t first; /* number of its first granule */
  struct mapping *mappings;
  uint64_t *committed; /* per granule a bit: there is memory */
  uint64_t *mapped;    /* per granule a bit: a chunk is mapped there, whether or not it lies there */
};

enum { MAX_RANGES = 32 };

struct chunks {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  const struct hipmm_mapping *ops;
  uint64_t granule_bytes;     /* a power of two */
  bool may_alias;             /* a chunk stays mapped where it lay */
  bool is_slow;               /* mapping takes its time */
  uint64_t bytes, peak_bytes; /* physical memory held */
  uint64_t maximum_bytes;     /* never held more */
  struct chunk *items;
  uint32_t count;    /* records ever used, 0 included */
  uint32_t unused;   /* records to use again */
  uint32_t unmapped; /* chunks that lie nowhere, since they could neither be put anywhere nor given back */
  uint32_t n_ranges;
  struct range ranges[MAX_RANGES];
};

/* Why the upstream's mapping is not for who was not told to use it; NULL if it is, or there is none. */
const char *chunks_discouraged_reason(const struct hipmm_resource *upstream);

/* Asks the upstream for its mapping. HIPMM_E_NOT_SUPPORTED when it has none, HIPMM_E_LIMIT when the maximum is below a
 * granule. */
enum hipmm_status chunks_open(struct chunks *chunks, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, uint64_t maximum_bytes);

/* Gives everything back. No work uses it. */
void chunks_close(struct chunks *chunks);

/* Reserves another range of at least `bytes`. */
enum hipmm_status chunks_reserve(struct chunks *chunks, uint64_t bytes, const struct range **range_out);

/* The address of the first, and of the last, granule in [start, end) that has memory, or that has none, as asked; `end`
 * if there is none. Both are multiples of the granule in one range. */
uint64_t chunks_first(const struct chunks *chunks, uint64_t start, uint64_t end, bool committed);
uint64_t chunks_last(const struct chunks *chunks, uint64_t start, uint64_t end, bool committed);

/* How many granules in [start, end), which is as above, have no memory. */
uint32_t chunks_uncommitted(const struct chunks *chunks, uint64_t start, uint64_t end);

/* The chunk that is mapped at the granule, and the address where it begins; CHUNK_NONE if there is none. */
uint32_t chunks_at(const struct chunks *chunks, uint64_t address, uint64_t *begin_out);

/* Places by number. */
const struct mapping *chunks_mapping(const struct chunks *chunks, uint32_t mapping);

/* The last place in [start, end) where a chunk is mapped that does not lie there; 0 if there is none. And unmapping it:
 * no work may use these addresses any more. */
uint32_t chunks_last_alias(const struct chunks *chunks, uint64_t start, uint64_t end);
enum hipmm_status chunks_unmap_alias(struct chunks *chunks, uint32_t mapping);

/* A place of the chunk where it does not lie, after `place`, or the first for 0; 0 at the end. */
uint32_t chunk_next_alias(const struct chunks *chunks, uint32_t id, uint32_t mapping);

/* Whether so many bytes more are to be had at all, before they are taken chunk by chunk: HIPMM_E_LIMIT if not under the
 * maximum, the upstream's status if not from it. */
enum hipmm_status chunks_check_available(struct chunks *chunks, uint64_t bytes);

/* A new chunk that lies nowhere, of what there is room for, at most `granules`; HIPMM_E_LIMIT when the maximum is
 * reached.
 */
enum hipmm_status chunk_create(struct chunks *chunks, uint64_t granules, uint32_t *id_out);

/* Gives the memory of a chunk that lies nowhere back. No work uses it. Failing that, it is kept as a unmapped. */
enum hipmm_status chunk_destroy(struct chunks *chunks, uint32_t id);

/* Puts a chunk that lies nowhere at `address`, where nothing else is mapped. */
enum hipmm_status chunk_map(struct chunks *chunks, uint32_t id, uint64_t address);

/* Takes it from where it lies, where work of the stream up to the epoch may use it yet; 0: none does, as must be unless
 * chunks may alias. */
enum hipmm_status chunk_detach(struct chunks *chunks, uint32_t id, uint32_t stream, uint64_t epoch);

/* Spares. take_spare finds one of at most `granules`; CHUNK_NONE if there is none. Work may still use one through the
 * places that it has left (idle_obtain_unmapped). */
void chunk_keep_unmapped(struct chunks *chunks, uint32_t id);
uint32_t chunks_take_unmapped(struct chunks *chunks, uint64_t granules);

static inline struct chunk *chunk_of(const struct chunks *chunks, uint32_t id)
{
  return &chunks->items[id];
}

static inline uint64_t chunk_bytes(const struct chunks *chunks, uint32_t id)
{
  return chunk_of(chunks, id)->granules * chunks->granule_bytes;
}

/* Whether the chunk is mapped from there on. */
bool chunk_is_mapped_at(const struct chunks *chunks, uint32_t id, uint64_t address);

/* Where a chunk lies that lies somewhere. */
uint64_t chunk_address(const struct chunks *chunks, uint32_t id);

static inline uint64_t chunks_round_up(const struct chunks *chunks, uint64_t bytes)
{
  return (bytes + chunks->granule_bytes - 1) & ~(chunks->granule_bytes - 1);
}

static inline uint64_t chunks_round_down(const struct chunks *chunks, uint64_t bytes)
{
  return bytes & ~(chunks->granule_bytes - 1);
}

#endif
