/* SPDX-License-Identifier: MIT */
/* allocation.c: the table of live memory, by address, and the spans of it that operations touch. Called by every file
 * that gives memory out or takes it back, and by copies at their call and at their execution.
 *
 * An operation holds a reference to the allocation it was given, not only an address: if the memory was freed and the
 * address given out again before the operation executes, it is still found out. */
#include "internal.h"
#include <stdlib.h>
#include <sys/mman.h>

static struct software_heap *allocation_heap(enum software_memory_kind kind, int device)
{
  bool is_device = kind == SOFTWARE_DEVICE_MEMORY || kind == SOFTWARE_POOLED;
  return is_device ? &software.devices[device].heap : &software.host_heap;
}

hipError_t software_allocation_enter(enum software_memory_kind kind, int device, void *start, size_t bytes,
                                     struct software_allocation **allocation_out)
{
  struct software_allocation *allocation = calloc(1, sizeof *allocation);
  if (!allocation) return hipErrorOutOfMemory;
  allocation->by_address = (struct address_tree_node){.major = (uintptr_t)start, .minor = bytes};
  allocation->kind = kind;
  allocation->device = device;
  allocation->references = 1;
  allocation->born = true;
  allocation->id = ++software.last_allocation_id;
  address_tree_insert(&software.allocations, &allocation->by_address);
  software.devices[device].live_count++;
  software.devices[device].live_bytes += bytes;
  *allocation_out = allocation;
  return hipSuccess;
}

hipError_t software_allocation_create(enum software_memory_kind kind, int device, size_t bytes,
                                      struct software_allocation **allocation_out)
{
  struct software_heap *heap = allocation_heap(kind, device);
  struct software_block *block = software_heap_take(heap, bytes);
  if (!block) return hipErrorOutOfMemory;
  hipError_t error = software_allocation_enter(kind, device, (void *)block->by_address.major, bytes, allocation_out);
  if (error == hipSuccess)
    (*allocation_out)->block = block;
  else
    software_heap_give(heap, block);
  return error;
}

struct software_allocation *software_allocation_holding(const void *pointer)
{
  struct software_allocation *allocation =
      (struct software_allocation *)address_tree_holding(software.allocations, (uintptr_t)pointer);
  return allocation && !allocation->closing ? allocation : NULL;
}

struct software_allocation *software_allocation_at(const void *pointer)
{
  struct software_allocation *allocation = software_allocation_holding(pointer);
  return allocation && allocation->by_address.major == (uintptr_t)pointer ? allocation : NULL;
}

void software_allocation_close(struct software_allocation *allocation)
{
  struct software_device *device = &software.devices[allocation->device];
  allocation->closing = true;
  address_tree_remove(&software.allocations, &allocation->by_address);
  device->live_count--;
  device->live_bytes -= allocation->by_address.minor;
}

void software_allocation_reopen(struct software_allocation *allocation)
{
  struct software_device *device = &software.devices[allocation->device];
  allocation->closing = false;
  address_tree_insert(&software.allocations, &allocation->by_address);
  device->live_count++;
  device->live_bytes += allocation->by_address.minor;
}

void software_allocation_end(struct software_allocation *allocation)
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
  software_allocation_close(allocation);
  software_allocation_end(allocation);
  if (block) software_heap_give(heap, block);
  if (mapped_bytes > 0) munmap(start, mapped_bytes);
}

/* ---- Spans ----------------------------------------------------------------------------------------------------- */

/* The system knows whether a page is mapped; the pages between the two ends are taken on trust. */
static bool allocation_span_is_mapped(uintptr_t start, size_t bytes)
{
  unsigned char resident;
  uintptr_t first = start & ~(SOFTWARE_PAGE_BYTES - 1), last = (start + bytes - 1) & ~(SOFTWARE_PAGE_BYTES - 1);
  if (mincore((void *)first, 1, &resident) != 0) return false;
  return first == last || mincore((void *)last, 1, &resident) == 0;
}

static bool allocation_span_is_ours(uintptr_t address)
{
  return address_tree_holding(software.arenas, address) || software_virtual_is_reserved(address);
}

hipError_t software_span_open(const void *start, size_t bytes, bool is_write, int device,
                              struct software_span *span_out)
{
  uintptr_t address = (uintptr_t)start;
  if (bytes == 0 || bytes > UINTPTR_MAX - address) return hipErrorInvalidValue;
  struct software_span span = {.start = (char *)address, .bytes = bytes, .is_write = is_write, .device = device};
  struct software_allocation *allocation = software_allocation_holding(start);
  if (allocation) {
    if (bytes > allocation->by_address.minor - (address - allocation->by_address.major)) return hipErrorInvalidValue;
    allocation->references++;
    span.allocation = allocation;
  } else if (software_virtual_is_reserved(address)) {
    if (!software_virtual_allows(address, bytes, is_write, device, UINT64_MAX)) return hipErrorInvalidValue;
    span.is_virtual = true;
  } else if (allocation_span_is_ours(address) || allocation_span_is_ours(address + bytes - 1) ||
             !allocation_span_is_mapped(address, bytes)) {
    return hipErrorInvalidValue;
  }
  *span_out = span;
  return hipSuccess;
}

void software_span_close(struct software_span *span)
{
  if (span->allocation) software_allocation_unreference(span->allocation);
  *span = (struct software_span){0};
}

bool software_span_is_host(const struct software_span *span)
{
  return !span->allocation && !span->is_virtual;
}

int software_span_device(const struct software_span *span)
{
  int device = -1;
  const struct software_allocation *allocation = span->allocation;
  if (span->is_virtual) software_virtual_device(span->start, &device);
  if (!allocation || software_pool_is_managed(allocation)) return device;
  bool is_device = allocation->kind == SOFTWARE_DEVICE_MEMORY || allocation->kind == SOFTWARE_POOLED ||
                   allocation->kind == SOFTWARE_OPENED;
  return is_device ? allocation->device : -1;
}

const char *software_span_enter(const struct software_span *span, uint64_t sequence)
{
  if (span->is_virtual) {
    if (!software_virtual_allows((uintptr_t)span->start, span->bytes, span->is_write, span->device, sequence))
      return "was unmapped, or its access taken away, since the call";
    software_virtual_pin((uintptr_t)span->start, 1);
  } else if (span->allocation) {
    if (span->allocation->freed) return "was freed since the call";
    if (!span->allocation->born) return "comes from a stream-ordered allocation that has not executed yet";
    span->allocation->busy++;
  }
  return NULL;
}

void software_span_exit(const struct software_span *span)
{
  if (span->is_virtual)
    software_virtual_pin((uintptr_t)span->start, -1);
  else if (span->allocation)
    span->allocation->busy--;
}
