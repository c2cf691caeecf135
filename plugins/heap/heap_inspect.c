/* SPDX-License-Identifier: MIT */
/* heap_inspect.c: what a heap has, for figures and for tests. */
#include "heap.h"

uint64_t heap_largest_free(const struct heap *heap)
{
  uint64_t largest = 0;
  for (uint32_t stream = 0; stream < heap->streams.count; stream++) {
    uint64_t bytes = free_index_largest(&heap->free[stream], &heap->blocks);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

uint32_t heap_next_region(const struct heap *heap, uint32_t first)
{
  while (++first < heap->blocks.count) {
    const struct block *block = heap_block(heap, first);
    enum block_state state = block_state(block);
    if (state == BLOCK_UNUSED || state == BLOCK_RESERVED) continue;
    if (!__atomic_load_n(&block->before, __ATOMIC_RELAXED)) return first;
  }
  return BLOCK_NONE;
}

uint64_t heap_metadata_bytes(const struct heap *heap)
{
  return blocks_resident_bytes(&heap->blocks) + heap->streams.count * (sizeof(struct stream) + sizeof *heap->free);
}

static bool heap_block_is_valid(const struct heap *heap, uint32_t id)
{
  const struct block *block = heap_block(heap, id), *after = heap_block(heap, block->after);
  if (block->start % HIPMM_ALIGNMENT || block->bytes % HIPMM_ALIGNMENT || !block->bytes) return false;
  if (block->state == BLOCK_LIVE && (block->requested > block->bytes || !block->requested || block->uncommitted))
    return false;
  uint64_t frees = block->stream == STREAM_READY ? 0 : stream_of(&heap->streams, block->stream)->frees;
  if (block->state == BLOCK_FREE && block->epoch > frees) return false;
  return !block->after || (after->before == id && after->start == block->start + block->bytes);
}

static bool heap_stream_is_valid(const struct stream *stream)
{
  return stream->completed <= stream->recorded && stream->recorded <= stream->frees;
}

bool heap_is_valid(const struct heap *heap)
{
  uint64_t bytes = 0, live_bytes = 0, free_bytes = 0;
  for (uint32_t id = 1; id < heap->blocks.count; id++) {
    const struct block *block = heap_block(heap, id);
    if (block->state == BLOCK_UNUSED || (block->arena && block->state != BLOCK_ON_LOAN)) continue;
    if (!heap_block_is_valid(heap, id)) return false;
    bytes += block->bytes;
    if (block->state != BLOCK_FREE) live_bytes += block->bytes;
  }
  for (uint32_t stream = 0; stream < heap->streams.count; stream++) {
    if (!heap_stream_is_valid(stream_of(&heap->streams, stream))) return false;
    free_bytes += free_index_bytes(&heap->free[stream], &heap->blocks, UINT64_MAX);
  }
  return bytes == heap->bytes && live_bytes <= heap->live_bytes && /* a pool's spans count too */
         free_bytes == bytes - live_bytes;
}
