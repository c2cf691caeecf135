/* SPDX-License-Identifier: MIT */
/* draw.c: see draw.h. Sizes of real programs spread over many orders of magnitude: the log-normal with
 * median 4 KiB and sigma 2.5 has a mean of 93 KiB. */
#include "draw.h"

#include <math.h>

#define DRAW_MEDIAN 4096.0
#define DRAW_SIGMA  2.5
#define DRAW_CIRCLE 6.283185307179586

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t bench_draw_bits(uint64_t *state)
{
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* Between 0 and 1, both excluded. */
static double bench_draw_unit(uint64_t *state)
{
  return ((double)(bench_draw_bits(state) >> 11) + 0.5) / 9007199254740992.0;
}

static uint64_t bench_draw_lognormal(const struct bench_plan *plan, uint64_t *state)
{
  double u = bench_draw_unit(state), v = bench_draw_unit(state);
  double bytes = DRAW_MEDIAN * exp(DRAW_SIGMA * sqrt(-2.0 * log(u)) * cos(DRAW_CIRCLE * v));
  return (uint64_t)fmin(fmax(bytes, (double)plan->min_size_bytes), (double)plan->max_size_bytes);
}

static uint64_t bench_draw_bytes(const struct bench_plan *plan, uint64_t *state)
{
  switch (plan->distribution) {
  case BENCH_FIXED: return plan->size_bytes;
  case BENCH_UNIFORM:
    return plan->min_size_bytes + bench_draw_bits(state) % (plan->max_size_bytes - plan->min_size_bytes + 1);
  default: return bench_draw_lognormal(plan, state);
  }
}

void bench_draw(const struct bench_plan *plan, size_t thread, struct bench_step *steps)
{
  uint64_t state = ((uint64_t)thread + 1) * 7919 + 12345;
  for (size_t i = 0; i < BENCH_STEPS; i++) {
    uint64_t bytes = bench_draw_bytes(plan, &state), bits = bench_draw_bits(&state);
    steps[i] = (struct bench_step){.bytes = bytes,
                                   .pick = (uint32_t)(bits >> 32),
                                   .allocate = bits & 1,
                                   .stream = (uint32_t)((bits >> 1) & INT32_MAX) % (uint32_t)plan->streams & INT32_MAX};
  }
}
