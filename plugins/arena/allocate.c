/* SPDX-License-Identifier: MIT */
/* allocate.c: the ops. An allocation that the thread's own arena can serve takes only that arena's lock. So does the thread's
 * free of the arena's block on the arena's stream. Another thread's free on that stream takes no lock. Everything else takes
 * the global lock first. */
#include "../common/refusals.h"
#include "arena.h"

/* The caller holds the arena's lock. */
static inline bool arena_is_for(const struct local *local, hipmm_stream_t handle)
{
  return local->is_open && local->handle == handle &&
         (!local->stream_thread || local->stream_thread == thread_number());
}

/* ---- Allocating ---- */

static enum hipmm_status arena_refuse_without_records(const struct arena *arena, const struct request *request)
{
  const struct hipmm_services *services = arena->services;
  int64_t live_bytes, live_count = arena_live_count(arena, &live_bytes);
  enum hipmm_status status =
      services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                       "cannot allocate {0:bytes}: {1} blocks are allocated, and with the free ones between them the "
                       "arena has records for {2} and no more; free some, or allocate fewer and larger blocks",
                       request->requested, (uint64_t)live_count, arena->heap.blocks.most - 1);
  return services->explain(services, status, "{0:bytes} are held, {1:bytes} of it free", backing_bytes(&arena->backing),
                           arena_free_bytes(arena), 0, 0);
}

/* All streams were waited for by now, and every arena has returned its free superblocks. If the maximum allows growth,
 * the upstream has given the reason of its refusal. */
static enum hipmm_status arena_refuse_allocation(const struct arena *arena, const struct request *request,
                                                 struct dump *dump)
{
  const struct hipmm_services *services = arena->services;
  const struct held *held = arena->backing.held;
  int64_t live_bytes;
  uint64_t largest = arena_largest_free(arena), room = sizes_headroom(held->maximum_bytes, held->bytes);
  arena_live_count(arena, &live_bytes);
  if (arena->dumps && !hipmm_is_tried_again(services, arena->refusal)) arena_dump(arena, request->requested, dump);
  if (room >= request_fit_bytes(request))
    return services->explain(services, arena->refusal,
                             "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it allocated, and the "
                             "upstream does not have enough more; all streams were waited for, all arenas gave back "
                             "what was idle, and {3:bytes} are free in one range",
                             request->requested, held->bytes, (uint64_t)live_bytes, largest);
  services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                   "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it allocated, and maximum_size "
                   "does not allow enough more",
                   request->requested, held->bytes, (uint64_t)live_bytes);
  return services->explain(services, HIPMM_E_OUT_OF_MEMORY,
                           "all streams were waited for, all arenas gave back what was idle; {0:bytes} are free, "
                           "{1:bytes} of it in one range, and maximum_size {2:bytes} allows {3:bytes} more",
                           arena_free_bytes(arena), largest, held->maximum_bytes, room);
}

static enum hipmm_status arena_allocate_locked(struct arena *arena, struct request *request, hipmm_stream_t handle,
                                               struct dump *dump, void **ptr_out)
{
  uint32_t id = BLOCK_NONE;
  enum hipmm_status status = arena_enter_stream(arena, handle, &request->stream);
  if (status) return status;
  status = arena_find_memory(arena, request, &id);
  if (status) return status;
  if (!id && blocks_are_exhausted(&arena->heap.blocks)) return arena_refuse_without_records(arena, request);
  if (!id) return arena_refuse_allocation(arena, request, dump);
  *ptr_out = (void *)(uintptr_t)block_of(&arena->heap.blocks, id)->start;
  return HIPMM_OK;
}

static __attribute__((noinline)) enum hipmm_status arena_allocate_slow_path(struct arena *arena, size_t bytes,
                                                                            size_t alignment, hipmm_stream_t handle,
                                                                            void **ptr_out)
{
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  enum hipmm_status status = sizes_check(arena->services, bytes, alignment);
  if (status) return status;
  struct request request = {
      .bytes = sizes_round_up(bytes, HIPMM_ALIGNMENT), .alignment = alignment, .requested = bytes};
  status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  struct dump dump = {0};
  status = arena_allocate_locked(arena, &request, handle, &dump, ptr_out);
  biased_lock_release(&arena->lock);
  arena_dump_write(arena, &dump);
  return status;
}

/* A block of the caller's own arena; BLOCK_NONE if the global lock is needed. */
static inline uint32_t arena_allocate_locally(struct arena *arena, struct local *local, size_t bytes,
                                              hipmm_stream_t handle, bool without_cut)
{
  struct blocks *blocks = &arena->heap.blocks;
  uint32_t id = BLOCK_NONE;
  biased_lock_acquire(&local->lock);
  if (arena_is_for(local, handle))
    id = local_allocate(local, blocks, sizes_round_up(bytes, HIPMM_ALIGNMENT), without_cut);
  if (id) local_make_live(local, block_of(blocks, id), bytes, handle);
  biased_lock_release(&local->lock);
  return id;
}

/* Called from the upstream, the thread has the global lock already: a surplus stays until a later call. */
static __attribute__((noinline)) uint32_t arena_allocate_from_upstream(struct arena *arena, struct local *local,
                                                                       size_t bytes, hipmm_stream_t handle)
{
  return biased_lock_is_held(&arena->lock) ? arena_allocate_locally(arena, local, bytes, handle, true) : BLOCK_NONE;
}

enum hipmm_status arena_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct arena *arena = self;
  struct blocks *blocks = &arena->heap.blocks;
  hipmm_stream_t handle = stream_canonical_handle(stream);
  struct local *local = thread_recall(arena->serial, handle);
  uint32_t id = BLOCK_NONE;
  if (local && bytes - 1 < arena->small_bytes && alignment == HIPMM_ALIGNMENT) {
    id = arena_allocate_locally(arena, local, bytes, handle, false);
    if (__builtin_expect(!id, 0)) id = arena_allocate_from_upstream(arena, local, bytes, handle);
  }
  if (__builtin_expect(!id, 0)) return arena_allocate_slow_path(arena, bytes, alignment, handle, ptr_out);
  *ptr_out = (void *)(uintptr_t)block_of(blocks, id)->start;
  return HIPMM_OK;
}

/* ---- Freeing and finding ---- */

/* Claims the block, so that no other thread can free it. */
static inline enum hipmm_status arena_claim(const struct arena *arena, uint32_t id, const void *ptr, size_t bytes)
{
  struct block *block = block_of(&arena->heap.blocks, id);
  if (!block_claim(block)) return refuse_pointer(arena->services, ptr);
  uint64_t requested = block->requested;
  bool is_there = block->start == (uintptr_t)ptr; /* else it was freed meanwhile, and allocated anew elsewhere */
  if (__builtin_expect(is_there && (!bytes || bytes == requested), 1)) return HIPMM_OK;
  block_set_state(block, BLOCK_LIVE);
  return is_there ? refuse_size(arena->services, ptr, bytes, requested) : refuse_pointer(arena->services, ptr);
}

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
  if (has_surplus) arena_return_idle(arena, local, ARENA_SUPERBLOCK_BYTES);
}

/* A claimed large allocation. The caller holds the global lock. */
static void arena_free_large(struct arena *arena, uint32_t id, uint32_t stream)
{
  arena->large_count--;
  arena->large_bytes -= (int64_t)block_of(&arena->heap.blocks, id)->requested;
  heap_free(&arena->heap, id, stream);
}

/* The caller has claimed the block. If the free fails, the block is live again. */
static __attribute__((noinline)) enum hipmm_status arena_deallocate_slow_path(struct arena *arena, uint32_t id,
                                                                              hipmm_stream_t handle)
{
  uint32_t stream, number = heap_block(&arena->heap, id)->arena;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (!status) {
    status = arena_enter_stream(arena, handle, &stream);
    if (!status && number)
      arena_free_block(arena, id, arena_local(arena, number), stream);
    else if (!status)
      arena_free_large(arena, id, stream);
    biased_lock_release(&arena->lock);
  }
  if (status) block_set_state(block_of(&arena->heap.blocks, id), BLOCK_LIVE);
  return status;
}

static __attribute__((noinline)) void arena_return_surplus(struct arena *arena, struct local *local)
{
  if (biased_lock_is_held(&arena->lock)) return;                /* called from the upstream: a later free does it */
  if (biased_lock_enter(&arena->lock, arena->services)) return; /* the same */
  arena_return_idle(arena, local, ARENA_SUPERBLOCK_BYTES);
  biased_lock_release(&arena->lock);
}

/* Frees a claimed block, if its arena is for the stream of this call. The caller holds the arena's lock, which is released. */
static inline bool arena_free_locally(struct arena *arena, struct local *local, uint32_t id, hipmm_stream_t handle)
{
  const struct blocks *blocks = &arena->heap.blocks;
  bool is_for = arena_is_for(local, handle), has_surplus = false;
  if (__builtin_expect(is_for, 1)) {
    local_end_live(local, block_of(blocks, id));
    local_free(local, blocks, id);
    has_surplus = local_has_surplus(local);
  }
  biased_lock_release(&local->lock);
  if (__builtin_expect(has_surplus, 0)) arena_return_surplus(arena, local);
  return is_for;
}

/* Frees a block in another thread's arena. That thread may never allocate again, so once there are enough messages, the arena's
 * surplus is given back here. */
static bool arena_free_remotely(struct arena *arena, struct local *local, uint32_t id, hipmm_stream_t handle)
{
  if (local_send(local, &arena->heap.blocks, id, handle)) return true;
  local_acquire(local, &arena->heap.blocks);
  return arena_free_locally(arena, local, id, handle);
}

enum hipmm_status arena_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct arena *arena = self;
  struct blocks *blocks = &arena->heap.blocks;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  hipmm_stream_t handle = stream_canonical_handle(stream);
  uint32_t id = block_at(blocks, ptr, bytes);
  enum hipmm_status status = arena_claim(arena, id, ptr, bytes);
  if (__builtin_expect(status, 0)) return status;
  uint32_t number = block_of(blocks, id)->arena;
  struct local *local = arena_local(arena, number);
  bool is_free;
  if (__builtin_expect(number && local_is_of_caller(local), 1)) {
    biased_lock_acquire(&local->lock);
    is_free = arena_free_locally(arena, local, id, handle);
  } else {
    is_free = number && arena_free_remotely(arena, local, id, handle);
  }
  return __builtin_expect(is_free, 1) ? HIPMM_OK : arena_deallocate_slow_path(arena, id, handle);
}

enum hipmm_status arena_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  const struct arena *arena = self;
  uint32_t id = block_at(&arena->heap.blocks, ptr, 0);
  if (!id) return refuse_pointer(arena->services, ptr);
  *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, heap_block(&arena->heap, id)->requested};
  return HIPMM_OK;
}

/* No other thread changes the record of a live block. */
enum hipmm_status arena_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  const struct arena *arena = self;
  uint32_t id = block_at(&arena->heap.blocks, ptr, 0);
  const struct block *block = heap_block(&arena->heap, id);
  if (!id) return refuse_pointer(arena->services, ptr);
  location_out->usable_bytes = block->bytes;
  location_out->stream = block->handle;
  location_out->has_stream = 1;
  return HIPMM_OK;
}

int arena_covers(void *self, const void *ptr)
{
  struct arena *arena = self;
  if (biased_lock_enter(&arena->lock, arena->services)) return 0;
  bool covers = segments_contain(&arena->backing.segments, ptr);
  biased_lock_release(&arena->lock);
  return covers;
}

/* ---- Trimming and stream events ---- */

enum hipmm_status arena_trim(void *self, size_t keep_bytes)
{
  struct arena *arena = self;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  status = arena_collect(arena, STREAM_READY, HIPMM_OK);
  if (!status) status = backing_release_idle(&arena->backing, &arena->heap, keep_bytes);
  arena_trim_records(arena);
  biased_lock_release(&arena->lock);
  return status;
}

void arena_stream_retire(void *self, hipmm_stream_t stream)
{
  struct arena *arena = self;
  if (biased_lock_enter(&arena->lock, arena->services)) return;
  arena_retire(arena, stream_canonical_handle(stream));
  biased_lock_release(&arena->lock);
}

void arena_stream_retain(void *self, hipmm_stream_t stream)
{
  struct arena *arena = self;
  uint32_t id;
  if (biased_lock_enter(&arena->lock, arena->services)) return;
  if (!arena_enter_stream(arena, stream_canonical_handle(stream), &id)) heap_retain_stream(&arena->heap, id);
  biased_lock_release(&arena->lock);
}
