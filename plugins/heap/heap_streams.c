/* SPDX-License-Identifier: MIT */
/* heap_streams.c: free blocks of other streams: which become ready as work completes, and what waits for which. */
#include "heap.h"

void heap_retain_stream(struct heap *heap, uint32_t stream)
{
  stream_retain(&heap->streams, stream);
  if (stream_set_has(&heap->holders, stream)) stream_set_add(&heap->with_event, stream);
}

/* Moves the stream's free blocks up to `epoch` to another stream. */
static void heap_move_free(struct heap *heap, uint32_t from, uint64_t epoch, uint32_t to, uint64_t epoch_there)
{
  uint32_t kept = BLOCK_NONE;
  for (uint32_t id; (id = free_index_any(&heap->free[from], &heap->blocks));) {
    struct block *block = heap_block(heap, id);
    heap_unlink(heap, id);
    if (block->epoch > epoch) {
      block->next = kept;
      kept = id;
      continue;
    }
    block->stream = (uint16_t)to;
    block->epoch = epoch_there;
    heap_merge(heap, id);
  }
  for (uint32_t id = kept; id; id = kept) {
    kept = heap_block(heap, id)->next;
    heap_link(heap, id);
  }
}

/* Returns whether more work of the stream has completed than was known. Its free blocks up to there become ready. */
static bool heap_poll_stream(struct heap *heap, uint32_t stream)
{
  stream_cover(&heap->streams, stream);
  uint64_t before = stream_of(&heap->streams, stream)->completed;
  stream_poll(&heap->streams, stream);
  uint64_t completed = stream_of(&heap->streams, stream)->completed;
  if (completed == before) return false;
  heap_move_free(heap, stream, completed, STREAM_READY, 0);
  return true;
}

uint32_t heap_allocate_completed(struct heap *heap, const struct request *request)
{
  bool moved = false;
  for (uint32_t stream = STREAM_READY; (stream = heap_next_with_event(heap, stream)) < MAX_STREAMS;)
    moved |= heap_poll_stream(heap, stream);
  return moved ? heap_allocate_ready(heap, request) : BLOCK_NONE;
}

void heap_poll(struct heap *heap)
{
  uint32_t stream = heap->next_poll;
  for (unsigned looks = 0; looks < HEAP_POLLS; looks++) {
    stream = heap_next_with_event(heap, stream);
    if (stream == MAX_STREAMS) break;
    heap_poll_stream(heap, stream);
  }
  heap->next_poll = stream == MAX_STREAMS ? STREAM_READY : stream;
}

/* The best fit of a kind on the streams that the request's stream can wait for. */
static uint32_t heap_fit_waiting(struct heap *heap, enum kind kind, const struct request *request)
{
  uint32_t best = BLOCK_NONE;
  for (uint32_t stream = STREAM_READY; (stream = heap_next_with_event(heap, stream)) < MAX_STREAMS;)
    if (stream != request->stream && stream_cover(&heap->streams, stream))
      best = heap_lower_of(heap, best, heap_fit(heap, stream, kind, request));
  return best;
}

uint32_t heap_allocate_waiting(struct heap *heap, const struct request *request)
{
  uint32_t best = BLOCK_NONE;
  enum kind kind = request->is_own ? KIND_OWN : free_index_first_kind(&heap->blocks, request_fit_bytes(request));
  for (enum kind end = request->is_own ? KINDS : KIND_OWN; !best && kind < end; kind++)
    best = heap_fit_waiting(heap, kind, request);
  if (!best) return BLOCK_NONE;
  const struct block *block = heap_block(heap, best);
  if (!stream_wait(&heap->streams, request->stream, block->stream, block->epoch)) return BLOCK_NONE;
  return heap_allocate(heap, best, request);
}

uint32_t heap_allocate_merged(struct heap *heap, const struct request *request)
{
  bool moved = false;
  for (uint32_t stream = STREAM_READY; (stream = heap_next_with_event(heap, stream)) < MAX_STREAMS;) {
    if (stream == request->stream || !stream_cover(&heap->streams, stream)) continue;
    uint64_t frees = stream_of(&heap->streams, stream)->frees;
    if (!stream_wait(&heap->streams, request->stream, stream, frees)) continue;
    /* As if freed on the request's stream now. After the wait, so that an event recorded here covers it. */
    heap_move_free(heap, stream, frees, request->stream, stream_record_free(&heap->streams, request->stream));
    moved = true;
  }
  if (!heap->free[STREAM_READY].words && !moved) return BLOCK_NONE;
  heap_move_free(heap, STREAM_READY, 0, request->stream, stream_record_free(&heap->streams, request->stream));
  return heap_allocate_ready(heap, request);
}

bool heap_has_without_event(const struct heap *heap, uint32_t stream, uint64_t least_bytes)
{
  uint64_t bytes = 0;
  for (uint32_t other = STREAM_READY; bytes < least_bytes && (other = heap_next_holder(heap, other)) < MAX_STREAMS;) {
    const struct stream *holder = stream_of(&heap->streams, other);
    if (other != stream && holder->recorded < holder->frees)
      bytes += free_index_bytes(&heap->free[other], &heap->blocks, least_bytes);
  }
  return bytes >= least_bytes;
}

uint32_t heap_find_idle(const struct heap *heap, enum kind first, uint64_t bytes)
{
  const struct free_index *ready = &heap->free[STREAM_READY];
  uint32_t id = BLOCK_NONE;
  for (enum kind kind = first; !id && kind < KINDS; kind++) id = free_index_fit(ready, &heap->blocks, kind, bytes);
  for (enum kind kind = first; !id && kind < KINDS; kind++)
    id = free_index_next(ready, &heap->blocks, kind, BLOCK_NONE);
  return id;
}

bool heap_has_pending(const struct heap *heap, enum kind first)
{
  for (uint32_t stream = STREAM_READY; (stream = heap_next_holder(heap, stream)) < MAX_STREAMS;)
    for (enum kind kind = first; kind < KINDS; kind++)
      if (free_index_words(&heap->free[stream], kind)) return true;
  return false;
}

void heap_complete_stream(struct heap *heap, uint32_t stream)
{
  stream_complete(&heap->streams, stream);
  heap_move_free(heap, stream, UINT64_MAX, STREAM_READY, 0);
}

bool heap_wait(struct heap *heap)
{
  bool all = true;
  for (uint32_t stream = STREAM_READY; (stream = heap_next_holder(heap, stream)) < MAX_STREAMS;) {
    if (stream_host_wait(&heap->streams, stream))
      heap_complete_stream(heap, stream);
    else
      all = false;
  }
  return all;
}

void heap_complete_all(struct heap *heap)
{
  for (uint32_t stream = STREAM_READY; (stream = heap_next_holder(heap, stream)) < MAX_STREAMS;)
    heap_complete_stream(heap, stream);
  streams_complete(&heap->streams);
}
