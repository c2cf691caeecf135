/* SPDX-License-Identifier: MIT */
/* chunks.c: creates chunks, maps them, and takes both back. */
#include "chunks.h"
#include "../common/sizes.h"

enum { MAX_CHUNKS = 1 << 20 };

/* For a device that does not report its memory: more than any device has today. */
static const uint64_t UNKNOWN_RANGE_BYTES = 1ull << 40;

/* Whether the upstream was built with a header that has the member, and sets it. */
#define KNOWS(ops, member) \
  ((ops)->struct_size >= offsetof(struct hipmm_mapping, member) + sizeof(ops)->member && (ops)->member)

/* ---- Addresses ---- */

/* Twice the device's memory. Fragmentation of addresses is cheap: it takes no memory. */
static uint64_t chunks_default_range_bytes(const struct chunks *chunks)
{
  size_t free_bytes, total_bytes;
  if (!slack_query_device(chunks->services, &free_bytes, &total_bytes)) return UNKNOWN_RANGE_BYTES;
  return 2 * (uint64_t)total_bytes + chunks->addresses.granule_bytes;
}

enum hipmm_status chunks_reserve(struct chunks *chunks, uint64_t bytes, const struct range **range_out)
{
  return addresses_reserve(&chunks->addresses, chunks_default_range_bytes(chunks), bytes, range_out);
}

/* ---- Mappings ---- */

static struct mapping *chunks_mapping(const struct chunks *chunks, uint32_t mapping)
{
  return addresses_mapping(&chunks->addresses, mapping);
}

uint64_t chunk_address(const struct chunks *chunks, uint32_t id)
{
  return addresses_of_mapping(&chunks->addresses, chunk_of(chunks, id)->current);
}

bool chunk_is_mapped_at(const struct chunks *chunks, uint32_t id, uint64_t address)
{
  return chunks_mapping(chunks, addresses_mapping_at(&chunks->addresses, address))->chunk == id;
}

uint32_t chunks_next(const struct chunks *chunks, uint64_t *at, uint64_t end, uint64_t *begin_out)
{
  const struct addresses *addresses = &chunks->addresses;
  if (*at >= end) return CHUNK_NONE;
  uint64_t first =
      addresses_first(addresses, addresses_round_down(addresses, *at), addresses_round_up(addresses, end), true);
  if (first >= end) return CHUNK_NONE;
  uint32_t id = addresses_chunk_at(addresses, first, begin_out);
  *at = *begin_out + chunk_bytes(chunks, id);
  return id;
}

/* The chunk's memory is, or is no longer, where its current mapping is. */
static void chunks_tell_place(const struct chunks *chunks, uint32_t id, bool is_there)
{
  const int64_t bytes = (int64_t)chunk_bytes(chunks, id);
  if (!chunk_of(chunks, id)->current || chunk_of(chunks, id)->is_away) return;
  chunks->services->place(chunks->services, (const void *)(uintptr_t)chunk_address(chunks, id),
                          is_there ? bytes : -bytes);
}

/* `mapping`, or no mapping for 0, becomes the current one. */
static void chunks_set_current(struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  struct chunk *chunk = chunk_of(chunks, id);
  chunks_tell_place(chunks, id, false);
  addresses_set_committed(&chunks->addresses, mapping ? mapping : chunk->current, chunk->granules, mapping != 0);
  chunk->current = mapping;
  chunks_tell_place(chunks, id, true);
}

/* The driver's part of a mapping. */
static enum hipmm_status chunks_map(const struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  void *address = (void *)(uintptr_t)addresses_of_mapping(&chunks->addresses, mapping),
       *handle = chunk_of(chunks, id)->handle;
  return chunks->ops->map(chunks->upstream->self, address, chunk_bytes(chunks, id), handle);
}

static enum hipmm_status chunks_unmap(const struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  void *address = (void *)(uintptr_t)addresses_of_mapping(&chunks->addresses, mapping);
  return chunks->ops->unmap(chunks->upstream->self, address, chunk_bytes(chunks, id));
}

static enum hipmm_status chunks_add_mapping(struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  struct chunk *chunk = chunk_of(chunks, id);
  enum hipmm_status status = chunks_map(chunks, id, mapping);
  if (status) return status;
  *chunks_mapping(chunks, mapping) = (struct mapping){.chunk = id, .next = chunk->mappings};
  chunk->mappings = mapping;
  addresses_set_mapped(&chunks->addresses, mapping, chunk->granules, true);
  return HIPMM_OK;
}

static enum hipmm_status chunks_remove_mapping(struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  struct chunk *chunk = chunk_of(chunks, id);
  enum hipmm_status status = chunk->is_away ? HIPMM_OK : chunks_unmap(chunks, id, mapping);
  if (status) return status;
  uint32_t *link = &chunk->mappings;
  while (*link != mapping) link = &chunks_mapping(chunks, *link)->next;
  *link = chunks_mapping(chunks, mapping)->next;
  *chunks_mapping(chunks, mapping) = (struct mapping){0};
  addresses_set_mapped(&chunks->addresses, mapping, chunk->granules, false);
  return HIPMM_OK;
}

enum hipmm_status chunks_unmap_alias(struct chunks *chunks, uint32_t mapping)
{
  return chunks_remove_mapping(chunks, chunks_mapping(chunks, mapping)->chunk, mapping);
}

uint32_t chunk_next_alias(const struct chunks *chunks, uint32_t id, uint32_t mapping)
{
  const struct chunk *chunk = chunk_of(chunks, id);
  uint32_t next = mapping ? chunks_mapping(chunks, mapping)->next : chunk->mappings;
  return next && next == chunk->current ? chunks_mapping(chunks, next)->next : next;
}

/* ---- Single chunks ---- */

enum hipmm_status chunk_map(struct chunks *chunks, uint32_t id, uint64_t address)
{
  uint32_t mapping = addresses_mapping_at(&chunks->addresses, address);
  enum hipmm_status status =
      chunks_mapping(chunks, mapping)->chunk == id ? HIPMM_OK : chunks_add_mapping(chunks, id, mapping);
  if (!status) chunks_set_current(chunks, id, mapping);
  return status;
}

enum hipmm_status chunk_unmap(struct chunks *chunks, uint32_t id)
{
  enum hipmm_status status = chunks_remove_mapping(chunks, id, chunk_of(chunks, id)->current);
  if (!status) chunks_set_current(chunks, id, 0);
  return status;
}

enum hipmm_status chunk_detach(struct chunks *chunks, uint32_t id, uint32_t stream, uint64_t epoch)
{
  if (!chunks->may_alias) return chunk_unmap(chunks, id);
  struct mapping *mapping = chunks_mapping(chunks, chunk_of(chunks, id)->current);
  mapping->stream = stream;
  mapping->epoch = epoch;
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
  return slack_query_device(chunks->services, &free_bytes, &total_bytes) && free_bytes >= bytes;
}

/* The driver's part of a chunk. */
static enum hipmm_status chunks_create(const struct chunks *chunks, uint64_t bytes, bool is_own, void **handle_out)
{
  return (is_own && KNOWS(chunks->ops, create_shared) ? chunks->ops->create_shared
                                                      : chunks->ops->create)(chunks->upstream->self, bytes, handle_out);
}

static enum hipmm_status chunks_destroy(struct chunks *chunks, uint32_t id)
{
  struct chunk *chunk = chunk_of(chunks, id);
  if (!chunk->handle) return HIPMM_OK;
  enum hipmm_status status = chunks->ops->destroy(chunks->upstream->self, chunk->handle, chunk_bytes(chunks, id));
  if (status) return status;
  chunk->handle = NULL;
  chunks->away_bytes += chunk_bytes(chunks, id);
  return HIPMM_OK;
}

/* Creates an unmapped chunk of exactly this size. */
static enum hipmm_status chunks_create_exactly(struct chunks *chunks, uint64_t granules, bool is_own, uint32_t *id_out)
{
  void *handle;
  uint32_t id = chunks->unused;
  if (id)
    chunks->unused = chunk_of(chunks, id)->next;
  else if (chunks->count < MAX_CHUNKS)
    id = chunks->count++;
  else
    return HIPMM_E_LIMIT;
  enum hipmm_status status = chunks_create(chunks, granules * chunks->addresses.granule_bytes, is_own, &handle);
  if (status) {
    chunks_free_id(chunks, id);
    return status;
  }
  *chunk_of(chunks, id) = (struct chunk){.handle = handle, .granules = (uint32_t)granules, .is_own = is_own};
  chunks->held.bytes += chunk_bytes(chunks, id);
  chunks->live++;
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
  bytes = addresses_round_up(&chunks->addresses, bytes);
  if (bytes > chunks_headroom(chunks)) return HIPMM_E_LIMIT;
  if (chunks_device_has(chunks, bytes)) return HIPMM_OK;
  enum hipmm_status status = chunks_create_exactly(chunks, bytes / chunks->addresses.granule_bytes, false, &id);
  if (!status) status = chunk_destroy(chunks, id);
  chunks_update_peak(chunks);
  return status;
}

/* Chunks that grow with what is held: of n, the first n / LEAST_SHARE may be small, and three quarters of n reach ten thousand
 * times as much. */
uint64_t chunks_least(const struct chunks *chunks)
{
  enum { LEAST_SHARE = 16 };
  uint64_t small = chunks->most / LEAST_SHARE;
  if (!chunks->most || chunks->live < small) return 1;
  uint64_t granules = chunks->held.bytes / chunks->addresses.granule_bytes / (small ? small : 1);
  return granules ? granules : 1;
}

enum hipmm_status chunk_create(struct chunks *chunks, uint64_t granules, uint32_t *id_out)
{
  uint64_t headroom = chunks_headroom(chunks) / chunks->addresses.granule_bytes;
  if (granules > headroom) granules = headroom;
  enum hipmm_status status = HIPMM_E_LIMIT;
  for (; granules; granules /= 2) {
    status = chunks_create_exactly(chunks, granules, false, id_out);
    if (status != HIPMM_E_OUT_OF_MEMORY) break;
  }
  chunks_update_peak(chunks);
  if (!status)
    chunks->services->log(chunks->services, HIPMM_LOG_DEBUG, "grew by a chunk of %llu bytes to %llu bytes",
                          (unsigned long long)chunk_bytes(chunks, *id_out), (unsigned long long)chunks->held.bytes);
  return status;
}

enum hipmm_status chunk_create_own(struct chunks *chunks, uint64_t granules, uint32_t *id_out)
{
  if (granules * chunks->addresses.granule_bytes > chunks_headroom(chunks)) return HIPMM_E_LIMIT;
  enum hipmm_status status = chunks_create_exactly(chunks, granules, true, id_out);
  chunks_update_peak(chunks);
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
  chunks->live--;
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
  chunks_tell_place(chunks, id, false);
  chunk->is_away = true;
  return chunks_destroy(chunks, id);
}

enum hipmm_status chunk_resume(struct chunks *chunks, uint32_t id)
{
  struct chunk *chunk = chunk_of(chunks, id);
  if (!chunk->is_away) return HIPMM_OK;
  if (!chunk->handle) {
    enum hipmm_status status = chunks_create(chunks, chunk_bytes(chunks, id), chunk->is_own, &chunk->handle);
    if (status) return status;
    chunks->away_bytes -= chunk_bytes(chunks, id);
  }
  /* Without a mapping it waits in the list `unmapped`. */
  enum hipmm_status status = chunk->current ? chunks_map(chunks, id, chunk->current) : HIPMM_OK;
  chunk->is_away = status != HIPMM_OK;
  chunks_tell_place(chunks, id, true);
  return status;
}

/* ---- Life ---- */

const char *chunks_discouraged_reason(const struct hipmm_resource *upstream)
{
  const struct hipmm_mapping *ops = upstream->ops->mapping;
  return ops && KNOWS(ops, discouraged_reason) ? ops->discouraged_reason(upstream->self) : NULL;
}

enum hipmm_status chunks_open(struct chunks *chunks, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, const struct pool_options *options)
{
  size_t granule_bytes;
  const struct hipmm_mapping *ops = upstream->ops->mapping;
  *chunks = (struct chunks){.services = services, .upstream = upstream, .ops = ops, .count = CHUNK_NONE + 1};
  if (!ops) return HIPMM_E_NOT_SUPPORTED;
  enum hipmm_status status = ops->granularity(upstream->self, &granule_bytes);
  if (status) return status;
  if (options->maximum_size < granule_bytes) return HIPMM_E_LIMIT;
  chunks->addresses = (struct addresses){.services = services, .upstream = upstream, .granule_bytes = granule_bytes};
  chunks->held.least_bytes = granule_bytes;
  held_set_maximum(&chunks->held, options->maximum_size);
  if (KNOWS(ops, may_alias)) chunks->may_alias = ops->may_alias(upstream->self);
  if (KNOWS(ops, may_export)) chunks->may_export = ops->may_export(upstream->self);
  chunks->can_export = chunks->may_export || KNOWS(ops, create_shared);
  if (options->exportable && chunks->can_export) chunks->may_export = true;
  if (KNOWS(ops, most_chunks)) chunks->most = ops->most_chunks(upstream->self);
  chunks->items = services->host_allocate(services, MAX_CHUNKS * sizeof *chunks->items);
  return chunks->items
             ? HIPMM_OK
             : services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for the pool's chunks", 0, 0, 0);
}

/* No later call could try again, so each call that fails is repeated once. */
static void chunks_close_chunk(struct chunks *chunks, uint32_t id)
{
  const struct chunk *chunk = chunk_of(chunks, id);
  chunks_tell_place(chunks, id, false);
  while (chunk->mappings &&
         (!chunks_remove_mapping(chunks, id, chunk->mappings) || !chunks_remove_mapping(chunks, id, chunk->mappings)))
    continue;
  if (!chunk->mappings && chunks_destroy(chunks, id)) chunks_destroy(chunks, id);
}

void chunks_close(struct chunks *chunks)
{
  const struct hipmm_services *services = chunks->services;
  for (uint32_t id = 1; chunks->items && id < chunks->count; id++)
    if (chunk_of(chunks, id)->granules) chunks_close_chunk(chunks, id);
  addresses_close(&chunks->addresses);
  services->host_free(services, chunks->items, MAX_CHUNKS * sizeof *chunks->items);
}
