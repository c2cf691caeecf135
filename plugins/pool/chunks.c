/* SPDX-License-Identifier: MIT */
/* chunks.c: reserving, creating, mapping, and the tables that say what lies where. */
#include "chunks.h"
#include "../../core/base/cancel.h"
#include "../common/sizes.h"

enum { MAX_PIECES = 1 << 20 };

/* Where the device does not tell how much memory it has: more than any has today. */
static const uint64_t UNKNOWN_RANGE_BYTES = 1ull << 40;

/* ---- Ranges ---- */

/* What the pool's device has, whichever is the thread's; false if it does not tell. */
static bool chunks_device_tells(const struct pieces *pieces, size_t *free_bytes_out, size_t *total_bytes_out)
{
  const struct hipmm_services *services = pieces->services;
  int cancel = cancel_forbid();
  int previous = services->enter_device(services);
  int code = services->hip->MemGetInfo(free_bytes_out, total_bytes_out);
  if (code) services->hip->GetLastError();
  services->leave_device(services, previous);
  cancel_allow(cancel);
  return !code;
}

/* Twice the device's memory: fragmentation of addresses costs nothing but addresses. */
static uint64_t chunks_usual_range_bytes(const struct pieces *pieces)
{
  size_t free_bytes, total_bytes;
  if (!chunks_device_tells(pieces, &free_bytes, &total_bytes)) return UNKNOWN_RANGE_BYTES;
  return 2 * (uint64_t)total_bytes + pieces->granule_bytes;
}

static uint64_t chunks_granules_in(const struct pieces *pieces, const struct range *range)
{
  return range->bytes / pieces->granule_bytes;
}

static size_t chunks_bits_bytes(uint64_t granules)
{
  return (granules / 64 + 1) * sizeof(uint64_t);
}

static bool chunks_make_tables(const struct pieces *pieces, struct range *range)
{
  const struct hipmm_services *services = pieces->services;
  uint64_t n = chunks_granules_in(pieces, range);
  range->places = services->host_allocate(services, n * sizeof *range->places);
  range->backed = services->host_allocate(services, chunks_bits_bytes(n));
  range->mapped = services->host_allocate(services, chunks_bits_bytes(n));
  return range->places && range->backed && range->mapped;
}

static void chunks_free_tables(const struct pieces *pieces, const struct range *range)
{
  const struct hipmm_services *services = pieces->services;
  uint64_t n = chunks_granules_in(pieces, range);
  services->host_free(services, range->places, n * sizeof *range->places);
  services->host_free(services, range->backed, chunks_bits_bytes(n));
  services->host_free(services, range->mapped, chunks_bits_bytes(n));
}

/* Halves range->bytes, down to `least_bytes`, until there is room for so many: a process may have a limit on its
 * addresses. */
static enum hipmm_status chunks_reserve(const struct pieces *pieces, uint64_t least_bytes, struct range *range)
{
  void *address;
  enum hipmm_status status;
  for (;;) {
    status = pieces->mapping->reserve(pieces->upstream->self, range->bytes, &address);
    if (!status || range->bytes == least_bytes) break;
    uint64_t half = pieces_round_up(pieces, range->bytes / 2);
    range->bytes = half > least_bytes ? half : least_bytes;
  }
  if (!status) range->start = (uintptr_t)address;
  return status;
}

enum hipmm_status pieces_reserve(struct pieces *pieces, uint64_t bytes, const struct range **range_out)
{
  const struct hipmm_services *services = pieces->services;
  if (pieces->n_ranges == MAX_RANGES) return HIPMM_E_LIMIT;
  const struct range *last = pieces->n_ranges ? &pieces->ranges[pieces->n_ranges - 1] : NULL;
  uint64_t usual = chunks_usual_range_bytes(pieces);
  uint64_t first = last ? last->first + chunks_granules_in(pieces, last) : 1;
  struct range range = {.bytes = pieces_round_up(pieces, bytes > usual ? bytes : usual), .first = (uint32_t)first};
  if (first + chunks_granules_in(pieces, &range) > UINT32_MAX) return HIPMM_E_LIMIT;
  int cancel = cancel_forbid();
  enum hipmm_status status = chunks_reserve(pieces, pieces_round_up(pieces, bytes), &range);
  cancel_allow(cancel);
  if (status) return status;
  if (!chunks_make_tables(pieces, &range)) {
    chunks_free_tables(pieces, &range);
    pieces->mapping->unreserve(pieces->upstream->self, (void *)(uintptr_t)range.start, range.bytes);
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left to manage {0:bytes} of addresses",
                            range.bytes, 0, 0);
  }
  pieces->ranges[pieces->n_ranges] = range;
  *range_out = &pieces->ranges[pieces->n_ranges++];
  return HIPMM_OK;
}

static const struct range *chunks_range_of(const struct pieces *pieces, uint64_t address)
{
  const struct range *range = pieces->ranges;
  while (address - range->start >= range->bytes) range++; /* every block lies in a range */
  return range;
}

static uint64_t chunks_last_bit(const struct pieces *pieces, const struct range *range, const uint64_t *words,
                                uint64_t flip, uint64_t start, uint64_t end)
{
  uint64_t first = (start - range->start) / pieces->granule_bytes, stop = (end - range->start) / pieces->granule_bytes;
  while (stop > first) {
    uint64_t word = (stop - 1) / 64, bits = words[word] ^ flip;
    bits &= ~0ull >> (63 - (stop - 1) % 64);
    uint64_t found = word * 64 + 63 - (bits ? (uint64_t)__builtin_clzll(bits) : 63);
    if (bits) return found >= first ? range->start + found * pieces->granule_bytes : end;
    stop = word * 64;
  }
  return end;
}

uint64_t pieces_first(const struct pieces *pieces, uint64_t start, uint64_t end, bool backed)
{
  const struct range *range = chunks_range_of(pieces, start);
  uint64_t granule = (start - range->start) / pieces->granule_bytes,
           stop = (end - range->start) / pieces->granule_bytes;
  while (granule < stop) {
    uint64_t bits = (range->backed[granule / 64] ^ (backed ? 0 : ~0ull)) & ~0ull << granule % 64;
    granule = granule / 64 * 64 + (bits ? (uint64_t)__builtin_ctzll(bits) : 64);
    if (bits) break;
  }
  return granule < stop ? range->start + granule * pieces->granule_bytes : end;
}

uint64_t pieces_last(const struct pieces *pieces, uint64_t start, uint64_t end, bool backed)
{
  const struct range *range = chunks_range_of(pieces, start);
  return chunks_last_bit(pieces, range, range->backed, backed ? 0 : ~0ull, start, end);
}

uint32_t pieces_vacant(const struct pieces *pieces, uint64_t start, uint64_t end)
{
  uint64_t vacant = 0;
  for (uint64_t at = start; at < end;) {
    at = pieces_first(pieces, at, end, false);
    uint64_t stop = at < end ? pieces_first(pieces, at, end, true) : end;
    vacant += stop - at;
    at = stop;
  }
  return (uint32_t)(vacant / pieces->granule_bytes);
}

/* ---- Places ---- */

static bool chunks_bit(const uint64_t *words, uint64_t granule)
{
  return words[granule / 64] >> granule % 64 & 1;
}

static void chunks_set_bits(uint64_t *words, uint64_t first, uint64_t n, bool value)
{
  for (uint64_t granule = first; granule < first + n; granule++) {
    if (value)
      words[granule / 64] |= 1ull << granule % 64;
    else
      words[granule / 64] &= ~(1ull << granule % 64);
  }
}

static const struct range *chunks_range_of_place(const struct pieces *pieces, uint32_t place)
{
  const struct range *range = pieces->ranges;
  while (place - range->first >= chunks_granules_in(pieces, range)) range++;
  return range;
}

static struct place *chunks_place_of(const struct pieces *pieces, uint32_t place)
{
  const struct range *range = chunks_range_of_place(pieces, place);
  return &range->places[place - range->first];
}

const struct place *pieces_place(const struct pieces *pieces, uint32_t place)
{
  return chunks_place_of(pieces, place);
}

static uint32_t chunks_place_at(const struct pieces *pieces, uint64_t address)
{
  const struct range *range = chunks_range_of(pieces, address);
  return range->first + (uint32_t)((address - range->start) / pieces->granule_bytes);
}

static uint64_t chunks_address_of(const struct pieces *pieces, uint32_t place)
{
  const struct range *range = chunks_range_of_place(pieces, place);
  return range->start + (place - range->first) * pieces->granule_bytes;
}

uint64_t piece_address(const struct pieces *pieces, uint32_t id)
{
  return chunks_address_of(pieces, piece_of(pieces, id)->home);
}

uint32_t pieces_at(const struct pieces *pieces, uint64_t address, uint64_t *begin_out)
{
  const struct range *range = chunks_range_of(pieces, address);
  uint64_t granule = (address - range->start) / pieces->granule_bytes;
  if (!chunks_bit(range->mapped, granule)) return PIECE_NONE;
  while (!range->places[granule].piece) granule--;
  *begin_out = range->start + granule * pieces->granule_bytes;
  return range->places[granule].piece;
}

bool pieces_is_place(const struct pieces *pieces, uint32_t id, uint64_t address)
{
  return chunks_place_of(pieces, chunks_place_at(pieces, address))->piece == id;
}

static void chunks_note(const struct pieces *pieces, uint32_t place, uint64_t granules, bool mapped)
{
  const struct range *range = chunks_range_of_place(pieces, place);
  chunks_set_bits(range->mapped, place - range->first, granules, mapped);
}

static void chunks_set_home(struct pieces *pieces, uint32_t id, uint32_t place)
{
  struct piece *piece = piece_of(pieces, id);
  const struct range *range = chunks_range_of_place(pieces, place ? place : piece->home);
  chunks_set_bits(range->backed, (place ? place : piece->home) - range->first, piece->granules, place != 0);
  piece->home = place;
}

static enum hipmm_status chunks_map(struct pieces *pieces, uint32_t id, uint32_t place)
{
  struct piece *piece = piece_of(pieces, id);
  void *address = (void *)(uintptr_t)chunks_address_of(pieces, place);
  int cancel = cancel_forbid();
  enum hipmm_status status =
      pieces->mapping->map(pieces->upstream->self, address, piece_bytes(pieces, id), piece->handle);
  cancel_allow(cancel);
  if (status) return status;
  *chunks_place_of(pieces, place) = (struct place){.piece = id, .next = piece->places};
  piece->places = place;
  chunks_note(pieces, place, piece->granules, true);
  return HIPMM_OK;
}

static enum hipmm_status chunks_unmap(struct pieces *pieces, uint32_t id, uint32_t place)
{
  struct piece *piece = piece_of(pieces, id);
  void *address = (void *)(uintptr_t)chunks_address_of(pieces, place);
  int cancel = cancel_forbid();
  enum hipmm_status status = pieces->mapping->unmap(pieces->upstream->self, address, piece_bytes(pieces, id));
  cancel_allow(cancel);
  if (status) return status;
  uint32_t *link = &piece->places;
  while (*link != place) link = &chunks_place_of(pieces, *link)->next;
  *link = chunks_place_of(pieces, place)->next;
  *chunks_place_of(pieces, place) = (struct place){0};
  chunks_note(pieces, place, piece->granules, false);
  return HIPMM_OK;
}

static uint64_t chunks_last_mapped(const struct pieces *pieces, uint64_t start, uint64_t end)
{
  const struct range *range = chunks_range_of(pieces, start);
  return chunks_last_bit(pieces, range, range->mapped, 0, start, end);
}

uint32_t pieces_stale(const struct pieces *pieces, uint64_t start, uint64_t end)
{
  uint64_t last = start < end ? chunks_last_mapped(pieces, start, end) : end, begin;
  if (last == end) return 0;
  pieces_at(pieces, last, &begin);
  return chunks_place_at(pieces, begin);
}

enum hipmm_status pieces_unmap(struct pieces *pieces, uint32_t place)
{
  return chunks_unmap(pieces, pieces_place(pieces, place)->piece, place);
}

uint32_t piece_next_stale(const struct pieces *pieces, uint32_t id, uint32_t place)
{
  const struct piece *piece = piece_of(pieces, id);
  uint32_t next = place ? chunks_place_of(pieces, place)->next : piece->places;
  return next && next == piece->home ? chunks_place_of(pieces, next)->next : next;
}

/* ---- Single pieces ---- */

enum hipmm_status piece_put(struct pieces *pieces, uint32_t id, uint64_t address)
{
  uint32_t place = chunks_place_at(pieces, address);
  enum hipmm_status status = chunks_place_of(pieces, place)->piece == id ? HIPMM_OK : chunks_map(pieces, id, place);
  if (!status) chunks_set_home(pieces, id, place);
  return status;
}

enum hipmm_status piece_take(struct pieces *pieces, uint32_t id, uint32_t stream, uint64_t epoch)
{
  struct place *place = chunks_place_of(pieces, piece_of(pieces, id)->home);
  if (!pieces->may_alias) {
    enum hipmm_status status = chunks_unmap(pieces, id, piece_of(pieces, id)->home);
    if (status) return status;
  } else {
    place->stream = stream;
    place->epoch = epoch;
  }
  chunks_set_home(pieces, id, 0);
  return HIPMM_OK;
}

static uint32_t chunks_unused_id(struct pieces *pieces)
{
  uint32_t id = pieces->unused;
  if (id)
    pieces->unused = piece_of(pieces, id)->next;
  else if (pieces->count < MAX_PIECES)
    id = pieces->count++;
  return id;
}

static void chunks_drop_id(struct pieces *pieces, uint32_t id)
{
  *piece_of(pieces, id) = (struct piece){.next = pieces->unused};
  pieces->unused = id;
}

/* What the maximum allows beyond what is held. */
static uint64_t chunks_room_bytes(const struct pieces *pieces)
{
  return sizes_room(pieces->maximum_bytes, pieces->bytes);
}

static bool chunks_device_has(const struct pieces *pieces, uint64_t bytes)
{
  size_t free_bytes, total_bytes;
  return chunks_device_tells(pieces, &free_bytes, &total_bytes) && free_bytes >= bytes;
}

/* A new piece of just this size, that lies nowhere. */
static enum hipmm_status chunks_create(struct pieces *pieces, uint64_t granules, uint32_t *id_out)
{
  void *handle;
  uint32_t id = chunks_unused_id(pieces);
  if (!id) return HIPMM_E_LIMIT;
  int cancel = cancel_forbid();
  enum hipmm_status status = pieces->mapping->create(pieces->upstream->self, granules * pieces->granule_bytes, &handle);
  cancel_allow(cancel);
  if (status) {
    chunks_drop_id(pieces, id);
    return status;
  }
  *piece_of(pieces, id) = (struct piece){.handle = handle, .granules = (uint32_t)granules};
  pieces->bytes += piece_bytes(pieces, id);
  *id_out = id;
  return HIPMM_OK;
}

static void chunks_note_peak(struct pieces *pieces)
{
  if (pieces->bytes > pieces->peak_bytes) pieces->peak_bytes = pieces->bytes;
}

/* The driver may count as used what it would free for us: so what it says it has not is asked for in one piece. */
enum hipmm_status pieces_expect(struct pieces *pieces, uint64_t bytes)
{
  uint32_t id;
  bytes = pieces_round_up(pieces, bytes);
  if (bytes > chunks_room_bytes(pieces)) return HIPMM_E_LIMIT;
  if (chunks_device_has(pieces, bytes)) return HIPMM_OK;
  enum hipmm_status status = chunks_create(pieces, bytes / pieces->granule_bytes, &id);
  if (!status) status = piece_destroy(pieces, id);
  chunks_note_peak(pieces);
  return status;
}

enum hipmm_status piece_create(struct pieces *pieces, uint64_t granules, uint32_t *id_out)
{
  uint64_t room = chunks_room_bytes(pieces) / pieces->granule_bytes;
  if (granules > room) granules = room;
  enum hipmm_status status = HIPMM_E_LIMIT;
  for (; granules; granules /= 2) {
    status = chunks_create(pieces, granules, id_out);
    if (status != HIPMM_E_OUT_OF_MEMORY) break;
  }
  chunks_note_peak(pieces);
  return status;
}

void piece_keep_spare(struct pieces *pieces, uint32_t id)
{
  piece_of(pieces, id)->next = pieces->spares;
  pieces->spares = id;
}

uint32_t piece_take_spare(struct pieces *pieces, uint64_t granules)
{
  for (uint32_t *link = &pieces->spares; *link; link = &piece_of(pieces, *link)->next) {
    uint32_t id = *link;
    if (piece_of(pieces, id)->granules > granules) continue;
    *link = piece_of(pieces, id)->next;
    return id;
  }
  return PIECE_NONE;
}

enum hipmm_status piece_destroy(struct pieces *pieces, uint32_t id)
{
  struct piece *piece = piece_of(pieces, id);
  enum hipmm_status status = HIPMM_OK;
  while (!status && piece->places) status = chunks_unmap(pieces, id, piece->places);
  int cancel = cancel_forbid();
  if (!status) status = pieces->mapping->destroy(pieces->upstream->self, piece->handle, piece_bytes(pieces, id));
  cancel_allow(cancel);
  if (status) {
    piece_keep_spare(pieces, id);
    return status;
  }
  pieces->bytes -= piece_bytes(pieces, id);
  chunks_drop_id(pieces, id);
  return HIPMM_OK;
}

/* ---- Life ---- */

/* Whether the upstream was built when there was such a member, and has it. */
#define KNOWS(mapping, member) \
  ((mapping)->struct_size >= offsetof(struct hipmm_mapping, member) + sizeof(mapping)->member && (mapping)->member)

const char *pieces_doubt(const struct hipmm_resource *upstream)
{
  const struct hipmm_mapping *mapping = upstream->ops->mapping;
  return mapping && KNOWS(mapping, discouraged_reason) ? mapping->discouraged_reason(upstream->self) : NULL;
}

enum hipmm_status pieces_open(struct pieces *pieces, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, uint64_t maximum_bytes)
{
  size_t granule_bytes;
  const struct hipmm_mapping *mapping = upstream->ops->mapping;
  *pieces = (struct pieces){.services = services, .upstream = upstream, .mapping = mapping, .count = PIECE_NONE + 1};
  if (!mapping) return HIPMM_E_NOT_SUPPORTED;
  enum hipmm_status status = mapping->granularity(upstream->self, &granule_bytes);
  if (status) return status;
  if (maximum_bytes < granule_bytes) return HIPMM_E_LIMIT;
  pieces->granule_bytes = granule_bytes;
  pieces->maximum_bytes = pieces_round_down(pieces, maximum_bytes);
  if (KNOWS(mapping, may_alias)) pieces->may_alias = mapping->may_alias(upstream->self);
  if (KNOWS(mapping, is_slow)) pieces->is_slow = mapping->is_slow(upstream->self);
  pieces->items = services->host_allocate(services, MAX_PIECES * sizeof *pieces->items);
  return pieces->items ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

/* Nobody comes after us who could try again, so what fails is tried once more. */
static void chunks_close_piece(struct pieces *pieces, uint32_t id)
{
  struct piece *piece = piece_of(pieces, id);
  uint64_t bytes = piece_bytes(pieces, id);
  while (piece->places && (!chunks_unmap(pieces, id, piece->places) || !chunks_unmap(pieces, id, piece->places)))
    continue;
  if (piece->places) return;
  if (pieces->mapping->destroy(pieces->upstream->self, piece->handle, bytes))
    pieces->mapping->destroy(pieces->upstream->self, piece->handle, bytes);
}

void pieces_close(struct pieces *pieces)
{
  const struct hipmm_services *services = pieces->services;
  for (uint32_t id = 1; pieces->items && id < pieces->count; id++)
    if (piece_of(pieces, id)->granules) chunks_close_piece(pieces, id);
  for (uint32_t i = 0; i < pieces->n_ranges; i++) {
    void *address = (void *)(uintptr_t)pieces->ranges[i].start;
    uint64_t bytes = pieces->ranges[i].bytes;
    chunks_free_tables(pieces, &pieces->ranges[i]);
    if (pieces->mapping->unreserve(pieces->upstream->self, address, bytes))
      pieces->mapping->unreserve(pieces->upstream->self, address, bytes);
  }
  services->host_free(services, pieces->items, MAX_PIECES * sizeof *pieces->items);
}
