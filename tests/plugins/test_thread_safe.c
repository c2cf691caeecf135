/* SPDX-License-Identifier: MIT */
/* Tests of thread_safe: everything passes through it unchanged, and one thread at a time. */
#include "../support/fixture.h"

static const char guarded[] = "'stack': ['thread_safe', 'device']";

static void passes_everything_through(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(guarded);
  ptr = fixture_allocate(1000, NULL);
  assert_int_equal(fixture_held_bytes(), 1000);
  assert_status(hipmm_deallocate(NULL, ptr, 999, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_allocate(NULL, SIZE_MAX, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_allocate_aligned(NULL, 1, 1024, NULL, &ptr), HIPMM_E_ARGUMENT);
  fixture_free(ptr, 1000, NULL);
  assert_null(fixture_allocate(0, NULL));
}

static void finds_blocks_below(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', 'thread_safe', 'device']");
  fixture_free(fixture_allocate(1000, NULL), 0, NULL);
  assert_int_equal(fixture_value("statistics", "current_bytes"), 0);
}

enum { THREADS = 4, ROUNDS = 500 };

static void allocate_and_free(int *failures)
{
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr;
    enum hipmm_status status = hipmm_allocate(NULL, 4096, NULL, &ptr);
    if (!status) status = hipmm_deallocate(NULL, ptr, 4096, NULL);
    *failures += status != HIPMM_OK;
  }
}

static void serves_threads(void **state)
{
  (void)state;
  fixture_start("'stack': ['thread_safe', 'pool', 'device']");
  fixture_run_threads(THREADS, allocate_and_free);
  assert_int_equal(fixture_value("pool", "live_count"), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(passes_everything_through),
      TEST(finds_blocks_below),
      TEST(serves_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
