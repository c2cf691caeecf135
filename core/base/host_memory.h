/* SPDX-License-Identifier: MIT */
/* host_memory.h: how much memory the host has left. Thread-safe. */
#ifndef HIPMM_CORE_BASE_HOST_MEMORY_H
#define HIPMM_CORE_BASE_HOST_MEMORY_H

#include <stdint.h>

/* Bytes that this process can use before the kernel ends a process for lack of memory: what the machine has available,
 * and what the limits of the process's control groups (versions 1 and 2) leave. UINT64_MAX where nothing can be read.
 * `root` is "", or a folder with copies of the kernel's files in proc and sys/fs/cgroup. */
uint64_t host_memory_available(const char *root);

#endif
