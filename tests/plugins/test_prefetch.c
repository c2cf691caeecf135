/* SPDX-License-Identifier: MIT */
/* Tests of prefetch: that managed memory is brought to the device in the order of its stream, that other memory is left
 * alone, and that nothing is lost when HIP refuses. */
#include "managed.h"
#include "model.h"

static const char managed[] = "'stack': ['prefetch', 'managed']";

/* ---- What is prefetched ---- */

static void brings_managed_memory_to_the_device(void **state)
{
  (void)state;
  needs_software();
  rig_start(managed);
  void *ptr = rig_allocate(10000, NULL);
  assert_int_equal(software()->calls("hipMemPrefetchAsync"), 1);
  assert_int_equal(managed_ask(ptr, MANAGED_LAST_PREFETCH), 0);
  assert_int_equal(rig_value("prefetch", "is_on"), 1);
  assert_int_equal(rig_value("prefetch", "prefetched_count"), 1);
  assert_int_equal(rig_value("prefetch", "prefetched_bytes"), 10000);
  assert_int_equal(rig_value("prefetch", "ignored_count"), 0);
  rig_free(ptr, 10000, NULL);
  assert_int_equal(software()->calls("hipMemPrefetchAsync"), 1);
}

/* Not to the one that happens to be current, which stays so. */
static void brings_it_to_the_device_of_the_resource(void **state)
{
  struct hipmm_resource *resource;
  void *ptr = NULL;
  int current = -1;
  (void)state;
  needs_software();
  rig_start(managed);
  assert_ok(hipmm_get_device_resource(1, &resource));
  assert_ok(hipmm_allocate(resource, 5000, NULL, &ptr));
  assert_int_equal(managed_ask(ptr, MANAGED_LAST_PREFETCH), 1);
  assert_int_equal(rig_hip()->GetDevice(&current), 0);
  assert_int_equal(current, 0);
  assert_ok(hipmm_deallocate(resource, ptr, 5000, NULL));
  hipmm_resource_release(resource);
}

/* The prefetch is work of that stream: it has not run before the stream does. */
static void goes_in_the_order_of_the_stream(void **state)
{
  (void)state;
  needs_software();
  rig_start_with("'scheduler': 'stepped'", managed);
  hipStream_t stream = rig_stream();
  void *ptr = rig_allocate(5000, stream);
  assert_int_equal(software()->pending(), 1);
  assert_int_equal(rig_hip()->StreamSynchronize(stream), 0);
  assert_int_equal(software()->pending(), 0);
  rig_free(ptr, 5000, stream);
  rig_drop_stream(stream);
}

static void has_nothing_to_do_for_no_bytes(void **state)
{
  (void)state;
  needs_software();
  rig_start(managed);
  assert_null(rig_allocate(0, NULL));
  rig_free(NULL, 0, NULL);
  assert_int_equal(software()->calls("hipMemPrefetchAsync"), 0);
}

struct other_case {
  const char *runtime_options, *graph;
  int is_on, ignored; /* of one allocation */
};

static const struct other_case others[] = {
    {"", "'stack': ['prefetch', 'device']", 1, 1},
    {"", "'stack': ['prefetch', 'pinned']", 1, 1},
    {"", "'stack': ['prefetch', 'pool', 'device']", 1, 1},
    {"", "'stack': ['prefetch', 'pool', 'managed']", 1, 0},
    {"'managed_memory': false", "'stack': ['prefetch', 'device']", 0, 0},
};

static void leaves_other_memory_alone(void **state)
{
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    software()->reset();
    rig_start_with(others[i].runtime_options, others[i].graph);
    void *ptr = rig_allocate(3000, NULL);
    assert_int_equal(rig_value("prefetch", "is_on"), others[i].is_on);
    assert_int_equal(rig_value("prefetch", "ignored_count"), others[i].ignored);
    assert_int_equal(rig_value("prefetch", "prefetched_count"), others[i].is_on - others[i].ignored);
    assert_int_equal(software()->calls("hipMemPrefetchAsync"), others[i].is_on);
    assert_int_equal(rig_hip()->GetLastError(), 0); /* the refusal is not left for the application to find */
    rig_free(ptr, 3000, NULL);
    assert_ok(hipmm_finalize());
  }
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
  rig_start(managed);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig_fail_call("hipMemPrefetchAsync", 1, cases[i].code);
    assert_status(hipmm_allocate(NULL, 5000, NULL, &ptr), cases[i].status);
    assert_message("prefetch: hipMemPrefetchAsync of 4.88 KiB");
    assert_null(ptr);
    assert_int_equal(rig_held_bytes(), 0);
  }
  rig_fail_call("hipMemPrefetchAsync", 1, HIPMM_HIP_ERROR_INVALID_VALUE);
  ptr = rig_allocate(5000, NULL); /* as if it were not managed */
  assert_int_equal(rig_value("prefetch", "ignored_count"), 1);
  rig_free(ptr, 5000, NULL);
}

static void passes_failures_of_the_upstream_on(void **state)
{
  void *ptr = NULL;
  (void)state;
  needs_software();
  rig_start(managed);
  assert_status(hipmm_allocate(NULL, SIZE_MAX, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_allocate_aligned(NULL, 1000, 4096, NULL, &ptr), HIPMM_E_ARGUMENT);
  rig_fail_call("hipMallocManaged", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_null(ptr);
  assert_int_equal(software()->calls("hipMemPrefetchAsync"), 0);
}

static void passes_frees_on(void **state)
{
  int local;
  (void)state;
  rig_start("'stack': ['statistics', 'prefetch', 'pool', 'managed']");
  char *ptr = rig_allocate(3000, NULL), *aligned = NULL;
  assert_status(hipmm_deallocate(NULL, ptr, 2999, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, ptr + 256, 3000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, &local, 3000, NULL), HIPMM_E_POINTER);
  assert_ok(hipmm_allocate_aligned(NULL, 5000, 8192, NULL, (void **)&aligned));
  assert_int_equal((uintptr_t)aligned % 8192, 0);
  assert_ok(hipmm_deallocate_aligned(NULL, aligned, 5000, 8192, NULL));
  rig_free(ptr, 0, NULL); /* statistics asks below for its size */
  assert_status(hipmm_deallocate(NULL, ptr, 3000, NULL), HIPMM_E_POINTER);
  assert_int_equal(rig_value("statistics", "current_bytes"), 0);
}

static void refuses_options_that_it_has_not(void **state)
{
  (void)state;
  assert_status(rig_try("", "'stack': [{'type': 'prefetch', 'device': 1}, 'managed']"), HIPMM_E_CONFIG);
  assert_message("/stack/0/device: unknown option \"device\" of prefetch");
  assert_status(rig_try("", "'stack': ['prefetch']"), HIPMM_E_CONFIG);
  assert_message("prefetch needs an upstream");
}

static void is_not_made_on_a_device_that_cannot_be_asked(void **state)
{
  (void)state;
  const char fails[] = "'fail': ['hipDeviceGetAttribute:2:hipErrorUnknown']"; /* the source asks first */
  assert_status(rig_try(fails, managed), HIPMM_E_HIP);
  assert_message("prefetch: hipDeviceGetAttribute");
}

/* ---- Random programs, threads, failing calls ---- */

static void agrees_with_a_model(void **state)
{
  (void)state;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    rig_start_with(seed % 2 ? "'scheduler': 'stepped', 'seed': 3" : "", "'stack': ['prefetch', 'pool', 'managed']");
    struct model model = {.seed = seed,
                          .steps = 1500,
                          .n_streams = 4,
                          .most_live = 100,
                          .most_bytes = 65536,
                          .destroys_streams = true,
                          .ends_with_no_live = true};
    model_run(&model);
    assert_in_range(rig_value("prefetch", "prefetched_count"), 500, 1500);
    assert_int_equal(rig_value("pool", "live_bytes"), 0);
    assert_ok(hipmm_finalize());
  }
}

enum { THREADS = 4, ROUNDS = 500 };

static void allocate_and_free(int *failures)
{
  for (size_t i = 0; i < ROUNDS; i++) {
    void *ptr = NULL;
    *failures += hipmm_allocate(NULL, 1000 + i, NULL, &ptr) != HIPMM_OK;
    *failures += hipmm_deallocate(NULL, ptr, i % 2 ? 1000 + i : 0, NULL) != HIPMM_OK;
  }
}

static void serves_threads(void **state)
{
  (void)state;
  rig_start("'stack': ['prefetch', 'pool', 'managed']");
  rig_run_threads(THREADS, allocate_and_free);
  assert_int_equal(rig_value("prefetch", "prefetched_count"), THREADS * ROUNDS);
}

static void work(void)
{
  for (int i = 0; i < 3; i++) {
    void *ptr = NULL;
    if (hipmm_allocate(NULL, 5000, NULL, &ptr)) continue;
    if (hipmm_deallocate(NULL, ptr, 5000, NULL) && hipmm_deallocate(NULL, ptr, 0, NULL))
      print_error("a free failed twice\n");
  }
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  assert_in_range(rig_fail_each_call("'scheduler': 'stepped'", managed, work), 10, 1000);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(brings_managed_memory_to_the_device),
      TEST(brings_it_to_the_device_of_the_resource),
      TEST(goes_in_the_order_of_the_stream),
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
