/* SPDX-License-Identifier: MIT */
/* quarantine.c: see quarantine.h. */
#include "quarantine.h"
#include "../../core/base/cancel.h"
#include "check.h"

enum { FIRST_CAPACITY = 64 };

/* ---- The ring; the lock is held ---- */

static struct guard_record *item(const struct quarantine *quarantine, size_t index)
{
  return &quarantine->items[(quarantine->head + index) & (quarantine->capacity - 1)];
}

static bool grow(struct guard *guard)
{
  struct quarantine *quarantine = &guard->quarantine;
  const struct hipmm_services *services = guard->services;
  size_t capacity = quarantine->capacity ? 2 * quarantine->capacity : FIRST_CAPACITY;
  struct guard_record *items = services->host_allocate(services, capacity * sizeof *items);
  if (!items) return false;
  for (size_t i = 0; i < quarantine->count; i++) items[i] = *item(quarantine, i);
  if (quarantine->items)
    services->host_free(services, quarantine->items, quarantine->capacity * sizeof *quarantine->items);
  quarantine->items = items;
  quarantine->capacity = capacity;
  quarantine->head = 0;
  return true;
}

bool quarantine_add(struct guard *guard, const struct guard_record *record)
{
  struct quarantine *quarantine = &guard->quarantine;
  if (quarantine->count + quarantine->leaving == quarantine->capacity && !grow(guard)) return false;
  *item(quarantine, quarantine->count++) = *record;
  quarantine->bytes += record->upstream_bytes;
  return true;
}

static struct guard_record take_oldest(struct quarantine *quarantine)
{
  struct guard_record record = *item(quarantine, 0);
  quarantine->head = (quarantine->head + 1) & (quarantine->capacity - 1);
  quarantine->count--;
  quarantine->leaving++;
  quarantine->bytes -= record.upstream_bytes;
  return record;
}

static void put_back(struct quarantine *quarantine, const struct guard_record *record)
{
  quarantine->head = (quarantine->head + quarantine->capacity - 1) & (quarantine->capacity - 1);
  *item(quarantine, 0) = *record;
  quarantine->count++;
  quarantine->leaving--;
  quarantine->bytes += record->upstream_bytes;
}

const struct guard_record *quarantine_find(const struct guard *guard, const void *ptr)
{
  const struct guard_record *found = NULL;
  for (size_t i = 0; i < guard->quarantine.count && !found; i++) {
    const struct guard_record *record = item(&guard->quarantine, i);
    if (record->block.ptr == ptr) found = record;
  }
  return found;
}

/* ---- Giving back ---- */

static enum hipmm_status give_back(struct guard *guard, const struct guard_record *record, hipStream_t stream)
{
  return hipmm_upstream_deallocate(guard->upstream, record->upstream_ptr, record->upstream_bytes, record->alignment,
                                   stream);
}

static void drop_traces(struct guard *guard, const struct guard_record *record)
{
  traces_drop(&guard->traces, record->allocated_by);
  traces_drop(&guard->traces, record->freed_by);
}

/* The upstream is called without the lock: what it does may lead back to us. */
static enum hipmm_status release_oldest(struct guard *guard, hipStream_t stream)
{
  struct quarantine *quarantine = &guard->quarantine;
  struct check_finds finds;
  struct guard_record record = take_oldest(quarantine);
  enum hipmm_status status = check_block(guard, &record, true, "it was about to go back", &finds);
  if (!status) status = memory_wait(&guard->memory); /* a mending fill must not meet the next owner */
  if (!status) {
    pthread_mutex_unlock(&guard->lock);
    status = give_back(guard, &record, stream);
    pthread_mutex_lock(&guard->lock);
  }
  if (status) {
    put_back(quarantine, &record);
  } else {
    quarantine->leaving--;
    drop_traces(guard, &record);
  }
  return status;
}

enum hipmm_status quarantine_shrink(struct guard *guard, uint64_t bytes, hipStream_t stream)
{
  enum hipmm_status status = HIPMM_OK;
  int cancel = cancel_forbid();
  pthread_mutex_lock(&guard->lock);
  while (!status && guard->quarantine.bytes > bytes) status = release_oldest(guard, stream);
  pthread_mutex_unlock(&guard->lock);
  cancel_allow(cancel);
  return status;
}

enum hipmm_status quarantine_verify(struct guard *guard, uint64_t *damaged)
{
  enum hipmm_status status = HIPMM_OK;
  struct check_finds finds = {0};
  for (size_t i = 0; i < guard->quarantine.count && !status; i++) {
    status = check_block(guard, item(&guard->quarantine, i), true, "it was verified", &finds);
    if (!status) *damaged += check_found(&finds);
  }
  return status;
}

void quarantine_visit(const struct guard *guard, void (*see)(void *closure, const struct hipmm_extent *extent),
                      void *closure)
{
  for (size_t i = 0; i < guard->quarantine.count; i++) {
    const struct guard_record *record = item(&guard->quarantine, i);
    see(closure, &(struct hipmm_extent){.ptr = record->upstream_ptr,
                                        .bytes = record->upstream_bytes,
                                        .state = HIPMM_EXTENT_PENDING,
                                        .stream = record->block.stream});
  }
}

/* What fails is tried once more: nobody comes after us who could. */
void quarantine_close(struct guard *guard)
{
  struct quarantine *quarantine = &guard->quarantine;
  const struct hipmm_services *services = guard->services;
  for (size_t i = 0; i < quarantine->count; i++) {
    const struct guard_record *record = item(quarantine, i);
    if (give_back(guard, record, NULL) && give_back(guard, record, NULL))
      services->log(services, HIPMM_LOG_ERROR, "%p could not be given back: it is lost", record->upstream_ptr);
    drop_traces(guard, record);
  }
  if (quarantine->items)
    services->host_free(services, quarantine->items, quarantine->capacity * sizeof *quarantine->items);
}
