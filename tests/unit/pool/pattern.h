/* SPDX-License-Identifier: MIT */
/* pattern.h: whether a block still holds the pattern that was written to it. Compares one byte of each unit of
 * HIPMM_ALIGNMENT: blocks begin and end at a unit, so another writer changes that byte. */
#ifndef HIPMM_TESTS_UNIT_POOL_PATTERN_H
#define HIPMM_TESTS_UNIT_POOL_PATTERN_H

#include <hipmm/plugin.h>

#include <stdbool.h>

static inline bool holds_pattern(const unsigned char *ptr, size_t bytes, unsigned char pattern)
{
  for (size_t at = 0; at < bytes; at += HIPMM_ALIGNMENT)
    if (ptr[at] != pattern) return false;
  return ptr[bytes - 1] == pattern;
}

#endif
