/* SPDX-License-Identifier: MIT */
/* random.h: numbers drawn from a seed, the same on every machine. */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_RANDOM_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_RANDOM_H

#include <stdint.h>

/* The state is the seed at first. */
static inline uint64_t random_next(uint64_t *state)
{
  uint64_t mixed = *state += 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
  return mixed ^ mixed >> 31;
}

/* From 0 to limit - 1. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
  return random_next(state) % limit;
}

/* True `percent` times of 100. */
static inline int random_chance(uint64_t *state, unsigned percent)
{
  return random_below(state, 100) < percent;
}

#endif
