/* SPDX-License-Identifier: MIT */
/* host_array.h: arrays of records in host memory that may become very long and never move. Addresses are reserved once,
 * for the largest length; they become usable as the array grows, and memory is committed on touch. The memory of
 * records that are not in use can be given back. Compiled into each plugin that has such an array, straight on the
 * system: the application's malloc may be the caller. */
#ifndef HIPMM_PLUGINS_COMMON_HOST_ARRAY_H
#define HIPMM_PLUGINS_COMMON_HOST_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_array {
  char *start;
  size_t reserved_bytes, usable_bytes;
};

/* Reserves at most `bytes` and at least 1/256 of it, as much as the process may have. False if that is not to be had;
 * host_array_close() is then allowed. */
bool host_array_open(struct host_array *array, size_t bytes);
void host_array_close(struct host_array *array);

/* Makes more of the reserved addresses usable, zeroed. False at the end of them, or when host memory is short. */
bool host_array_grow(struct host_array *array);

/* Gives the memory of the whole pages in [start, start + bytes) back to the system: they read as zero from then on. */
void host_pages_discard(void *start, size_t bytes);

/* Bytes of the pages of [start, start + bytes) that have memory; `unknown` where the system does not tell. */
uint64_t host_pages_resident(const void *start, size_t bytes, uint64_t unknown);

#endif
