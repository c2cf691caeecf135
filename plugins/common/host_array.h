/* SPDX-License-Identifier: MIT */
/* host_array.h: long arrays of records in host memory, which never move. Addresses are reserved once, for the greatest
 * length, and become usable as the array grows; the system commits memory when it is first written. The memory of unused
 * records can be released. Compiled into each plugin with such an array. It is allocated from the system: the caller may
 * be the application's malloc. */
#ifndef HIPMM_PLUGINS_COMMON_HOST_ARRAY_H
#define HIPMM_PLUGINS_COMMON_HOST_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_array {
  char *start;
  size_t reserved_bytes, usable_bytes;
};

/* Reserves `bytes`, or as much as the process may have, but at least 1/256 of it. False if that is impossible; then
 * host_array_close() may be called all the same. */
bool host_array_open(struct host_array *array, size_t bytes);
void host_array_close(struct host_array *array);

/* Makes more of the reserved addresses usable, zeroed. False when all are usable, or host memory is short. */
bool host_array_grow(struct host_array *array);

/* Releases the memory of the whole pages in [start, start + bytes), which read as zero from then on. */
void host_pages_discard(void *start, size_t bytes);

/* Committed bytes of the pages of [start, start + bytes); `unknown` where the system does not tell. */
uint64_t host_pages_resident(const void *start, size_t bytes, uint64_t unknown);

#endif
