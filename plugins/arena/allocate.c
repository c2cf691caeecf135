/* SPDX-License-Identifier: MIT */
/* allocate.c: the ops. An allocation that the thread's own arena can serve, and a free on the stream of the block's
 * arena, take the lock of that arena alone. Everything else takes the global lock first. */
#include "arena.h"

/* The caller holds the arena's lock. */
static inline bool arena_is_for(const struct local *local, hipmm_stream_t handle)
{
  return local->is_open && local->handle == handle &&
         (!local->stream_thread || local->stream_thread == thread_number());
}

/* ---- Allocating ---- */

static enum hipmm_status arena_refuse_without_records(const struct arena *arena,
                                                      const struct arena_allocation *allocation)
{
  const struct hipmm_services *services = arena->services;
  int64_t live_bytes, live_count = arena_live_count(arena, &live_bytes);
  enum hipmm_status status =
      services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                       "cannot allocate {0:bytes}: {1} blocks are allocated, and with the free ones between them the "
                       "arena has records for {2} and no more; free some, or allocate fewer and larger blocks",
                       allocation->requested, (uint64_t)live_count, arena->global.ranges.most - 1);
  return services->explain(services, status, "{0:bytes} are held, {1:bytes} of it free", arena->global.chunks.bytes,
                           arena_free_bytes(arena), 0, 0);
}

/* All streams were waited for by now, and every arena has returned its free superblocks. If the maximum allows growth,
 * the upstream has given the reason of its refusal. */
static enum hipmm_status arena_refuse_allocation(const struct arena *arena, const struct arena_allocation *allocation,
                                                 struct dump *dump)
{
  const struct hipmm_services *services = arena->services;
  const struct arena_chunks *chunks = &arena->global.chunks;
  int64_t live_bytes;
  uint64_t largest = arena_largest_free(arena), room = arena_chunks_room(chunks);
  arena_live_count(arena, &live_bytes);
  if (arena->dumps && !hipmm_is_tried_again(services, arena->refusal)) arena_dump(arena, allocation->requested, dump);
  if (room >= allocation->bytes + (allocation->alignment - HIPMM_ALIGNMENT))
    return services->explain(services, arena->refusal,
                             "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it allocated, and the "
                             "upstream does not have enough more; all streams were waited for, all arenas gave back "
                             "what was idle, and {3:bytes} are free in one range",
                             allocation->requested, chunks->bytes, (uint64_t)live_bytes, largest);
  services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                   "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it allocated, and maximum_size "
                   "does not allow enough more",
                   allocation->requested, chunks->bytes, (uint64_t)live_bytes);
  return services->explain(services, HIPMM_E_OUT_OF_MEMORY,
                           "all streams were waited for, all arenas gave back what was idle; {0:bytes} are free, "
                           "{1:bytes} of it in one range, and maximum_size {2:bytes} allows {3:bytes} more",
                           arena_free_bytes(arena), largest, chunks->maximum_bytes, room);
}

static enum hipmm_status arena_allocate_locked(struct arena *arena, struct arena_allocation *allocation,
                                               struct dump *dump, void **ptr_out)
{
  uint32_t id = RANGE_NONE;
  enum hipmm_status status = arena_enter_stream(arena, allocation->handle, &allocation->stream);
  if (status) return status;
  status = arena_find_memory(arena, allocation, &id);
  if (status) return status;
  if (!id && ranges_are_exhausted(&arena->global.ranges)) return arena_refuse_without_records(arena, allocation);
  if (!id) return arena_refuse_allocation(arena, allocation, dump);
  *ptr_out = (void *)(uintptr_t)range_of(&arena->global.ranges, id)->start;
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
  struct arena_allocation allocation = {
      .bytes = sizes_round_up(bytes, HIPMM_ALIGNMENT), .alignment = alignment, .requested = bytes, .handle = handle};
  status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  struct dump dump = {0};
  status = arena_allocate_locked(arena, &allocation, &dump, ptr_out);
  biased_lock_release(&arena->lock);
  arena_dump_write(arena, &dump);
  return status;
}

enum hipmm_status arena_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct arena *arena = self;
  struct arena_ranges *ranges = &arena->global.ranges;
  hipmm_stream_t handle = stream_canonical_handle(stream);
  struct local *local = thread_recall(arena->serial, handle);
  uint32_t id = RANGE_NONE;
  if (local && bytes - 1 < arena->small_bytes && alignment == HIPMM_ALIGNMENT) {
    biased_lock_acquire(&local->lock);
    if (arena_is_for(local, handle)) id = local_allocate(local, ranges, sizes_round_up(bytes, HIPMM_ALIGNMENT), false);
    if (id) local_make_live(local, range_of(ranges, id), bytes, handle);
    biased_lock_release(&local->lock);
  }
  if (__builtin_expect(!id, 0)) return arena_allocate_slow_path(arena, bytes, alignment, handle, ptr_out);
  *ptr_out = (void *)(uintptr_t)range_of(ranges, id)->start;
  return HIPMM_OK;
}

/* ---- Freeing and finding ---- */

static __attribute__((noinline)) enum hipmm_status arena_refuse_pointer(const struct arena *arena, const void *ptr)
{
  return arena->services->refuse(arena->services, HIPMM_E_POINTER,
                                 "{0:hex} is not allocated here: it is foreign, or was freed before", (uintptr_t)ptr, 0,
                                 0);
}

/* HIPMM_OK if `id` is a live range of arena `number` at `ptr` and, unless `bytes` is 0, was allocated with `bytes`. The
 * caller holds the lock of that arena, or the global lock for number 0. The state is read first: another thread may be
 * changing a range that is not live. */
static inline enum hipmm_status arena_check_free(const struct arena *arena, uint32_t id, uint32_t number,
                                                 const void *ptr, size_t bytes)
{
  const struct arena_range *range = range_of(&arena->global.ranges, id);
  if (!range_is_live_at(range, ptr) || range_arena(range) != number) return HIPMM_E_POINTER;
  return bytes && bytes != range->requested ? HIPMM_E_SIZE : HIPMM_OK;
}

static __attribute__((noinline)) enum hipmm_status arena_refuse_free(const struct arena *arena, uint32_t id,
                                                                     const void *ptr, size_t bytes,
                                                                     enum hipmm_status status)
{
  if (status == HIPMM_E_POINTER) return arena_refuse_pointer(arena, ptr);
  const struct arena_range *range = range_of(&arena->global.ranges, id);
  return arena->services->refuse(arena->services, status,
                                 "{0:hex} was allocated with {1} bytes and cannot be freed with {2}", (uintptr_t)ptr,
                                 __atomic_load_n(&range->requested, __ATOMIC_RELAXED), bytes);
}

/* A block of a local arena, on any stream. The caller holds the global lock. */
static enum hipmm_status arena_free_block(struct arena *arena, uint32_t id, struct local *local, const void *ptr,
                                          size_t bytes, uint32_t stream)
{
  struct streams *streams = &arena->global.streams;
  struct arena_range *block = range_of(&arena->global.ranges, id);
  biased_lock_acquire(&local->lock);
  enum hipmm_status status = arena_check_free(arena, id, local->number, ptr, bytes);
  if (!status) {
    local_end_live(local, block);
    bool is_own = stream == local->stream;
    uint64_t epoch = !is_own || streams->record == RECORD_ON_FREE ? stream_record_free(streams, stream) : 0;
    block->stream = (uint16_t)stream;
    block->epoch = epoch;
    if (is_own)
      local_free(local, &arena->global.ranges, id);
    else
      arena_add_pending(arena, local, id);
  }
  bool has_surplus = local_has_surplus(local);
  biased_lock_release(&local->lock);
  if (has_surplus) arena_return_idle(arena, local, ARENA_SUPERBLOCK_BYTES);
  return status;
}

/* A large allocation. The caller holds the global lock. */
static enum hipmm_status arena_free_range(struct arena *arena, uint32_t id, const void *ptr, size_t bytes,
                                          uint32_t stream)
{
  struct global *global = &arena->global;
  enum hipmm_status status = arena_check_free(arena, id, 0, ptr, bytes);
  if (status) return status;
  global->live_count--;
  global->live_bytes -= (int64_t)range_of(&global->ranges, id)->requested;
  global_free(global, id, stream, stream_record_free(&global->streams, stream));
  return HIPMM_OK;
}

static __attribute__((noinline)) enum hipmm_status arena_deallocate_slow_path(struct arena *arena, uint32_t id,
                                                                              const void *ptr, size_t bytes,
                                                                              hipmm_stream_t handle)
{
  uint32_t stream;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  uint32_t number = range_arena(range_of(&arena->global.ranges, id));
  status = arena_enter_stream(arena, handle, &stream);
  if (!status)
    status = number ? arena_free_block(arena, id, arena_local(arena, number), ptr, bytes, stream)
                    : arena_free_range(arena, id, ptr, bytes, stream);
  biased_lock_release(&arena->lock);
  return status == HIPMM_E_POINTER || status == HIPMM_E_SIZE ? arena_refuse_free(arena, id, ptr, bytes, status)
                                                             : status;
}

static __attribute__((noinline)) void arena_return_surplus(struct arena *arena, struct local *local)
{
  if (biased_lock_is_held(&arena->lock)) return;                /* called from the upstream: a later free does it */
  if (biased_lock_enter(&arena->lock, arena->services)) return; /* the same */
  arena_return_idle(arena, local, ARENA_SUPERBLOCK_BYTES);
  biased_lock_release(&arena->lock);
}

enum hipmm_status arena_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct arena *arena = self;
  struct arena_ranges *ranges = &arena->global.ranges;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  hipmm_stream_t handle = stream_canonical_handle(stream);
  uint32_t id = range_at(ranges, ptr), number = id ? range_arena(range_of(ranges, id)) : 0;
  if (!id) return arena_refuse_pointer(arena, ptr);
  if (!number) return arena_deallocate_slow_path(arena, id, ptr, bytes, handle);
  struct local *local = arena_local(arena, number);
  biased_lock_acquire(&local->lock);
  if (__builtin_expect(!arena_is_for(local, handle), 0)) {
    biased_lock_release(&local->lock);
    return arena_deallocate_slow_path(arena, id, ptr, bytes, handle);
  }
  enum hipmm_status status = arena_check_free(arena, id, number, ptr, bytes);
  if (!status) {
    local_end_live(local, range_of(ranges, id));
    local_free(local, ranges, id);
  }
  bool has_surplus = local_has_surplus(local);
  biased_lock_release(&local->lock);
  if (__builtin_expect(status, 0)) return arena_refuse_free(arena, id, ptr, bytes, status);
  if (__builtin_expect(has_surplus, 0)) arena_return_surplus(arena, local);
  return HIPMM_OK;
}

enum hipmm_status arena_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  const struct arena *arena = self;
  uint32_t id = range_at(&arena->global.ranges, ptr);
  const struct arena_range *range = range_of(&arena->global.ranges, id);
  if (!id || !range_is_live_at(range, ptr)) return arena_refuse_pointer(arena, ptr);
  *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, __atomic_load_n(&range->requested, __ATOMIC_RELAXED)};
  return HIPMM_OK;
}

/* No other thread changes the record of a live block. */
enum hipmm_status arena_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  const struct arena *arena = self;
  uint32_t id = range_at(&arena->global.ranges, ptr);
  const struct arena_range *range = range_of(&arena->global.ranges, id);
  if (!id || !range_is_live_at(range, ptr)) return arena_refuse_pointer(arena, ptr);
  location_out->usable_bytes = range->bytes;
  location_out->stream = range->handle;
  location_out->has_stream = 1;
  return HIPMM_OK;
}

int arena_covers(void *self, const void *ptr)
{
  struct arena *arena = self;
  if (biased_lock_enter(&arena->lock, arena->services)) return 0;
  bool covers = arena_chunks_contain(&arena->global.chunks, ptr);
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
  if (!status) status = global_release_idle(&arena->global, keep_bytes);
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
  if (!arena_enter_stream(arena, stream_canonical_handle(stream), &id)) global_retain_stream(&arena->global, id);
  biased_lock_release(&arena->lock);
}
