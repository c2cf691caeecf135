/* SPDX-License-Identifier: MIT */
/* behaviour.c: see behaviour.h. */
#include "behaviour.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_TO_HOST = 2, MOST_TESTS = 200, MOST_NAME = 150 };

static const struct behaviour_stack *start(void **state)
{
  const struct behaviour_stack *stack = *state;
  fixture_start_with(stack->runtime, stack->graph);
  return stack;
}

static struct hipmm_resource *top(void)
{
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_resource_get_for_device(0, &resource));
  hipmm_resource_release(resource); /* the table of devices keeps it */
  return resource;
}

/* All that was allocated is free again, and goes back. */
static void assert_all_goes_back(void)
{
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_ok(hipmm_resource_trim(top(), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

/* ---- Cases ---- */

static void gives_null_for_zero_bytes(void **state)
{
  start(state);
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  fixture_free(NULL, 1000, NULL);
  assert_all_goes_back();
}

static void aligns(void **state)
{
  static const size_t sizes[] = {1, 255, 256, 257, 1000, 4096, 65537, MIB};
  const struct behaviour_stack *stack = start(state);
  void *ptrs[sizeof sizes / sizeof *sizes];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    ptrs[i] = fixture_allocate(sizes[i], NULL);
    assert_int_equal((uintptr_t)ptrs[i] % HIPMM_ALIGNMENT, 0);
  }
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) fixture_free(ptrs[i], sizes[i], NULL);
  for (size_t alignment = 1; alignment <= 16384; alignment *= 2) {
    void *ptr = NULL;
    enum hipmm_status status = hipmm_allocate_aligned(NULL, 1000, alignment, NULL, &ptr);
    assert_status(status, stack->aligns || alignment <= 256 ? HIPMM_OK : HIPMM_E_ARGUMENT);
    if (status) continue;
    assert_int_equal((uintptr_t)ptr % alignment, 0);
    assert_ok(hipmm_deallocate_aligned(NULL, ptr, 1000, alignment, NULL));
  }
  assert_all_goes_back();
}

static void refuses_what_is_too_large(void **state)
{
  needs_software();
  static const size_t sizes[] = {SIZE_MAX,         SIZE_MAX - 1, SIZE_MAX - 255, SIZE_MAX - 256, SIZE_MAX / 2,
                                 SIZE_MAX / 2 + 1, 1ull << 60,   1ull << 47,     1ull << 40};
  start(state);
  void *ptr = &ptr, *kept = fixture_allocate(1000, NULL);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_status(hipmm_allocate(NULL, sizes[i], NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, &ptr);
  }
  if (on_software()) assert_status(hipmm_allocate(NULL, 256 * MIB + 1, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  fixture_free(kept, 1000, NULL);
  assert_all_goes_back();
}

static void recovers_from_exhaustion(void **state)
{
  needs_software();
  enum { PARTS = 64 };
  const size_t bytes = 16 * MIB;
  void *ptrs[PARTS];
  needs_software(); /* of 256 MiB */
  start(state);
  for (int round = 0; round < 2; round++) {
    int n = 0;
    while (n < PARTS && !hipmm_allocate(NULL, bytes, NULL, &ptrs[n])) n++;
    assert_in_range(n, 8, 16);
    while (n) fixture_free(ptrs[--n], bytes, NULL);
  }
  assert_all_goes_back();
}

/* Writes, frees, and goes on with the same memory on another stream: what the second stream wrote is there. */
static void serves_two_streams(void **state)
{
  enum { ROUNDS = 20, BYTES = 5000 };
  start(state);
  hipmm_stream_t streams[2] = {fixture_stream(), fixture_stream()};
  char *copy = NULL;
  assert_int_equal(fixture_hip()->HostMalloc((void **)&copy, BYTES, HIPMM_HIP_HOST_MALLOC_PORTABLE), 0);
  for (int round = 1; round <= ROUNDS; round++) {
    hipmm_stream_t first = streams[round % 2], second = streams[(round + 1) % 2];
    void *before = fixture_allocate(BYTES, first);
    assert_int_equal(fixture_hip()->MemsetAsync(before, round, BYTES, first), 0);
    fixture_free(before, BYTES, first);
    void *after = fixture_allocate(BYTES, second);
    assert_int_equal(fixture_hip()->MemsetAsync(after, -round, BYTES, second), 0);
    assert_int_equal(fixture_hip()->MemcpyAsync(copy, after, BYTES, DEVICE_TO_HOST, second), 0);
    fixture_free(after, BYTES, second);
    assert_int_equal(fixture_hip()->StreamSynchronize(second), 0);
    for (int i = 0; i < BYTES; i++) assert_int_equal(copy[i], (char)-round);
  }
  assert_int_equal(fixture_hip()->HostFree(copy), 0);
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
  }
  assert_all_goes_back();
}

enum { THREADS = 4, STEPS = 300, HELD = 16 };

/* Each thread marks its blocks and finds them marked, from the host, which reaches the software device's memory. */
static void *allocate_and_free(void *argument)
{
  unsigned char tag = *(unsigned char *)argument;
  unsigned char *blocks[HELD] = {NULL};
  unsigned failures = 0;
  bool marks = on_software();
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned index = step * 7 % HELD;
    size_t bytes = 1 + index * 300;
    void *ptr = NULL;
    if (blocks[index]) {
      failures += marks && (blocks[index][0] != tag || blocks[index][bytes - 1] != tag);
      failures += hipmm_deallocate(NULL, blocks[index], step % 3 ? bytes : 0, NULL) != HIPMM_OK;
    }
    failures += hipmm_allocate(NULL, bytes, NULL, &ptr) != HIPMM_OK;
    blocks[index] = ptr;
    if (ptr && marks) memset(ptr, tag, bytes);
  }
  for (unsigned index = 0; index < HELD; index++)
    if (blocks[index]) failures += hipmm_deallocate(NULL, blocks[index], 1 + index * 300, NULL) != HIPMM_OK;
  return (void *)(uintptr_t)failures;
}

static void serves_threads(void **state)
{
  needs_software();
  pthread_t threads[THREADS];
  unsigned char tags[THREADS];
  void *failures = NULL;
  start(state);
  for (int i = 0; i < THREADS; i++) {
    tags[i] = (unsigned char)(i + 1);
    assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, &tags[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &failures);
    assert_null(failures);
  }
  assert_all_goes_back();
}

static void refuses_bad_frees(void **state)
{
  int foreign = 0;
  start(state);
  char *ptr = fixture_allocate(1000, NULL), *other = fixture_allocate(1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 999, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, ptr, 1001, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, ptr, SIZE_MAX, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, ptr + 1, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr + 256, 0, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr - 256, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, &foreign, sizeof foreign, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, &foreign, 0, NULL), HIPMM_E_POINTER);
  fixture_free(ptr, 1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr, 0, NULL), HIPMM_E_POINTER);
  char *message = strdup(hipmm_last_error_message());
  fixture_free(other, 0, NULL);
  fixture_free(fixture_allocate(5000, NULL), 5000, NULL);
  assert_all_goes_back();
  assert_string_equal(hipmm_last_error_message(), message); /* it is of the last call that failed */
  free(message);
}

/* A call that the runtime refuses once can be made again. */
static void recovers_from_a_failing_runtime(void **state)
{
  static const char *const calls[] = {"hipMalloc", "hipMemCreate", "hipMemMap", "hipMemsetAsync", "hipMallocAsync"};
  start(state);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    void *ptr = NULL;
    fixture_fail_call(calls[i], 1, 0);
    if (hipmm_allocate(NULL, 40 * MIB, NULL, &ptr)) {
      assert_string_not_equal(hipmm_last_error_message(), "");
      ptr = fixture_allocate(40 * MIB, NULL);
    }
    software()->fail_none();
    fixture_free(ptr, 40 * MIB, NULL);
    assert_all_goes_back();
  }
}

void behaviour_frees_pass_through(const char *stack)
{
  char graph[300];
  int local;
  snprintf(graph, sizeof graph, "'stack': ['statistics', %s]", stack);
  fixture_start(graph);
  char *ptr = fixture_allocate(3000, NULL), *aligned = NULL;
  assert_status(hipmm_deallocate(NULL, ptr, 2999, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, ptr + 256, 3000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, &local, 3000, NULL), HIPMM_E_POINTER);
  assert_ok(hipmm_allocate_aligned(NULL, 5000, 8192, NULL, (void **)&aligned));
  assert_int_equal((uintptr_t)aligned % 8192, 0);
  assert_ok(hipmm_deallocate_aligned(NULL, aligned, 5000, 8192, NULL));
  fixture_free(ptr, 0, NULL); /* statistics asks below for its size */
  assert_status(hipmm_deallocate(NULL, ptr, 3000, NULL), HIPMM_E_POINTER);
  assert_int_equal(fixture_value("statistics", "current_bytes"), 0);
}

/* ---- The table ---- */

static const struct CMUnitTest behaviours[BEHAVIOURS] = {
    {.name = "gives NULL for zero bytes", .test_func = gives_null_for_zero_bytes},
    {.name = "aligns", .test_func = aligns},
    {.name = "refuses what is too large", .test_func = refuses_what_is_too_large},
    {.name = "recovers from exhaustion", .test_func = recovers_from_exhaustion},
    {.name = "serves two streams", .test_func = serves_two_streams},
    {.name = "serves threads", .test_func = serves_threads},
    {.name = "refuses bad frees", .test_func = refuses_bad_frees},
    {.name = "recovers from a failing runtime", .test_func = recovers_from_a_failing_runtime},
};

size_t behaviour_tests(const struct behaviour_stack *stacks, size_t n_stacks, struct CMUnitTest *tests)
{
  static char names[MOST_TESTS][MOST_NAME];
  size_t n = 0;
  for (size_t stack = 0; stack < n_stacks; stack++)
    for (size_t i = 0; i < BEHAVIOURS && n < MOST_TESTS; i++, n++) {
      snprintf(names[n], MOST_NAME, "%s: %s", stacks[stack].name, behaviours[i].name);
      tests[n] = behaviours[i];
      tests[n].name = names[n];
      tests[n].setup_func = fixture_setup;
      tests[n].teardown_func = fixture_teardown;
      tests[n].initial_state = (void *)(uintptr_t)&stacks[stack];
    }
  return n;
}

int behaviour_run(const char *type, const struct CMUnitTest *own, size_t n_own, const struct behaviour_stack *stacks,
                  size_t n_stacks)
{
  static struct CMUnitTest tests[MOST_TESTS];
  if (n_own + n_stacks * BEHAVIOURS > MOST_TESTS) return 1;
  if (n_own) memcpy(tests, own, n_own * sizeof *own);
  size_t n = n_own + behaviour_tests(stacks, n_stacks, tests + n_own);
  return _cmocka_run_group_tests(type, tests, n, NULL, NULL);
}
