/* SPDX-License-Identifier: MIT */
/* os_memory.c: see os_memory.h. */
#include "os_memory.h"

#include <sys/mman.h>

void *os_memory_allocate(size_t bytes)
{
  if (!bytes) return NULL;
  void *ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return ptr == MAP_FAILED ? NULL : ptr;
}

void os_memory_free(void *ptr, size_t bytes)
{
  if (ptr) munmap(ptr, bytes);
}
