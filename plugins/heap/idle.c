/* SPDX-License-Identifier: MIT */
/* idle.c: searches the free blocks that hold whole granules, each from its end on. */
#include "backing.h"

/* The whole granules in a block: [*start_out, *end_out). Returns how many of them are committed. */
static uint64_t idle_whole_granules(const struct chunks *chunks, const struct block *block, uint64_t *start_out,
                                    uint64_t *end_out)
{
  uint64_t start = addresses_round_up(&chunks->addresses, block->start);
  uint64_t end = addresses_round_down(&chunks->addresses, block->start + block->bytes);
  if (start >= end) return 0;
  *start_out = start;
  *end_out = end;
  return (end - start) / chunks->addresses.granule_bytes - block->uncommitted;
}

uint64_t idle_bytes_in(const struct chunks *chunks, const struct block *block)
{
  uint64_t start, end, begin, bytes = 0;
  if (!idle_whole_granules(chunks, block, &start, &end)) return 0;
  for (uint64_t at = start; chunks_next(chunks, &at, end, &begin);)
    if (begin >= start && at <= end) bytes += at - begin;
  return bytes;
}

/* The last chunk of at most `most` granules that lies wholly in the free block, at `from` or above; CHUNK_NONE if there is
 * none. */
static uint32_t idle_chunk_in(const struct chunks *chunks, const struct block *block, uint64_t from, uint64_t most)
{
  uint64_t start, end, begin;
  if (!idle_whole_granules(chunks, block, &start, &end)) return CHUNK_NONE;
  if (start < from) start = from;
  for (; start < end; end = begin) {
    uint64_t last = addresses_last(&chunks->addresses, start, end, true);
    if (last == end) return CHUNK_NONE;
    uint32_t id = addresses_chunk_at(&chunks->addresses, last, &begin);
    if (begin < start) return CHUNK_NONE;
    if (chunk_of(chunks, id)->granules <= most && begin + chunk_bytes(chunks, id) <= end) return id;
  }
  return CHUNK_NONE;
}

enum hipmm_status idle_detach_chunk(struct chunks *chunks, struct heap *heap, uint32_t chunk, uint32_t holder,
                                    bool is_listed)
{
  struct block *block = block_of(&heap->blocks, holder);
  enum hipmm_status status = chunk_detach(chunks, chunk, block->stream, block->epoch);
  if (status) return status;
  block->uncommitted += chunk_of(chunks, chunk)->granules;
  if (is_listed) free_index_move(&heap->free[block->stream], &heap->blocks, holder, block->start, block->bytes);
  return HIPMM_OK;
}

enum hipmm_status idle_detach_from(struct chunks *chunks, struct heap *heap, uint32_t id, uint64_t from, uint64_t most,
                                   uint32_t *chunk_out)
{
  *chunk_out = idle_chunk_in(chunks, block_of(&heap->blocks, id), from, most);
  return *chunk_out ? idle_detach_chunk(chunks, heap, *chunk_out, id, false) : HIPMM_E_OUT_OF_MEMORY;
}

/* The stream's free blocks that may hold idle chunks: first those with uncommitted granules, which fit few requests. */
static uint32_t idle_next_block(const struct heap *heap, uint32_t stream, uint32_t id)
{
  const struct free_index *free = &heap->free[stream];
  const struct blocks *blocks = &heap->blocks;
  bool is_whole = id && !block_of(blocks, id)->uncommitted;
  if (!is_whole) id = free_index_next(free, blocks, KIND_PARTIAL, id);
  return is_whole || !id ? free_index_next(free, blocks, KIND_WHOLE, id) : id;
}

enum hipmm_status idle_detach(struct chunks *chunks, struct heap *heap, uint32_t stream, uint64_t most,
                              uint32_t *chunk_out)
{
  for (uint32_t id = BLOCK_NONE; (id = idle_next_block(heap, stream, id));) {
    *chunk_out = idle_chunk_in(chunks, block_of(&heap->blocks, id), 0, most);
    if (*chunk_out) return idle_detach_chunk(chunks, heap, *chunk_out, id, true);
  }
  return HIPMM_E_OUT_OF_MEMORY;
}

/* Whether the stream's free blocks hold committed granules. */
static bool idle_has_any(const struct chunks *chunks, const struct heap *heap, uint32_t stream)
{
  for (uint32_t id = BLOCK_NONE; (id = idle_next_block(heap, stream, id));)
    if (idle_bytes_in(chunks, block_of(&heap->blocks, id))) return true;
  return false;
}

enum hipmm_status idle_detach_waiting(struct chunks *chunks, struct heap *heap, uint32_t stream, uint64_t most,
                                      uint32_t *chunk_out)
{
  struct streams *streams = &heap->streams;
  for (uint32_t other = STREAM_READY; (other = heap_next_holder(heap, other)) < MAX_STREAMS;) {
    if (other == stream || !idle_has_any(chunks, heap, other)) continue;
    if (!stream_wait(streams, stream, other, stream_of(streams, other)->frees)) continue;
    enum hipmm_status status = idle_detach(chunks, heap, other, most, chunk_out);
    if (status != HIPMM_E_OUT_OF_MEMORY) return status;
  }
  return HIPMM_E_OUT_OF_MEMORY;
}

bool idle_is_pending(const struct chunks *chunks, const struct heap *heap)
{
  for (uint32_t stream = STREAM_READY; (stream = heap_next_holder(heap, stream)) < MAX_STREAMS;)
    if (idle_has_any(chunks, heap, stream)) return true;
  return false;
}

enum hipmm_status idle_await_mapping(const struct chunks *chunks, struct heap *heap, uint32_t mapping, uint32_t user)
{
  const struct mapping *left = addresses_mapping(&chunks->addresses, mapping);
  if (!left->stream || stream_host_wait_for(&heap->streams, left->stream, left->epoch)) return HIPMM_OK;
  heap->streams.waits++;
  return streams_wait_for_device(&heap->streams, user);
}

uint32_t idle_obtain_unmapped(struct chunks *chunks, struct heap *heap, uint64_t most, uint32_t user)
{
  uint32_t unmapped = chunks_take_unmapped(chunks, most), mapping = 0;
  enum hipmm_status status = HIPMM_OK;
  while (unmapped && !status && (mapping = chunk_next_alias(chunks, unmapped, mapping)))
    status = idle_await_mapping(chunks, heap, mapping, user);
  if (!status) return unmapped;
  chunks_add_unmapped(chunks, unmapped);
  return CHUNK_NONE;
}

enum hipmm_status idle_release(struct chunks *chunks, struct heap *heap, uint64_t keep_bytes)
{
  while (chunks->held.bytes > keep_bytes) {
    uint64_t most = (chunks->held.bytes - keep_bytes) / chunks->addresses.granule_bytes;
    uint32_t chunk = idle_obtain_unmapped(chunks, heap, most, STREAM_READY);
    enum hipmm_status status = chunk ? HIPMM_OK : idle_detach(chunks, heap, STREAM_READY, most, &chunk);
    if (status == HIPMM_E_OUT_OF_MEMORY) return HIPMM_OK; /* nothing idle is left */
    if (!status) status = chunk_destroy(chunks, chunk);
    if (status) return status;
  }
  return HIPMM_OK;
}
