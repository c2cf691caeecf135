/* SPDX-License-Identifier: MIT */
/* test_span.c: spans of a mapped pool: what is committed holds its data, and counts; what is decommitted serves others; what is
 * refused changes nothing. */
#include "../support/both_schedulers.h"
#include "../support/graph_functions.h"

#include <hipmm/inspect.h>
#include <hipmm/share.h>
#include <hipmm/span.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char mapped[] = "'stack': ['statistics', {'type': 'pool', 'growth': 'mapped'}, 'device']";

static size_t granule;

static char *create(size_t granules)
{
  void *ptr = NULL, *other = NULL;
  size_t probed;
  assert_ok(hipmm_span_create(NULL, 1, &granule, &other)); /* tells the granule */
  assert_ok(hipmm_span_create(NULL, granules * granule, &probed, &ptr));
  assert_int_equal(probed, granule);
  assert_int_equal((uintptr_t)ptr % granule, 0);
  assert_ok(hipmm_span_destroy(other, NULL));
  return ptr;
}

static enum hipmm_status commit(char *span, size_t first, size_t n)
{
  return hipmm_span_commit(span, first * granule, n * granule);
}

static enum hipmm_status decommit(char *span, size_t first, size_t n, hipmm_stream_t stream)
{
  return hipmm_span_decommit(span, first * granule, n * granule, stream);
}

static int64_t live(void)
{
  return fixture_value("pool", "live_bytes");
}

static int64_t held(void)
{
  return fixture_value("pool", "reserved_bytes");
}

static void fill(char *span, size_t first, size_t n, unsigned char value)
{
  fixture_fill(span + first * granule, value, n * granule);
}

static bool holds(const char *span, size_t first, size_t n, unsigned char value)
{
  return fixture_holds(span + first * granule, value, n * granule);
}

/* ---- Memory and data ---- */

static void memory_comes_and_goes_under_fixed_addresses(void **state)
{
  both_start(state, mapped);
  char *span = create(20);
  assert_int_equal(live(), 0);
  assert_int_equal(fixture_value("pool", "live_count"), 1);
  assert_ok(commit(span, 0, 3));
  fill(span, 0, 3, 1);
  assert_ok(commit(span, 10, 2));
  fill(span, 10, 2, 2);
  assert_int_equal(live(), 5 * (int64_t)granule);
  assert_int_equal(held(), live());
  assert_ok(commit(span, 1, 12)); /* keeps what is there */
  assert_int_equal(live(), 13 * (int64_t)granule);
  assert_true(holds(span, 0, 3, 1) && holds(span, 10, 2, 2));
  assert_ok(decommit(span, 1, 10, NULL));
  assert_ok(decommit(span, 0, 0, NULL));
  assert_int_equal(live(), 3 * (int64_t)granule);
  assert_true(holds(span, 0, 1, 1) && holds(span, 11, 1, 2));
  assert_ok(decommit(span, 0, 20, NULL)); /* passes over what has none */
  assert_int_equal(live(), 0);
  assert_ok(commit(span, 19, 1));
  fill(span, 19, 1, 3);
  assert_true(holds(span, 19, 1, 3));
  assert_ok(hipmm_span_destroy(span, NULL));
  assert_int_equal(live(), 0);
  assert_int_equal(fixture_value("pool", "live_count"), 0);
}

/* The device would fault: work of the stream still writes when the call begins. */
static void waits_for_the_work_of_the_stream(void **state)
{
  both_start(state, mapped);
  hipmm_stream_t stream = both_stream(0);
  char *span = create(4);
  for (int round = 0; round < 4; round++) {
    assert_ok(commit(span, 0, 4));
    for (int value = 1; value < 6; value++)
      assert_int_equal(fixture_hip()->MemsetAsync(span, value, 4 * granule, stream), 0);
    assert_ok(decommit(span, 1, 2, stream));
    assert_true(holds(span, 0, 1, 5) && holds(span, 3, 1, 5));
  }
  assert_int_equal(fixture_hip()->MemsetAsync(span, 7, granule, stream), 0);
  assert_ok(hipmm_span_destroy(span, stream));
  assert_ok(hipmm_stream_destroy(stream));
}

static void many_spans_lie_apart(void **state)
{
  enum { SPANS = 100 };
  static char *spans[SPANS];
  both_start(state, mapped);
  for (int round = 0; round < 2; round++) {
    for (int i = round; i < SPANS; i += round + 1) {
      spans[i] = create(i % 7 == 0 ? 100 : 3);
      assert_ok(commit(spans[i], 0, 1));
      assert_int_equal(fixture_hip()->Memcpy(spans[i], &spans[i], sizeof spans[i], HIPMM_HIP_MEMCPY_DEFAULT), 0);
    }
    for (int i = 0; i < SPANS; i++) {
      char *found = NULL;
      assert_int_equal(fixture_hip()->Memcpy(&found, spans[i], sizeof found, HIPMM_HIP_MEMCPY_DEFAULT), 0);
      assert_ptr_equal(found, spans[i]);
    }
    for (int i = 1 - round; i < SPANS; i += 2 - round) assert_ok(hipmm_span_destroy(spans[i], NULL));
  }
}

/* ---- What the pool has, and what others have ---- */

static const char small[] =
    "'stack': ['statistics', {'type': 'pool', 'growth': 'mapped', 'maximum_size': '16MiB'}, 'device']";

static void idle_memory_serves_spans_and_blocks_in_turn(void **state)
{
  both_start(state, small);
  hipmm_stream_t stream = both_stream(0);
  char *span = create(32 * MIB / 4096);
  size_t n = 16 * MIB / granule;
  for (int round = 0; round < 3; round++) {
    void *block = fixture_allocate(16 * MIB, stream);
    fixture_free(block, 16 * MIB, stream);
    assert_ok(commit(span, (size_t)round * n, n));
    fill(span, (size_t)round * n, n, 9);
    assert_int_equal(live(), 16 * MIB);
    assert_true(holds(span, (size_t)round * n, n, 9));
    assert_ok(decommit(span, (size_t)round * n, n, NULL));
    assert_in_range(held(), 0, 16 * MIB);
  }
  assert_ok(hipmm_span_destroy(span, NULL));
  assert_true(held() > 0);
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(held(), 0);
  assert_ok(hipmm_stream_destroy(stream));
}

/* All of a commit, or nothing. */
static void no_more_is_committed_than_the_maximum(void **state)
{
  both_start(state, small);
  size_t n = 16 * MIB / 4096;
  char *span = create(2 * n);
  void *block = fixture_allocate(4 * MIB, NULL);
  n = 16 * MIB / granule;
  assert_ok(commit(span, n / 2, n / 4));
  fill(span, n / 2, n / 4, 4);
  int64_t live_before = live();
  int64_t held_before = held();
  assert_status(commit(span, 0, n), HIPMM_E_OUT_OF_MEMORY);
  assert_message("pool: cannot allocate 12 MiB");
  assert_message("maximum_size 16 MiB");
  assert_int_equal(live(), live_before);
  assert_in_range(held(), live_before, held_before);
  assert_true(holds(span, n / 2, n / 4, 4));
  fixture_free(block, 4 * MIB, NULL);
  assert_ok(commit(span, 0, n));
  assert_true(holds(span, n / 2, n / 4, 4));
  assert_ok(hipmm_span_destroy(span, NULL));
}

static const char two_pools[] =
    "'resources': {'memory': {'type': 'device'}, 'pool': {'type': 'pool', 'upstream': 'memory', 'growth': 'mapped'}, "
    "'other': {'type': 'pool', 'upstream': 'memory', 'growth': 'mapped'}, 'both': {'type': 'fallback', 'upstream': "
    "['pool', 'other']}}, 'devices': {'default': 'both'}";

static void other_resources_give_what_is_idle(void **state)
{
  void *ptr = NULL;
  (void)state;
  needs_software();
  fixture_start(two_pools);
  struct hipmm_resource *other = fixture_resource("other");
  assert_ok(hipmm_allocate(other, 200 * MIB, NULL, &ptr));
  assert_ok(hipmm_deallocate(other, ptr, 200 * MIB, NULL));
  assert_ok(hipmm_span_create(fixture_resource("pool"), 1000 * MIB, &granule, &ptr));
  char *span = ptr;
  assert_ok(hipmm_span_commit(span, 0, 200 * MIB));
  assert_status(hipmm_span_commit(span, 0, 400 * MIB), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(live(), 200 * MIB);
  assert_ok(hipmm_span_destroy(span, NULL));
}

/* As on AMD, where each chunk is an open file. */
static void no_commit_takes_all_descriptors(void **state)
{
  struct rlimit before, few;
  (void)state;
  needs_software();
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  few = before;
  few.rlim_cur = 128;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  setenv("HIPMM_SOFTWARE", "devices=1,rocm_mapping=true", 1); /* over the fixture's own */
  enum hipmm_status status = fixture_try("", mapped);
  unsetenv("HIPMM_SOFTWARE");
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_ok(status);
  char *span = create(65);
  assert_ok(commit(span, 0, 64));
  assert_status(commit(span, 64, 1), HIPMM_E_OUT_OF_MEMORY);
  assert_message("the pool has 64, which is its share; raise the limit (ulimit -n)");
  assert_ok(hipmm_span_destroy(span, NULL));
}

/* ---- Graphs ---- */

static struct graph_functions graphs;

static void a_captured_graph_stays_valid(void **state)
{
  void *graph = NULL, *program = NULL;
  needs_software();
  both_start(state, mapped);
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t stream = both_stream(0);
  char *span = create(8);
  assert_ok(commit(span, 0, 2));
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  assert_int_equal(fixture_hip()->MemsetAsync(span, 0x5a, 2 * granule, stream), 0);
  assert_status(decommit(span, 0, 1, stream), HIPMM_E_STATE);
  assert_message("a graph is being captured");
  assert_status(hipmm_span_destroy(span, stream), HIPMM_E_STATE);
  assert_ok(commit(span, 2, 1)); /* no work of a stream */
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_int_equal(graphs.instantiate(&program, graph, 0), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  assert_ok(commit(span, 0, 8));
  assert_int_equal(graphs.launch(program, stream), 0);
  assert_ok(decommit(span, 2, 6, stream));
  assert_true(holds(span, 0, 2, 0x5a));
  assert_int_equal(graphs.destroy_program(program), 0);
  assert_ok(hipmm_span_destroy(span, stream));
  assert_ok(hipmm_stream_destroy(stream));
}

/* ---- Sleep ---- */

static void sleep_keeps_the_content(void **state)
{
  both_start(state, mapped);
  char *span = create(12), *other = create(4);
  void *block = fixture_allocate(MIB, NULL);
  fixture_fill(block, 8, MIB);
  for (size_t i = 0; i < 6; i++) {
    assert_ok(commit(span, 2 * i, 1));
    fill(span, 2 * i, 1, (unsigned char)(i + 1));
  }
  assert_ok(commit(other, 0, 4));
  assert_ok(hipmm_resource_suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_int_equal(held(), 0);
  assert_status(commit(span, 1, 1), HIPMM_E_STATE);
  assert_message("it is suspended; resume it first");
  assert_ok(decommit(span, 4, 1, NULL));
  assert_ok(hipmm_span_destroy(other, NULL));
  assert_ok(hipmm_resource_resume(NULL));
  assert_int_equal(live(), 5 * (int64_t)granule + (int64_t)MIB);
  for (size_t i = 0; i < 6; i++)
    if (i != 2) assert_true(holds(span, 2 * i, 1, (unsigned char)(i + 1)));
  assert_true(fixture_holds(block, 8, MIB));
  assert_ok(commit(span, 0, 12));
  fill(span, 4, 1, 3);
  assert_true(holds(span, 4, 1, 3) && holds(span, 6, 1, 4));
  fixture_free(block, MIB, NULL);
  assert_ok(hipmm_span_destroy(span, NULL));
}

/* ---- Inspection, and what is refused ---- */

static void is_found_by_any_of_its_addresses(void **state)
{
  struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
  char *text = NULL;
  (void)state;
  fixture_start(mapped);
  char *span = create(9);
  assert_ok(commit(span, 2, 3));
  for (size_t at = 0; at < 9; at += 4) {
    assert_ok(hipmm_pointer_lookup(span + at * granule + 5, &pointer));
    assert_ptr_equal(pointer.ptr, span);
    assert_int_equal(pointer.bytes, 9 * granule);
    assert_string_equal(hipmm_resource_name(pointer.resource), "pool");
    hipmm_resource_release(pointer.resource);
  }
  assert_status(hipmm_pointer_lookup(span + 9 * granule, &pointer), HIPMM_E_POINTER);
  assert_ok(hipmm_snapshot(&text));
  hipmm_string_free(text);
  assert_ok(hipmm_span_destroy(span, NULL));
  assert_status(hipmm_pointer_lookup(span, &pointer), HIPMM_E_POINTER);
}

static void refuses_what_makes_no_sense(void **state)
{
  struct hipmm_share_block block;
  void *ptr = NULL;
  (void)state;
  fixture_start(mapped);
  char *span = create(8);
  assert_ok(commit(span, 0, 1));
  assert_status(hipmm_span_create(NULL, 0, &granule, &ptr), HIPMM_E_ARGUMENT);
  assert_status(hipmm_span_create(NULL, SIZE_MAX, &granule, &ptr), HIPMM_E_ARGUMENT);
  assert_message("a span of 18446744073709551615 bytes: it has 1 byte to 64 TiB");
  assert_status(commit(span, 0, 9), HIPMM_E_ARGUMENT);
  assert_message("end beyond the span");
  assert_status(commit(span, SIZE_MAX / granule, 1), HIPMM_E_ARGUMENT);
  assert_status(hipmm_span_commit(span, 1, granule), HIPMM_E_ARGUMENT);
  assert_message("offset 1 and bytes");
  assert_status(hipmm_span_decommit(span, 0, 1, NULL), HIPMM_E_ARGUMENT);
  assert_status(commit(span + granule, 0, 1), HIPMM_E_POINTER);
  assert_status(hipmm_span_commit(&ptr, 0, granule), HIPMM_E_POINTER);
  assert_message("no span starts at");
  assert_status(hipmm_deallocate(NULL, span, 0, NULL), HIPMM_E_POINTER);
  assert_message("lies in a span, which is no block; hipmm_span_destroy() frees it");
  assert_status(hipmm_share_export_block(NULL, span, &block, NULL, 0), HIPMM_E_POINTER);
  assert_int_equal(live(), (int64_t)granule);
  assert_ok(hipmm_span_destroy(span, NULL));
  assert_status(hipmm_span_destroy(span, NULL), HIPMM_E_POINTER);
  assert_ok(hipmm_span_destroy(NULL, NULL));
  assert_null(ptr);
}

static void segments_and_sources_say_what_to_do(void **state)
{
  void *ptr = NULL;
  size_t bytes;
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']");
  assert_status(hipmm_span_create(NULL, MIB, &bytes, &ptr), HIPMM_E_NOT_SUPPORTED);
  assert_message("set \"growth\": \"mapped\"");
  assert_status(hipmm_span_create(fixture_resource("device"), MIB, &bytes, &ptr), HIPMM_E_NOT_SUPPORTED);
  assert_message("device: neither it nor a resource below it serves spans; use a pool");
}

/* The addresses end with the pool. */
static void a_span_that_is_left_is_told(void **state)
{
  (void)state;
  fixture_start(mapped);
  char *span = create(3);
  assert_ok(commit(span, 0, 2));
  logged();
  assert_ok(hipmm_finalize());
  assert_contains(logged(), "destroyed with 1 block");
  assert_status(hipmm_span_destroy(span, NULL), HIPMM_E_POINTER);
}

static int commit_in_a_child(const void *span)
{
  enum hipmm_status status = commit((char *)(uintptr_t)span, 1, 1);
  return status == HIPMM_E_STATE && hipmm_span_destroy((void *)(uintptr_t)span, NULL) == HIPMM_E_STATE;
}

static void the_child_of_a_fork_has_none(void **state)
{
  (void)state;
  fixture_start(mapped);
  char *span = create(2);
  assert_ok(commit(span, 0, 1));
  assert_int_equal(run_forked(commit_in_a_child, span).status, 1);
  assert_ok(hipmm_span_destroy(span, NULL));
}

/* ---- Whatever fails, and at the same time ---- */

static unsigned wrong;

static void use_a_span(void)
{
  void *ptr = NULL, *block = NULL;
  size_t bytes;
  if (hipmm_span_create(NULL, 64 * MIB, &bytes, &ptr)) return;
  if (!hipmm_allocate(NULL, 3 * MIB, NULL, &block) && hipmm_deallocate(NULL, block, 3 * MIB, NULL))
    wrong += hipmm_deallocate(NULL, block, 3 * MIB, NULL) != HIPMM_OK;
  int64_t before = 0, after = 0;
  for (size_t at = 0; at < 6; at += 2) {
    if (hipmm_resource_query(NULL, "live_bytes", &before)) before = -1;
    if (!hipmm_span_commit(ptr, at * bytes, 3 * bytes)) continue;
    if (before >= 0 && !hipmm_resource_query(NULL, "live_bytes", &after)) wrong += after != before;
  }
  wrong += hipmm_span_decommit(ptr, bytes, 3 * bytes, NULL) && hipmm_span_decommit(ptr, bytes, 3 * bytes, NULL);
  wrong += hipmm_span_destroy(ptr, NULL) && hipmm_span_destroy(ptr, NULL);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  wrong = 0;
  assert_true(fixture_fail_each_call("", "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']", use_a_span) > 10);
  assert_int_equal(wrong, 0);
}

static void grow_and_shrink(int *failures)
{
  enum { ROUNDS = 40 };
  void *ptr = NULL;
  size_t bytes, committed = 0;
  hipmm_stream_t stream = HIPMM_PER_THREAD_STREAM;
  if (hipmm_span_create(NULL, 64 * MIB, &bytes, &ptr)) return (void)++*failures;
  for (size_t i = 1; i <= ROUNDS; i++) {
    void *block = NULL;
    size_t wanted = i * 7 % 9;
    *failures += hipmm_allocate(NULL, i * 5000, stream, &block) != HIPMM_OK;
    if (wanted > committed) *failures += hipmm_span_commit(ptr, 0, wanted * bytes) != HIPMM_OK;
    if (wanted < committed)
      *failures += hipmm_span_decommit(ptr, wanted * bytes, (committed - wanted) * bytes, stream) != HIPMM_OK;
    committed = wanted;
    *failures += fixture_hip()->MemsetAsync(ptr, (int)i, committed * bytes, stream) != 0;
    *failures += hipmm_deallocate(NULL, block, i * 5000, stream) != HIPMM_OK;
  }
  *failures += hipmm_span_destroy(ptr, stream) != HIPMM_OK;
}

static void threads_have_spans_of_their_own(void **state)
{
  both_start(state, mapped);
  fixture_run_threads(6, grow_and_shrink);
  assert_int_equal(live(), 0);
}

#define ONCE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      BOTH(memory_comes_and_goes_under_fixed_addresses),
      BOTH(waits_for_the_work_of_the_stream),
      BOTH(many_spans_lie_apart),
      BOTH(idle_memory_serves_spans_and_blocks_in_turn),
      BOTH(no_more_is_committed_than_the_maximum),
      ONCE(other_resources_give_what_is_idle),
      ONCE(no_commit_takes_all_descriptors),
      BOTH(a_captured_graph_stays_valid),
      BOTH(sleep_keeps_the_content),
      ONCE(is_found_by_any_of_its_addresses),
      ONCE(refuses_what_makes_no_sense),
      ONCE(segments_and_sources_say_what_to_do),
      ONCE(a_span_that_is_left_is_told),
      ONCE(the_child_of_a_fork_has_none),
      ONCE(loses_nothing_whatever_call_fails),
      BOTH(threads_have_spans_of_their_own),
  };
  log_to_file("warning");
  return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
