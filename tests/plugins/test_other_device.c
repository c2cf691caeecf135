/* SPDX-License-Identifier: MIT */
/* Tests of streams of another device: whatever orders work by streams refuses them, for what no event of its own device
 * could tell when it may use the memory again, and goes on as before. */
#include "../support/fixture.h"

#include <stdio.h>

static const char *const stacks[] = {
    "{'type': 'pool', 'growth': 'mapped'}",
    "{'type': 'pool', 'growth': 'segments'}",
    "{'type': 'pool', 'growth': 'mapped', 'record': 'on_free'}",
    "'arena'",
    "'binning', 'pool'",
    "{'type': 'binning', 'bins': [{'size': '1MiB'}]}",
    "'fixed_size'",
    "'monotonic'",
    "'tracking', {'type': 'pool', 'growth': 'mapped'}",
    "{'type': 'guard', 'quarantine_size': 0}, 'arena'",
    "'guard', {'type': 'pool', 'growth': 'mapped'}",
};

enum { SMALL = 1000, LARGE = 1 << 20 };

static hipmm_stream_t stream_of(int device)
{
  hipmm_stream_t stream = NULL;
  assert_int_equal(fixture_hip()->SetDevice(device), 0);
  assert_int_equal(fixture_hip()->StreamCreateWithFlags(&stream, 0), 0);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  return stream;
}

static void refuses(size_t bytes, hipmm_stream_t own, hipmm_stream_t other)
{
  void *ptr = NULL;
  assert_status(hipmm_allocate(NULL, bytes, other, &ptr), HIPMM_E_ARGUMENT);
  assert_message("is of device 1, not of device 0");
  assert_null(ptr);
  ptr = fixture_allocate(bytes, own);
  assert_status(hipmm_deallocate(NULL, ptr, bytes, other), HIPMM_E_ARGUMENT);
  assert_message("is of device 1, not of device 0");
  assert_status(hipmm_deallocate(NULL, ptr, bytes, other), HIPMM_E_ARGUMENT); /* nor the second time */
  fixture_free(ptr, bytes, own);
  assert_status(hipmm_deallocate(NULL, ptr, bytes, own), HIPMM_E_POINTER);
}

/* The handle may have named a stream of this device before, which was destroyed without a word. */
static void refuses_in_the_place_of_its_own(size_t bytes)
{
  void *ptr = NULL;
  hipmm_stream_t own = stream_of(0);
  fixture_free(fixture_allocate(bytes, own), bytes, own);
  fixture_drop_stream(own);
  hipmm_stream_t other = stream_of(1);
  if (on_software()) assert_ptr_equal(other, own);
  if (other == own) assert_status(hipmm_allocate(NULL, bytes, other, &ptr), HIPMM_E_ARGUMENT);
  fixture_drop_stream(other);
}

static void refuses_streams_of_another_device(void **state)
{
  char graph[200];
  snprintf(graph, sizeof graph, "'stack': [%s, 'device']", (const char *)*state);
  fixture_start(graph);
  hipmm_stream_t own = stream_of(0), other = stream_of(1);
  for (int round = 0; round < 3; round++) {
    refuses(SMALL, own, other);
    refuses(LARGE, own, other);
    refuses(SMALL, NULL, other);
  }
  refuses_in_the_place_of_its_own(SMALL);
  refuses_in_the_place_of_its_own(LARGE);
  assert_int_equal(fixture_hip()->StreamDestroy(own), 0);
  assert_int_equal(fixture_hip()->StreamDestroy(other), 0);
}

static int setup(void **state)
{
  void *none = NULL;
  (void)state; /* the row's stack, which stays */
  return fixture_setup(&none);
}

static int teardown(void **state)
{
  void *none = NULL;
  (void)state;
  return fixture_teardown(&none);
}

int main(void)
{
  struct CMUnitTest tests[sizeof stacks / sizeof *stacks];
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
    tests[i] = (struct CMUnitTest){stacks[i], refuses_streams_of_another_device, setup, teardown,
                                   (void *)(uintptr_t)stacks[i]};
  return cmocka_run_group_tests_name("streams of another device", tests, NULL, NULL);
}
