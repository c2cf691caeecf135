/* SPDX-License-Identifier: MIT */
/* test_captures.c: random allocations on a stream while a graph is captured from it, and on another in another thread,
 * with little memory: nothing ends the capture, and what it fills holds that when the graph has run. */
#include "../support/captures.h"
#include "../support/graph_functions.h"
#include "../support/random.h"
#include "../support/stream_watch.h"

#include <hipmm/memory.h>
#include <hipmm/stream.h>
#include <stdio.h>

enum { MOST = 24, STEPS_BEFORE = 60, STEPS = 120, SEEDS = 2 };

static const size_t most_bytes = 3 * MIB;

struct row {
  const char *text, *graph;
  bool retains; /* the streams, as the hooks of frameworks do. Else only the caller's own is known to be captured */
  bool waits;   /* with every allocation for who used the memory before: what cannot wait is refused */
};

struct block {
  void *ptr;
  size_t bytes;
  unsigned char value;
};

/* What a thread does on a stream. */
struct worker {
  hipmm_stream_t stream;
  uint64_t random;
  unsigned count, allocated;
  struct block blocks[MOST];
};

static struct worker captured, other;
static const struct row *row; /* under test */

static int allocate_one(struct worker *worker)
{
  struct block *block = &worker->blocks[worker->count];
  block->bytes = 1 + random_below(&worker->random, random_below(&worker->random, 4) ? 4096 : most_bytes);
  block->value = (unsigned char)random_below(&worker->random, 256);
  enum hipmm_status status = hipmm_allocate(NULL, block->bytes, worker->stream, &block->ptr);
  if (status) return !hipmm_is_out_of_memory(status) && !(row->waits && status == HIPMM_E_STATE);
  worker->count++;
  worker->allocated++;
  return fixture_hip()->MemsetAsync(block->ptr, block->value, block->bytes, worker->stream) != 0;
}

static int free_one(struct worker *worker)
{
  unsigned i = (unsigned)random_below(&worker->random, worker->count);
  struct block block = worker->blocks[i];
  worker->blocks[i] = worker->blocks[--worker->count];
  return hipmm_deallocate(NULL, block.ptr, block.bytes, worker->stream) != HIPMM_OK;
}

/* Returns what failed. */
static int step(struct worker *worker)
{
  bool allocates = !worker->count || (worker->count < MOST && random_below(&worker->random, 100) < 55);
  return allocates ? allocate_one(worker) : free_one(worker);
}

static void go_on_elsewhere(int *failures)
{
  for (int i = 0; i < STEPS; i++) *failures += step(&other);
}

static void check_and_free(struct worker *worker)
{
  for (unsigned i = 0; i < worker->count; i++) {
    const struct block *block = &worker->blocks[i];
    assert_true(fixture_holds(block->ptr, block->value, block->bytes));
    assert_ok(hipmm_deallocate(NULL, block->ptr, block->bytes, worker->stream));
  }
  worker->count = 0;
}

static void start(unsigned seed)
{
  fixture_start(row->graph);
  captured = (struct worker){.stream = fixture_stream(), .random = seed};
  other = (struct worker){.stream = fixture_stream(), .random = seed + 100};
  if (row->retains) assert_ok(hipmm_stream_retain(0, captured.stream));
  if (row->retains) assert_ok(hipmm_stream_retain(0, other.stream));
  for (int i = 0; i < STEPS_BEFORE; i++) assert_int_equal(step(&captured) + step(&other), 0);
  while (captured.count) assert_int_equal(free_one(&captured), 0); /* so that all that it has is what it captures */
}

static void capture(void)
{
  struct hipmm_resource *top;
  assert_ok(hipmm_resource_get_for_device(0, &top));
  capture_begin(captured.stream);
  if (row->retains) fixture_start_threads(1, go_on_elsewhere);
  int failures = 0, untimely = 0;
  for (int i = 0; i < STEPS; i++) {
    failures += step(&captured);
    if (row->retains && i % 30 == 0) untimely += hipmm_resource_trim(top, 0) != HIPMM_E_STATE;
  }
  if (row->retains) fixture_join_threads();
  assert_true(capture_end());
  assert_int_equal(failures + untimely, 0);
  assert_in_range(captured.allocated, STEPS / 8, STEPS + STEPS_BEFORE);
  hipmm_resource_release(top);
}

static void goes_on(void **state)
{
  row = *state;
  for (unsigned seed = 1; seed <= SEEDS; seed++) {
    start(seed);
    capture();
    capture_replay(captured.stream);
    check_and_free(&captured);
    check_and_free(&other);
    capture_forget();
    for (int i = 0; i < STEPS_BEFORE; i++) assert_int_equal(step(&captured) + step(&other), 0);
    check_and_free(&captured);
    check_and_free(&other);
    fixture_drop_stream(captured.stream);
    fixture_drop_stream(other.stream);
    assert_int_equal(fixture_teardown(NULL), 0);
  }
}

/* What a source gives back goes to the driver, after a wait that the capture does not survive. */
static void is_not_ended_by_a_free_to_the_driver(void **state)
{
  (void)state;
  fixture_start("'stack': ['device']");
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(MIB, stream);
  capture_begin(stream);
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 0x5A, MIB, stream), 0);
  assert_status(hipmm_deallocate(NULL, ptr, MIB, stream), HIPMM_E_STATE);
  assert_message("is being captured");
  assert_true(capture_end());
  capture_replay(stream);
  assert_true(fixture_holds(ptr, 0x5A, MIB));
  fixture_free(ptr, MIB, stream);
  fixture_drop_stream(stream);
}

/* Another pool has enough idle memory, but only a wait would tell that no work uses it any more. */
static void is_not_ended_by_a_search_in_other_pools(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start("'resources': {'memory': {'type': 'device'}, 'other': {'type': 'pool', 'upstream': 'memory'}, 'pool': "
                "{'type': 'pool', 'upstream': 'memory'}}, 'devices': {'default': 'pool'}");
  size_t free_bytes, total_bytes;
  assert_int_equal(fixture_hip()->MemGetInfo(&free_bytes, &total_bytes), 0);
  hipmm_stream_t stream = fixture_stream(), busy = fixture_stream();
  struct hipmm_resource *keeper = fixture_resource("other");
  void *pending = NULL;
  size_t most = free_bytes / 4 * 3;
  assert_ok(hipmm_allocate(keeper, most, busy, &pending));
  assert_int_equal(fixture_hip()->MemsetAsync(pending, 1, most, busy), 0);
  assert_ok(hipmm_deallocate(keeper, pending, most, busy));
  capture_begin(stream);
  enum hipmm_status status = hipmm_allocate(NULL, most, stream, &ptr);
  assert_true(capture_end());
  if (!status) fixture_free(ptr, most, stream); /* the work was done already */
  fixture_drop_stream(busy);
  fixture_drop_stream(stream);
}

/* The default stream would wait for a blocking stream, and work on it would end that stream's capture. It is the default
 * stream of the resource's device, whichever device is current. */
static void is_not_ended_from_another_device(void **state)
{
  static const char *const stacks[] = {
      "{'type': 'pool', 'growth': 'mapped', 'record': 'on_free'}",
      "{'type': 'pool', 'growth': 'segments', 'record': 'lazy'}", "{'type': 'arena', 'record': 'on_free'}",
      "{'type': 'fixed_size', 'record': 'on_free'}", "{'type': 'monotonic', 'record': 'on_free'}"};
  const struct hipmm_hip *hip = fixture_hip();
  struct graph_functions graphs;
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
    char text[200];
    void *graph = NULL, *ptr = NULL;
    hipmm_stream_t stream, second_stream;
    struct hipmm_resource *top;
    snprintf(text, sizeof text, "'stack': [%s, 'device']", stacks[i]);
    fixture_start(text);
    assert_true(graph_functions_find(&graphs));
    assert_ok(hipmm_resource_get_for_device(0, &top));
    assert_int_equal(hip->StreamCreateWithFlags(&stream, 0), 0);
    assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &second_stream));
    void *first = fixture_allocate(MIB, NULL), *second = fixture_allocate(MIB, NULL);
    assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
    assert_int_equal(hip->SetDevice(1), 0);
    assert_ok(hipmm_deallocate(top, first, MIB, NULL));
    bool waits = hipmm_allocate(top, MIB, second_stream, &ptr) != HIPMM_OK; /* of `monotonic` */
    assert_status(hipmm_resource_trim(top, 0), HIPMM_E_STATE);
    assert_status(hipmm_allocate_sync(top, MIB, &second), HIPMM_E_STATE);
    assert_int_equal(hip->SetDevice(0), 0);
    assert_int_equal(graphs.end(stream, &graph), 0);
    assert_int_equal(graphs.destroy_graph(graph), 0);
    if (!waits) assert_ok(hipmm_deallocate(top, ptr, MIB, second_stream));
    fixture_free(second, MIB, NULL);
    hipmm_resource_release(top);
    assert_ok(hipmm_stream_destroy(second_stream));
    fixture_drop_stream(stream);
    assert_ok(hipmm_finalize());
  }
  fixture_start("'stack': ['device']"); /* for the teardown */
}

/* Whichever function waits, of a plugin or of the core: the table of HIP's functions does not let it. */
static void is_not_ended_by_a_wait_for_the_device(void **state)
{
  enum { MADE, RETAINED, BLOCKING, WAYS };
  const struct hipmm_hip *hip = fixture_hip();
  struct graph_functions graphs;
  (void)state;
  needs_software();
  fixture_start("'stack': ['async']");
  assert_true(graph_functions_find(&graphs));
  for (int way = 0; way < WAYS; way++) {
    void *graph = NULL;
    hipmm_stream_t stream;
    if (way == MADE) assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
    if (way != MADE) assert_int_equal(hip->StreamCreateWithFlags(&stream, way == RETAINED), 0);
    if (way == RETAINED) assert_ok(hipmm_stream_retain(0, stream));
    fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
    assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
    assert_int_equal(hip->DeviceSynchronize(), HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_status(hipmm_resource_trim(NULL, 0), HIPMM_E_STATE);
    assert_int_equal(hip->SetDevice(1), 0);
    assert_int_equal(hip->DeviceSynchronize(), 0);
    assert_int_equal(hip->SetDevice(0), 0);
    assert_int_equal(graphs.end(stream, &graph), 0);
    assert_int_equal(graphs.destroy_graph(graph), 0);
    assert_ok(hipmm_resource_trim(NULL, 0));
    if (way == RETAINED) assert_ok(hipmm_stream_retire(0, stream));
    if (way == MADE)
      assert_ok(hipmm_stream_destroy(stream));
    else
      fixture_drop_stream(stream);
  }
}

/* Memory that is idle, or would be after a wait, is not enough by itself in a capture: the message says so. */
static void is_the_reason_that_a_message_gives(void **state)
{
  struct graph_functions graphs;
  hipmm_stream_t stream, second;
  void *graph = NULL, *ptr = NULL;
  (void)state;
  needs_software();
  fixture_start_with("'scheduler': 'stepped'", "'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']");
  assert_true(graph_functions_find(&graphs));
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &second));
  void *busy = fixture_allocate(200 * MIB, second);
  assert_int_equal(fixture_hip()->MemsetAsync(busy, 1, MIB, second), 0);
  fixture_free(busy, 200 * MIB, second);
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  assert_status(hipmm_allocate(NULL, 220 * MIB, stream, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message(
      "; pool: cannot allocate 220 MiB: holds 200 MiB, 200 MiB free, and waits for no stream while one is being "
      "captured; the upstream cannot provide more; device 0 has 256 MiB");
  assert_message(
      "; what is free and idle would be enough, but the stream is being captured, and hipmm waits for no work "
      "then: trim before the capture begins, or allocate after it");
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  fixture_free(fixture_allocate(220 * MIB, stream), 220 * MIB, stream);
  assert_ok(hipmm_stream_destroy(stream));
  assert_ok(hipmm_stream_destroy(second));
}

/* A stream is not asked about any more once it is retired, or hipmm is finalised. */
static void no_retired_stream_is_asked_about(void **state)
{
  (void)state;
  for (int ends = 0; ends < 2; ends++) {
    fixture_start("'stack': ['device']");
    hipmm_stream_t stream = fixture_stream();
    assert_ok(hipmm_stream_retain(0, stream));
    assert_ok(ends ? hipmm_finalize() : hipmm_stream_retire(0, stream));
    fixture_drop_stream(stream);
    if (ends) fixture_start("'stack': ['device']");
    watch_begin();
    watch_stream(stream);
    assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
    assert_int_equal(watch_count(), 0);
    fixture_take_hip_back();
    assert_ok(hipmm_finalize());
  }
  fixture_start("'stack': ['device']"); /* for the teardown */
}

/* A stream that waits for an event of a capture takes part in it: its work would not run. */
static void draws_no_other_stream_in(void **state)
{
  static const char *const stacks[] = {
      "{'type': 'pool', 'growth': 'mapped', 'maximum_size': '4MiB'}",
      "{'type': 'pool', 'growth': 'segments', 'maximum_size': '4MiB'}",
      "{'type': 'pool', 'maximum_size': '4MiB', 'record': 'on_free'}",
      "{'type': 'arena', 'maximum_size': '4MiB'}",
      "{'type': 'arena', 'maximum_size': '4MiB', 'record': 'on_free'}",
      "{'type': 'monotonic', 'maximum_size': '4MiB'}",
      "{'type': 'fixed_size', 'block_size': '3MiB', 'blocks_per_chunk': 1}, {'type': 'limiting', 'limit': '4MiB'}"};
  const struct hipmm_hip *hip = fixture_hip();
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
    char text[200];
    void *ptr = NULL;
    hipmm_stream_t stream, second_stream;
    int status = -1;
    snprintf(text, sizeof text, "'stack': [%s, 'device']", stacks[i]);
    fixture_start_with("'scheduler': 'stepped', 'seed': 7", text);
    assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
    assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &second_stream));
    capture_at_record(stream);
    fixture_free(fixture_allocate(3 * MIB, stream), 3 * MIB, stream);
    enum hipmm_status outcome = hipmm_allocate(NULL, 3 * MIB, second_stream, &ptr);
    fixture_take_hip_back();
    assert_int_equal(hip->StreamIsCapturing(second_stream, &status), 0);
    assert_int_equal(status, 0);
    capture_end_at_record(stream);
    if (outcome) assert_ok(hipmm_allocate(NULL, 3 * MIB, second_stream, &ptr));
    fixture_free(ptr, 3 * MIB, second_stream);
    assert_ok(hipmm_stream_destroy(stream));
    assert_ok(hipmm_stream_destroy(second_stream));
    assert_ok(hipmm_finalize());
  }
  fixture_start("'stack': ['device']"); /* for the teardown */
}

#define POOL(growth, record) \
  "'stack': [{'type': 'pool', 'growth': '" growth "', 'record': '" record "', 'maximum_size': '16MiB'}, 'device']"
#define BINS                                                                                                  \
  "'stack': [{'type': 'binning', 'bins': [{'size': '4KiB'}, {'size': '64KiB'}]}, {'type': 'pool', 'growth': " \
  "'mapped', 'maximum_size': "                                                                                \
  "'16MiB'}, 'device']"

static const struct row rows[] = {
    {.text = "pool, mapped, auto", .graph = POOL("mapped", "auto"), .retains = true},
    {.text = "pool, mapped, lazy", .graph = POOL("mapped", "lazy"), .retains = true},
    {.text = "pool, mapped, on_free", .graph = POOL("mapped", "on_free"), .retains = true},
    {.text = "pool, mapped, streams not retained", .graph = POOL("mapped", "auto")},
    {.text = "pool, segments, auto", .graph = POOL("segments", "auto"), .retains = true},
    {.text = "pool, segments, lazy", .graph = POOL("segments", "lazy"), .retains = true},
    {.text = "pool, segments, on_free", .graph = POOL("segments", "on_free"), .retains = true},
    {.text = "pool, segments, streams not retained", .graph = POOL("segments", "auto")},
    {.text = "arena", .graph = "'stack': [{'type': 'arena', 'maximum_size': '16MiB'}, 'device']", .retains = true},
    {.text = "arena, streams not retained", .graph = "'stack': [{'type': 'arena', 'maximum_size': '16MiB'}, 'device']"},
    {.text = "fixed_size",
     .graph = "'stack': [{'type': 'fixed_size', 'block_size': '3MiB'}, 'device']",
     .retains = true},
    {.text = "monotonic",
     .graph = "'stack': [{'type': 'monotonic', 'maximum_size': '96MiB'}, 'device']",
     .retains = true,
     .waits = true},
    {.text = "binning over pool", .graph = BINS, .retains = true},
    {.text = "guard over pool",
     .graph = "'stack': ['guard', {'type': 'pool', 'growth': 'mapped'}, 'device']",
     .retains = true},
    {.text = "prefetch over pool of managed memory",
     .graph = "'stack': ['prefetch', 'pool', 'managed']",
     .retains = true},
};

int main(void)
{
  enum { COUNT = sizeof rows / sizeof *rows };
  struct CMUnitTest tests[COUNT + 7] = {
      [COUNT] = {"device: a free to the driver is refused", is_not_ended_by_a_free_to_the_driver, fixture_setup,
                 capture_teardown, NULL},
      [COUNT + 1] = {"calls while another device is current", is_not_ended_from_another_device, fixture_setup,
                     fixture_teardown, NULL},
      [COUNT + 2] = {"a capture that begins meanwhile", draws_no_other_stream_in, fixture_setup, fixture_teardown,
                     NULL},
      [COUNT + 3] = {"waits for the device", is_not_ended_by_a_wait_for_the_device, fixture_setup, fixture_teardown,
                     NULL},
      [COUNT + 4] = {"waits after a stream's end", no_retired_stream_is_asked_about, fixture_setup, fixture_teardown,
                     NULL},
      [COUNT + 5] = {"idle memory of another pool", is_not_ended_by_a_search_in_other_pools, fixture_setup,
                     capture_teardown, NULL},
      [COUNT + 6] = {"a message names the capture", is_the_reason_that_a_message_gives, fixture_setup, fixture_teardown,
                     NULL}};
  for (int i = 0; i < COUNT; i++)
    tests[i] = (struct CMUnitTest){rows[i].text, goes_on, fixture_setup, capture_teardown, (void *)(uintptr_t)&rows[i]};
  return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
