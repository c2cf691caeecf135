/* SPDX-License-Identifier: MIT */
/* granules.c: commits memory to the target of an allocation, chunk by chunk. Driver calls take microseconds, so this is
 * for allocations that find no committed block, never for reuse. */
#include "backing.h"

/* To create so many chunks takes longer than to ask whether they are available. */
enum { MANY_CHUNKS = 16 };

/* The initial size has at most about so many chunks: it is for a program that knows what it needs, and begins at once. */
enum { MOST_CHUNKS = 4096 };

/* While there is slack, memory is added in steps of at least this part of what is held. */
enum { STEP_SHARE = 128 };

static uint32_t granules_uncommitted_in(const void *opaque, uint64_t start, uint64_t end)
{
  const struct chunks *chunks = opaque;
  return addresses_uncommitted(&chunks->addresses, addresses_round_down(&chunks->addresses, start),
                               addresses_round_up(&chunks->addresses, end));
}

enum hipmm_status granules_open(struct granules *granules, struct heap *heap, const struct hipmm_services *services,
                                struct hipmm_resource *upstream, const struct pool_options *options)
{
  granules->moves = granules->returns = 0;
  granules->slack = (struct slack){.services = services,
                                   .held = &granules->chunks.held,
                                   .moves = true,
                                   .is_of_device = true,
                                   .wanted_bytes = options->slack};
  enum hipmm_status status = chunks_open(&granules->chunks, services, upstream, options);
  if (status) return status;
  heap->blocks.granule_bytes = granules->chunks.addresses.granule_bytes;
  heap->uncommitted_in = granules_uncommitted_in;
  heap->chunks = &granules->chunks;
  return HIPMM_OK;
}

/* ---- Growing ---- */

/* A run of uncommitted granules: `granules` of them are to be committed, from `address` on, and a chunk there may have up
 * to `fit` granules. */
struct hole {
  uint64_t address;
  uint64_t granules, fit;
};

static uint64_t granules_hole_end(const struct chunks *chunks, const struct hole *hole)
{
  return hole->address + hole->granules * chunks->addresses.granule_bytes;
}

/* The last hole in [start, end). If it reaches `end`, the uncommitted granules behind it, up to `limit`, fit too. */
static bool granules_last_hole(const struct chunks *chunks, uint64_t start, uint64_t end, uint64_t limit,
                               struct hole *hole_out)
{
  enum { MOST_FIT = 1 << 12 };
  uint64_t last = addresses_last(&chunks->addresses, start, end, false);
  if (last == end) return false;
  uint64_t stop = last + chunks->addresses.granule_bytes,
           before = last > start ? addresses_last(&chunks->addresses, start, last, true) : last;
  hole_out->address = before == last ? start : before + chunks->addresses.granule_bytes;
  hole_out->granules = (stop - hole_out->address) / chunks->addresses.granule_bytes;
  if (limit > stop + MOST_FIT * chunks->addresses.granule_bytes)
    limit = stop + MOST_FIT * chunks->addresses.granule_bytes;
  if (limit > stop) stop = addresses_first(&chunks->addresses, stop, limit, true);
  hole_out->fit = (stop - hole_out->address) / chunks->addresses.granule_bytes;
  return true;
}

/* The block to be committed. It is in no list. */
struct target {
  uint32_t id;
  struct block *block;
  uint32_t stream; /* that will use it */
  uint64_t end;    /* of the request, a multiple of the granule */
  enum source_of_memory source_of_memory;
  bool may_be_pending;  /* chunks may come from blocks that are pending on `stream` */
  uint64_t pending_end; /* end of the last such chunk; 0: there is none */
  uint32_t last; /* free block that the last chunk came from: the next chunk is likely there. BLOCK_NONE: none yet */
};

/* Work of the target's stream may still use the alias mapping of the chunk that now ends at `end`. */
static void granules_mark_pending(struct target *target, struct heap *heap, uint64_t end)
{
  if (end > target->pending_end) target->pending_end = end;
  stream_mark(&heap->streams, target->stream);
}

/* The free block in which the chunk is mapped, if the target's stream may use it; BLOCK_NONE otherwise. */
static uint32_t granules_idle_holder(const struct chunks *chunks, const struct heap *heap, uint32_t chunk,
                                     struct target *target)
{
  if (!chunk_of(chunks, chunk)->current) return BLOCK_NONE; /* an unmapped chunk */
  uint64_t start = chunk_address(chunks, chunk), end = start + chunk_bytes(chunks, chunk);
  if (start >= target->end && block_holds(target->block, start, end))
    return target->may_be_pending || target->block->stream == STREAM_READY ? target->id : BLOCK_NONE;
  if (target->last && block_holds(block_of(&heap->blocks, target->last), start, end)) return target->last;
  uint32_t id = free_index_holding(&heap->free[STREAM_READY], &heap->blocks, start, end);
  if (!id && target->may_be_pending) id = free_index_holding(&heap->free[target->stream], &heap->blocks, start, end);
  return id ? target->last = id : BLOCK_NONE;
}

/* If an alias mapping ends the hole and its chunk is idle and fits, makes that mapping current again. The hole becomes
 * shorter. */
static bool granules_restore_alias(struct granules *granules, struct heap *heap, struct target *target,
                                   struct hole *hole)
{
  struct chunks *chunks = &granules->chunks;
  uint64_t begin;
  uint32_t chunk =
      addresses_chunk_at(&chunks->addresses, granules_hole_end(chunks, hole) - chunks->addresses.granule_bytes, &begin);
  if (!chunk || begin < hole->address) return false;
  if (begin + chunk_bytes(chunks, chunk) > hole->address + hole->fit * chunks->addresses.granule_bytes) return false;
  uint32_t holder = granules_idle_holder(chunks, heap, chunk, target);
  if (!holder || idle_detach_chunk(chunks, heap, chunk, holder, holder != target->id)) return false;
  chunk_map(chunks, chunk, begin); /* it is mapped there, so this cannot fail */
  target->block->uncommitted -= chunk_of(chunks, chunk)->granules;
  if (block_of(&heap->blocks, holder)->stream != STREAM_READY)
    granules_mark_pending(target, heap, begin + chunk_bytes(chunks, chunk));
  hole->granules = hole->fit = (begin - hole->address) / chunks->addresses.granule_bytes;
  granules->returns++;
  return true;
}

/* Detaches an idle chunk of at most `most` granules that the target's stream may use at once. *pending_out: work of that
 * stream may still use its alias mapping. */
static enum hipmm_status granules_detach_idle(struct chunks *chunks, struct heap *heap, struct target *target,
                                              uint64_t most, uint32_t *chunk_out, bool *pending_out)
{
  bool pending = target->block->stream != STREAM_READY;
  enum hipmm_status status = HIPMM_E_OUT_OF_MEMORY;
  if (target->may_be_pending || !pending)
    status = idle_detach_from(chunks, heap, target->id, target->end, most, chunk_out);
  *pending_out = pending && !status;
  if (status) status = idle_detach(chunks, heap, STREAM_READY, most, chunk_out);
  if (!status || !target->may_be_pending) return status;
  status = idle_detach(chunks, heap, target->stream, most, chunk_out);
  if (status) status = idle_detach_waiting(chunks, heap, target->stream, most, chunk_out);
  *pending_out = !status;
  return status;
}

/* Creates a chunk for the hole: for all of it, if chunks may be so large. A chunk for less than chunks should have takes the
 * uncommitted granules behind the hole too. */
static enum hipmm_status granules_create(struct granules *granules, const struct target *target,
                                         const struct hole *hole, uint32_t *chunk_out)
{
  uint64_t most = slack_chunk_limit(&granules->slack);
  uint64_t fill = target->block->uncommitted / MOST_CHUNKS;
  if (target->source_of_memory == MEMORY_FROM_FILL && most < fill) most = fill;
  uint64_t least = chunks_least(&granules->chunks);
  if (most < least) most = least;
  uint64_t wanted = hole->granules > least ? hole->granules : least < hole->fit ? least : hole->fit;
  return chunk_create(&granules->chunks, wanted < most ? wanted : most, chunk_out);
}

/* The same within the slack, and a step larger where addresses behind the hole are uncommitted too. */
static enum hipmm_status granules_create_in_slack(struct granules *granules, const struct target *target,
                                                  const struct hole *hole, uint32_t *chunk_out)
{
  struct chunks *chunks = &granules->chunks;
  uint64_t growth = slack_growth(&granules->slack) / chunks->addresses.granule_bytes;
  uint64_t step = chunks->held.bytes / STEP_SHARE / chunks->addresses.granule_bytes;
  struct hole wanted = *hole;
  if (wanted.granules < step) wanted.granules = step;
  if (wanted.granules > hole->fit) wanted.granules = hole->fit;
  if (wanted.granules > growth) wanted.granules = growth; /* the hole is not larger */
  return granules_create(granules, target, &wanted, chunk_out);
}

/* Obtains a chunk for the hole: an unmapped one, an idle one, or a new one. */
static enum hipmm_status granules_obtain_chunk(struct granules *granules, struct heap *heap, struct target *target,
                                               const struct hole *hole, uint32_t *chunk_out, bool *pending_out)
{
  struct chunks *chunks = &granules->chunks;
  uint32_t unmapped = idle_obtain_unmapped(chunks, heap, hole->fit, target->stream);
  *pending_out = false;
  if (unmapped) {
    *chunk_out = unmapped;
    return HIPMM_OK;
  }
  if (target->source_of_memory == MEMORY_FROM_SLACK) return granules_create_in_slack(granules, target, hole, chunk_out);
  enum hipmm_status status = granules_detach_idle(chunks, heap, target, hole->fit, chunk_out, pending_out);
  if (!status) granules->moves++;
  return status && target->source_of_memory >= MEMORY_FROM_GROWTH ? granules_create(granules, target, hole, chunk_out)
                                                                  : status;
}

/* Maps the chunk at the address, in uncommitted granules of the target. Unmaps alias mappings that are in the way. */
static enum hipmm_status granules_map_chunk(struct chunks *chunks, struct heap *heap, struct target *target,
                                            uint32_t chunk, uint64_t address)
{
  uint32_t alias;
  uint64_t end = address + chunk_bytes(chunks, chunk);
  bool is_there = chunk_is_mapped_at(chunks, chunk, address);
  enum hipmm_status status = HIPMM_OK;
  while (!is_there && !status && (alias = addresses_last_mapping(&chunks->addresses, address, end))) {
    status = idle_await_mapping(chunks, heap, alias, target->stream);
    if (!status) status = chunks_unmap_alias(chunks, alias);
  }
  if (!status) status = chunk_map(chunks, chunk, address);
  if (!status) target->block->uncommitted -= chunk_of(chunks, chunk)->granules;
  if (!status) return HIPMM_OK;
  chunks_add_unmapped(chunks, chunk);
  return status;
}

/* Commits every granule of the target from `start` on, the last hole first. */
static enum hipmm_status granules_commit_range(struct granules *granules, struct heap *heap, struct target *target,
                                               uint64_t start)
{
  struct chunks *chunks = &granules->chunks;
  struct hole hole;
  uint64_t limit = addresses_round_down(&chunks->addresses, target->block->start + target->block->bytes);
  while (granules_last_hole(chunks, start, target->end, limit, &hole)) {
    uint32_t chunk;
    bool pending;
    while (hole.granules && granules_restore_alias(granules, heap, target, &hole)) continue;
    if (!hole.granules) continue;
    enum hipmm_status status = granules_obtain_chunk(granules, heap, target, &hole, &chunk, &pending);
    if (status) return status;
    /* At the end of the hole, so that the rest is one hole again. */
    uint64_t size = chunk_of(chunks, chunk)->granules, left = size < hole.granules ? hole.granules - size : 0;
    uint64_t address = hole.address + left * chunks->addresses.granule_bytes;
    status = granules_map_chunk(chunks, heap, target, chunk, address);
    if (status) return status;
    if (pending) granules_mark_pending(target, heap, address + chunk_bytes(chunks, chunk));
  }
  return HIPMM_OK;
}

/* Finds the best fit, in a new range if necessary. */
static enum hipmm_status granules_find(struct granules *granules, struct heap *heap, const struct request *request,
                                       uint32_t *id_out)
{
  const struct range *range;
  struct chunks *chunks = &granules->chunks;
  *id_out = heap_fit_uncommitted(heap, request);
  if (*id_out) return HIPMM_OK;
  enum hipmm_status status = chunks_reserve(chunks, request_fit_bytes(request), &range);
  if (status) return status;
  uint32_t uncommitted = (uint32_t)(range->bytes / chunks->addresses.granule_bytes);
  *id_out = heap_add_region(heap, range->start, range->bytes, uncommitted, STREAM_READY);
  if (*id_out) return HIPMM_OK;
  addresses_unreserve_last(&chunks->addresses);
  return chunks->services->refuse(chunks->services, HIPMM_E_OUT_OF_MEMORY,
                                  "no host memory left to manage {0:bytes} of addresses", request->bytes, 0, 0);
}

/* A chunk may be remapped before its last use completes only if the driver keeps its old mapping, and if the new user can
 * record an event after that use, which it cannot while its stream is captured. */
static bool granules_may_be_pending(const struct granules *granules, const struct heap *heap, uint32_t stream)
{
  return granules->chunks.may_alias && stream != STREAM_READY && !stream_is_captured(&heap->streams, stream);
}

/* Commits the target from `start` on, which need not be a multiple of the granule. Takes the block out of its list
 * meanwhile. */
static enum hipmm_status granules_commit_block(struct granules *granules, struct heap *heap, struct target *target,
                                               uint64_t start)
{
  heap_unlink(heap, target->id);
  enum hipmm_status status =
      granules_commit_range(granules, heap, target, addresses_round_down(&granules->chunks.addresses, start));
  heap_link(heap, target->id);
  if (status && target->pending_end) heap_mark_pending(heap, target->id, UINT64_MAX, target->stream);
  return status;
}

/* Asks the driver only about a request for many new chunks, which other users of the device would lack if they were created
 * in vain. */
static enum hipmm_status granules_check_available(void *self, const struct heap *heap, const struct request *request)
{
  struct granules *granules = self;
  struct chunks *chunks = &granules->chunks;
  uint64_t idle = chunks->held.bytes - heap->live_bytes;
  if (request->bytes <= idle) return HIPMM_OK;
  uint64_t more = request->bytes - idle;
  if (more / chunks->addresses.granule_bytes < MANY_CHUNKS * slack_chunk_limit(&granules->slack)) return HIPMM_OK;
  /* A capture forbids the calls that would tell. */
  if (streams_any_captured(&heap->streams, request->stream)) return HIPMM_OK;
  return chunks_check_available(chunks, more);
}

static enum hipmm_status granules_commit_request(struct granules *granules, struct heap *heap,
                                                 const struct request *request, enum source_of_memory source_of_memory,
                                                 uint32_t *id_out)
{
  uint32_t id;
  const struct chunks *chunks = &granules->chunks;
  enum hipmm_status status = granules_find(granules, heap, request, &id);
  if (status) return status;
  uint64_t start = heap_start_in(heap, id, request), end = start + request->bytes;
  uint64_t needed = granules_uncommitted_in(chunks, start, end) * chunks->addresses.granule_bytes;
  if (source_of_memory == MEMORY_FROM_SLACK && needed > slack_growth(&granules->slack)) return HIPMM_E_OUT_OF_MEMORY;
  struct target target = {.id = id,
                          .block = block_of(&heap->blocks, id),
                          .stream = request->stream,
                          .end = addresses_round_up(&chunks->addresses, end),
                          .source_of_memory = source_of_memory,
                          .may_be_pending = granules_may_be_pending(granules, heap, request->stream)};
  status = granules_commit_block(granules, heap, &target, start);
  if (status) return status;
  /* The pending part behind the request stays pending on the same stream. */
  if (target.pending_end > end)
    heap_mark_pending(heap, id, target.pending_end > target.end ? target.pending_end : target.end, request->stream);
  *id_out = id;
  return HIPMM_OK;
}

enum hipmm_status granules_allocate(struct granules *granules, struct heap *heap, const struct request *request,
                                    enum source_of_memory source_of_memory, uint32_t *id_out)
{
  struct slack *slack = &granules->slack;
  uint32_t id = BLOCK_NONE;
  uint64_t peak_bytes = slack->peak_bytes;
  slack_update(slack, heap->live_bytes + request->bytes);
  bool is_low_on_memory = slack_is_low_on_memory(slack, request->bytes);
  __atomic_store_n(&heap->is_low_on_memory, is_low_on_memory, __ATOMIC_RELAXED); /* threads read it without the lock */
  enum hipmm_status status = request->is_own ? own_create(granules, heap, request, source_of_memory, &id)
                                             : granules_commit_request(granules, heap, request, source_of_memory, &id);
  if (!status) id = heap_allocate(heap, id, request);
  if (!status && !id) status = HIPMM_E_OUT_OF_MEMORY;
  if (status) slack->peak_bytes = peak_bytes;
  if (!status) *id_out = id;
  return status;
}

/* ---- The ops ---- */

/* Where a chunk may have alias mappings, all pending chunks were used without a host wait. */
static enum hipmm_status granules_allocate_waiting(void *self, struct heap *heap, const struct request *request,
                                                   enum source_of_memory source_of_memory, uint32_t *id_out)
{
  struct granules *granules = self;
  enum hipmm_status status = granules_allocate(granules, heap, request, source_of_memory, id_out);
  if (source_of_memory != MEMORY_FROM_MOVE || status != HIPMM_E_OUT_OF_MEMORY || granules->chunks.may_alias)
    return status;
  if (!idle_is_pending(&granules->chunks, heap)) return status;
  heap_wait(heap);
  uint32_t id = heap_allocate_ready(heap, request);
  if (!id) return granules_allocate(granules, heap, request, source_of_memory, id_out);
  *id_out = id;
  return HIPMM_OK;
}

static enum hipmm_status granules_release_idle(void *self, struct heap *heap, uint64_t keep_bytes)
{
  struct granules *granules = self;
  granules->slack.peak_bytes = 0;
  return own_release(&granules->chunks, heap, keep_bytes);
}

static uint64_t granules_first(const void *self, uint64_t start, uint64_t end, bool committed)
{
  const struct chunks *chunks = &((const struct granules *)self)->chunks;
  uint64_t at = addresses_first(&chunks->addresses, addresses_round_down(&chunks->addresses, start),
                                addresses_round_up(&chunks->addresses, end), committed);
  return at < start ? start : at < end ? at : end;
}

static uint64_t granules_available_bytes(const void *self, const struct heap *heap)
{
  uint64_t bytes = 0;
  for (uint32_t id = 1; id < heap->blocks.count; id++) {
    const struct block *block = block_of(&heap->blocks, id);
    if (block_is_idle(block)) bytes += idle_bytes_in(&((const struct granules *)self)->chunks, block);
  }
  return bytes;
}

static void granules_close(void *self)
{
  chunks_close(&((struct granules *)self)->chunks);
}

const struct backing_ops granules_ops = {.moves = true,
                                         .check_available = granules_check_available,
                                         .allocate = granules_allocate_waiting,
                                         .release_idle = granules_release_idle,
                                         .available_bytes = granules_available_bytes,
                                         .first = granules_first,
                                         .close = granules_close};
