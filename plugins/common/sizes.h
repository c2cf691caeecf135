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

/* What a maximum allows in addition to what is held. More may be held than the maximum. */
static inline uint64_t sizes_headroom(uint64_t maximum_bytes, uint64_t held_bytes)
{
  return maximum_bytes > held_bytes ? maximum_bytes - held_bytes : 0;
}

/* The size to request from an upstream when `bytes` are wanted, `held_bytes` are held, and `headroom_bytes`, which is
 * enough, are allowed: an eighth of what is held. So a large pool has few blocks, and a small one little idle
 * memory. */
static inline uint64_t sizes_step(uint64_t held_bytes, uint64_t bytes, uint64_t headroom_bytes)
{
  uint64_t step = sizes_round_up(held_bytes / 8, SIZES_PAGE_BYTES), wanted = sizes_round_up(bytes, SIZES_PAGE_BYTES);
  if (step > SIZES_MOST_STEP_BYTES) step = SIZES_MOST_STEP_BYTES;
  if (step < wanted) step = wanted;
  return step > headroom_bytes ? headroom_bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT : step;
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
