/* SPDX-License-Identifier: MIT */
/* chunks.c: see global.h. */
#include "global.h"

#include <string.h>

enum { MOST_CHUNKS = 1 << 16 };

bool arena_chunks_open(struct arena_chunks *chunks, const struct hipmm_services *services,
                       struct hipmm_resource *upstream, uint64_t maximum_bytes)
{
  *chunks = (struct arena_chunks){.services = services, .upstream = upstream, .maximum_bytes = maximum_bytes};
  chunks->items = services->host_allocate(services, MOST_CHUNKS * sizeof *chunks->items);
  return chunks->items != NULL;
}

void arena_chunks_close(struct arena_chunks *chunks)
{
  for (uint32_t i = chunks->count; i-- > 0;)
    if (arena_chunks_free(chunks, &chunks->items[i])) chunks->count = i; /* the upstream refuses it: it is lost */
  chunks->services->host_free(chunks->services, chunks->items, MOST_CHUNKS * sizeof *chunks->items);
}

static struct arena_chunk *arena_chunks_place_for(const struct arena_chunks *chunks, const void *ptr)
{
  uint32_t low = 0, high = chunks->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if ((uintptr_t)chunks->items[middle].ptr < (uintptr_t)ptr)
      low = middle + 1;
    else
      high = middle;
  }
  return &chunks->items[low];
}

static struct arena_chunk *arena_chunks_enter(struct arena_chunks *chunks, void *ptr, uint64_t bytes)
{
  struct arena_chunk *chunk = arena_chunks_place_for(chunks, ptr);
  memmove(chunk + 1, chunk, (size_t)(chunks->items + chunks->count - chunk) * sizeof *chunk);
  *chunk = (struct arena_chunk){.ptr = ptr, .bytes = bytes};
  chunks->count++;
  chunks->bytes += bytes;
  if (chunks->bytes > chunks->peak_bytes) chunks->peak_bytes = chunks->bytes;
  chunks->services->log(chunks->services, HIPMM_LOG_DEBUG, "grew by a chunk of %llu bytes to %llu bytes",
                        (unsigned long long)bytes, (unsigned long long)chunks->bytes);
  return chunk;
}

bool arena_chunks_contain(const struct arena_chunks *chunks, const void *ptr)
{
  const struct arena_chunk *next = arena_chunks_place_for(chunks, (const char *)ptr + 1);
  return next > chunks->items && (uintptr_t)ptr - (uintptr_t)next[-1].ptr < next[-1].bytes;
}

uint64_t arena_chunks_room(const struct arena_chunks *chunks)
{
  if (chunks->bytes >= chunks->maximum_bytes || chunks->count == MOST_CHUNKS) return 0;
  return (chunks->maximum_bytes - chunks->bytes) / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
}

enum hipmm_status arena_chunks_allocate_exactly(struct arena_chunks *chunks, uint64_t bytes, hipmm_stream_t stream,
                                                struct arena_chunk **chunk_out)
{
  void *ptr = NULL;
  if (bytes > arena_chunks_room(chunks)) return HIPMM_E_LIMIT;
  enum hipmm_status status = hipmm_upstream_allocate(chunks->upstream, bytes, HIPMM_ALIGNMENT, stream, &ptr);
  if (!status) *chunk_out = arena_chunks_enter(chunks, ptr, bytes);
  return status;
}

enum hipmm_status arena_chunks_allocate(struct arena_chunks *chunks, uint64_t bytes, hipmm_stream_t stream,
                                        struct arena_chunk **chunk_out)
{
  if (bytes > arena_chunks_room(chunks)) return HIPMM_E_LIMIT;
  for (uint64_t step = sizes_step(chunks->bytes, bytes, arena_chunks_room(chunks));;
       step = sizes_smaller_step(step, bytes)) {
    enum hipmm_status status = arena_chunks_allocate_exactly(chunks, step, stream, chunk_out);
    if (!hipmm_is_out_of_memory(status) || step == bytes) return status;
  }
}

enum hipmm_status arena_chunks_free(struct arena_chunks *chunks, struct arena_chunk *chunk)
{
  enum hipmm_status status =
      hipmm_upstream_deallocate(chunks->upstream, chunk->ptr, chunk->bytes, HIPMM_ALIGNMENT, NULL);
  if (status) return status;
  chunks->bytes -= chunk->bytes;
  chunks->count--;
  memmove(chunk, chunk + 1, (size_t)(chunks->items + chunks->count - chunk) * sizeof *chunk);
  return HIPMM_OK;
}
