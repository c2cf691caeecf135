/* SPDX-License-Identifier: MIT */
/* pieces.c: reserving, creating, mapping, and the tables that say what lies where. */
#include "pieces.h"

enum { MAX_SPARES = 1 << 16 };

/* Where the device does not tell how much memory it has: more than any has today. */
static const uint64_t UNKNOWN_RANGE_BYTES = 1ull << 40;

/* ---- Ranges ---- */

/* Twice the device's memory: fragmentation of addresses costs nothing but addresses. */
static uint64_t usual_range_bytes(const struct pieces *pieces)
{
  const struct hipmm_hip *hip = pieces->services->hip;
  size_t free_bytes, total_bytes;
  if (!hip->MemGetInfo(&free_bytes, &total_bytes)) return 2 * (uint64_t)total_bytes + pieces->granule_bytes;
  hip->GetLastError();
  return UNKNOWN_RANGE_BYTES;
}

static size_t backed_bytes(uint64_t granules)
{
  return (granules / 64 + 1) * sizeof(uint64_t);
}

static void free_tables(const struct pieces *pieces, const struct range *range)
{
  uint64_t n = range->bytes / pieces->granule_bytes;
  pieces->services->host_free(pieces->services, range->pieces, n * sizeof *range->pieces);
  pieces->services->host_free(pieces->services, range->backed, backed_bytes(n));
}

enum hipmm_status pieces_reserve(struct pieces *pieces, uint64_t bytes, const struct range **range_out)
{
  const struct hipmm_services *services = pieces->services;
  if (pieces->n_ranges == MAX_RANGES) return HIPMM_E_LIMIT;
  uint64_t usual = usual_range_bytes(pieces);
  struct range range = {.bytes = pieces_round_up(pieces, bytes > usual ? bytes : usual)};
  void *address;
  enum hipmm_status status = pieces->mapping->reserve(pieces->upstream->self, range.bytes, &address);
  if (status) return status;
  uint64_t n = range.bytes / pieces->granule_bytes;
  range.start = (uintptr_t)address;
  range.pieces = services->host_allocate(services, n * sizeof *range.pieces);
  range.backed = services->host_allocate(services, backed_bytes(n));
  if (!range.pieces || !range.backed) {
    free_tables(pieces, &range);
    pieces->mapping->unreserve(pieces->upstream->self, address, range.bytes);
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to manage {0:bytes} of addresses",
                            range.bytes, 0, 0);
  }
  pieces->ranges[pieces->n_ranges] = range;
  *range_out = &pieces->ranges[pieces->n_ranges++];
  return HIPMM_OK;
}

static const struct range *range_of(const struct pieces *pieces, uint64_t address)
{
  const struct range *range = pieces->ranges;
  while (address - range->start >= range->bytes) range++; /* every block lies in a range */
  return range;
}

uint64_t pieces_last(const struct pieces *pieces, uint64_t start, uint64_t end, bool backed)
{
  const struct range *range = range_of(pieces, start);
  uint64_t first = (start - range->start) / pieces->granule_bytes, stop = (end - range->start) / pieces->granule_bytes;
  while (stop > first) {
    uint64_t word = (stop - 1) / 64, bits = backed ? range->backed[word] : ~range->backed[word];
    bits &= ~0ull >> (63 - (stop - 1) % 64);
    uint64_t found = word * 64 + 63 - (bits ? (uint64_t)__builtin_clzll(bits) : 63);
    if (bits) return found >= first ? range->start + found * pieces->granule_bytes : end;
    stop = word * 64;
  }
  return end;
}

uint64_t pieces_begin(const struct pieces *pieces, uint64_t address, uint64_t *bytes_out)
{
  const struct range *range = range_of(pieces, address);
  uint64_t granule = (address - range->start) / pieces->granule_bytes;
  while (!range->pieces[granule].granules) granule--;
  *bytes_out = range->pieces[granule].granules * pieces->granule_bytes;
  return range->start + granule * pieces->granule_bytes;
}

/* ---- Single pieces ---- */

/* Notes that `piece` lies at `address`, or that it no longer does. */
static void note(struct pieces *pieces, uint64_t address, struct piece piece, bool backed)
{
  const struct range *range = range_of(pieces, address);
  uint64_t first = (address - range->start) / pieces->granule_bytes;
  range->pieces[first] = backed ? piece : (struct piece){0};
  for (uint64_t granule = first; granule < first + piece.granules; granule++) {
    if (backed)
      range->backed[granule / 64] |= 1ull << granule % 64;
    else
      range->backed[granule / 64] &= ~(1ull << granule % 64);
  }
}

enum hipmm_status piece_map(struct pieces *pieces, uint64_t address, struct piece piece)
{
  enum hipmm_status status = pieces->mapping->map(pieces->upstream->self, (void *)(uintptr_t)address,
                                                  piece.granules * pieces->granule_bytes, piece.handle);
  if (!status) note(pieces, address, piece, true);
  return status;
}

enum hipmm_status piece_unmap(struct pieces *pieces, uint64_t address, struct piece *piece_out)
{
  const struct range *range = range_of(pieces, address);
  struct piece piece = range->pieces[(address - range->start) / pieces->granule_bytes];
  enum hipmm_status status = pieces->mapping->unmap(pieces->upstream->self, (void *)(uintptr_t)address,
                                                    piece.granules * pieces->granule_bytes);
  if (status) return status;
  note(pieces, address, piece, false);
  *piece_out = piece;
  return HIPMM_OK;
}

enum hipmm_status piece_create(struct pieces *pieces, uint64_t granules, struct piece *piece_out)
{
  uint64_t room = (pieces->maximum_bytes - pieces->bytes) / pieces->granule_bytes;
  if (granules > room) granules = room;
  if (!granules) return HIPMM_E_LIMIT;
  struct piece piece = {.granules = (uint32_t)granules};
  uint64_t bytes = granules * pieces->granule_bytes;
  enum hipmm_status status = pieces->mapping->create(pieces->upstream->self, bytes, &piece.handle);
  if (status == HIPMM_E_OUT_OF_MEMORY && granules > 1) return piece_create(pieces, granules / 2, piece_out);
  if (status) return status;
  pieces->bytes += bytes;
  if (pieces->bytes > pieces->peak_bytes) pieces->peak_bytes = pieces->bytes;
  *piece_out = piece;
  return HIPMM_OK;
}

/* With no room left the piece is lost to us, though the driver keeps it until the process ends. */
void piece_keep_spare(struct pieces *pieces, struct piece piece)
{
  if (pieces->n_spares < MAX_SPARES) pieces->spares[pieces->n_spares++] = piece;
}

bool piece_take_spare(struct pieces *pieces, uint64_t granules, struct piece *piece_out)
{
  for (uint32_t i = pieces->n_spares; i-- > 0;) {
    if (pieces->spares[i].granules > granules) continue;
    *piece_out = pieces->spares[i];
    pieces->spares[i] = pieces->spares[--pieces->n_spares];
    return true;
  }
  return false;
}

enum hipmm_status piece_destroy(struct pieces *pieces, struct piece piece)
{
  uint64_t bytes = piece.granules * pieces->granule_bytes;
  enum hipmm_status status = pieces->mapping->destroy(pieces->upstream->self, piece.handle, bytes);
  if (status)
    piece_keep_spare(pieces, piece);
  else
    pieces->bytes -= bytes;
  return status;
}

/* ---- Life ---- */

enum hipmm_status pieces_open(struct pieces *pieces, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, uint64_t maximum_bytes)
{
  size_t granule_bytes;
  const struct hipmm_mapping *mapping = upstream->ops->mapping;
  *pieces = (struct pieces){.services = services, .upstream = upstream, .mapping = mapping};
  if (!mapping) return HIPMM_E_NOT_SUPPORTED;
  enum hipmm_status status = mapping->granularity(upstream->self, &granule_bytes);
  if (status) return status;
  if (maximum_bytes < granule_bytes) return HIPMM_E_LIMIT;
  pieces->granule_bytes = granule_bytes;
  pieces->maximum_bytes = pieces_round_down(pieces, maximum_bytes);
  pieces->spares = services->host_allocate(services, MAX_SPARES * sizeof *pieces->spares);
  return pieces->spares ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

/* Nobody comes after us who could try again, so what fails is tried once more. */
static void close_range(struct pieces *pieces, const struct range *range)
{
  uint64_t n = range->bytes / pieces->granule_bytes;
  void *address = (void *)(uintptr_t)range->start;
  struct piece piece;
  for (uint64_t granule = 0; granule < n && pieces->bytes; granule++) {
    uint64_t begin = range->start + granule * pieces->granule_bytes;
    if (!range->pieces[granule].granules) continue;
    if (!piece_unmap(pieces, begin, &piece) || !piece_unmap(pieces, begin, &piece)) piece_destroy(pieces, piece);
  }
  free_tables(pieces, range);
  if (pieces->mapping->unreserve(pieces->upstream->self, address, range->bytes))
    pieces->mapping->unreserve(pieces->upstream->self, address, range->bytes);
}

void pieces_close(struct pieces *pieces)
{
  for (uint32_t i = 0; i < pieces->n_ranges; i++) close_range(pieces, &pieces->ranges[i]);
  for (uint32_t i = 0, n = pieces->n_spares; i < n; i++) piece_destroy(pieces, pieces->spares[i]);
  pieces->services->host_free(pieces->services, pieces->spares, MAX_SPARES * sizeof *pieces->spares);
}
