/* SPDX-License-Identifier: MIT */
/* region.c: see region.h. Each device has its own instance of a resource, and two resources may name one region, so the
 * regions in use are listed for the whole process. */
#include "region.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct region *in_use;

/* ---- As an upstream; the pool above holds its lock ---- */

static enum hipmm_status region_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  struct region *region = self;
  (void)alignment, (void)stream;
  if (region->is_allocated || bytes > region->bytes) return HIPMM_E_OUT_OF_MEMORY; /* the caller reports it */
  region->is_allocated = true;
  *ptr_out = region->start;
  return HIPMM_OK;
}

/* The pool may free the region only at its end: it could not allocate it again as a whole otherwise. */
static enum hipmm_status region_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct region *region = self;
  (void)ptr, (void)bytes, (void)alignment, (void)stream;
  return region->is_closing ? HIPMM_OK : HIPMM_E_NOT_SUPPORTED;
}

static const struct hipmm_ops region_ops = {
    .struct_size = sizeof region_ops, .allocate = region_allocate, .deallocate = region_deallocate};

/* ---- Claiming ---- */

static bool region_overlap(const struct region *one, const struct region *other)
{
  uintptr_t start = (uintptr_t)one->start, other_start = (uintptr_t)other->start;
  return start < other_start + other->bytes && other_start < start + one->bytes;
}

static enum hipmm_status region_claim(struct region *region)
{
  const struct hipmm_services *services = region->services;
  pthread_mutex_lock(&lock);
  const struct region *other = in_use;
  while (other && !region_overlap(region, other)) other = other->next;
  enum hipmm_status status = HIPMM_OK;
  if (other)
    status = services->fail(services, HIPMM_E_CONFIG, "region",
                            "%zu bytes at %p overlap the region of %s on device %d; give every resource, and every "
                            "device, a region of its own",
                            region->bytes, (void *)region->start, other->services->name, other->services->device);
  if (!status) {
    region->next = in_use;
    in_use = region;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

enum hipmm_status region_open(struct region *region, const struct hipmm_services *services,
                              const struct hipmm_region *registered)
{
  uintptr_t start = (uintptr_t)registered->ptr;
  if (start % HIPMM_ALIGNMENT)
    return services->fail(services, HIPMM_E_CONFIG, "region",
                          "the region begins at %p, which is not aligned to %d bytes; register it %zu bytes later",
                          registered->ptr, HIPMM_ALIGNMENT, HIPMM_ALIGNMENT - start % HIPMM_ALIGNMENT);
  if (registered->bytes < HIPMM_ALIGNMENT)
    return services->fail(services, HIPMM_E_CONFIG, "region", "the region has %zu bytes; register at least %d",
                          registered->bytes, HIPMM_ALIGNMENT);
  *region = (struct region){.resource = {&region_ops, region},
                            .services = services,
                            .start = registered->ptr,
                            .bytes = registered->bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT};
  return region_claim(region);
}

void region_close(struct region *region)
{
  pthread_mutex_lock(&lock);
  struct region **link = &in_use;
  while (*link != region) link = &(*link)->next;
  *link = region->next;
  pthread_mutex_unlock(&lock);
}
