/* SPDX-License-Identifier: MIT */
/* addresses.h: reserved ranges of addresses, in granules, and the records of which chunk is mapped where. A granule is the
 * smallest chunk of the runtime. Knows a chunk by its id only, and calls the driver only to reserve addresses. Called by
 * chunks.c, granules.c, idle.c, suspend.c and swapped_out.c. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_ADDRESSES_H
#define HIPMM_PLUGINS_POOL_ADDRESSES_H

#include <hipmm/plugin.h>

#include <stdbool.h>

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

static inline uint64_t addresses_round_up(const struct addresses *addresses, uint64_t bytes)
{
  return (bytes + addresses->granule_bytes - 1) & ~(addresses->granule_bytes - 1);
}

static inline uint64_t addresses_round_down(const struct addresses *addresses, uint64_t bytes)
{
  return bytes & ~(addresses->granule_bytes - 1);
}

/* Reserves another range, of `usual_bytes`, or less where the process has no more addresses, down to `least_bytes`. */
enum hipmm_status addresses_reserve(struct addresses *addresses, uint64_t usual_bytes, uint64_t least_bytes,
                                    const struct range **range_out);

/* Gives the last range back, in which nothing is mapped; and all ranges. */
void addresses_unreserve_last(struct addresses *addresses);
void addresses_close(struct addresses *addresses);

/* The address of the first, or the last, granule in [start, end) that is committed, or uncommitted, as asked; `end` if
 * there is none. Both are multiples of the granule in one range. */
uint64_t addresses_first(const struct addresses *addresses, uint64_t start, uint64_t end, bool committed);
uint64_t addresses_last(const struct addresses *addresses, uint64_t start, uint64_t end, bool committed);

/* The number of uncommitted granules in [start, end), which is as above. */
uint32_t addresses_uncommitted(const struct addresses *addresses, uint64_t start, uint64_t end);

/* The chunk that is mapped at the granule, and the address where that mapping begins; CHUNK_NONE if there is none. */
uint32_t addresses_chunk_at(const struct addresses *addresses, uint64_t address, uint64_t *begin_out);

/* The last mapping, of any kind, that has a granule in [start, end), which is not empty; 0 if there is none. */
uint32_t addresses_last_mapping(const struct addresses *addresses, uint64_t start, uint64_t end);

/* The number of a mapping that begins at the address; the address; and the record. */
uint32_t addresses_mapping_at(const struct addresses *addresses, uint64_t address);
uint64_t addresses_of_mapping(const struct addresses *addresses, uint32_t mapping);
struct mapping *addresses_mapping(const struct addresses *addresses, uint32_t mapping);

/* Records that the mapping's granules lie in a current mapping, or in none; and the same for any mapping. */
void addresses_set_committed(struct addresses *addresses, uint32_t mapping, uint64_t granules, bool committed);
void addresses_set_mapped(struct addresses *addresses, uint32_t mapping, uint64_t granules, bool mapped);

#endif
