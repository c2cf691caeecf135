/* SPDX-License-Identifier: MIT */
/* os_memory.h: host memory from the operating system, never from the application's malloc. Thread-safe. */
#ifndef HIPMM_CORE_BASE_OS_MEMORY_H
#define HIPMM_CORE_BASE_OS_MEMORY_H

#include <hipmm/plugin.h>

/* Allocates zeroed pages, committed at the first access. NULL for 0 bytes and without memory. Free with the same size;
 * NULL is allowed. */
void *os_memory_allocate(size_t bytes);
void os_memory_free(void *ptr, size_t bytes);

/* The two as services, for what plugins use too; the other members are NULL. */
extern const struct hipmm_services os_memory_services;

#endif
