/* SPDX-License-Identifier: MIT */
/* Tests of what `async_managed` does beyond other sources: memory that moves by itself, and runtimes without it. */
#include "../../core/runtime/hip.h"
#include "../support/fixture.h"

#include <string.h>

static struct hipmm_hip real;

static int setup(void **state)
{
  if (hip_table_functions.struct_size) real = hip_table_functions;
  return fixture_setup(state);
}

static int teardown(void **state)
{
  if (real.struct_size) hip_table_functions = real;
  return fixture_teardown(state);
}

static void gives_memory_that_moves(void **state)
{
  (void)state;
  fixture_start("'stack': ['async_managed']");
  unsigned char *ptr = fixture_allocate(MIB, NULL);
  assert_int_equal(fixture_hip()->StreamSynchronize(NULL), 0);
  memset(ptr, 3, MIB);
  assert_true(fixture_holds(ptr, 3, MIB));
  fixture_free(ptr, MIB, NULL);
}

static void gives_memory_that_is_told_where_to_be(void **state)
{
  (void)state;
  needs_software(); /* not every driver takes advice for a pool's memory */
  fixture_start("'stack': ['async_managed']");
  void *ptr = fixture_allocate(MIB, NULL);
  assert_int_equal(fixture_hip()->MemPrefetchAsync(ptr, MIB, 1, NULL), 0);
  assert_int_equal(fixture_hip()->MemAdvise(ptr, MIB, HIPMM_HIP_ADVISE_PREFERRED_LOCATION, HIPMM_HIP_CPU_DEVICE), 0);
  fixture_free(ptr, MIB, NULL);
}

static void may_be_larger_than_the_device(void **state)
{
  (void)state;
  needs_software(); /* of 256 MiB */
  fixture_start("'stack': ['async_managed']");
  void *ptr = fixture_allocate(300 * MIB, NULL);
  assert_true(fixture_held_bytes() >= 300 * MIB);
  fixture_free(ptr, 300 * MIB, NULL);
}

static void takes_the_options_of_its_pool(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'async_managed', 'initial_pool_size': '8MiB', 'release_threshold': '64MiB', "
                "'reuse_allow_opportunistic': false}]");
  assert_true(fixture_held_bytes() >= 8 * MIB);
  assert_int_equal(fixture_value("async_managed", "threshold_bytes"), 64 * MIB);
  assert_int_equal(fixture_value("async_managed", "is_opportunistic"), 0);
  assert_ok(hipmm_resource_trim(fixture_resource("async_managed"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
  fixture_free(fixture_allocate(128 * MIB, NULL), 128 * MIB, NULL);
  fixture_hip()->StreamSynchronize(NULL); /* gives back what is above the threshold */
  assert_true(fixture_held_bytes() <= 64 * MIB);
}

static int lacks_managed_pools(hipmm_hip_mempool_t *pool, int device)
{
  (void)pool, (void)device;
  return HIPMM_HIP_ERROR_NOT_SUPPORTED;
}

static void names_what_the_runtime_lacks(void **state)
{
  (void)state;
  static const char graph[] = "'stack': ['async_managed']";
  assert_status(fixture_try("'managed_memory': false", graph), HIPMM_E_NOT_SUPPORTED);
  assert_message("device 0 has no managed memory");
  assert_ok(hipmm_finalize());
  assert_status(fixture_try("'memory_pools': false", graph), HIPMM_E_NOT_SUPPORTED);
  assert_message("device 0 has no stream-ordered pools");
  assert_ok(hipmm_finalize());
  hip_table_functions.MemPoolCreateManaged = lacks_managed_pools;
  assert_status(fixture_try("", graph), HIPMM_E_NOT_SUPPORTED);
  assert_message("hipMemPoolCreate has no hipMemAllocationTypeManaged");
  assert_message("use pool over managed");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(gives_memory_that_moves),       TEST(gives_memory_that_is_told_where_to_be),
      TEST(may_be_larger_than_the_device), TEST(takes_the_options_of_its_pool),
      TEST(names_what_the_runtime_lacks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
