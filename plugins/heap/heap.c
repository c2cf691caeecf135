/* SPDX-License-Identifier: MIT */
/* heap.c: best fit over the free blocks of all streams. */
#include "heap.h"

/* What may be left of a block with a chunk of its own, as a part of the request. */
enum { OWN_SHARE = 8 };

bool heap_open(struct heap *heap, const struct hipmm_services *services, enum record record)
{
  *heap = (struct heap){.bytes = 0};
  bool blocks = blocks_open(&heap->blocks, services);
  heap->free = services->host_allocate(services, MAX_STREAMS * sizeof *heap->free);
  return streams_open(&heap->streams, services, record) && blocks && heap->free;
}

void heap_close(struct heap *heap)
{
  const struct hipmm_services *services = heap->blocks.services;
  services->host_free(services, heap->free, MAX_STREAMS * sizeof *heap->free);
  streams_close(&heap->streams);
  blocks_close(&heap->blocks);
}

/* ---- Merging ---- */

/* The stream gets its first free block, or loses its last. */
static __attribute__((noinline)) void heap_set_holder(struct heap *heap, uint32_t stream, bool holds)
{
  if (stream == STREAM_READY) return;
  (holds ? stream_set_add : stream_set_remove)(&heap->holders, stream);
  bool is_waited_for = holds && stream_may_be_waited_for(&heap->streams, stream);
  (is_waited_for ? stream_set_add : stream_set_remove)(&heap->with_event, stream);
}

void heap_unlink(struct heap *heap, uint32_t id)
{
  uint32_t stream = heap_block(heap, id)->stream;
  struct free_index *free = &heap->free[stream];
  free_index_remove(free, &heap->blocks, id);
  if (__builtin_expect(!free->words, 0)) heap_set_holder(heap, stream, false);
}

void heap_link(struct heap *heap, uint32_t id)
{
  uint32_t stream = heap_block(heap, id)->stream;
  struct free_index *free = &heap->free[stream];
  if (__builtin_expect(!free->words, 0)) heap_set_holder(heap, stream, true);
  free_index_add(free, &heap->blocks, id);
}

/* Whether the neighbour is free and may become part of `block`. A stream may always use ready memory, but other streams then see
 * that memory as pending: with several streams, a small block must not make a large ready one pending. */
BLOCK_INLINE bool heap_is_mergeable(const struct heap *heap, const struct block *block, const struct block *neighbour)
{
  if (block_state(neighbour) != BLOCK_FREE) return false; /* nor is the record of BLOCK_NONE */
  if (__builtin_expect(neighbour->stream == block->stream, 1)) return true;
  return neighbour->stream == STREAM_READY && (heap->streams.active == 1 || neighbour->bytes <= block->bytes);
}

/* Adds what a block that is dropped has, except its bytes. */
BLOCK_INLINE void heap_inherit(struct block *block, const struct block *dropped)
{
  block->uncommitted += dropped->uncommitted;
  if (block->epoch < dropped->epoch) block->epoch = dropped->epoch;
}

/* A free block that is in no index takes in the free block behind it, which is in one. */
static void heap_take_behind(struct heap *heap, uint32_t id, uint32_t behind)
{
  struct block *block = heap_block(heap, id);
  const struct block *dropped = heap_block(heap, behind);
  heap_unlink(heap, behind);
  block->bytes += dropped->bytes;
  heap_inherit(block, dropped);
  block_join(&heap->blocks, id, dropped->after);
  block_drop(&heap->blocks, behind);
}

/* The free neighbour `whole`, which is in an index, takes in a free block that is in none. */
BLOCK_INLINE void heap_take_into(struct heap *heap, uint32_t whole, uint32_t id, bool is_behind)
{
  struct block *block = heap_block(heap, whole);
  const struct block *dropped = heap_block(heap, id);
  uint64_t start = is_behind ? block->start : dropped->start, bytes = block->bytes + dropped->bytes;
  uint32_t stream = dropped->stream;
  if (is_behind)
    block_join(&heap->blocks, whole, dropped->after);
  else if ((block->before = dropped->before))
    heap_block(heap, block->before)->after = whole;
  if (__builtin_expect(block->stream == stream && !dropped->uncommitted, 1)) {
    heap_inherit(block, dropped);
    free_index_move(&heap->free[stream], &heap->blocks, whole, start, bytes);
  } else {
    heap_unlink(heap, whole);
    heap_inherit(block, dropped);
    block->stream = (uint16_t)stream;
    block_set_bounds(block, start, bytes);
    heap_link(heap, whole);
  }
  block_drop(&heap->blocks, id);
}

/* Adds a free block to its stream's index, after merging it with its neighbours. Returns the merged block. */
BLOCK_INLINE uint32_t heap_add_free(struct heap *heap, uint32_t id)
{
  const struct block *block = heap_block(heap, id);
  uint32_t before = block->before, after = block->after;
  const struct block *lower = heap_block(heap, before), *upper = heap_block(heap, after);
  if (!heap_is_mergeable(heap, block, lower)) before = BLOCK_NONE;
  if (!heap_is_mergeable(heap, block, upper)) after = BLOCK_NONE;
  uint32_t whole = before ? before : after ? after : id;
  if (before && after) heap_take_behind(heap, id, after);
  if (whole == id)
    heap_link(heap, id);
  else
    heap_take_into(heap, whole, id, before != BLOCK_NONE);
  return whole;
}

uint32_t heap_merge(struct heap *heap, uint32_t id)
{
  return heap_add_free(heap, id);
}

/* ---- Regions ---- */

static uint32_t heap_add(struct heap *heap, uint64_t start, uint64_t bytes, uint32_t uncommitted, uint32_t stream,
                         bool is_for_small, bool is_own)
{
  if (!address_map_cover(&heap->blocks.map, start, bytes)) return BLOCK_NONE;
  uint32_t id = block_new(&heap->blocks, start, bytes);
  if (!id) return BLOCK_NONE;
  struct block *block = heap_block(heap, id);
  block->uncommitted = uncommitted;
  block->is_for_small = is_for_small;
  block->is_own = is_own;
  block->stream = (uint16_t)stream;
  block->epoch = stream >= STREAM_FIRST ? stream_record_free(&heap->streams, stream) : 0;
  heap->bytes += bytes;
  return heap_merge(heap, id);
}

uint32_t heap_add_region(struct heap *heap, uint64_t start, uint64_t bytes, uint32_t uncommitted, uint32_t stream)
{
  return heap_add(heap, start, bytes, uncommitted, stream, false, false);
}

uint32_t heap_add_segment(struct heap *heap, const struct segment *segment, uint32_t stream)
{
  const struct key_tree_node *bounds = &segment->by_start;
  return heap_add(heap, bounds->major, bounds->minor, 0, stream, segment->is_for_small, segment->is_own);
}

uint32_t heap_add_own(struct heap *heap, uint64_t start, uint64_t bytes)
{
  return heap_add(heap, start, bytes, 0, STREAM_READY, false, true);
}

bool heap_remove_region(struct heap *heap, uint32_t id)
{
  struct block *block = heap_block(heap, id);
  if (block_state(block) != BLOCK_FREE || block->before || block->after || block->stream != STREAM_READY) return false;
  heap->bytes -= block->bytes;
  heap_unlink(heap, id);
  block->is_own = false; /* parts of other regions use the record again */
  block_drop(&heap->blocks, id);
  return true;
}

/* ---- Allocating ---- */

/* Splits a free block at `start`, with `uncommitted` granules in the first part. Returns the second part, which is free too;
 * BLOCK_NONE, and nothing done, when records are short. */
static uint32_t heap_cut(struct heap *heap, uint32_t id, uint64_t start, uint32_t uncommitted)
{
  struct block *block = heap_block(heap, id);
  uint64_t end = block->start + block->bytes;
  uint32_t rest = block_new(&heap->blocks, start, end - start);
  if (!rest) return BLOCK_NONE;
  struct block *behind = heap_block(heap, rest);
  behind->stream = block->stream;
  behind->epoch = block->epoch;
  behind->uncommitted = block->uncommitted - uncommitted;
  behind->is_for_small = block->is_for_small;
  block->uncommitted = uncommitted;
  behind->before = id;
  behind->after = block->after;
  if (behind->after) heap_block(heap, behind->after)->before = rest;
  block->after = rest;
  free_index_move(&heap->free[block->stream], &heap->blocks, id, block->start, start - block->start);
  heap_link(heap, rest);
  return rest;
}

/* Splits the first `bytes` off a free block of the index, as a block that is in no list; the rest stays in the index.
 * Without a record for it, takes the whole block, unless that has uncommitted granules: then BLOCK_NONE. */
BLOCK_INLINE uint32_t heap_split_front(struct heap *heap, uint32_t id, uint64_t bytes)
{
  const struct block *block = heap_block(heap, id);
  uint32_t front = block->bytes > bytes ? block_new(&heap->blocks, block->start, bytes) : BLOCK_NONE;
  if (!front && block->uncommitted) return BLOCK_NONE;
  if (!front) {
    heap_unlink(heap, id);
    return id;
  }
  heap_block(heap, front)->is_for_small = block->is_for_small;
  if ((heap_block(heap, front)->before = block->before)) heap_block(heap, block->before)->after = front;
  block_join(&heap->blocks, front, id);
  free_index_move(&heap->free[block->stream], &heap->blocks, id, block->start + bytes, block->bytes - bytes);
  return front;
}

uint64_t heap_start_in(const struct heap *heap, uint32_t id, const struct request *request)
{
  return (heap_block(heap, id)->start + request->alignment - 1) & ~(request->alignment - 1);
}

BLOCK_INLINE uint32_t heap_uncommitted_in(const struct heap *heap, uint32_t id, uint64_t start, uint64_t end)
{
  return heap_block(heap, id)->uncommitted ? heap->uncommitted_in(heap->chunks, start, end) : 0;
}

/* The part of the block from the request's first address on, as a block; BLOCK_NONE when records are short. */
static uint32_t heap_cut_aligned(struct heap *heap, uint32_t id, const struct request *request)
{
  uint64_t front = heap_block(heap, id)->start, start = heap_start_in(heap, id, request);
  return start > front ? heap_cut(heap, id, start, heap_uncommitted_in(heap, id, front, start)) : id;
}

/* Records ran out behind heap_cut_aligned(): its two parts become one block again. */
static __attribute__((noinline)) void heap_undo_cut(struct heap *heap, uint32_t front, uint32_t rest)
{
  heap_unlink(heap, front);
  heap_take_behind(heap, front, rest);
  heap_link(heap, front);
}

BLOCK_INLINE uint32_t heap_allocate_from(struct heap *heap, uint32_t whole, const struct request *request)
{
  bool is_aligned = __builtin_expect(request->alignment > HIPMM_ALIGNMENT, 0);
  uint32_t fit = is_aligned ? heap_cut_aligned(heap, whole, request) : whole;
  uint32_t id = fit ? heap_split_front(heap, fit, request->bytes) : BLOCK_NONE;
  if (!id) {
    if (fit && fit != whole) heap_undo_cut(heap, whole, fit);
    return BLOCK_NONE;
  }
  struct block *block = heap_block(heap, id);
  block->requested = request->requested;
  block->handle = stream_of(&heap->streams, request->stream)->handle;
  block_publish(&heap->blocks, id);
  block_set_state(block, __builtin_expect(request->is_loan, 0) ? BLOCK_ON_LOAN : BLOCK_LIVE);
  heap->live_bytes += block->bytes;
  heap->requested_bytes += request->requested;
  heap->blocks.live++;
  return id;
}

uint32_t heap_allocate(struct heap *heap, uint32_t id, const struct request *request)
{
  struct request all = *request;
  if (!request->is_own) return heap_allocate_from(heap, id, request);
  all.bytes = heap_block(heap, id)->bytes;
  all.alignment = HIPMM_ALIGNMENT;
  return heap_allocate_from(heap, id, &all);
}

void heap_mark_pending(struct heap *heap, uint32_t id, uint64_t end, uint32_t stream)
{
  struct block *block = heap_block(heap, id);
  if (block->stream == STREAM_READY && end < block->start + block->bytes)
    heap_cut(heap, id, end, heap_uncommitted_in(heap, id, block->start, end));
  heap_unlink(heap, id);
  block->stream = (uint16_t)stream;
  block->epoch = stream_record_free(&heap->streams, stream);
  heap_link(heap, id);
}

/* ---- Finding ---- */

/* The stream's best fit of a kind, if the request's part of it is committed; BLOCK_NONE otherwise. `list` is the list of the
 * request's size. Of the blocks with uncommitted granules, only the best fit is looked at. */
BLOCK_INLINE uint32_t heap_fit_kind(const struct heap *heap, uint32_t stream, enum kind kind,
                                    const struct request *request, uint32_t list)
{
  const struct free_index *free = &heap->free[stream];
  uint64_t bytes = request_fit_bytes(request);
  uint32_t id = free_index_fit_from(free, &heap->blocks, kind, bytes, list);
  if (!id || kind != KIND_PARTIAL) return id;
  uint64_t start = heap_start_in(heap, id, request);
  return heap_uncommitted_in(heap, id, start, start + request->bytes) ? BLOCK_NONE : id;
}

/* A block with a chunk of its own is taken whole, by a request that needs nearly all of it.
 *
 * Small blocks have segments of their own, as they would keep large ones from becoming idle. A large block takes a segment
 * that is idle only if it needs nearly all of it: cut, the segment would fit no block of its size any more. */
static bool heap_may_cut(const struct heap *heap, const struct block *block, enum kind kind,
                         const struct request *request)
{
  if (request->is_own)
    return heap_start_in(heap, (uint32_t)(block - heap->blocks.items), request) == block->start &&
           block->bytes - request->bytes <= request->bytes / OWN_SHARE;
  bool is_small = request->bytes < heap->small_bytes, is_idle = !block->before && !block->after;
  if (!heap->small_bytes || block->start - heap->common_start < heap->common_bytes) return true;
  if (is_small != (kind == KIND_BUSY)) return false;
  uint64_t bytes = request_fit_bytes(request), rest = heap->cuts_evenly ? block->bytes % bytes : block->bytes - bytes;
  return is_small || !is_idle || rest <= heap->most_rest;
}

/* The stream's best fit of the idle segments for blocks of that kind, which are in the same lists as the others. */
static uint32_t heap_fit_idle(const struct heap *heap, uint32_t stream, enum kind kind, const struct request *request)
{
  const struct free_index *free = &heap->free[stream];
  uint64_t bytes = request_fit_bytes(request);
  uint32_t id = free_index_fit(free, &heap->blocks, KIND_PARTIAL, bytes);
  for (unsigned steps = 0; id && steps < LIST_STEPS; steps++) {
    const struct block *segment = heap_block(heap, id);
    bool is_of_kind = segment->is_for_small == (kind == KIND_BUSY);
    if (is_of_kind && segment->bytes >= bytes) return id;
    id = segment->next ? segment->next : free->lists[free_index_place_behind(free, KIND_PARTIAL, segment->place)];
  }
  return BLOCK_NONE;
}

/* The idle segment, if it fits better than the block. */
static uint32_t heap_prefer_idle(const struct heap *heap, uint32_t id, uint32_t idle)
{
  if (!id || !idle) return id ? id : idle;
  return heap_block(heap, id)->bytes <= heap_block(heap, idle)->bytes ? id : idle;
}

uint32_t heap_fit(const struct heap *heap, uint32_t stream, enum kind kind, const struct request *request)
{
  uint32_t list = free_index_list_of(request_fit_bytes(request));
  uint32_t id = heap_fit_kind(heap, stream, kind, request, list);
  if (heap->small_bytes && kind < KIND_PARTIAL)
    id = heap_prefer_idle(heap, id, heap_fit_idle(heap, stream, kind, request));
  return id && heap_may_cut(heap, heap_block(heap, id), kind, request) ? id : BLOCK_NONE;
}

/* The best fit of a kind among the blocks that the request's stream may use at once. */
BLOCK_INLINE uint32_t heap_fit_ready(const struct heap *heap, enum kind kind, const struct request *request,
                                     uint32_t list)
{
  uint32_t id = heap_fit_kind(heap, request->stream, kind, request, list);
  if (__builtin_expect(!free_index_words(&heap->free[STREAM_READY], kind), 1)) return id;
  return heap_lower_of(heap, id, heap_fit_kind(heap, STREAM_READY, kind, request, list));
}

/* The block at the lowest address that the request's stream may use at once. */
static uint32_t heap_fit_lowest(const struct heap *heap, const struct request *request)
{
  uint64_t bytes = request_fit_bytes(request);
  return heap_lower_of(heap, free_index_lowest(&heap->free[request->stream], &heap->blocks, bytes),
                       free_index_lowest(&heap->free[STREAM_READY], &heap->blocks, bytes));
}

uint32_t heap_fit_uncommitted(const struct heap *heap, const struct request *request)
{
  uint64_t bytes = request_fit_bytes(request);
  if (heap->is_low_on_memory) return heap_fit_lowest(heap, request);
  uint32_t own = free_index_fit(&heap->free[request->stream], &heap->blocks, KIND_PARTIAL, bytes);
  return own ? own : free_index_fit(&heap->free[STREAM_READY], &heap->blocks, KIND_PARTIAL, bytes);
}

/* The smaller of two blocks, or of equal ones that at the lower address; the other one if one is BLOCK_NONE. */
static uint32_t heap_smaller_of(const struct heap *heap, uint32_t a, uint32_t b)
{
  uint64_t a_bytes = heap_block(heap, a)->bytes, b_bytes = heap_block(heap, b)->bytes;
  if (!a || !b || a_bytes == b_bytes) return heap_lower_of(heap, a, b);
  return a_bytes < b_bytes ? a : b;
}

/* The best fit whose chunk is its own, which the request's stream may use at once. */
static __attribute__((noinline)) uint32_t heap_allocate_own(struct heap *heap, const struct request *request)
{
  uint32_t id = heap_lower_of(heap, heap_fit(heap, request->stream, KIND_OWN, request),
                              heap_fit(heap, STREAM_READY, KIND_OWN, request));
  return id ? heap_allocate(heap, id, request) : BLOCK_NONE;
}

static uint32_t heap_allocate_in_segment(struct heap *heap, const struct request *request)
{
  uint32_t id = BLOCK_NONE;
  for (enum kind kind = request->bytes < heap->small_bytes ? KIND_BUSY : KIND_WHOLE; !id && kind <= KIND_WHOLE; kind++)
    id = heap_smaller_of(heap, heap_fit(heap, request->stream, kind, request),
                         heap_fit(heap, STREAM_READY, kind, request));
  return id ? heap_allocate(heap, id, request) : BLOCK_NONE;
}

/* While memory is short, what keeps no granule from being idle is used first, and then the lowest address, also where
 * memory has to be mapped: nothing is done in that case. Blocks that come and go then leave fewer granules in part, the
 * rest of which nothing can use. */
static __attribute__((noinline)) uint32_t heap_allocate_packed(struct heap *heap, const struct request *request)
{
  uint64_t bytes = request_fit_bytes(request);
  if (heap->small_bytes) return heap_allocate_in_segment(heap, request);
  bool is_small = bytes < heap->blocks.granule_bytes;
  uint32_t id = is_small ? heap_fit_ready(heap, KIND_BUSY, request, free_index_list_of(bytes)) : BLOCK_NONE;
  if (!id) id = heap_fit_lowest(heap, request);
  if (!id) return BLOCK_NONE;
  uint64_t start = heap_start_in(heap, id, request);
  if (heap_uncommitted_in(heap, id, start, start + request->bytes)) return BLOCK_NONE;
  return heap_allocate(heap, id, request);
}

/* For a request of whole multiples of its alignment, as blocks with chunks of their own are: such blocks leave free
 * blocks that begin at a multiple, which need no room for the alignment. */
static __attribute__((noinline)) uint32_t heap_fit_aligned(const struct heap *heap, enum kind kind,
                                                           const struct request *request)
{
  struct request unaligned = *request;
  unaligned.alignment = HIPMM_ALIGNMENT;
  if (request->bytes % request->alignment) return BLOCK_NONE;
  if (kind < free_index_first_kind(&heap->blocks, request->bytes)) kind = KIND_WHOLE;
  for (; kind < KIND_OWN; kind++) {
    uint32_t id = heap_fit_ready(heap, kind, &unaligned, free_index_list_of(request->bytes));
    if (id && heap_start_in(heap, id, request) == heap_block(heap, id)->start) return id;
  }
  return BLOCK_NONE;
}

/* The best fit, of the kinds from `kind` on. */
BLOCK_INLINE uint32_t heap_allocate_kind(struct heap *heap, enum kind kind, const struct request *request)
{
  uint64_t bytes = request_fit_bytes(request);
  uint32_t list = free_index_list_of(bytes), id = BLOCK_NONE;
  if (__builtin_expect(request->alignment > HIPMM_ALIGNMENT, 0)) id = heap_fit_aligned(heap, kind, request);
  if (id) return heap_allocate_from(heap, id, request);
  if (kind < free_index_first_kind(&heap->blocks, bytes)) kind = KIND_WHOLE;
  if (kind == KIND_BUSY) id = heap_fit_ready(heap, KIND_BUSY, request, list);
  if (!id) id = heap_fit_ready(heap, KIND_WHOLE, request, list);
  if (!id) id = heap_fit_ready(heap, KIND_PARTIAL, request, list);
  return id ? heap_allocate_from(heap, id, request) : BLOCK_NONE;
}

uint32_t heap_allocate_ready(struct heap *heap, const struct request *request)
{
  if (__builtin_expect(request->is_own, 0)) return heap_allocate_own(heap, request);
  if (__builtin_expect(heap->is_low_on_memory, 0)) return heap_allocate_packed(heap, request);
  if (__builtin_expect(request->alignment != HIPMM_ALIGNMENT, 0)) return heap_allocate_fit(heap, KIND_BUSY, request);
  struct request plain = *request; /* so that the compiler knows the alignment */
  plain.alignment = HIPMM_ALIGNMENT;
  return heap_allocate_kind(heap, KIND_BUSY, &plain);
}

uint32_t heap_allocate_fit(struct heap *heap, enum kind kind, const struct request *request)
{
  if (request->is_own) return heap_allocate_own(heap, request);
  return heap_allocate_kind(heap, kind, request);
}

/* ---- Freeing ---- */

BLOCK_INLINE void heap_free_since(struct heap *heap, uint32_t id, uint32_t stream, uint64_t epoch)
{
  struct block *block = heap_block(heap, id);
  heap->live_bytes -= block->bytes;
  heap->requested_bytes -= block->requested;
  heap->blocks.live--;
  block->exported = BLOCK_NOT_EXPORTED;
  block->stream = (uint16_t)stream;
  block->epoch = epoch;
  block_set_state(block, BLOCK_FREE);
  heap_add_free(heap, id);
}

void heap_free(struct heap *heap, uint32_t id, uint32_t stream)
{
  heap_free_since(heap, id, stream, stream_record_free(&heap->streams, stream));
}

void heap_free_later(struct heap *heap, uint32_t id, uint32_t stream, uint64_t epoch)
{
  heap_free_since(heap, id, stream, epoch);
}
