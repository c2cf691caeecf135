/* SPDX-License-Identifier: MIT */
/* framework_owners.c: see framework_owners.h. Called by framework_device.h and framework_device.c only, for blocks
 * that have a record. */
#include "framework_owners.h"
#include "../base/key_map.h"
#include "../call/device_table.h"

#include <pthread.h>

atomic_size_t framework_owners_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct key_map owners; /* block to resource */
static unsigned generation;   /* of the table of devices that the records are about */

/* Records of stacks that are gone are dropped at the first call after that. */
static void framework_owners_lock(void)
{
  pthread_mutex_lock(&lock);
  unsigned now = atomic_load(&device_table_generation);
  if (generation == now) return;
  key_map_clear(&owners);
  atomic_store(&framework_owners_count, 0);
  generation = now;
}

/* Replaces a stale record: the program freed that block in another way. */
bool framework_owners_add(const void *ptr, struct hipmm_resource *resource)
{
  framework_owners_lock();
  bool is_added = key_map_put(&owners, (uintptr_t)ptr, (uintptr_t)resource);
  atomic_store(&framework_owners_count, owners.count);
  pthread_mutex_unlock(&lock);
  return is_added;
}

struct hipmm_resource *framework_owners_find(const void *ptr)
{
  framework_owners_lock();
  uint64_t resource = key_map_get(&owners, (uintptr_t)ptr);
  pthread_mutex_unlock(&lock);
  return (struct hipmm_resource *)(uintptr_t)resource;
}

struct hipmm_resource *framework_owners_extract(const void *ptr)
{
  framework_owners_lock();
  uint64_t resource = key_map_extract(&owners, (uintptr_t)ptr);
  atomic_store(&framework_owners_count, owners.count);
  pthread_mutex_unlock(&lock);
  return (struct hipmm_resource *)(uintptr_t)resource;
}
