/* SPDX-License-Identifier: MIT */
/* stack_sample.h: of which allocations the call stack is recorded, and what such a stack stands for. A block is chosen with
 * the probability bytes / sample, and then counts as `sample` bytes, so that sums over stacks are right on average. Included
 * by the core, plugins and commands. */
#ifndef HIPMM_CORE_BASE_STACK_SAMPLE_H
#define HIPMM_CORE_BASE_STACK_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* A block of so many bytes always has a stack; and the option's largest value. */
#define STACK_SAMPLE_ALWAYS_BYTES (UINT64_C(1) << 20)
#define STACK_SAMPLE_MOST_BYTES   (UINT64_C(1) << 32)

static inline bool stack_sample_is_certain(uint64_t sample, uint64_t bytes)
{
  return bytes >= sample || bytes >= STACK_SAMPLE_ALWAYS_BYTES;
}

/* Whether a block is chosen; `random` is of 64 bits, and `sample` at most STACK_SAMPLE_MOST_BYTES. */
static inline bool stack_sample_chooses(uint64_t sample, uint64_t bytes, uint64_t random)
{
  return stack_sample_is_certain(sample, bytes) || (random >> 32) * sample >> 32 < bytes;
}

/* The bytes that a block adds to its stack, or, if `has_stack` is false, to the blocks without one. */
static inline uint64_t stack_sample_bytes(uint64_t sample, uint64_t bytes, bool has_stack)
{
  if (stack_sample_is_certain(sample, bytes)) return bytes;
  return has_stack && bytes ? sample : 0;
}

/* The blocks that it stands for. */
static inline uint64_t stack_sample_blocks(uint64_t sample, uint64_t bytes, bool has_stack)
{
  if (!bytes || stack_sample_is_certain(sample, bytes)) return 1;
  return has_stack ? (sample + bytes / 2) / bytes : 0;
}

#endif
