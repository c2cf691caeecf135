/* SPDX-License-Identifier: MIT */
/* Tests of prefetch: that managed memory is brought to the device in the order of its stream, that other memory is left
 * alone, and that nothing is lost when HIP refuses. */
#include "../support/behaviour.h"
#include "../support/managed.h"
#include "../support/stream_program.h"

static const char managed[] = "'stack': ['prefetch', 'managed']";

static const struct managed_adaptor adaptor = {"prefetch", "'prefetch'", "hipMemPrefetchAsync", "prefetched_count",
                                               MANAGED_LAST_PREFETCH};

/* ---- What is prefetched ---- */

static void brings_managed_memory_to_the_device(void **state)
{
  (void)state;
  needs_software();
  fixture_start(managed);
  void *ptr = fixture_allocate(10000, NULL);
  assert_int_equal(software()->calls("hipMemPrefetchAsync"), 1);
  assert_int_equal(managed_ask(ptr, MANAGED_LAST_PREFETCH), 0);
  assert_int_equal(fixture_value("prefetch", "is_on"), 1);
  assert_int_equal(fixture_value("prefetch", "prefetched_count"), 1);
  assert_int_equal(fixture_value("prefetch", "prefetched_bytes"), 10000);
  assert_int_equal(fixture_value("prefetch", "ignored_count"), 0);
  fixture_free(ptr, 10000, NULL);
  assert_int_equal(software()->calls("hipMemPrefetchAsync"), 1);
}

/* Not to the one that happens to be current, which stays so. */
static void brings_it_to_the_device_of_the_resource(void **state)
{
  (void)state;
  managed_means_the_device_of_the_resource(&adaptor);
}

/* The prefetch is work of that stream: it has not run before the stream does. */
static void goes_in_the_order_of_the_stream(void **state)
{
  (void)state;
  needs_software();
  fixture_start_with("'scheduler': 'stepped'", managed);
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(5000, stream);
  assert_int_equal(software()->pending(), 1);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
  assert_int_equal(software()->pending(), 0);
  fixture_free(ptr, 5000, stream);
  fixture_drop_stream(stream);
}

/* That would end the capture. */
static void brings_nothing_on_a_captured_stream(void **state)
{
  (void)state;
  needs_software();
  fixture_start(managed);
  fixture_lend_hip()->StreamIsCapturing = fixture_says_captured;
  void *ptr = fixture_allocate(5000, NULL);
  fixture_take_hip_back();
  assert_int_equal(software()->calls("hipMemPrefetchAsync"), 0);
  assert_int_equal(fixture_value("prefetch", "prefetched_count"), 0);
  fixture_free(ptr, 5000, NULL);
}

static void has_nothing_to_do_for_no_bytes(void **state)
{
  (void)state;
  needs_software();
  fixture_start(managed);
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  assert_int_equal(software()->calls("hipMemPrefetchAsync"), 0);
}

static void leaves_other_memory_alone(void **state)
{
  (void)state;
  managed_leaves_other_memory_alone(&adaptor);
}

/* ---- Failures ---- */

static void gives_back_what_could_not_be_prefetched(void **state)
{
  static const struct {
    int code;
    enum hipmm_status status;
  } cases[] = {{999, HIPMM_E_HIP}, {HIPMM_HIP_ERROR_OUT_OF_MEMORY, HIPMM_E_OUT_OF_MEMORY}};
  void *ptr = NULL;
  (void)state;
  fixture_start(managed);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture_fail_call("hipMemPrefetchAsync", 1, cases[i].code);
    assert_status(hipmm_allocate(NULL, 5000, NULL, &ptr), cases[i].status);
    assert_message("prefetch: hipMemPrefetchAsync of 4.88 KiB");
    assert_null(ptr);
    assert_int_equal(fixture_held_bytes(), 0);
  }
  fixture_fail_call("hipMemPrefetchAsync", 1, HIPMM_HIP_ERROR_INVALID_VALUE);
  ptr = fixture_allocate(5000, NULL); /* as if it were not managed */
  assert_int_equal(fixture_value("prefetch", "ignored_count"), 1);
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
  behaviour_frees_pass_through("'prefetch', 'pool', 'managed'");
}

static void refuses_options_that_it_has_not(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'prefetch', 'device': 1}, 'managed']"), HIPMM_E_CONFIG);
  assert_message("/stack/0/device: unknown option \"device\" of prefetch");
  assert_status(fixture_try("", "'stack': ['prefetch']"), HIPMM_E_CONFIG);
  assert_message("prefetch needs an upstream");
}

static void is_not_made_on_a_device_that_cannot_be_asked(void **state)
{
  (void)state;
  const char fails[] = "'fail': ['hipDeviceGetAttribute:2:hipErrorUnknown']"; /* the source asks first */
  assert_status(fixture_try(fails, managed), HIPMM_E_HIP);
  assert_message("prefetch: hipDeviceGetAttribute");
}

/* ---- Random programs, threads, failing calls ---- */

static void assert_was_busy(void)
{
  assert_in_range(fixture_value("prefetch", "prefetched_count"), 500, 1500);
}

static void agrees_with_a_model(void **state)
{
  (void)state;
  stream_program_run_over_pool("'stack': ['prefetch', 'pool', 'managed']", 1500, assert_was_busy);
}

enum { THREADS = 4 };

static void serves_threads(void **state)
{
  (void)state;
  fixture_start("'stack': ['prefetch', 'pool', 'managed']");
  fixture_run_threads(THREADS, managed_allocate_and_free);
  assert_int_equal(fixture_value("prefetch", "prefetched_count"), THREADS * MANAGED_ROUNDS);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  assert_in_range(fixture_fail_each_call("'scheduler': 'stepped'", managed, managed_allocate_and_free_whatever_fails),
                  10, 1000);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(brings_managed_memory_to_the_device),
      TEST(brings_it_to_the_device_of_the_resource),
      TEST(goes_in_the_order_of_the_stream),
      TEST(brings_nothing_on_a_captured_stream),
      TEST(has_nothing_to_do_for_no_bytes),
      TEST(leaves_other_memory_alone),
      TEST(gives_back_what_could_not_be_prefetched),
      TEST(passes_failures_of_the_upstream_on),
      TEST(passes_frees_on),
      TEST(refuses_options_that_it_has_not),
      TEST(is_not_made_on_a_device_that_cannot_be_asked),
      TEST(agrees_with_a_model),
      TEST(serves_threads),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
