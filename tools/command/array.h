/* SPDX-License-Identifier: MIT */
/* array.h: growing arrays for the commands. An array is a pointer, NULL at first, and the number of items that it
 * has memory for. The caller frees the pointer with free(). */
#ifndef HIPMM_TOOLS_COMMAND_ARRAY_H
#define HIPMM_TOOLS_COMMAND_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for the items up to number `n`, and keeps those that are there. `array_in_out` is the address of the
 * pointer. False: out of memory; nothing has changed. */
static inline bool array_grow(void *array_in_out, size_t n, size_t *capacity, size_t item_bytes)
{
  void *items;
  if (n < *capacity) return true;
  size_t larger = *capacity < 32 ? 64 : 2 * *capacity;
  if (larger <= n) larger = n + 1;
  memcpy(&items, array_in_out, sizeof items);
  items = reallocarray(items, larger, item_bytes);
  if (!items) return false;
  memcpy(array_in_out, &items, sizeof items);
  *capacity = larger;
  return true;
}

/* The same; items that are new are zero. */
static inline bool array_grow_zeroed(void *array_in_out, size_t n, size_t *capacity, size_t item_bytes)
{
  size_t before = *capacity;
  char *items;
  if (!array_grow(array_in_out, n, capacity, item_bytes)) return false;
  memcpy(&items, array_in_out, sizeof items);
  memset(items + before * item_bytes, 0, (*capacity - before) * item_bytes);
  return true;
}

#endif
