/* SPDX-License-Identifier: MIT */
/* sizes.h: the arithmetic of sizes that sub-allocators have in common, and the sizes that none of them can serve. */
#ifndef HIPMM_PLUGINS_SIZES_H
#define HIPMM_PLUGINS_SIZES_H

#include <hipmm/plugin.h>

/* More than any device has; sums of a few of these do not overflow. */
#define SIZES_MOST_BYTES (1ull << 46)

static inline uint64_t sizes_round_up(uint64_t bytes, uint64_t multiple)
{
  return (bytes + multiple - 1) / multiple * multiple;
}

/* Refuses what would overflow further on. */
static inline enum hipmm_status sizes_check(const struct hipmm_services *services, uint64_t bytes, uint64_t alignment)
{
  if (bytes <= SIZES_MOST_BYTES && alignment <= SIZES_MOST_BYTES) return HIPMM_OK;
  return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                          "cannot allocate {0:bytes} aligned to {1:bytes}: no device has that much", bytes, alignment,
                          0);
}

#endif
