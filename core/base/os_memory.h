/* SPDX-License-Identifier: MIT */
/* os_memory.h: zeroed host memory straight from the system, never from the application's malloc. */
#ifndef HIPMM_CORE_BASE_OS_MEMORY_H
#define HIPMM_CORE_BASE_OS_MEMORY_H

#include <stddef.h>

/* NULL when there is none, or for 0 bytes. Committed on touch. Free with the same size; NULL is allowed. */
void *os_memory_allocate(size_t bytes);
void os_memory_free(void *ptr, size_t bytes);

#endif
