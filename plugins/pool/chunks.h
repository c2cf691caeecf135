/* SPDX-License-Identifier: MIT */
/* chunks.h: the chunks of physical memory that are mapped under a pool's addresses (addresses.h). A chunk is a whole number of
 * granules. The driver's price is per chunk, not per byte. Called by granules.c, idle.c and backing.c. Knows nothing of
 * blocks. The caller holds the pool's lock.
 *
 * A chunk has one current mapping, or it is an unmapped chunk. Where the upstream allows several mappings of one chunk,
 * a detached chunk keeps its old mapping as an alias mapping. To make an alias mapping the current one again costs
 * nothing. To detach a chunk needs no wait for the work that used it, if later work is ordered after that work. So a
 * periodic workload moves chunks between the same mappings without a driver call.
 *
 * Invariant: a committed granule lies in exactly one current mapping, and no two mappings overlap. */
#ifndef HIPMM_PLUGINS_POOL_CHUNKS_H
#define HIPMM_PLUGINS_POOL_CHUNKS_H

#include "addresses.h"
#include "backing_ops.h"

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

/* Why growth `auto` should not use the upstream's mapping; NULL if there is no objection, or no mapping. */
const char *chunks_discouraged_reason(const struct hipmm_resource *upstream);

/* HIPMM_E_NOT_SUPPORTED when the upstream cannot map, HIPMM_E_LIMIT when the maximum is below a granule. */
enum hipmm_status chunks_open(struct chunks *chunks, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, uint64_t maximum_bytes);

/* Releases all memory and all addresses. No work uses them. */
void chunks_close(struct chunks *chunks);

/* The memory of the pool's device, whichever device is current; false if the device does not report it. */
bool chunks_query_device(const struct chunks *chunks, size_t *free_bytes_out, size_t *total_bytes_out);

/* Reserves another range of at least `bytes`. */
enum hipmm_status chunks_reserve(struct chunks *chunks, uint64_t bytes, const struct range **range_out);

/* No work uses these addresses any more. */
enum hipmm_status chunks_unmap_alias(struct chunks *chunks, uint32_t mapping);

/* The alias mapping of the chunk after `mapping`, or the first for 0; 0 at the end. */
uint32_t chunk_next_alias(const struct chunks *chunks, uint32_t id, uint32_t mapping);

/* Whether `bytes` more can be allocated at all, asked before they are allocated chunk by chunk. HIPMM_E_LIMIT if the
 * maximum forbids it; the upstream's status if the upstream has less. */
enum hipmm_status chunks_check_available(struct chunks *chunks, uint64_t bytes);

/* Creates an unmapped chunk, as large as possible up to `granules`. HIPMM_E_LIMIT when the maximum is reached. */
enum hipmm_status chunk_create(struct chunks *chunks, uint64_t granules, uint32_t *id_out);

/* Releases the memory of an unmapped chunk. No work uses it. On failure it goes to the list of unmapped chunks. */
enum hipmm_status chunk_destroy(struct chunks *chunks, uint32_t id);

/* Makes `address` the current mapping of an unmapped chunk. No other chunk is mapped there. */
enum hipmm_status chunk_map(struct chunks *chunks, uint32_t id, uint64_t address);

/* Takes the chunk's current mapping away: it becomes an alias mapping that work of the stream up to the epoch may still
 * use, or is unmapped where the upstream allows no aliases. There, no work may use it: `stream` is 0. */
enum hipmm_status chunk_detach(struct chunks *chunks, uint32_t id, uint32_t stream, uint64_t epoch);

/* Gives the chunk's memory back to the upstream, while the records keep its current mapping; and puts memory there again,
 * with undefined content. Neither repeats what is done already, so that a call that failed can be repeated. No work uses
 * the chunk. An exported chunk keeps its memory. */
enum hipmm_status chunk_suspend(struct chunks *chunks, uint32_t id);
enum hipmm_status chunk_resume(struct chunks *chunks, uint32_t id);

/* The list of unmapped chunks. chunks_take_unmapped() finds one of at most `granules`; CHUNK_NONE if there is none. Work
 * may still use the chunk through its alias mappings: see idle_obtain_unmapped(). */
void chunks_add_unmapped(struct chunks *chunks, uint32_t id);
uint32_t chunks_take_unmapped(struct chunks *chunks, uint64_t granules);

static inline struct chunk *chunk_of(const struct chunks *chunks, uint32_t id)
{
  return &chunks->items[id];
}

static inline uint64_t chunk_bytes(const struct chunks *chunks, uint32_t id)
{
  return chunk_of(chunks, id)->granules * chunks->addresses.granule_bytes;
}

/* The next chunk whose current mapping has a byte in [*at, end), and the address where that mapping begins; CHUNK_NONE if
 * there is none. *at becomes its end. All of [*at, end) lies in one range. */
uint32_t chunks_next(const struct chunks *chunks, uint64_t *at, uint64_t end, uint64_t *begin_out);

/* Whether a mapping of the chunk begins at `address`. */
bool chunk_is_mapped_at(const struct chunks *chunks, uint32_t id, uint64_t address);

/* The address of the chunk's current mapping. */
uint64_t chunk_address(const struct chunks *chunks, uint32_t id);

#endif
