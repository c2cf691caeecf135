/* SPDX-License-Identifier: MIT */
/* bump.c: see monotonic.h. */
#include "monotonic.h"

#include "../common/host_array.h"

enum { MOST_CHUNKS = 1 << 16 };

static const size_t chunks_bytes = MOST_CHUNKS * sizeof(struct bump_chunk); /* committed on touch */
static const size_t blocks_bytes = BUMP_MOST_BLOCKS * sizeof(struct bump_block);

/* ---- Allocating ---- */

/* Offset of a new block in a chunk of which `offset` bytes are used; UINT64_MAX if it does not fit. */
static uint64_t bump_fit_in(const struct bump_chunk *chunk, uint64_t offset, uint64_t bytes, uint64_t alignment)
{
  uint64_t at = sizes_round_up(chunk->start + offset, alignment) - chunk->start;
  return at <= chunk->bytes && bytes <= chunk->bytes - at ? at : UINT64_MAX;
}

/* Moves the cursor to the next chunk that fits the block; that chunk changes places with the next one. */
static bool bump_advance(struct bump *bump, uint64_t bytes, uint64_t alignment)
{
  uint32_t next = bump->offset ? bump->cursor + 1 : bump->cursor;
  for (uint32_t i = next; i < bump->n_chunks; i++) {
    struct bump_chunk chunk = bump->chunks[i];
    if (bump_fit_in(&chunk, 0, bytes, alignment) == UINT64_MAX) continue;
    bump->chunks[i] = bump->chunks[next];
    bump->chunks[next] = chunk;
    if (next > bump->cursor) bump->used_bytes += bump->chunks[bump->cursor].bytes;
    bump->cursor = next;
    bump->offset = 0;
    bump->chunks[next].first = bump->n_blocks;
    return true;
  }
  return false;
}

/* ---- Compaction keeps the number of records in proportion to live blocks ---- */

enum { LEAST_COMPACTED = 4096 };

/* Removes the blocks since the last compaction from the address map; live blocks are entered again. */
static void bump_discard_starts(struct bump *bump)
{
  for (uint32_t i = bump->compacted_chunks; i <= bump->cursor; i++) {
    const struct bump_chunk *chunk = &bump->chunks[i];
    address_map_discard(&bump->starts, chunk->start, i < bump->cursor ? chunk->bytes : bump->offset);
  }
  bump->compacted_chunks = bump->cursor;
}

/* Moves the records [first, end) of a chunk to `kept` and following; returns their end. */
static uint32_t bump_compact_records(struct bump *bump, uint32_t first, uint32_t end, uint32_t kept)
{
  for (uint32_t number = first, begin = kept; number < end; number++) {
    const struct bump_block block = bump->blocks[number];
    if (!block.requested && kept > begin && !bump->blocks[kept - 1].requested) continue;
    if (block.requested) address_map_set(&bump->starts, block.start, kept);
    bump->blocks[kept++] = block;
  }
  return kept;
}

/* Gives back the host memory of unused records. */
static void bump_discard_records(struct bump *bump)
{
  if (bump->touched_blocks > bump->n_blocks)
    host_pages_discard(&bump->blocks[bump->n_blocks], (bump->touched_blocks - bump->n_blocks) * sizeof *bump->blocks);
  bump->touched_blocks = bump->n_blocks;
}

static void bump_compact(struct bump *bump)
{
  uint32_t kept = 1, first = 1, n_blocks = bump->n_blocks;
  bump_discard_starts(bump);
  if (bump->touched_blocks < n_blocks) bump->touched_blocks = n_blocks;
  for (uint32_t i = 0; i <= bump->cursor; i++) {
    uint32_t end = i < bump->cursor ? bump->chunks[i + 1].first : n_blocks;
    bump->chunks[i].first = kept;
    kept = bump_compact_records(bump, first, end, kept);
    first = end;
  }
  bump->n_blocks = kept;
  bump->compact_at = kept < BUMP_MOST_BLOCKS / 2 - LEAST_COMPACTED ? 2 * kept + LEAST_COMPACTED : BUMP_MOST_BLOCKS;
  bump_discard_records(bump);
}

uint32_t bump_allocate(struct bump *bump, uint64_t requested, uint64_t alignment, hipmm_stream_t handle)
{
  uint64_t bytes = sizes_round_up(requested, HIPMM_ALIGNMENT), at = UINT64_MAX;
  if (bump->n_blocks >= bump->compact_at) bump_compact(bump);
  if (bump->n_blocks == BUMP_MOST_BLOCKS) return BUMP_NONE;
  if (bump->offset) at = bump_fit_in(&bump->chunks[bump->cursor], bump->offset, bytes, alignment);
  if (at == UINT64_MAX) {
    if (!bump_advance(bump, bytes, alignment)) return BUMP_NONE;
    at = bump_fit_in(&bump->chunks[bump->cursor], 0, bytes, alignment);
  }
  uint32_t number = bump->n_blocks++;
  uint64_t start = bump->chunks[bump->cursor].start + at;
  bump->offset = at + bytes;
  bump->blocks[number] = (struct bump_block){start, requested, handle};
  address_map_set(&bump->starts, start, number);
  bump->live_count++;
  bump->live_bytes += (int64_t)requested;
  return number;
}

uint32_t bump_find(const struct bump *bump, const void *ptr)
{
  uint32_t number = address_map_get(&bump->starts, (uintptr_t)ptr);
  return number < bump->n_blocks && bump->blocks[number].start == (uintptr_t)ptr ? number : BUMP_NONE;
}

bool bump_contains(const struct bump *bump, const void *ptr)
{
  for (uint32_t i = 0; i < bump->n_chunks; i++)
    if ((uintptr_t)ptr - bump->chunks[i].start < bump->chunks[i].bytes) return true;
  return false;
}

void bump_free(struct bump *bump, uint32_t number, hipmm_stream_t handle)
{
  struct bump_block *block = &bump->blocks[number];
  bump->live_count--;
  bump->live_bytes -= (int64_t)block->requested;
  block->requested = 0;
  block->handle = handle;
}

void bump_rewind(struct bump *bump)
{
  if (bump->touched_blocks < bump->n_blocks) bump->touched_blocks = bump->n_blocks;
  bump->cursor = 0;
  bump->offset = 0;
  bump->used_bytes = 0;
  bump->n_blocks = 1;
  bump->compact_at = LEAST_COMPACTED;
  bump->compacted_chunks = 0;
}

/* ---- Chunks ---- */

enum hipmm_status bump_add_chunk(struct bump *bump, uint64_t bytes, hipmm_stream_t handle)
{
  void *ptr = NULL;
  if (bump->n_chunks == MOST_CHUNKS || bytes > bump->maximum_bytes || bump->bytes > bump->maximum_bytes - bytes)
    return HIPMM_E_LIMIT;
  enum hipmm_status status = hipmm_upstream_allocate(bump->upstream, bytes, HIPMM_ALIGNMENT, handle, &ptr);
  if (status) return status;
  if (!address_map_cover(&bump->starts, (uintptr_t)ptr, bytes)) {
    hipmm_upstream_deallocate(bump->upstream, ptr, bytes, HIPMM_ALIGNMENT, handle);
    return bump->services->refuse(bump->services, HIPMM_E_OUT_OF_MEMORY,
                                  "no host memory left for records of {0:bytes} more", bytes, 0, 0);
  }
  bump->chunks[bump->n_chunks++] = (struct bump_chunk){.start = (uintptr_t)ptr, .bytes = bytes};
  bump->bytes += bytes;
  if (bump->bytes > bump->peak_bytes) bump->peak_bytes = bump->bytes;
  bump->services->log(bump->services, HIPMM_LOG_DEBUG, "grew by a chunk of %llu bytes to %llu bytes",
                      (unsigned long long)bytes, (unsigned long long)bump->bytes);
  return HIPMM_OK;
}

/* Bytes of the next chunk: at most what the maximum allows, but at least `needed`. */
static uint64_t bump_step_for(const struct bump *bump, uint64_t needed)
{
  uint64_t room = sizes_headroom(bump->maximum_bytes, bump->bytes);
  uint64_t step = bump->next_bytes;
  if (step > room) step = room / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  return step > needed ? step : needed;
}

static void bump_note_step(struct bump *bump, uint64_t bytes)
{
  double next = (double)bytes * bump->growth_factor;
  if (next > (double)SIZES_MOST_STEP_BYTES)
    next = (double)(bytes > SIZES_MOST_STEP_BYTES ? bytes : SIZES_MOST_STEP_BYTES);
  bump->next_bytes = sizes_round_up((uint64_t)next, HIPMM_ALIGNMENT);
}

enum hipmm_status bump_grow(struct bump *bump, uint64_t requested, uint64_t alignment, hipmm_stream_t handle)
{
  uint64_t needed = sizes_round_up(requested, HIPMM_ALIGNMENT) + (alignment - HIPMM_ALIGNMENT);
  for (uint64_t step = bump_step_for(bump, needed);; step = sizes_smaller_step(step, needed)) {
    enum hipmm_status status = bump_add_chunk(bump, step, handle);
    if (!status && step == bump->next_bytes) bump_note_step(bump, step);
    if (!hipmm_is_out_of_memory(status) || step == needed) return status;
  }
}

static uint32_t bump_touched_chunks(const struct bump *bump)
{
  return bump->offset ? bump->cursor + 1 : bump->cursor;
}

void bump_trim_records(struct bump *bump)
{
  for (uint32_t i = bump_touched_chunks(bump); i < bump->n_chunks; i++)
    address_map_discard(&bump->starts, bump->chunks[i].start, bump->chunks[i].bytes);
  bump_discard_records(bump);
}

static enum hipmm_status bump_release_chunk(struct bump *bump, uint32_t index)
{
  const struct bump_chunk *chunk = &bump->chunks[index];
  enum hipmm_status status =
      hipmm_upstream_deallocate(bump->upstream, (void *)(uintptr_t)chunk->start, chunk->bytes, HIPMM_ALIGNMENT, NULL);
  if (status) return status;
  bump->bytes -= chunk->bytes;
  bump->chunks[index] = bump->chunks[--bump->n_chunks];
  return HIPMM_OK;
}

enum hipmm_status bump_release_untouched(struct bump *bump, uint64_t keep_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  uint32_t touched = bump_touched_chunks(bump);
  for (uint32_t i = bump->n_chunks; i-- > touched;) {
    if (bump->bytes < bump->chunks[i].bytes + keep_bytes) continue;
    enum hipmm_status status = bump_release_chunk(bump, i);
    if (!first) first = status;
  }
  return first;
}

/* ---- Visiting ---- */

static void bump_visit_hole(uint64_t start, uint64_t end, void (*visitor)(void *, const struct hipmm_extent *),
                            void *closure)
{
  const struct hipmm_extent hole = {.ptr = (const void *)(uintptr_t)start,
                                    .bytes = end - start,
                                    .state = HIPMM_EXTENT_FREE,
                                    .flags = HIPMM_EXTENT_BARRIER};
  if (start < end) visitor(closure, &hole);
}

/* The records of a chunk are adjacent. Blocks never merge before all are free. */
static void bump_visit_chunk(const struct bump *bump, uint32_t index,
                             void (*visitor)(void *, const struct hipmm_extent *), void *closure)
{
  const struct bump_chunk *chunk = &bump->chunks[index];
  bool is_touched = index < bump->cursor || (index == bump->cursor && bump->offset);
  uint64_t at = chunk->start, end = chunk->start + chunk->bytes;
  for (uint32_t number = chunk->first; is_touched && number < bump->n_blocks; number++) {
    const struct bump_block *block = &bump->blocks[number];
    if (block->start < chunk->start || block->start >= end) break;
    bump_visit_hole(at, block->start, visitor, closure);
    bool is_last = number + 1 == bump->n_blocks || bump->blocks[number + 1].start - chunk->start >= chunk->bytes;
    uint64_t next = is_last ? end : bump->blocks[number + 1].start;
    if (is_last && index == bump->cursor) next = chunk->start + bump->offset;
    const struct hipmm_extent extent = {.ptr = (const void *)(uintptr_t)block->start,
                                        .bytes = block->requested ? block->requested : next - block->start,
                                        .state = block->requested ? HIPMM_EXTENT_LIVE : HIPMM_EXTENT_PENDING,
                                        .flags = HIPMM_EXTENT_BARRIER,
                                        .stream = block->handle};
    visitor(closure, &extent);
    at = block->requested ? block->start + sizes_round_up(block->requested, HIPMM_ALIGNMENT) : next;
  }
  bump_visit_hole(at, end, visitor, closure);
}

void bump_visit(const struct bump *bump, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                void *closure)
{
  for (uint32_t i = 0; i < bump->n_chunks; i++) bump_visit_chunk(bump, i, visitor, closure);
}

uint64_t bump_metadata_bytes(const struct bump *bump)
{
  uint32_t n_records = bump->touched_blocks > bump->n_blocks ? bump->touched_blocks : bump->n_blocks;
  uint64_t bytes = bump->n_chunks * sizeof *bump->chunks + n_records * sizeof *bump->blocks;
  for (uint32_t i = 0; i < bump->n_chunks; i++)
    bytes += address_map_resident_bytes(&bump->starts, bump->chunks[i].start, bump->chunks[i].bytes);
  return bytes;
}

/* ---- Life ---- */

bool bump_open(struct bump *bump, const struct hipmm_services *services, struct hipmm_resource *upstream)
{
  *bump = (struct bump){.services = services, .upstream = upstream, .n_blocks = 1, .compact_at = LEAST_COMPACTED};
  bool opened = address_map_open(&bump->starts, services, HIPMM_ALIGNMENT);
  bump->chunks = services->host_allocate(services, chunks_bytes);
  bump->blocks = services->host_allocate(services, blocks_bytes);
  return opened && bump->chunks && bump->blocks;
}

void bump_close(struct bump *bump)
{
  const struct hipmm_services *services = bump->services;
  for (uint32_t i = bump->n_chunks; i-- > 0;) bump_release_chunk(bump, i);
  address_map_close(&bump->starts);
  services->host_free(services, bump->chunks, chunks_bytes);
  services->host_free(services, bump->blocks, blocks_bytes);
}
