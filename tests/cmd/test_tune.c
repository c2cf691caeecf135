/* SPDX-License-Identifier: MIT */
/* test_tune.c: the graphs among which `hipmm tune` searches: bins beside all ways to cut, and all choices of a space. */
#include "../../tools/command/tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_EVENTS = 4096, SIZES = 12 };

static struct trace_event events[MOST_EVENTS];

/* Requests of up to SIZES sizes, each several times, whose frees come at the end. */
static struct trace trace_of(const uint64_t *counts)
{
  struct trace trace = {.events = events, .n_streams = 1};
  for (uint64_t size = 0; size < SIZES; size++)
    for (uint64_t i = 0; i < counts[size]; i++)
      events[trace.n_events++] = (struct trace_event){.bytes = 256 * (size + 1), .slot = (uint32_t)trace.n_events + 1};
  trace.allocations = trace.n_events;
  for (size_t i = 0; i < trace.allocations; i++) {
    events[trace.n_events] = events[i];
    events[trace.n_events++].is_free = 1;
  }
  return trace;
}

/* What bins waste: a bit of `set` for each size that is a bin. UINT64_MAX: the largest size has none. */
static uint64_t waste_of(const uint64_t *counts, unsigned set)
{
  uint64_t waste = 0, requests = 0;
  for (uint64_t size = SIZES, bin = 0; size-- > 0;) {
    if (set & 1u << size) bin = size + 1;
    if (counts[size] && !bin) return UINT64_MAX;
    if (counts[size]) waste += counts[size] * (bin - size - 1);
    requests += counts[size];
  }
  return requests ? waste : UINT64_MAX;
}

static uint64_t least_waste(const uint64_t *counts, size_t most)
{
  uint64_t least = UINT64_MAX;
  for (unsigned set = 1; set < 1u << SIZES; set++) {
    uint64_t waste = (size_t)__builtin_popcount(set) <= most ? waste_of(counts, set) : UINT64_MAX;
    if (waste < least) least = waste;
  }
  return least;
}

static void bins_waste_least(void **state)
{
  (void)state;
  uint64_t counts[SIZES];
  uint32_t draw = 1;
  for (int run = 0; run < 40; run++) {
    for (size_t size = 0; size < SIZES; size++) {
      draw = draw * 1664525 + 1013904223;
      counts[size] = draw >> 24 & 3 ? draw >> 26 : 0;
    }
    struct trace trace = trace_of(counts);
    for (size_t most = 1; most <= 5 && trace.n_events; most++) {
      struct space_bins bins;
      unsigned set = 0;
      assert_true(bins_find(&trace, 1, 256 * SIZES, most, &bins));
      assert_in_range(bins.n, 1, most);
      for (size_t i = 0; i < bins.n; i++) set |= 1u << (bins.sizes[i] / 256 - 1);
      for (size_t i = 1; i < bins.n; i++) assert_true(bins.sizes[i] > bins.sizes[i - 1]);
      assert_int_equal(waste_of(counts, set), least_waste(counts, most));
    }
  }
}

static void bins_are_for_requests_up_to_a_limit(void **state)
{
  (void)state;
  const uint64_t counts[SIZES] = {3, 0, 1, [10] = 4};
  struct trace trace = trace_of(counts);
  struct space_bins bins;
  assert_true(bins_find(&trace, 1, 1024, 8, &bins));
  assert_int_equal(bins.n, 2);
  assert_int_equal(bins.sizes[0], 256);
  assert_int_equal(bins.sizes[1], 768);
  assert_true(bins.share == 0.5);
  assert_true(bins_find(&trace, 1, 100, 8, &bins));
  assert_int_equal(bins.n, 0);
}

static void a_space_has_each_allowed_choice_once(void **state)
{
  (void)state;
  const uint64_t counts[SIZES] = {1, 1, [11] = 200};
  struct trace trace = trace_of(counts);
  struct space space;
  assert_true(space_make(&space, &trace, 1, true));
  size_t levels = space.sizes[DIMENSION_MAXIMUM], n = 1;
  struct choice choice = {{0}}, last = choice;
  for (; space_next(&space, &choice); n++) {
    assert_true(space_allows(&space, choice));
    assert_true(memcmp(&choice, &last, sizeof choice) != 0);
    last = choice;
  }
  size_t with_maximum = levels * (levels + 1) / 2 - 1; /* an initial size up to the maximum, or none */
  assert_int_equal(n, N_ALLOCATORS * space.sizes[DIMENSION_BINS] * (levels + with_maximum));
}

static void levels_are_above_the_peak(void **state)
{
  (void)state;
  static struct trace_event large = {.bytes = UINT64_C(3) << 30, .slot = 1};
  const struct trace trace = {.events = &large, .n_events = 1, .allocations = 1, .n_streams = 1};
  struct space space;
  assert_true(space_make(&space, &trace, 1, false));
  assert_int_equal(space.peak_bytes, large.bytes);
  assert_int_equal(space.sizes[DIMENSION_BINS], 1);
  for (size_t i = 1; i < space.sizes[DIMENSION_MAXIMUM]; i++) {
    assert_true(space.levels[i] > large.bytes && space.levels[i] > space.levels[i - 1]);
    assert_int_equal(space_level_below(&space, space.levels[i]), i - 1);
    assert_int_equal(space_level_from(&space, space.levels[i]), i);
  }
  assert_int_equal(space_level_from(&space, UINT64_MAX), 0);
  uint64_t device_bytes = space.levels[5];
  space_limit(&space, device_bytes);
  assert_int_equal(space.sizes[DIMENSION_INITIAL], 6);
  assert_int_equal(space.sizes[DIMENSION_MAXIMUM], 6);
  assert_int_equal(space_level_from(&space, device_bytes), 5);
  space_limit(&space, 1);
  assert_int_equal(space.sizes[DIMENSION_MAXIMUM], 1); /* the graphs without a size are left */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bins_waste_least),
      cmocka_unit_test(bins_are_for_requests_up_to_a_limit),
      cmocka_unit_test(a_space_has_each_allowed_choice_once),
      cmocka_unit_test(levels_are_above_the_peak),
  };
  return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
