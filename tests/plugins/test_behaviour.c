/* SPDX-License-Identifier: MIT */
/* The table of behaviours (behaviour.h) for the types whose own tests do not run it: sources of device memory,
 * sub-allocators, and adaptors; and what all sub-allocators do when they are destroyed. */
#include "../support/behaviour.h"

#include <stdio.h>
#include <string.h>

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

/* ---- What a sub-allocator takes when it is created ---- */

static const char *const begin_with_memory[] = {
    "{'type': 'monotonic', 'initial_size': '1MiB'}",
    "{'type': 'arena', 'arena_size': '4MiB'}",
    "{'type': 'fixed_size', 'blocks_to_preallocate': 4}",
    "{'type': 'pool', 'growth': 'segments', 'initial_size': '4MiB'}",
    "{'type': 'binning', 'bins': [{'size': '4KiB'}], 'blocks_to_preallocate': 4}",
};

enum { N_BEGINNINGS = sizeof begin_with_memory / sizeof *begin_with_memory };

static unsigned gifts;

static enum hipmm_status give_late(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  enum hipmm_status status = give(unused, bytes, alignment, stream, ptr_out);
  gifts++;
  return status || !fixture_hip()->MemsetAsync(*ptr_out, 1, bytes, stream) ? status : HIPMM_E_HIP;
}

/* The upstream's memory is ready on one stream, and the sub-allocator gives it to any. */
static void wait_for_what_they_begin_with(void **state)
{
  const struct hipmm_allocator allocator = {sizeof allocator, give_late, take_back, NULL};
  (void)state;
  needs_software();
  assert_ok(hipmm_allocator_register("late", &allocator));
  for (size_t i = 0; i < N_BEGINNINGS; i++) {
    char graph[300];
    struct hipmm_resource *top;
    snprintf(graph, sizeof graph, "'stack': [%s, {'type': 'callback', 'allocator': 'late'}]", begin_with_memory[i]);
    gifts = 0;
    fixture_start_with(STEPPED, graph);
    assert_ok(hipmm_resource_get_for_device(0, &top));
    assert_int_not_equal(gifts, 0);
    assert_int_equal(software()->pending(), 0);
    hipmm_resource_release(top);
    assert_ok(hipmm_finalize());
  }
  assert_ok(hipmm_allocator_register("late", NULL));
}

static enum hipmm_status refuse(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  return HIPMM_E_IO;
}

/* To ask for less is no remedy where memory is not what is missing. */
static void say_why_they_cannot_begin(void **state)
{
  const struct hipmm_allocator allocator = {sizeof allocator, refuse, take_back, NULL};
  (void)state;
  assert_ok(hipmm_allocator_register("refuses", &allocator));
  for (size_t i = 0; i < N_BEGINNINGS; i++) {
    char graph[300];
    snprintf(graph, sizeof graph, "'stack': [%s, {'type': 'callback', 'allocator': 'refuses'}]", begin_with_memory[i]);
    assert_status(fixture_try(STEPPED, graph), HIPMM_E_IO);
    assert_message("refused");
    assert_null(strstr(hipmm_last_error_message(), "ask for"));
    hipmm_finalize();
  }
  assert_ok(hipmm_allocator_register("refuses", NULL));
}

/* ---- Blocks that are free ---- */

/* What a free block was asked for with, and on which stream, is nobody's any more. */
static void know_no_block_that_was_freed(void **state)
{
  static const char *const types[] = {"pool", "arena", "fixed_size", "binning"};
  (void)state;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    char graph[200];
    struct hipmm_location location = {.usable_bytes = 0};
    struct hipmm_block block;
    snprintf(graph, sizeof graph, "'stack': [{'type': '%s'%s}, 'device']", types[i],
             strcmp(types[i], "binning") ? "" : ", 'bins': [{'size': '4KiB'}]");
    fixture_start(graph);
    struct hipmm_resource *top = fixture_resource(types[i]);
    void *ptr = fixture_allocate(1000, NULL), *other = fixture_allocate(1000, NULL);
    assert_ok(top->ops->locate(top->self, ptr, &location));
    assert_ok(top->ops->find(top->self, ptr, &block));
    assert_in_range(location.usable_bytes, 1000, MIB);
    fixture_free(ptr, 1000, NULL);
    assert_int_equal(top->ops->locate(top->self, ptr, &location), HIPMM_E_POINTER);
    assert_int_equal(top->ops->find(top->self, ptr, &block), HIPMM_E_POINTER);
    assert_int_equal(top->ops->locate(top->self, (char *)other + 256, &location), HIPMM_E_POINTER);
    assert_int_equal(top->ops->find(top->self, &block, &block), HIPMM_E_POINTER);
    fixture_free(other, 1000, NULL);
    assert_ok(hipmm_finalize());
  }
}

int main(void)
{
#define OWN(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
  static const struct CMUnitTest own[] = {OWN(wait_for_work_at_their_end), OWN(wait_for_what_they_begin_with),
                                          OWN(say_why_they_cannot_begin), OWN(know_no_block_that_was_freed)};
  static struct CMUnitTest tests[BEHAVIOURS * N_STACKS + sizeof own / sizeof *own];
  size_t n = behaviour_tests(stacks, N_STACKS, tests);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) tests[n++] = own[i];
  return _cmocka_run_group_tests("behaviours", tests, n, NULL, NULL);
}
