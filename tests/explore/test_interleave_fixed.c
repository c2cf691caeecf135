/* SPDX-License-Identifier: MIT */
/* test_interleave_fixed.c: fixed_size, all its files as they are, with two threads in all orders: lists of streams beside trims, counts,
 * the end of a stream, and another stream's search; frees of the other thread's blocks. In each order no block is given out twice, the
 * counts are right, the upstream has everything back, and there is no race. A mistake must be found. */
#include "../../plugins/fixed_size/fixed.h"
#include "interleave_use.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { CAPACITY = 1 << 20 };

extern const struct hipmm_plugin fixed_size_LTX_hipmm_plugin;

static bool is_weak; /* the mistake */

/* ---- What threads do ---- */

/* All that the chunk has. */
static void get_rest(void)
{
  get(8, SMALL, NULL);
  get(9, SMALL, NULL);
}

static void get_on_other_stream(void)
{
  get(6, SMALL, other_stream);
}

static void give_two(void)
{
  give(FIRST, NULL);
  give(SECOND, NULL);
}

/* The next block has other memory, and may have the same record. */
static void free_shared_trim_and_get(void)
{
  free_shared();
  trim();
  get(12, SMALL, NULL);
}

/* ---- How it begins ---- */

static void begin_fixed(void)
{
  static const struct fixed_size_options options = {.block_size = SMALL, .blocks_per_chunk = 4};
  struct hipmm_resource *upstream = device_begin(CAPACITY);
  plugin = &fixed_size_LTX_hipmm_plugin;
  if (plugin->create(&device_services, &options, &upstream, 1, &resource))
    interleave_note("the resource is not created");
  const struct fixed *fixed = resource;
  if (is_weak) interleave_weaken(fixed->lists, 8 * sizeof *fixed->lists);
  interleave_alone(FIRST, use_small);
  interleave_alone(SECOND, use_small);
}

static void begin_fixed_with_blocks(void)
{
  begin_fixed();
  interleave_alone(FIRST, get_first);
  interleave_alone(SECOND, get_first);
}

static void begin_fixed_with_shared_block(void)
{
  size_t bytes;
  begin_fixed_with_blocks();
  n_frees = 0;
  shared_block = device_take(FIRST, &bytes);
}

/* No other block keeps its chunk. */
static void begin_fixed_with_only_shared_block(void)
{
  size_t bytes;
  begin_fixed();
  interleave_alone(FIRST, get_first);
  n_frees = 0;
  shared_block = device_take(FIRST, &bytes);
}

static void begin_fixed_with_stream(void)
{
  begin_fixed();
  interleave_alone(FIRST, retain_and_use);
}

/* Blocks that are freed on one stream are of use to another one only after a wait. */
static void begin_busy_fixed(void)
{
  begin_fixed_with_blocks();
  interleave_alone(SECOND, retain_and_use);
  interleave_alone(FIRST, get_rest);
  device_is_busy = true;
}

static const struct interleave_scenario scenarios[] = {
    {"a hit beside a trim", begin_fixed, {use_small_twice, trim}, end, 2},
    {"a hit beside a count", begin_fixed, {use_small, count}, end, 2},
    {"a hit beside a stream's end", begin_fixed_with_stream, {use_small, retire}, end, 2},
    {"each frees the other's block", begin_fixed_with_blocks, {give_second_and_get, give_first_and_get}, end, 2},
    {"frees beside another stream's allocation", begin_fixed_with_blocks, {give_two, get_on_other_stream}, end, 2},
    {"frees beside a stream that must wait", begin_busy_fixed, {give_two, get_on_other_stream}, end, 2},
    {"a block freed twice", begin_fixed_with_shared_block, {free_shared, free_shared}, end_with_one_free, 2},
    {"a second free beside the next allocation",
     begin_fixed_with_shared_block,
     {free_shared_and_get, free_shared},
     end_with_next_block,
     2},
    {"a second free beside a trim and the next allocation",
     begin_fixed_with_only_shared_block,
     {free_shared_trim_and_get, free_shared},
     end_with_one_free,
     2},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void all_orders_are_right(void **state)
{
  (void)state;
  is_weak = false;
  unsigned long runs = 0;
  const char *wrong = interleave_explore_all(scenarios, SCENARIOS, &runs);
  if (wrong) fail_msg("%s", wrong);
  assert_true(runs > 100);
}

static void all_orders_are_right_on_a_weaker_processor(void **state)
{
  interleave_weaken_processor(true);
  all_orders_are_right(state);
  interleave_weaken_processor(false);
}

static void finds_a_mistake(void **state)
{
  (void)state;
  is_weak = true;
  assert_true(interleave_finds(scenarios, SCENARIOS, "locks of lists without acquire and release", NULL));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_orders_are_right),
      cmocka_unit_test(all_orders_are_right_on_a_weaker_processor),
      cmocka_unit_test(finds_a_mistake),
  };
  return cmocka_run_group_tests_name("interleavings of fixed_size", tests, NULL, NULL);
}
