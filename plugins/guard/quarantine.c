/* SPDX-License-Identifier: MIT */
/* quarantine.c: see guard.h. */
#include "guard.h"

enum { FIRST_CAPACITY = 64 };

/* ---- The ring; the lock is held ---- */

static struct guard_record *quarantine_item(const struct quarantine *quarantine, size_t index)
{
  return &quarantine->items[(quarantine->head + index) & (quarantine->capacity - 1)];
}

static bool quarantine_grow(struct guard *guard)
{
  struct quarantine *quarantine = &guard->quarantine;
  const struct hipmm_services *services = guard->services;
  size_t capacity = quarantine->capacity ? 2 * quarantine->capacity : FIRST_CAPACITY;
  struct guard_record *items = services->host_allocate(services, capacity * sizeof *items);
  if (!items) return false;
  for (size_t i = 0; i < quarantine->count; i++) items[i] = *quarantine_item(quarantine, i);
  if (quarantine->items)
    services->host_free(services, quarantine->items, quarantine->capacity * sizeof *quarantine->items);
  quarantine->items = items;
  quarantine->capacity = capacity;
  quarantine->head = 0;
  return true;
}

bool quarantine_reserve(struct guard *guard, const void *ptr)
{
  struct quarantine *quarantine = &guard->quarantine;
  bool has_room = quarantine->count + quarantine->leaving < quarantine->capacity || quarantine_grow(guard);
  return has_room && key_map_put(&quarantine->by_ptr, (uintptr_t)ptr, quarantine->left + quarantine->count + 1);
}

void quarantine_add(struct guard *guard, const struct guard_record *record)
{
  struct quarantine *quarantine = &guard->quarantine;
  *quarantine_item(quarantine, quarantine->count++) = *record;
  quarantine->bytes += record->upstream_bytes;
}

static struct guard_record quarantine_remove_oldest(struct quarantine *quarantine)
{
  struct guard_record record = *quarantine_item(quarantine, 0);
  quarantine->head = (quarantine->head + 1) & (quarantine->capacity - 1);
  quarantine->count--;
  quarantine->leaving++;
  quarantine->left++;
  key_map_extract(&quarantine->by_ptr, (uintptr_t)record.block.ptr);
  quarantine->bytes -= record.upstream_bytes;
  return record;
}

/* Without host memory for its place in the map, a second free of the block finds it no more. */
static void quarantine_restore(struct quarantine *quarantine, const struct guard_record *record)
{
  quarantine->head = (quarantine->head + quarantine->capacity - 1) & (quarantine->capacity - 1);
  *quarantine_item(quarantine, 0) = *record;
  quarantine->count++;
  quarantine->leaving--;
  quarantine->left--;
  (void)!key_map_put(&quarantine->by_ptr, (uintptr_t)record->block.ptr, quarantine->left + 1);
  quarantine->bytes += record->upstream_bytes;
}

const struct guard_record *quarantine_find(const struct guard *guard, const void *ptr)
{
  const struct quarantine *quarantine = &guard->quarantine;
  uint64_t turn = key_map_get(&quarantine->by_ptr, (uintptr_t)ptr);
  return turn ? quarantine_item(quarantine, turn - 1 - quarantine->left) : NULL;
}

/* ---- Freeing ---- */

static enum hipmm_status quarantine_free(struct guard *guard, const struct guard_record *record, hipmm_stream_t stream)
{
  return hipmm_upstream_deallocate(guard->upstream, record->upstream_ptr, record->upstream_bytes, record->alignment,
                                   stream);
}

static void quarantine_drop_traces(struct guard *guard, const struct guard_record *record)
{
  stack_traces_drop(&guard->traces, record->allocated_by);
  stack_traces_drop(&guard->traces, record->freed_by);
}

/* Calls the upstream without the lock, since the upstream may call this resource again. */
static enum hipmm_status quarantine_release_oldest(struct guard *guard, hipmm_stream_t stream)
{
  struct quarantine *quarantine = &guard->quarantine;
  struct check_result result;
  struct guard_record record = quarantine_remove_oldest(quarantine);
  enum hipmm_status status = check_block(guard, &record, true, "it left the quarantine", &result);
  if (!status) status = memory_wait(&guard->memory); /* a restoring fill must not overwrite data of the next owner */
  if (!status) {
    pthread_mutex_unlock(&guard->lock);
    status = quarantine_free(guard, &record, stream);
    pthread_mutex_lock(&guard->lock);
  }
  if (status) {
    quarantine_restore(quarantine, &record);
  } else {
    guard_leave_cell(guard, record.block.ptr);
    quarantine->leaving--;
    quarantine_drop_traces(guard, &record);
  }
  return status;
}

enum hipmm_status quarantine_shrink(struct guard *guard, uint64_t bytes, hipmm_stream_t stream)
{
  enum hipmm_status status = HIPMM_OK;
  pthread_mutex_lock(&guard->lock);
  while (!status && guard->quarantine.bytes > bytes) status = quarantine_release_oldest(guard, stream);
  pthread_mutex_unlock(&guard->lock);
  return status;
}

enum hipmm_status quarantine_verify(struct guard *guard, uint64_t *damaged)
{
  enum hipmm_status status = HIPMM_OK;
  struct check_result result = {0};
  for (size_t i = 0; i < guard->quarantine.count && !status; i++) {
    status = check_block(guard, quarantine_item(&guard->quarantine, i), true, "it was verified", &result);
    if (!status) *damaged += check_is_damaged(&result);
  }
  return status;
}

void quarantine_visit(const struct guard *guard, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                      void *closure)
{
  for (size_t i = 0; i < guard->quarantine.count; i++) {
    const struct guard_record *record = quarantine_item(&guard->quarantine, i);
    visitor(closure, &(struct hipmm_extent){.ptr = record->upstream_ptr,
                                            .bytes = record->upstream_bytes,
                                            .state = HIPMM_EXTENT_PENDING,
                                            .stream = record->block.stream});
  }
}

/* Each failed free is repeated once, since nothing can repeat it later. */
void quarantine_close(struct guard *guard)
{
  struct quarantine *quarantine = &guard->quarantine;
  const struct hipmm_services *services = guard->services;
  for (size_t i = 0; i < quarantine->count; i++) {
    const struct guard_record *record = quarantine_item(quarantine, i);
    if (quarantine_free(guard, record, NULL) && quarantine_free(guard, record, NULL))
      services->log(services, HIPMM_LOG_ERROR, "%p could not be freed: it is lost", record->upstream_ptr);
    quarantine_drop_traces(guard, record);
  }
  key_map_clear(&quarantine->by_ptr);
  if (quarantine->items)
    services->host_free(services, quarantine->items, quarantine->capacity * sizeof *quarantine->items);
}
