/* SPDX-License-Identifier: MIT */
/* Tests of allocations while a graph is captured from a stream: nothing that the driver forbids then is done to it, and
 * its memory is nobody else's. */
#include "../../support/captures.h"
#include "work.h"

static int teardown(void **state)
{
  capture_forget();
  return fixture_teardown(state);
}

/* ---- Tests ---- */

static const size_t sizes[] = {500, 100 * KIB, 3 * MIB};
enum { SIZES = sizeof sizes / sizeof *sizes };

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
  return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* What is pending elsewhere is left alone, though it would fit. */
static void takes_nothing_that_would_have_to_be_waited_for(hipmm_stream_t first, hipmm_stream_t second)
{
  void *pending[SIZES], *mine[SIZES];
  for (int i = 0; i < SIZES; i++) pending[i] = use_and_free(sizes[i], first);
  capture_begin(second);
  for (int i = 0; i < SIZES; i++) {
    mine[i] = fixture_allocate(sizes[i], second);
    for (int k = 0; k < SIZES; k++)
      if (overlap(mine[i], sizes[i], pending[k], sizes[k])) assert_int_equal(fixture_hip()->StreamQuery(first), 0);
  }
  for (int i = 0; i < SIZES; i++) fixture_free(mine[i], sizes[i], second);
}

/* The capture goes on: its blocks serve its own stream and no other. Only of a stream that lasts can the pool know. */
static void keeps_to_itself(hipmm_stream_t first, hipmm_stream_t second)
{
  void *mine[SIZES], *others[SIZES];
  for (int i = 0; i < SIZES; i++) mine[i] = fixture_allocate(sizes[i], second);
  for (int i = 0; i < SIZES; i++) fixture_free(mine[i], sizes[i], second);
  for (int i = 0; i < SIZES; i++) {
    others[i] = fixture_allocate(sizes[i], first);
    for (int k = 0; k < SIZES; k++) assert_false(overlap(others[i], sizes[i], mine[k], sizes[k]));
    use(others[i], sizes[i], first);
  }
  for (int i = 0; i < SIZES; i++) fixture_free(others[i], sizes[i], first);
}

static void lets_a_capture_be(int growth, int record, bool retained)
{
  start("'scheduler': 'stepped', 'seed': 9", growth, record, "");
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  if (retained) assert_ok(hipmm_stream_retain(0, first)); /* as the hooks of frameworks do */
  if (retained) assert_ok(hipmm_stream_retain(0, second));
  use_and_free(3 * MIB, second);
  takes_nothing_that_would_have_to_be_waited_for(first, second);
  if (retained) keeps_to_itself(first, second);
  assert_true(capture_end());
  assert_undisturbed();
  /* Afterwards all memory is anybody's again. */
  uint64_t held = fixture_held_bytes();
  for (int i = 0; i < SIZES; i++) use_and_free(sizes[i], second);
  for (int i = 0; i < SIZES; i++) use_and_free(sizes[i], first);
  assert_int_equal(fixture_held_bytes(), held);
  assert_undisturbed();
  fixture_drop_stream(first);
  fixture_drop_stream(second);
  finish();
}

static void lets_captures_be(void **state)
{
  needs_software();
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++) {
      lets_a_capture_be(growth, record, true);
      assert_int_equal(teardown(state), 0);
      lets_a_capture_be(growth, record, false);
      assert_int_equal(teardown(state), 0);
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(lets_captures_be, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
