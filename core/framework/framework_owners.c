/* SPDX-License-Identifier: MIT */
/* framework_owners.c: a tree from block to resource. Called by framework_device.h and framework_device.c only, for blocks
 * that have a record. */
#include "framework_owners.h"
#include "../call/device_table.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>

struct owned {
  const void *ptr; /* first: the key of the tree */
  struct hipmm_resource *resource;
};

atomic_size_t framework_owners_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *records;       /* a tree of tsearch() */
static unsigned generation; /* of the table of devices that the records are about */

static int framework_owners_compare(const void *left, const void *right)
{
  uintptr_t a = (uintptr_t)((const struct owned *)left)->ptr, b = (uintptr_t)((const struct owned *)right)->ptr;
  return a < b ? -1 : a > b;
}

/* Records of stacks that are gone are dropped at the first call after that. */
static void framework_owners_lock(void)
{
  pthread_mutex_lock(&lock);
  unsigned now = atomic_load(&device_table_generation);
  if (generation == now) return;
  tdestroy(records, free);
  records = NULL;
  atomic_store(&framework_owners_count, 0);
  generation = now;
}

/* The lock is held. */
static struct owned *framework_owners_lookup(const void *ptr)
{
  struct owned key = {.ptr = ptr};
  struct owned *const *found = tfind(&key, &records, framework_owners_compare);
  return found ? *found : NULL;
}

bool framework_owners_add(const void *ptr, struct hipmm_resource *resource)
{
  framework_owners_lock();
  struct owned *owned = framework_owners_lookup(ptr);
  struct owned *added = owned ? NULL : malloc(sizeof *added);
  if (owned) owned->resource = resource; /* a stale record: the program freed that block in another way */
  if (added) {
    *added = (struct owned){ptr, resource};
    if (tsearch(added, &records, framework_owners_compare)) {
      atomic_fetch_add(&framework_owners_count, 1);
      owned = added;
    } else {
      free(added);
    }
  }
  pthread_mutex_unlock(&lock);
  return owned != NULL;
}

struct hipmm_resource *framework_owners_find(const void *ptr)
{
  framework_owners_lock();
  const struct owned *owned = framework_owners_lookup(ptr);
  struct hipmm_resource *resource = owned ? owned->resource : NULL;
  pthread_mutex_unlock(&lock);
  return resource;
}

struct hipmm_resource *framework_owners_extract(const void *ptr)
{
  framework_owners_lock();
  struct owned *owned = framework_owners_lookup(ptr);
  struct hipmm_resource *resource = owned ? owned->resource : NULL;
  if (owned) {
    tdelete(owned, &records, framework_owners_compare);
    free(owned);
    atomic_fetch_sub(&framework_owners_count, 1);
  }
  pthread_mutex_unlock(&lock);
  return resource;
}
