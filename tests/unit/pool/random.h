/* SPDX-License-Identifier: MIT */
/* random.h: draws for the pool's tests, the same every time for the same seed. */
#ifndef HIPMM_TESTS_UNIT_POOL_RANDOM_H
#define HIPMM_TESTS_UNIT_POOL_RANDOM_H

#include <stdint.h>

/* A number below `below`, which is not 0. */
static inline uint64_t draw(uint64_t *random, uint64_t below)
{
  *random = *random * 6364136223846793005ull + 1442695040888963407ull;
  return (*random >> 33 ^ *random >> 11) % below;
}

#endif
