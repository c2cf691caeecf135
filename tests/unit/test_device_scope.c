/* SPDX-License-Identifier: MIT */
/* Tests of core/stream/device_info.c: scopes that nest and restore, and what the runtime tells. */
#include "../support/both_schedulers.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

static int current(void)
{
  int device = -1;
  assert_ok(hipmm_device_current(&device));
  return device;
}

static void scopes_nest_and_restore(void **state)
{
  int outer = -1, inner = -1, innermost = -1;
  both_start(state, "'stack': ['device']");
  needs_devices(2);
  assert_ok(hipmm_device_enter(1, &outer));
  assert_int_equal(current(), 1);
  assert_ok(hipmm_device_enter(0, &inner));
  assert_int_equal(current(), 0);
  assert_ok(hipmm_device_enter(0, &innermost)); /* is so already */
  assert_ok(hipmm_device_set(1));               /* what happens inside is undone */
  assert_ok(hipmm_device_leave(innermost));
  assert_int_equal(current(), 0);
  assert_ok(hipmm_device_leave(inner));
  assert_int_equal(current(), 1);
  assert_ok(hipmm_device_leave(outer));
  assert_int_equal(current(), 0);
}

static void *enter_in_thread(void *argument)
{
  int previous = -1;
  bool good = !hipmm_device_set(*(int *)argument) && !hipmm_device_enter(1, &previous) &&
              previous == *(int *)argument && !hipmm_device_leave(previous);
  return good ? argument : NULL;
}

static void each_thread_has_its_own(void **state)
{
  pthread_t thread;
  int device = 1;
  void *good = NULL;
  both_start(state, "'stack': ['device']");
  needs_devices(2);
  assert_int_equal(pthread_create(&thread, NULL, enter_in_thread, &device), 0);
  pthread_join(thread, &good);
  assert_non_null(good);
  assert_int_equal(current(), 0);
}

static void refuses_devices_that_do_not_exist(void **state)
{
  static const int wrong[] = {-1, INT_MIN, 64, INT_MAX};
  int previous = 7;
  size_t bytes = 7;
  char name[8] = "same";
  both_start(state, "'stack': ['device']");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(hipmm_device_set(wrong[i]), HIPMM_E_NO_DEVICE);
    assert_message(" does not exist: runtime ");
    assert_status(hipmm_device_enter(wrong[i], &previous), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_device_leave(wrong[i]), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_device_memory(wrong[i], &bytes, &bytes), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_device_percent_of_free_memory(wrong[i], 50, &bytes), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_device_name(wrong[i], sizeof name, name), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_device_attribute(wrong[i], 9, &previous), HIPMM_E_NO_DEVICE);
  }
  assert_status(hipmm_device_enter(0, NULL), HIPMM_E_ARGUMENT);
  assert_int_equal(current(), 0);
  assert_int_equal(previous, 7);
  assert_int_equal(bytes, 7);
  assert_string_equal(name, "same");
}

static void a_failure_changes_nothing(void **state)
{
  int previous = 7;
  size_t bytes = 7;
  needs_software();
  both_start(state, "'stack': ['device']");
  fixture_fail_call("hipSetDevice", 1, 0);
  assert_status(hipmm_device_enter(1, &previous), HIPMM_E_HIP);
  fixture_fail_call("hipGetDevice", 1, 0);
  assert_status(hipmm_device_enter(1, &previous), HIPMM_E_HIP);
  assert_message("hipGetDevice failed");
  fixture_fail_call("hipSetDevice", 1, 0);
  assert_status(hipmm_device_set(1), HIPMM_E_HIP);
  fixture_fail_call("hipMemGetInfo", 1, 0);
  assert_status(hipmm_device_memory(1, &bytes, NULL), HIPMM_E_HIP);
  fixture_fail_call("hipMemGetInfo", 1, 0);
  assert_status(hipmm_device_percent_of_free_memory(1, 10, &bytes), HIPMM_E_HIP);
  assert_int_equal(current(), 0);
  assert_int_equal(previous, 7);
  assert_int_equal(bytes, 7);
}

static void counts_free_and_total_memory(void **state)
{
  size_t free_bytes = 0, total_bytes = 0, after = 0, other = 0;
  struct hipmm_resource *resource;
  void *ptr;
  needs_software();
  both_start(state, "'stack': ['device']");
  assert_ok(hipmm_device_memory(1, &free_bytes, &total_bytes));
  assert_int_equal(total_bytes, 256 * MIB);
  assert_int_equal(free_bytes, 256 * MIB);
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  assert_ok(hipmm_allocate(resource, 16 * MIB, NULL, &ptr));
  assert_ok(hipmm_device_memory(1, &after, NULL));
  assert_int_equal(after, 240 * MIB);
  assert_ok(hipmm_device_memory(0, &other, NULL));
  assert_int_equal(other, 256 * MIB);
  assert_ok(hipmm_device_memory(1, NULL, &other));
  assert_ok(hipmm_device_memory(1, NULL, NULL));
  assert_ok(hipmm_deallocate(resource, ptr, 16 * MIB, NULL));
  hipmm_resource_release(resource);
  assert_int_equal(current(), 0);
}

static void takes_per_cents_of_what_is_free(void **state)
{
  size_t bytes = 0;
  needs_software();
  both_start(state, "'stack': ['device']");
  for (int percent = 0; percent <= 100; percent++) {
    assert_ok(hipmm_device_percent_of_free_memory(0, percent, &bytes));
    assert_int_equal(bytes, 256 * MIB * (size_t)percent / 100 / 256 * 256);
  }
  void *ptr = fixture_allocate(10 * MIB, NULL);
  assert_ok(hipmm_device_percent_of_free_memory(0, 33, &bytes));
  assert_int_equal(bytes, 246 * MIB * 33 / 100 / 256 * 256);
  assert_status(hipmm_device_percent_of_free_memory(0, 101, &bytes), HIPMM_E_ARGUMENT);
  assert_message("101% is not a part of the memory");
  assert_status(hipmm_device_percent_of_free_memory(0, -1, &bytes), HIPMM_E_ARGUMENT);
  assert_status(hipmm_device_percent_of_free_memory(0, 50, NULL), HIPMM_E_ARGUMENT);
  fixture_free(ptr, 10 * MIB, NULL);
}

static void tells_names_attributes_and_versions(void **state)
{
  char name[100], part[4] = "";
  int value = -1;
  both_start(state, "'stack': ['device']");
  needs_devices(2);
  assert_ok(hipmm_device_name(1, sizeof name, name));
  assert_true(strlen(name) > 4);
  assert_ok(hipmm_device_name(1, sizeof part, part));
  assert_int_equal(strlen(part), 3);
  assert_memory_equal(part, name, 3);
  assert_status(hipmm_device_name(1, 0, part), HIPMM_E_ARGUMENT);
  assert_status(hipmm_device_name(1, 4, NULL), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_device_attribute(1, HIPMM_HIP_DEVICE_MANAGED_MEMORY, &value));
  assert_int_equal(value, 1);
  assert_status(hipmm_device_attribute(1, -5, &value), HIPMM_E_ARGUMENT);
  assert_message("-5 is no attribute that runtime ");
  assert_status(hipmm_device_attribute(1, 24, NULL), HIPMM_E_ARGUMENT);
  assert_int_equal(value, 1);
  assert_ok(hipmm_runtime_version(&value));
  assert_true(value > 0);
  assert_ok(hipmm_driver_version(&value));
  assert_true(value > 0);
  assert_status(hipmm_runtime_version(NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_driver_version(NULL), HIPMM_E_ARGUMENT);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(scopes_nest_and_restore),
      BOTH(each_thread_has_its_own),
      BOTH(refuses_devices_that_do_not_exist),
      BOTH(a_failure_changes_nothing),
      BOTH(counts_free_and_total_memory),
      BOTH(takes_per_cents_of_what_is_free),
      BOTH(tells_names_attributes_and_versions),
  };
  return cmocka_run_group_tests_name("device_scope", tests, NULL, NULL);
}
