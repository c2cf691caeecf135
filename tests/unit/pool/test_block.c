/* SPDX-License-Identifier: MIT */
/* Tests of the records of blocks, and of the map from addresses to them. */
#include "../../../plugins/common/address_map.h"
#include "../../../plugins/heap/block.h"
#include "../../support/support.h"
#include "fake.h"

#include <pthread.h>

static const uint64_t GIB = 1ull << 30;
static const uint64_t START = 0x300000000000;

static struct blocks blocks;

static int open_blocks(void **state)
{
  (void)state;
  return blocks_open(&blocks, fake_begin()) ? 0 : -1;
}

static int close_blocks(void **state)
{
  (void)state;
  blocks_close(&blocks);
  return fake_end();
}

static void *address(uint64_t start)
{
  return (void *)(uintptr_t)start;
}

static uint32_t new_live(uint64_t start, uint64_t bytes)
{
  uint32_t id = block_new(&blocks, start, bytes);
  assert_int_not_equal(id, BLOCK_NONE);
  block_publish(&blocks, id);
  block_set_state(block_of(&blocks, id), BLOCK_LIVE);
  return id;
}

static void finds_live_blocks_only(void **state)
{
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  uint32_t id = block_new(&blocks, START, 512);
  assert_int_equal(block_state(block_of(&blocks, id)), BLOCK_FREE);
  block_publish(&blocks, id);
  assert_int_equal(block_at(&blocks, address(START), 0), BLOCK_NONE);
  block_set_state(block_of(&blocks, id), BLOCK_LIVE);
  assert_int_equal(block_at(&blocks, address(START), 0), id);
  block_set_state(block_of(&blocks, id), BLOCK_CACHED);
  assert_int_equal(block_at(&blocks, address(START), 0), BLOCK_NONE);
  block_drop(&blocks, id);
  assert_int_equal(block_at(&blocks, address(START), 0), BLOCK_NONE);
}

static void knows_no_address_that_is_not_the_start_of_a_block(void **state)
{
  static const uint64_t starts[] = {0,
                                    1,
                                    256,
                                    4096,
                                    START + 256,
                                    START + 1,
                                    START + 255,
                                    START - 256,
                                    START + 8 * GIB,
                                    1ull << ADDRESS_MAP_ADDRESS_BITS,
                                    (1ull << ADDRESS_MAP_ADDRESS_BITS) - 256,
                                    1ull << 63,
                                    UINT64_MAX - 255,
                                    UINT64_MAX};
  char on_the_stack;
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  new_live(START, 1024);
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    assert_int_equal(block_at(&blocks, address(starts[i]), 0), BLOCK_NONE);
  assert_int_equal(block_at(&blocks, &on_the_stack, 0), BLOCK_NONE);
  assert_int_equal(block_at(&blocks, &blocks, 0), BLOCK_NONE);
}

static void covers_ranges_across_leaves(void **state)
{
  uint64_t leaf = 1ull << ADDRESS_MAP_LEAF_BITS, start = START + leaf - 1024;
  (void)state;
  assert_true(address_map_cover(&blocks.map, start, 2 * leaf));
  uint32_t before = new_live(start, 1024), after = new_live(start + 1024, 256);
  uint32_t last = new_live(start + 2 * leaf - 256, 256);
  assert_int_equal(block_at(&blocks, address(start), 0), before);
  assert_int_equal(block_at(&blocks, address(start + 1024), 0), after);
  assert_int_equal(block_at(&blocks, address(start + 2 * leaf - 256), 0), last);
  assert_int_equal(blocks.map.n_leaves, 3);
  assert_true(address_map_cover(&blocks.map, start + leaf, 256)); /* again */
  assert_int_equal(blocks.map.n_leaves, 3);
}

static void refuses_addresses_that_no_process_has(void **state)
{
  uint64_t end = 1ull << ADDRESS_MAP_ADDRESS_BITS;
  (void)state;
  assert_false(address_map_cover(&blocks.map, end, 256));
  assert_false(address_map_cover(&blocks.map, end - 256, 512));
  assert_false(address_map_cover(&blocks.map, UINT64_MAX - 255, 256));
  assert_true(address_map_cover(&blocks.map, end - 256, 256));
  uint32_t id = new_live(end - 256, 256);
  assert_int_equal(block_at(&blocks, address(end - 256), 0), id);
}

static void covers_nothing_more_when_host_memory_is_short(void **state)
{
  (void)state;
  fake_fail_host_allocation(2);
  assert_false(address_map_cover(&blocks.map, START, 8 * GIB));
  assert_int_equal(blocks.map.n_leaves, 1);
  assert_true(address_map_cover(&blocks.map, START, 8 * GIB));
  assert_int_equal(blocks.map.n_leaves, 2);
}

static void opens_only_with_all_its_memory(void **state)
{
  struct blocks others;
  (void)state;
  for (unsigned nth = 1; nth <= 2; nth++) {
    fake_fail_host_allocation(nth);
    assert_false(blocks_open(&others, blocks.services));
    blocks_close(&others);
  }
}

static void uses_records_again(void **state)
{
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  uint32_t first = new_live(START, 256), second = new_live(START + 256, 256);
  uint64_t bytes = blocks_metadata_bytes(&blocks);
  block_drop(&blocks, first);
  block_drop(&blocks, second);
  for (uint64_t i = 0; i < 100000; i++) {
    uint32_t id = new_live(START + i * 4096, 4096);
    assert_true(id == first || id == second);
    assert_int_equal(block_at(&blocks, address(START + i * 4096), 0), id);
    block_drop(&blocks, id);
  }
  assert_int_equal(blocks_metadata_bytes(&blocks), bytes);
}

static void is_not_misled_by_what_the_map_still_says(void **state)
{
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  uint32_t old = new_live(START, 256);
  block_drop(&blocks, old);
  uint32_t id = new_live(START + 4096, 256);
  assert_int_equal(id, old);
  assert_int_equal(block_at(&blocks, address(START), 0), BLOCK_NONE);
  assert_int_equal(block_at(&blocks, address(START + 4096), 0), id);
}

/* Says that a block at `start` is as large as one of a few sizes, right or wrong. */
static void assert_at(uint64_t start, uint32_t id)
{
  static const uint64_t said[] = {0, 1, 256, (2 << 20) - 1, 2 << 20, 1ull << 40, UINT64_MAX};
  for (unsigned i = 0; i < sizeof said / sizeof *said; i++)
    assert_int_equal(block_at(&blocks, address(start), said[i]), id);
}

static void finds_blocks_however_large_they_are_said_to_be(void **state)
{
  enum { LARGE = 2 << 20 };
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  uint32_t small = new_live(START, 4096), large = new_live(START + 4096, LARGE);
  uint32_t next = new_live(START + 4096 + LARGE, LARGE - 256);
  uint32_t last = new_live(START + 4096 + 2 * LARGE - 256, 3ull * LARGE);
  assert_at(START, small);
  assert_at(START + 4096, large);
  assert_at(START + 4096 + LARGE, next);
  assert_at(START + 4096 + 2 * LARGE - 256, last);
  assert_at(START + LARGE, BLOCK_NONE);
  block_drop(&blocks, large);
  assert_at(START + 4096, BLOCK_NONE);
  assert_int_equal(new_live(START + 4096, 512), large);
  assert_at(START + 4096, large);
  block_drop(&blocks, small);
  assert_int_equal(new_live(START, LARGE), small);
  assert_at(START, small);
  assert_at(START + 4096, large);
}

static void moves_the_start_of_a_block(void **state)
{
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  uint32_t id = block_new(&blocks, START, 1024);
  block_set_bounds(block_of(&blocks, id), START + 256, 768);
  block_publish(&blocks, id);
  block_set_state(block_of(&blocks, id), BLOCK_LIVE);
  assert_int_equal(block_at(&blocks, address(START + 256), 0), id);
  assert_int_equal(block_at(&blocks, address(START), 0), BLOCK_NONE);
  assert_int_equal(block_of(&blocks, id)->bytes, 768);
}

/* The end is pulled to the count: filling all records would take gigabytes. */
static void has_no_record_when_all_are_in_use(void **state)
{
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  uint32_t id = new_live(START, 256);
  blocks.most = blocks.count;
  assert_int_equal(block_new(&blocks, START + 256, 256), BLOCK_NONE);
  block_drop(&blocks, id);
  assert_int_equal(block_new(&blocks, START + 256, 256), id);
  assert_true(blocks_are_exhausted(&blocks));
  assert_int_equal(block_new(&blocks, START + 512, 256), BLOCK_NONE);
}

/* ---- Giving back ---- */

enum { RECORDS = 200000 };

/* All blocks but each `nth` are dropped. */
static void drop_all_but_each(uint32_t nth)
{
  for (uint32_t i = 0; i < RECORDS; i++)
    if (i % nth) block_drop(&blocks, 1 + i);
}

static void gives_the_memory_of_unused_records_back(void **state)
{
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  uint64_t before = blocks_resident_bytes(&blocks);
  for (uint32_t i = 0; i < RECORDS; i++) assert_int_equal(new_live(START + i * 256ull, 256), 1 + i);
  uint64_t full = blocks_resident_bytes(&blocks);
  assert_in_range(full - before, RECORDS * sizeof(struct block), RECORDS * (sizeof(struct block) + 5) + (1 << 20));
  enum { EACH = 50000, KEPT = RECORDS / EACH };
  drop_all_but_each(EACH);
  blocks_trim(&blocks);
  assert_in_range(blocks_resident_bytes(&blocks), 1, before + KEPT * (3 * 65536));
  for (uint32_t i = 0; i < RECORDS; i++) {
    uint32_t id = block_at(&blocks, address(START + i * 256ull), 0);
    assert_int_equal(id, i % EACH ? BLOCK_NONE : 1 + i);
  }
  /* Each record comes again, once. */
  for (uint32_t i = 0; i < RECORDS; i++)
    if (i % EACH) new_live(START + i * 256ull, 256);
  for (uint32_t i = 0; i < RECORDS; i++)
    assert_int_not_equal(block_at(&blocks, address(START + i * 256ull), 0), BLOCK_NONE);
  assert_int_equal(blocks.count, RECORDS + 1);
  for (uint32_t id = 1; id <= RECORDS; id++) block_drop(&blocks, id);
  blocks_trim(&blocks);
  assert_int_equal(blocks.count, 1);
  assert_in_range(blocks_resident_bytes(&blocks), 1, before + 65536);
}

/* Threads with the lock of a local arena divide a superblock while another thread trims. */
static void keeps_the_map_of_what_is_on_loan(void **state)
{
  enum { FAR = 32 << 20 };
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  uint32_t superblock = block_new(&blocks, START, 2 * FAR);
  block_set_state(block_of(&blocks, superblock), BLOCK_ON_LOAN);
  address_map_set(&blocks.map, START + FAR, 7);
  address_map_set(&blocks.map, START + 4 * FAR, 7);
  blocks_trim(&blocks);
  assert_int_equal(address_map_get(&blocks.map, START + FAR), 7);
  assert_int_equal(address_map_get(&blocks.map, START + 4 * FAR), 0);
}

static void uses_short_runs_of_records_again_after_a_trim(void **state)
{
  (void)state;
  assert_true(address_map_cover(&blocks.map, START, GIB));
  for (uint32_t i = 0; i < RECORDS; i++) new_live(START + i * 256ull, 256);
  drop_all_but_each(7);
  blocks_trim(&blocks);
  for (uint32_t i = 0; i < RECORDS; i++)
    if (i % 7) new_live(START + i * 256ull, 256);
  for (uint32_t i = 0; i < RECORDS; i++)
    assert_int_not_equal(block_at(&blocks, address(START + i * 256ull), 0), BLOCK_NONE);
  assert_int_equal(blocks.count, RECORDS + 1);
}

/* ---- Claims ---- */

enum { THREADS = 4, ROUNDS = 20000 };

struct claims {
  pthread_barrier_t start;
  struct block *items;
  unsigned won[THREADS];
};

struct claimer {
  struct claims *claims;
  unsigned number;
};

static void *claim_all(void *closure)
{
  const struct claimer *claimer = closure;
  pthread_barrier_wait(&claimer->claims->start);
  for (unsigned i = 0; i < ROUNDS; i++)
    claimer->claims->won[claimer->number] += block_claim(&claimer->claims->items[i]);
  return NULL;
}

static void gives_a_block_to_one_claimer(void **state)
{
  static struct block items[ROUNDS];
  static struct claims claims = {.items = items};
  struct claimer claimers[THREADS];
  pthread_t threads[THREADS];
  (void)state;
  pthread_barrier_init(&claims.start, NULL, THREADS);
  for (unsigned i = 0; i < ROUNDS; i++) block_set_state(&items[i], i % 4 ? BLOCK_LIVE : BLOCK_FREE);
  for (unsigned i = 0; i < THREADS; i++) {
    claimers[i] = (struct claimer){&claims, i};
    assert_int_equal(pthread_create(&threads[i], NULL, claim_all, &claimers[i]), 0);
  }
  unsigned won = 0;
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    won += claims.won[i];
  }
  assert_int_equal(won, ROUNDS - ROUNDS / 4);
  for (unsigned i = 0; i < ROUNDS; i++) assert_int_equal(block_state(&items[i]), i % 4 ? BLOCK_CACHED : BLOCK_FREE);
  pthread_barrier_destroy(&claims.start);
}

/* ---- The map that other pools have ---- */

static void maps_addresses_that_a_process_has(void **state)
{
  const uint64_t end = 1ull << ADDRESS_MAP_ADDRESS_BITS;
  struct address_map map;
  (void)state;
  assert_true(address_map_open(&map, blocks.services, HIPMM_ALIGNMENT));
  assert_true(address_map_cover(&map, end - 4096, 4096));
  address_map_set(&map, end - 256, 7);
  assert_int_equal(address_map_get(&map, end - 256), 7);
  assert_int_equal(address_map_get(&map, end), 0);
  assert_false(address_map_cover(&map, end - 4096, 8192));
  assert_false(address_map_cover(&map, end, 256));
  fake_fail_host_allocation(1);
  assert_false(address_map_cover(&map, START, 256));
  assert_int_equal(address_map_get(&map, START), 0);
  fake_fail_host_allocation(0);
  assert_true(address_map_cover(&map, START, 256));
  address_map_close(&map);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_blocks, close_blocks)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(finds_live_blocks_only),
      TEST(knows_no_address_that_is_not_the_start_of_a_block),
      TEST(covers_ranges_across_leaves),
      TEST(refuses_addresses_that_no_process_has),
      TEST(covers_nothing_more_when_host_memory_is_short),
      TEST(opens_only_with_all_its_memory),
      TEST(uses_records_again),
      TEST(is_not_misled_by_what_the_map_still_says),
      TEST(finds_blocks_however_large_they_are_said_to_be),
      TEST(moves_the_start_of_a_block),
      TEST(has_no_record_when_all_are_in_use),
      TEST(gives_the_memory_of_unused_records_back),
      TEST(keeps_the_map_of_what_is_on_loan),
      TEST(uses_short_runs_of_records_again_after_a_trim),
      TEST(gives_a_block_to_one_claimer),
      TEST(maps_addresses_that_a_process_has),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
