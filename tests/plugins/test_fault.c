/* SPDX-License-Identifier: MIT */
/* Tests of fault: what fails, that the same fails again, and that nothing else does. */
#include "../support/behaviour.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Allocates and frees; whether it failed. */
static bool fails(size_t bytes)
{
  void *ptr = NULL;
  enum hipmm_status status = hipmm_allocate(NULL, bytes, NULL, &ptr);
  if (!status) fixture_free(ptr, bytes, NULL);
  if (status) assert_status(status, HIPMM_E_OUT_OF_MEMORY);
  return status != HIPMM_OK;
}

static void restart(void)
{
  assert_ok(hipmm_resource_perform(fixture_resource("fault"), "restart"));
}

static void fails_every_so_many(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fault', 'every': 3}, 'device']");
  for (int i = 1; i <= 30; i++) {
    assert_false(fails(0)); /* is not counted */
    assert_int_equal(fails(100), i % 3 == 0);
    if (i % 3 == 0) assert_message("of 100 bytes was made to fail: one in 3 is");
  }
  assert_int_equal(fixture_value("fault", "allocations"), 30);
  assert_int_equal(fixture_value("fault", "failures"), 10);
  assert_int_equal(fixture_value("fault", "passed_bytes"), 2000);
}

/* As a row of zeros and ones. */
static void draw(int64_t seed, const char *probability, char *pattern, size_t n)
{
  char graph[200];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'fault', 'probability': %s, 'seed': %lld}, 'device']", probability,
           (long long)seed);
  fixture_start(graph);
  for (size_t i = 0; i < n; i++) pattern[i] = fails(1) ? '1' : '0';
}

static void fails_at_random_and_again(void **state)
{
  enum { N = 1000 };
  char first[N], second[N];
  unsigned failures = 0, differences = 0;
  (void)state;
  draw(7, "0.25", first, N);
  restart();
  for (size_t i = 0; i < N; i++) second[i] = fails(1) ? '1' : '0';
  assert_memory_equal(first, second, N);
  for (size_t i = 0; i < N; i++) failures += first[i] == '1';
  assert_in_range(failures, 200, 300);
  assert_ok(hipmm_finalize());
  draw(8, "0.25", second, N);
  for (size_t i = 0; i < N; i++) differences += first[i] != second[i];
  assert_in_range(differences, 200, 600);
  assert_ok(hipmm_finalize());
  draw(7, "0.25", second, N);
  assert_memory_equal(first, second, N);
}

static void fails_never_and_always(void **state)
{
  char pattern[200];
  (void)state;
  draw(1, "0", pattern, sizeof pattern);
  assert_null(memchr(pattern, '1', sizeof pattern));
  assert_ok(hipmm_finalize());
  draw(1, "1", pattern, sizeof pattern);
  assert_null(memchr(pattern, '0', sizeof pattern));
  assert_message("at random");
}

static void fails_above_a_size(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fault', 'above': '1MiB'}, 'device']");
  assert_false(fails(1));
  assert_false(fails(MIB));
  assert_true(fails(MIB + 1));
  assert_message("it is above a size");
  assert_true(fails(SIZE_MAX));
}

static void fails_after_a_total(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fault', 'after_total': 1000}, 'device']");
  assert_false(fails(600));
  assert_true(fails(401));
  assert_message("after a total");
  assert_true(fails(SIZE_MAX));
  fixture_fail_call("hipMalloc", 1, 0);
  assert_true(fails(400)); /* of the runtime's own: it is not counted */
  assert_int_equal(fixture_value("fault", "failures"), 2);
  assert_int_equal(fixture_value("fault", "passed_bytes"), 600);
  assert_false(fails(400));
  assert_true(fails(1));
  restart();
  assert_false(fails(1000));
}

static void fails_no_more_than_it_is_told_to(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fault', 'every': 4, 'most_failures': 1}, 'device']");
  for (int i = 1; i <= 20; i++) assert_int_equal(fails(10), i == 4);
  restart();
  for (int i = 1; i <= 20; i++) assert_int_equal(fails(10), i == 4);
}

static void does_nothing_unless_told_to(void **state)
{
  (void)state;
  fixture_start("'stack': ['fault', 'device']");
  for (int i = 0; i < 100; i++) assert_false(fails(MIB));
  assert_int_equal(fixture_value("fault", "failures"), 0);
}

static void passes_frees_on(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', {'type': 'fault', 'probability': 0}, 'device']");
  fixture_free(fixture_allocate(1000, NULL), 0, NULL);
  assert_int_equal(fixture_value("statistics", "current_bytes"), 0);
}

static void takes_new_options_while_in_use(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fault', 'every': 1}, 'device']");
  assert_true(fails(10));
  assert_ok(hipmm_set("devices/0/fault/every", "0"));
  assert_false(fails(10));
  assert_ok(hipmm_set("devices/0/fault/above", "9"));
  assert_true(fails(10));
  assert_ok(hipmm_set("devices/0/fault/above", "unlimited"));
  assert_ok(hipmm_set("devices/0/fault/probability", "1"));
  assert_ok(hipmm_set("devices/0/fault/most_failures", "3")); /* there were two */
  assert_true(fails(10));
  assert_false(fails(10));
  assert_status(hipmm_set("devices/0/fault/probability", "2"), HIPMM_E_CONFIG);
}

enum { THREADS = 4, STEPS = 1000 };

static void *count_failures(void *argument)
{
  int *failures = argument;
  for (int i = 0; i < STEPS; i++) {
    void *ptr;
    if (hipmm_allocate(NULL, 100, NULL, &ptr))
      ++*failures;
    else if (hipmm_deallocate(NULL, ptr, 100, NULL))
      return argument;
  }
  return NULL;
}

/* How many of so many fail is the same whoever makes them. */
static void counts_over_all_threads(void **state)
{
  static const struct {
    const char *options;
    int wanted;
  } rows[] = {{"'every': 8", THREADS * STEPS / 8},
              {"'every': 8, 'most_failures': 77", 77},
              {"'after_total': 150050", THREADS * STEPS - 1500},
              {"'probability': 0.5, 'seed': 3", -1}};
  (void)state;
  for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
    pthread_t threads[THREADS];
    int failures[THREADS] = {0}, sum = 0, wanted = rows[row].wanted, alone = 0;
    void *failure = NULL;
    char graph[200];
    snprintf(graph, sizeof graph, "'stack': [{'type': 'fault', %s}, 'pool', 'device']", rows[row].options);
    fixture_start(graph);
    for (int i = 0; i < THREADS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, count_failures, &failures[i]), 0);
    for (int i = 0; i < THREADS; i++) {
      pthread_join(threads[i], &failure);
      assert_null(failure);
      sum += failures[i];
    }
    if (wanted < 0) {
      restart();
      for (int i = 0; i < THREADS; i++) assert_null(count_failures(&alone));
      wanted = alone;
    }
    assert_int_equal(sum, wanted);
    assert_ok(hipmm_finalize());
  }
}

static void refuses_bad_options(void **state)
{
  static const struct fixture_refusal bad[] = {{"'every': -1", "/stack/0/every"},
                                               {"'probability': 1.5", "/stack/0/probability"},
                                               {"'probability': -0.1", "/stack/0/probability"},
                                               {"'above': '-1'", "/stack/0/above"},
                                               {"'most_failures': -1", "/stack/0/most_failures"},
                                               {"'every': 2.5", "/stack/0/every"}};
  (void)state;
  fixture_refuses("fault", bad, sizeof bad / sizeof *bad);
}

static const struct behaviour_stack stacks[] = {
    {"on a device", "'scheduler': 'threads'", "'stack': ['fault', 'device']", false},
    {"on a pool", "'scheduler': 'stepped', 'seed': 2",
     "'stack': [{'type': 'fault', 'above': '255MiB'}, 'pool', 'device']", true},
};

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest others[] = {
    TEST(fails_every_so_many),         TEST(fails_at_random_and_again), TEST(fails_never_and_always),
    TEST(fails_above_a_size),          TEST(fails_after_a_total),       TEST(fails_no_more_than_it_is_told_to),
    TEST(does_nothing_unless_told_to), TEST(passes_frees_on),           TEST(takes_new_options_while_in_use),
    TEST(counts_over_all_threads),     TEST(refuses_bad_options),
};

int main(void)
{
  log_to_file("error");
  return behaviour_run("fault", others, sizeof others / sizeof *others, stacks, sizeof stacks / sizeof *stacks);
}
