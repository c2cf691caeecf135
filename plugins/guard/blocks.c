/* SPDX-License-Identifier: MIT */
/* blocks.c: see guard.h. */
#include "../common/refusals.h"
#include "guard.h"

#define PER_THREAD ((hipmm_stream_t)2)

_Static_assert(GUARD_CELLS == 1 << (64 - 51), "a hash of guard_cell() is the number of a cell");

/* ---- Allocating ---- */

/* Computes the size of the upstream block, and the offset of the application's bytes in it. False on overflow. */
static bool blocks_lay_out(struct guard_record *record, size_t *front_out)
{
  size_t front = (record->zone_bytes + record->alignment - 1) & ~(record->alignment - 1), sum = 0;
  bool overflows = __builtin_add_overflow(record->block.bytes, front, &sum);
  overflows |= __builtin_add_overflow(sum, record->zone_bytes + HIPMM_ALIGNMENT - 1, &sum);
  record->upstream_bytes = sum & ~(size_t)(HIPMM_ALIGNMENT - 1);
  *front_out = front;
  return !overflows;
}

/* Empties the quarantine if the upstream is out of memory, and tries again. */
static enum hipmm_status blocks_allocate_upstream(struct guard *guard, size_t bytes, size_t alignment,
                                                  hipmm_stream_t stream, void **ptr_out)
{
  enum hipmm_status status = hipmm_upstream_allocate(guard->upstream, bytes, alignment, stream, ptr_out);
  if (!hipmm_is_out_of_memory(status) || !hipmm_may_wait(guard->services, status)) return status;
  pthread_mutex_lock(&guard->lock);
  bool keeps = guard->quarantine.count > 0;
  pthread_mutex_unlock(&guard->lock);
  if (!keeps) return status;
  int previous = guard->services->enter_device(guard->services);
  quarantine_shrink(guard, 0, stream);
  guard->services->leave_device(guard->services, previous);
  return hipmm_upstream_allocate(guard->upstream, bytes, alignment, stream, ptr_out);
}

/* Fills the zones on the block's stream. Another thread may begin to capture the stream meanwhile: then the capture has the
 * mark, which nobody can wait for, and perhaps the fill. */
static enum hipmm_status blocks_fill_and_mark(struct guard *guard, struct guard_record *record)
{
  const struct hipmm_hip *hip = guard->services->hip;
  hipmm_stream_t stream = record->block.stream;
  record->is_captured = hipmm_stream_is_captured(hip, stream) != 0;
  enum hipmm_status status = check_fill_zones(guard, record, stream);
  if (status || record->is_captured) return status;
  status = memory_mark(&guard->memory, stream, &record->filled);
  if (status || !hipmm_stream_is_captured(hip, stream)) return status;
  record->is_captured = 1;
  memory_drop_mark(&guard->memory, record->filled);
  record->filled = NULL;
  return HIPMM_OK;
}

/* Drops a record whose block was freed where the guard did not see it, once it is in the table no more. */
static void blocks_drop_stale(struct guard *guard, const struct guard_record *record)
{
  stack_traces_drop(&guard->traces, record->allocated_by);
  memory_drop_mark(&guard->memory, record->filled);
  guard_leave_cell(guard, record->block.ptr);
}

/* Fills the zones, then adds the record. */
static enum hipmm_status blocks_add(struct guard *guard, struct guard_record *record)
{
  const struct hipmm_services *services = guard->services;
  struct guard_record replaced;
  int previous = services->enter_device(services);
  enum hipmm_status status = blocks_fill_and_mark(guard, record);
  services->leave_device(services, previous);
  if (!status && !live_blocks_insert(&guard->live, record, &replaced)) status = HIPMM_E_OUT_OF_MEMORY;
  if (status) memory_drop_mark(&guard->memory, record->filled);
  if (status) return status;
  __atomic_add_fetch(guard_cell(guard, record->block.ptr), 1, __ATOMIC_RELAXED);
  if (replaced.block.ptr) blocks_drop_stale(guard, &replaced);
  return HIPMM_OK;
}

static enum hipmm_status blocks_allocate_guarded(struct guard *guard, size_t bytes, size_t alignment,
                                                 hipmm_stream_t stream, const void *from, void **ptr_out)
{
  struct guard_record record = {.block = {.bytes = bytes, .stream = stream}, .alignment = alignment};
  size_t front;
  record.zone_bytes = guard_option(&guard->options.zone_size);
  if (!blocks_lay_out(&record, &front))
    return guard->services->refuse(guard->services, HIPMM_E_OUT_OF_MEMORY,
                                   "cannot allocate {0:bytes}: no memory is that large", bytes, 0, 0);
  enum hipmm_status status =
      blocks_allocate_upstream(guard, record.upstream_bytes, alignment, stream, &record.upstream_ptr);
  if (status) return status;
  record.block.ptr = (char *)record.upstream_ptr + front;
  record.block.number = live_blocks_next_number(&guard->live);
  record.allocated_by = stack_traces_take(&guard->traces, &guard->options.stack, bytes, from);
  status = blocks_add(guard, &record);
  if (status) {
    stack_traces_drop(&guard->traces, record.allocated_by);
    hipmm_upstream_deallocate(guard->upstream, record.upstream_ptr, record.upstream_bytes, alignment, stream);
    return status;
  }
  *ptr_out = record.block.ptr;
  return HIPMM_OK;
}

/* Chances, so that a program whose allocations repeat in a fixed order has all of them guarded in time. */
static bool blocks_is_chosen(const struct guard *guard)
{
  static _Thread_local uint64_t random __attribute__((tls_model("initial-exec")));
  uint64_t interval = (uint64_t)__atomic_load_n(&guard->options.sample_interval, __ATOMIC_RELAXED);
  if (interval == 1) return true;
  if (!random) random = (uintptr_t)&random;
  random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (random >> 32) * interval >> 32 == 0;
}

/* A block without a guard, and no record stands where it is. */
static enum hipmm_status blocks_allocate_plain(struct guard *guard, size_t bytes, size_t alignment,
                                               hipmm_stream_t stream, void **ptr_out)
{
  struct guard_record stale;
  enum hipmm_status status = blocks_allocate_upstream(guard, bytes, alignment, stream, ptr_out);
  if (status) return status;
  if (!__atomic_load_n(&guard->is_sampling, __ATOMIC_RELAXED))
    __atomic_store_n(&guard->is_sampling, 1, __ATOMIC_RELAXED);
  if (__atomic_load_n(guard_cell(guard, *ptr_out), __ATOMIC_RELAXED) &&
      !live_blocks_try_extract(&guard->live, *ptr_out, 0, &stale)) {
    live_blocks_settle(&guard->live, *ptr_out);
    blocks_drop_stale(guard, &stale);
  }
  return HIPMM_OK;
}

enum hipmm_status blocks_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct guard *guard = self;
  if (!bytes) return hipmm_upstream_allocate(guard->upstream, 0, alignment, stream, ptr_out);
  return blocks_is_chosen(guard)
             ? blocks_allocate_guarded(guard, bytes, alignment, stream, __builtin_return_address(0), ptr_out)
             : blocks_allocate_plain(guard, bytes, alignment, stream, ptr_out);
}

/* ---- Freeing ---- */

/* Refuses a stream of another device. */
static enum hipmm_status blocks_check_stream(struct guard *guard, hipmm_stream_t stream)
{
  const struct hipmm_services *services = guard->services;
  const struct hipmm_hip *hip = services->hip;
  int device = services->device;
  bool is_by_name = (uintptr_t)stream <= (uintptr_t)PER_THREAD;
  if (!is_by_name && hip->StreamGetDevice && hip->StreamGetDevice(stream, &device)) hip->GetLastError();
  if (device == services->device) return HIPMM_OK;
  return services->refuse(services, HIPMM_E_ARGUMENT, "stream {0:hex} is of device {1}, not of device {2}",
                          (uintptr_t)stream, (uint64_t)device, (uint64_t)services->device);
}

/* The zones were filled on the stream of the allocation, which may be gone. A wait for the device would end the captures of
 * other streams: it is made only where HIP refuses to wait for the stream of the free, such as one that is gone. */
static enum hipmm_status blocks_wait_for_work(struct guard *guard, const struct guard_record *record,
                                              hipmm_stream_t stream)
{
  enum hipmm_status status = blocks_check_stream(guard, stream);
  if (!status) status = memory_wait_for_mark(&guard->memory, record->filled);
  return status ? status : memory_wait_for_stream(&guard->memory, stream);
}

/* The lock is held. A block is filled once its free cannot fail any more, since a failed free leaves the content. So a block
 * that goes to the upstream at once is not filled, and what fails in a filling fails no free. Waits for the pattern, which
 * would overwrite the trace of a later write, and for restored zones, which would overwrite data of the next owner. */
static enum hipmm_status blocks_quarantine(struct guard *guard, struct guard_record *record, bool *is_quarantined_out)
{
  uint64_t most = guard_option(&guard->options.quarantine_size);
  struct memory *memory = &guard->memory;
  bool keeps = record->upstream_bytes <= most && quarantine_reserve(guard, record->block.ptr);
  record->is_poisoned = keeps && guard_is_on(&guard->options.poison) &&
                        !memory_fill(memory, record->block.ptr, record->block.bytes, MEMORY_POISON, memory->stream);
  enum hipmm_status status = memory_wait(memory);
  if (keeps) quarantine_add(guard, record);
  *is_quarantined_out = keeps;
  return keeps ? HIPMM_OK : status;
}

/* A captured stream cannot be waited for, so the block is not checked. */
static enum hipmm_status blocks_check_and_quarantine(struct guard *guard, struct guard_record *record,
                                                     hipmm_stream_t stream, bool *is_quarantined_out)
{
  struct check_result result;
  if (hipmm_stream_is_captured(guard->services->hip, stream)) return HIPMM_OK;
  enum hipmm_status status = blocks_wait_for_work(guard, record, stream);
  if (status) return status;
  pthread_mutex_lock(&guard->lock);
  status = check_block(guard, record, false, "it was freed", &result);
  if (!status && check_is_damaged(&result) && guard_is_on(&guard->options.on_damage))
    status = check_refuse(guard, record, &result);
  if (!status) {
    record->block.stream = stream;
    record->is_captured = 0; /* the zones are as they should be now */
    record->filled = NULL;
    status = blocks_quarantine(guard, record, is_quarantined_out);
  }
  pthread_mutex_unlock(&guard->lock);
  return status;
}

static enum hipmm_status blocks_release(struct guard *guard, struct guard_record *record, hipmm_stream_t stream)
{
  const struct hipmm_services *services = guard->services;
  bool is_quarantined = false;
  int previous = services->enter_device(services);
  enum hipmm_status status = blocks_check_and_quarantine(guard, record, stream, &is_quarantined);
  /* A block that cannot be freed now stays, and the next free tries again. */
  if (is_quarantined) quarantine_shrink(guard, guard_option(&guard->options.quarantine_size), stream);
  services->leave_device(services, previous);
  if (status || is_quarantined) return status;
  status = hipmm_upstream_deallocate(guard->upstream, record->upstream_ptr, record->upstream_bytes, record->alignment,
                                     stream);
  if (status) return status;
  guard_leave_cell(guard, record->block.ptr);
  stack_traces_drop(&guard->traces, record->allocated_by);
  stack_traces_drop(&guard->traces, record->freed_by);
  return HIPMM_OK;
}

/* No block that is live has a guard and this pointer. True, with a line in the log: one in the quarantine has it, and was
 * freed twice. */
static bool blocks_is_freed_twice(struct guard *guard, const void *ptr)
{
  const struct hipmm_services *services = guard->services;
  pthread_mutex_lock(&guard->lock);
  const struct guard_record *record = quarantine_find(guard, ptr);
  if (record) {
    guard->double_frees++;
    services->log(services, HIPMM_LOG_ERROR, "allocation %llu (%zu bytes at %p, stream %p) is freed a second time",
                  (unsigned long long)record->block.number, record->block.bytes, ptr, (void *)record->block.stream);
    check_log_traces(guard, record, HIPMM_LOG_ERROR);
  }
  pthread_mutex_unlock(&guard->lock);
  return record != NULL;
}

enum hipmm_status blocks_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct guard *guard = self;
  struct guard_record record, before;
  bool is_sampling = __atomic_load_n(&guard->is_sampling, __ATOMIC_RELAXED);
  if (!ptr || (is_sampling && !__atomic_load_n(guard_cell(guard, ptr), __ATOMIC_RELAXED)))
    return hipmm_upstream_deallocate(guard->upstream, ptr, bytes, alignment, stream);
  enum hipmm_status status = live_blocks_try_extract(&guard->live, ptr, bytes, &record);
  if (status == HIPMM_E_POINTER)
    return blocks_is_freed_twice(guard, ptr) || !is_sampling
               ? refuse_pointer(guard->services, ptr)
               : hipmm_upstream_deallocate(guard->upstream, ptr, bytes, alignment, stream);
  if (status) return status;
  before = record;
  record.freed_by =
      stack_traces_take(&guard->traces, &guard->options.stack, record.block.bytes, __builtin_return_address(0));
  status = blocks_release(guard, &record, stream);
  if (status) {
    stack_traces_drop(&guard->traces, record.freed_by);
    live_blocks_restore(&guard->live, &before);
  } else {
    live_blocks_settle(&guard->live, ptr);
    memory_drop_mark(&guard->memory, before.filled);
  }
  return status;
}
