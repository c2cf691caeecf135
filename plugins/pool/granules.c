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
  size_t n = range.bytes / granules->granule_bytes;
  void *address;
  enum hipmm_status status = granules->mapping->reserve(granules->upstream->self, range.bytes, &address);
  if (status) return status;
  range.start = (uintptr_t)address;
  range.pieces = services->host_allocate(services, n * sizeof *range.pieces);
  range.backed = services->host_allocate(services, n / 8 + sizeof *range.backed);
  if (!range.pieces || !range.backed || !heap_add_region(heap, range.start, range.bytes, (uint32_t)n, STREAM_CLEAN)) {
    services->host_free(services, range.pieces, n * sizeof *range.pieces);
    services->host_free(services, range.backed, n / 8 + sizeof *range.backed);
    granules->mapping->unreserve(granules->upstream->self, address, range.bytes);
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to manage {0:bytes} of addresses",
                            range.bytes, 0, 0);
  }
  granules->ranges[granules->n_ranges++] = range;
  return HIPMM_OK;
}

static const struct range *range_of(const struct granules *granules, uint64_t address)
{
  const struct range *range = granules->ranges;
  while (address - range->start >= range->bytes) range++; /* every block lies in a range */
  return range;
}

/* Notes what lies under `address`: a piece, or NULL. */
static void note_piece(struct granules *granules, uint64_t address, void *piece)
{
  const struct range *range = range_of(granules, address);
  uint64_t g = (address - range->start) / granules->granule_bytes;
  range->pieces[g] = piece;
  if (piece)
    range->backed[g / 64] |= 1ull << g % 64;
  else
    range->backed[g / 64] &= ~(1ull << g % 64);
}

/* The address of the last granule in [start, end) whether it has memory or not, as asked; `end` if there is none. Both
 * are multiples of the granule. */
static uint64_t last_granule(const struct granules *granules, uint64_t start, uint64_t end, bool backed)
{
  const struct range *range = range_of(granules, start);
  uint64_t first = (start - range->start) / granules->granule_bytes,
           stop = (end - range->start) / granules->granule_bytes;
  while (stop > first) {
    uint64_t word = (stop - 1) / 64, bits = backed ? range->backed[word] : ~range->backed[word];
    bits &= ~0ull >> (63 - (stop - 1) % 64);
    uint64_t found = word * 64 + 63 - (bits ? (uint64_t)__builtin_clzll(bits) : 63);
    if (bits) return found >= first ? range->start + found * granules->granule_bytes : end;
    stop = word * 64;
  }
  return end;
}

static bool has_memory(const void *provider, uint64_t start, uint64_t end)
{
  const struct granules *granules = provider;
  start = round_down(start, granules->granule_bytes);
  end = round_up(end, granules->granule_bytes);
  return last_granule(granules, start, end, false) == end;
}

enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
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
  granules->granule_bytes = heap->blocks.granule_bytes = granule_bytes;
  heap->has_memory = has_memory;
  heap->provider = granules;
  granules->maximum_bytes = maximum_bytes;
  granules->range_bytes = range_bytes_for(services, granule_bytes);
  return HIPMM_OK;
}

/* ---- Single granules ---- */

static enum hipmm_status map(struct granules *granules, uint64_t address, void *piece)
{
  enum hipmm_status status =
      granules->mapping->map(granules->upstream->self, (void *)(uintptr_t)address, granules->granule_bytes, piece);
  if (!status) note_piece(granules, address, piece);
  return status;
}

static enum hipmm_status unmap(struct granules *granules, uint64_t address, void **piece_out)
{
  const struct range *range = range_of(granules, address);
  void *piece = range->pieces[(address - range->start) / granules->granule_bytes];
  enum hipmm_status status =
      granules->mapping->unmap(granules->upstream->self, (void *)(uintptr_t)address, granules->granule_bytes);
  if (status) return status;
  note_piece(granules, address, NULL);
  *piece_out = piece;
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
    services->host_free(services, range->backed, n / 8 + sizeof *range->backed);
    granules->mapping->unreserve(granules->upstream->self, (void *)(uintptr_t)range->start, range->bytes);
  }
  services->host_free(services, granules->spares, MAX_SPARES * sizeof *granules->spares);
}

/* ---- Idle granules ---- */

/* The whole granules in a block: [*start_out, *end_out). Returns how many of them have memory. */
static uint64_t whole_granules(const struct granules *granules, const struct block *block, uint64_t *start_out,
                               uint64_t *end_out)
{
  uint64_t start = round_up(block->start, granules->granule_bytes);
  uint64_t end = round_down(block->start + block->bytes, granules->granule_bytes);
  if (start >= end) return 0;
  *start_out = start;
  *end_out = end;
  return (end - start) / granules->granule_bytes - block->vacant;
}

/* Takes one idle granule out of the clean block at the highest address that has one: it would be reused last. */
static enum hipmm_status take_idle(struct granules *granules, struct heap *heap, void **piece_out)
{
  const struct free_index *clean = &stream_of(&heap->streams, STREAM_CLEAN)->free;
  for (uint32_t id = BLOCK_NONE; (id = free_index_below(clean, &heap->blocks, id, granules->granule_bytes));) {
    uint64_t start, end;
    struct block *block = block_of(&heap->blocks, id);
    if (!whole_granules(granules, block, &start, &end)) continue;
    enum hipmm_status status = unmap(granules, last_granule(granules, start, end, true), piece_out);
    if (!status) block->vacant++;
    return status;
  }
  return HIPMM_E_OUT_OF_MEMORY;
}

uint64_t granules_pending_idle_bytes(const struct granules *granules, const struct heap *heap)
{
  uint64_t n = 0, start, end;
  for (uint32_t stream = STREAM_FIRST; stream < heap->streams.count; stream++) {
    const struct free_index *free = &stream_of(&heap->streams, stream)->free;
    for (uint32_t id = BLOCK_NONE; (id = free_index_below(free, &heap->blocks, id, granules->granule_bytes));)
      n += whole_granules(granules, block_of(&heap->blocks, id), &start, &end);
  }
  return n * granules->granule_bytes;
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

/* An idle granule of the block itself, behind `end`. */
static enum hipmm_status take_behind(struct granules *granules, struct block *block, uint64_t end, void **piece_out)
{
  uint64_t whole_start, whole_end;
  if (block->stream != STREAM_CLEAN || !whole_granules(granules, block, &whole_start, &whole_end) || end >= whole_end)
    return HIPMM_E_OUT_OF_MEMORY;
  uint64_t address = last_granule(granules, end, whole_end, true);
  if (address == whole_end) return HIPMM_E_OUT_OF_MEMORY;
  enum hipmm_status status = unmap(granules, address, piece_out);
  if (!status) block->vacant++;
  return status;
}

/* A piece to put under `block`, which is in no list, below `end`. */
static enum hipmm_status obtain(struct granules *granules, struct heap *heap, struct block *block, uint64_t end,
                                bool may_create, void **piece_out)
{
  if (granules->n_spares) {
    *piece_out = granules->spares[--granules->n_spares];
    return HIPMM_OK;
  }
  enum hipmm_status status = take_behind(granules, block, end, piece_out);
  if (status) status = take_idle(granules, heap, piece_out);
  if (!status) granules->moves++;
  return status && may_create ? create(granules, piece_out) : status;
}

/* Puts memory under every granule that [start, end) touches, the last first. The block is in no list. */
static enum hipmm_status back(struct granules *granules, struct heap *heap, struct block *block, uint64_t start,
                              uint64_t end, bool may_create)
{
  start = round_down(start, granules->granule_bytes);
  end = round_up(end, granules->granule_bytes);
  for (uint64_t todo = end, address; (address = last_granule(granules, start, todo, false)) != todo; todo = address) {
    void *piece;
    enum hipmm_status status = obtain(granules, heap, block, end, may_create, &piece);
    if (status) return status;
    status = map(granules, address, piece);
    if (status) {
      keep_spare(granules, piece);
      return status;
    }
    block->vacant--;
    if (address == start) break;
  }
  return HIPMM_OK;
}

/* What fits best, in a new range if need be. */
static enum hipmm_status find(struct granules *granules, struct heap *heap, const struct request *request,
                              uint32_t *id_out)
{
  *id_out = heap_fit(heap, request);
  if (*id_out) return HIPMM_OK;
  enum hipmm_status status = reserve(granules, heap, request_room(request));
  if (!status) *id_out = heap_fit(heap, request);
  return status;
}

enum hipmm_status granules_take(struct granules *granules, struct heap *heap, const struct request *request,
                                bool may_create, uint32_t *id_out)
{
  uint32_t id;
  enum hipmm_status status = find(granules, heap, request, &id);
  if (status) return status;
  struct block *block = block_of(&heap->blocks, id);
  heap_unlink(heap, id);
  status = back(granules, heap, block, block->start, heap_start_in(heap, id, request) + request->bytes, may_create);
  heap_link(heap, id);
  if (status) return status;
  id = heap_take(heap, id, request);
  if (id) *id_out = id;
  return id ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

enum hipmm_status granules_fill(struct granules *granules, struct heap *heap, uint64_t bytes)
{
  struct request request = {.bytes = bytes, .alignment = HIPMM_ALIGNMENT, .requested = bytes, .stream = STREAM_CLEAN};
  uint32_t id;
  enum hipmm_status status = granules_take(granules, heap, &request, true, &id);
  if (!status) heap_give(heap, id, STREAM_CLEAN);
  return status;
}
