/* SPDX-License-Identifier: MIT */
/* Tests of advise: what HIP is told about memory, that other memory is left alone, and that nothing is lost when HIP
 * refuses. */
#include "../support/behaviour.h"
#include "../support/managed.h"
#include "../support/stream_program.h"

#include <stdio.h>

static const char all[] = "'stack': [{'type': 'advise', 'read_mostly': true, 'preferred_location': 'device', "
                          "'accessed_by': ['cpu', '1'], 'coarse_grain': true}, 'managed']";

static const struct managed_adaptor adaptor = {"advise", "{'type': 'advise', 'preferred_location': 'device'}",
                                               "hipMemAdvise", "advised_count", MANAGED_PREFERRED_LOCATION};

/* ---- What is advised ---- */

struct advice_case {
  const char *options;
  int read_mostly, preferred_location, coarse_grain, accessed_by[3];
};

static const struct advice_case cases[] = {
    {"", 0, MANAGED_NOWHERE, 0, {MANAGED_NOWHERE, MANAGED_NOWHERE, MANAGED_NOWHERE}},
    {", 'read_mostly': true", 1, MANAGED_NOWHERE, 0, {MANAGED_NOWHERE, MANAGED_NOWHERE, MANAGED_NOWHERE}},
    {", 'preferred_location': 'device'", 0, 0, 0, {MANAGED_NOWHERE, MANAGED_NOWHERE, MANAGED_NOWHERE}},
    {", 'preferred_location': '1'", 0, 1, 0, {MANAGED_NOWHERE, MANAGED_NOWHERE, MANAGED_NOWHERE}},
    {", 'preferred_location': 'cpu'", 0, -1, 0, {MANAGED_NOWHERE, MANAGED_NOWHERE, MANAGED_NOWHERE}},
    {", 'accessed_by': ['device']", 0, MANAGED_NOWHERE, 0, {0, MANAGED_NOWHERE, MANAGED_NOWHERE}},
    {", 'accessed_by': ['1', 'cpu', '0']", 0, MANAGED_NOWHERE, 0, {-1, 0, 1}},
    {", 'accessed_by': ['1', '1', '1', '1']", 0, MANAGED_NOWHERE, 0, {1, MANAGED_NOWHERE, MANAGED_NOWHERE}},
    {", 'coarse_grain': true", 0, MANAGED_NOWHERE, 1, {MANAGED_NOWHERE, MANAGED_NOWHERE, MANAGED_NOWHERE}},
    {", 'read_mostly': true, 'preferred_location': 'cpu', 'accessed_by': ['1'], 'coarse_grain': true",
     1,
     -1,
     1,
     {1, MANAGED_NOWHERE, MANAGED_NOWHERE}},
};

static void tells_what_the_options_say(void **state)
{
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct advice_case *row = &cases[i];
    char graph[300];
    int accessed_by[3];
    snprintf(graph, sizeof graph, "'stack': [{'type': 'advise'%s}, 'managed']", row->options);
    fixture_start(graph);
    void *ptr = fixture_allocate(10000, NULL);
    assert_int_equal(managed_ask(ptr, MANAGED_READ_MOSTLY), row->read_mostly);
    assert_int_equal(managed_ask(ptr, MANAGED_PREFERRED_LOCATION), row->preferred_location);
    assert_int_equal(managed_ask(ptr, MANAGED_COARSE_GRAIN), row->coarse_grain);
    managed_ask_all(ptr, MANAGED_ACCESSED_BY, accessed_by, 3);
    for (int place = 0; place < 3; place++) assert_int_equal(accessed_by[place], row->accessed_by[place]);
    fixture_free(ptr, 10000, NULL);
    assert_ok(hipmm_finalize());
  }
}

static void counts_what_it_said(void **state)
{
  (void)state;
  needs_software();
  fixture_start(all);
  void *ptr = fixture_allocate(1000, NULL);
  assert_int_equal(software()->calls("hipMemAdvise"), 5);
  assert_int_equal(fixture_value("advise", "is_on"), 1);
  assert_int_equal(fixture_value("advise", "advised_count"), 5);
  assert_int_equal(fixture_value("advise", "advised_bytes"), 5000);
  assert_int_equal(fixture_value("advise", "ignored_count"), 0);
  fixture_free(ptr, 1000, NULL);
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  assert_int_equal(software()->calls("hipMemAdvise"), 5);
}

static void means_the_device_of_the_resource(void **state)
{
  (void)state;
  managed_means_the_device_of_the_resource(&adaptor);
}

static void leaves_other_memory_alone(void **state)
{
  (void)state;
  managed_leaves_other_memory_alone(&adaptor);
}

/* ---- Blocks that are freed ---- */

/* Resources that keep what is freed: the next block at its place is advised nothing, and may be another resource's. */
static const char *const kept[] = {
    "'blocks': {'type': 'fixed_size', 'upstream': 'memory', 'block_size': '1MiB', 'blocks_per_chunk': 1}",
    "'blocks': {'type': 'pool', 'upstream': 'memory'}",
    "'counted': {'type': 'pool', 'upstream': 'memory'}, 'blocks': {'type': 'statistics', 'upstream': 'counted'}",
};

static void assert_not_advised(const void *ptr)
{
  assert_int_equal(managed_ask(ptr, MANAGED_READ_MOSTLY), 0);
  assert_int_equal(managed_ask(ptr, MANAGED_PREFERRED_LOCATION), MANAGED_NOWHERE);
  assert_int_equal(managed_ask(ptr, MANAGED_COARSE_GRAIN), 0);
  assert_int_equal(managed_ask(ptr, MANAGED_ACCESSED_BY), MANAGED_NOWHERE);
}

static void advise_and_free(struct hipmm_resource *blocks)
{
  void *first = fixture_allocate(MIB, NULL), *second = NULL;
  assert_int_equal(managed_ask(first, MANAGED_PREFERRED_LOCATION), 0);
  assert_int_equal(managed_ask(first, MANAGED_READ_MOSTLY), 1);
  assert_ok(hipmm_set("devices/0/advise/accessed_by", "[\"0\"]")); /* what is withdrawn is what was said */
  assert_ok(hipmm_set("devices/0/advise/read_mostly", "false"));
  assert_status(hipmm_deallocate(NULL, first, MIB - 1, NULL), HIPMM_E_SIZE);
  assert_int_equal(managed_ask(first, MANAGED_PREFERRED_LOCATION), 0);
  fixture_free(first, 0, NULL);
  assert_ok(hipmm_allocate(blocks, MIB, NULL, &second));
  assert_ptr_equal(second, first);
  assert_not_advised(second);
  assert_status(hipmm_deallocate(NULL, (char *)second + 256, MIB, NULL), HIPMM_E_POINTER);
  assert_ok(hipmm_deallocate(blocks, second, MIB, NULL));
}

/* A block without a whole page: to withdraw its advice would be to withdraw that of its neighbours. Advice that comes and
 * goes is withdrawn once. */
static void withdraws_each_advice_once_and_of_whole_pages(void **state)
{
  (void)state;
  needs_software();
  fixture_start("'stack': [{'type': 'advise', 'read_mostly': true}, 'pool', 'managed']");
  char *first = fixture_allocate(256, NULL), *second = fixture_allocate(3840, NULL);
  char *page = fixture_allocate(MIB, NULL);
  software()->reset_calls();
  fixture_free(first, 256, NULL);
  fixture_free(second, 3840, NULL);
  assert_int_equal(software()->calls("hipMemAdvise"), 0);
  for (int i = 0; i < 3; i++) {
    assert_ok(hipmm_set("devices/0/advise/accessed_by", i % 2 ? "[]" : "[\"cpu\"]"));
    assert_ok(hipmm_set("devices/0/advise/read_mostly", i % 2 ? "true" : "false"));
  }
  fixture_free(page, MIB, NULL);
  assert_int_equal(software()->calls("hipMemAdvise"), 2);
  assert_not_advised(page);
}

static void withdraws_advice_where_memory_is_kept(void **state)
{
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    char graph[500];
    snprintf(graph, sizeof graph,
             "'resources': {'memory': {'type': 'managed'}, %s, 'advise': {'type': 'advise', 'upstream': 'blocks', "
             "'read_mostly': true, 'preferred_location': 'device', 'accessed_by': ['cpu', '1'], 'coarse_grain': "
             "true}}, 'devices': {'default': 'advise'}",
             kept[i]);
    fixture_start(graph);
    advise_and_free(fixture_resource("blocks"));
    assert_ok(hipmm_finalize());
  }
  fixture_start(all); /* for the teardown */
}

/* Neither is anything withdrawn, at a call of HIP's for each piece of advice, from what goes back to the runtime. */
static void withdraws_nothing_from_what_goes_back(void **state)
{
  (void)state;
  needs_software();
  fixture_start(all);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  assert_int_equal(software()->calls("hipMemAdvise"), 5);
}

/* ---- Options ---- */

struct wrong_case {
  const char *options, *message;
};

static const struct wrong_case wrong[] = {
    {"'preferred_location': 'gpu'", "/stack/0/preferred_location: \"gpu\" is not a place; write \"device\", \"cpu\""},
    {"'preferred_location': ''", "\"\" is not a place"},
    {"'preferred_location': '2'", "/stack/0/preferred_location: advise: there is no device 2; there are 2"},
    {"'preferred_location': '-1'", "\"-1\" is not a place"},
    {"'preferred_location': '01'", "\"01\" is not a place"},
    {"'preferred_location': '99999999999'", "is not a place"},
    {"'preferred_location': 1", "/stack/0/preferred_location: 1 is not"},
    {"'accessed_by': 'cpu'", "/stack/0/accessed_by"},
    {"'accessed_by': ['cpu', 'device', 'you']", "/stack/0/accessed_by/2: \"you\" is not a place"},
    {"'accessed_by': ['cpu', '7']", "/stack/0/accessed_by/1: advise: there is no device 7"},
    {"'read_mostly': 'yes'", "/stack/0/read_mostly"},
    {"'read_mosty': true", "did you mean \"read_mostly\"?"},
};

static void refuses_wrong_options(void **state)
{
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char graph[200];
    for (int is_on = 0; is_on < 2; is_on++) {
      snprintf(graph, sizeof graph, "'stack': [{'type': 'advise', %s}, 'device']", wrong[i].options);
      assert_status(fixture_try(is_on ? "" : "'managed_memory': false", graph), HIPMM_E_CONFIG);
      assert_message(wrong[i].message);
      hipmm_finalize();
    }
  }
}

static void can_be_told_otherwise(void **state)
{
  (void)state;
  needs_software();
  fixture_start(all);
  assert_ok(hipmm_set("devices/0/advise/preferred_location", "cpu"));
  assert_ok(hipmm_set("devices/0/advise/coarse_grain", NULL));
  assert_ok(hipmm_set("devices/0/advise/accessed_by", "[\"0\"]"));
  void *ptr = fixture_allocate(1000, NULL);
  assert_int_equal(managed_ask(ptr, MANAGED_PREFERRED_LOCATION), -1);
  assert_int_equal(managed_ask(ptr, MANAGED_COARSE_GRAIN), 0);
  assert_int_equal(managed_ask(ptr, MANAGED_ACCESSED_BY), 0);
  assert_int_equal(managed_ask(ptr, MANAGED_READ_MOSTLY), 1);
  fixture_free(ptr, 1000, NULL);
  assert_status(hipmm_set("devices/0/advise/preferred_location", "mars"), HIPMM_E_CONFIG);
  assert_message("\"mars\" is not a place");
  assert_status(hipmm_set("devices/0/advise/preferred_location", "2"), HIPMM_E_CONFIG);
  assert_message("there is no device 2");
  fixture_fail_call("hipGetDeviceCount", 1, 999);
  assert_status(hipmm_set("devices/0/advise/preferred_location", "1"), HIPMM_E_HIP);
  assert_message("hipGetDeviceCount");
  ptr = fixture_allocate(1000, NULL);
  assert_int_equal(managed_ask(ptr, MANAGED_PREFERRED_LOCATION), -1); /* as it was */
  fixture_free(ptr, 1000, NULL);
}

/* ---- Failures ---- */

static void gives_back_what_could_not_be_advised(void **state)
{
  void *ptr = NULL;
  (void)state;
  needs_software();
  fixture_start(all);
  for (uint64_t nth = 1; nth <= 5; nth++) {
    fixture_fail_call("hipMemAdvise", nth, 999);
    assert_status(hipmm_allocate(NULL, 5000, NULL, &ptr), HIPMM_E_HIP);
    assert_message("advise: hipMemAdvise of 4.88 KiB");
    assert_null(ptr);
    assert_int_equal(fixture_held_bytes(), 0);
  }
  fixture_fail_call("hipMemAdvise", 1, HIPMM_HIP_ERROR_INVALID_VALUE);
  ptr = fixture_allocate(5000, NULL);
  assert_int_equal(fixture_value("advise", "ignored_count"), 1);
  assert_int_equal(managed_ask(ptr, MANAGED_READ_MOSTLY), 1); /* the rest is said all the same */
  fixture_free(ptr, 5000, NULL);
}

static void passes_failures_of_the_upstream_on(void **state)
{
  (void)state;
  managed_passes_failures_of_the_upstream_on(&adaptor);
}

static void passes_frees_on(void **state)
{
  (void)state;
  behaviour_frees_pass_through("{'type': 'advise', 'read_mostly': true}, 'pool', 'managed'");
}

/* ---- Random programs, threads, failing calls ---- */

static void assert_was_busy(void)
{
  assert_in_range(fixture_value("advise", "advised_count"), 500, 1500);
}

static void agrees_with_a_model(void **state)
{
  (void)state;
  stream_program_run_over_pool("'stack': [{'type': 'advise', 'accessed_by': ['cpu']}, 'pool', 'managed']", 1500,
                               assert_was_busy);
}

enum { THREADS = 4 };

/* While the advice changes. */
static void serves_threads(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'advise', 'read_mostly': true}, 'pool', 'managed']");
  fixture_start_threads(THREADS, managed_allocate_and_free);
  for (int i = 0; i < 50; i++) assert_ok(hipmm_set("devices/0/advise/coarse_grain", i % 2 ? "true" : "false"));
  fixture_join_threads();
  assert_in_range(fixture_value("advise", "advised_count"), THREADS * MANAGED_ROUNDS, 2 * THREADS * MANAGED_ROUNDS);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  assert_in_range(fixture_fail_each_call("'scheduler': 'stepped'", all, managed_allocate_and_free_whatever_fails), 20,
                  1000);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(tells_what_the_options_say),
      TEST(counts_what_it_said),
      TEST(means_the_device_of_the_resource),
      TEST(leaves_other_memory_alone),
      TEST(withdraws_each_advice_once_and_of_whole_pages),
      TEST(withdraws_advice_where_memory_is_kept),
      TEST(withdraws_nothing_from_what_goes_back),
      TEST(refuses_wrong_options),
      TEST(can_be_told_otherwise),
      TEST(gives_back_what_could_not_be_advised),
      TEST(passes_failures_of_the_upstream_on),
      TEST(passes_frees_on),
      TEST(agrees_with_a_model),
      TEST(serves_threads),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
