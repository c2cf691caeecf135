/* SPDX-License-Identifier: MIT */
/* Tests of core/base/block_map.c and core/base/os_memory.c: the map of blocks that a source holds. */
#include "../../core/base/block_map.h"
#include "../../core/base/os_memory.h"
#include "../support/support.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int open_block_map(void **state)
{
  static struct block_map block_map;
  block_map_open(&block_map);
  *state = &block_map;
  return 0;
}

static int close_block_map(void **state)
{
  block_map_close(*state);
  return 0;
}

static void *address(uint64_t number)
{
  return (void *)(uintptr_t)(number << 8);
}

static void is_empty_at_first(void **state)
{
  struct block_map *block_map = *state;
  struct hipmm_block block = {address(1), 1};
  assert_int_equal(block_map_remove(block_map, address(7), 0, &block), HIPMM_E_POINTER);
  assert_false(block_map_find(block_map, address(7), &block));
  assert_false(block_map_remove_any(block_map, &block));
  assert_ptr_equal(block.ptr, address(1));
  assert_int_equal(block_map->bytes, 0);
}

static void gives_back_what_was_put_in(void **state)
{
  struct block_map *block_map = *state;
  struct hipmm_block block;
  assert_true(block_map_insert(block_map, address(7), 1000));
  assert_true(block_map_find(block_map, address(7), &block));
  assert_ptr_equal(block.ptr, address(7));
  assert_int_equal(block.bytes, 1000);
  assert_false(block_map_find(block_map, address(8), &block));
  assert_false(block_map_find(block_map, NULL, &block));
  assert_int_equal(block_map_remove(block_map, NULL, 0, &block), HIPMM_E_POINTER);
  assert_int_equal(block_map_remove(block_map, address(7), 1000, &block), HIPMM_OK);
  assert_int_equal(block_map_remove(block_map, address(7), 1000, &block), HIPMM_E_POINTER);
}

static void keeps_a_block_asked_for_with_a_wrong_size(void **state)
{
  struct block_map *block_map = *state;
  struct hipmm_block block = {0};
  block_map_insert(block_map, address(7), 1000);
  assert_int_equal(block_map_remove(block_map, address(7), 999, &block), HIPMM_E_SIZE);
  assert_int_equal(block.bytes, 1000);
  assert_int_equal(block_map->sizes.count, 1);
  assert_int_equal(block_map_remove(block_map, address(7), 0, &block), HIPMM_OK);
  assert_int_equal(block_map->bytes, 0);
}

static void hands_out_any_until_none_is_left(void **state)
{
  struct block_map *block_map = *state;
  struct hipmm_block block;
  bool seen[1000] = {false};
  for (uint64_t i = 0; i < 1000; i++) assert_true(block_map_insert(block_map, address(i + 1), i));
  for (int i = 0; i < 500; i++) {
    assert_true(block_map_remove_any(block_map, &block));
    assert_false(seen[block.bytes]);
    seen[block.bytes] = true;
  }
  for (uint64_t i = 0; i < 1000; i++) /* removed blocks come back, below the emptied slots */
    if (seen[i]) assert_true(block_map_insert(block_map, address(i + 1), i));
  memset(seen, 0, sizeof seen);
  for (int i = 0; i < 1000; i++) {
    assert_true(block_map_remove_any(block_map, &block));
    assert_false(seen[block.bytes]);
    seen[block.bytes] = true;
  }
  assert_false(block_map_remove_any(block_map, &block));
  assert_int_equal(block_map->bytes, 0);
}

/* ---- Threads ---- */

struct worker {
  struct block_map *block_map;
  uint64_t first;
  int failures;
};

static void *work(void *closure)
{
  struct worker *worker = closure;
  struct hipmm_block block;
  for (int round = 0; round < 5; round++) {
    for (uint64_t i = 0; i < 500; i++)
      worker->failures += !block_map_insert(worker->block_map, address(worker->first + i), i + 1);
    for (uint64_t i = 0; i < 500; i++) {
      worker->failures +=
          !block_map_find(worker->block_map, address(worker->first + i), &block) || block.bytes != i + 1;
      worker->failures += block_map_remove(worker->block_map, address(worker->first + i), i + 1, &block) != HIPMM_OK;
    }
  }
  return NULL;
}

static atomic_bool is_over;

static void count_wrong_block(void *failures, const struct hipmm_block *block)
{
  *(int *)failures += !block->ptr || !block->bytes;
}

/* Until the others have done. */
static void *look(void *closure)
{
  struct worker *worker = closure;
  struct hipmm_block block;
  while (!atomic_load(&is_over)) {
    block_map_visit(worker->block_map, count_wrong_block, &worker->failures);
    const void *inside = (const char *)address(worker->first) + 1;
    if (block_map_find_holding(worker->block_map, inside, &block))
      worker->failures += (uintptr_t)inside - (uintptr_t)block.ptr >= block.bytes;
  }
  return NULL;
}

static void *take_any(void *closure)
{
  struct worker *worker = closure;
  struct hipmm_block block;
  while (block_map_remove_any(worker->block_map, &block)) worker->first++;
  return NULL;
}

static void hands_each_block_to_one_thread(void **state)
{
  enum { THREADS = 3, BLOCKS = 3000 };
  struct block_map *block_map = *state;
  pthread_t threads[THREADS];
  struct worker workers[THREADS];
  uint64_t n_taken = 0;
  for (uint64_t i = 0; i < BLOCKS; i++) assert_true(block_map_insert(block_map, address(i + 1), 1));
  for (uint64_t i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){block_map, 0, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, take_any, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    n_taken += workers[i].first;
  }
  assert_int_equal(n_taken, BLOCKS);
  assert_int_equal(block_map->sizes.count, 0);
}

static void serves_threads(void **state)
{
  enum { THREADS = 6 };
  struct block_map *block_map = *state;
  pthread_t threads[THREADS], looker;
  struct worker workers[THREADS], looking = {block_map, 2, 0};
  atomic_store(&is_over, false);
  assert_int_equal(pthread_create(&looker, NULL, look, &looking), 0);
  for (uint64_t i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){block_map, 1 + i * 1000, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(workers[i].failures, 0);
  }
  atomic_store(&is_over, true);
  pthread_join(looker, NULL);
  assert_int_equal(looking.failures, 0);
  assert_int_equal(block_map->sizes.count, 0);
  assert_int_equal(block_map->bytes, 0);
}

/* ---- Pages ---- */

static void pages_are_zeroed_and_writable(void **state)
{
  (void)state;
  char *memory = os_memory_allocate(100000);
  assert_non_null(memory);
  for (int i = 0; i < 100000; i++) assert_int_equal(memory[i], 0);
  memset(memory, 1, 100000);
  os_memory_free(memory, 100000);
}

static void pages_of_nothing_and_of_too_much_are_null(void **state)
{
  (void)state;
  assert_null(os_memory_allocate(0));
  assert_null(os_memory_allocate((size_t)1 << 62));
  assert_null(os_memory_allocate(SIZE_MAX));
  os_memory_free(NULL, 100);
}

#define block_map_test(name) cmocka_unit_test_setup_teardown(name, open_block_map, close_block_map)

int main(void)
{
  const struct CMUnitTest tests[] = {
      block_map_test(is_empty_at_first),
      block_map_test(gives_back_what_was_put_in),
      block_map_test(keeps_a_block_asked_for_with_a_wrong_size),
      block_map_test(hands_out_any_until_none_is_left),
      block_map_test(serves_threads),
      block_map_test(hands_each_block_to_one_thread),
      cmocka_unit_test(pages_are_zeroed_and_writable),
      cmocka_unit_test(pages_of_nothing_and_of_too_much_are_null),
  };
  return cmocka_run_group_tests_name("block map", tests, NULL, NULL);
}
