/* SPDX-License-Identifier: MIT */
/* pattern.h: whether a block still holds what was written all over it. A byte of each unit of HIPMM_ALIGNMENT is looked
 * at: blocks begin and end with a unit, so whoever else writes to one writes there. */
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
