/* SPDX-License-Identifier: MIT */
/* test_streams.c: the streams that `hipmm replay`, `tune` and `bench` play on: handles with a meaning stay, all others become
 * streams of their own, and of a set that cannot be made nothing is left. */
#include "../../tools/command/cmd.h"
#include "../../tools/command/play/streams.h"
#include "../support/fixture.h"

#include <stdio.h>
#include <string.h>

static char said[300];

void say(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(said, sizeof said, format, arguments);
  va_end(arguments);
}

/* ---- Streams that are there ---- */

static int n_there, fails_at;
static struct hipmm_hip before;

static int create_and_count(hipmm_stream_t *stream, unsigned flags)
{
  if (fails_at && n_there + 1 == fails_at) return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
  int code = before.StreamCreateWithFlags(stream, flags);
  n_there += !code;
  return code;
}

static int destroy_and_count(hipmm_stream_t stream)
{
  int code = before.StreamDestroy(stream);
  n_there -= !code;
  return code;
}

static int setup(void **state)
{
  int status = fixture_setup(state);
  fixture_start("'stack': ['pool', 'device']");
  struct hipmm_hip *hip = (struct hipmm_hip *)(uintptr_t)fixture_hip();
  before = *hip;
  hip->StreamCreateWithFlags = create_and_count;
  hip->StreamDestroy = destroy_and_count;
  n_there = fails_at = 0;
  *said = '\0';
  return status;
}

static int teardown(void **state)
{
  *(struct hipmm_hip *)(uintptr_t)fixture_hip() = before;
  return fixture_teardown(state) || n_there;
}

/* ---- Tests ---- */

static const uint64_t handles[] = {0, 0x5550, 1, 0x5560, 2, 3};
enum { N = sizeof handles / sizeof *handles, OWN = 3 };

static void makes_a_stream_for_each_handle_without_a_meaning(void **state)
{
  hipmm_stream_t *streams;
  (void)state;
  assert_true(streams_make(handles, N, 0, &streams));
  assert_int_equal(n_there, OWN);
  for (size_t i = 0; i < N; i++) {
    if (handles[i] <= 2) assert_int_equal((uintptr_t)streams[i], handles[i]);
    void *ptr = fixture_allocate(1000, streams[i]);
    fixture_free(ptr, 1000, streams[i]);
  }
  streams_destroy(handles, N, 0, streams);
  assert_int_equal(n_there, 0);
  assert_true(streams_make(NULL, 2, 0, &streams));
  assert_int_equal(n_there, 2);
  streams_destroy(NULL, 2, 0, streams);
  assert_string_equal(said, "");
}

static void leaves_nothing_where_one_cannot_be_made(void **state)
{
  hipmm_stream_t *streams = NULL;
  (void)state;
  for (fails_at = 1; fails_at <= OWN; fails_at++) {
    assert_false(streams_make(handles, N, 0, &streams));
    assert_string_equal(said, "hipStreamCreateWithFlags: hipErrorOutOfMemory");
    assert_int_equal(n_there, 0);
  }
  assert_false(streams_make(handles, N, 7, &streams));
  assert_string_equal(said, "hipSetDevice: hipErrorInvalidDevice");
  assert_false(streams_make(NULL, SIZE_MAX / 64, 0, &streams));
  assert_string_equal(said, "out of memory");
  assert_null(streams);
}

/* Nobody would be told of its end. */
static void leaves_no_stream_that_hipmm_does_not_know(void **state)
{
  hipmm_stream_t *streams = NULL;
  (void)state;
  assert_ok(hipmm_finalize());
  assert_false(streams_make(handles, N, 0, &streams));
  assert_non_null(strstr(said, "hipmm is not initialised"));
  assert_int_equal(n_there, 0);
  assert_null(streams);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(makes_a_stream_for_each_handle_without_a_meaning),
      TEST(leaves_nothing_where_one_cannot_be_made),
      TEST(leaves_no_stream_that_hipmm_does_not_know),
  };
  return cmocka_run_group_tests_name("streams of replays", tests, NULL, NULL);
}
