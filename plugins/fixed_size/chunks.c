/* SPDX-License-Identifier: MIT */
/* chunks.c: see chunks.h. Records of blocks are in host memory, an array for each chunk. */
#include "chunks.h"

#include <string.h>

static const size_t chunks_bytes = FIXED_MOST_CHUNKS * sizeof(struct fixed_chunk); /* committed on touch, as all here */
static const size_t order_bytes = FIXED_MOST_CHUNKS * sizeof(uint32_t);
static const size_t lists_bytes = FIXED_MOST_STREAMS * sizeof(struct fixed_list);

/* ---- Lists ---- */

void list_push(struct fixed *fixed, uint32_t stream, uint32_t number, uint64_t epoch)
{
  struct fixed_list *list = &fixed->lists[stream];
  struct fixed_record *record = record_of(fixed, number);
  record->requested = 0;
  record->epoch = epoch;
  record->next = list->head;
  if (!list->head) list->tail = number;
  list->head = number;
}

uint32_t list_pop(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  uint32_t number = list->head;
  if (number) list->head = record_of(fixed, number)->next;
  return number;
}

void list_move(struct fixed *fixed, uint32_t from, uint32_t to)
{
  struct fixed_list *source = &fixed->lists[from], *target = &fixed->lists[to];
  if (!source->head) return;
  record_of(fixed, source->tail)->next = target->head;
  if (!target->head) target->tail = source->tail;
  target->head = source->head;
  *source = (struct fixed_list){0};
}

/* ---- Finding ---- */

/* How many chunks start at or before `address`. */
static uint32_t count_up_to(const struct fixed *fixed, uint64_t address)
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

/* The number of the block in which `address` lies; FIXED_NONE if it is in no chunk. */
static uint32_t number_at(const struct fixed *fixed, uint64_t address)
{
  uint32_t after = count_up_to(fixed, address);
  if (!after) return FIXED_NONE;
  uint32_t place = fixed->order[after - 1];
  uint64_t index = (address - fixed->chunks[place].start) / fixed->block_bytes;
  if (index >= fixed->chunks[place].n_blocks) return FIXED_NONE;
  return place * FIXED_MOST_BLOCKS_PER_CHUNK + (uint32_t)index + 1;
}

uint32_t chunks_live_at(const struct fixed *fixed, const void *ptr)
{
  uint32_t number = number_at(fixed, (uintptr_t)ptr);
  if (!number || !record_of(fixed, number)->requested || address_of(fixed, number) != ptr) return FIXED_NONE;
  return number;
}

bool chunks_contain(const struct fixed *fixed, const void *ptr)
{
  return number_at(fixed, (uintptr_t)ptr) != FIXED_NONE;
}

/* ---- Growing ---- */

static uint32_t unused_place(const struct fixed *fixed)
{
  if (fixed->n_chunks == fixed->n_places) return fixed->n_places;
  uint32_t place = 0;
  while (fixed->chunks[place].n_blocks) place++;
  return place;
}

static void enter_chunk(struct fixed *fixed, uint32_t place, const struct fixed_chunk *chunk)
{
  uint32_t at = count_up_to(fixed, chunk->start);
  memmove(fixed->order + at + 1, fixed->order + at, (fixed->n_chunks - at) * sizeof *fixed->order);
  fixed->order[at] = place;
  fixed->chunks[place] = *chunk;
  fixed->n_chunks++;
  if (place == fixed->n_places) fixed->n_places++;
  fixed->n_blocks += chunk->n_blocks;
  fixed->reserved_bytes += chunk->n_blocks * fixed->block_bytes;
  if (fixed->reserved_bytes > fixed->peak_reserved_bytes) fixed->peak_reserved_bytes = fixed->reserved_bytes;
}

/* The lowest address is used first. */
static void push_all(struct fixed *fixed, uint32_t place, uint32_t stream, uint64_t epoch)
{
  for (uint32_t index = fixed->chunks[place].n_blocks; index-- > 0;)
    list_push(fixed, stream, place * FIXED_MOST_BLOCKS_PER_CHUNK + index + 1, epoch);
}

static enum hipmm_status add_chunk(struct fixed *fixed, uint32_t n_blocks, uint32_t stream)
{
  const struct hipmm_services *services = fixed->services;
  struct fixed_chunk chunk = {.n_blocks = n_blocks};
  uint32_t place = unused_place(fixed);
  if (place == FIXED_MOST_CHUNKS)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "cannot have more than {0} chunks; raise blocks_per_chunk",
                            FIXED_MOST_CHUNKS, 0, 0);
  chunk.records = services->host_allocate(services, n_blocks * sizeof *chunk.records);
  if (!chunk.records)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "no host memory left for records of {0} blocks", n_blocks,
                            0, 0);
  void *ptr = NULL;
  enum hipmm_status status = hipmm_upstream_allocate(fixed->upstream, n_blocks * fixed->block_bytes, HIPMM_ALIGNMENT,
                                                     stream_of(&fixed->streams, stream)->handle, &ptr);
  if (status) {
    services->host_free(services, chunk.records, n_blocks * sizeof *chunk.records);
    return status;
  }
  chunk.start = (uintptr_t)ptr;
  enter_chunk(fixed, place, &chunk);
  push_all(fixed, place, stream, stream < STREAM_FIRST ? 0 : stream_note_free(&fixed->streams, stream));
  return HIPMM_OK;
}

enum hipmm_status chunks_grow(struct fixed *fixed, uint32_t n_blocks, uint32_t least_blocks, uint32_t stream)
{
  enum hipmm_status status = add_chunk(fixed, n_blocks, stream);
  while ((status == HIPMM_E_OUT_OF_MEMORY || status == HIPMM_E_LIMIT) && n_blocks > least_blocks) {
    n_blocks = n_blocks / 2 > least_blocks ? n_blocks / 2 : least_blocks;
    status = add_chunk(fixed, n_blocks, stream);
  }
  return status;
}

/* ---- Giving back ---- */

static void forget_chunk(struct fixed *fixed, uint32_t place)
{
  struct fixed_chunk *chunk = &fixed->chunks[place];
  uint32_t at = count_up_to(fixed, chunk->start) - 1;
  memmove(fixed->order + at, fixed->order + at + 1, (fixed->n_chunks - at - 1) * sizeof *fixed->order);
  fixed->n_chunks--;
  fixed->n_blocks -= chunk->n_blocks;
  fixed->reserved_bytes -= chunk->n_blocks * fixed->block_bytes;
  fixed->services->host_free(fixed->services, chunk->records, chunk->n_blocks * sizeof *chunk->records);
  *chunk = (struct fixed_chunk){0};
}

static enum hipmm_status give_back(struct fixed *fixed, uint32_t place)
{
  const struct fixed_chunk *chunk = &fixed->chunks[place];
  enum hipmm_status status = hipmm_upstream_deallocate(fixed->upstream, (void *)(uintptr_t)chunk->start,
                                                       chunk->n_blocks * fixed->block_bytes, HIPMM_ALIGNMENT, NULL);
  if (!status) forget_chunk(fixed, place);
  return status;
}

/* Marks chunks to give back, those of the highest addresses first. Returns how many. */
static uint32_t mark_leaving(struct fixed *fixed, size_t keep_bytes)
{
  uint64_t reserved = fixed->reserved_bytes;
  uint32_t n_leaving = 0;
  for (uint32_t i = fixed->n_chunks; i-- > 0;) {
    struct fixed_chunk *chunk = &fixed->chunks[fixed->order[i]];
    uint64_t bytes = chunk->n_blocks * fixed->block_bytes;
    if (chunk->live_count || reserved < bytes || reserved - bytes < keep_bytes) continue;
    chunk->is_leaving = true;
    reserved -= bytes;
    n_leaving++;
  }
  return n_leaving;
}

/* Takes the blocks of leaving chunks out of the clean list. */
static void drop_leaving(struct fixed *fixed)
{
  struct fixed_list *list = &fixed->lists[STREAM_CLEAN];
  uint32_t *link = &list->head, kept = FIXED_NONE;
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
  list->tail = kept;
}

enum hipmm_status chunks_release_idle(struct fixed *fixed, size_t keep_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  if (!mark_leaving(fixed, keep_bytes)) return first;
  drop_leaving(fixed);
  for (uint32_t place = 0; place < fixed->n_places; place++) {
    if (!fixed->chunks[place].is_leaving) continue;
    fixed->chunks[place].is_leaving = false;
    enum hipmm_status status = give_back(fixed, place);
    if (status) push_all(fixed, place, STREAM_CLEAN, 0); /* the upstream would not have it: it stays */
    if (!first) first = status;
  }
  return first;
}

/* ---- Life ---- */

bool chunks_open(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  fixed->lists = services->host_allocate(services, lists_bytes);
  fixed->chunks = services->host_allocate(services, chunks_bytes);
  fixed->order = services->host_allocate(services, order_bytes);
  return fixed->lists && fixed->chunks && fixed->order;
}

void chunks_close(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  for (uint32_t place = 0; place < fixed->n_places; place++)
    if (fixed->chunks[place].n_blocks && give_back(fixed, place)) forget_chunk(fixed, place);
  services->host_free(services, fixed->order, order_bytes);
  services->host_free(services, fixed->chunks, chunks_bytes);
  services->host_free(services, fixed->lists, lists_bytes);
}
