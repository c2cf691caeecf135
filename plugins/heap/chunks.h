/* SPDX-License-Identifier: MIT */
/* chunks.h: the chunks of physical memory that are mapped under a pool's addresses, and these addresses. A chunk is a whole
 * number of granules. The driver's price is per chunk, not per byte. Called by granules.c, own.c, idle.c and backing.c;
 * swapped_out.c and suspend.c of ../pool call the functions of addresses. Knows nothing of blocks. The caller holds the
 * pool's lock.
 *
 * A chunk has one current mapping, or it is an unmapped chunk. Where the upstream allows several mappings of one chunk,
 * a detached chunk keeps its old mapping as an alias mapping. To make an alias mapping the current one again costs
 * nothing. To detach a chunk needs no wait for the work that used it, if later work is ordered after that work. So a
 * periodic workload moves chunks between the same mappings without a driver call. */
#ifndef HIPMM_PLUGINS_HEAP_CHUNKS_H
#define HIPMM_PLUGINS_HEAP_CHUNKS_H

#include "../pool/options.h"
#include "types.h"

/* ---- Addresses (addresses.c) ----
 *
 * Reserved ranges of addresses, in granules, and the records of which chunk is mapped where. A granule is the smallest chunk of
 * the runtime. Knows a chunk by its id only, and calls the driver only to reserve addresses. */

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

/* ---- Chunks ---- */

/* Changes the limit. With a maximum below what is held, the pool does not grow until it holds less. */
static inline void held_set_maximum(struct held *held, uint64_t maximum_bytes)
{
  held->maximum_bytes = maximum_bytes / held->least_bytes * held->least_bytes;
}

/* Why growth `auto` should not use the upstream's mapping; NULL if there is no objection, or no mapping. */
const char *chunks_discouraged_reason(const struct hipmm_resource *upstream);

/* HIPMM_E_NOT_SUPPORTED when the upstream cannot map, HIPMM_E_LIMIT when the maximum is below a granule. */
enum hipmm_status chunks_open(struct chunks *chunks, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, const struct pool_options *options);

/* Releases all memory and all addresses. No work uses them. */
void chunks_close(struct chunks *chunks);

/* The memory of the pool's device, whichever device is current; false if the device does not report it (slack.c). */
bool slack_query_device(const struct hipmm_services *services, size_t *free_bytes_out, size_t *total_bytes_out);

/* Reserves another range of at least `bytes`. */
enum hipmm_status chunks_reserve(struct chunks *chunks, uint64_t bytes, const struct range **range_out);

/* No work uses these addresses any more. */
enum hipmm_status chunks_unmap_alias(struct chunks *chunks, uint32_t mapping);

/* The alias mapping of the chunk after `mapping`, or the first for 0; 0 at the end. */
uint32_t chunk_next_alias(const struct chunks *chunks, uint32_t id, uint32_t mapping);

/* Whether `bytes` more can be allocated at all, asked before they are allocated chunk by chunk. HIPMM_E_LIMIT if the
 * maximum forbids it; the upstream's status if the upstream has less. */
enum hipmm_status chunks_check_available(struct chunks *chunks, uint64_t bytes);

/* The least granules that a new chunk should have, so that there will not be too many. */
uint64_t chunks_least(const struct chunks *chunks);

/* Creates an unmapped chunk, as large as possible up to `granules`. HIPMM_E_LIMIT when the maximum is reached. */
enum hipmm_status chunk_create(struct chunks *chunks, uint64_t granules, uint32_t *id_out);

/* Creates an unmapped chunk of exactly so many granules for other processes; HIPMM_E_LIMIT when the maximum forbids it. */
enum hipmm_status chunk_create_own(struct chunks *chunks, uint64_t granules, uint32_t *id_out);

/* Releases the memory of an unmapped chunk. No work uses it. On failure it goes to the list of unmapped chunks. */
enum hipmm_status chunk_destroy(struct chunks *chunks, uint32_t id);

/* Makes `address` the current mapping of an unmapped chunk. No other chunk is mapped there. */
enum hipmm_status chunk_map(struct chunks *chunks, uint32_t id, uint64_t address);

/* Takes the chunk's current mapping away: it becomes an alias mapping that work of the stream up to the epoch may still
 * use, or is unmapped where the upstream allows no aliases. There, no work may use it: `stream` is 0. */
enum hipmm_status chunk_detach(struct chunks *chunks, uint32_t id, uint32_t stream, uint64_t epoch);

/* Unmaps the chunk there whatever the upstream allows. No work uses the mapping. */
enum hipmm_status chunk_unmap(struct chunks *chunks, uint32_t id);

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
