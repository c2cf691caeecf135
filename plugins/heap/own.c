/* SPDX-License-Identifier: MIT */
/* own.c: chunks that are one block; see backing.h. */
#include "../common/sizes.h"
#include "backing.h"

/* ---- Addresses ---- */

/* A run of `bytes` where nothing is mapped. An unmap that failed may have left a mapping that is not current. */
static uint64_t own_find_in(const struct addresses *addresses, const struct range *range, const struct request *request)
{
  uint64_t end = range->start + range->bytes, at = range->start;
  while (end - at >= request->bytes && (at = addresses_first(addresses, at, end, false)) < end) {
    uint64_t stop = addresses_first(addresses, at, end, true);
    uint64_t start = sizes_round_up(at, request->alignment);
    if (start < stop && stop - start >= request->bytes &&
        !addresses_last_mapping(addresses, start, start + request->bytes))
      return start;
    at = stop;
  }
  return 0;
}

static enum hipmm_status own_find(struct chunks *chunks, const struct request *request, uint64_t *start_out)
{
  const struct addresses *addresses = &chunks->addresses;
  const struct range *range;
  for (uint32_t i = 0; i < addresses->n_ranges; i++)
    if (addresses->ranges[i].is_own && (*start_out = own_find_in(addresses, &addresses->ranges[i], request)))
      return HIPMM_OK;
  enum hipmm_status status = chunks_reserve(chunks, request_fit_bytes(request), &range);
  if (status) return status;
  chunks->addresses.ranges[addresses->n_ranges - 1].is_own = true;
  *start_out = sizes_round_up(range->start, request->alignment);
  return HIPMM_OK;
}

/* ---- Releasing ---- */

enum hipmm_status own_drop(struct chunks *chunks, struct heap *heap, uint32_t id)
{
  struct block *block = block_of(&heap->blocks, id);
  uint64_t begin;
  uint32_t chunk = addresses_chunk_at(&chunks->addresses, block->start, &begin);
  enum hipmm_status status = chunk_detach(chunks, chunk, 0, 0);
  if (status) return status;
  heap_unlink(heap, id); /* it may have been freed on a stream while the pool was suspended */
  block->stream = STREAM_READY;
  heap_link(heap, id);
  heap_remove_region(heap, id);
  return chunk_destroy(chunks, chunk);
}

enum hipmm_status own_release(struct chunks *chunks, struct heap *heap, uint64_t keep_bytes)
{
  uint32_t id;
  enum hipmm_status status = HIPMM_OK;
  while (!status && chunks->held.bytes > keep_bytes &&
         (id = heap_find_idle(heap, KIND_OWN, chunks->held.bytes - keep_bytes)) != BLOCK_NONE)
    status = own_drop(chunks, heap, id);
  return status ? status : idle_release(chunks, heap, keep_bytes);
}

/* ---- Creating ---- */

/* Gives idle memory back until a chunk of the request takes its place, which is at most what is held now. Waits on the host for
 * work that may still use it: the chunk has another size, so that no remapping spares the wait. */
static enum hipmm_status own_make_room(struct granules *granules, struct heap *heap, const struct request *request)
{
  struct chunks *chunks = &granules->chunks;
  uint64_t keep_bytes = sizes_headroom(chunks->held.bytes, request->bytes);
  heap_poll(heap);
  enum hipmm_status status = own_release(chunks, heap, keep_bytes);
  if (status || chunks->held.bytes <= keep_bytes) return status;
  if (streams_any_captured(&heap->streams, request->stream) || !heap_has_pending(heap, KIND_OWN))
    return HIPMM_E_OUT_OF_MEMORY;
  if (!heap_wait(heap) && !streams_wait_for_device(&heap->streams, request->stream)) heap_complete_all(heap);
  status = own_release(chunks, heap, keep_bytes);
  return status || chunks->held.bytes <= keep_bytes ? status : HIPMM_E_OUT_OF_MEMORY;
}

static enum hipmm_status own_map(struct chunks *chunks, struct heap *heap, uint64_t start, uint64_t bytes,
                                 uint32_t *id_out)
{
  uint32_t chunk;
  enum hipmm_status status = chunk_create_own(chunks, bytes / chunks->addresses.granule_bytes, &chunk);
  if (status) return status;
  status = chunk_map(chunks, chunk, start);
  if (!status && (*id_out = heap_add_own(heap, start, bytes))) return HIPMM_OK;
  if (!status) {
    status = chunks->services->refuse(chunks->services, HIPMM_E_OUT_OF_MEMORY,
                                      "no host memory left for a block of {0:bytes}", bytes, 0, 0);
    if (chunk_detach(chunks, chunk, 0, 0)) return status;
  }
  chunk_destroy(chunks, chunk);
  return status;
}

enum hipmm_status own_create(struct granules *granules, struct heap *heap, const struct request *request,
                             enum source_of_memory source_of_memory, uint32_t *id_out)
{
  struct chunks *chunks = &granules->chunks;
  enum hipmm_status status = HIPMM_OK;
  uint64_t start;
  if (source_of_memory == MEMORY_FROM_SLACK && request->bytes > slack_growth(&granules->slack))
    return HIPMM_E_OUT_OF_MEMORY;
  if (source_of_memory == MEMORY_FROM_MOVE) status = own_make_room(granules, heap, request);
  if (!status) status = own_find(chunks, request, &start);
  return status ? status : own_map(chunks, heap, start, request->bytes, id_out);
}
