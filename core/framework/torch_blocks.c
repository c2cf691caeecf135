/* SPDX-License-Identifier: MIT */
/* torch_blocks.c: records of single blocks. Called by torch.c and torch_pools.c, never for a block without a record. */
#include "../base/key_tree.h"
#include "../base/log.h"
#include "../call/device_table.h"
#include "../runtime/hip.h"
#include "../stream/stream.h"
#include "torch_pools.h"

#include <stdlib.h>

struct torch_record {
  struct key_tree_node by_address; /* first */
  struct torch_block block;
};

atomic_ushort torch_filter[TORCH_FILTER_SLOTS];
atomic_uint torch_filter_records;

_Static_assert(TORCH_FILTER_SLOTS == 1 << (64 - 52), "torch_filter_slot() takes 12 bits");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct key_tree_node *records;
static unsigned generation;    /* of the table of devices that the records are about */
static atomic_bool is_missing; /* a use could not be recorded, of a block that is not known any more */

static void torch_filter_add(const void *ptr, int n)
{
  atomic_fetch_add(&torch_filter[torch_filter_slot(ptr)], (unsigned short)n);
  atomic_fetch_add(&torch_filter_records, (unsigned)n);
}

static void torch_blocks_remove_record(struct torch_record *record)
{
  key_tree_remove(&records, &record->by_address);
  torch_filter_add((const void *)record->by_address.major, -1);
  torch_uses_free(record->block.uses);
  free(record);
}

/* Records of stacks that are gone are dropped at the first call after that. */
static void torch_blocks_lock(void)
{
  pthread_mutex_lock(&lock);
  unsigned now = atomic_load(&device_table_generation);
  while (generation != now && records) torch_blocks_remove_record((struct torch_record *)records);
  generation = now;
}

/* The lock is held. */
static struct torch_record *torch_blocks_lookup(const void *ptr)
{
  return (struct torch_record *)key_tree_at(records, (uintptr_t)ptr);
}

/* The same; NULL when there is no host memory. */
static struct torch_record *torch_blocks_lookup_or_add(void *ptr)
{
  struct torch_record *record = torch_blocks_lookup(ptr);
  if (record) return record;
  record = calloc(1, sizeof *record);
  if (!record) return NULL;
  record->by_address.major = (uintptr_t)ptr;
  key_tree_insert(&records, &record->by_address);
  torch_filter_add(ptr, 1);
  return record;
}

struct torch_block torch_block_find(void *ptr)
{
  torch_blocks_lock();
  const struct torch_record *record = torch_blocks_lookup(ptr);
  struct torch_block block = record ? record->block : (struct torch_block){.pool = NULL};
  pthread_mutex_unlock(&lock);
  return block;
}

static bool torch_uses_add(struct torch_use **uses, hipmm_stream_t stream, int device)
{
  for (const struct torch_use *use = *uses; use; use = use->next)
    if (use->stream == stream && use->device == device) return true;
  struct torch_use *use = malloc(sizeof *use);
  if (!use) return false;
  *use = (struct torch_use){stream, device, NULL, *uses};
  *uses = use;
  return true;
}

void torch_block_add_use(void *ptr, hipmm_stream_t stream, int device)
{
  torch_blocks_lock();
  struct torch_record *record = torch_blocks_lookup_or_add(ptr);
  if (!record || !torch_uses_add(&record->block.uses, stream, device)) {
    if (!atomic_exchange(&is_missing, true))
      log_line(HIPMM_LOG_WARNING, "torch",
               "no host memory to record which streams use a block; some frees wait for the device from now on");
    torch_filter_add(ptr, 1); /* for ever: torch_uses_settle() must be called for the block */
  }
  pthread_mutex_unlock(&lock);
}

bool torch_block_set_pool(void *ptr, struct torch_pool *pool)
{
  torch_blocks_lock();
  struct torch_record *record = torch_blocks_lookup_or_add(ptr);
  if (record) record->block.pool = pool;
  if (record) record->block.is_cached = false;
  pthread_mutex_unlock(&lock);
  return record != NULL;
}

struct torch_use *torch_block_set_cached(void *ptr)
{
  torch_blocks_lock();
  struct torch_record *record = torch_blocks_lookup(ptr);
  struct torch_use *uses = record ? record->block.uses : NULL;
  if (record) record->block = (struct torch_block){.is_cached = true};
  pthread_mutex_unlock(&lock);
  return uses;
}

struct torch_use *torch_block_remove(void *ptr)
{
  torch_blocks_lock();
  struct torch_record *record = torch_blocks_lookup(ptr);
  struct torch_use *uses = record ? record->block.uses : NULL;
  if (record) {
    record->block.uses = NULL;
    torch_blocks_remove_record(record);
  }
  pthread_mutex_unlock(&lock);
  return uses;
}

/* ---- Uses ---- */

void torch_uses_free(struct torch_use *uses)
{
  while (uses) {
    struct torch_use *use = uses;
    uses = use->next;
    stream_event_drop(use->event);
    free(use);
  }
}

bool torch_uses_have(struct torch_use **uses, hipmm_stream_t stream, bool removes)
{
  while (*uses && (*uses)->stream != stream) uses = &(*uses)->next;
  struct torch_use *found = *uses;
  if (found && removes) {
    *uses = found->next;
    stream_event_drop(found->event);
    free(found);
  }
  return found != NULL;
}

static void torch_blocks_wait_for_device(int device)
{
  int previous = hip_enter_device(device);
  hip_table()->DeviceSynchronize();
  hip_leave_device(device, previous);
}

void torch_uses_settle(struct torch_use *uses, int device, hipmm_stream_t stream)
{
  for (const struct torch_use *use = uses; use; use = use->next) {
    if (use->stream == stream && use->device == device) continue;
    enum hipmm_status status = use->event ? stream_event_wait_on(device, stream, use->event)
                                          : stream_order(device, stream, use->device, use->stream);
    if (status) torch_blocks_wait_for_device(use->device);
  }
  if (atomic_load_explicit(&is_missing, memory_order_relaxed)) torch_blocks_wait_for_device(device);
  torch_uses_free(uses);
}

bool torch_uses_record(struct torch_use *uses, int device, hipmm_stream_t stream)
{
  bool is_whole = !atomic_load_explicit(&is_missing, memory_order_relaxed);
  for (; uses; uses = uses->next)
    if ((uses->stream != stream || uses->device != device) &&
        stream_event_take(uses->device, uses->stream, &uses->event))
      is_whole = false;
  return is_whole;
}

bool torch_uses_are_over(const struct torch_use *uses)
{
  while (uses && (!uses->event || stream_event_is_over(uses->event))) uses = uses->next;
  return !uses;
}
