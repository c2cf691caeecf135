/* SPDX-License-Identifier: MIT */
/* sizes.h: the arithmetic of sizes that sub-allocators have in common, and the sizes that none of them can serve. */
#ifndef HIPMM_PLUGINS_COMMON_SIZES_H
#define HIPMM_PLUGINS_COMMON_SIZES_H

#include <hipmm/plugin.h>

/* More than any device has; sums of a few of these do not overflow. */
#define SIZES_MOST_BYTES (1ull << 46)

/* Drivers hand out memory in pages of this size anyway. */
#define SIZES_PAGE_BYTES      (2ull << 20)
#define SIZES_MOST_STEP_BYTES (1ull << 30)

static inline uint64_t sizes_round_up(uint64_t bytes, uint64_t multiple)
{
  return (bytes + multiple - 1) / multiple * multiple;
}

/* What a maximum allows beyond what is held, which may be more. */
static inline uint64_t sizes_headroom(uint64_t maximum_bytes, uint64_t held_bytes)
{
  return maximum_bytes > held_bytes ? maximum_bytes - held_bytes : 0;
}

/* What to ask an upstream for when `bytes` are wanted, `held_bytes` are there and there is room for `room_bytes`,
 * which is enough: an eighth of what is held, for few pieces where there is much and little idle memory where there
 * is little. */
static inline uint64_t sizes_step(uint64_t held_bytes, uint64_t bytes, uint64_t room_bytes)
{
  uint64_t step = sizes_round_up(held_bytes / 8, SIZES_PAGE_BYTES), wanted = sizes_round_up(bytes, SIZES_PAGE_BYTES);
  if (step > SIZES_MOST_STEP_BYTES) step = SIZES_MOST_STEP_BYTES;
  if (step < wanted) step = wanted;
  return step > room_bytes ? room_bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT : step;
}

/* What to ask for next where the upstream did not have `step` bytes. */
static inline uint64_t sizes_smaller_step(uint64_t step, uint64_t bytes)
{
  return step / 2 > bytes ? sizes_round_up(step / 2, HIPMM_ALIGNMENT) : bytes;
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
