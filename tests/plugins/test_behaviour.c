/* SPDX-License-Identifier: MIT */
/* The table of behaviours (behaviour.h) for the types whose own tests do not run it: sources of device memory,
 * sub-allocators, and adaptors; and what all sub-allocators do when they are destroyed. */
#include "../support/behaviour.h"

#include <stdio.h>

#define THREADS "'scheduler': 'threads'"
#define STEPPED "'scheduler': 'stepped', 'seed': 5"

static const struct behaviour_stack stacks[] = {
    {"device", THREADS, "'stack': ['device']", false},
    {"async", STEPPED, "'stack': ['async']", false},
    {"async_view", THREADS, "'stack': ['async_view']", false},
    {"pool, mapped", STEPPED, "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']", true},
    {"pool, segments", THREADS, "'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']", true},
    {"pool, on_free", STEPPED, "'stack': [{'type': 'pool', 'growth': 'mapped', 'record': 'on_free'}, 'device']", true},
    {"arena", STEPPED, "'stack': ['arena', 'device']", true},
    {"arena, on_free", THREADS, "'stack': [{'type': 'arena', 'record': 'on_free'}, 'device']", true},
    {"binning", STEPPED,
     "'stack': [{'type': 'binning', 'min_size_exponent': 9, 'max_size_exponent': 20}, 'pool', 'device']", true},
    {"monotonic", STEPPED, "'stack': ['monotonic', 'device']", true},
    {"statistics", THREADS, "'stack': ['statistics', 'pool', 'device']", true},
    {"logging", STEPPED, "'stack': [{'type': 'logging', 'file': '/dev/null'}, 'arena', 'device']", true},
    {"thread_safe", THREADS, "'stack': ['thread_safe', 'monotonic', 'device']", true},
    {"fallback", STEPPED,
     "'resources': {'top': {'type': 'fallback', 'upstream': ['narrow', 'pool']}, 'narrow': {'type': 'limiting', "
     "'limit': "
     "'1MiB', 'upstream': 'arena'}, 'arena': {'type': 'arena', 'upstream': 'memory'}, 'memory': {'type': 'device'}, "
     "'pool': {'type': 'pool', 'upstream': 'memory'}}",
     true},
};

enum { N_STACKS = sizeof stacks / sizeof *stacks };

/* ---- The end of a sub-allocator ---- */

static unsigned freed_too_early;

static enum hipmm_status give(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)unused, (void)alignment, (void)stream;
  return fixture_hip()->Malloc(ptr_out, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static void take_back(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream;
  if (software()->pending()) freed_too_early++;
  fixture_hip()->Free(ptr);
}

/* The upstream gets memory back that no work uses, whether or not its own free would wait. */
static void wait_for_work_at_their_end(void **state)
{
  static const char *const types[] = {
      "'monotonic'",
      "'arena'",
      "'fixed_size'",
      "{'type': 'pool', 'growth': 'segments'}",
      "{'type': 'binning', 'bins': [{'size': '4KiB'}]}",
  };
  const struct hipmm_allocator allocator = {sizeof allocator, give, take_back, NULL};
  (void)state;
  assert_ok(hipmm_allocator_register("late", &allocator));
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    char graph[200];
    snprintf(graph, sizeof graph, "'stack': [%s, {'type': 'callback', 'allocator': 'late'}]", types[i]);
    fixture_start_with(STEPPED, graph);
    hipmm_stream_t stream = fixture_stream();
    void *ptr = fixture_allocate(1000, stream);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, 1, 1000, stream), 0);
    fixture_free(ptr, 1000, stream);
    freed_too_early = 0;
    assert_int_not_equal(software()->pending(), 0);
    assert_ok(hipmm_finalize());
    assert_int_equal(freed_too_early, 0);
    fixture_drop_stream(stream);
  }
  assert_ok(hipmm_allocator_register("late", NULL));
}

int main(void)
{
  static const struct CMUnitTest own =
      cmocka_unit_test_setup_teardown(wait_for_work_at_their_end, fixture_setup, fixture_teardown);
  static struct CMUnitTest tests[BEHAVIOURS * N_STACKS + 1];
  size_t n = behaviour_tests(stacks, N_STACKS, tests);
  tests[n++] = own;
  return _cmocka_run_group_tests("behaviours", tests, n, NULL, NULL);
}
