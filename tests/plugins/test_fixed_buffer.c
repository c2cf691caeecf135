/* SPDX-License-Identifier: MIT */
/* Tests of `fixed_buffer`: allocations from memory that the program owns: the device's, or plain memory where nobody
 * touches it. */
#include "../support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define GRAPH(options) "'stack': [{'type': 'fixed_buffer', 'region': 'ours'" options "}]"

enum { REGION = 1 << 20, CANARY = 4096 };

/* The program's memory, with canaries round the part that is registered. */
static struct {
  char *start;
  struct hipmm_resource *resource;
} program;

static void register_part(void *ptr, size_t bytes)
{
  struct hipmm_region region = {sizeof region, ptr, bytes};
  assert_ok(hipmm_region_register("ours", &region));
}

/* The region comes first, from a runtime that the graph then finds as it is. */
static void start_with(const char *runtime_options, const char *graph)
{
  fixture_start_with(runtime_options, "'stack': ['device']");
  assert_int_equal(fixture_hip()->Malloc((void **)&program.start, REGION + 2 * CANARY), 0);
  fixture_fill(program.start, 0x5A, REGION + 2 * CANARY);
  register_part(program.start + CANARY, REGION);
  assert_ok(hipmm_finalize());
  fixture_start_with(runtime_options, graph);
  program.resource = fixture_resource("fixed_buffer");
}

static void start(void)
{
  start_with("", GRAPH(""));
}

static int setup(void **state)
{
  program.start = NULL;
  return fixture_setup(state);
}

static bool canaries_live(void)
{
  return fixture_holds(program.start, 0x5A, CANARY) && fixture_holds(program.start + CANARY + REGION, 0x5A, CANARY);
}

/* The region is still the program's, and nothing was written beside it. */
static int teardown(void **state)
{
  bool is_good = true;
  hipmm_finalize();
  if (program.start) {
    is_good = canaries_live() && !fixture_hip()->Free(program.start);
    if (!is_good) print_error("the region was freed, or written beyond\n");
  }
  hipmm_region_register("ours", NULL);
  return fixture_teardown(state) || !is_good ? -1 : 0;
}

static void *take(size_t bytes, hipmm_stream_t stream)
{
  void *ptr = NULL;
  assert_ok(hipmm_allocate(program.resource, bytes, stream, &ptr));
  return ptr;
}

static void give(void *ptr, size_t bytes, hipmm_stream_t stream)
{
  assert_ok(hipmm_deallocate(program.resource, ptr, bytes, stream));
}

static int64_t value(const char *name)
{
  int64_t number = -1;
  assert_ok(hipmm_resource_query(program.resource, name, &number));
  return number;
}

static bool is_inside(const void *ptr, size_t bytes)
{
  const char *start = ptr;
  return start >= program.start + CANARY && start + bytes <= program.start + CANARY + REGION;
}

/* ---- Allocating ---- */

static void gives_memory_of_the_region_alone(void **state)
{
  (void)state;
  start();
  for (size_t bytes = 1; bytes <= REGION; bytes = bytes * 4 + 3) {
    void *ptr = take(bytes, NULL);
    assert_int_equal((uintptr_t)ptr % HIPMM_ALIGNMENT, 0);
    assert_true(is_inside(ptr, bytes));
    fixture_fill(ptr, 1, bytes);
    give(ptr, bytes, NULL);
  }
  assert_int_equal(value("region_bytes"), REGION);
  assert_int_equal(value("live_bytes"), 0);
}

static void holds_nothing_of_the_runtime(void **state)
{
  (void)state;
  size_t now = 1;
  start();
  void *ptr = take(1000, NULL);
  assert_ok(hipmm_device_held_bytes(0, &now, NULL));
  assert_int_equal(now, 0);
  assert_int_equal(value("live_bytes"), 1000);
  assert_int_equal(value("live_count"), 1);
  assert_int_equal(value("free_bytes"), REGION - 1024);
  give(ptr, 1000, NULL);
}

static void gives_all_of_it_and_no_more(void **state)
{
  (void)state;
  void *ptr = (void *)1;
  start();
  void *all = take(REGION, NULL);
  assert_status(hipmm_allocate(program.resource, 1, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 1 byte: 0 bytes of the region are free");
  assert_ptr_equal(ptr, (void *)1);
  give(all, REGION, NULL);
  software()->reset_calls();
  assert_status(hipmm_allocate(program.resource, REGION + 1, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("1 MiB of the region are free, in ranges of at most 1 MiB");
  assert_int_equal(fixture_all_calls(), 0); /* no work is waited for in vain */
  give(take(REGION, NULL), REGION, NULL);
}

static void refuses_what_no_memory_can_give(void **state)
{
  (void)state;
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2, SIZE_MAX / 4};
  start();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *ptr;
    assert_status(hipmm_allocate(program.resource, sizes[i], NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  }
  assert_null(take(0, NULL));
  give(NULL, 0, NULL);
}

static void merges_what_was_freed(void **state)
{
  (void)state;
  void *blocks[16];
  start();
  for (int i = 0; i < 16; i++) blocks[i] = take(REGION / 16, NULL);
  for (int i = 0; i < 16; i++) give(blocks[i * 7 % 16], REGION / 16, NULL);
  give(take(REGION, NULL), REGION, NULL);
}

static void takes_the_hole_that_fits_best(void **state)
{
  (void)state;
  start();
  void *large = take(100000, NULL), *first = take(256, NULL), *small = take(20000, NULL), *second = take(256, NULL);
  void *rest = take(REGION - 200000, NULL);
  give(large, 100000, NULL);
  give(small, 20000, NULL);
  void *again = take(19900, NULL);
  assert_ptr_equal(again, small);
  give(again, 19900, NULL);
  give(first, 256, NULL), give(second, 256, NULL), give(rest, REGION - 200000, NULL);
}

static void aligns_to_any_power_of_two(void **state)
{
  (void)state;
  void *ptr = NULL;
  start();
  assert_ok(hipmm_allocate_aligned(program.resource, 1000, 65536, NULL, &ptr));
  assert_int_equal((uintptr_t)ptr % 65536, 0);
  assert_true(is_inside(ptr, 1000));
  assert_ok(hipmm_deallocate_aligned(program.resource, ptr, 1000, 65536, NULL));
}

static void refuses_frees_that_are_wrong(void **state)
{
  (void)state;
  char foreign;
  start();
  char *ptr = take(1000, NULL);
  assert_status(hipmm_deallocate(program.resource, &foreign, 1, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(program.resource, ptr + 256, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(program.resource, ptr, 999, NULL), HIPMM_E_SIZE);
  give(ptr, 0, NULL);
  assert_status(hipmm_deallocate(program.resource, ptr, 1000, NULL), HIPMM_E_POINTER);
}

static void leaves_the_region_alone_when_it_ends(void **state)
{
  (void)state;
  start();
  take(1000, NULL);
  take(2000, NULL);
  assert_ok(hipmm_resource_trim(program.resource, 0));
  assert_ok(hipmm_finalize());
  fixture_fill(program.start + CANARY, 1, REGION); /* is still there; teardown frees it */
}

static void serves_again_after_it_ended(void **state)
{
  (void)state;
  start();
  void *first = take(1000, NULL);
  assert_ok(hipmm_finalize());
  fixture_start(GRAPH(""));
  program.resource = fixture_resource("fixed_buffer");
  assert_ptr_equal(take(1000, NULL), first);
}

/* ---- Streams ---- */

/* Each stream fills its block, and looks at it later: nothing else may have been written there. */
static void a_freed_block_waits_for_its_streams_work(void **state)
{
  const char *const options = *state;
  char graph[400];
  snprintf(graph, sizeof graph, GRAPH("%s"), options);
  start_with("'scheduler': 'stepped', 'seed': 3", graph);
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  for (int i = 0; i < 50; i++) {
    void *ptr = take(REGION, first);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, 1, REGION, first), 0);
    give(ptr, REGION, first);
    ptr = take(REGION, second);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, 2, REGION, second), 0);
    assert_true(fixture_holds(ptr, 2, REGION));
    give(ptr, REGION, second);
  }
  assert_ok(hipmm_stream_retire(0, first));
  assert_ok(hipmm_stream_retire(0, second));
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

/* Small pieces of many streams come together again, when there is no other way: by waiting. */
static void pieces_of_many_streams_become_one(void **state)
{
  const char *const options = *state;
  char graph[400];
  hipmm_stream_t streams[8];
  void *blocks[8];
  snprintf(graph, sizeof graph, GRAPH("%s"), options);
  start_with("'scheduler': 'stepped', 'seed': 5", graph);
  for (int i = 0; i < 8; i++) streams[i] = fixture_stream();
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 8; i++) blocks[i] = take(REGION / 8, streams[i]);
    for (int i = 0; i < 8; i++) assert_int_equal(fixture_hip()->MemsetAsync(blocks[i], i, REGION / 8, streams[i]), 0);
    for (int i = 0; i < 8; i++) give(blocks[i], REGION / 8, streams[i]);
    void *all = take(REGION, streams[round]);
    assert_int_equal(fixture_hip()->MemsetAsync(all, 77, REGION, streams[round]), 0);
    assert_true(fixture_holds(all, 77, REGION));
    give(all, REGION, streams[round]);
  }
  for (int i = 0; i < 8; i++) assert_ok(hipmm_stream_retire(0, streams[i]));
  for (int i = 0; i < 8; i++) fixture_drop_stream(streams[i]);
}

static void take_and_give(int *failures)
{
  void *blocks[20] = {NULL};
  for (int i = 0; i < 2000; i++) {
    int at = i * 7 % 20;
    size_t bytes = 1 + (size_t)(at * 200);
    if (blocks[at] && hipmm_deallocate(program.resource, blocks[at], bytes, NULL)) ++*failures;
    blocks[at] = NULL;
    if (hipmm_allocate(program.resource, bytes, NULL, &blocks[at])) ++*failures;
    if (blocks[at] && !is_inside(blocks[at], bytes)) ++*failures;
    if (blocks[at] && fixture_hip()->MemsetAsync(blocks[at], at, bytes, NULL)) ++*failures;
  }
  for (int at = 0; at < 20; at++)
    if (hipmm_deallocate(program.resource, blocks[at], 0, NULL)) ++*failures;
}

static void serves_many_threads(void **state)
{
  (void)state;
  start();
  fixture_run_threads(8, take_and_give);
  assert_int_equal(value("live_count"), 0);
}

/* ---- Regions ---- */

struct region_row {
  size_t offset, bytes; /* in a page */
  const char *message;  /* NULL: it is good */
};

static void refuses_regions_that_it_cannot_use(void **state)
{
  (void)state;
  static _Alignas(4096) char page[4096];
  static const struct region_row rows[] = {
      {0, 255, "the region has 255 bytes; register at least 256"},
      {1, 4000, "not aligned to 256 bytes; register it 255 bytes later"},
      {128, 3000, "register it 128 bytes later"},
      {0, 256, NULL},
      {256, 1000, NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    register_part(page + rows[i].offset, rows[i].bytes);
    enum hipmm_status status = fixture_try("", "'stack': [{'type': 'fixed_buffer', 'region': 'ours'}]");
    assert_status(status, rows[i].message ? HIPMM_E_CONFIG : HIPMM_OK);
    if (rows[i].message) assert_message("/stack/0/region");
    if (rows[i].message) assert_message(rows[i].message);
    if (!status) assert_int_equal(fixture_value("fixed_buffer", "region_bytes"), rows[i].bytes / 256 * 256);
    assert_ok(hipmm_finalize());
  }
}

static void a_region_serves_one_resource(void **state)
{
  (void)state;
  static _Alignas(4096) char page[4096];
  struct hipmm_resource *second;
  needs_software(); /* two devices */
  register_part(page, sizeof page);
  fixture_start("'stack': [{'type': 'fixed_buffer', 'region': 'ours'}]");
  assert_status(hipmm_resource_get_for_device(1, &second), HIPMM_E_CONFIG);
  assert_message("overlap the region of fixed_buffer on device 0");
  assert_ok(hipmm_finalize());
  fixture_start("'stack': [{'type': 'fixed_buffer', 'region': 'ours'}]"); /* it was let go */
}

static void needs_a_region_that_is_registered(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'fixed_buffer', 'region': 'nobodys'}]"), HIPMM_E_CONFIG);
  assert_message("nobodys");
  assert_ok(hipmm_finalize());
  assert_status(fixture_try("", "'stack': ['fixed_buffer']"), HIPMM_E_CONFIG);
  assert_message("region");
}

static void use_each_op(void)
{
  hipmm_stream_t stream = NULL;
  void *first = NULL, *second = NULL;
  fixture_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING);
  if (!hipmm_allocate(NULL, 3000, NULL, &first)) hipmm_deallocate(NULL, first, 3000, NULL);
  if (!hipmm_allocate(NULL, 3000, stream, &second)) hipmm_deallocate(NULL, second, 3000, stream);
  if (!hipmm_allocate(NULL, 3500, NULL, &first)) hipmm_deallocate(NULL, first, 0, NULL);
  hipmm_stream_retire(0, stream);
  fixture_hip()->StreamDestroy(stream);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  static _Alignas(4096) char page[4096];
  register_part(page, sizeof page);
  assert_true(fixture_fail_each_call("", "'stack': [{'type': 'fixed_buffer', 'region': 'ours'}]", use_each_op) > 5);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define ROW(test, options)                                                                     \
  {                                                                                            \
#test " (" options ")", test, setup, teardown, (void *)(uintptr_t)(", 'record': " options) \
  }

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(gives_memory_of_the_region_alone),
      TEST(holds_nothing_of_the_runtime),
      TEST(gives_all_of_it_and_no_more),
      TEST(refuses_what_no_memory_can_give),
      TEST(merges_what_was_freed),
      TEST(takes_the_hole_that_fits_best),
      TEST(aligns_to_any_power_of_two),
      TEST(refuses_frees_that_are_wrong),
      TEST(leaves_the_region_alone_when_it_ends),
      TEST(serves_again_after_it_ended),
      ROW(a_freed_block_waits_for_its_streams_work, "'auto'"),
      ROW(a_freed_block_waits_for_its_streams_work, "'lazy'"),
      ROW(a_freed_block_waits_for_its_streams_work, "'on_free'"),
      ROW(pieces_of_many_streams_become_one, "'auto'"),
      ROW(pieces_of_many_streams_become_one, "'lazy'"),
      ROW(pieces_of_many_streams_become_one, "'on_free'"),
      TEST(serves_many_threads),
      TEST(refuses_regions_that_it_cannot_use),
      TEST(a_region_serves_one_resource),
      TEST(needs_a_region_that_is_registered),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
