/* SPDX-License-Identifier: MIT */
/* Tests of limiting: what is counted, what is refused, and that threads never fail one another. */
#include "../support/fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static const char limited[] = "'stack': [{'type': 'limiting', 'limit': '1MiB'}, 'device']";

static void lets_the_limit_be_reached_and_no_more(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(limited);
  void *all = fixture_allocate(MIB, NULL);
  assert_status(hipmm_allocate(NULL, 1, NULL, &ptr), HIPMM_E_LIMIT);
  assert_message("1 MiB of the limit of 1 MiB are in use");
  fixture_free(all, MIB, NULL);
  fixture_free(fixture_allocate(1, NULL), 1, NULL);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 0);
}

static void counts_sizes_rounded_up(void **state)
{
  (void)state;
  fixture_start(limited);
  void *small = fixture_allocate(1, NULL), *exact = fixture_allocate(256, NULL), *above = fixture_allocate(257, NULL);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 256 + 256 + 512);
  assert_int_equal(fixture_value("limiting", "limit_bytes"), MIB);
  assert_null(fixture_allocate(0, NULL));
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 1024);
  fixture_free(small, 1, NULL);
  fixture_free(exact, 0, NULL);
  fixture_free(above, 257, NULL);
  fixture_free(NULL, 4096, NULL);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 0);
}

static void refuses_the_largest_sizes(void **state)
{
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 254, SIZE_MAX - 255, SIZE_MAX - 256, MIB + 1};
  void *ptr = NULL;
  (void)state;
  fixture_start(limited);
  void *small = fixture_allocate(256, NULL);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    assert_status(hipmm_allocate(NULL, sizes[i], NULL, &ptr), HIPMM_E_LIMIT);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 256);
  fixture_free(small, 256, NULL);
}

static void counts_nothing_that_failed(void **state)
{
  needs_software();
  void *ptr = NULL;
  (void)state;
  fixture_start(limited);
  fixture_fail_call("hipMalloc", 1, 0);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 0);
  ptr = fixture_allocate(1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 999, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, (char *)ptr + 256, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, (char *)ptr + 256, 0, NULL), HIPMM_E_POINTER);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 1024);
  fixture_free(ptr, 1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_POINTER);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 0);
}

static void needs_a_limit(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': ['limiting', 'device']"), HIPMM_E_CONFIG);
  assert_message("limiting needs \"limit\"");
}

static void takes_a_percentage(void **state)
{
  needs_software();
  (void)state;
  fixture_start("'stack': [{'type': 'limiting', 'limit': '25%'}, 'device']");
  assert_int_equal(fixture_value("limiting", "limit_bytes"), 64 * MIB);
}

enum { THREADS = 4, ROUNDS = 2000 };

static atomic_int n_started;

/* Three threads that fit together, and one that never fits. */
static void allocate_and_free(int *failures)
{
  bool fits = atomic_fetch_add(&n_started, 1) != 0;
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr;
    size_t bytes = fits ? MIB / 4 : MIB - 1024;
    enum hipmm_status status = hipmm_allocate(NULL, bytes, NULL, &ptr);
    if (!status) status = hipmm_deallocate(NULL, ptr, bytes, NULL);
    *failures += fits && status;
  }
}

static void never_fails_one_thread_for_another(void **state)
{
  (void)state;
  fixture_start(limited);
  void *kept = fixture_allocate(MIB / 4, NULL);
  atomic_store(&n_started, 0);
  fixture_run_threads(THREADS, allocate_and_free);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), MIB / 4);
  fixture_free(kept, MIB / 4, NULL);
}

enum { UNITS = (int)(MIB / 256) };

static struct taker {
  void *blocks[UNITS];
  int taken;
} takers[THREADS];

static pthread_barrier_t start_line;

/* Takes all that it gets, and frees it when all threads have: half of it is left for another thread to free. */
static void take_all(int *failures)
{
  struct taker *taker = &takers[atomic_fetch_add(&n_started, 1)];
  pthread_barrier_wait(&start_line);
  while (taker->taken < UNITS && !hipmm_allocate(NULL, 1, NULL, &taker->blocks[taker->taken])) taker->taken++;
  pthread_barrier_wait(&start_line);
  for (int i = 0; i < taker->taken / 2; i++) *failures += hipmm_deallocate(NULL, taker->blocks[i], 1, NULL) != HIPMM_OK;
}

/* In a thread that never allocates. */
static void free_what_is_left(int *failures)
{
  for (int i = 0; i < THREADS; i++)
    for (int block = takers[i].taken / 2; block < takers[i].taken; block++)
      *failures += hipmm_deallocate(NULL, takers[i].blocks[block], 1, NULL) != HIPMM_OK;
}

/* How much the threads got together. */
static int take_in_threads(void)
{
  int taken = 0;
  memset(takers, 0, sizeof takers);
  atomic_store(&n_started, 0);
  pthread_barrier_init(&start_line, NULL, THREADS);
  fixture_run_threads(THREADS, take_all);
  pthread_barrier_destroy(&start_line);
  for (int i = 0; i < THREADS; i++) taken += takers[i].taken;
  return taken;
}

static void gives_threads_together_the_limit_and_no_more(void **state)
{
  int left = 0;
  (void)state;
  fixture_start("'stack': [{'type': 'limiting', 'limit': '1MiB'}, 'pool', 'device']");
  assert_int_equal(take_in_threads(), UNITS);
  for (int i = 0; i < THREADS; i++) left += takers[i].taken - takers[i].taken / 2;
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), left * 256);
  fixture_run_threads(1, free_what_is_left);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL); /* one thread has all of it again */
}

/* ---- Set while in use ---- */

#define LIMIT "devices/0/limiting/limit"

static void assert_refused(size_t bytes, const char *message)
{
  void *ptr = NULL;
  assert_status(hipmm_allocate(NULL, bytes, NULL, &ptr), HIPMM_E_LIMIT);
  assert_message(message);
}

static void takes_a_higher_limit(void **state)
{
  (void)state;
  fixture_start(limited);
  void *all = fixture_allocate(MIB, NULL);
  assert_refused(1, "limiting: cannot allocate 1 byte: 1 MiB of the limit of 1 MiB are in use; free some, or set a "
                    "higher \"limit\"");
  assert_ok(hipmm_set(LIMIT, "3MiB"));
  assert_int_equal(fixture_value("limiting", "limit_bytes"), 3 * MIB);
  void *more = fixture_allocate(2 * MIB, NULL);
  assert_refused(1, "3 MiB of the limit of 3 MiB");
  fixture_free(all, MIB, NULL);
  fixture_free(more, 2 * MIB, NULL);
  fixture_free(fixture_allocate(3 * MIB, NULL), 3 * MIB, NULL);
}

static void allocates_nothing_until_it_is_below_a_lower_limit(void **state)
{
  (void)state;
  fixture_start(limited);
  void *first = fixture_allocate(MIB / 2, NULL), *second = fixture_allocate(MIB / 4, NULL),
       *third = fixture_allocate(MIB / 4, NULL);
  assert_ok(hipmm_set(LIMIT, "300KiB"));
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), MIB);
  assert_int_equal(fixture_value("limiting", "limit_bytes"), 300 << 10);
  assert_refused(1, "1 MiB of the limit of 300 KiB are in use");
  assert_null(fixture_allocate(0, NULL)); /* nothing is nothing */
  fixture_free(second, MIB / 4, NULL);
  assert_refused(1, "768 KiB of the limit of 300 KiB are in use");
  assert_ok(hipmm_set(LIMIT, "200KiB")); /* lower still */
  fixture_free(first, 0, NULL);
  assert_refused(1, "256 KiB of the limit of 200 KiB are in use");
  assert_ok(hipmm_set(LIMIT, "300KiB"));
  void *small = fixture_allocate(44 << 10, NULL);
  assert_refused(1, "300 KiB of the limit of 300 KiB are in use");
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 300 << 10);
  fixture_free(third, MIB / 4, NULL);
  fixture_free(small, 44 << 10, NULL);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 0);
  fixture_free(fixture_allocate(300 << 10, NULL), 300 << 10, NULL);
  assert_refused((300 << 10) + 1, "0 bytes of the limit of 300 KiB");
}

static void may_be_limited_to_nothing(void **state)
{
  (void)state;
  fixture_start(limited);
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_set(LIMIT, "0"));
  assert_refused(1, "1 KiB of the limit of 0 bytes are in use");
  fixture_free(ptr, 1000, NULL);
  assert_refused(1, "0 bytes of the limit of 0 bytes are in use");
  assert_ok(hipmm_set(LIMIT, "1KiB"));
  fixture_free(fixture_allocate(1024, NULL), 1024, NULL);
}

static void refuses_what_is_no_limit(void **state)
{
  (void)state;
  fixture_start(limited);
  assert_status(hipmm_set(LIMIT, "much"), HIPMM_E_CONFIG);
  assert_message("devices/0/limiting: /limit: \"much\" is not a size");
  assert_status(hipmm_set(LIMIT, NULL), HIPMM_E_CONFIG); /* it has no default */
  assert_message("limiting needs \"limit\"");
  assert_int_equal(fixture_value("limiting", "limit_bytes"), MIB);
}

/* Threads hold all of the limit, it is halved, they free: then they get the half of it, together and to the last
 * unit. */
static void threads_keep_a_limit_that_is_lowered_under_them(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'limiting', 'limit': '1MiB'}, 'pool', 'device']");
  for (int round = 0; round < 2; round++) {
    assert_int_equal(take_in_threads(), round ? UNITS / 2 : UNITS);
    assert_ok(hipmm_set(LIMIT, round ? "1MiB" : "512KiB"));
    fixture_run_threads(1, free_what_is_left);
    assert_int_equal(fixture_value("limiting", "allocated_bytes"), 0);
  }
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
}

static void allocate_while_it_changes(int *failures)
{
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr;
    if (hipmm_allocate(NULL, 1024, NULL, &ptr)) continue;
    *failures += hipmm_deallocate(NULL, ptr, 1024, NULL) != HIPMM_OK;
  }
}

static void loses_count_of_nothing_while_it_is_set(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'limiting', 'limit': '1MiB'}, 'pool', 'device']");
  fixture_start_threads(THREADS, allocate_while_it_changes);
  for (int i = 0; i < 300; i++) assert_ok(hipmm_set(LIMIT, i % 3 == 0 ? "1KiB" : i % 3 == 1 ? "0" : "1MiB"));
  fixture_join_threads();
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 0);
  assert_int_equal(fixture_value("limiting", "limit_bytes"), MIB);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  assert_refused(MIB + 1, "0 bytes of the limit of 1 MiB");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(lets_the_limit_be_reached_and_no_more),
      TEST(counts_sizes_rounded_up),
      TEST(refuses_the_largest_sizes),
      TEST(counts_nothing_that_failed),
      TEST(needs_a_limit),
      TEST(takes_a_percentage),
      TEST(never_fails_one_thread_for_another),
      TEST(gives_threads_together_the_limit_and_no_more),
      TEST(takes_a_higher_limit),
      TEST(allocates_nothing_until_it_is_below_a_lower_limit),
      TEST(may_be_limited_to_nothing),
      TEST(refuses_what_is_no_limit),
      TEST(threads_keep_a_limit_that_is_lowered_under_them),
      TEST(loses_count_of_nothing_while_it_is_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
