/* SPDX-License-Identifier: MIT */
/* Tests of the sources that ask HIP or the host for each block: what is true of all of them, a row per type, and what
 * is true of one. */
#include "../support/fixture.h"

#include <stdio.h>
#include <string.h>

/* A source, its options, and its functions of the runtime; NULL where it has none. */
struct source {
  const char *type, *options;
  const char *obtain, *give_back;
  bool is_async;
};

static const struct source sources[] = {
    {"device", "", "hipMalloc", "hipFree", false},
    {"managed", "", "hipMallocManaged", "hipFree", false},
    {"pinned", "", "hipHostMalloc", "hipHostFree", false},
    {"host", "", NULL, NULL, false},
    {"system", "", NULL, NULL, false},
    {"async", "", "hipMallocFromPoolAsync", "hipFreeAsync", true},
    {"async_view", "", "hipMallocFromPoolAsync", "hipFreeAsync", true},
    {"async_managed", "", "hipMallocFromPoolAsync", "hipFreeAsync", true},
    {"sam_headroom", ", 'headroom': '16MiB'", NULL, NULL, false},
    {"umf", "", NULL, NULL, false},
    {"async_pinned", "", "hipMallocFromPoolAsync", "hipFreeAsync", true},
};

static const char every_device_can[] = "'pageable_memory_access': true";

/* The graph with this source alone. */
static const char *graph_of(void **state)
{
  static char graph[200];
  const struct source *source = *state;
  snprintf(graph, sizeof graph, "'stack': [{'type': '%s'%s}]", source->type, source->options);
  return graph;
}

static void start_source(void **state)
{
  fixture_start_with(every_device_can, graph_of(state));
}

static bool is_async(void **state)
{
  return ((const struct source *)*state)->is_async;
}

static void gives_memory_that_can_be_used(void **state)
{
  start_source(state);
  for (size_t bytes = 1; bytes <= MIB; bytes = bytes * 4 + 3) {
    unsigned char *ptr = fixture_allocate(bytes, NULL);
    assert_int_equal((uintptr_t)ptr % HIPMM_ALIGNMENT, 0);
    fixture_hip()->StreamSynchronize(NULL);
    memset(ptr, 0xA5, bytes);
    assert_int_equal(ptr[bytes - 1], 0xA5);
    if (!is_async(state)) assert_int_equal(fixture_held_bytes(), bytes);
    fixture_free(ptr, bytes, NULL);
  }
}

static void counts_what_it_holds(void **state)
{
  start_source(state);
  void *first = fixture_allocate(5 * MIB, NULL), *second = fixture_allocate(3 * MIB, NULL);
  assert_true(fixture_held_bytes() >= 8 * MIB);
  fixture_free(first, 5 * MIB, NULL);
  fixture_free(second, 3 * MIB, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource(((const struct source *)*state)->type), 0));
  assert_int_equal(fixture_held_bytes(), 0);
  assert_true(fixture_peak_held_bytes() >= 8 * MIB);
  assert_true(fixture_peak_held_bytes() < 16 * MIB);
}

static void asks_nobody_for_zero_bytes(void **state)
{
  const struct source *source = *state;
  start_source(state);
  software()->reset_calls();
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  fixture_free(NULL, 100, NULL);
  if (source->obtain) assert_int_equal(software()->calls(source->obtain), 0);
  if (source->obtain) assert_int_equal(software()->calls(source->give_back), 0);
}

static void refuses_what_no_memory_can_give(void **state)
{
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2 + 1, SIZE_MAX / 2, SIZE_MAX / 4};
  start_source(state);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *ptr = (void *)1;
    assert_status(hipmm_allocate(NULL, sizes[i], NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, (void *)1);
  }
  assert_int_equal(fixture_held_bytes(), 0);
}

static void refuses_large_alignments(void **state)
{
  void *ptr = NULL;
  start_source(state);
  assert_ok(hipmm_allocate_aligned(NULL, 1000, 256, NULL, &ptr));
  assert_ok(hipmm_deallocate_aligned(NULL, ptr, 1000, 256, NULL));
  assert_status(hipmm_allocate_aligned(NULL, 1000, 512, NULL, &ptr), HIPMM_E_ARGUMENT);
  assert_message("pool to any power of two");
}

/* Blocks begin inside of what the runtime gives, and are told apart from it. */
static void aligns_to_any_power_of_two(void **state)
{
  enum { MOST = 14 };
  void *ptrs[MOST] = {NULL}, *ptr = &ptr;
  start_source(state);
  for (int i = 0; i < MOST; i++) {
    assert_ok(hipmm_allocate_aligned(NULL, 1000, 256u << i, NULL, &ptrs[i]));
    assert_int_equal((uintptr_t)ptrs[i] % (256u << i), 0);
    memset(ptrs[i], i, 1000);
  }
  for (int i = 0; i < MOST; i++) {
    for (size_t at = 0; at < 1000; at++) assert_int_equal(((unsigned char *)ptrs[i])[at], i);
    assert_status(hipmm_deallocate(NULL, ptrs[i], 999, NULL), HIPMM_E_SIZE);
  }
  for (int i = 0; i < MOST; i += 2) assert_ok(hipmm_deallocate_aligned(NULL, ptrs[i], 1000, 256u << i, NULL));
  for (int i = 1; i < MOST; i += 4) assert_ok(hipmm_deallocate(NULL, ptrs[i], 0, NULL));
  assert_status(hipmm_deallocate(NULL, ptrs[MOST - 2], 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_allocate_aligned(NULL, 1000, (SIZE_MAX >> 1) + 1, NULL, &ptr), HIPMM_E_ARGUMENT);
  assert_status(hipmm_allocate_aligned(NULL, SIZE_MAX - 255, 4096, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_ptr_equal(ptr, &ptr);
  /* The rest is freed at the end. */
}

static void refuses_frees_that_are_wrong(void **state)
{
  char foreign;
  start_source(state);
  char *ptr = fixture_allocate(1000, NULL);
  assert_status(hipmm_deallocate(NULL, &foreign, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr + 256, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr, 999, NULL), HIPMM_E_SIZE);
  assert_message("was allocated with 1000 bytes and cannot be freed with 999");
  fixture_free(ptr, 1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_POINTER);
  assert_message("freed before");
}

static void frees_without_a_size(void **state)
{
  start_source(state);
  void *ptr = fixture_allocate(1000, NULL);
  fixture_free(ptr, 0, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 0, NULL), HIPMM_E_POINTER);
}

static void frees_after_its_stream_is_gone(void **state)
{
  start_source(state);
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(1000, stream);
  fixture_drop_stream(stream);
  fixture_free(ptr, 1000, stream);
  assert_int_equal(fixture_hip()->GetLastError(), 0);
}

static void write_later(void *argument)
{
  memset(argument, 1, MIB);
}

/* The stepped scheduler runs nothing until somebody waits: a free without a wait would take the memory from under the
 * work. */
static void waits_for_work_before_it_frees(void **state)
{
  fixture_start_with("'scheduler': 'stepped', 'pageable_memory_access': true", graph_of(state));
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(MIB, stream);
  assert_int_equal(fixture_hip()->LaunchHostFunc(stream, write_later, ptr), 0);
  software()->reset_calls();
  fixture_free(ptr, MIB, stream);
  /* The software device's hipFree waits by itself, as HIP's did up to release 6: the call is what tells. */
  if (!is_async(state)) assert_int_equal(software()->calls("hipStreamSynchronize"), 1);
  if (!is_async(state)) assert_int_equal(software()->pending(), 0);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
  fixture_drop_stream(stream);
}

static void keeps_a_block_that_cannot_be_freed(void **state)
{
  const struct source *source = *state;
  start_source(state);
  void *ptr = fixture_allocate(1000, NULL);
  size_t held = fixture_held_bytes();
  fixture_fail_call("hipStreamSynchronize", 1, 0);
  fixture_fail_call("hipDeviceSynchronize", 1, 0);
  if (is_async(state)) fixture_fail_call("hipFreeAsync", 1, 0);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_HIP);
  assert_message("hipDeviceSynchronize");
  assert_int_equal(fixture_held_bytes(), held);
  software()->fail_none();
  if (source->give_back && !is_async(state)) {
    fixture_fail_call(source->give_back, 1, 0);
    assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_HIP);
    assert_message(source->give_back);
    assert_int_equal(fixture_held_bytes(), held);
  }
  fixture_free(ptr, 1000, NULL);
}

static void says_which_call_failed(void **state)
{
  const struct source *source = *state;
  struct hipmm_error error = {.struct_size = sizeof error};
  void *ptr = NULL;
  start_source(state);
  if (!source->obtain) return;
  fixture_fail_call(source->obtain, 1, HIPMM_HIP_ERROR_OUT_OF_MEMORY);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  hipmm_last_error(&error);
  assert_contains(error.message, source->obtain);
  assert_int_equal(error.hip_code, HIPMM_HIP_ERROR_OUT_OF_MEMORY);
  assert_string_equal(error.resource, source->type);
  assert_int_equal(fixture_hip()->GetLastError(), 0);
}

static void frees_at_the_end_what_was_left(void **state)
{
  start_source(state);
  fixture_allocate(1000, NULL);
  fixture_allocate(2 * MIB, NULL);
  assert_ok(hipmm_finalize());
  assert_int_equal(live_on_all_devices(), 0);
}

static unsigned n_gone;

static void look_whether_it_is_there(void *unused)
{
  (void)unused;
  n_gone += !live_on_all_devices();
}

static uint64_t choose_the_first(void *unused, uint64_t limit)
{
  (void)unused, (void)limit;
  return 0;
}

static uint64_t choose_the_last(void *unused, uint64_t limit)
{
  (void)unused;
  return limit - 1;
}

/* Whichever of two streams goes on first: that of the work, or that of the free. */
static void waits_at_the_end_for_work_on_what_was_left(void **state)
{
  const struct source *source = *state;
  for (int i = 0; i < 2; i++) {
    size_t free_bytes = 0, total_bytes = 1;
    fixture_start_with("'scheduler': 'stepped', 'pageable_memory_access': true", graph_of(state));
    const struct hipmm_hip *hip = fixture_hip();
    hipmm_stream_t stream = fixture_stream();
    fixture_allocate(MIB, stream);
    n_gone = 0;
    assert_int_equal(hip->LaunchHostFunc(stream, look_whether_it_is_there, NULL), 0);
    software()->reset_calls();
    software()->choose(i ? choose_the_last : choose_the_first, NULL);
    assert_ok(hipmm_finalize());
    software()->choose(NULL, NULL);
    assert_true(software()->calls("hipDeviceSynchronize") > 0);
    assert_int_equal(software()->pending(), 0);
    if (source->obtain) assert_int_equal(n_gone, 0);
    assert_int_equal(hip->MemGetInfo(&free_bytes, &total_bytes), 0);
    assert_int_equal(free_bytes, total_bytes);
    assert_int_equal(hip->StreamDestroy(stream), 0);
  }
}

static void use_each_op(void)
{
  hipmm_stream_t stream = NULL;
  void *first = NULL, *second = NULL;
  fixture_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING);
  enum hipmm_status got_first = hipmm_allocate(NULL, 1000, NULL, &first);
  enum hipmm_status got_second = hipmm_allocate(NULL, MIB, stream, &second);
  if (!got_first) hipmm_deallocate(NULL, first, 1000, NULL);
  if (!got_second) hipmm_deallocate(NULL, second, MIB, stream);
  fixture_hip()->StreamDestroy(stream);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  assert_true(fixture_fail_each_call(every_device_can, graph_of(state), use_each_op) > 5);
}

static void works_on_its_own_device(void **state)
{
  struct hipmm_resource *resource;
  void *ptr = NULL;
  int device = -1;
  uint64_t count = 0;
  start_source(state);
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  assert_ok(hipmm_allocate(resource, 4096, NULL, &ptr));
  fixture_hip()->GetDevice(&device);
  assert_int_equal(device, 0);
  if (((const struct source *)*state)->obtain) {
    assert_true(software()->live(1, &count, NULL));
    assert_int_equal(count, 1);
  }
  assert_ok(hipmm_deallocate(resource, ptr, 4096, NULL));
  hipmm_resource_release(resource);
}

static void can_be_made_in_code(void **state)
{
  const struct source *source = *state;
  struct hipmm_resource *resource = NULL;
  char options[100];
  void *ptr = NULL;
  fixture_start_with(every_device_can, "'stack': ['device']");
  snprintf(options, sizeof options, "{%s}", *source->options ? source->options + 2 : "");
  for (char *at = options; *at; at++)
    if (*at == '\'') *at = '"';
  assert_ok(hipmm_resource_create(1, source->type, options, NULL, 0, &resource));
  assert_ok(hipmm_allocate(resource, 5000, NULL, &ptr));
  assert_ok(hipmm_deallocate(resource, ptr, 5000, NULL));
  hipmm_resource_release(resource);
}

static void take_and_give(int *failures)
{
  struct hipmm_resource *resource = NULL;
  void *blocks[8] = {NULL};
  if (hipmm_resource_get_for_device(0, &resource)) ++*failures;
  for (int i = 0; i < 200; i++) {
    int at = i * 3 % 8;
    size_t bytes = 1000 + (size_t)at * 5000;
    if (blocks[at] && hipmm_deallocate(resource, blocks[at], bytes, NULL)) ++*failures;
    if (hipmm_allocate(resource, bytes, NULL, &blocks[at])) ++*failures;
    if (hipmm_deallocate(resource, blocks[at], bytes + 1, NULL) != HIPMM_E_SIZE) ++*failures;
  }
  for (int at = 0; at < 8; at++)
    if (hipmm_deallocate(resource, blocks[at], 0, NULL)) ++*failures;
  hipmm_resource_release(resource);
}

static void serves_many_threads(void **state)
{
  start_source(state);
  fixture_run_threads(8, take_and_give);
}

static void moves_from_stream_to_stream(void **state)
{
  start_source(state);
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  for (int i = 0; i < 20; i++) {
    void *ptr = fixture_allocate(50000, first);
    assert_int_equal(fixture_hip()->StreamSynchronize(first), 0);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, i, 50000, second), 0);
    fixture_free(ptr, 50000, second);
  }
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

static void runs_out_cleanly(void **state)
{
  void *ptr = (void *)1;
  start_source(state);
  void *most = fixture_allocate(200 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 100 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message(((const struct source *)*state)->obtain);
  assert_message("of 100 MiB");
  assert_ptr_equal(ptr, (void *)1);
  fixture_free(most, 200 * MIB, NULL);
  fixture_free(fixture_allocate(100 * MIB, NULL), 100 * MIB, NULL);
}

/* ---- One type ---- */

static void managed_needs_a_device_that_has_it(void **state)
{
  (void)state;
  assert_status(fixture_try("'managed_memory': false", "'stack': ['managed']"), HIPMM_E_NOT_SUPPORTED);
  assert_message("device 0 has no managed memory");
}

static void system_needs_a_device_that_reaches_the_host(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': ['system']"), HIPMM_E_NOT_SUPPORTED);
  assert_message("device 0 has no access to plain host memory");
}

/* A function of the runtime that a stack needs, or does without. */
static const struct lack {
  const char *graph, *name;
  size_t place; /* in the table of functions */
  bool is_needed;
} lacks[] = {
#define LACK(graph, function, is_needed)                                    \
  {                                                                         \
    graph, "hip" #function, offsetof(struct hipmm_hip, function), is_needed \
  }
    LACK("'stack': ['async']", MallocFromPoolAsync, true),
    LACK("'stack': ['async']", FreeAsync, true),
    LACK("'stack': ['async']", MemPoolCreate, true),
    LACK("'stack': ['async']", MemPoolDestroy, true),
    LACK("'stack': ['async']", MemPoolSetAttribute, true),
    LACK("'stack': ['async']", MemPoolGetAttribute, true),
    LACK("'stack': ['async']", MemPoolTrimTo, true),
    LACK("'stack': ['async']", MemPoolSetAccess, false),
    LACK("'stack': ['async']", DeviceCanAccessPeer, false),
    LACK("'stack': [{'type': 'async', 'peers': [{'device': 1}]}]", MemPoolSetAccess, true),
    LACK("'stack': [{'type': 'async_view', 'pool': 'current'}]", DeviceGetMemPool, true),
    LACK("'stack': ['async_view']", DeviceGetDefaultMemPool, true),
    LACK("'stack': ['async_view']", MemPoolGetAccess, false),
    LACK("'stack': ['async_view']", MemPoolSetAccess, false),
    LACK("'stack': ['async_pinned']", MemPoolSetAccess, true),
    LACK("'stack': ['async_pinned']", MemPoolGetAccess, false),
    LACK("'stack': ['pinned']", HostMalloc, true),
    LACK("'stack': ['pinned']", HostRegister, false),
    LACK("'stack': ['pinned']", HostUnregister, false),
    LACK("'stack': [{'type': 'pinned', 'numa_node': '0'}]", HostRegister, true),
    LACK("'stack': [{'type': 'pinned', 'numa_node': '0'}]", HostUnregister, true),
    LACK("'stack': ['device']", DeviceCanAccessPeer, false),
    LACK("'stack': ['device']", DeviceEnablePeerAccess, false),
    LACK("'stack': [{'type': 'device', 'peers': [{'device': 1}]}]", DeviceCanAccessPeer, true),
    LACK("'stack': [{'type': 'device', 'peers': [{'device': 1}]}]", DeviceEnablePeerAccess, true),
    LACK("'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']", DeviceCanAccessPeer, false),
#undef LACK
};

static void needs_no_more_of_the_runtime_than_it_uses(void **state)
{
  (void)state;
  fixture_start("'stack': ['device']"); /* the table of functions is filled */
  needs_software();
  for (const struct lack *lack = lacks; lack < lacks + sizeof lacks / sizeof *lacks; lack++) {
    assert_ok(hipmm_finalize());
    memset((char *)fixture_lend_hip() + lack->place, 0, sizeof(void (*)(void)));
    enum hipmm_status status = fixture_try("", lack->graph);
    if (!status) fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
    fixture_take_hip_back();
    if (status != (lack->is_needed ? HIPMM_E_NOT_SUPPORTED : HIPMM_OK))
      fail_msg("without %s, %s: %s", lack->name, lack->graph, hipmm_last_error_message());
    if (lack->is_needed) assert_message(lack->name);
  }
}

#define ROW(test, type, i)                                                                 \
  {                                                                                        \
    type ": " #test, test, fixture_setup, fixture_teardown, (void *)(uintptr_t)&sources[i] \
  }
#define ROWS(test)                                                                                              \
  ROW(test, "device", 0), ROW(test, "managed", 1), ROW(test, "pinned", 2), ROW(test, "host", 3),                \
      ROW(test, "system", 4), ROW(test, "async", 5), ROW(test, "async_view", 6), ROW(test, "async_managed", 7), \
      ROW(test, "sam_headroom", 8), ROW(test, "umf", 9), ROW(test, "async_pinned", 10)

int main(void)
{
  const struct CMUnitTest tests[] = {
      ROWS(gives_memory_that_can_be_used),
      ROWS(counts_what_it_holds),
      ROWS(asks_nobody_for_zero_bytes),
      ROWS(refuses_what_no_memory_can_give),
      ROW(refuses_large_alignments, "device", 0),
      ROW(refuses_large_alignments, "managed", 1),
      ROW(refuses_large_alignments, "async", 5),
      ROW(refuses_large_alignments, "async_view", 6),
      ROW(refuses_large_alignments, "async_managed", 7),
      ROW(refuses_large_alignments, "sam_headroom", 8),
      ROW(refuses_large_alignments, "umf", 9),
      ROW(refuses_large_alignments, "async_pinned", 10),
      ROW(aligns_to_any_power_of_two, "pinned", 2),
      ROW(aligns_to_any_power_of_two, "host", 3),
      ROW(aligns_to_any_power_of_two, "system", 4),
      ROWS(refuses_frees_that_are_wrong),
      ROWS(frees_without_a_size),
      ROWS(frees_after_its_stream_is_gone),
      ROWS(waits_for_work_before_it_frees),
      ROWS(keeps_a_block_that_cannot_be_freed),
      ROWS(says_which_call_failed),
      ROWS(frees_at_the_end_what_was_left),
      ROWS(waits_at_the_end_for_work_on_what_was_left),
      ROWS(loses_nothing_whatever_call_fails),
      ROWS(works_on_its_own_device),
      ROWS(can_be_made_in_code),
      ROWS(serves_many_threads),
      ROWS(moves_from_stream_to_stream),
      cmocka_unit_test_setup_teardown(needs_no_more_of_the_runtime_than_it_uses, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(managed_needs_a_device_that_has_it, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(system_needs_a_device_that_reaches_the_host, fixture_setup, fixture_teardown),
      ROW(runs_out_cleanly, "device", 0),
      ROW(runs_out_cleanly, "async", 5),
      ROW(runs_out_cleanly, "async_view", 6),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
