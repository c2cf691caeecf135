/* SPDX-License-Identifier: MIT */
/* os_memory.h: host memory from the operating system, never from the application's malloc. Thread-safe. */
#ifndef HIPMM_CORE_BASE_OS_MEMORY_H
#define HIPMM_CORE_BASE_OS_MEMORY_H

#include <stddef.h>

/* Allocates zeroed pages, committed at the first access. NULL for 0 bytes and without memory. Free with the same size;
 * NULL is allowed. */
void *os_memory_allocate(size_t bytes);
void os_memory_free(void *ptr, size_t bytes);

#endif
