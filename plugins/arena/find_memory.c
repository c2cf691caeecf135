/* SPDX-License-Identifier: MIT */
/* find_memory.c: memory for an allocation that at_hand.h cannot serve: from the thread's own arena, from the heap by the
 * attempts of miss.c, and before the allocation fails, from any arena. The caller holds the global lock throughout. */
#include "arena.h"

enum { LEAST_REMNANT_BYTES = 64 << 10 /* of a smaller superblock, before the upstream is asked */ };

/* ---- Memory of the heap ---- */

/* The same request for so many bytes. */
static struct request find_memory_request(uint64_t bytes, const struct request *wanted)
{
  struct request request = *wanted;
  request.bytes = bytes;
  return request;
}

/* A free block of that size that the stream may use at once. */
static uint32_t find_memory_ready(struct arena *arena, uint64_t bytes, const struct request *wanted)
{
  const struct request request = find_memory_request(bytes, wanted);
  return heap_allocate_ready(&arena->heap, &request);
}

/* The same by the attempts up to a stage. */
static uint32_t find_memory_attempt(struct arena *arena, uint64_t bytes, const struct request *wanted, enum stage last,
                                    enum hipmm_status *status_out)
{
  const struct request request = find_memory_request(bytes, wanted);
  return arena_attempt(arena, &request, last, status_out);
}

/* What is idle in the arenas of any stream, after a wait for the device. */
static uint32_t find_memory_elsewhere(struct arena *arena, const struct request *request)
{
  bool may_wait = hipmm_is_out_of_memory(arena->refusal) && hipmm_may_wait(arena->services, arena->refusal) &&
                  !streams_any_captured(&arena->heap.streams, request->stream);
  bool may_share = request->alignment == HIPMM_ALIGNMENT && !request->is_own;
  return may_wait && may_share ? arena_find_elsewhere(arena, request) : BLOCK_NONE;
}

/* ---- Small allocations ---- */

static uint32_t find_memory_block(struct arena *arena, struct local *local, const struct request *request)
{
  struct blocks *blocks = &arena->heap.blocks;
  local_acquire(local, &arena->heap.blocks);
  arena_supply(arena, local);
  uint32_t id = local_allocate(local, blocks, request->bytes, true);
  if (id) local_make_live(local, block_of(blocks, id), request->requested, local->handle);
  bool has_surplus = local_has_surplus(local); /* other threads have freed, and may free no more */
  biased_lock_release(&local->lock);
  if (has_surplus) arena_return_idle(arena, local, arena->superblock_bytes);
  return id;
}

/* Gives the superblock to the local arena, and allocates in it. */
static uint32_t find_memory_in_superblock(struct arena *arena, struct local *local, uint32_t superblock,
                                          const struct request *request)
{
  struct blocks *blocks = &arena->heap.blocks;
  uint32_t id = BLOCK_NONE;
  if (!superblock) return BLOCK_NONE;
  local_acquire(local, blocks);
  arena_supply(arena, local);
  if (arena_add_superblock(arena, local, superblock)) {
    id = local_allocate(local, blocks, request->bytes, true);
    local_make_live(local, block_of(blocks, id), request->requested, local->handle);
  }
  biased_lock_release(&local->lock);
  if (!id) heap_free(&arena->heap, superblock, request->stream); /* records are short */
  return id;
}

static uint32_t find_memory_own(struct arena *arena, struct local *local, const struct request *request)
{
  uint32_t id = find_memory_block(arena, local, request);
  if (id || !local->pending_bytes) return id;
  arena_settle(arena, local, false);
  return find_memory_block(arena, local, request);
}

/* The least size of a superblock for the request, and the wanted size: a large arena gets larger superblocks, so that less is
 * lost at their ends. */
static uint64_t find_memory_least(const struct arena *arena, const struct request *request)
{
  return sizes_round_up(request->bytes, arena->superblock_bytes);
}

static uint64_t find_memory_most(const struct arena *arena, const struct local *local, const struct request *request)
{
  uint64_t bytes = sizes_round_up(local->bytes / 4, arena->superblock_bytes), least = find_memory_least(arena, request);
  if (bytes > arena->most_superblock_bytes) bytes = arena->most_superblock_bytes;
  return bytes > least ? bytes : least;
}

/* A free block for a smaller superblock, which is better than to ask the upstream. Where the maximum allows no more, any
 * that fits is: the next attempts wait. */
static uint32_t find_memory_remnant(struct arena *arena, const struct request *request)
{
  const struct held *held = arena->backing.held;
  bool is_full = sizes_headroom(held->maximum_bytes, held->bytes) < arena->superblock_bytes;
  uint64_t bytes = request->bytes > LEAST_REMNANT_BYTES ? request->bytes : LEAST_REMNANT_BYTES;
  uint32_t block = find_memory_ready(arena, bytes, request);
  while (!block && is_full && bytes > request->bytes) {
    bytes = sizes_smaller_step(bytes, request->bytes);
    block = find_memory_ready(arena, bytes, request);
  }
  return block;
}

/* The steps in the order of their cost. */
static uint32_t find_memory_superblock(struct arena *arena, struct local *local, const struct request *request,
                                       enum hipmm_status *status_out)
{
  uint64_t most = find_memory_most(arena, local, request), least = find_memory_least(arena, request);
  uint32_t block = find_memory_attempt(arena, least, request, STAGE_HELD, status_out);
  if (!block) block = find_memory_remnant(arena, request);
  if (!block) block = find_memory_attempt(arena, most, request, STAGE_NEW, status_out);
  if (!block && !*status_out && most > least) block = find_memory_attempt(arena, least, request, STAGE_NEW, status_out);
  return find_memory_in_superblock(arena, local, block, request);
}

enum hipmm_status arena_find_small(struct arena *arena, const struct request *wanted, uint32_t *id_out)
{
  enum hipmm_status status = HIPMM_OK;
  struct local *local = arena_enter_local(arena, wanted->stream);
  struct request loan = *wanted, *request = &loan;
  *id_out = BLOCK_NONE;
  if (!local) return HIPMM_OK;
  request->is_loan = true;
  uint32_t id = find_memory_own(arena, local, request), block = BLOCK_NONE;
  if (!id) block = find_memory_ready(arena, find_memory_most(arena, local, request), request);
  if (!id && !block) block = find_memory_ready(arena, find_memory_least(arena, request), request);
  if (block) id = find_memory_in_superblock(arena, local, block, request);
  if (!id && local->pending_bytes) {
    arena_settle(arena, local, true);
    id = find_memory_block(arena, local, request);
  }
  if (!id) id = find_memory_superblock(arena, local, request, &status);
  if (!id && !status) id = find_memory_block(arena, local, request); /* what became ready meanwhile */
  *id_out = id;
  return id ? HIPMM_OK : status;
}

/* ---- Of the heap ---- */

enum hipmm_status arena_find_shared(struct arena *arena, const struct request *request, uint32_t *id_out)
{
  enum hipmm_status status = HIPMM_OK;
  arena->refusal = HIPMM_OK;
  *id_out = arena_attempt(arena, request, STAGE_LAST, &status);
  if (!*id_out && !status) *id_out = find_memory_elsewhere(arena, request);
  return status;
}
