/* SPDX-License-Identifier: MIT */
/* instance_memory.c: memory for the instances of stacks, and whether a pointer is a live resource. The memory is never
 * given back, so a stale resource can always be inspected safely: its ops refuse the call. Memory that was freed last is
 * used again last. Called when a stack is built and destroyed, and by public functions. */
#include "../base/error.h"
#include "instance.h"

#include <stdlib.h>
#include <string.h>

/* UNUSED_SLOTS: an array is used again only while arrays with more slots than these are free. */
enum { FIRST_SLOTS = 128, UNUSED_SLOTS = 64, MOST_REGIONS = 32, CLASSES = 12 };

_Static_assert(GRAPH_MAX_NODES <= 1 << (CLASSES - 1), "the instances of a stack are of one class");

/* Slots for instances, side by side. Each region is larger than the one before. */
struct region {
  struct instance *slots;
  size_t n, n_used;
};

/* Arrays of 1 << class instances that are free; the first instance of one holds the next one. */
struct free_arrays {
  struct instance *first, *last;
  size_t n;
};

static struct region regions[MOST_REGIONS];
static atomic_uint n_regions;
static struct free_arrays free_arrays[CLASSES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Stale resources ---- */

static enum hipmm_status instance_memory_refuse_allocate(void *self, size_t bytes, size_t alignment,
                                                         hipmm_stream_t stream, void **ptr_out)
{
  (void)self, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  return error_refuse(HIPMM_E_ARGUMENT, NULL, INSTANCE_NOT_LIVE, 0, 0, 0);
}

static enum hipmm_status instance_memory_refuse_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                                           hipmm_stream_t stream)
{
  (void)self, (void)ptr, (void)bytes, (void)alignment, (void)stream;
  return error_refuse(HIPMM_E_ARGUMENT, NULL, INSTANCE_NOT_LIVE, 0, 0, 0);
}

/* The two ops that are called without instance_is_live(). */
static const struct hipmm_ops stale_ops = {.struct_size = sizeof stale_ops,
                                           .allocate = instance_memory_refuse_allocate,
                                           .deallocate = instance_memory_refuse_deallocate};

void instance_memory_clear(struct instance *instances, size_t n)
{
  memset(instances, 0, n * sizeof *instances);
  for (size_t i = 0; i < n; i++) instances[i].resource.ops = &stale_ops;
}

bool instance_is_live(const struct hipmm_resource *resource)
{
  unsigned n = atomic_load_explicit(&n_regions, memory_order_acquire);
  for (unsigned i = 0; i < n; i++) {
    uintptr_t offset = (uintptr_t)resource - (uintptr_t)regions[i].slots;
    if (offset >= regions[i].n * sizeof(struct instance)) continue;
    return offset % sizeof(struct instance) == 0 && resource->ops && resource->ops != &stale_ops;
  }
  return false;
}

/* ---- Memory ---- */

static unsigned instance_memory_class(size_t n)
{
  unsigned class = 0;
  while ((size_t)1 << class < n) class ++;
  return class;
}

/* New slots; the lock is held. NULL without host memory. */
static struct instance *instance_memory_take_slots(size_t n)
{
  unsigned count = atomic_load_explicit(&n_regions, memory_order_relaxed);
  struct region *region = count ? &regions[count - 1] : NULL;
  if (!region || region->n - region->n_used < n) {
    size_t size = (size_t)FIRST_SLOTS << count;
    if (size < n) size = n;
    struct instance *slots = count < MOST_REGIONS ? calloc(size, sizeof *slots) : NULL;
    if (!slots) return NULL;
    region = &regions[count];
    *region = (struct region){.slots = slots, .n = size};
    atomic_store_explicit(&n_regions, count + 1, memory_order_release);
  }
  region->n_used += n;
  return region->slots + region->n_used - n;
}

struct instance *instance_memory_allocate(size_t n)
{
  unsigned class = instance_memory_class(n);
  struct free_arrays *arrays = &free_arrays[class];
  struct instance *found = NULL;
  pthread_mutex_lock(&lock);
  if (arrays->n > (size_t)UNUSED_SLOTS >> class) {
    found = arrays->first;
    arrays->first = found->next_free;
    if (!--arrays->n) arrays->last = NULL;
  }
  if (!found) found = instance_memory_take_slots((size_t)1 << class);
  pthread_mutex_unlock(&lock);
  if (found) instance_memory_clear(found, n);
  return found;
}

void instance_memory_free(struct instance *instances, size_t n)
{
  struct free_arrays *arrays = &free_arrays[instance_memory_class(n)];
  if (!instances) return;
  instance_memory_clear(instances, n);
  pthread_mutex_lock(&lock);
  *(arrays->last ? &arrays->last->next_free : &arrays->first) = instances;
  arrays->last = instances;
  arrays->n++;
  pthread_mutex_unlock(&lock);
}
