/* SPDX-License-Identifier: MIT */
/* allocate.c: what at_hand.h leaves over, the ops that the types with an arena share, and how an arena begins and ends. */
#include "../../core/base/text.h"
#include "at_hand.h"

/* ---- Allocating ---- */

uint32_t arena_allocate_from_upstream(struct arena *arena, struct local *local, size_t bytes, hipmm_stream_t handle)
{
  return biased_lock_is_held(&arena->lock) ? arena_allocate_locally(arena, local, bytes, handle, true) : BLOCK_NONE;
}

/* ---- Freeing and finding ---- */

/* A claimed block of a local arena, on any stream. The caller holds the global lock. */
static void arena_free_block(struct arena *arena, uint32_t id, struct local *local, uint32_t stream)
{
  struct streams *streams = &arena->heap.streams;
  struct block *block = block_of(&arena->heap.blocks, id);
  local_acquire(local, &arena->heap.blocks);
  local_end_live(local, block);
  bool is_own = stream == local->stream;
  uint64_t epoch = !is_own || streams->record == RECORD_ON_FREE ? stream_record_free(streams, stream) : 0;
  block->stream = (uint16_t)stream;
  block->epoch = epoch;
  if (is_own)
    local_free(local, &arena->heap.blocks, id);
  else
    arena_add_pending(arena, local, id);
  bool has_surplus = local_has_surplus(local);
  biased_lock_release(&local->lock);
  if (has_surplus) arena_return_idle(arena, local, arena->superblock_bytes);
}

enum hipmm_status arena_free_slow_path(struct arena *arena, uint32_t id, hipmm_stream_t handle)
{
  uint32_t stream, number = heap_block(&arena->heap, id)->arena;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (!status) {
    status = arena_enter_stream(arena, handle, &stream);
    if (!status && number)
      arena_free_block(arena, id, arena_local(arena, number), stream);
    else if (!status)
      heap_free(&arena->heap, id, stream);
    biased_lock_release(&arena->lock);
  }
  if (status) block_set_state(block_of(&arena->heap.blocks, id), BLOCK_LIVE);
  return status;
}

void arena_return_surplus(struct arena *arena, struct local *local)
{
  if (biased_lock_is_held(&arena->lock)) return;                /* called from the upstream: a later free does it */
  if (biased_lock_enter(&arena->lock, arena->services)) return; /* the same */
  arena_return_idle(arena, local, arena->superblock_bytes);
  biased_lock_release(&arena->lock);
}

bool arena_free_remotely(struct arena *arena, struct local *local, uint32_t id, hipmm_stream_t handle)
{
  if (local_send(local, &arena->heap.blocks, id, handle)) return true;
  local_acquire(local, &arena->heap.blocks);
  return arena_free_locally(arena, local, id, handle);
}

enum hipmm_status arena_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct arena *arena = self;
  uint32_t id = block_at(&arena->heap.blocks, ptr, 0);
  if (!id) return arena->type->refuse(arena, ptr);
  *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, heap_block(&arena->heap, id)->requested};
  return HIPMM_OK;
}

/* No other thread changes the record of a live block. */
enum hipmm_status arena_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  struct arena *arena = self;
  uint32_t id = block_at(&arena->heap.blocks, ptr, 0);
  const struct block *block = heap_block(&arena->heap, id);
  if (!id) return arena->type->refuse(arena, ptr);
  location_out->usable_bytes = block->bytes;
  location_out->stream = block->handle;
  location_out->has_stream = 1;
  return HIPMM_OK;
}

/* Mapped memory is no block of the upstream. */
int arena_covers(void *self, const void *ptr)
{
  struct arena *arena = self;
  if (biased_lock_enter(&arena->lock, arena->services)) return 0;
  bool covers = segments_contain(&arena->backing.segments, ptr);
  biased_lock_release(&arena->lock);
  return covers;
}

/* ---- Trimming ---- */

enum hipmm_status arena_trim(void *self, size_t keep_bytes)
{
  struct arena *arena = self;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  if (arena->type->flush) arena->type->flush(arena);
  status = arena_collect(arena, STREAM_READY, HIPMM_OK);
  if (!status) status = backing_release_idle(&arena->backing, &arena->heap, keep_bytes);
  arena_trim_records(arena);
  biased_lock_release(&arena->lock);
  return status;
}

/* ---- Life ---- */

bool arena_open(struct arena *arena, enum record record)
{
  arena->serial = thread_new_owner();
  arena->superblock_bytes = ARENA_SUPERBLOCK_BYTES;
  arena->most_superblock_bytes = ARENA_MOST_SUPERBLOCK_BYTES;
  arena->n_locals = 1;
  biased_lock_open(&arena->lock);
  return heap_open(&arena->heap, arena->services, record);
}

void arena_close(struct arena *arena)
{
  device_wait_at_end(arena->services);
  backing_close(&arena->backing);
  heap_close(&arena->heap);
  for (uint32_t number = 1; number < arena->n_locals; number++) biased_lock_close(&arena_local(arena, number)->lock);
  arena->services->host_free(arena->services, arena->locals, sizeof *arena->locals);
  biased_lock_close(&arena->lock);
}

enum hipmm_status arena_fill(struct arena *arena, uint64_t bytes, const char *option)
{
  const struct hipmm_services *services = arena->services;
  enum hipmm_status status = bytes ? backing_fill(&arena->backing, &arena->heap, bytes) : HIPMM_OK;
  if (!bytes || (status && !hipmm_is_out_of_memory(status))) return status;
  if (!status) return arena_synchronize(arena, STREAM_READY);
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, option,
                        "the upstream does not have %llu bytes; ask for less (a percentage is of what is free)",
                        (unsigned long long)bytes);
}

void arena_warn_of_live(const struct arena *arena, int64_t count, int64_t bytes)
{
  if (count)
    arena->services->log(arena->services, HIPMM_LOG_WARNING,
                         "destroyed with %lld block%s (%lld byte%s) still allocated", (long long)count,
                         text_plural((uint64_t)count), (long long)bytes, text_plural((uint64_t)bytes));
}
