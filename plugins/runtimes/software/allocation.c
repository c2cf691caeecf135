/* SPDX-License-Identifier: MIT */
/* allocation.c: the table of live memory, by address. Called by every file that allocates or frees memory, and by spans.
 *
 * An operation holds a reference to the allocation that it was given, not only an address. So an operation on freed
 * memory is found even if the address was allocated again before the operation executes. */
#include "internal.h"
#include <stdlib.h>
#include <sys/mman.h>

static struct software_heap *allocation_heap(enum software_memory_kind kind, int device)
{
  bool is_device = kind == SOFTWARE_DEVICE_MEMORY || kind == SOFTWARE_POOLED;
  return is_device ? &software.devices[device].heap : &software.host_heap;
}

hipError_t software_allocation_add(enum software_memory_kind kind, int device, void *start, size_t bytes,
                                   struct software_allocation **allocation_out)
{
  struct software_allocation *allocation = calloc(1, sizeof *allocation);
  if (!allocation) return hipErrorOutOfMemory;
  allocation->by_address = (struct key_tree_node){.major = (uintptr_t)start, .minor = bytes};
  allocation->kind = kind;
  allocation->device = device;
  allocation->references = 1;
  allocation->is_managed = kind == SOFTWARE_MANAGED;
  allocation->is_host = kind == SOFTWARE_PINNED || kind == SOFTWARE_REGISTERED;
  allocation->is_visible = true;
  allocation->id = ++software.last_allocation_id;
  key_tree_insert(&software.allocations, &allocation->by_address);
  software.devices[device].live_count++;
  software.devices[device].live_bytes += bytes;
  software_watch_gave(allocation);
  *allocation_out = allocation;
  return hipSuccess;
}

hipError_t software_allocation_create(enum software_memory_kind kind, int device, size_t bytes,
                                      struct software_allocation **allocation_out)
{
  struct software_heap *heap = allocation_heap(kind, device);
  struct software_block *block;
  hipError_t error = software_heap_allocate(heap, bytes, &block);
  if (error != hipSuccess) return error;
  error = software_allocation_add(kind, device, (void *)block->by_address.major, bytes, allocation_out);
  if (error == hipSuccess)
    (*allocation_out)->block = block;
  else
    software_heap_free(heap, block);
  return error;
}

struct software_allocation *software_allocation_holding(const void *pointer)
{
  struct software_allocation *allocation =
      (struct software_allocation *)key_tree_holding(software.allocations, (uintptr_t)pointer);
  return allocation && !allocation->closing ? allocation : NULL;
}

struct software_allocation *software_allocation_at(const void *pointer)
{
  struct software_allocation *allocation = software_allocation_holding(pointer);
  return allocation && allocation->by_address.major == (uintptr_t)pointer ? allocation : NULL;
}

void software_allocation_remove(struct software_allocation *allocation)
{
  struct software_device *device = &software.devices[allocation->device];
  allocation->closing = true;
  key_tree_remove(&software.allocations, &allocation->by_address);
  device->live_count--;
  device->live_bytes -= allocation->by_address.minor;
  software_watch_took(allocation);
}

void software_allocation_restore(struct software_allocation *allocation)
{
  struct software_device *device = &software.devices[allocation->device];
  allocation->closing = false;
  key_tree_insert(&software.allocations, &allocation->by_address);
  device->live_count++;
  device->live_bytes += allocation->by_address.minor;
  software_watch_gave(allocation);
}

void software_allocation_invalidate(struct software_allocation *allocation)
{
  allocation->freed = true;
  while (allocation->busy > 0) pthread_cond_wait(&software.progress, &software.lock);
  software_allocation_unreference(allocation);
}

void software_allocation_unreference(struct software_allocation *allocation)
{
  if (--allocation->references > 0) return;
  software_advice_free(allocation->advice);
  free(allocation);
}

void software_allocation_destroy(struct software_allocation *allocation)
{
  struct software_heap *heap = allocation_heap(allocation->kind, allocation->device);
  struct software_block *block = allocation->block;
  void *start = (void *)allocation->by_address.major;
  size_t mapped_bytes = allocation->mapped_bytes;
  software_allocation_remove(allocation);
  software_allocation_invalidate(allocation);
  if (block) software_heap_free(heap, block);
  if (mapped_bytes > 0) munmap(start, mapped_bytes);
}
