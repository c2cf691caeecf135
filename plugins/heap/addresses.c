/* SPDX-License-Identifier: MIT */
/* addresses.c: see chunks.h. */
#include "chunks.h"

/* ---- Ranges ---- */

static uint64_t range_granules(const struct addresses *addresses, const struct range *range)
{
  return range->bytes / addresses->granule_bytes;
}

static size_t addresses_bits_bytes(uint64_t granules)
{
  return (granules / 64 + 1) * sizeof(uint64_t);
}

static bool addresses_make_tables(const struct addresses *addresses, struct range *range)
{
  const struct hipmm_services *services = addresses->services;
  uint64_t n = range_granules(addresses, range);
  range->mappings = services->host_allocate(services, n * sizeof *range->mappings);
  range->committed = services->host_allocate(services, addresses_bits_bytes(n));
  range->mapped = services->host_allocate(services, addresses_bits_bytes(n));
  return range->mappings && range->committed && range->mapped;
}

static void addresses_free_tables(const struct addresses *addresses, const struct range *range)
{
  const struct hipmm_services *services = addresses->services;
  uint64_t n = range_granules(addresses, range);
  services->host_free(services, range->mappings, n * sizeof *range->mappings);
  services->host_free(services, range->committed, addresses_bits_bytes(n));
  services->host_free(services, range->mapped, addresses_bits_bytes(n));
}

/* Halves range->bytes, down to `least_bytes`, until the addresses can be reserved: a process may have a limit on its
 * addresses. */
static enum hipmm_status addresses_reserve_range(const struct addresses *addresses, uint64_t least_bytes,
                                                 struct range *range)
{
  void *address;
  enum hipmm_status status;
  for (;;) {
    status = addresses->upstream->ops->mapping->reserve(addresses->upstream->self, range->bytes, &address);
    if (!status || range->bytes == least_bytes) break;
    uint64_t half = addresses_round_up(addresses, range->bytes / 2);
    range->bytes = half > least_bytes ? half : least_bytes;
  }
  if (!status) range->start = (uintptr_t)address;
  return status;
}

/* A call that fails is repeated once: no later call could try again. */
static void addresses_free_range(const struct addresses *addresses, const struct range *range)
{
  const struct hipmm_mapping *ops = addresses->upstream->ops->mapping;
  void *address = (void *)(uintptr_t)range->start, *self = addresses->upstream->self;
  addresses_free_tables(addresses, range);
  if (ops->unreserve(self, address, range->bytes)) ops->unreserve(self, address, range->bytes);
}

enum hipmm_status addresses_reserve(struct addresses *addresses, uint64_t usual_bytes, uint64_t least_bytes,
                                    const struct range **range_out)
{
  const struct hipmm_services *services = addresses->services;
  if (addresses->n_ranges == MAX_RANGES) return HIPMM_E_LIMIT;
  const struct range *last = addresses->n_ranges ? &addresses->ranges[addresses->n_ranges - 1] : NULL;
  uint64_t first = last ? last->first + range_granules(addresses, last) : 1;
  uint64_t least = addresses_round_up(addresses, least_bytes), usual = addresses_round_up(addresses, usual_bytes);
  struct range range = {.bytes = least > usual ? least : usual, .first = (uint32_t)first};
  if (first + range_granules(addresses, &range) > UINT32_MAX) return HIPMM_E_LIMIT;
  enum hipmm_status status = addresses_reserve_range(addresses, least, &range);
  if (status) return status;
  if (!addresses_make_tables(addresses, &range)) {
    addresses_free_range(addresses, &range);
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to manage {0:bytes} of addresses",
                            range.bytes, 0, 0);
  }
  addresses->ranges[addresses->n_ranges] = range;
  *range_out = &addresses->ranges[addresses->n_ranges++];
  return HIPMM_OK;
}

void addresses_unreserve_last(struct addresses *addresses)
{
  addresses_free_range(addresses, &addresses->ranges[--addresses->n_ranges]);
}

void addresses_close(struct addresses *addresses)
{
  while (addresses->n_ranges) addresses_unreserve_last(addresses);
}

/* ---- Granules ---- */

static const struct range *addresses_range_of(const struct addresses *addresses, uint64_t address)
{
  const struct range *range = addresses->ranges;
  while (address - range->start >= range->bytes) range++; /* the address lies in a range */
  return range;
}

static uint64_t addresses_last_bit(const struct addresses *addresses, const struct range *range, const uint64_t *words,
                                   uint64_t flip, uint64_t start, uint64_t end)
{
  uint64_t first = (start - range->start) / addresses->granule_bytes,
           stop = (end - range->start) / addresses->granule_bytes;
  while (stop > first) {
    uint64_t word = (stop - 1) / 64, bits = words[word] ^ flip;
    bits &= ~0ull >> (63 - (stop - 1) % 64);
    uint64_t found = word * 64 + 63 - (bits ? (uint64_t)__builtin_clzll(bits) : 63);
    if (bits) return found >= first ? range->start + found * addresses->granule_bytes : end;
    stop = word * 64;
  }
  return end;
}

uint64_t addresses_first(const struct addresses *addresses, uint64_t start, uint64_t end, bool committed)
{
  const struct range *range = addresses_range_of(addresses, start);
  uint64_t granule = (start - range->start) / addresses->granule_bytes,
           stop = (end - range->start) / addresses->granule_bytes;
  while (granule < stop) {
    uint64_t bits = (range->committed[granule / 64] ^ (committed ? 0 : ~0ull)) & ~0ull << granule % 64;
    granule = granule / 64 * 64 + (bits ? (uint64_t)__builtin_ctzll(bits) : 64);
    if (bits) break;
  }
  return granule < stop ? range->start + granule * addresses->granule_bytes : end;
}

uint64_t addresses_last(const struct addresses *addresses, uint64_t start, uint64_t end, bool committed)
{
  const struct range *range = addresses_range_of(addresses, start);
  return addresses_last_bit(addresses, range, range->committed, committed ? 0 : ~0ull, start, end);
}

uint32_t addresses_uncommitted(const struct addresses *addresses, uint64_t start, uint64_t end)
{
  uint64_t uncommitted = 0;
  for (uint64_t at = start; at < end;) {
    at = addresses_first(addresses, at, end, false);
    uint64_t stop = at < end ? addresses_first(addresses, at, end, true) : end;
    uncommitted += stop - at;
    at = stop;
  }
  return (uint32_t)(uncommitted / addresses->granule_bytes);
}

/* ---- Mappings ---- */

static void addresses_set_bits(uint64_t *words, uint64_t first, uint64_t n, bool value)
{
  for (uint64_t granule = first; granule < first + n; granule++) {
    if (value)
      words[granule / 64] |= 1ull << granule % 64;
    else
      words[granule / 64] &= ~(1ull << granule % 64);
  }
}

static const struct range *addresses_range_of_mapping(const struct addresses *addresses, uint32_t mapping)
{
  const struct range *range = addresses->ranges;
  while (mapping - range->first >= range_granules(addresses, range)) range++;
  return range;
}

struct mapping *addresses_mapping(const struct addresses *addresses, uint32_t mapping)
{
  const struct range *range = addresses_range_of_mapping(addresses, mapping);
  return &range->mappings[mapping - range->first];
}

uint32_t addresses_mapping_at(const struct addresses *addresses, uint64_t address)
{
  const struct range *range = addresses_range_of(addresses, address);
  return range->first + (uint32_t)((address - range->start) / addresses->granule_bytes);
}

uint64_t addresses_of_mapping(const struct addresses *addresses, uint32_t mapping)
{
  const struct range *range = addresses_range_of_mapping(addresses, mapping);
  return range->start + (mapping - range->first) * addresses->granule_bytes;
}

uint32_t addresses_chunk_at(const struct addresses *addresses, uint64_t address, uint64_t *begin_out)
{
  const struct range *range = addresses_range_of(addresses, address);
  uint64_t granule = (address - range->start) / addresses->granule_bytes;
  if (!(range->mapped[granule / 64] >> granule % 64 & 1)) return CHUNK_NONE;
  while (!range->mappings[granule].chunk) granule--;
  *begin_out = range->start + granule * addresses->granule_bytes;
  return range->mappings[granule].chunk;
}

uint32_t addresses_last_mapping(const struct addresses *addresses, uint64_t start, uint64_t end)
{
  const struct range *range = addresses_range_of(addresses, start);
  uint64_t last = addresses_last_bit(addresses, range, range->mapped, 0, start, end), begin = last;
  if (last == end) return 0;
  addresses_chunk_at(addresses, last, &begin);
  return addresses_mapping_at(addresses, begin);
}

void addresses_set_committed(struct addresses *addresses, uint32_t mapping, uint64_t granules, bool committed)
{
  const struct range *range = addresses_range_of_mapping(addresses, mapping);
  addresses_set_bits(range->committed, mapping - range->first, granules, committed);
}

void addresses_set_mapped(struct addresses *addresses, uint32_t mapping, uint64_t granules, bool mapped)
{
  const struct range *range = addresses_range_of_mapping(addresses, mapping);
  addresses_set_bits(range->mapped, mapping - range->first, granules, mapped);
}
