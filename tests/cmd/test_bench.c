/* SPDX-License-Identifier: MIT */
/* test_bench.c: the random steps of `hipmm bench`, and its statistics of times. */
#include "../../tools/command/bench/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct bench_step steps[BENCH_STEPS], others[BENCH_STEPS];
static struct bench_times times, more_times;

static struct bench_plan plan_of(enum bench_distribution distribution, uint64_t least, uint64_t most)
{
  return (struct bench_plan){.workload = BENCH_RANDOM,
                             .distribution = distribution,
                             .size_bytes = 4097,
                             .min_size_bytes = least,
                             .max_size_bytes = most,
                             .streams = 1};
}

static void expect_steps(const struct bench_step *expected, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(steps[i].bytes, expected[i].bytes);
    assert_int_equal(steps[i].pick, expected[i].pick);
    assert_int_equal(steps[i].allocate, expected[i].allocate);
    assert_int_equal(steps[i].stream, 0);
  }
}

/* doc/performance.md compares allocators on these very steps. */
static void draws_the_same_steps_everywhere(void **state)
{
  (void)state;
  static const struct bench_step first[] = {
      {757142, 4124230296, 1, 0}, {1231, 2819831507, 0, 0}, {778, 2803565670, 1, 0}, {343775, 548928839, 0, 0}};
  static const struct bench_step second[] = {
      {62711, 1469987432, 0, 0}, {256, 3658893249, 1, 0}, {10161, 1746104361, 1, 0}, {557748, 3156199401, 0, 0}};
  static const struct bench_step uniform[] = {
      {33608383, 431551623, 0, 0}, {51649474, 3751188944, 0, 0}, {13742691, 2819831507, 0, 0}};
  struct bench_plan plan = plan_of(BENCH_LOGNORMAL, 256, 64 << 20);
  bench_draw(&plan, 0, steps);
  expect_steps(first, 4);
  bench_draw(&plan, 1, steps);
  expect_steps(second, 4);
  plan = plan_of(BENCH_UNIFORM, 1, 64 << 20);
  bench_draw(&plan, 0, steps);
  expect_steps(uniform, 3);
}

static int compare_bytes(const void *a, const void *b)
{
  const struct bench_step *x = a, *y = b;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void draws_a_log_normal_of_median_4_kib_within_the_bounds(void **state)
{
  (void)state;
  struct bench_plan plan = plan_of(BENCH_LOGNORMAL, 256, 64 << 20);
  size_t allocations = 0;
  bench_draw(&plan, 2, steps);
  for (size_t i = 0; i < BENCH_STEPS; i++) allocations += steps[i].allocate;
  assert_in_range(allocations, BENCH_STEPS / 100 * 49, BENCH_STEPS / 100 * 51);
  qsort(steps, BENCH_STEPS, sizeof *steps, compare_bytes);
  assert_int_equal(steps[0].bytes, 256);
  assert_int_equal(steps[BENCH_STEPS - 1].bytes, 64 << 20);
  assert_in_range(steps[BENCH_STEPS / 2].bytes, 3900, 4300);
  /* one sigma above the median: 4096 * e^2.5 */
  assert_in_range(steps[(size_t)(BENCH_STEPS * 0.8413)].bytes, 46000, 54000);
}

static void draws_uniform_and_fixed_sizes(void **state)
{
  (void)state;
  struct bench_plan plan = plan_of(BENCH_UNIFORM, 100, 103);
  size_t counts[4] = {0};
  bench_draw(&plan, 0, steps);
  for (size_t i = 0; i < BENCH_STEPS; i++) {
    assert_in_range(steps[i].bytes, 100, 103);
    counts[steps[i].bytes - 100]++;
  }
  for (size_t i = 0; i < 4; i++) assert_in_range(counts[i], BENCH_STEPS / 100 * 24, BENCH_STEPS / 100 * 26);
  plan = plan_of(BENCH_FIXED, 1, 2);
  bench_draw(&plan, 0, steps);
  for (size_t i = 0; i < BENCH_STEPS; i++) assert_int_equal(steps[i].bytes, 4097);
}

static void spreads_over_streams_without_other_draws(void **state)
{
  (void)state;
  struct bench_plan plan = plan_of(BENCH_LOGNORMAL, 256, 64 << 20);
  size_t counts[3] = {0};
  bench_draw(&plan, 0, others);
  plan.streams = 3;
  bench_draw(&plan, 0, steps);
  for (size_t i = 0; i < BENCH_STEPS; i++) {
    assert_in_range(steps[i].stream, 0, 2);
    counts[steps[i].stream]++;
    assert_int_equal(steps[i].bytes, others[i].bytes);
    assert_int_equal(steps[i].pick, others[i].pick);
    assert_int_equal(steps[i].allocate, others[i].allocate);
  }
  for (size_t i = 0; i < 3; i++) assert_in_range(counts[i], BENCH_STEPS / 100 * 32, BENCH_STEPS / 100 * 34);
}

/* ---- Times ----------------------------------------------------------------------------------------------------- */

static void start_times(struct bench_times *which)
{
  bench_times_start(which);
  assert_true(which->empty < 100 * 1000 * 1000);
  which->empty = 0;
  which->ns_per_tick = 1;
}

static void expect_near(double found, double expected)
{
  if (fabs(found - expected) > 0.03 * expected) fail_msg("%g is not near %g", found, expected);
}

static void finds_percentiles_of_any_magnitude(void **state)
{
  (void)state;
  for (uint64_t unit = 1; unit < UINT64_C(1) << 45; unit *= 7) {
    start_times(&times);
    for (uint64_t i = 1; i <= 1000; i++) bench_times_add(&times, 5, 5 + i * unit);
    expect_near(bench_times_ns(&times, 0.5), 500 * (double)unit);
    expect_near(bench_times_ns(&times, 0.99), 990 * (double)unit);
    assert_true(bench_times_ns(&times, 1) == 1000 * (double)unit);
  }
}

static void takes_off_what_timing_takes(void **state)
{
  (void)state;
  start_times(&times);
  times.empty = 20;
  times.ns_per_tick = 0.5;
  bench_times_add(&times, 100, 110); /* faster than nothing: 0 */
  bench_times_add(&times, 100, 130);
  bench_times_add(&times, 100, 130);
  assert_true(bench_times_ns(&times, 0.1) == 0);
  assert_true(bench_times_ns(&times, 0.9) == 5);
  assert_true(bench_times_ns(&times, 1) == 5);
}

static void keeps_every_length(void **state)
{
  (void)state;
  start_times(&times);
  for (int shift = 0; shift < 64; shift++) bench_times_add(&times, 0, UINT64_C(1) << shift);
  bench_times_add(&times, 0, UINT64_MAX);
  assert_int_equal(times.count, 65);
  assert_int_equal(times.longest, UINT64_MAX);
  uint64_t counted = 0;
  for (size_t i = 0; i < BENCH_TIMES_ROWS; i++) counted += times.rows[i];
  assert_int_equal(counted, 65);
}

static void merges_what_threads_found(void **state)
{
  (void)state;
  start_times(&times);
  start_times(&more_times);
  assert_true(bench_times_ns(&times, 0.5) == 0 && bench_times_ns(&times, 1) == 0);
  for (int i = 0; i < 99; i++) bench_times_add(&times, 0, 10);
  bench_times_add(&more_times, 0, 31);
  bench_times_merge(&times, &more_times);
  assert_int_equal(times.count, 100);
  assert_true(bench_times_ns(&times, 0.99) == 10);
  assert_true(bench_times_ns(&times, 0.995) == 31);
  assert_true(bench_times_ns(&times, 1) == 31);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_the_same_steps_everywhere),
      cmocka_unit_test(draws_a_log_normal_of_median_4_kib_within_the_bounds),
      cmocka_unit_test(draws_uniform_and_fixed_sizes),
      cmocka_unit_test(spreads_over_streams_without_other_draws),
      cmocka_unit_test(finds_percentiles_of_any_magnitude),
      cmocka_unit_test(takes_off_what_timing_takes),
      cmocka_unit_test(keeps_every_length),
      cmocka_unit_test(merges_what_threads_found),
  };
  return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
