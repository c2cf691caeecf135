/* SPDX-License-Identifier: MIT */
/* allocate.c: the ops of `monotonic`. An allocation orders its stream after the earlier users of the memory (uses.c),
 * then gets the next free bytes (bump.c). */
#include "../common/refusals.h"
#include "monotonic.h"

/* ---- Allocating ---- */

/* All chunks are too small and nothing is allocated: exchanges them for a larger one. */
static enum hipmm_status monotonic_grow_in_exchange(struct monotonic *monotonic, size_t bytes, size_t alignment,
                                                    hipmm_stream_t handle, uint32_t stream)
{
  enum hipmm_status status = uses_synchronize(&monotonic->uses, stream);
  if (!status) status = bump_release_untouched(&monotonic->bump, 0);
  return status ? status : bump_grow(&monotonic->bump, bytes, alignment, handle);
}

/* If the maximum allows growth, adds to the reason of the upstream. */
static enum hipmm_status monotonic_refuse_allocation(const struct monotonic *monotonic, enum hipmm_status status,
                                                     size_t bytes, size_t alignment)
{
  const struct hipmm_services *services = monotonic->services;
  const struct bump *bump = &monotonic->bump;
  uint64_t used_bytes = bump->used_bytes + bump->offset;
  if (sizes_headroom(bump->maximum_bytes, bump->bytes) < bytes + (alignment - HIPMM_ALIGNMENT))
    return services->refuse(
        services, HIPMM_E_OUT_OF_MEMORY,
        "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it in use since the last rewind, and "
        "maximum_size does not allow enough more",
        bytes, bump->bytes, used_bytes);
  return services->explain(
      services, status,
      "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it in use since the last rewind, "
      "and the upstream does not have enough more",
      bytes, bump->bytes, used_bytes, 0);
}

static enum hipmm_status monotonic_allocate_locked(struct monotonic *monotonic, size_t bytes, size_t alignment,
                                                   hipmm_stream_t handle, uint32_t *number_out)
{
  struct bump *bump = &monotonic->bump;
  uint32_t stream;
  enum hipmm_status status = uses_enter(&monotonic->uses, handle, &stream);
  if (!status) status = uses_order(&monotonic->uses, stream);
  if (status) return status;
  *number_out = bump_allocate(bump, bytes, alignment, handle);
  if (*number_out) return HIPMM_OK;
  if (bump->n_blocks == BUMP_MOST_BLOCKS)
    return monotonic->services->refuse(
        monotonic->services, HIPMM_E_OUT_OF_MEMORY,
        "cannot allocate {0:bytes}: there are {1} blocks, and there can be no more until "
        "all are freed",
        bytes, BUMP_MOST_BLOCKS - 1, 0);
  status = bump_grow(bump, bytes, alignment, handle);
  bool can_exchange = !bump->live_count && bump->n_chunks && !streams_any_captured(&monotonic->uses.streams, stream);
  if (hipmm_is_out_of_memory(status) && can_exchange)
    status = monotonic_grow_in_exchange(monotonic, bytes, alignment, handle, stream);
  if (status)
    return hipmm_is_out_of_memory(status) ? monotonic_refuse_allocation(monotonic, status, bytes, alignment) : status;
  uses_note_chunk(&monotonic->uses, stream);
  *number_out = bump_allocate(bump, bytes, alignment, handle);
  return HIPMM_OK;
}

enum hipmm_status monotonic_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct monotonic *monotonic = self;
  uint32_t number = BUMP_NONE;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  enum hipmm_status status = sizes_check(monotonic->services, bytes, alignment);
  if (status) return status;
  status = biased_lock_enter(&monotonic->lock, monotonic->services);
  if (status) return status;
  status = monotonic_allocate_locked(monotonic, bytes, alignment, stream_canonical_handle(stream), &number);
  if (!status) *ptr_out = (void *)(uintptr_t)monotonic->bump.blocks[number].start;
  biased_lock_release(&monotonic->lock);
  return status;
}

/* ---- Freeing and finding ---- */

/* The caller holds the lock. */
static enum hipmm_status monotonic_find_live(const struct monotonic *monotonic, const void *ptr, uint32_t *number_out)
{
  uint32_t number = bump_find(&monotonic->bump, ptr);
  if (!number || !monotonic->bump.blocks[number].requested) return refuse_pointer(monotonic->services, ptr);
  *number_out = number;
  return HIPMM_OK;
}

/* The caller holds the lock. */
static enum hipmm_status monotonic_free_locked(struct monotonic *monotonic, const void *ptr, size_t bytes,
                                               hipmm_stream_t handle)
{
  struct bump *bump = &monotonic->bump;
  uint32_t number = 0, stream;
  enum hipmm_status status = monotonic_find_live(monotonic, ptr, &number);
  if (status) return status;
  uint64_t requested = bump->blocks[number].requested;
  if (bytes && bytes != requested) return refuse_size(monotonic->services, ptr, bytes, requested);
  status = uses_enter(&monotonic->uses, handle, &stream);
  if (status) return status;
  bump_free(bump, number, handle);
  uses_note_free(&monotonic->uses, stream);
  if (bump->live_count) return HIPMM_OK;
  bump_rewind(bump);
  uses_rewind(&monotonic->uses);
  monotonic->rewinds++;
  return HIPMM_OK;
}

enum hipmm_status monotonic_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct monotonic *monotonic = self;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  enum hipmm_status status = biased_lock_enter(&monotonic->lock, monotonic->services);
  if (status) return status;
  status = monotonic_free_locked(monotonic, ptr, bytes, stream_canonical_handle(stream));
  biased_lock_release(&monotonic->lock);
  return status;
}

enum hipmm_status monotonic_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct monotonic *monotonic = self;
  uint32_t number = 0;
  enum hipmm_status status = biased_lock_enter(&monotonic->lock, monotonic->services);
  if (status) return status;
  status = monotonic_find_live(monotonic, ptr, &number);
  if (!status) *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, monotonic->bump.blocks[number].requested};
  biased_lock_release(&monotonic->lock);
  return status;
}

int monotonic_covers(void *self, const void *ptr)
{
  struct monotonic *monotonic = self;
  if (biased_lock_enter(&monotonic->lock, monotonic->services)) return 0;
  bool covers = bump_contains(&monotonic->bump, ptr);
  biased_lock_release(&monotonic->lock);
  return covers;
}

enum hipmm_status monotonic_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                  void *closure)
{
  struct monotonic *monotonic = self;
  enum hipmm_status status = biased_lock_enter(&monotonic->lock, monotonic->services);
  if (status) return status;
  bump_visit(&monotonic->bump, visitor, closure);
  biased_lock_release(&monotonic->lock);
  return HIPMM_OK;
}

/* ---- Trimming and stream events ---- */

enum hipmm_status monotonic_release(struct monotonic *monotonic, uint64_t keep_bytes)
{
  bump_trim_records(&monotonic->bump);
  if (monotonic->bump.bytes <= keep_bytes || !hipmm_may_wait(monotonic->services, HIPMM_OK)) return HIPMM_OK;
  enum hipmm_status status = uses_synchronize(&monotonic->uses, STREAM_READY);
  return status ? status : bump_release_untouched(&monotonic->bump, keep_bytes);
}

enum hipmm_status monotonic_trim(void *self, size_t keep_bytes)
{
  struct monotonic *monotonic = self;
  enum hipmm_status status = biased_lock_enter(&monotonic->lock, monotonic->services);
  if (status) return status;
  status = monotonic_release(monotonic, keep_bytes);
  biased_lock_release(&monotonic->lock);
  return status;
}

void monotonic_stream_retire(void *self, hipmm_stream_t stream)
{
  struct monotonic *monotonic = self;
  if (biased_lock_enter(&monotonic->lock, monotonic->services)) return;
  uses_retire(&monotonic->uses, stream_canonical_handle(stream));
  biased_lock_release(&monotonic->lock);
}

void monotonic_stream_retain(void *self, hipmm_stream_t stream)
{
  struct monotonic *monotonic = self;
  if (biased_lock_enter(&monotonic->lock, monotonic->services)) return;
  uses_retain(&monotonic->uses, stream_canonical_handle(stream));
  biased_lock_release(&monotonic->lock);
}
