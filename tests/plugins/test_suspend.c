/* SPDX-License-Identifier: MIT */
/* test_suspend.c: hipmm_resource_suspend() and hipmm_resource_resume(): what the device has free then, what a block
 * holds afterwards, and what is refused meanwhile. */
#include "../../core/base/deadline.h"
#include "../support/both_schedulers.h"
#include "../support/graph_functions.h"
#include "../support/random.h"

#include <hipmm/buffer.h>
#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/share.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static const char mapped[] = "'stack': ['statistics', {'type': 'pool', 'growth': 'mapped'}, 'device']";

static enum hipmm_status suspend(const char *name, enum hipmm_content content)
{
  return hipmm_resource_suspend(fixture_resource(name), content);
}

static enum hipmm_status resume(const char *name)
{
  return hipmm_resource_resume(fixture_resource(name));
}

static size_t free_on_device(void)
{
  size_t free_bytes = 0, total_bytes = 0;
  assert_int_equal(fixture_hip()->MemGetInfo(&free_bytes, &total_bytes), 0);
  return free_bytes;
}

/* ---- Content ---- */

enum { BLOCKS = 120 };

struct content {
  unsigned char *ptr;
  size_t bytes;
};

static struct content contents[BLOCKS];

static void write_content(const struct content *content, unsigned seed)
{
  unsigned char *bytes = malloc(content->bytes);
  assert_non_null(bytes);
  both_write(bytes, content->bytes, seed);
  assert_int_equal(fixture_hip()->Memcpy(content->ptr, bytes, content->bytes, HIPMM_HIP_MEMCPY_DEFAULT), 0);
  free(bytes);
}

static bool has_content(const struct content *content, unsigned seed)
{
  unsigned char *bytes = calloc(1, content->bytes);
  bool good = bytes && !fixture_hip()->Memcpy(bytes, content->ptr, content->bytes, HIPMM_HIP_MEMCPY_DEFAULT) &&
              both_good(bytes, content->bytes, seed) == content->bytes;
  free(bytes);
  return good;
}

/* Blocks of all sizes, and holes of all sizes between them. */
static void fill_pool(void)
{
  uint64_t random = 5;
  for (unsigned i = 0; i < BLOCKS; i++) {
    size_t most = i % 40 == 0 ? 3 * MIB : i % 8 == 0 ? 200000 : 5000;
    contents[i].bytes = 1 + random_below(&random, most);
    contents[i].ptr = fixture_allocate(contents[i].bytes, NULL);
    write_content(&contents[i], i);
  }
  for (unsigned i = 1; i < BLOCKS; i += 2) {
    fixture_free(contents[i].ptr, contents[i].bytes, NULL);
    contents[i].ptr = NULL;
  }
}

static void check_pool(void)
{
  for (unsigned i = 0; i < BLOCKS; i++)
    if (contents[i].ptr) assert_true(has_content(&contents[i], i));
}

static void empty_pool(void)
{
  for (unsigned i = 0; i < BLOCKS; i++) {
    fixture_free(contents[i].ptr, contents[i].bytes, NULL);
    contents[i].ptr = NULL;
  }
}

static void keeps_every_byte_and_gives_the_memory_back(void **state)
{
  both_start(state, mapped);
  size_t free_at_first = free_on_device();
  fill_pool();
  for (int round = 0; round < 2; round++) {
    size_t held = fixture_held_bytes(), free_before = free_on_device();
    int64_t live = fixture_value("pool", "live_bytes");
    assert_true(held > 3 * MIB);
    assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
    assert_true(free_on_device() - free_before >= held / 100 * 95);
    if (on_software()) assert_int_equal(free_on_device(), free_at_first);
    assert_int_equal(fixture_held_bytes(), 0);
    assert_int_equal(fixture_value("pool", "reserved_bytes"), 0);
    assert_int_equal(fixture_value("pool", "free_bytes"), 0);
    assert_int_equal(fixture_value("pool", "largest_free_bytes"), 0);
    assert_int_equal(fixture_value("pool", "live_bytes"), live);
    assert_in_range(fixture_value("pool", "suspended_bytes"), live, held);
    assert_in_range(fixture_value("pool", "saved_bytes"), live, fixture_value("pool", "suspended_bytes"));
    assert_ok(resume(NULL));
    assert_int_equal(fixture_value("pool", "suspended_bytes"), 0);
    assert_int_equal(fixture_value("pool", "saved_bytes"), 0);
    assert_int_equal(fixture_value("pool", "reserved_bytes"), fixture_held_bytes());
    check_pool();
  }
  fixture_free(fixture_allocate(40 * MIB, NULL), 40 * MIB, NULL);
  check_pool();
  empty_pool();
}

/* A block is as large as hipmm_pointer_lookup() says. Behind the last one, nothing else would save its end. */
static void keeps_all_usable_bytes(void **state)
{
  struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
  both_start(state, mapped);
  struct content content = {fixture_allocate(MIB + 1, NULL), 0};
  assert_ok(hipmm_pointer_lookup(content.ptr, &pointer));
  hipmm_resource_release(pointer.resource);
  content.bytes = pointer.usable_bytes;
  assert_in_range(content.bytes, MIB + 2, 2 * MIB);
  write_content(&content, 3);
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_ok(resume(NULL));
  assert_true(has_content(&content, 3));
  fixture_free(content.ptr, MIB + 1, NULL);
}

static void drops_the_content_that_nobody_wants(void **state)
{
  both_start(state, mapped);
  fill_pool();
  software()->reset_calls();
  assert_ok(suspend("pool", HIPMM_CONTENT_DISCARD));
  assert_int_equal(fixture_value("pool", "saved_bytes"), 0);
  assert_int_equal(software()->calls("hipHostRegister"), 0);
  assert_int_equal(fixture_held_bytes(), 0);
  assert_ok(resume("pool"));
  for (unsigned i = 0; i < BLOCKS; i++)
    if (contents[i].ptr) write_content(&contents[i], i);
  check_pool();
  empty_pool();
}

/* What is still to be written when it is suspended is saved. */
static void waits_for_work_in_flight(void **state)
{
  both_start(state, mapped);
  hipmm_stream_t streams[4];
  void *ptr[4];
  for (int i = 0; i < 4; i++) {
    streams[i] = both_stream(0);
    ptr[i] = fixture_allocate(3 * MIB, streams[i]);
    for (int value = 1; value < 6; value++)
      assert_int_equal(fixture_hip()->MemsetAsync(ptr[i], value + i, 3 * MIB, streams[i]), 0);
  }
  fixture_free(ptr[0], 3 * MIB, streams[0]);
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_ok(resume(NULL));
  for (int i = 1; i < 4; i++) {
    assert_true(fixture_holds(ptr[i], (unsigned char)(5 + i), 3 * MIB));
    fixture_free(ptr[i], 3 * MIB, streams[i]);
  }
  for (int i = 0; i < 4; i++) assert_ok(hipmm_stream_destroy(streams[i]));
}

/* ---- By resource, and by turns ---- */

static const char two_pools[] =
    "'resources': {'memory': {'type': 'device'}, 'weights': {'type': 'pool', 'upstream': 'memory', 'growth': "
    "'mapped'}, "
    "'kv': {'type': 'pool', 'upstream': 'memory', 'growth': 'mapped'}, "
    "'both': {'type': 'fallback', 'upstream': ['weights', 'kv']}}, 'devices': {'default': 'both'}";

static void *allocate_from(const char *name, size_t bytes)
{
  void *ptr = NULL;
  assert_ok(hipmm_allocate(fixture_resource(name), bytes, NULL, &ptr));
  return ptr;
}

static void free_to(const char *name, void *ptr)
{
  assert_ok(hipmm_deallocate(fixture_resource(name), ptr, 0, NULL));
}

static void keeps_weights_and_drops_a_cache(void **state)
{
  (void)state;
  fixture_start(two_pools);
  struct content weights = {allocate_from("weights", 5 * MIB), 5 * MIB};
  void *kv = allocate_from("kv", 80 * MIB);
  write_content(&weights, 7);
  assert_ok(suspend("kv", HIPMM_CONTENT_DISCARD));
  assert_in_range(fixture_held_bytes(), 5 * MIB, on_software() ? 8 * MIB : 40 * MIB);
  free_to("weights", allocate_from("weights", MIB));
  assert_ok(suspend("both", HIPMM_CONTENT_KEEP)); /* what is left: the weights */
  assert_int_equal(fixture_held_bytes(), 0);
  assert_status(suspend("both", HIPMM_CONTENT_KEEP), HIPMM_E_STATE);
  assert_ok(resume("both"));
  assert_true(has_content(&weights, 7));
  fixture_fill(kv, 1, 80 * MIB);
  assert_status(resume("both"), HIPMM_E_STATE);
  free_to("weights", weights.ptr);
  free_to("kv", kv);
}

/* Each holds two thirds of what the device has left while it is its turn. */
static void lets_two_pools_use_a_device_by_turns(void **state)
{
  static const char *const names[] = {"weights", "kv"};
  struct content content[2];
  (void)state;
  needs_software();
  fixture_start(two_pools);
  void *rest = allocate_from("memory", 210 * MIB);
  for (int i = 0; i < 2; i++) {
    content[i] = (struct content){allocate_from(names[i], 30 * MIB), MIB + 7}; /* what is looked at */
    write_content(&content[i], (unsigned)i);
    assert_ok(suspend(names[i], HIPMM_CONTENT_KEEP));
  }
  for (int turn = 0; turn < 3; turn++) {
    assert_ok(resume(names[turn % 2]));
    assert_status(resume(names[1 - turn % 2]), HIPMM_E_OUT_OF_MEMORY);
    assert_true(has_content(&content[turn % 2], (unsigned)(turn % 2)));
    assert_ok(suspend(names[turn % 2], HIPMM_CONTENT_KEEP));
  }
  for (int i = 0; i < 2; i++) free_to(names[i], content[i].ptr);
  free_to("memory", rest);
}

/* Idle memory of another resource is no reason to stay suspended. */
static void wakes_with_what_others_do_not_use(void **state)
{
  (void)state;
  needs_software();
  fixture_start(two_pools);
  void *weights = allocate_from("weights", 200 * MIB);
  assert_ok(suspend("weights", HIPMM_CONTENT_DISCARD));
  free_to("kv", allocate_from("kv", 220 * MIB));
  assert_true(fixture_held_bytes() >= 220 * MIB);
  assert_ok(resume("weights"));
  assert_in_range(fixture_held_bytes(), 200 * MIB, 204 * MIB);
  free_to("weights", weights);
}

/* ---- While it is suspended ---- */

static void assert_refused(const char *name, size_t bytes)
{
  void *ptr = NULL;
  struct hipmm_error error = {.struct_size = sizeof error};
  assert_status(hipmm_allocate(fixture_resource(name), bytes, NULL, &ptr), HIPMM_E_STATE);
  assert_null(ptr);
  hipmm_last_error(&error);
  assert_string_equal(error.resource, "pool");
  assert_message("pool: cannot allocate");
  assert_message("resume");
}

/* Every type that divides memory has some left, from before. */
static void refuses_allocations_from_all_that_depends_on_it(void **state)
{
  static const char *const names[] = {"top", "arena", "fixed", "bump", "second", "bins", "pool"};
  enum { NAMES = sizeof names / sizeof *names };
  void *before[NAMES];
  (void)state;
  fixture_start(
      "'resources': {'memory': {'type': 'device'}, 'pool': {'type': 'pool', 'upstream': 'memory', 'growth': 'mapped'}, "
      "'arena': {'type': 'arena', 'upstream': 'pool'}, 'fixed': {'type': 'fixed_size', 'upstream': 'pool'}, "
      "'bump': {'type': 'monotonic', 'upstream': 'pool'}, 'second': {'type': 'pool', 'upstream': 'pool'}, "
      "'bins': {'type': 'binning', 'upstream': 'pool', 'bins': [{'size': '4KiB'}]}, "
      "'top': {'type': 'statistics', 'upstream': 'pool'}}, 'devices': {'default': 'top'}");
  for (int i = 0; i < NAMES; i++) {
    before[i] = allocate_from(names[i], 1000);
    free_to(names[i], allocate_from(names[i], 1000)); /* which is now in a cache, or in a list of free blocks */
  }
  assert_ok(suspend("arena", HIPMM_CONTENT_DISCARD));
  for (int i = 0; i < NAMES; i++) {
    assert_refused(names[i], 1000);
    assert_refused(names[i], i == 2 ? 5000 : 3 * MIB);
    assert_null(allocate_from(names[i], 0));
    free_to(names[i], before[i]);
    assert_refused(names[i], 1000);
  }
  void *elsewhere = allocate_from("memory", MIB);
  free_to("memory", elsewhere);
  assert_ok(resume("top"));
  for (int i = 0; i < NAMES; i++) free_to(names[i], allocate_from(names[i], 1000));
}

/* A driver that is told of memory that is not there may take no further call of the process. */
static void no_content_is_read_or_written_meanwhile(void **state)
{
  unsigned char content[1000], read_back[1000] = {0};
  struct hipmm_buffer *buffer = NULL, *other = NULL, *none = NULL;
  both_start(state, mapped);
  for (size_t i = 0; i < sizeof content; i++) content[i] = (unsigned char)(i * 7);
  assert_ok(hipmm_buffer_create_from(NULL, content, sizeof content, NULL, &buffer));
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_status(hipmm_buffer_read(buffer, 0, 1000, NULL, read_back), HIPMM_E_STATE);
  assert_message("cannot read or write 1000 bytes: it is suspended; resume it first");
  assert_status(hipmm_buffer_write(buffer, 10, content, 3, NULL), HIPMM_E_STATE);
  assert_status(hipmm_buffer_fill(buffer, 10, 1, 3, NULL), HIPMM_E_STATE);
  assert_status(hipmm_buffer_copy(buffer, NULL, NULL, &none), HIPMM_E_STATE);
  assert_null(none);
  assert_ok(hipmm_buffer_write(buffer, 10, content, 0, NULL));
  assert_int_equal(fixture_hip()->StreamSynchronize(NULL), 0);
  assert_ok(resume(NULL));
  assert_ok(hipmm_buffer_copy(buffer, NULL, NULL, &other));
  assert_ok(hipmm_buffer_read(other, 0, 1000, NULL, read_back));
  assert_memory_equal(read_back, content, sizeof content);
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_buffer_destroy(other));
}

static void frees_and_trims_meanwhile(void **state)
{
  both_start(state, mapped);
  fill_pool();
  hipmm_stream_t stream = both_stream(0);
  struct content large = {fixture_allocate(50 * MIB, stream), 50 * MIB};
  fixture_fill(large.ptr, 9, large.bytes);
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  int64_t suspended = fixture_value("pool", "suspended_bytes");
  fixture_free(large.ptr, large.bytes, stream);
  assert_status(hipmm_deallocate(NULL, large.ptr, large.bytes, stream), HIPMM_E_POINTER);
  assert_ok(hipmm_stream_destroy(stream)); /* with a free that has not completed, as far as the pool knows */
  for (unsigned i = 0; i < BLOCKS; i += 4) {
    fixture_free(contents[i].ptr, contents[i].bytes, NULL);
    contents[i].ptr = NULL;
  }
  if (state && *state == both_threads) { /* a trim is not needed, and does no harm */
    assert_ok(hipmm_resource_trim(NULL, 0));
    assert_true(fixture_value("pool", "suspended_bytes") <= suspended - (int64_t)(48 * MIB));
  }
  assert_int_equal(fixture_held_bytes(), 0);
  assert_ok(resume(NULL));
  assert_true((int64_t)fixture_held_bytes() <= suspended - (int64_t)(48 * MIB));
  check_pool();
  fixture_free(fixture_allocate(100 * MIB, NULL), 100 * MIB, NULL);
  check_pool();
  empty_pool();
}

static char *sink_text;

static void sink(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  char *text = NULL;
  (void)arg;
  if (strcmp(about, "pool") || asprintf(&text, "%s%d %s\n", sink_text ? sink_text : "", level, message) < 0) return;
  free(sink_text);
  sink_text = text;
}

static void tells_that_it_is_suspended(void **state)
{
  char *json = NULL;
  int64_t queried = 0;
  struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
  (void)state;
  fixture_start(mapped);
  char *ptr = fixture_allocate(5 * MIB, NULL);
  assert_ok(hipmm_log_set_sink(sink, NULL, HIPMM_LOG_DEBUG));
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_contains(sink_text, "suspended: ");
  assert_ok(hipmm_snapshot(&json));
  assert_contains(json, "\"suspended\": true");
  hipmm_string_free(json);
  assert_ok(hipmm_query("devices/0/pool/suspended_bytes", &queried));
  assert_in_range(queried, 5 * MIB, 8 * MIB);
  assert_ok(hipmm_pointer_lookup(ptr + 70, &pointer));
  assert_ptr_equal(pointer.ptr, ptr);
  hipmm_resource_release(pointer.resource);
  assert_refused(NULL, 77);
  assert_contains(sink_text, "allocation of 77 bytes on stream (nil) failed: pool: cannot allocate 77 bytes: it is");
  assert_ok(resume(NULL));
  assert_contains(sink_text, "resumed: ");
  assert_ok(hipmm_snapshot(&json));
  assert_null(strstr(json, "\"suspended\": true"));
  hipmm_string_free(json);
  assert_ok(hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_DEBUG));
  free(sink_text);
  sink_text = NULL;
  fixture_free(ptr, 5 * MIB, NULL);
}

static int n_answers;

static int answer_once(size_t *free_bytes, size_t *total_bytes)
{
  return n_answers++ ? 999 : fixture_usual_hip()->MemGetInfo(free_bytes, total_bytes);
}

/* Where the device does not say what became of the memory, nobody is blamed for it; and what has succeeded leaves the
 * message of the last failure. */
static void tells_of_nothing_that_it_does_not_know(void **state)
{
  void *none = NULL;
  (void)state;
  fixture_start(mapped);
  char *ptr = fixture_allocate(5 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, SIZE_MAX, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  char *message = strdup(hipmm_last_error_message());
  assert_ok(hipmm_log_set_sink(sink, NULL, HIPMM_LOG_DEBUG));
  n_answers = 0;
  fixture_lend_hip()->MemGetInfo = answer_once;
  enum hipmm_status status = suspend(NULL, HIPMM_CONTENT_KEEP);
  fixture_take_hip_back();
  assert_ok(status);
  assert_true(n_answers > 1);
  assert_contains(sink_text, "suspended: ");
  assert_null(strstr(sink_text, "the driver keeps memory"));
  assert_ok(resume(NULL));
  assert_string_equal(hipmm_last_error_message(), message);
  assert_ok(hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_DEBUG));
  free(message);
  free(sink_text);
  sink_text = NULL;
  fixture_free(ptr, 5 * MIB, NULL);
}

/* The teardown looks for what is lost. */
static void is_finalized_while_suspended(void **state)
{
  both_start(state, mapped);
  fill_pool();
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  empty_pool();
}

/* ---- Use of memory that is not there; graphs ---- */

static struct graph_functions graphs;

/* A graph that fills `scratch`, which it allocates and frees itself, and copies it to `ptr`. */
static void *capture(hipmm_stream_t stream, void *ptr, void *scratch, size_t bytes)
{
  void *graph = NULL, *program = NULL;
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  assert_status(suspend(NULL, HIPMM_CONTENT_KEEP), HIPMM_E_STATE);
  assert_int_equal(fixture_hip()->MemsetAsync(scratch, 0x5a, bytes, stream), 0);
  assert_int_equal(fixture_hip()->MemcpyAsync(ptr, scratch, bytes, HIPMM_HIP_MEMCPY_DEFAULT, stream), 0);
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_int_equal(graphs.instantiate(&program, graph, 0), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  return program;
}

static void replays_a_captured_graph_afterwards(void **state)
{
  needs_software();
  both_start(state, mapped);
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t stream = fixture_stream(); /* of which hipmm knows only that it was used */
  void *ptr = fixture_allocate(3 * MIB, stream), *scratch = fixture_allocate(3 * MIB, stream);
  void *program = capture(stream, ptr, scratch, 3 * MIB);
  for (int round = 0; round < 2; round++) {
    assert_ok(suspend(NULL, round ? HIPMM_CONTENT_KEEP : HIPMM_CONTENT_DISCARD));
    assert_ok(resume(NULL));
    fixture_fill(ptr, 0, 3 * MIB);
    assert_int_equal(fixture_hip()->StreamSynchronize(NULL), 0);
    assert_int_equal(graphs.launch(program, stream), 0);
    assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
    assert_true(fixture_holds(ptr, 0x5a, 3 * MIB));
  }
  assert_int_equal(graphs.destroy_program(program), 0);
  fixture_free(ptr, 3 * MIB, stream);
  fixture_free(scratch, 3 * MIB, stream);
  fixture_drop_stream(stream);
}

/* A wait for the device would end it. */
static void lets_a_capture_go_on_at_the_resume(void **state)
{
  void *graph = NULL;
  needs_software();
  both_start(state, mapped);
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t stream = fixture_stream(); /* of which hipmm knows only that it was used */
  void *ptr = fixture_allocate(3 * MIB, stream);
  assert_ok(suspend(NULL, HIPMM_CONTENT_DISCARD));
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  assert_ok(resume(NULL));
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  fixture_free(ptr, 3 * MIB, stream);
  fixture_drop_stream(stream);
}

/* As work on addresses where nothing was ever mapped. */
static void is_no_memory_for_work_meanwhile(void **state)
{
  void *reserved = NULL;
  needs_software();
  both_start(state, mapped);
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t stream = both_stream(0);
  void *ptr = fixture_allocate(3 * MIB, stream);
  void *program = capture(stream, ptr, (char *)ptr + MIB, MIB);
  assert_int_equal(fixture_hip()->MemAddressReserve(&reserved, 4 * MIB, 0), 0);
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  int expected = fixture_hip()->MemsetAsync(reserved, 1, MIB, stream);
  assert_int_not_equal(expected, 0);
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 1, MIB, stream), expected);
  assert_int_equal(faults_on_all_devices(), 0);
  graphs.launch(program, stream);
  fixture_hip()->StreamSynchronize(stream);
  assert_true(faults_on_all_devices() > 0);
  hipmm_finalize();
  software()->reset();
}

/* ---- What goes wrong ---- */

static void refuses_what_makes_no_sense(void **state)
{
  (void)state;
  fixture_start(mapped);
  assert_status(resume(NULL), HIPMM_E_STATE);
  assert_message("is not suspended");
  assert_status(suspend(NULL, (enum hipmm_content)0), HIPMM_E_ARGUMENT);
  assert_message("content");
  assert_status(suspend("device", HIPMM_CONTENT_KEEP), HIPMM_E_NOT_SUPPORTED);
  assert_message("\"growth\": \"mapped\"");
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP)); /* of nothing */
  assert_status(suspend(NULL, HIPMM_CONTENT_KEEP), HIPMM_E_STATE);
  assert_message("suspended already");
  assert_refused(NULL, 1);
  assert_ok(resume(NULL));
  assert_status(resume(NULL), HIPMM_E_STATE);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
}

static void explains_why_segments_cannot(void **state)
{
  (void)state;
  fixture_start("'stack': ['arena', {'type': 'pool', 'growth': 'segments'}, 'device']");
  for (int i = 0; i < 2; i++) {
    assert_status(i ? resume(NULL) : suspend(NULL, HIPMM_CONTENT_KEEP), i ? HIPMM_E_STATE : HIPMM_E_NOT_SUPPORTED);
    assert_message(i ? "not suspended" : "\"growth\": \"mapped\"");
  }
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
}

static void refuses_under_a_guard(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', 'guard', {'type': 'pool', 'growth': 'mapped'}, 'device']");
  void *ptr = fixture_allocate(MIB, NULL);
  assert_status(suspend("pool", HIPMM_CONTENT_KEEP), HIPMM_E_NOT_SUPPORTED);
  assert_message("take guard out");
  fixture_free(ptr, MIB, NULL);
}

static void stays_suspended_on_a_full_device(void **state)
{
  both_start(state, mapped);
  needs_software();
  fill_pool();
  size_t held = fixture_held_bytes();
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  size_t others = free_on_device() - held / 2;
  void *other = allocate_from("device", others);
  for (int i = 0; i < 2; i++) {
    assert_status(resume(NULL), HIPMM_E_OUT_OF_MEMORY);
    assert_message("stays suspended");
    assert_refused(NULL, 10);
    assert_int_equal(fixture_held_bytes(), others);
  }
  free_to("device", other);
  assert_ok(resume(NULL));
  check_pool();
  empty_pool();
}

static void stays_in_use_when_host_memory_is_short(void **state)
{
  both_start(state, mapped);
  fill_pool();
  fixture_fail_call("hipHostRegister", 1, HIPMM_HIP_ERROR_OUT_OF_MEMORY);
  assert_status(suspend(NULL, HIPMM_CONTENT_KEEP), HIPMM_E_OUT_OF_MEMORY);
  assert_message("host memory");
  assert_int_equal(fixture_value("pool", "suspended_bytes"), 0);
  assert_int_equal(fixture_value("pool", "saved_bytes"), 0);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  check_pool();
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_ok(resume(NULL));
  check_pool();
  empty_pool();
}

/* The variable is set where each step is slow (tests/Makefile.inc). */
static bool steps_are_slow(void)
{
  return getenv("HIPMM_TEST_RUNS") != NULL;
}

/* Nothing is committed, which could end the process. The device has more than the host, and valgrind marks each byte, which
 * takes minutes: left out there. */
static void saves_no_more_than_the_host_has(void **state)
{
  char setting[64], told[64];
  struct sysinfo host;
  needs_software();
  if (steps_are_slow()) return;
  assert_int_equal(sysinfo(&host), 0);
  size_t bytes = ((size_t)host.totalram * host.mem_unit / ((size_t)1 << 30) + 1) * 2 << 30;
  snprintf(setting, sizeof setting, "memory=%zuGiB", 2 * (bytes >> 30));
  setenv("HIPMM_SOFTWARE", setting, 1); /* over the fixture's own */
  fixture_setup(state);
  fixture_start(mapped);
  unsetenv("HIPMM_SOFTWARE");
  void *ptr = fixture_allocate(bytes, NULL);
  software()->reset_calls();
  assert_status(suspend(NULL, HIPMM_CONTENT_KEEP), HIPMM_E_OUT_OF_MEMORY);
  assert_message("left for it");
  snprintf(told, sizeof told, "too little host memory to save %zu GiB", bytes >> 30);
  assert_message(told);
  assert_int_equal(software()->calls("hipHostRegister"), 0);
  assert_int_equal(fixture_value("pool", "suspended_bytes"), 0);
  assert_ok(suspend(NULL, HIPMM_CONTENT_DISCARD));
  assert_ok(resume(NULL));
  fixture_free(ptr, bytes, NULL);
}

/* ---- Content that several threads save ---- */

enum { LARGE = 3, LARGE_BYTES = 50 * (1 << 20) + 4321 };

static unsigned char *large[LARGE];

static unsigned char value_at(int block, size_t offset)
{
  return (unsigned char)(offset / 65536 * 5 + (size_t)block * 50);
}

/* All bytes; where each step takes long (tests/Makefile.inc), some. */
static size_t step(void)
{
  return steps_are_slow() ? 1 << 20 : 65536;
}

static void fill_large(void)
{
  for (int i = 0; i < LARGE; i++) {
    large[i] = fixture_allocate(LARGE_BYTES, NULL);
    for (size_t at = 0; at < LARGE_BYTES; at += step())
      fixture_fill(large[i] + at, value_at(i, at), LARGE_BYTES - at < 65536 ? LARGE_BYTES - at : 65536);
  }
}

static void free_large(int i)
{
  if (large[i]) fixture_free(large[i], LARGE_BYTES, NULL);
  large[i] = NULL;
}

static bool large_are_whole(void)
{
  bool good = true;
  for (int i = 0; i < LARGE; i++)
    for (size_t at = 0; large[i] && at < LARGE_BYTES && good; at += step())
      good = fixture_holds(large[i] + at, value_at(i, at), LARGE_BYTES - at < 65536 ? LARGE_BYTES - at : 65536);
  return good;
}

static void keeps_content_of_several_pieces(void **state)
{
  both_start(state, mapped);
  fill_large();
  free_large(1);
  for (int round = 0; round < 2; round++) {
    if (on_software()) software()->reset_calls();
    assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
    if (on_software()) assert_true(software()->calls("hipHostRegister") > 1);
    if (round) free_large(2);
    assert_ok(resume(NULL));
    if (on_software()) assert_int_equal(software()->calls("hipHostUnregister"), software()->calls("hipHostRegister"));
    assert_true(large_are_whole());
  }
  for (int i = 0; i < LARGE; i++) free_large(i);
}

/* The second time needs no new pinned memory, and larger content gets it. */
static void keeps_the_pinned_memory_for_the_next_time(void **state)
{
  both_start(state, "'stack': [{'type': 'pool', 'growth': 'mapped', 'save_to': 'pinned_kept'}, 'device']");
  needs_software();
  fill_large();
  free_large(1);
  for (int round = 0; round < 2; round++) {
    software()->reset_calls();
    assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
    assert_true(round ? !software()->calls("hipHostRegister") : software()->calls("hipHostRegister") == 2);
    if (round == 1) free_large(2);
    assert_ok(resume(NULL));
    assert_int_equal(software()->calls("hipHostUnregister"), 0);
    assert_int_equal(fixture_value("pool", "saved_bytes"), 0);
    assert_true(large_are_whole());
  }
  fixture_fail_call("hipDeviceSynchronize", 1, HIPMM_HIP_ERROR_INVALID_VALUE);
  assert_status(suspend(NULL, HIPMM_CONTENT_KEEP), HIPMM_E_HIP);
  assert_int_equal(software()->calls("hipHostUnregister"), 0);
  software()->fail_none();
  for (int i = 0; i < LARGE; i++) free_large(i);
  fill_large();
  software()->reset_calls();
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_int_equal(software()->calls("hipHostUnregister"), 2);
  assert_int_equal(software()->calls("hipHostRegister"), 3);
  assert_ok(resume(NULL));
  assert_true(large_are_whole());
  assert_ok(suspend(NULL, HIPMM_CONTENT_DISCARD));
  assert_int_equal(software()->calls("hipHostUnregister"), 5);
  assert_ok(resume(NULL));
  for (int i = 0; i < LARGE; i++) free_large(i);
}

static void saves_to_pageable_memory(void **state)
{
  both_start(state, "'stack': [{'type': 'pool', 'growth': 'mapped', 'save_to': 'pageable'}, 'device']");
  fill_large();
  if (on_software()) software()->reset_calls();
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_true(fixture_value("pool", "saved_bytes") >= LARGE * LARGE_BYTES);
  free_large(1);
  assert_ok(resume(NULL));
  if (on_software()) assert_int_equal(software()->calls("hipHostRegister"), 0);
  assert_true(large_are_whole());
  for (int i = 0; i < LARGE; i++) free_large(i);
}

static const char in_file[] = "'stack': [{'type': 'pool', 'growth': 'mapped', 'folder': '.'}, 'device']";

/* The file is empty again after each resume. */
static void saves_to_a_file(void **state)
{
  struct stat file;
  both_start(state, in_file);
  fill_large();
  if (on_software()) software()->reset_calls();
  for (int round = 0; round < 2; round++) {
    int64_t live_bytes = fixture_value("pool", "live_bytes");
    assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
    assert_true(fixture_value("pool", "saved_bytes") >= live_bytes);
    assert_int_equal(fstat(fixture_unlinked_file(), &file), 0);
    assert_int_equal(file.st_size, fixture_value("pool", "saved_bytes"));
    free_large(1);
    assert_ok(resume(NULL));
    assert_true(large_are_whole());
    assert_int_equal(fstat(fixture_unlinked_file(), &file), 0);
    assert_int_equal(file.st_size, 0);
  }
  if (on_software()) assert_int_equal(software()->calls("hipHostRegister"), 0);
  for (int i = 0; i < LARGE; i++) free_large(i);
}

/* A full disk, and a file that cannot be read for a while. */
static void survives_a_file_that_fails(void **state)
{
  struct rlimit before, small = {MIB, 0};
  needs_software();
  both_start(state, in_file);
  fill_pool();
  int file = fixture_unlinked_file();
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small.rlim_max = before.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  enum hipmm_status status = suspend(NULL, HIPMM_CONTENT_KEEP);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_status(status, HIPMM_E_IO);
  assert_message("the pool stays in use: make room there, or discard the content");
  assert_int_equal(fixture_value("pool", "suspended_bytes"), 0);
  assert_int_equal(fixture_value("pool", "saved_bytes"), 0);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  check_pool();
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  int kept = dup(file);
  assert_true(kept >= 0);
  close(file);
  for (int i = 0; i < 2; i++) {
    assert_status(resume(NULL), HIPMM_E_IO);
    assert_message("stays suspended, and can be resumed later");
    assert_int_equal(fixture_held_bytes(), 0);
  }
  assert_int_equal(dup2(kept, file), file);
  close(kept);
  assert_ok(resume(NULL));
  check_pool();
  empty_pool();
}

/* The file needs its folder only when it is made. */
static void needs_a_folder_for_the_file(void **state)
{
  char folder[] = "suspend-XXXXXX", graph[256];
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': 'mapped', 'folder': '%s'}, 'device']", folder);
  fixture_start(graph);
  assert_int_equal(rmdir(folder), 0);
  fill_pool();
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_ok(resume(NULL));
  check_pool();
  empty_pool();
  hipmm_finalize();
  assert_status(fixture_try("", graph), HIPMM_E_IO);
  assert_message("/stack/0/folder");
  assert_message("cannot make a file in");
}

/* Another thread's call may be the one that fails. */
static void stays_in_use_when_one_piece_is_not_saved(void **state)
{
  static const char *const calls[] = {"hipHostRegister", "hipMemcpyAsync", "hipStreamCreateWithFlags",
                                      "hipStreamSynchronize"};
  both_start(state, mapped);
  needs_software();
  fill_large();
  for (int i = 0; i < 4; i++) {
    fixture_fail_call(calls[i], 1 + (i < 2 ? 2 : 0), HIPMM_HIP_ERROR_OUT_OF_MEMORY);
    assert_status(suspend(NULL, HIPMM_CONTENT_KEEP), HIPMM_E_OUT_OF_MEMORY);
    assert_message(calls[i]);
    assert_int_equal(fixture_value("pool", "suspended_bytes"), 0);
    assert_int_equal(fixture_value("pool", "saved_bytes"), 0);
  }
  assert_int_equal(software()->calls("hipHostUnregister"), software()->calls("hipHostRegister") - 1);
  assert_true(large_are_whole());
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  fixture_fail_call("hipMemcpyAsync", 3, HIPMM_HIP_ERROR_NOT_SUPPORTED);
  assert_status(resume(NULL), HIPMM_E_NOT_SUPPORTED);
  assert_message("stays suspended");
  assert_ok(resume(NULL));
  assert_true(large_are_whole());
  for (int i = 0; i < LARGE; i++) free_large(i);
}

/* Whatever call fails, the content is there in the end, or it is suspended and can be resumed. */
static unsigned damaged;

enum { SWEPT_BYTES = 300777 };

static unsigned char written[SWEPT_BYTES], read_back[SWEPT_BYTES];

static bool copies(void *to, const void *from)
{
  return !fixture_hip()->Memcpy(to, from, SWEPT_BYTES, HIPMM_HIP_MEMCPY_DEFAULT);
}

static void suspend_and_resume(void)
{
  void *ptr = NULL, *second = NULL;
  if (hipmm_allocate(NULL, SWEPT_BYTES, NULL, &ptr)) return;
  bool is_written = copies(ptr, written);
  if (hipmm_allocate(NULL, 300, NULL, &second)) second = NULL;
  if (!hipmm_resource_suspend(NULL, HIPMM_CONTENT_KEEP)) {
    if (second && !hipmm_deallocate(NULL, second, 300, NULL)) second = NULL;
    if (hipmm_resource_resume(NULL) && hipmm_resource_resume(NULL)) damaged++;
  }
  memset(read_back, 0, SWEPT_BYTES);
  bool is_read = copies(read_back, ptr) || copies(read_back, ptr);
  if (is_written && (!is_read || memcmp(read_back, written, SWEPT_BYTES))) damaged++;
  if (second && hipmm_deallocate(NULL, second, 300, NULL) && hipmm_deallocate(NULL, second, 300, NULL)) damaged++;
  if (hipmm_deallocate(NULL, ptr, SWEPT_BYTES, NULL) && hipmm_deallocate(NULL, ptr, SWEPT_BYTES, NULL)) damaged++;
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  damaged = 0;
  both_write(written, SWEPT_BYTES, 3);
  assert_true(fixture_fail_each_call("", mapped, suspend_and_resume) > 10);
  assert_true(fixture_fail_each_call("", in_file, suspend_and_resume) > 10);
  assert_int_equal(damaged, 0);
}

/* ---- Threads ---- */

static atomic_bool is_over;

static void allocate_and_free(int *failures)
{
  enum { MOST = 40 };
  void *blocks[MOST];
  int n = 0;
  uint64_t random = (uint64_t)(uintptr_t)&blocks;
  while (!atomic_load(&is_over)) {
    size_t bytes = random_below(&random, 8) ? 1 + random_below(&random, 4000) : 1 + random_below(&random, 200000);
    if (n < MOST && random_below(&random, 2)) {
      enum hipmm_status status = hipmm_allocate(NULL, bytes, NULL, &blocks[n]);
      if (!status) n++;
      *failures += status && status != HIPMM_E_STATE;
    } else if (n) {
      *failures += hipmm_deallocate(NULL, blocks[--n], 0, NULL) != HIPMM_OK;
    }
  }
  while (n) *failures += hipmm_deallocate(NULL, blocks[--n], 0, NULL) != HIPMM_OK;
}

static void threads_go_on_meanwhile(void **state)
{
  (void)state;
  fixture_start(mapped);
  struct content content = {fixture_allocate(3 * MIB, NULL), 3 * MIB};
  write_content(&content, 4);
  atomic_store(&is_over, false);
  fixture_start_threads(4, allocate_and_free);
  for (int i = 0; i < 6; i++) {
    assert_ok(suspend(NULL, i % 2 ? HIPMM_CONTENT_KEEP : HIPMM_CONTENT_DISCARD));
    if (i % 2 == 0) usleep(200);
    assert_ok(resume(NULL));
    if (i % 2 == 0) write_content(&content, 4);
    assert_true(has_content(&content, 4));
  }
  atomic_store(&is_over, true);
  fixture_join_threads();
  fixture_free(content.ptr, content.bytes, NULL);
  assert_int_equal(fixture_value("pool", "live_count"), 0);
}

/* Of several threads that suspend and resume, each call either does it or is refused. */
static atomic_int balance;

static void rival(int *failures)
{
  for (int i = 0; i < 8; i++) {
    enum hipmm_status status = hipmm_resource_suspend(NULL, HIPMM_CONTENT_KEEP);
    if (!status) atomic_fetch_add(&balance, 1);
    *failures += status && status != HIPMM_E_STATE;
    status = hipmm_resource_resume(NULL);
    if (!status) atomic_fetch_sub(&balance, 1);
    *failures += status && status != HIPMM_E_STATE;
  }
}

static void threads_suspend_it_in_rivalry(void **state)
{
  (void)state;
  fixture_start(mapped);
  struct content content = {fixture_allocate(3 * MIB, NULL), 3 * MIB};
  write_content(&content, 8);
  atomic_store(&balance, 0);
  fixture_run_threads(4, rival);
  assert_int_equal(balance, 0);
  assert_true(has_content(&content, 8));
  fixture_free(content.ptr, content.bytes, NULL);
}

/* ---- Memory of others ---- */

static const char shareable[] =
    "'resources': {'memory': {'type': 'device', 'handle_type': 'posix_fd'}, 'pool': {'type': "
    "'pool', 'upstream': 'memory', 'growth': 'mapped'}}, 'devices': {'default': 'pool'}";

/* An exported chunk keeps its memory and its content; a block elsewhere gives its memory back. */
static void leaves_exported_memory_where_it_is(void **state)
{
  struct hipmm_share_block block;
  struct hipmm_share_part parts[32];
  void *imported = NULL;
  (void)state;
  fixture_start(shareable);
  struct content shared = {fixture_allocate(4 * MIB, NULL), 4 * MIB},
                 own = {fixture_allocate(12 * MIB, NULL), 12 * MIB};
  write_content(&shared, 1);
  write_content(&own, 2);
  assert_ok(hipmm_share_export_block(NULL, shared.ptr, &block, parts, 32));
  assert_ok(hipmm_share_import_block(fixture_resource("memory"), &block, parts, 32, &imported));
  for (uint64_t i = 0; i < block.n_parts; i++) close(parts[i].fd);
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_in_range(fixture_value("pool", "reserved_bytes"), 4 * MIB, on_software() ? 40 * MIB : 112 * MIB);
  struct content theirs = {imported, 4 * MIB};
  assert_true(has_content(&theirs, 1));
  write_content(&theirs, 3); /* the other process goes on */
  if (on_software()) assert_status(hipmm_share_export_block(NULL, own.ptr, &block, parts, 32), HIPMM_E_STATE);
  assert_ok(resume(NULL));
  assert_true(has_content(&shared, 3));
  assert_true(has_content(&own, 2));
  free_to("memory", imported);
  fixture_free(shared.ptr, shared.bytes, NULL);
  fixture_free(own.ptr, own.bytes, NULL);
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

/* Keeps nothing in the device while it is suspended. */
static void gives_all_back(const struct content *content, unsigned seed)
{
  write_content(content, seed);
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_int_equal(fixture_held_bytes(), 0);
  assert_ok(resume(NULL));
  assert_true(has_content(content, seed));
}

static enum hipmm_status export_and_close(const void *ptr)
{
  struct hipmm_share_block block;
  struct hipmm_share_part parts[32];
  enum hipmm_status status = hipmm_share_export_block(NULL, ptr, &block, parts, 32);
  for (uint64_t i = 0; !status && i < block.n_parts; i++) close(parts[i].fd);
  return status;
}

static int refuse_export(int *fd, hipmm_hip_chunk_t handle)
{
  (void)fd, (void)handle;
  return 2; /* hipErrorOutOfMemory */
}

static void an_export_that_failed_keeps_nothing(void **state)
{
  (void)state;
  needs_software();
  fixture_start(shareable);
  struct content content = {fixture_allocate(4 * MIB, NULL), 4 * MIB};
  struct hipmm_hip *hip = (struct hipmm_hip *)(uintptr_t)fixture_hip();
  const struct hipmm_hip before = *hip;
  hip->MemExport = refuse_export;
  enum hipmm_status status = export_and_close(content.ptr);
  *hip = before;
  assert_status(status, HIPMM_E_OUT_OF_MEMORY);
  gives_all_back(&content, 5);
  fixture_free(content.ptr, content.bytes, NULL);
}

static int (*export_before)(int *fd, hipmm_hip_chunk_t handle);

/* Another thread's calls, which begin while a chunk is being exported. */
static struct {
  pthread_t thread;
  bool is_started, resumes;
  enum hipmm_status suspend_status, resume_status;
  sem_t is_over;
} meanwhile;

static void *suspend_meanwhile(void *unused)
{
  meanwhile.suspend_status = hipmm_resource_suspend(NULL, HIPMM_CONTENT_KEEP);
  if (meanwhile.resumes) meanwhile.resume_status = hipmm_resource_resume(NULL);
  sem_post(&meanwhile.is_over);
  return unused;
}

/* The other thread has some time to complete, if it did not wait. */
static int export_and_suspend(int *fd, hipmm_hip_chunk_t handle)
{
  int code = export_before(fd, handle);
  if (meanwhile.is_started) return code;
  meanwhile.is_started = true;
  pthread_create(&meanwhile.thread, NULL, suspend_meanwhile, NULL);
  struct timespec until = deadline_in_ms(CLOCK_REALTIME, 100);
  while (sem_timedwait(&meanwhile.is_over, &until) && errno == EINTR) continue;
  return code;
}

/* Otherwise the other process would get memory that the block has lost. That the chunk's handle is the same after a suspend
 * and a resume says nothing: the runtime gives the same handles again. */
static void a_block_keeps_its_memory_while_it_is_exported(bool resumes)
{
  struct hipmm_share_block block;
  struct hipmm_share_part parts[32];
  void *imported = NULL;
  needs_software();
  fixture_start(shareable);
  struct content content = {fixture_allocate(2 * MIB, NULL), 2 * MIB};
  write_content(&content, 7);
  struct hipmm_hip *hip = (struct hipmm_hip *)(uintptr_t)fixture_hip();
  export_before = hip->MemExport;
  hip->MemExport = export_and_suspend;
  meanwhile.is_started = false;
  meanwhile.resumes = resumes;
  sem_init(&meanwhile.is_over, 0, 0);
  enum hipmm_status status = hipmm_share_export_block(NULL, content.ptr, &block, parts, 32);
  hip->MemExport = export_before;
  pthread_join(meanwhile.thread, NULL);
  assert_ok(status);
  assert_ok(meanwhile.suspend_status);
  assert_true(fixture_held_bytes() >= 2 * MIB);
  assert_ok(resumes ? meanwhile.resume_status : resume(NULL));
  assert_ok(hipmm_share_import_block(fixture_resource("memory"), &block, parts, 32, &imported));
  for (uint64_t i = 0; i < block.n_parts; i++) close(parts[i].fd);
  struct content theirs = {imported, 2 * MIB};
  assert_true(has_content(&theirs, 7));
  write_content(&theirs, 8);
  assert_true(has_content(&content, 8));
  free_to("memory", imported);
  fixture_free(content.ptr, content.bytes, NULL);
}

static void no_block_is_exported_that_loses_its_memory_meanwhile(void **state)
{
  (void)state;
  a_block_keeps_its_memory_while_it_is_exported(false);
}

static void no_block_is_exported_that_gets_other_memory_meanwhile(void **state)
{
  (void)state;
  a_block_keeps_its_memory_while_it_is_exported(true);
}

/* Another process may still have the memory: it lives on there. In every other round the block is exported while the pool is
 * suspended once. */
static void an_exported_block_that_was_freed_keeps_nothing(void **state)
{
  (void)state;
  needs_software();
  fixture_start(shareable);
  bool is_suspended_once = false;
  for (size_t bytes = 2 * MIB; bytes <= 8 * MIB; bytes += 2 * MIB - 1000, is_suspended_once = !is_suspended_once) {
    void *shared = fixture_allocate(bytes, NULL);
    assert_ok(export_and_close(shared));
    assert_ok(export_and_close(shared));
    if (is_suspended_once) {
      assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
      assert_true(fixture_held_bytes() >= 2 * MIB);
      assert_ok(resume(NULL));
    }
    fixture_free(shared, bytes, NULL);
    struct content content = {fixture_allocate(4 * MIB, NULL), 4 * MIB}; /* in the same memory */
    gives_all_back(&content, (unsigned)bytes);
    fixture_free(content.ptr, content.bytes, NULL);
  }
}

/* It shares a chunk with other blocks. */
static void an_export_that_is_refused_keeps_nothing(void **state)
{
  (void)state;
  needs_software();
  fixture_start(shareable);
  struct content content = {fixture_allocate(1000, NULL), 1000};
  assert_status(export_and_close(content.ptr), HIPMM_E_NOT_SUPPORTED);
  gives_all_back(&content, 7);
  fixture_free(content.ptr, content.bytes, NULL);
}

/* Small granules, as of AMD's runtime, are put together: the block has one chunk, and is in no cache of a thread. */
static void exports_one_chunk_where_granules_are_small(void **state)
{
  struct hipmm_share_block block;
  (void)state;
  needs_software();
  fixture_start_with("'granularity': '4KiB'", shareable);
  struct content content = {fixture_allocate(4096, NULL), 4096};
  assert_status(export_and_close(content.ptr), HIPMM_E_NOT_SUPPORTED);
  fixture_free(content.ptr, content.bytes, NULL);
  content = (struct content){fixture_allocate(8 * MIB, NULL), 8 * MIB};
  assert_ok(hipmm_share_export_block(NULL, content.ptr, &block, NULL, 0));
  assert_int_equal(block.n_parts, 1);
  assert_ok(export_and_close(content.ptr));
  fixture_free(content.ptr, content.bytes, NULL);
}

/* What is freed while the pool is suspended can be trimmed. */
static void an_exported_block_can_be_freed_meanwhile(void **state)
{
  (void)state;
  needs_software();
  fixture_start(shareable);
  void *shared = fixture_allocate(4 * MIB, NULL);
  assert_ok(export_and_close(shared));
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_true(fixture_held_bytes() >= 4 * MIB);
  fixture_free(shared, 4 * MIB, NULL);
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(fixture_held_bytes(), 0);
  assert_ok(resume(NULL));
}

/* Every device that had access has it again. */
static void other_devices_reach_it_again(void **state)
{
  needs_devices(2);
  both_start(state, mapped);
  unsigned char *ptr = fixture_allocate(4 * MIB, NULL);
  fixture_fill(ptr, 6, 4 * MIB);
  assert_ok(suspend(NULL, HIPMM_CONTENT_KEEP));
  assert_ok(resume(NULL));
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  hipmm_stream_t stream = fixture_stream();
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 7, 2 * MIB, stream), 0);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
  fixture_drop_stream(stream);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  assert_true(fixture_holds(ptr, 7, 2 * MIB));
  assert_true(fixture_holds(ptr + 2 * MIB, 6, 2 * MIB));
  fixture_free(ptr, 4 * MIB, NULL);
}

#define ONCE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      BOTH(keeps_every_byte_and_gives_the_memory_back),
      BOTH(keeps_all_usable_bytes),
      BOTH(drops_the_content_that_nobody_wants),
      BOTH(waits_for_work_in_flight),
      ONCE(keeps_weights_and_drops_a_cache),
      ONCE(lets_two_pools_use_a_device_by_turns),
      ONCE(wakes_with_what_others_do_not_use),
      ONCE(refuses_allocations_from_all_that_depends_on_it),
      BOTH(frees_and_trims_meanwhile),
      BOTH(no_content_is_read_or_written_meanwhile),
      ONCE(tells_that_it_is_suspended),
      ONCE(tells_of_nothing_that_it_does_not_know),
      BOTH(is_finalized_while_suspended),
      BOTH(replays_a_captured_graph_afterwards),
      BOTH(lets_a_capture_go_on_at_the_resume),
      BOTH(is_no_memory_for_work_meanwhile),
      ONCE(refuses_what_makes_no_sense),
      ONCE(explains_why_segments_cannot),
      ONCE(refuses_under_a_guard),
      BOTH(stays_suspended_on_a_full_device),
      BOTH(stays_in_use_when_host_memory_is_short),
      cmocka_unit_test_teardown(saves_no_more_than_the_host_has, fixture_teardown),
      BOTH(keeps_content_of_several_pieces),
      BOTH(keeps_the_pinned_memory_for_the_next_time),
      BOTH(saves_to_pageable_memory),
      BOTH(saves_to_a_file),
      BOTH(survives_a_file_that_fails),
      ONCE(needs_a_folder_for_the_file),
      BOTH(stays_in_use_when_one_piece_is_not_saved),
      ONCE(loses_nothing_whatever_call_fails),
      ONCE(threads_go_on_meanwhile),
      ONCE(threads_suspend_it_in_rivalry),
      ONCE(leaves_exported_memory_where_it_is),
      ONCE(an_export_that_is_refused_keeps_nothing),
      ONCE(exports_one_chunk_where_granules_are_small),
      ONCE(an_export_that_failed_keeps_nothing),
      ONCE(no_block_is_exported_that_loses_its_memory_meanwhile),
      ONCE(no_block_is_exported_that_gets_other_memory_meanwhile),
      ONCE(an_exported_block_that_was_freed_keeps_nothing),
      ONCE(an_exported_block_can_be_freed_meanwhile),
      BOTH(other_devices_reach_it_again),
  };
  return cmocka_run_group_tests_name("suspend", tests, NULL, NULL);
}
