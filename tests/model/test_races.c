/* SPDX-License-Identifier: MIT */
/* test_races.c: the race detector of the software device: each kind of mistake is reported in a run in which nothing
 * goes wrong, with its kind, resource, call and both call stacks; and nothing is reported of programs that are
 * right. */
#include "../../core/runtime/hip.h"
#include "../support/fixture.h"

#include <hipmm/stream.h>
#include <hipmm/torch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 5000, TO_HOST = 2, WITHIN_DEVICE = 3 };

static const char options[] = "'check_streams': true, 'host_access': false";
static const char pool[] = "'stack': ['pool', 'device']";
static const char wrong_order[] =
    "'resources': {'memory': {'type': 'device'}, 'divider': {'type': 'no_wait_plugin', 'upstream': 'memory', "
    "'mistake': 'order'}}, 'devices': {'default': 'divider'}";
static const char wrong_place[] = "'stack': [{'type': 'no_wait_plugin', 'mistake': 'overlap'}, 'device']";

/* ---- What was reported ---- */

typedef const char *report_function(size_t index, const char **kind_out);

static size_t n_seen;

static report_function *reports(void)
{
  void *address = hip_symbol("hipmm_software_race");
  report_function *function;
  memcpy(&function, &address, sizeof function);
  assert_non_null(function);
  return function;
}

static size_t count_reports(void)
{
  size_t n = n_seen;
  while (reports()(n, NULL)) n++;
  return n;
}

static void start(const char *graph)
{
  needs_software();
  fixture_start_with(options, graph);
  n_seen = count_reports();
}

/* Both call stacks begin where the program calls, and not within hipmm or the detector. */
static void assert_begins_in_program(const char *text)
{
  for (const char *site = strstr(text, "\n  now: "); site; site = strstr(site + 1, "\n  before: ")) {
    char frame[1000] = "";
    sscanf(site + 1, "%*[^\n]\n%999[^\n]", frame);
    assert_null(strstr(frame, "/libhipmm.so"));
    assert_null(strstr(frame, "/software.so"));
  }
}

/* One report since the start, of this kind, that has all these parts. */
static void assert_found(const char *kind, const char *const *parts)
{
  const char *found = "nothing", *text = reports()(n_seen, &found);
  assert_string_equal(found, kind);
  for (; *parts; parts++) assert_contains(text, *parts);
  assert_begins_in_program(text);
  if (reports()(n_seen + 1, NULL)) print_error("a second report: %s", reports()(n_seen + 1, NULL));
  assert_int_equal(count_reports(), n_seen + 1);
}

#define assert_report(kind, ...) assert_found(kind, (const char *const[]){__VA_ARGS__, NULL})

static void assert_nothing_found(void)
{
  if (reports()(n_seen, NULL)) print_error("%s", reports()(n_seen, NULL));
  assert_int_equal(count_reports(), n_seen);
}

/* ---- What programs do ---- */

static void fill(void *ptr, size_t bytes, hipmm_stream_t stream)
{
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 7, bytes, stream), 0);
}

static void read_out(const void *ptr, size_t bytes)
{
  static unsigned char buffer[1 << 16];
  assert_int_equal(fixture_hip()->Memcpy(buffer, ptr, bytes, TO_HOST), 0);
}

/* The next work of `after` comes after what `before` has by now. */
static void order(hipmm_stream_t before, hipmm_stream_t after)
{
  hipmm_hip_event_t event;
  assert_int_equal(fixture_hip()->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING), 0);
  assert_int_equal(fixture_hip()->EventRecord(event, before), 0);
  assert_int_equal(fixture_hip()->StreamWaitEvent(after, event, 0), 0);
  assert_int_equal(fixture_hip()->EventDestroy(event), 0);
}

static void wait_for_all(void)
{
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
}

/* ---- Mistakes of programs ---- */

static void tells_of_work_after_the_free(void **state)
{
  (void)state;
  start(pool);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  unsigned char *ptr = fixture_allocate(BYTES, stream);
  fixture_free(ptr, BYTES, stream);
  wait_for_all(); /* which helps nothing */
  fill(ptr + 1000, 100, other);
  assert_report("use_after_free", "100 bytes", "offset 1000 of a block of 5000 bytes of resource \"pool\"",
                "now: hipMemsetAsync on stream", "before: free on stream", "#");
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

static void tells_of_a_second_free(void **state)
{
  (void)state;
  start(pool);
  void *ptr = fixture_allocate(BYTES, NULL);
  fixture_free(ptr, BYTES, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, BYTES, NULL), HIPMM_E_POINTER);
  assert_report("double_free", "block of 5000 bytes of resource \"pool\"", "now: free on the default stream",
                "before: free on the default stream of device 0");
}

static void tells_of_bytes_that_were_never_written(void **state)
{
  (void)state;
  start(pool);
  unsigned char *ptr = fixture_allocate(BYTES, NULL), *copy = fixture_allocate(BYTES, NULL);
  fill(ptr, 1000, NULL);
  fill(ptr + 1100, BYTES - 1100, NULL);
  assert_int_equal(fixture_hip()->Memcpy(copy, ptr, BYTES, WITHIN_DEVICE), 0); /* reads nothing out */
  read_out(copy, 1000);
  read_out(copy + 1100, BYTES - 1100);
  assert_nothing_found();
  read_out(copy + 500, 1000);
  assert_report("never_written", "100 bytes at", "offset 1000 of a block", "hipMemcpy on the default stream",
                "before: allocation on");
  fixture_free(ptr, BYTES, NULL);
  fixture_free(copy, BYTES, NULL);
}

static void tells_of_a_free_that_other_work_is_not_before(void **state)
{
  (void)state;
  start(pool);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  unsigned char *ptr = fixture_allocate(BYTES, stream);
  order(stream, other);
  fill(ptr, BYTES, other);
  fixture_free(ptr, BYTES, stream);
  assert_report("free_in_use", "5000 bytes of resource \"pool\"", "now: free on", "before: hipMemsetAsync on stream");
  wait_for_all();
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

static void tells_of_work_past_the_end_within_a_pools_chunk(void **state)
{
  (void)state;
  start(pool);
  unsigned char *first = fixture_allocate(BYTES, NULL), *second = fixture_allocate(BYTES, NULL);
  fill(first + 4000, 1001, NULL);
  assert_report("past_end", "1001 bytes", "offset 4000 of a block of 5000 bytes", "before: allocation on");
  fixture_free(first, BYTES, NULL);
  fixture_free(second, BYTES, NULL);
}

/* The block is for `stream`, which comes after the free before; `other` does not. */
static void tells_of_work_that_does_not_wait_for_the_allocation(void **state)
{
  (void)state;
  start(pool);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  void *ptr = fixture_allocate(BYTES, stream);
  fill(ptr, BYTES, stream);
  fixture_free(ptr, BYTES, stream);
  assert_ptr_equal(fixture_allocate(BYTES, stream), ptr);
  fill(ptr, BYTES, other);
  assert_report("early_use", "now: hipMemsetAsync on stream", "before: allocation on stream");
  order(other, stream);
  fixture_free(ptr, BYTES, stream);
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

/* ---- Two streams that use one block ---- */

/* The streams; a block of BYTES bytes that both are ordered after; and pinned memory. */
struct two {
  hipmm_stream_t a, b;
  unsigned char *ptr, *pinned;
};

static void read_on(const struct two *two, const void *ptr, size_t bytes, hipmm_stream_t stream)
{
  assert_int_equal(fixture_hip()->MemcpyAsync(two->pinned, ptr, bytes, TO_HOST, stream), 0);
}

/* Five rows, 1000 bytes apart. */
static void fill_columns(void *ptr, size_t width, hipmm_stream_t stream)
{
  void *address = hip_symbol("hipMemset2DAsync");
  int (*function)(void *, size_t, int, size_t, size_t, hipmm_stream_t);
  memcpy(&function, &address, sizeof function);
  assert_int_equal(function(ptr, 1000, 3, width, 5, stream), 0);
}

static void both_write(const struct two *two)
{
  fill(two->ptr, BYTES, two->a);
  fill(two->ptr, BYTES, two->b);
}

static void reads_what_the_other_writes(const struct two *two)
{
  fill(two->ptr + 100, 100, two->a);
  read_on(two, two->ptr + 199, 1, two->b);
}

static void writes_what_the_other_reads(const struct two *two)
{
  read_on(two, two->ptr, BYTES, two->a);
  fill(two->ptr + BYTES - 1, 1, two->b);
}

static void is_ordered_before_the_second_write(const struct two *two)
{
  fill(two->ptr, BYTES, two->a);
  order(two->a, two->b);
  fill(two->ptr, 10, two->a);
  read_on(two, two->ptr, BYTES, two->b);
}

static void is_ordered_the_other_way_round(const struct two *two)
{
  fill(two->ptr, BYTES, two->a);
  order(two->b, two->a);
  fill(two->ptr, BYTES, two->b);
}

static void a_read_hides_no_write(const struct two *two)
{
  fill(two->ptr, BYTES, two->a);
  order(two->a, two->b);
  read_on(two, two->ptr, BYTES, two->b);
  fill(two->ptr, BYTES, two->a);
}

static void columns_share_a_byte(const struct two *two)
{
  fill_columns(two->ptr, 501, two->a);
  fill_columns(two->ptr + 500, 500, two->b);
}

static void a_row_lies_in_the_others_columns(const struct two *two)
{
  fill_columns(two->ptr, 400, two->a);
  fill(two->ptr + 2390, 100, two->b);
}

static void halves_are_apart(const struct two *two)
{
  fill(two->ptr, BYTES / 2, two->a);
  fill(two->ptr + BYTES / 2, BYTES / 2, two->b);
}

static void columns_are_apart(const struct two *two)
{
  fill_columns(two->ptr, 500, two->a);
  fill_columns(two->ptr + 500, 500, two->b);
  fill_columns(two->ptr + 3, 7, two->a);
}

static void a_row_lies_between_the_others_columns(const struct two *two)
{
  fill_columns(two->ptr, 400, two->a);
  fill(two->ptr + 2400, 600, two->b);
}

static void both_read(const struct two *two)
{
  fill(two->ptr, BYTES, two->a);
  order(two->a, two->b);
  read_on(two, two->ptr, BYTES, two->a);
  read_on(two, two->ptr, BYTES, two->b);
}

static void they_take_turns(const struct two *two)
{
  for (int i = 0; i < 10; i++) {
    fill(two->ptr, BYTES, two->a);
    order(two->a, two->b);
    fill(two->ptr + 100, 100, two->b);
    order(two->b, two->a);
  }
}

static void the_host_waits(const struct two *two)
{
  fill(two->ptr, BYTES, two->a);
  assert_int_equal(fixture_hip()->StreamSynchronize(two->a), 0);
  fill(two->ptr, BYTES, two->b);
  wait_for_all();
  read_on(two, two->ptr, BYTES, two->a);
}

/* By way of a third stream. */
static void order_is_passed_on(const struct two *two)
{
  hipmm_stream_t third = fixture_stream();
  fill(two->ptr, BYTES, two->a);
  order(two->a, third);
  order(third, two->b);
  fill(two->ptr, BYTES, two->b);
  fixture_drop_stream(third);
}

static void a_prefetch_changes_nothing(const struct two *two)
{
  int device = 0;
  assert_int_equal(fixture_hip()->GetDevice(&device), 0);
  assert_int_equal(fixture_hip()->MemPrefetchAsync(two->ptr, BYTES, device, two->a), 0);
  fill(two->ptr, BYTES, two->b);
}

/* Each judged by what it does between the order after the allocation and a wait for the device. */
static void judges_programs_of_two_streams(void **state)
{
  static const char managed[] = "'stack': ['pool', 'managed']";
  static const struct {
    void (*run)(const struct two *two);
    const char *kind; /* NULL: right */
    const char *graph;
  } programs[] = {
      {both_write, "unordered_use", pool},
      {reads_what_the_other_writes, "unordered_use", pool},
      {writes_what_the_other_reads, "unordered_use", pool},
      {is_ordered_before_the_second_write, "unordered_use", pool},
      {is_ordered_the_other_way_round, "unordered_use", pool},
      {a_read_hides_no_write, "unordered_use", pool},
      {columns_share_a_byte, "unordered_use", pool},
      {a_row_lies_in_the_others_columns, "unordered_use", pool},
      {halves_are_apart, NULL, pool},
      {columns_are_apart, NULL, pool},
      {a_row_lies_between_the_others_columns, NULL, pool},
      {both_read, NULL, pool},
      {they_take_turns, NULL, pool},
      {the_host_waits, NULL, pool},
      {order_is_passed_on, NULL, pool},
      {a_prefetch_changes_nothing, NULL, managed},
  };
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    start(programs[i].graph);
    struct two two = {.a = fixture_stream(), .b = fixture_stream()};
    two.ptr = fixture_allocate(BYTES, two.a);
    assert_int_equal(fixture_hip()->HostMalloc((void **)&two.pinned, BYTES, HIPMM_HIP_HOST_MALLOC_PORTABLE), 0);
    fill(two.ptr, BYTES, two.a);
    order(two.a, two.b);
    programs[i].run(&two);
    wait_for_all();
    fixture_free(two.ptr, BYTES, two.a);
    print_message("# program %zu\n", i);
    if (programs[i].kind)
      assert_report(programs[i].kind, "block of 5000 bytes", "now: hip", "before: hip");
    else
      assert_nothing_found();
    assert_int_equal(fixture_hip()->HostFree(two.pinned), 0);
    fixture_drop_stream(two.a);
    fixture_drop_stream(two.b);
    assert_int_equal(fixture_teardown(state), 0);
  }
}

/* One stream writes a block in 200 parts. What is forgotten of them costs no report of a free that is too early, and makes
 * none of one that is right. */
static void knows_more_parts_of_a_block_than_it_keeps(void **state)
{
  (void)state;
  start(pool);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  for (int is_ordered = 1; is_ordered >= 0; is_ordered--) {
    unsigned char *ptr = fixture_allocate(BYTES, stream);
    order(stream, other);
    for (size_t i = 0; i < 200; i++) fill(ptr + i * 20, 20, other);
    fill(ptr + 4500, 20, stream); /* none of the parts */
    if (is_ordered) order(other, stream);
    fixture_free(ptr, BYTES, stream);
    if (is_ordered) assert_nothing_found();
  }
  assert_report("free_in_use", "now: free on", "before: hipMemsetAsync on stream");
  wait_for_all();
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

/* ---- Mistakes of resources ---- */

static void tells_of_memory_that_is_reused_without_order(void **state)
{
  (void)state;
  start(wrong_order);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  void *ptr = fixture_allocate(BYTES, stream);
  fill(ptr, BYTES, stream);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream),
                   0); /* so the work is over: the order is missing all the same */
  fill(ptr, BYTES, stream);
  fixture_free(ptr, BYTES, stream);
  assert_ptr_equal(fixture_allocate(BYTES, other), ptr);
  assert_report("reuse", "resource \"divider\"", "now: allocation on stream", "before: free on stream");
  fixture_free(ptr, BYTES, other);
  wait_for_all();
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

static void tells_of_memory_that_is_given_out_twice(void **state)
{
  (void)state;
  start(wrong_place);
  void *blocks[64];
  for (int i = 0; i < 64; i++) blocks[i] = fixture_allocate(BYTES, NULL);
  assert_report("overlap", "a block of 5000 bytes of resource \"no_wait_plugin\"", "now: allocation",
                "before: allocation");
  for (int i = 0; i < 64; i++) fixture_free(blocks[i], BYTES, NULL);
}

/* ---- Right programs ---- */

static const char *const right[] = {
    pool,
    "'stack': [{'type': 'pool', 'growth': 'segments', 'record': 'on_free'}, 'device']",
    "'stack': ['statistics', 'arena', 'device']",
    "'stack': ['fixed_size', 'device']",
    "'stack': [{'type': 'binning', 'bins': [{'size': '8KiB'}]}, 'pool', 'device']",
    "'stack': [{'type': 'guard', 'quarantine_size': '1MiB'}, 'pool', 'device']",
    "'stack': ['monotonic', 'device']",
    "'stack': ['async']",
    "'stack': ['pool', 'async']",
    "'stack': ['device']",
    "'stack': ['pool', 'pinned']",
    "'stack': ['pool', 'managed']",
};

/* Blocks go from stream to stream, each time with an order between the two, or none at all, as the resource has to
 * see to. */
static void pass_blocks_on(hipmm_stream_t *streams, unsigned n)
{
  for (unsigned i = 0; i < 40; i++) {
    hipmm_stream_t stream = streams[i % n], other = streams[(i + 1 + i / n) % n];
    void *ptr = fixture_allocate(BYTES, stream);
    fill(ptr, BYTES, stream);
    if (stream != other && i % 3) order(stream, other);
    fixture_free(ptr, BYTES, i % 3 ? other : stream);
  }
}

static void tells_nothing_of_right_programs(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    hipmm_stream_t streams[5] = {NULL, HIPMM_PER_THREAD_STREAM};
    start(right[i]);
    for (int k = 2; k < 5; k++) streams[k] = fixture_stream();
    pass_blocks_on(streams, 5);
    for (int k = 2; k < 5; k++) fixture_drop_stream(streams[k]);
    for (int k = 2; k < 5; k++) streams[k] = fixture_stream(); /* with the same handles */
    pass_blocks_on(streams, 5);
    for (int k = 2; k < 5; k++) fixture_drop_stream(streams[k]);
    assert_ok(hipmm_trim(0));
    assert_nothing_found();
    assert_int_equal(fixture_teardown(state), 0);
  }
}

/* A blocking stream and the default stream wait for each other; the host waits in all the ways that there are. */
static void knows_all_ways_to_wait(void **state)
{
  (void)state;
  start(pool);
  const struct hipmm_hip *hip = fixture_hip();
  hipmm_hip_event_t event;
  hipmm_stream_t apart = fixture_stream(), blocking = NULL;
  assert_int_equal(hip->StreamCreateWithFlags(&blocking, 0), 0);
  assert_int_equal(hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING), 0);
  for (int way = 0; way < 7; way++) {
    hipmm_stream_t user = way < 2 ? blocking : apart;
    void *ptr = fixture_allocate(BYTES, way == 1 ? blocking : NULL);
    wait_for_all();
    fill(ptr, BYTES, way == 1 ? NULL : user);
    assert_int_equal(hip->EventRecord(event, user), 0);
    if (way == 2) assert_int_equal(hip->EventSynchronize(event), 0);
    if (way == 3) assert_int_equal(hip->StreamSynchronize(user), 0);
    if (way == 4) wait_for_all();
    while (way == 5 && hip->EventQuery(event)) continue;
    while (way == 6 && hip->StreamQuery(user)) continue;
    fixture_free(ptr, BYTES, way == 1 ? blocking : NULL);
  }
  assert_nothing_found();
  assert_int_equal(hip->EventDestroy(event), 0);
  fixture_drop_stream(apart);
  fixture_drop_stream(blocking);
}

/* The default stream passes on to blocking streams what it waits for, and they to it, without work of its own. */
static void knows_order_by_way_of_the_default_stream(void **state)
{
  (void)state;
  start(pool);
  hipmm_stream_t apart = fixture_stream(), blocking = NULL, third = NULL;
  assert_int_equal(fixture_hip()->StreamCreateWithFlags(&blocking, 0), 0);
  assert_int_equal(fixture_hip()->StreamCreateWithFlags(&third, 0), 0);
  for (int way = 0; way < 3; way++) {
    void *ptr = fixture_allocate(BYTES, way == 1 ? NULL : third);
    wait_for_all();
    fill(ptr, BYTES, apart);
    order(apart, way == 0 ? NULL : blocking);
    if (way == 2) read_out(ptr, BYTES);
    fixture_free(ptr, BYTES, way == 1 ? NULL : third);
  }
  assert_nothing_found();
  void *ptr = fixture_allocate(BYTES, third);
  wait_for_all();
  order(apart, NULL); /* too early */
  fill(ptr, BYTES, apart);
  fixture_free(ptr, BYTES, third);
  assert_report("free_in_use", "before: hipMemsetAsync on stream");
  wait_for_all();
  fixture_drop_stream(apart);
  fixture_drop_stream(blocking);
  fixture_drop_stream(third);
}

/* As PyTorch does it: a tensor of one stream is used on another, which is recorded, and freed by the first. */
static void knows_recorded_streams(void **state)
{
  (void)state;
  start(pool);
  hipmm_stream_t owner = fixture_stream(), other = fixture_stream();
  for (int i = 0; i < 8; i++) {
    void *ptr = hipmm_torch_malloc(BYTES, 0, owner);
    fill(ptr, BYTES, owner);
    order(owner, other);
    fill(ptr, BYTES, other);
    hipmm_torch_record_stream(ptr, other);
    hipmm_torch_free(ptr, BYTES, 0, owner);
  }
  assert_nothing_found();
  wait_for_all();
  fixture_drop_stream(owner);
  fixture_drop_stream(other);
}

static int call_hip(const char *name, void *first, void *second)
{
  void *address = hip_symbol(name);
  int (*function)(void *, void *);
  memcpy(&function, &address, sizeof function);
  return function(first, second);
}

static int instantiate(void **instance_out, void *graph)
{
  void *address = hip_symbol("hipGraphInstantiate");
  int (*function)(void **, void *, void *, char *, size_t);
  memcpy(&function, &address, sizeof function);
  return function(instance_out, graph, NULL, NULL, 0);
}

/* Memory that a capture allocates and frees, and memory that it only uses; the graph runs twice. */
static void knows_graphs(void **state)
{
  (void)state;
  void *graph = NULL, *instance = NULL;
  start(pool);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  void *kept = fixture_allocate(BYTES, stream);
  assert_int_equal(call_hip("hipStreamBeginCapture", stream, (void *)2), 0);
  for (int i = 0; i < 3; i++) {
    void *ptr = fixture_allocate(BYTES, stream);
    fill(ptr, BYTES, stream);
    assert_int_equal(fixture_hip()->MemcpyAsync(kept, ptr, BYTES, WITHIN_DEVICE, stream), 0);
    fixture_free(ptr, BYTES, stream);
  }
  assert_int_equal(call_hip("hipStreamEndCapture", stream, &graph), 0);
  assert_int_equal(instantiate(&instance, graph), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(call_hip("hipGraphLaunch", instance, stream), 0);
  order(stream, other);
  fixture_free(kept, BYTES, other);
  assert_nothing_found();
  wait_for_all();
  call_hip("hipGraphExecDestroy", instance, NULL);
  call_hip("hipGraphDestroy", graph, NULL);
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

/* ---- The rest ---- */

/* A mistake in a loop is one report, and what was reported is told once more, in one line, at the end. */
static int make_a_mistake_often(const void *unused)
{
  (void)unused;
  fixture_start_with(options, pool);
  void *ptr = NULL;
  for (int i = 0; i < 300; i++) {
    if (hipmm_allocate(NULL, BYTES, NULL, &ptr) || hipmm_deallocate(NULL, ptr, BYTES, NULL)) return 1;
    hipmm_deallocate(NULL, ptr, BYTES, NULL);
  }
  hipmm_finalize();
  exit(0);
}

static void tells_each_mistake_once(void **state)
{
  (void)state;
  needs_software();
  struct outcome outcome = run_again((const char *const[]){"often", NULL}, (const char *const[]){NULL});
  assert_int_equal(outcome.status, 0);
  const char *first = strstr(outcome.error, "hipmm: race: memory is freed a second time");
  assert_non_null(first);
  assert_null(strstr(first + 1, "hipmm: race: "));
  assert_contains(outcome.error, "hipmm: races: 1 found, seen 300 times: double_free 1\n");
}

/* Without the option nothing is watched. */
static int make_a_mistake_unwatched(const void *unused)
{
  (void)unused;
  fixture_start_with("", pool);
  void *ptr = NULL;
  if (hip_observer() || hipmm_allocate(NULL, BYTES, NULL, &ptr) || hipmm_deallocate(NULL, ptr, BYTES, NULL)) return 1;
  hipmm_deallocate(NULL, ptr, BYTES, NULL);
  hipmm_finalize();
  exit(0);
}

static void is_off_unless_it_is_asked_for(void **state)
{
  (void)state;
  needs_software();
  struct outcome outcome = run_again((const char *const[]){"unwatched", NULL}, (const char *const[]){NULL});
  assert_int_equal(outcome.status, 0);
  assert_null(strstr(outcome.error, "race"));
}

/* A stream that waits for another one hands on the order with its memory, also with what it has not used since. */
static void says_nothing_of_memory_that_an_arena_handed_on(void **state)
{
  enum { BLOCK = 256 << 10, MOST = 64 };
  void *blocks[MOST], *ptr = NULL;
  int n = 0;
  (void)state;
  needs_software();
  fixture_start_with("'check_streams': true, 'scheduler': 'stepped', 'seed': 5",
                     "'stack': [{'type': 'arena', 'record': 'on_free', 'maximum_size': '12MiB'}, 'device']");
  n_seen = count_reports();
  hipmm_stream_t own = fixture_stream(), user = fixture_stream(), next = fixture_stream();
  while (n < MOST && !hipmm_allocate(NULL, BLOCK, own, &ptr)) blocks[n++] = ptr;
  assert_in_range(n, 40, 48);
  fixture_free(blocks[--n], BLOCK, own);
  blocks[n++] = fixture_allocate(BLOCK, own);
  order(own, user);
  for (int i = 1; i < n; i++) {
    fill(blocks[i], BLOCK, user);
    fixture_free(blocks[i], BLOCK, user);
  }
  int64_t waits = fixture_value("arena", "stream_waits");
  blocks[1] = fixture_allocate(BLOCK, own); /* which waits for `user` */
  assert_int_equal(fixture_value("arena", "stream_waits"), waits + 1);
  fixture_free(blocks[0], BLOCK, next); /* and has the arena return what it has too much */
  ptr = fixture_allocate(2 * MIB, next);
  fill(ptr, 2 * MIB, next);
  fixture_free(ptr, 2 * MIB, next);
  fixture_free(blocks[1], BLOCK, own);
  wait_for_all();
  assert_nothing_found();
}

int main(int argc, char **argv)
{
  use_test_plugins();
  if (argc > 1) return strcmp(argv[1], "often") ? make_a_mistake_unwatched(NULL) : make_a_mistake_often(NULL);
#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
  const struct CMUnitTest tests[] = {
      TEST(tells_of_work_after_the_free),
      TEST(tells_of_a_second_free),
      TEST(tells_of_bytes_that_were_never_written),
      TEST(tells_of_a_free_that_other_work_is_not_before),
      TEST(tells_of_work_past_the_end_within_a_pools_chunk),
      TEST(tells_of_work_that_does_not_wait_for_the_allocation),
      TEST(judges_programs_of_two_streams),
      TEST(knows_more_parts_of_a_block_than_it_keeps),
      TEST(tells_of_memory_that_is_reused_without_order),
      TEST(tells_of_memory_that_is_given_out_twice),
      TEST(tells_nothing_of_right_programs),
      TEST(knows_all_ways_to_wait),
      TEST(knows_order_by_way_of_the_default_stream),
      TEST(knows_recorded_streams),
      TEST(knows_graphs),
      TEST(says_nothing_of_memory_that_an_arena_handed_on),
      TEST(tells_each_mistake_once),
      TEST(is_off_unless_it_is_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
