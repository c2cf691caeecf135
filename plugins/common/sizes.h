/* SPDX-License-Identifier: MIT */
/* sizes.h: arithmetic of sizes that sub-allocators share, and the sizes that no sub-allocator can serve. */
#ifndef HIPMM_PLUGINS_COMMON_SIZES_H
#define HIPMM_PLUGINS_COMMON_SIZES_H

#include <hipmm/plugin.h>

/* More than any device has; sums of a few of these do not overflow. */
#define SIZES_MOST_BYTES (1ull << 46)

/* Drivers allocate memory in pages of this size. */
#define SIZES_PAGE_BYTES      (2ull << 20)
#define SIZES_MOST_STEP_BYTES (1ull << 30)

static inline uint64_t sizes_round_up(uint64_t bytes, uint64_t multiple)
{
  return (bytes + multiple - 1) / multiple * multiple;
}

/* What a block counts against a limit. A size that would overflow counts as the largest multiple, which no limit allows. */
static inline uint64_t sizes_counted(uint64_t bytes)
{
  uint64_t rounded = sizes_round_up(bytes, HIPMM_ALIGNMENT);
  return rounded < bytes ? UINT64_MAX / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT : rounded;
}

/* What a maximum allows in addition to what is held. More may be held than the maximum. */
static inline uint64_t sizes_headroom(uint64_t maximum_bytes, uint64_t held_bytes)
{
  return maximum_bytes > held_bytes ? maximum_bytes - held_bytes : 0;
}

/* The size to request next when the upstream did not have `step` bytes. */
static inline uint64_t sizes_smaller_step(uint64_t step, uint64_t bytes)
{
  return step / 2 > bytes ? sizes_round_up(step / 2, HIPMM_ALIGNMENT) : bytes;
}

/* Refuses sizes that would overflow later. */
static inline enum hipmm_status sizes_check(const struct hipmm_services *services, uint64_t bytes, uint64_t alignment)
{
  if (bytes <= SIZES_MOST_BYTES && alignment <= SIZES_MOST_BYTES) return HIPMM_OK;
  return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                          "cannot allocate {0:bytes} aligned to {1:bytes}: no device has that much", bytes, alignment,
                          0);
}

#endif
