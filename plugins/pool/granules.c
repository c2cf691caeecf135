/* SPDX-License-Identifier: MIT */
/* granules.c: mapping, moving and unmapping granules. Driver calls cost microseconds: this is the path of growth, never
 * of reuse. */
#include "granules.h"

enum { MAX_SPARES = 1 << 16 };

static uint64_t round_up(uint64_t bytes, uint64_t multiple)
{
  return (bytes + multiple - 1) / multiple * multiple;
}

static uint64_t round_down(uint64_t bytes, uint64_t multiple)
{
  return bytes / multiple * multiple;
}

/* ---- Ranges ---- */

/* Twice the device's memory: fragmentation of addresses costs nothing but addresses. */
static uint64_t range_bytes_for(const struct hipmm_services *services, uint64_t granule_bytes)
{
  size_t free_bytes, total_bytes = 0;
  if (services->hip->MemGetInfo(&free_bytes, &total_bytes)) services->hip->GetLastError();
  return round_up(2 * (uint64_t)total_bytes + granule_bytes, granule_bytes);
}

static enum hipmm_status reserve(struct granules *granules, struct heap *heap, uint64_t at_least)
{
  const struct hipmm_services *services = granules->services;
  if (granules->n_ranges == MAX_RANGES) return HIPMM_E_LIMIT;
  struct range range = {.bytes = granules->range_bytes};
  if (range.bytes < at_least) range.bytes = round_up(at_least, granules->granule_bytes);
  size_t table_bytes = range.bytes / granules->granule_bytes * sizeof *range.pieces;
  void *address;
  enum hipmm_status status = granules->mapping->reserve(granules->upstream->self, range.bytes, &address);
  if (status) return status;
  range.start = (uintptr_t)address;
  range.pieces = services->host_allocate(services, table_bytes);
  if (!range.pieces || !heap_add_region(heap, range.start, range.bytes, STREAM_VACANT)) {
    services->host_free(services, range.pieces, table_bytes);
    granules->mapping->unreserve(granules->upstream->self, address, range.bytes);
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to manage {0:bytes} of addresses",
                            range.bytes, 0, 0);
  }
  granules->ranges[granules->n_ranges++] = range;
  return HIPMM_OK;
}

/* Where the piece under `address` is noted. */
static void **piece_at(const struct granules *granules, uint64_t address)
{
  for (uint32_t i = 0; i < granules->n_ranges; i++) {
    const struct range *range = &granules->ranges[i];
    if (address - range->start < range->bytes)
      return &range->pieces[(address - range->start) / granules->granule_bytes];
  }
  return NULL; /* not reached: every block lies in a range */
}

enum hipmm_status granules_open(struct granules *granules, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, uint64_t maximum_bytes)
{
  size_t granule_bytes;
  const struct hipmm_mapping *mapping = upstream->ops->mapping;
  *granules = (struct granules){.services = services, .upstream = upstream, .mapping = mapping};
  if (!mapping) return HIPMM_E_NOT_SUPPORTED;
  enum hipmm_status status = mapping->granularity(upstream->self, &granule_bytes);
  if (status) return status;
  granules->spares = services->host_allocate(services, MAX_SPARES * sizeof *granules->spares);
  if (!granules->spares) return HIPMM_E_OUT_OF_MEMORY;
  granules->granule_bytes = granule_bytes;
  granules->maximum_bytes = maximum_bytes;
  granules->range_bytes = range_bytes_for(services, granule_bytes);
  return HIPMM_OK;
}

/* ---- Single granules ---- */

static enum hipmm_status map(struct granules *granules, uint64_t address, void *piece)
{
  enum hipmm_status status =
      granules->mapping->map(granules->upstream->self, (void *)(uintptr_t)address, granules->granule_bytes, piece);
  if (!status) *piece_at(granules, address) = piece;
  return status;
}

static enum hipmm_status unmap(struct granules *granules, uint64_t address, void **piece_out)
{
  void **piece = piece_at(granules, address);
  enum hipmm_status status =
      granules->mapping->unmap(granules->upstream->self, (void *)(uintptr_t)address, granules->granule_bytes);
  if (status) return status;
  *piece_out = *piece;
  *piece = NULL;
  return HIPMM_OK;
}

static enum hipmm_status create(struct granules *granules, void **piece_out)
{
  if (granules->bytes + granules->granule_bytes > granules->maximum_bytes) return HIPMM_E_LIMIT;
  enum hipmm_status status = granules->mapping->create(granules->upstream->self, granules->granule_bytes, piece_out);
  if (status) return status;
  granules->bytes += granules->granule_bytes;
  if (granules->bytes > granules->peak_bytes) granules->peak_bytes = granules->bytes;
  return HIPMM_OK;
}

/* With no room left the piece is lost to us, though the driver keeps it until the process ends. */
static void keep_spare(struct granules *granules, void *piece)
{
  if (granules->n_spares < MAX_SPARES) granules->spares[granules->n_spares++] = piece;
}

static enum hipmm_status destroy(struct granules *granules, void *piece)
{
  enum hipmm_status status = granules->mapping->destroy(granules->upstream->self, piece, granules->granule_bytes);
  if (status)
    keep_spare(granules, piece);
  else
    granules->bytes -= granules->granule_bytes;
  return status;
}

void granules_close(struct granules *granules)
{
  const struct hipmm_services *services = granules->services;
  for (uint32_t i = granules->n_spares; i-- > 0;) {
    granules->n_spares = i;
    if (destroy(granules, granules->spares[i])) break; /* the driver is beyond help */
  }
  for (uint32_t i = 0; i < granules->n_ranges; i++) {
    struct range *range = &granules->ranges[i];
    uint64_t n = range->bytes / granules->granule_bytes;
    for (uint64_t g = 0; g < n && granules->bytes; g++) {
      void *piece;
      if (range->pieces[g] && !unmap(granules, range->start + g * granules->granule_bytes, &piece))
        destroy(granules, piece);
    }
    services->host_free(services, range->pieces, n * sizeof *range->pieces);
    granules->mapping->unreserve(granules->upstream->self, (void *)(uintptr_t)range->start, range->bytes);
  }
  services->host_free(services, granules->spares, MAX_SPARES * sizeof *granules->spares);
}

/* ---- Idle granules ---- */

/* The whole granules in a block: [*start_out, *end_out), empty when start >= end. */
static void whole_granules(const struct granules *granules, const struct block *block, uint64_t *start_out,
                           uint64_t *end_out)
{
  *start_out = round_up(block->start, granules->granule_bytes);
  *end_out = round_down(block->start + block->bytes, granules->granule_bytes);
}

/* The largest clean block that holds a whole granule, which then ends at *end_out: best fit would reuse it last. */
static uint32_t find_idle(const struct granules *granules, const struct heap *heap, uint64_t *end_out)
{
  const struct free_index *clean = &stream_of(&heap->streams, STREAM_CLEAN)->free;
  uint64_t start;
  for (uint32_t id = BLOCK_NONE; (id = free_index_next(clean, &heap->blocks, id, granules->granule_bytes));) {
    whole_granules(granules, block_of(&heap->blocks, id), &start, end_out);
    if (start < *end_out) return id;
  }
  return BLOCK_NONE;
}

/* Takes one idle granule out. The records come first: memory that a block says it has must be there. */
static enum hipmm_status take_idle(struct granules *granules, struct heap *heap, void **piece_out)
{
  uint64_t end;
  uint32_t id = find_idle(granules, heap, &end);
  if (!id) return HIPMM_E_OUT_OF_MEMORY;
  uint64_t address = end - granules->granule_bytes;
  uint32_t vacant = heap_vacate(heap, id, address, granules->granule_bytes);
  if (!vacant) return HIPMM_E_OUT_OF_MEMORY;
  enum hipmm_status status = unmap(granules, address, piece_out);
  if (status) heap_occupy(heap, vacant, address, granules->granule_bytes, STREAM_CLEAN);
  return status;
}

uint64_t granules_pending_idle_bytes(const struct granules *granules, const struct heap *heap)
{
  uint64_t bytes = 0, start, end;
  for (uint32_t stream = STREAM_FIRST; stream < heap->streams.count; stream++) {
    const struct free_index *free = &stream_of(&heap->streams, stream)->free;
    for (uint32_t id = BLOCK_NONE; (id = free_index_next(free, &heap->blocks, id, granules->granule_bytes));) {
      whole_granules(granules, block_of(&heap->blocks, id), &start, &end);
      if (start < end) bytes += end - start;
    }
  }
  return bytes;
}

enum hipmm_status granules_release_idle(struct granules *granules, struct heap *heap, uint64_t keep_bytes)
{
  while (granules->bytes > keep_bytes) {
    void *piece;
    enum hipmm_status status = take_idle(granules, heap, &piece);
    if (status == HIPMM_E_OUT_OF_MEMORY) return HIPMM_OK; /* nothing idle is left */
    if (!status) status = destroy(granules, piece);
    if (status) return status;
  }
  return HIPMM_OK;
}

/* ---- Growing ---- */

static enum hipmm_status obtain(struct granules *granules, struct heap *heap, void **piece_out)
{
  if (granules->n_spares) {
    *piece_out = granules->spares[--granules->n_spares];
    return HIPMM_OK;
  }
  enum hipmm_status status = take_idle(granules, heap, piece_out);
  if (!status) granules->moves++;
  return status ? create(granules, piece_out) : HIPMM_OK;
}

/* Puts a granule under the first addresses of a vacant block, which become ready for `stream`. */
static enum hipmm_status back(struct granules *granules, struct heap *heap, uint64_t address, uint32_t stream)
{
  void *piece;
  enum hipmm_status status = obtain(granules, heap, &piece);
  if (status) return status;
  status = map(granules, address, piece);
  if (!status && heap_occupy(heap, heap_vacant_at(heap, address), address, granules->granule_bytes, stream))
    return HIPMM_OK;
  if (status)
    keep_spare(granules, piece);
  else if (!unmap(granules, address, &piece))
    keep_spare(granules, piece);
  return status ? status : HIPMM_E_OUT_OF_MEMORY;
}

static enum hipmm_status back_all(struct granules *granules, struct heap *heap, uint64_t start, uint64_t bytes,
                                  uint32_t stream)
{
  for (uint64_t done = 0; done < bytes; done += granules->granule_bytes) {
    enum hipmm_status status = back(granules, heap, start + done, stream);
    if (status) return status;
  }
  return HIPMM_OK;
}

/* A vacant block of at least `bytes`, in a new range if need be. */
static enum hipmm_status find_vacant(struct granules *granules, struct heap *heap, uint64_t bytes, uint32_t *id_out)
{
  const struct free_index *vacant = &stream_of(&heap->streams, STREAM_VACANT)->free;
  *id_out = free_index_fit(vacant, &heap->blocks, bytes);
  if (*id_out) return HIPMM_OK;
  enum hipmm_status status = reserve(granules, heap, bytes);
  if (!status) *id_out = free_index_fit(vacant, &heap->blocks, bytes);
  return status;
}

enum hipmm_status granules_grow(struct granules *granules, struct heap *heap, const struct request *request)
{
  uint32_t id;
  uint64_t bytes = request_room(request);
  enum hipmm_status status = find_vacant(granules, heap, round_up(bytes, granules->granule_bytes), &id);
  if (status) return status;
  uint64_t start = block_of(&heap->blocks, id)->start;
  uint64_t extension = heap_claim_before(heap, id, request->stream);
  uint64_t missing = extension < bytes ? bytes - extension : 1;
  return back_all(granules, heap, start, round_up(missing, granules->granule_bytes), request->stream);
}

enum hipmm_status granules_fill(struct granules *granules, struct heap *heap, uint64_t bytes)
{
  uint32_t id;
  bytes = round_up(bytes, granules->granule_bytes);
  enum hipmm_status status = find_vacant(granules, heap, bytes, &id);
  if (status) return status;
  return back_all(granules, heap, block_of(&heap->blocks, id)->start, bytes, STREAM_CLEAN);
}
