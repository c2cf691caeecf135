/* SPDX-License-Identifier: MIT */
/* chunks.c: see chunks.h. The records of the blocks of a chunk are an array in host memory. */
#include "chunks.h"
#include "../common/host_array.h"

#include <string.h>

enum {
  APART = 8,         /* between blocks that are allocated one after the other */
  PAGE_BYTES = 4096, /* the records of a chunk have whole pages, which can be given back */
};

static const size_t chunks_bytes = FIXED_MOST_CHUNKS * sizeof(struct fixed_chunk); /* committed on touch */
static const size_t order_bytes = FIXED_MOST_CHUNKS * sizeof(uint32_t);

struct fixed_chain chain_join(const struct fixed *fixed, struct fixed_chain first, struct fixed_chain second)
{
  if (!first.head) return second;
  if (!second.head) return first;
  record_of(fixed, first.tail)->next = second.head;
  return (struct fixed_chain){first.head, second.tail};
}

/* ---- Chunks by address ---- */

/* How many chunks start at or before `address`. */
static uint32_t chunks_count_up_to(const struct fixed *fixed, uint64_t address)
{
  uint32_t low = 0, high = fixed->n_chunks;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (fixed->chunks[fixed->order[middle]].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void chunks_map_blocks(struct fixed *fixed, uint32_t slot, bool present)
{
  const struct fixed_chunk *chunk = &fixed->chunks[slot];
  for (uint32_t index = 0; index < chunk->n_blocks; index++)
    address_map_set(&fixed->starts, chunk->start + index * fixed->block_bytes,
                    present ? slot * FIXED_MOST_BLOCKS_PER_CHUNK + index + 1 : FIXED_NONE);
}

/* ---- Growing ---- */

static size_t chunks_records_bytes(uint32_t n_records)
{
  return sizes_round_up(n_records * sizeof(struct fixed_record), PAGE_BYTES);
}

/* The link to a slot without a chunk that has records for exactly `n_blocks`; it is 0 if there is none. A class has few
 * sizes, so the search is short. */
static uint32_t *chunks_unused_link(struct fixed *fixed, uint32_t n_blocks)
{
  uint32_t *link = &fixed->unused[31 - __builtin_clz(n_blocks)];
  while (*link && fixed->chunks[*link - 1].n_records != n_blocks) link = &fixed->chunks[*link - 1].next_unused;
  return link;
}

static void chunks_add_unused(struct fixed *fixed, uint32_t slot)
{
  uint32_t *first = &fixed->unused[31 - __builtin_clz(fixed->chunks[slot].n_records)];
  fixed->chunks[slot].next_unused = *first;
  *first = slot + 1;
}

/* Adds an unused slot with new records. */
static bool chunks_make_records(struct fixed *fixed, uint32_t n_blocks)
{
  struct fixed_chunk *chunk = &fixed->chunks[fixed->n_slots];
  chunk->records = fixed->services->host_allocate(fixed->services, chunks_records_bytes(n_blocks));
  if (!chunk->records) return false;
  chunk->n_records = n_blocks;
  chunks_add_unused(fixed, fixed->n_slots++);
  return true;
}

static void chunks_enter(struct fixed *fixed, uint32_t slot, uint64_t start)
{
  struct fixed_chunk *chunk = &fixed->chunks[slot];
  uint32_t at = chunks_count_up_to(fixed, start);
  memmove(fixed->order + at + 1, fixed->order + at, (fixed->n_chunks - at) * sizeof *fixed->order);
  fixed->order[at] = slot;
  __atomic_store_n(&chunk->start, start, __ATOMIC_RELAXED);
  chunk->n_blocks = chunk->n_records;
  fixed->n_chunks++;
  fixed->n_blocks += chunk->n_blocks;
  fixed->records_bytes += chunks_records_bytes(chunk->n_blocks);
  fixed->reserved_bytes += chunk->n_blocks * fixed->block_bytes;
  if (fixed->reserved_bytes > fixed->peak_reserved_bytes) fixed->peak_reserved_bytes = fixed->reserved_bytes;
  fixed->services->log(fixed->services, HIPMM_LOG_DEBUG, "grew by a chunk of %llu bytes to %llu bytes",
                       (unsigned long long)chunk->n_blocks * fixed->block_bytes,
                       (unsigned long long)fixed->reserved_bytes);
  chunks_map_blocks(fixed, slot, true);
}

/* All blocks of a chunk, free. Each eighth block follows the last: two threads with neighbouring blocks would share a
 * cache line of records. */
static struct fixed_chain chunks_chain_of(const struct fixed *fixed, uint32_t slot)
{
  const struct fixed_chunk *chunk = &fixed->chunks[slot];
  uint32_t first = slot * FIXED_MOST_BLOCKS_PER_CHUNK + 1, last = 0;
  for (uint32_t lane = 0; lane < APART && lane < chunk->n_blocks; lane++)
    for (uint32_t index = lane; index < chunk->n_blocks; index += APART) {
      chunk->records[last].next = first + index; /* the first record points to itself for a moment */
      chunk->records[index] = (struct fixed_record){0};
      last = index;
    }
  return (struct fixed_chain){first, first + last};
}

static enum hipmm_status chunks_refuse_host_memory(const struct fixed *fixed, uint32_t n_blocks)
{
  return fixed->services->refuse(fixed->services, HIPMM_E_OUT_OF_MEMORY,
                                 "no host memory left for records of {0} blocks", n_blocks, 0, 0);
}

static enum hipmm_status chunks_add(struct fixed *fixed, uint32_t n_blocks, hipmm_stream_t stream,
                                    struct fixed_chain *chain_out)
{
  uint64_t bytes = n_blocks * fixed->block_bytes;
  void *ptr = NULL;
  uint32_t *link = chunks_unused_link(fixed, n_blocks);
  if (!*link && fixed->n_slots == FIXED_MOST_CHUNKS)
    return fixed->services->refuse(fixed->services, HIPMM_E_OUT_OF_MEMORY,
                                   "cannot have more than {0} chunks; raise blocks_per_chunk", FIXED_MOST_CHUNKS, 0, 0);
  if (!*link && !chunks_make_records(fixed, n_blocks)) return chunks_refuse_host_memory(fixed, n_blocks);
  enum hipmm_status status = hipmm_upstream_allocate(fixed->upstream, bytes, HIPMM_ALIGNMENT, stream, &ptr);
  if (status) return status;
  if (!address_map_cover(&fixed->starts, (uintptr_t)ptr, bytes)) {
    hipmm_upstream_deallocate(fixed->upstream, ptr, bytes, HIPMM_ALIGNMENT, stream);
    return chunks_refuse_host_memory(fixed, n_blocks);
  }
  link = chunks_unused_link(fixed, n_blocks);
  uint32_t slot = *link - 1;
  *link = fixed->chunks[slot].next_unused;
  chunks_enter(fixed, slot, (uintptr_t)ptr);
  *chain_out = chunks_chain_of(fixed, slot);
  return HIPMM_OK;
}

enum hipmm_status chunks_grow(struct fixed *fixed, uint32_t n_blocks, uint32_t least_blocks, hipmm_stream_t stream,
                              struct fixed_chain *chain_out)
{
  enum hipmm_status status = chunks_add(fixed, n_blocks, stream, chain_out);
  while (hipmm_is_out_of_memory(status) && n_blocks > least_blocks) {
    n_blocks = n_blocks / 2 > least_blocks ? n_blocks / 2 : least_blocks;
    status = chunks_add(fixed, n_blocks, stream, chain_out);
  }
  return status;
}

/* ---- Releasing ---- */

/* The address map loses the blocks first: another resource may have the memory as soon as the upstream has it. */
static enum hipmm_status chunks_release(struct fixed *fixed, uint32_t slot)
{
  struct fixed_chunk *chunk = &fixed->chunks[slot];
  uint64_t bytes = chunk->n_blocks * fixed->block_bytes;
  uint32_t at = chunks_count_up_to(fixed, chunk->start) - 1;
  chunks_map_blocks(fixed, slot, false);
  enum hipmm_status status =
      hipmm_upstream_deallocate(fixed->upstream, (void *)(uintptr_t)chunk->start, bytes, HIPMM_ALIGNMENT, NULL);
  if (status) {
    chunks_map_blocks(fixed, slot, true);
    return status;
  }
  memmove(fixed->order + at, fixed->order + at + 1, (fixed->n_chunks - at - 1) * sizeof *fixed->order);
  fixed->n_chunks--;
  fixed->n_blocks -= chunk->n_blocks;
  fixed->records_bytes -= chunks_records_bytes(chunk->n_blocks);
  fixed->reserved_bytes -= bytes;
  chunk->n_blocks = 0;
  chunks_add_unused(fixed, slot);
  address_map_discard(&fixed->starts, chunk->start, bytes);
  host_pages_discard(chunk->records, chunks_records_bytes(chunk->n_records));
  return HIPMM_OK;
}

static void chunks_count_ready(struct fixed *fixed, const struct fixed_chain *ready)
{
  for (uint32_t slot = 0; slot < fixed->n_slots; slot++) fixed->chunks[slot].ready_count = 0;
  for (uint32_t number = ready->head; number; number = record_of(fixed, number)->next)
    chunk_of(fixed, number)->ready_count++;
}

/* Marks chunks to release, the highest addresses first. Returns how many. */
static uint32_t chunks_mark_leaving(struct fixed *fixed, size_t keep_bytes)
{
  uint64_t reserved = fixed->reserved_bytes;
  uint32_t n_leaving = 0;
  for (uint32_t i = fixed->n_chunks; i-- > 0;) {
    struct fixed_chunk *chunk = &fixed->chunks[fixed->order[i]];
    uint64_t bytes = chunk->n_blocks * fixed->block_bytes;
    if (chunk->ready_count < chunk->n_blocks || reserved < bytes || reserved - bytes < keep_bytes) continue;
    chunk->is_leaving = true;
    reserved -= bytes;
    n_leaving++;
  }
  return n_leaving;
}

static void chunks_drop_leaving(struct fixed *fixed, struct fixed_chain *ready)
{
  uint32_t *link = &ready->head, kept = FIXED_NONE;
  while (*link) {
    uint32_t number = *link;
    struct fixed_record *record = record_of(fixed, number);
    if (chunk_of(fixed, number)->is_leaving) {
      *link = record->next;
      continue;
    }
    kept = number;
    link = &record->next;
  }
  ready->tail = kept;
}

enum hipmm_status chunks_release_idle(struct fixed *fixed, size_t keep_bytes, struct fixed_chain *ready)
{
  enum hipmm_status first = HIPMM_OK;
  chunks_count_ready(fixed, ready);
  if (!chunks_mark_leaving(fixed, keep_bytes)) return first;
  chunks_drop_leaving(fixed, ready);
  for (uint32_t slot = 0; slot < fixed->n_slots; slot++) {
    if (!fixed->chunks[slot].is_leaving) continue;
    fixed->chunks[slot].is_leaving = false;
    enum hipmm_status status = chunks_release(fixed, slot);
    if (status) *ready = chain_join(fixed, *ready, chunks_chain_of(fixed, slot)); /* the upstream refused it */
    if (!first) first = status;
  }
  return first;
}

/* ---- Life ---- */

bool chunks_open(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  bool opened = address_map_open(&fixed->starts, services, fixed->block_bytes);
  fixed->chunks = services->host_allocate(services, chunks_bytes);
  fixed->order = services->host_allocate(services, order_bytes);
  return opened && fixed->chunks && fixed->order;
}

void chunks_close(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  for (uint32_t slot = 0; slot < fixed->n_slots; slot++) {
    struct fixed_chunk *chunk = &fixed->chunks[slot];
    if (chunk->n_blocks) chunks_release(fixed, slot);
    services->host_free(services, chunk->records, chunks_records_bytes(chunk->n_records));
  }
  services->host_free(services, fixed->order, order_bytes);
  services->host_free(services, fixed->chunks, chunks_bytes);
  address_map_close(&fixed->starts);
}

uint64_t chunks_metadata_bytes(const struct fixed *fixed)
{
  return fixed->records_bytes + fixed->n_slots * (sizeof(struct fixed_chunk) + sizeof *fixed->order) +
         address_map_metadata_bytes(&fixed->starts, fixed->reserved_bytes);
}
