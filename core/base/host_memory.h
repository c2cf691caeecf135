/* SPDX-License-Identifier: MIT */
/* host_memory.h: how much memory the host has left, and how much of it the process may map. Thread-safe. */
#ifndef HIPMM_CORE_BASE_HOST_MEMORY_H
#define HIPMM_CORE_BASE_HOST_MEMORY_H

#include <stdint.h>

/* Bytes that this process can use before the kernel ends a process for lack of memory: what the machine has available,
 * and what the limits of the process's control groups (versions 1 and 2) leave. UINT64_MAX where nothing can be read.
 * `root` is "", or a folder with copies of the kernel's files in proc and sys/fs/cgroup. */
uint64_t host_memory_available(const char *root);

/* UINT64_MAX in place of a limit that the process does not have, or that cannot be read. */
struct host_limits {
  uint64_t mappings, most_mappings; /* of memory: those that there are, and the kernel's limit (vm.max_map_count) */
  uint64_t addresses_left;          /* bytes of address space below the process's limit (RLIMIT_AS) */
  uint64_t file_bytes;              /* of a file, at most (RLIMIT_FSIZE) */
};

/* `root` as above. The limits of address space and of files are the process's own. */
void host_limits_read(const char *root, struct host_limits *limits_out);

#endif
