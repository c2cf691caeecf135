/* SPDX-License-Identifier: MIT */
/* span.c: the memory that an operation reads or writes, checked at the call and again at execution. Called by copies,
 * fills and prefetches at the call, and by execute.c. */
#include "internal.h"
#include <sys/mman.h>

/* The system says whether a page is mapped. Only the first and the last page are checked. */
static bool span_is_mapped(uintptr_t start, size_t bytes)
{
  unsigned char resident;
  uintptr_t first = start & ~(SOFTWARE_PAGE_BYTES - 1), last = (start + bytes - 1) & ~(SOFTWARE_PAGE_BYTES - 1);
  if (mincore((void *)first, 1, &resident) != 0) return false;
  return first == last || mincore((void *)last, 1, &resident) == 0;
}

static bool span_is_ours(uintptr_t address)
{
  return key_tree_holding(software.arenas, address) || software_virtual_is_reserved(address);
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
  } else if (span_is_ours(address) || span_is_ours(address + bytes - 1) || !span_is_mapped(address, bytes)) {
    return hipErrorInvalidValue;
  }
  *span_out = span;
  return hipSuccess;
}

bool software_rows_extent(size_t width, size_t more_rows, size_t pitch, size_t *bytes_out)
{
  if (more_rows > 0 && pitch > (SIZE_MAX - width) / more_rows) return false;
  *bytes_out = more_rows * pitch + width;
  return true;
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
  bool is_host = false;
  const struct software_allocation *allocation = span->allocation;
  if (span->is_virtual) software_virtual_device(span->start, &device, &is_host);
  if (!allocation || allocation->is_managed || allocation->is_host) return is_host ? -1 : device;
  bool is_device = allocation->kind == SOFTWARE_DEVICE_MEMORY || allocation->kind == SOFTWARE_POOLED ||
                   allocation->kind == SOFTWARE_OPENED;
  return is_device ? allocation->device : -1;
}

const char *software_span_pin(const struct software_span *span, uint64_t sequence)
{
  if (span->is_virtual) {
    if (!software_virtual_allows((uintptr_t)span->start, span->bytes, span->is_write, span->device, sequence))
      return "was unmapped, or its access taken away, since the call";
    software_virtual_pin((uintptr_t)span->start, 1);
  } else if (span->allocation) {
    if (span->allocation->freed) return "was freed since the call";
    if (!span->allocation->is_visible)
      return span->allocation->graph ? "belongs to a graph, and is not allocated at this point of a launch"
                                     : "comes from a stream-ordered allocation that has not executed yet";
    span->allocation->busy++;
  }
  return NULL;
}

void software_span_unpin(const struct software_span *span)
{
  if (span->is_virtual)
    software_virtual_pin((uintptr_t)span->start, -1);
  else if (span->allocation)
    span->allocation->busy--;
}
