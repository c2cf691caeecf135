/* SPDX-License-Identifier: MIT */
/* test_call.c: counts of calls, failures on schedule, the last error of a thread, names of errors. */
#include "device.h"

static void every_call_is_counted_by_name(void **state)
{
  (void)state;
  int device;
  for (int i = 0; i < 3; i++) assert_ok(hipGetDevice(&device));
  hipFree(allocate(100));
  hipFree((void *)1);
  assert_int_equal(hipmm_software_calls("hipGetDevice"), 3);
  assert_int_equal(hipmm_software_calls("hipMalloc"), 1);
  assert_int_equal(hipmm_software_calls("hipFree"), 2);
  assert_int_equal(hipmm_software_calls("hipNoSuchThing"), 0);
  assert_int_equal(hipmm_software_calls(NULL), 0);
  hipmm_software_reset_calls();
  assert_int_equal(hipmm_software_calls("hipMalloc"), 0);
}

static void the_counts_can_be_walked(void **state)
{
  (void)state;
  const char *name;
  uint64_t count, total = 0;
  hipFree(allocate(1));
  size_t index = 0;
  while ((name = hipmm_software_call(index++, &count))) {
    assert_int_equal(count, hipmm_software_calls(name));
    total += count;
  }
  assert_int_equal(index, SOFTWARE_N_CALLS + 1);
  assert_int_equal(total, 2);
  assert_null(hipmm_software_call((size_t)1 << 40, NULL));
}

static void the_nth_call_fails_once(void **state)
{
  (void)state;
  void *memory[4] = {NULL};
  assert_true(hipmm_software_fail("hipMalloc", 3, 0));
  assert_ok(hipMalloc(&memory[0], 10));
  assert_ok(hipMalloc(&memory[1], 10));
  assert_hip(hipMalloc(&memory[2], 10), hipErrorOutOfMemory);
  assert_null(memory[2]);
  assert_ok(hipMalloc(&memory[3], 10));
  for (int i = 0; i < 4; i++) assert_ok(hipFree(memory[i]));
}

static void a_failure_has_the_code_that_was_asked_for(void **state)
{
  (void)state;
  hipEvent_t event;
  assert_true(hipmm_software_fail("hipEventCreate", 1, 0));
  assert_hip(hipEventCreate(&event), hipErrorUnknown);
  assert_true(hipmm_software_fail("hipDeviceSynchronize", 1, hipErrorNotReady));
  assert_hip(hipDeviceSynchronize(), hipErrorNotReady);
  assert_ok(hipDeviceSynchronize());
}

static void several_failures_of_one_call_are_kept_apart(void **state)
{
  (void)state;
  assert_true(hipmm_software_fail("hipDeviceSynchronize", 2, hipErrorUnknown));
  assert_true(hipmm_software_fail("hipDeviceSynchronize", 3, hipErrorNotReady));
  assert_ok(hipDeviceSynchronize());
  assert_hip(hipDeviceSynchronize(), hipErrorUnknown);
  assert_hip(hipDeviceSynchronize(), hipErrorNotReady);
  assert_true(hipmm_software_fail("hipDeviceSynchronize", 1, 0));
  hipmm_software_fail_none();
  assert_ok(hipDeviceSynchronize());
}

static void failures_that_cannot_happen_are_refused(void **state)
{
  (void)state;
  assert_false(hipmm_software_fail("hipMalloc", 0, 0));
  assert_false(hipmm_software_fail("hipNoSuchThing", 1, 0));
  assert_false(hipmm_software_fail(NULL, 1, 0));
}

static void a_failing_free_frees_nothing(void **state)
{
  (void)state;
  char *memory = allocate(100);
  assert_true(hipmm_software_fail("hipFree", 1, 0));
  assert_hip(hipFree(memory), hipErrorUnknown);
  assert_ok(hipMemset(memory, 1, 100));
  assert_ok(hipFree(memory));
}

static void the_last_error_stays_until_it_is_taken(void **state)
{
  (void)state;
  void *memory;
  assert_hip(hipMalloc(&memory, SIZE_MAX), hipErrorOutOfMemory);
  hipFree(allocate(1));
  assert_hip(hipPeekAtLastError(), hipErrorOutOfMemory);
  assert_true(hipmm_software_fail("hipGetLastError", 1, hipErrorNotReady));
  assert_hip(hipGetLastError(), hipErrorNotReady); /* and the last error is not taken */
  assert_hip(hipGetLastError(), hipErrorOutOfMemory);
  assert_hip(hipGetLastError(), hipSuccess);
}

static void *last_error_of_thread(void *argument)
{
  *(hipError_t *)argument = hipGetLastError();
  return NULL;
}

static void the_last_error_belongs_to_its_thread(void **state)
{
  (void)state;
  pthread_t thread;
  hipError_t theirs = hipErrorUnknown;
  assert_hip(hipSetDevice(99), hipErrorInvalidDevice);
  assert_int_equal(pthread_create(&thread, NULL, last_error_of_thread, &theirs), 0);
  pthread_join(thread, NULL);
  assert_hip(theirs, hipSuccess);
  assert_hip(hipGetLastError(), hipErrorInvalidDevice);
}

static void errors_have_names_and_meanings(void **state)
{
  (void)state;
  assert_string_equal(hipGetErrorName(hipSuccess), "hipSuccess");
  assert_string_equal(hipGetErrorName(hipErrorOutOfMemory), "hipErrorOutOfMemory");
  assert_string_equal(hipGetErrorName(hipErrorIllegalAddress), "hipErrorIllegalAddress");
  assert_string_equal(hipGetErrorString(hipErrorOutOfMemory), "out of memory");
  assert_string_equal(hipGetErrorName((hipError_t)31337), "hipErrorUnknown");
  assert_string_equal(hipGetErrorString((hipError_t)31337), "unknown error");
}

static void codes_are_read_by_name_and_by_number(void **state)
{
  (void)state;
  hipError_t error;
  assert_true(software_error_parse("hipErrorNotReady", &error));
  assert_hip(error, hipErrorNotReady);
  assert_true(software_error_parse("700", &error));
  assert_hip(error, hipErrorIllegalAddress);
  const char *const wrong[] = {"", "0", "-1", "hipErrorNo", "70x", "99999999999999999999", "HIPERRORNOTREADY"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(software_error_parse(wrong[i], &error));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"every call is counted by name", every_call_is_counted_by_name, start_threads, finish, NULL},
      {"the counts can be walked", the_counts_can_be_walked, start_threads, finish, NULL},
      {"the nth call fails once", the_nth_call_fails_once, start_threads, finish, NULL},
      {"a failure has the code that was asked for", a_failure_has_the_code_that_was_asked_for, start_threads, finish,
       NULL},
      {"several failures of one call are kept apart", several_failures_of_one_call_are_kept_apart, start_threads,
       finish, NULL},
      {"failures that cannot happen are refused", failures_that_cannot_happen_are_refused, start_threads, finish, NULL},
      {"a failing free frees nothing", a_failing_free_frees_nothing, start_threads, finish, NULL},
      {"the last error stays until it is taken", the_last_error_stays_until_it_is_taken, start_threads, finish, NULL},
      {"the last error belongs to its thread", the_last_error_belongs_to_its_thread, start_threads, finish, NULL},
      {"errors have names and meanings", errors_have_names_and_meanings, start_threads, finish, NULL},
      {"codes are read by name and by number", codes_are_read_by_name_and_by_number, start_threads, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: calls", tests, NULL, NULL);
}
