/* SPDX-License-Identifier: MIT */
/* host_array.c: mmap(2) and mprotect(2). Reserved addresses have no access rights, so that they count against no limit on
 * memory, and a core file leaves them out, which gdb's gcore would write in full; they get rights in steps that double. */
#include "host_array.h"

#include <sys/mman.h>
#include <unistd.h>

enum { LEAST_SHARE = 256, FIRST_BYTES = 1 << 20 };

bool host_array_open(struct host_array *array, size_t bytes)
{
  for (size_t reserved = bytes; reserved >= bytes / LEAST_SHARE; reserved /= 2) {
    void *start = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) continue;
    madvise(start, reserved, MADV_DONTDUMP);
    *array = (struct host_array){.start = start, .reserved_bytes = reserved};
    if (host_array_grow(array)) return true;
    host_array_close(array);
    return false;
  }
  *array = (struct host_array){.start = NULL};
  return false;
}

void host_array_close(struct host_array *array)
{
  if (array->start) munmap(array->start, array->reserved_bytes);
  array->start = NULL;
}

bool host_array_grow(struct host_array *array)
{
  size_t wanted = array->usable_bytes ? 2 * array->usable_bytes : FIRST_BYTES;
  if (wanted > array->reserved_bytes) wanted = array->reserved_bytes;
  if (wanted == array->usable_bytes || mprotect(array->start, wanted, PROT_READ | PROT_WRITE)) return false;
  madvise(array->start, wanted, MADV_DODUMP);
  array->usable_bytes = wanted;
  return true;
}

void host_pages_discard(void *start, size_t bytes)
{
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)start + page - 1) & ~(page - 1);
  uintptr_t end = ((uintptr_t)start + bytes) & ~(page - 1);
  if (first < end) madvise((void *)first, end - first, MADV_DONTNEED);
}

uint64_t host_pages_resident(const void *start, size_t bytes, uint64_t unknown)
{
  unsigned char pages[4096];
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)start + bytes;
  uint64_t resident = 0;
  for (uintptr_t at = (uintptr_t)start & ~(page - 1); at < end; at += sizeof pages * page) {
    size_t n = (end - at + page - 1) / page;
    if (n > sizeof pages) n = sizeof pages;
    if (mincore((void *)at, n * page, pages)) return unknown;
    for (size_t i = 0; i < n; i++) resident += pages[i] & 1 ? page : 0;
  }
  return resident;
}
