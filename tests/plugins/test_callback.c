/* SPDX-License-Identifier: MIT */
/* Tests of `callback`: functions of the program that allocate, in every way in which they may be wrong. */
#include "../support/fixture.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char graph[] = "'stack': [{'type': 'callback', 'allocator': 'program'}]";

/* ---- A program's allocator, and what it is to do wrong ---- */

enum mistake {
  NONE,
  RETURNS_NULL,
  MISALIGNED,
  THE_SAME_AGAIN,
  INSIDE_ANOTHER,
  AROUND_ANOTHER,
  BEYOND_ALL,
  OUT_OF_MEMORY,
  NO_STATUS,
  COMES_BACK,
  COMES_BACK_TO_FREE
};

static struct {
  enum mistake mistake;
  char *another; /* a live block */
  struct hipmm_resource *resource;
  enum hipmm_status inner; /* what a call that comes back came to */
  atomic_int live;
  atomic_int wrong_frees; /* whose arguments are not those of their allocation */
  atomic_int early_frees; /* while the device has work to do */
} program;

/* What the thread's last call was told. */
static _Thread_local hipmm_stream_t last_stream;
static _Thread_local int last_device;

/* Kept before each block. */
struct header {
  void *origin;
  size_t bytes, alignment;
};

static void *new_block(size_t bytes, size_t alignment)
{
  char *origin = malloc(bytes + 2 * alignment + sizeof(struct header));
  uintptr_t start = ((uintptr_t)origin + sizeof(struct header) + alignment - 1) / alignment * alignment;
  if (program.mistake == MISALIGNED) start += 128;
  ((struct header *)start)[-1] = (struct header){origin, bytes, alignment};
  atomic_fetch_add(&program.live, 1);
  return (void *)start;
}

static enum hipmm_status program_allocate(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  void *inner;
  if (arg != &program) return HIPMM_E_INTERNAL;
  last_stream = stream;
  fixture_hip()->GetDevice(&last_device);
  switch (program.mistake) {
  case RETURNS_NULL: return HIPMM_OK;
  case THE_SAME_AGAIN: *ptr_out = program.another; return HIPMM_OK;
  case INSIDE_ANOTHER: *ptr_out = program.another + 256; return HIPMM_OK;
  case AROUND_ANOTHER: *ptr_out = program.another - 256; return HIPMM_OK;
  case BEYOND_ALL: *ptr_out = (void *)(UINTPTR_MAX - 255); return HIPMM_OK;
  case OUT_OF_MEMORY: return HIPMM_E_OUT_OF_MEMORY;
  case NO_STATUS: return (enum hipmm_status)77;
  case COMES_BACK: program.inner = hipmm_allocate(program.resource, bytes, stream, &inner); break;
  case COMES_BACK_TO_FREE: program.inner = hipmm_deallocate(program.resource, program.another, 0, stream); break;
  default: break;
  }
  *ptr_out = new_block(bytes, alignment);
  return HIPMM_OK;
}

static void program_deallocate(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct header header = ((struct header *)ptr)[-1];
  last_stream = stream;
  if (arg != &program || header.bytes != bytes || header.alignment != alignment)
    atomic_fetch_add(&program.wrong_frees, 1);
  if (software()->pending()) atomic_fetch_add(&program.early_frees, 1);
  atomic_fetch_sub(&program.live, 1);
  if (program.mistake == COMES_BACK_TO_FREE)
    program.inner = hipmm_deallocate(program.resource, program.another, 0, stream);
  free(header.origin);
}

static int setup(void **state)
{
  struct hipmm_allocator allocator = {sizeof allocator, program_allocate, program_deallocate, &program};
  memset(&program, 0, sizeof program);
  return hipmm_allocator_register("program", &allocator) ? -1 : fixture_setup(state);
}

static int teardown(void **state)
{
  int status = fixture_teardown(state);
  if (program.live) print_error("%d blocks of the program were not given back\n", program.live);
  if (program.wrong_frees) print_error("%d frees had other arguments\n", program.wrong_frees);
  return status || program.live || program.wrong_frees ? -1 : 0;
}

static void start(void)
{
  fixture_start(graph);
  program.resource = fixture_resource("callback");
}

/* ---- As any source ---- */

static void gives_the_programs_memory(void **state)
{
  (void)state;
  start();
  for (size_t bytes = 1; bytes <= MIB; bytes = bytes * 4 + 3) {
    char *ptr = fixture_allocate(bytes, NULL);
    assert_int_equal((uintptr_t)ptr % HIPMM_ALIGNMENT, 0);
    memset(ptr, 1, bytes);
    assert_int_equal(fixture_held_bytes(), bytes);
    assert_int_equal(fixture_value("callback", "live_bytes"), bytes);
    assert_int_equal(fixture_value("callback", "live_count"), 1);
    fixture_free(ptr, bytes, NULL);
  }
  assert_int_equal(fixture_held_bytes(), 0);
}

static void passes_on_alignments_and_streams(void **state)
{
  (void)state;
  void *ptr = NULL;
  start();
  hipmm_stream_t stream = fixture_stream();
  assert_ok(hipmm_allocate_aligned(NULL, 1000, 65536, stream, &ptr));
  assert_int_equal((uintptr_t)ptr % 65536, 0);
  assert_ptr_equal(last_stream, stream);
  assert_ok(hipmm_deallocate(NULL, ptr, 1000, NULL)); /* the alignment is remembered */
  assert_null(last_stream);
  fixture_drop_stream(stream);
}

static void asks_nobody_for_zero_bytes(void **state)
{
  (void)state;
  start();
  program.mistake = NO_STATUS;
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  fixture_free(NULL, 100, NULL);
}

static void refuses_what_no_memory_can_give(void **state)
{
  (void)state;
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2, SIZE_MAX / 4};
  start();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *ptr = (void *)1;
    assert_status(hipmm_allocate(NULL, sizes[i], NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, (void *)1);
  }
}

static void refuses_frees_that_are_wrong(void **state)
{
  (void)state;
  char foreign;
  struct hipmm_block block;
  start();
  const struct hipmm_resource *resource = fixture_resource("callback");
  char *ptr = fixture_allocate(1000, NULL);
  assert_ok(resource->ops->find(resource->self, ptr, &block));
  assert_ptr_equal(block.ptr, ptr);
  assert_int_equal(block.bytes, 1000);
  assert_status(resource->ops->find(resource->self, ptr + 256, &block), HIPMM_E_POINTER);
  assert_status(resource->ops->find(resource->self, &foreign, &block), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, &foreign, 1, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr + 256, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr, 999, NULL), HIPMM_E_SIZE);
  assert_message("was allocated with 1000 bytes and cannot be freed with 999");
  fixture_free(ptr, 0, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_POINTER);
  assert_message("freed before");
}

static void works_on_its_own_device(void **state)
{
  (void)state;
  struct hipmm_resource *second;
  void *ptr = NULL;
  start();
  needs_devices(2);
  assert_ok(hipmm_resource_get_for_device(1, &second));
  assert_ok(hipmm_allocate(second, 100, NULL, &ptr));
  assert_int_equal(last_device, 1);
  fixture_hip()->GetDevice(&last_device);
  assert_int_equal(last_device, 0);
  assert_ok(hipmm_deallocate(second, ptr, 100, NULL));
  hipmm_resource_release(second);
}

static void frees_at_the_end_what_was_left(void **state)
{
  (void)state;
  start();
  for (int i = 0; i < 3000; i++) fixture_allocate(100, NULL); /* more than a chunk of records */
  assert_int_equal(program.live, 3000);
  assert_ok(hipmm_finalize());
  assert_int_equal(program.live, 0);
}

static void do_nothing(void *unused)
{
  (void)unused;
}

static void waits_at_the_end_for_work(void **state)
{
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", graph);
  hipmm_stream_t stream = fixture_stream();
  fixture_allocate(100, stream);
  assert_int_equal(fixture_hip()->LaunchHostFunc(stream, do_nothing, NULL), 0);
  assert_ok(hipmm_finalize());
  assert_int_equal(program.live, 0);
  assert_int_equal(program.early_frees, 0);
}

static void take_and_give(int *failures)
{
  void *blocks[50] = {NULL};
  for (int i = 0; i < 2000; i++) {
    int at = i * 7 % 50;
    size_t bytes = 1 + (size_t)(at * 100);
    if (blocks[at] && hipmm_deallocate(program.resource, blocks[at], bytes, NULL)) ++*failures;
    if (hipmm_allocate(program.resource, bytes, NULL, &blocks[at])) ++*failures;
    memset(blocks[at], at, bytes);
  }
  for (int at = 0; at < 50; at++)
    if (hipmm_deallocate(program.resource, blocks[at], 0, NULL)) ++*failures;
}

static void serves_many_threads(void **state)
{
  (void)state;
  start();
  fixture_run_threads(8, take_and_give);
  assert_int_equal(fixture_value("callback", "live_count"), 0);
}

static void count_extent(void *closure, const struct hipmm_extent *extent)
{
  size_t *sums = closure;
  sums[0]++;
  sums[1] += extent->bytes;
  if ((uintptr_t)extent->ptr <= sums[2] || extent->state != HIPMM_EXTENT_LIVE) sums[3]++;
  sums[2] = (uintptr_t)extent->ptr;
}

static void shows_its_blocks_in_order(void **state)
{
  (void)state;
  size_t sums[4] = {0}; /* blocks, bytes, last address, faults */
  start();
  for (int i = 1; i <= 20; i++) fixture_allocate((size_t)i * 100, NULL);
  assert_ok(program.resource->ops->visit(program.resource->self, count_extent, sums));
  assert_int_equal(sums[0], 20);
  assert_int_equal(sums[1], 21000);
  assert_int_equal(sums[3], 0);
}

static void stands_under_a_pool(void **state)
{
  (void)state;
  fixture_start("'stack': ['pool', {'type': 'callback', 'allocator': 'program'}]");
  void *ptr = fixture_allocate(1000, NULL);
  assert_true(fixture_held_bytes() >= 1000);
  fixture_free(ptr, 1000, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("pool"), 0));
  assert_int_equal(program.live, 0);
}

/* The share is of the device's free memory, wherever the memory comes from: device 0 has 256 MiB. */
static void stands_under_a_pool_with_percentages(void **state)
{
  void *none = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'initial_size': '25%', 'maximum_size': '50%'}, "
                "{'type': 'callback', 'allocator': 'program'}]");
  needs_software();
  assert_int_equal(fixture_value("pool", "reserved_bytes"), 64 * MIB);
  assert_int_equal(fixture_held_bytes(), 64 * MIB);
  void *large = fixture_allocate(60 * MIB, NULL), *more = fixture_allocate(60 * MIB, NULL);
  assert_true(fixture_value("pool", "reserved_bytes") <= 128 * (int64_t)MIB);
  assert_status(hipmm_allocate(NULL, 60 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_message("maximum_size");
  fixture_free(large, 60 * MIB, NULL);
  fixture_free(more, 60 * MIB, NULL);
  assert_ok(hipmm_finalize());
  assert_int_equal(program.live, 0);
}

/* ---- Mistakes ---- */

struct mistake_row {
  enum mistake mistake;
  enum hipmm_status status;
  const char *message;
};

static void refuses_what_the_program_does_wrong(void **state)
{
  (void)state;
  static const struct mistake_row rows[] = {
      {RETURNS_NULL, HIPMM_E_OUT_OF_MEMORY, "returned NULL and no error for 1000 bytes"},
      {MISALIGNED, HIPMM_E_ARGUMENT, "is not aligned to 256 bytes"},
      {THE_SAME_AGAIN, HIPMM_E_ARGUMENT, "overlaps memory in use"},
      {INSIDE_ANOTHER, HIPMM_E_ARGUMENT, "overlaps memory in use"},
      {AROUND_ANOTHER, HIPMM_E_ARGUMENT, "overlaps memory in use"},
      {BEYOND_ALL, HIPMM_E_ARGUMENT, "beyond the end of all addresses"},
      {OUT_OF_MEMORY, HIPMM_E_OUT_OF_MEMORY, "refused 1000 bytes (status -30)"},
      {NO_STATUS, HIPMM_E_ARGUMENT, "not a status of hipmm"},
  };
  start();
  program.another = fixture_allocate(5000, NULL);
  memset(program.another, 9, 5000);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    void *ptr = (void *)1;
    program.mistake = rows[i].mistake;
    assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), rows[i].status);
    assert_message(rows[i].message);
    assert_ptr_equal(ptr, (void *)1);
    assert_int_equal(fixture_held_bytes(), 5000);
    assert_int_equal(program.live, 1);
  }
  program.mistake = NONE;
  assert_int_equal(program.another[4999], 9);
  fixture_free(program.another, 5000, NULL);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
}

static void refuses_calls_that_come_back(void **state)
{
  (void)state;
  start();
  program.another = fixture_allocate(100, NULL);
  program.mistake = COMES_BACK;
  void *ptr = fixture_allocate(1000, NULL);
  assert_int_equal(program.inner, HIPMM_E_STATE);
  program.mistake = COMES_BACK_TO_FREE;
  program.inner = HIPMM_OK;
  fixture_free(ptr, 1000, NULL);
  assert_int_equal(program.inner, HIPMM_E_STATE);
  assert_message("called by its own allocator");
  program.inner = HIPMM_OK;
  ptr = fixture_allocate(1000, NULL);
  assert_int_equal(program.inner, HIPMM_E_STATE);
  program.mistake = NONE;
  fixture_free(ptr, 1000, NULL);
  fixture_free(program.another, 100, NULL);
}

/* What each op of the top came to, called from below it. */
static struct {
  struct hipmm_resource *top;
  const char *value;
  hipmm_stream_t stream;
  void *block; /* a live one */
  enum hipmm_status allocate, trim, query, perform, visit, set, deallocate, find, locate;
  uint64_t hip_calls; /* of the streams' ends */
  size_t given_bytes;
  int visited;
  bool is_covered; /* the block */
} above;

static void count_visit(void *closure, const struct hipmm_extent *extent)
{
  (void)closure, (void)extent;
  above.visited++;
}

static void use_all_above(struct hipmm_resource *top)
{
  struct hipmm_location location = {.struct_size = sizeof location};
  hipmm_stream_t stream = above.stream;
  struct hipmm_block found;
  char option[100];
  void *ptr = NULL;
  int64_t value;
  software()->reset_calls();
  top->ops->stream_retain(top->self, stream);
  top->ops->stream_retire(top->self, stream);
  above.hip_calls += fixture_all_calls();
  above.trim = hipmm_resource_trim(top, 0);
  above.query = hipmm_resource_query(top, above.value, &value);
  above.perform = hipmm_resource_perform(top, "reset_peaks");
  above.visit = top->ops->visit(top->self, count_visit, NULL);
  snprintf(option, sizeof option, "devices/0/%s/maximum_size", hipmm_resource_type(top));
  above.set = hipmm_set(option, "300MiB");
  above.deallocate = hipmm_deallocate(NULL, above.block, MIB / 4, NULL); /* on another stream */
  above.find = top->ops->find ? top->ops->find(top->self, above.block, &found) : HIPMM_OK;
  above.locate = top->ops->locate ? top->ops->locate(top->self, above.block, &location) : HIPMM_OK;
  above.is_covered = top->ops->covers && top->ops->covers(top->self, above.block);
  above.allocate = hipmm_allocate(NULL, MIB / 4, stream, &ptr);
}

/* Up to 1 MiB. */
static enum hipmm_status allocate_below(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  (void)unused, (void)alignment, (void)stream;
  if (above.top) use_all_above(above.top);
  if (above.given_bytes + bytes > MIB) return HIPMM_E_LIMIT;
  above.given_bytes += bytes;
  return fixture_hip()->Malloc(ptr_out, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static void free_below(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)alignment, (void)stream;
  above.given_bytes -= bytes;
  if (fixture_hip()->Free(ptr)) print_error("a block is lost\n");
}

/* Each allocates until there is no more. The stream is known above, and has free blocks. */
static void is_refused_by_all_that_lock_above_it(void **state)
{
  static const struct {
    const char *type, *options;
    enum { EACH_OP, NO_ACTION, ALLOCATION } refuses;
    bool has_maximum, finds;
  } tops[] = {
      {"pool", "", EACH_OP, true, false},
      {"pool", ", 'growth': 'segments'", EACH_OP, true, false},
      {"arena", "", EACH_OP, true, false},
      {"fixed_size", ", 'block_size': '256KiB', 'blocks_per_chunk': 1", EACH_OP, false, false},
      {"monotonic", "", EACH_OP, true, true},
      {"binning", ", 'bins': [{'size': '256KiB'}], 'blocks_per_chunk': 1", NO_ACTION, false, false},
      {"thread_safe", "", ALLOCATION, false, true},
  };
  const struct hipmm_allocator allocator = {sizeof allocator, allocate_below, free_below, NULL};
  (void)state;
  needs_software();
  assert_ok(hipmm_allocator_register("below", &allocator));
  for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
    char text[300];
    void *blocks[8], *ptr = NULL;
    int n = 0;
    snprintf(text, sizeof text, "'stack': [{'type': '%s'%s}, {'type': 'callback', 'allocator': 'below'}]", tops[i].type,
             tops[i].options);
    memset(&above, 0, sizeof above);
    fixture_start(text);
    hipmm_stream_t stream = fixture_stream();
    fixture_free(fixture_allocate(MIB / 4, stream), MIB / 4, stream);
    above.stream = stream;
    above.value = tops[i].refuses == NO_ACTION ? "bins_live_bytes" : "live_bytes";
    above.block = fixture_allocate(MIB / 4, stream);
    above.top = fixture_resource(tops[i].type);
    while (n < 8 && !hipmm_allocate(NULL, MIB / 4, stream, &ptr)) blocks[n++] = ptr;
    assert_in_range(n, 1, 3);
    assert_int_equal(above.allocate, HIPMM_E_STATE);
    assert_int_equal(above.deallocate, HIPMM_E_STATE);
    assert_true(!tops[i].has_maximum || (above.set == HIPMM_E_STATE && !above.is_covered));
    assert_true(!tops[i].finds || above.find == HIPMM_E_STATE);
    bool refuses_others = tops[i].refuses != ALLOCATION;
    assert_true(!refuses_others || (above.trim == HIPMM_E_STATE && above.visit == HIPMM_E_STATE));
    assert_true(!refuses_others || (above.query == HIPMM_E_STATE && !above.hip_calls && !above.visited));
    assert_true(tops[i].refuses != EACH_OP || above.perform == HIPMM_E_STATE);
    fixture_free(above.block, MIB / 4, stream);
    while (n) fixture_free(blocks[--n], MIB / 4, stream);
    fixture_free(fixture_allocate(MIB / 4, stream), MIB / 4, stream);
    fixture_drop_stream(stream);
    assert_ok(hipmm_finalize());
  }
}

/* Another resource is no way round: only the same one is refused. */
static void lets_the_program_use_other_resources(void **state)
{
  (void)state;
  fixture_start("'resources': {'plain': {'type': 'device'}, 'ours': {'type': 'callback', 'allocator': 'program'}}, "
                "'devices': {'default': 'ours', '1': 'plain'}");
  needs_devices(2);
  assert_ok(hipmm_resource_get_for_device(1, &program.resource));
  program.mistake = COMES_BACK;
  program.inner = HIPMM_E_INTERNAL;
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(program.inner);
  program.mistake = NONE;
  hipmm_resource_release(program.resource);
  assert_ok(hipmm_finalize()); /* takes the inner block with it */
}

static void needs_functions_that_are_registered(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'callback', 'allocator': 'programs'}]"), HIPMM_E_CONFIG);
  assert_message("program");
  hipmm_finalize();
  assert_status(fixture_try("", "'stack': ['callback']"), HIPMM_E_CONFIG);
  assert_message("allocator");
}

static void use_each_op(void)
{
  void *ptr = NULL;
  if (!hipmm_allocate(NULL, 1000, NULL, &ptr)) hipmm_deallocate(NULL, ptr, 1000, NULL);
  if (!hipmm_allocate(NULL, MIB, NULL, &ptr)) hipmm_deallocate(NULL, ptr, 0, NULL);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  assert_true(fixture_fail_each_call("", graph, use_each_op) > 5);
  assert_int_equal(program.live, 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(gives_the_programs_memory),
      TEST(passes_on_alignments_and_streams),
      TEST(asks_nobody_for_zero_bytes),
      TEST(refuses_what_no_memory_can_give),
      TEST(refuses_frees_that_are_wrong),
      TEST(works_on_its_own_device),
      TEST(frees_at_the_end_what_was_left),
      TEST(waits_at_the_end_for_work),
      TEST(serves_many_threads),
      TEST(shows_its_blocks_in_order),
      TEST(stands_under_a_pool),
      TEST(stands_under_a_pool_with_percentages),
      TEST(refuses_what_the_program_does_wrong),
      TEST(refuses_calls_that_come_back),
      TEST(is_refused_by_all_that_lock_above_it),
      TEST(lets_the_program_use_other_resources),
      TEST(needs_functions_that_are_registered),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
