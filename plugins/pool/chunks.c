/* SPDX-License-Identifier: MIT */
/* chunks.c: reserves addresses, creates and maps chunks, and records which chunk is mapped where. */
#include "chunks.h"
#include "../../core/base/cancel.h"
#include "../common/sizes.h"

enum { MAX_CHUNKS = 1 << 20 };

/* For a device that does not report its memory: more than any device has today. */
static const uint64_t UNKNOWN_RANGE_BYTES = 1ull << 40;

/* ---- Ranges ---- */

bool chunks_query_device(const struct chunks *chunks, size_t *free_bytes_out, size_t *total_bytes_out)
{
  const struct hipmm_services *services = chunks->services;
  int cancel = cancel_forbid();
  int previous = services->enter_device(services);
  int code = services->hip->MemGetInfo(free_bytes_out, total_bytes_out);
  if (code) services->hip->GetLastError();
  services->leave_device(services, previous);
  cancel_allow(cancel);
  return !code;
}

/* Twice the device's memory. Fragmentation of addresses is cheap: it takes no memory. */
static uint64_t chunks_default_range_bytes(const struct chunks *chunks)
{
  size_t free_bytes, total_bytes;
  if (!chunks_query_device(chunks, &free_bytes, &total_bytes)) return UNKNOWN_RANGE_BYTES;
  return 2 * (uint64_t)total_bytes + chunks->granule_bytes;
}

static uint64_t chunks_range_granules(const struct chunks *chunks, const struct range *range)
{
  return range->bytes / chunks->granule_bytes;
}

static size_t chunks_bits_bytes(uint64_t granules)
{
  return (granules / 64 + 1) * sizeof(uint64_t);
}

static bool chunks_make_tables(const struct chunks *chunks, struct range *range)
{
  const struct hipmm_services *services = chunks->services;
  uint64_t n = chunks_range_granules(chunks, range);
  range->mappings = services->host_allocate(services, n * sizeof *range->mappings);
  range->committed = services->host_allocate(services, chunks_bits_bytes(n));
  range->mapped = services->host_allocate(services, chunks_bits_bytes(n));
  return range->mappings && range->committed && range->mapped;
}

static void chunks_free_tables(const struct chunks *chunks, const struct range *range)
{
  const struct hipmm_services *services = chunks->services;
  uint64_t n = chunks_range_granules(chunks, range);
  services->host_free(services, range->mappings, n * sizeof *range->mappings);
  services->host_free(services, range->committed, chunks_bits_bytes(n));
  services->host_free(services, range->mapped, chunks_bits_bytes(n));
}

/* Halves range->bytes, down to `least_bytes`, until the addresses can be reserved: a process may have a limit on its
 * addresses. */
static enum hipmm_status chunks_reserve_addresses(const struct chunks *chunks, uint64_t least_bytes,
                                                  struct range *range)
{
  void *address;
  enum hipmm_status status;
  for (;;) {
    status = chunks->ops->reserve(chunks->upstream->self, range->bytes, &address);
    if (!status || range->bytes == least_bytes) break;
    uint64_t half = chunks_round_up(chunks, range->bytes / 2);
    range->bytes = half > least_bytes ? half : least_bytes;
  }
  if (!status) range->start = (uintptr_t)address;
  return status;
}

enum hipmm_status chunks_reserve(struct chunks *chunks, uint64_t bytes, const struct range **range_out)
{
  const struct hipmm_services *services = chunks->services;
  if (chunks->n_ranges == MAX_RANGES) return HIPMM_E_LIMIT;
  const struct range *last = chunks->n_ranges ? &chunks->ranges[chunks->n_ranges - 1] : NULL;
  uint64_t usual = chunks_default_range_bytes(chunks);
  uint64_t first = last ? last->first + chunks_range_granules(chunks, last) : 1;
  struct range range = {.bytes = chunks_round_up(chunks, bytes > usual ? bytes : usual), .first = (uint32_t)first};
  if (first + chunks_range_granules(chunks, &range) > UINT32_MAX) return HIPMM_E_LIMIT;
  int cancel = cancel_forbid();
  enum hipmm_status status = chunks_reserve_addresses(chunks, chunks_round_up(chunks, bytes), &range);
  cancel_allow(cancel);
  if (status) return status;
  if (!chunks_make_tables(chunks, &range)) {
    chunks_free_tables(chunks, &range);
    chunks->ops->unreserve(chunks->upstream->self, (void *)(uintptr_t)range.start, range.bytes);
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to manage {0:bytes} of addresses",
                            range.bytes, 0, 0);
  }
  chunks->ranges[chunks->n_ranges] = range;
  *range_out = &chunks->ranges[chunks->n_ranges++];
  return HIPMM_OK;
}

static const struct range *chunks_range_of(const struct chunks *chunks, uint64_t address)
{
  const struct range *range = chunks->ranges;
  while (address - range->start >= range->bytes) range++; /* the address lies in a range */
  return range;
}

static uint64_t chunks_last_bit(const struct chunks *chunks, const struct range *range, const uint64_t *words,
                                uint64_t flip, uint64_t start, uint64_t end)
{
  uint64_t first = (start - range->start) / chunks->granule_bytes, stop = (end - range->start) / chunks->granule_bytes;
  while (stop > first) {
    uint64_t word = (stop - 1) / 64, bits = words[word] ^ flip;
    bits &= ~0ull >> (63 - (stop - 1) % 64);
    uint64_t found = word * 64 + 63 - (bits ? (uint64_t)__builtin_clzll(bits) : 63);
    if (bits) return found >= first ? range->start + found * chunks->granule_bytes : end;
    stop = word * 64;
  }
  return end;
}

uint64_t chunks_first(const struct chunks *chunks, uint64_t start, uint64_t end, bool committed)
{
  const struct range *range = chunks_range_of(chunks, start);
  uint64_t granule = (start - range->start) / chunks->granule_bytes,
           stop = (end - range->start) / chunks->granule_bytes;
  while (granule < stop) {
    uint64_t bits = (range->committed[granule / 64] ^ (committed ? 0 : ~0ull)) & ~0ull << granule % 64;
    granule = granule / 64 * 64 + (bits ? (uint64_t)__builtin_ctzll(bits) : 64);
    if (bits) break;
  }
  return granule < stop ? range->start + granule * chunks->granule_bytes : end;
}

uint64_t chunks_last(const struct chunks *chunks, uint64_t start, uint64_t end, bool committed)
{
  const struct range *range = chunks_range_of(chunks, start);
  return chunks_last_bit(chunks, range, range->committed, committed ? 0 : ~0ull, start, end);
}

uint32_t chunks_uncommitted(const struct chunks *chunks, uint64_t start, uint64_t end)
{
  uint64_t uncommitted = 0;
  for (uint64_t at = start; at < end;) {
    at = chunks_first(chunks, at, end, false);
    uint64_t stop = at < end ? chunks_first(chunks, at, end, true) : end;
    uncommitted += stop - at;
    at = stop;
  }
  return (uint32_t)(uncommitted / chunks->granule_bytes);
}

/* ---- Mappings ---- */

static void chunks_set_bits(uint64_t *words, uint64_t first, uint64_t n, bool value)
{
  for (uint64_t granule = first; granule < first + n; granule++) {
    if (value)
      words[granule / 64] |= 1ull << granule % 64;
    else
      words[granule / 64] &= ~(1ull << granule % 64);
  }
}

static const struct range *chunks_range_of_mapping(const struct chunks *chunks, uint32_t mapping)
{
  const struct range *range = chunks->ranges;
  while (mapping - range->first >= chunks_range_granules(chunks, range)) range++;
  return range;
}

static struct mapping *chunks_mapping_of(const struct chunks *chunks, uint32_t mapping)
{
  const struct range *range = chunks_range_of_mapping(chunks, mapping);
  return &range->mappings[mapping - range->first];
}

const struct mapping *chunks_mapping(const struct chunks *chunks, uint32_t mapping)
{
  return chunks_mapping_of(chunks, mapping);
}

static uint32_t chunks_mapping_number(const struct chunks *chunks, uint64_t address)
{
  const struct range *range = chunks_range_of(chunks, address);
  return range->first + (uint32_t)((address - range->start) / chunks->granule_bytes);
}

static uint64_t chunks_address_of(const struct chunks *chunks, uint32_t mapping)
{
  const struct range *range = chunks_range_of_mapping(chunks, mapping);
  return range->start + (mapping - range->first) * chunks->granule_bytes;
}

uint64_t chunk_address(const struct chunks *chunks, uint32_t id)
{
  return chunks_address_of(chunks, chunk_of(chunks, id)->current);
}

uint32_t chunks_at(const struct chunks *chunks, uint64_t address, uint64_t *begin_out)
{
  const struct range *range = chunks_range_of(chunks, address);
  uint64_t granule = (address - range->start) / chunks->granule_bytes;
  if (!(range->mapped[granule / 64] >> granule % 64 & 1)) return CHUNK_NONE;
  while (!range->mappings[granule].chunk) granule--;
  *begin_out = range->start + granule * chunks->granule_bytes;
  return range->mappings[granule].chunk;
}

bool chunk_is_mapped_at(const struct chunks *chunks, uint32_t id, uint64_t address)
{
  return chunks_mapping_of(chunks, chunks_mapping_number(chunks, address))->chunk == id;
}

static void chunks_set_mapped(const struct chunks *chunks, uint32_t mapping, uint64_t granules, bool mapped)
{
  const struct range *range = chunks_range_of_mapping(chunks, mapping);
  chunks_set_bits(range->mapped, mapping - range->first, granules, mapped);
}

/* `mapping`, or no mapping for 0, becomes the current one. */
static void chunks_set_current(struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  struct chunk *chunk = chunk_of(chunks, id);
  uint32_t first = mapping ? mapping : chunk->current;
  const struct range *range = chunks_range_of_mapping(chunks, first);
  chunks_set_bits(range->committed, first - range->first, chunk->granules, mapping != 0);
  chunk->current = mapping;
}

/* The driver's part of a mapping. */
static enum hipmm_status chunks_map(const struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  void *address = (void *)(uintptr_t)chunks_address_of(chunks, mapping), *handle = chunk_of(chunks, id)->handle;
  int cancel = cancel_forbid();
  enum hipmm_status status = chunks->ops->map(chunks->upstream->self, address, chunk_bytes(chunks, id), handle);
  cancel_allow(cancel);
  return status;
}

static enum hipmm_status chunks_unmap(const struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  void *address = (void *)(uintptr_t)chunks_address_of(chunks, mapping);
  int cancel = cancel_forbid();
  enum hipmm_status status = chunks->ops->unmap(chunks->upstream->self, address, chunk_bytes(chunks, id));
  cancel_allow(cancel);
  return status;
}

static enum hipmm_status chunks_add_mapping(struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  struct chunk *chunk = chunk_of(chunks, id);
  enum hipmm_status status = chunks_map(chunks, id, mapping);
  if (status) return status;
  *chunks_mapping_of(chunks, mapping) = (struct mapping){.chunk = id, .next = chunk->mappings};
  chunk->mappings = mapping;
  chunks_set_mapped(chunks, mapping, chunk->granules, true);
  return HIPMM_OK;
}

static enum hipmm_status chunks_remove_mapping(struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  struct chunk *chunk = chunk_of(chunks, id);
  enum hipmm_status status = chunk->is_away ? HIPMM_OK : chunks_unmap(chunks, id, mapping);
  if (status) return status;
  uint32_t *link = &chunk->mappings;
  while (*link != mapping) link = &chunks_mapping_of(chunks, *link)->next;
  *link = chunks_mapping_of(chunks, mapping)->next;
  *chunks_mapping_of(chunks, mapping) = (struct mapping){0};
  chunks_set_mapped(chunks, mapping, chunk->granules, false);
  return HIPMM_OK;
}

uint32_t chunks_last_alias(const struct chunks *chunks, uint64_t start, uint64_t end)
{
  uint64_t begin;
  if (start >= end) return 0;
  const struct range *range = chunks_range_of(chunks, start);
  uint64_t last = chunks_last_bit(chunks, range, range->mapped, 0, start, end);
  if (last == end) return 0;
  chunks_at(chunks, last, &begin);
  return chunks_mapping_number(chunks, begin);
}

enum hipmm_status chunks_unmap_alias(struct chunks *chunks, uint32_t mapping)
{
  return chunks_remove_mapping(chunks, chunks_mapping(chunks, mapping)->chunk, mapping);
}

uint32_t chunk_next_alias(const struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  const struct chunk *chunk = chunk_of(chunks, id);
  uint32_t next = mapping ? chunks_mapping_of(chunks, mapping)->next : chunk->mappings;
  return next && next == chunk->current ? chunks_mapping_of(chunks, next)->next : next;
}

/* ---- Single chunks ---- */

enum hipmm_status chunk_map(struct chunks *chunks, uint32_t id, uint64_t address)
{
  uint32_t mapping = chunks_mapping_number(chunks, address);
  enum hipmm_status status =
      chunks_mapping_of(chunks, mapping)->chunk == id ? HIPMM_OK : chunks_add_mapping(chunks, id, mapping);
  if (!status) chunks_set_current(chunks, id, mapping);
  return status;
}

enum hipmm_status chunk_detach(struct chunks *chunks, uint32_t id, uint32_t stream, uint64_t epoch)
{
  struct mapping *mapping = chunks_mapping_of(chunks, chunk_of(chunks, id)->current);
  if (!chunks->may_alias) {
    enum hipmm_status status = chunks_remove_mapping(chunks, id, chunk_of(chunks, id)->current);
    if (status) return status;
  } else {
    mapping->stream = stream;
    mapping->epoch = epoch;
  }
  chunks_set_current(chunks, id, 0);
  return HIPMM_OK;
}

static void chunks_free_id(struct chunks *chunks, uint32_t id)
{
  *chunk_of(chunks, id) = (struct chunk){.next = chunks->unused};
  chunks->unused = id;
}

static uint64_t chunks_headroom(const struct chunks *chunks)
{
  return sizes_headroom(chunks->held.maximum_bytes, chunks->held.bytes);
}

static bool chunks_device_has(const struct chunks *chunks, uint64_t bytes)
{
  size_t free_bytes, total_bytes;
  return chunks_query_device(chunks, &free_bytes, &total_bytes) && free_bytes >= bytes;
}

/* The driver's part of a chunk. */
static enum hipmm_status chunks_create(const struct chunks *chunks, uint64_t bytes, void **handle_out)
{
  int cancel = cancel_forbid();
  enum hipmm_status status = chunks->ops->create(chunks->upstream->self, bytes, handle_out);
  cancel_allow(cancel);
  return status;
}

static enum hipmm_status chunks_destroy(struct chunks *chunks, uint32_t id)
{
  struct chunk *chunk = chunk_of(chunks, id);
  if (!chunk->handle) return HIPMM_OK;
  int cancel = cancel_forbid();
  enum hipmm_status status = chunks->ops->destroy(chunks->upstream->self, chunk->handle, chunk_bytes(chunks, id));
  cancel_allow(cancel);
  if (status) return status;
  chunk->handle = NULL;
  chunks->away_bytes += chunk_bytes(chunks, id);
  return HIPMM_OK;
}

/* Creates an unmapped chunk of exactly this size. */
static enum hipmm_status chunks_create_exactly(struct chunks *chunks, uint64_t granules, uint32_t *id_out)
{
  void *handle;
  uint32_t id = chunks->unused;
  if (id)
    chunks->unused = chunk_of(chunks, id)->next;
  else if (chunks->count < MAX_CHUNKS)
    id = chunks->count++;
  else
    return HIPMM_E_LIMIT;
  enum hipmm_status status = chunks_create(chunks, granules * chunks->granule_bytes, &handle);
  if (status) {
    chunks_free_id(chunks, id);
    return status;
  }
  *chunk_of(chunks, id) = (struct chunk){.handle = handle, .granules = (uint32_t)granules};
  chunks->held.bytes += chunk_bytes(chunks, id);
  *id_out = id;
  return HIPMM_OK;
}

static void chunks_update_peak(struct chunks *chunks)
{
  if (chunks->held.bytes > chunks->held.peak_bytes) chunks->held.peak_bytes = chunks->held.bytes;
}

/* The driver may report memory as used that it could free. If it reports too little free memory, a chunk of this size is
 * created, to be sure, and destroyed. */
enum hipmm_status chunks_check_available(struct chunks *chunks, uint64_t bytes)
{
  uint32_t id;
  bytes = chunks_round_up(chunks, bytes);
  if (bytes > chunks_headroom(chunks)) return HIPMM_E_LIMIT;
  if (chunks_device_has(chunks, bytes)) return HIPMM_OK;
  enum hipmm_status status = chunks_create_exactly(chunks, bytes / chunks->granule_bytes, &id);
  if (!status) status = chunk_destroy(chunks, id);
  chunks_update_peak(chunks);
  return status;
}

enum hipmm_status chunk_create(struct chunks *chunks, uint64_t granules, uint32_t *id_out)
{
  uint64_t headroom = chunks_headroom(chunks) / chunks->granule_bytes;
  if (granules > headroom) granules = headroom;
  enum hipmm_status status = HIPMM_E_LIMIT;
  for (; granules; granules /= 2) {
    status = chunks_create_exactly(chunks, granules, id_out);
    if (status != HIPMM_E_OUT_OF_MEMORY) break;
  }
  chunks_update_peak(chunks);
  if (!status)
    chunks->services->log(chunks->services, HIPMM_LOG_DEBUG, "grew by a chunk of %llu bytes to %llu bytes",
                          (unsigned long long)chunk_bytes(chunks, *id_out), (unsigned long long)chunks->held.bytes);
  return status;
}

void chunks_add_unmapped(struct chunks *chunks, uint32_t id)
{
  chunk_of(chunks, id)->next = chunks->unmapped;
  chunks->unmapped = id;
}

uint32_t chunks_take_unmapped(struct chunks *chunks, uint64_t granules)
{
  for (uint32_t *link = &chunks->unmapped; *link; link = &chunk_of(chunks, *link)->next) {
    uint32_t id = *link;
    if (chunk_of(chunks, id)->granules > granules) continue;
    *link = chunk_of(chunks, id)->next;
    return id;
  }
  return CHUNK_NONE;
}

enum hipmm_status chunk_destroy(struct chunks *chunks, uint32_t id)
{
  struct chunk *chunk = chunk_of(chunks, id);
  enum hipmm_status status = HIPMM_OK;
  while (!status && chunk->mappings) status = chunks_remove_mapping(chunks, id, chunk->mappings);
  if (!status) status = chunks_destroy(chunks, id);
  if (status) {
    chunks_add_unmapped(chunks, id);
    return status;
  }
  chunks->held.bytes -= chunk_bytes(chunks, id);
  chunks->away_bytes -= chunk_bytes(chunks, id);
  chunks_free_id(chunks, id);
  return HIPMM_OK;
}

enum hipmm_status chunk_suspend(struct chunks *chunks, uint32_t id)
{
  struct chunk *chunk = chunk_of(chunks, id);
  enum hipmm_status status = HIPMM_OK;
  uint32_t alias;
  if (chunk->is_exported) return HIPMM_OK;
  while (!status && !chunk->is_away && (alias = chunk_next_alias(chunks, id, 0)))
    status = chunks_remove_mapping(chunks, id, alias);
  if (!status && !chunk->is_away && chunk->current) status = chunks_unmap(chunks, id, chunk->current);
  if (status) return status;
  chunk->is_away = true;
  return chunks_destroy(chunks, id);
}

enum hipmm_status chunk_resume(struct chunks *chunks, uint32_t id)
{
  struct chunk *chunk = chunk_of(chunks, id);
  if (!chunk->is_away) return HIPMM_OK;
  if (!chunk->handle) {
    enum hipmm_status status = chunks_create(chunks, chunk_bytes(chunks, id), &chunk->handle);
    if (status) return status;
    chunks->away_bytes -= chunk_bytes(chunks, id);
  }
  /* Without a mapping it waits in the list `unmapped`. */
  enum hipmm_status status = chunk->current ? chunks_map(chunks, id, chunk->current) : HIPMM_OK;
  chunk->is_away = status != HIPMM_OK;
  return status;
}

/* ---- Life ---- */

/* Whether the upstream was built with a header that has the member, and sets it. */
#define KNOWS(ops, member) \
  ((ops)->struct_size >= offsetof(struct hipmm_mapping, member) + sizeof(ops)->member && (ops)->member)

const char *chunks_discouraged_reason(const struct hipmm_resource *upstream)
{
  const struct hipmm_mapping *ops = upstream->ops->mapping;
  return ops && KNOWS(ops, discouraged_reason) ? ops->discouraged_reason(upstream->self) : NULL;
}

enum hipmm_status chunks_open(struct chunks *chunks, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, uint64_t maximum_bytes)
{
  size_t granule_bytes;
  const struct hipmm_mapping *ops = upstream->ops->mapping;
  *chunks = (struct chunks){.services = services, .upstream = upstream, .ops = ops, .count = CHUNK_NONE + 1};
  if (!ops) return HIPMM_E_NOT_SUPPORTED;
  enum hipmm_status status = ops->granularity(upstream->self, &granule_bytes);
  if (status) return status;
  if (maximum_bytes < granule_bytes) return HIPMM_E_LIMIT;
  chunks->granule_bytes = granule_bytes;
  chunks->held.least_bytes = granule_bytes;
  held_set_maximum(&chunks->held, maximum_bytes);
  if (KNOWS(ops, may_alias)) chunks->may_alias = ops->may_alias(upstream->self);
  chunks->items = services->host_allocate(services, MAX_CHUNKS * sizeof *chunks->items);
  return chunks->items
             ? HIPMM_OK
             : services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for the pool's chunks", 0, 0, 0);
}

/* No later call could try again, so each call that fails is repeated once. */
static void chunks_close_chunk(struct chunks *chunks, uint32_t id)
{
  const struct chunk *chunk = chunk_of(chunks, id);
  while (chunk->mappings &&
         (!chunks_remove_mapping(chunks, id, chunk->mappings) || !chunks_remove_mapping(chunks, id, chunk->mappings)))
    continue;
  if (!chunk->mappings && chunks_destroy(chunks, id)) chunks_destroy(chunks, id);
}

/* A call that fails is repeated once. */
static void chunks_free_range(const struct chunks *chunks, const struct range *range)
{
  void *address = (void *)(uintptr_t)range->start;
  chunks_free_tables(chunks, range);
  if (chunks->ops->unreserve(chunks->upstream->self, address, range->bytes))
    chunks->ops->unreserve(chunks->upstream->self, address, range->bytes);
}

void chunks_unreserve_last(struct chunks *chunks)
{
  int cancel = cancel_forbid();
  chunks_free_range(chunks, &chunks->ranges[--chunks->n_ranges]);
  cancel_allow(cancel);
}

void chunks_close(struct chunks *chunks)
{
  const struct hipmm_services *services = chunks->services;
  for (uint32_t id = 1; chunks->items && id < chunks->count; id++)
    if (chunk_of(chunks, id)->granules) chunks_close_chunk(chunks, id);
  for (uint32_t i = 0; i < chunks->n_ranges; i++) chunks_free_range(chunks, &chunks->ranges[i]);
  services->host_free(services, chunks->items, MAX_CHUNKS * sizeof *chunks->items);
}
