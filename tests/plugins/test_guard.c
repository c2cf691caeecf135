/* SPDX-License-Identifier: MIT */
/* Tests of guard: writes past the end, before the start and after the free are found where they are and told to the
 * byte, in every kind of memory and under both schedulers; nothing else is found, and nothing is lost. */
#include "../../plugins/guard/guard.h"
#include "../support/behaviour.h"
#include "../support/captures.h"
#include "../support/graph_functions.h"

#include <hipmm/stream.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char guarded[] = "'stack': ['guard', 'device']";
static const char strict[] = "'stack': [{'type': 'guard', 'on_damage': 'error'}, 'device']";

/* On the stream where the memory lets streams write, else from the host when the stream has come so far. */
static void scribble(char *at, size_t bytes, hipmm_stream_t stream)
{
  if (!fixture_hip()->MemsetAsync(at, 0x11, bytes, stream)) return;
  fixture_hip()->GetLastError();
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
  memset(at, 0x11, bytes);
}

/* Once all streams have come so far: zones, too, are filled on streams. */
static void poke(char *at)
{
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  fixture_fill(at, 7, 1);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
}

static void verify(enum hipmm_status wanted)
{
  assert_status(hipmm_resource_perform(fixture_resource("guard"), "verify"), wanted);
}

static void assert_finds(int64_t overruns, int64_t underruns, int64_t after_free)
{
  assert_int_equal(fixture_value("guard", "overruns"), overruns);
  assert_int_equal(fixture_value("guard", "underruns"), underruns);
  assert_int_equal(fixture_value("guard", "writes_after_free"), after_free);
}

/* ---- To the byte ---- */

struct memory_row {
  const char *name, *runtime, *graph;
};

#define STEPPED "'scheduler': 'stepped', 'seed': 5"

static const struct memory_row memories[] = {
    {"device", STEPPED, "'stack': ['guard', 'device']"},
    {"device, streams in threads", "'scheduler': 'threads'", "'stack': ['guard', 'device']"},
    {"managed", STEPPED, "'stack': ['guard', 'managed']"},
    {"pinned", STEPPED, "'stack': ['guard', 'pinned']"},
    {"host", STEPPED, "'stack': ['guard', 'host']"},
    {"host that devices reach", STEPPED ", 'pageable_memory_access': true", "'stack': ['guard', 'host']"},
    {"system", STEPPED ", 'pageable_memory_access': true", "'stack': ['guard', 'system']"},
    {"async", STEPPED, "'stack': ['guard', 'async']"},
    {"pool, mapped", STEPPED, "'stack': ['guard', {'type': 'pool', 'growth': 'mapped'}, 'device']"},
    {"pool, segments", STEPPED, "'stack': ['guard', {'type': 'pool', 'growth': 'segments'}, 'device']"},
    {"pool of host memory", STEPPED, "'stack': ['guard', 'pool', 'host']"},
};

static void finds_writes_past_the_end(void **state)
{
  const struct memory_row *row = *state;
  static const size_t sizes[] = {1, 255, 256, 1000, 4096, 100000};
  static const size_t starts[] = {0, 0, 7, 200, 255}, lengths[] = {1, 256, 9, 1, 1};
  int64_t n = 0;
  fixture_start_with(row->runtime, row->graph);
  hipmm_stream_t stream = fixture_stream();
  for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
      char wanted[100], *ptr = fixture_allocate(sizes[size], stream);
      scribble(ptr, sizes[size], stream);
      scribble(ptr + sizes[size] + starts[i], lengths[i], stream);
      logged();
      fixture_free(ptr, sizes[size], stream);
      snprintf(wanted, sizeof wanted, "bytes %zu to %zu after its end, from 0 on, %zu in all", starts[i],
               starts[i] + lengths[i] - 1, lengths[i]);
      assert_contains(logged(), wanted);
      assert_finds(++n, 0, 0);
    }
  verify(HIPMM_OK);
  assert_finds(n, 0, 0);
  fixture_drop_stream(stream);
}

static void finds_writes_before_the_start(void **state)
{
  const struct memory_row *row = *state;
  static const size_t farthest[] = {1, 8, 256, 100}, lengths[] = {1, 8, 256, 1};
  int64_t n = 0;
  fixture_start_with(row->runtime, row->graph);
  hipmm_stream_t stream = fixture_stream();
  for (size_t i = 0; i < sizeof farthest / sizeof *farthest; i++) {
    char wanted[100], *ptr = fixture_allocate(1000, stream);
    scribble(ptr, 1000, stream);
    scribble(ptr - farthest[i], lengths[i], stream);
    logged();
    fixture_free(ptr, 0, stream);
    snprintf(wanted, sizeof wanted, "bytes %zu to %zu before its start, from 1 on, %zu in all",
             farthest[i] - lengths[i] + 1, farthest[i], lengths[i]);
    assert_contains(logged(), wanted);
    assert_finds(0, ++n, 0);
  }
  fixture_drop_stream(stream);
}

static void finds_writes_after_the_free(void **state)
{
  const struct memory_row *row = *state;
  fixture_start_with(row->runtime, row->graph);
  hipmm_stream_t stream = fixture_stream();
  char *ptr = fixture_allocate(100000, stream), *other = fixture_allocate(5000, stream);
  scribble(ptr, 100000, stream);
  scribble(other, 5000, stream);
  fixture_free(ptr, 100000, stream);
  fixture_free(other, 5000, stream);
  scribble(ptr + 70000, 3, stream);
  scribble(ptr + 99999, 1, stream);
  logged();
  verify(HIPMM_OK);
  assert_contains(logged(), "(100000 bytes at ");
  verify(HIPMM_OK);
  assert_string_equal(logged(), ""); /* it is said once */
  assert_finds(0, 0, 1);
  scribble(other + 4000, 1000, stream);
  scribble(other - 1, 1, stream);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0); /* a block goes back when it likes */
  assert_ok(hipmm_resource_trim(fixture_resource("guard"), 0));
  assert_contains(logged(), "after it was freed: bytes 4000 to 4999 of it, from 0 on, 1000 in all; found when it "
                            "left the quarantine");
  assert_finds(0, 1, 2);
  assert_int_equal(fixture_value("guard", "quarantine_count"), 0);
  fixture_drop_stream(stream);
}

static void mends_what_it_found(void **state)
{
  const struct memory_row *row = *state;
  fixture_start_with(row->runtime, row->graph);
  assert_ok(hipmm_set("devices/0/guard/on_damage", "error"));
  hipmm_stream_t stream = fixture_stream();
  char *ptr = fixture_allocate(1000, stream);
  scribble(ptr - 3, 1006, stream);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, stream), HIPMM_E_SIZE);
  assert_message("bytes 0 to 2 after its end");
  fixture_free(ptr, 1000, stream);
  assert_finds(1, 1, 0);
  scribble(ptr, 1000, stream);
  verify(HIPMM_E_SIZE);
  assert_ok(hipmm_resource_trim(fixture_resource("guard"), 0));
  assert_finds(1, 1, 1);
  fixture_drop_stream(stream);
}

/* ---- What a find does ---- */

static void tells_the_farthest_bytes(void **state)
{
  (void)state;
  fixture_start(guarded);
  char *ptr = fixture_allocate(100000, NULL);
  fixture_free(ptr, 100000, NULL);
  poke(ptr + 70000);
  poke(ptr + 99998);
  logged();
  verify(HIPMM_OK);
  assert_contains(logged(), "after it was freed: bytes 70000 to 99998 of it, from 0 on, 2 in all; found when it was "
                            "verified");
}

static void tells_nothing_of_what_is_intact(void **state)
{
  static const char *const others[] = {"before its start", "after it was freed", " allocated here", " freed here"};
  (void)state;
  fixture_start(guarded);
  char *ptr = fixture_allocate(1000, NULL);
  poke(ptr + 1000);
  logged();
  fixture_free(ptr, 1000, NULL);
  const char *text = logged();
  assert_contains(text, "past its end: bytes 0 to 0 after its end");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_null(strstr(text, others[i]));
}

static void fails_the_free_if_so_configured(void **state)
{
  (void)state;
  fixture_start(strict);
  char *ptr = fixture_allocate(1000, NULL);
  poke(ptr + 1003);
  poke(ptr + 1010);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_SIZE);
  assert_message("was written past its end: bytes 3 to 10 after its end");
  assert_int_equal(fixture_value("guard", "guarded_count"), 1);
  poke(ptr - 2);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_SIZE);
  assert_message("was written before its start: bytes 2 to 2 before its start");
  fixture_free(ptr, 1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_POINTER);
  assert_finds(1, 1, 0);
  poke(ptr);
  verify(HIPMM_E_SIZE);
  assert_message("a block was damaged; the log names it");
  verify(HIPMM_OK);
}

static void verifies_what_is_allocated(void **state)
{
  (void)state;
  fixture_start(strict);
  char *blocks[5];
  for (int i = 0; i < 5; i++) blocks[i] = fixture_allocate(1000, NULL);
  verify(HIPMM_OK);
  poke(blocks[1] + 1000);
  poke(blocks[3] - 1);
  verify(HIPMM_E_SIZE);
  assert_message("2 blocks");
  verify(HIPMM_OK);
  assert_finds(1, 1, 0);
  for (int i = 0; i < 5; i++) fixture_free(blocks[i], 1000, NULL);
}

static void looks_at_what_is_left_in_the_end(void **state)
{
  (void)state;
  fixture_start(guarded);
  char *left = fixture_allocate(1000, NULL), *freed = fixture_allocate(500, NULL);
  fixture_free(freed, 500, NULL);
  poke(left + 1001);
  poke(freed + 17);
  logged();
  assert_ok(hipmm_finalize());
  const char *text = logged();
  assert_contains(text, "allocation 1 (1000 bytes at ");
  assert_contains(text, "past its end: bytes 1 to 1 after its end");
  assert_contains(text, "allocation 2 (500 bytes at ");
  assert_contains(text, "after it was freed: bytes 17 to 17 of it");
}

static void says_who_it_was(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'guard', 'stacks': 'all', 'stack_sample': 0}, 'device']");
  char *ptr = fixture_allocate(1000, NULL);
  fixture_free(ptr, 1000, NULL);
  poke(ptr);
  logged();
  verify(HIPMM_OK);
  const char *text = logged();
  assert_contains(text, " allocated here: callstack:");
  assert_contains(text, " freed here: callstack:");
  assert_contains(text, "in _cmocka_run_group_tests+");
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_POINTER);
  text = logged();
  assert_contains(text, "is freed a second time");
  assert_contains(text, " freed here: callstack:");
  assert_int_equal(fixture_value("guard", "double_frees"), 1);
}

/* ---- Quarantine ---- */

static void keeps_back_no_more_than_configured(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'guard', 'quarantine_size': '64KiB'}, 'device']");
  for (int i = 0; i < 50; i++) {
    fixture_free(fixture_allocate(5000, NULL), 5000, NULL);
    assert_in_range(fixture_value("guard", "quarantine_bytes"), 1, 65536);
  }
  assert_int_equal(fixture_held_bytes(), fixture_value("guard", "quarantine_bytes"));
  assert_int_equal(fixture_value("guard", "quarantine_count"), 65536 / 5632);
  fixture_free(fixture_allocate(70000, NULL), 70000, NULL); /* too large to be kept at all */
  assert_int_equal(fixture_value("guard", "quarantine_count"), 65536 / 5632);
  assert_ok(hipmm_resource_trim(fixture_resource("guard"), 20000));
  assert_in_range(fixture_value("guard", "quarantine_bytes"), 1, 20000);
}

static void never_uses_a_block_again_while_it_is_kept(void **state)
{
  (void)state;
  fixture_start("'stack': ['guard', {'type': 'pool', 'growth': 'mapped'}, 'device']");
  void *first = fixture_allocate(5000, NULL);
  fixture_free(first, 5000, NULL);
  void *second = fixture_allocate(5000, NULL);
  assert_ptr_not_equal(first, second);
  fixture_free(second, 5000, NULL);
}

static void gives_back_what_is_kept_when_memory_is_short(void **state)
{
  (void)state;
  needs_software(); /* of 256 MiB */
  fixture_start("'stack': [{'type': 'guard', 'quarantine_size': '200MiB'}, 'device']");
  fixture_free(fixture_allocate(150 * MIB, NULL), 150 * MIB, NULL);
  void *ptr = fixture_allocate(200 * MIB, NULL);
  assert_int_equal(fixture_value("guard", "quarantine_count"), 0);
  fixture_free(ptr, 200 * MIB, NULL);
}

static void can_do_without_quarantine_and_poison(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'guard', 'quarantine_size': 0, 'poison': false}, 'device']");
  char *ptr = fixture_allocate(1000, NULL);
  poke(ptr + 1000);
  fixture_free(ptr, 1000, NULL);
  assert_finds(1, 0, 0);
  assert_int_equal(fixture_held_bytes(), 0);
  if (on_software()) assert_int_equal(software()->calls("hipMemsetAsync"), 5); /* two zones, mended; and the write */
}

static void poisons_what_is_freed(void **state)
{
  (void)state;
  fixture_start(guarded);
  void *ptr = fixture_allocate(1000, NULL);
  fixture_fill(ptr, 1, 1000);
  fixture_free(ptr, 1000, NULL);
  assert_true(fixture_holds(ptr, MEMORY_POISON, 1000));
}

/* ---- Streams ---- */

/* Nothing orders the second stream after the first, and nothing needs to: nobody has used the block. */
static void fills_zones_before_a_block_goes_on(void **state)
{
  (void)state;
  for (int seed = 1; seed <= 20; seed++) {
    char runtime[60];
    snprintf(runtime, sizeof runtime, "'scheduler': 'stepped', 'seed': %d", seed);
    fixture_start_with(runtime, "'stack': [{'type': 'guard', 'quarantine_size': 0}, 'pool', 'device']");
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    fixture_free(fixture_allocate(1000, first), 1000, second);
    char *ptr = fixture_allocate(3000, second);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, 5, 3000, second), 0);
    assert_true(fixture_holds(ptr, 5, 3000));
    fixture_free(ptr, 3000, second);
    assert_finds(0, 0, 0);
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    assert_ok(hipmm_finalize());
  }
}

/* A free waits for the stream: the write that comes late there is found all the same. */
static void finds_writes_that_come_late(void **state)
{
  (void)state;
  for (int seed = 1; seed <= 20; seed++) {
    char runtime[60];
    snprintf(runtime, sizeof runtime, "'scheduler': 'stepped', 'seed': %d", seed);
    fixture_start_with(runtime, strict);
    hipmm_stream_t stream = fixture_stream();
    char *ptr = fixture_allocate(1000, stream);
    scribble(ptr, 1001, stream);
    assert_status(hipmm_deallocate(NULL, ptr, 1000, stream), HIPMM_E_SIZE);
    fixture_free(ptr, 1000, stream);
    fixture_drop_stream(stream); /* kept blocks do not need it */
    assert_ok(hipmm_resource_trim(fixture_resource("guard"), 0));
    assert_finds(1, 0, 0);
    assert_ok(hipmm_finalize());
  }
}

/* Nothing of ours comes later than the free and hides what others write then. */
static void finds_writes_of_another_stream_after_the_free(void **state)
{
  (void)state;
  for (int seed = 1; seed <= 20; seed++) {
    char runtime[60];
    snprintf(runtime, sizeof runtime, "'scheduler': 'stepped', 'seed': %d", seed);
    fixture_start_with(runtime, guarded);
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    char *ptr = fixture_allocate(1000, first);
    fixture_free(ptr, 1000, first);
    scribble(ptr + 10, 20, second);
    verify(HIPMM_OK);
    assert_finds(0, 0, 1);
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    assert_ok(hipmm_finalize());
  }
}

/* Other streams may wait for the thread that frees. */
static void waits_for_no_other_stream(void **state)
{
  (void)state;
  needs_software();
  fixture_start("'stack': ['guard', 'pool', 'device']");
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(1000, stream);
  uint64_t waits = software()->calls("hipDeviceSynchronize");
  fixture_free(ptr, 1000, stream);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), waits);
  fixture_drop_stream(stream);
}

/* A wait, which a check needs, would end the capture. */
static void leaves_captures_alone(void **state)
{
  (void)state;
  fixture_start("'stack': ['guard', 'pool', 'device']");
  hipmm_stream_t stream = fixture_stream();
  char *ptr = fixture_allocate(1000, stream);
  assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
  capture_begin(stream);
  fixture_free(ptr, 1000, stream);
  assert_true(capture_end());
  assert_int_equal(fixture_value("guard", "guarded_count"), 0);
  assert_int_equal(fixture_value("guard", "quarantine_count"), 0);
  fixture_drop_stream(stream);
}

/* A free on another stream than the allocation's waits for both, never for the device: that would end the capture. */
static void waits_beside_a_capture(void **state)
{
  struct graph_functions graphs;
  void *graph = NULL;
  (void)state;
  needs_software();
  fixture_start_with("'scheduler': 'stepped', 'seed': 4", "'stack': ['guard', 'pool', 'device']");
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t captured = fixture_stream(), one = fixture_stream(), other = fixture_stream();
  hipmm_stream_t own = HIPMM_PER_THREAD_STREAM;
  char *first = fixture_allocate(1000, one), *second = fixture_allocate(1000, own);
  scribble(second + 1000, 1, own);
  fixture_drop_stream(one);
  assert_int_equal(graphs.begin(captured, GRAPH_MODE_GLOBAL), 0);
  fixture_free(first, 1000, other);
  fixture_free(second, 1000, own);
  assert_int_equal(graphs.end(captured, &graph), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  assert_int_equal(fixture_value("guard", "overruns"), 1);
  assert_int_equal(fixture_value("guard", "quarantine_count"), 2);
  fixture_drop_stream(captured);
  fixture_drop_stream(other);
}

/* Such a graph fills the zones when it is launched, and nobody tells whether it was. */
static void accuses_no_graph_that_was_not_launched(void **state)
{
  struct graph_functions graphs;
  void *graph = NULL, *program = NULL;
  (void)state;
  needs_software();
  fixture_start("'stack': [{'type': 'guard', 'on_damage': 'error'}, 'pool', 'device']");
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t stream = fixture_stream();
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  char *idle = fixture_allocate(1000, stream), *used = fixture_allocate(1000, stream);
  assert_int_equal(fixture_hip()->MemsetAsync(used, 1, 1000, stream), 0);
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_ok(hipmm_log_set_level(HIPMM_LOG_WARNING));
  logged();
  fixture_free(idle, 1000, stream);
  assert_contains(logged(), "the graph was not launched");
  assert_ok(hipmm_log_set_level(HIPMM_LOG_ERROR));
  assert_int_equal(graphs.instantiate(&program, graph, 0), 0);
  assert_int_equal(graphs.launch(program, stream), 0);
  fixture_free(used, 1000, stream);
  assert_int_equal(fixture_value("guard", "overruns") + fixture_value("guard", "underruns"), 0);
  assert_int_equal(fixture_value("guard", "quarantine_count"), 2);
  assert_int_equal(graphs.destroy_program(program), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  fixture_drop_stream(stream);
}

/* Nobody can wait for an event of a capture. */
static void frees_a_block_that_a_capture_met(void **state)
{
  void *ptr = NULL;
  (void)state;
  needs_software();
  fixture_start_with("'scheduler': 'stepped', 'seed': 4", "'stack': ['guard', 'pool', 'device']");
  hipmm_stream_t stream = fixture_stream();
  capture_at_record(stream);
  enum hipmm_status status = hipmm_allocate(NULL, 1000, stream, &ptr);
  fixture_take_hip_back();
  assert_ok(status);
  capture_end_at_record(stream);
  fixture_free(ptr, 1000, stream);
  assert_finds(0, 0, 0);
  assert_int_equal(fixture_value("guard", "quarantine_count"), 1);
  assert_int_equal(faults_on_all_devices(), 0);
  fixture_drop_stream(stream);
}

enum { THREADS = 4, ROUNDS = 100 };

static void *allocate_and_free(void *argument)
{
  enum { HELD = 8 };
  void *ptrs[HELD];
  hipmm_stream_t stream = argument;
  for (int i = 0; i < ROUNDS; i++) {
    for (int held = 0; held < HELD; held++)
      if (hipmm_allocate(NULL, 500, stream, &ptrs[held])) return argument;
    for (int held = 0; held < HELD; held++)
      if (hipmm_deallocate(NULL, ptrs[held], 500, stream)) return argument;
  }
  return NULL;
}

/* Blocks whose zones are still being filled are no find. */
static void finds_nothing_where_nothing_is(void **state)
{
  pthread_t threads[THREADS];
  hipmm_stream_t streams[THREADS];
  void *failure = NULL;
  (void)state;
  fixture_start_with("'scheduler': 'stepped', 'seed': 9",
                     "'stack': [{'type': 'guard', 'quarantine_size': '8KiB'}, 'pool', 'device']");
  for (int i = 0; i < THREADS; i++) {
    streams[i] = fixture_stream();
    assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, streams[i]), 0);
  }
  for (int i = 0; i < 50; i++) verify(HIPMM_OK);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &failure);
    assert_null(failure);
    assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
  }
  assert_finds(0, 0, 0);
}

/* Each thread overruns every tenth of its blocks, while another verifies all. */
static void *overrun(void *argument)
{
  for (int i = 1; i <= ROUNDS; i++) {
    void *ptr;
    if (hipmm_allocate(NULL, 1000, NULL, &ptr)) return argument;
    if (i % 10 == 0 && fixture_hip()->MemsetAsync((char *)ptr + 1000, 1, 4, NULL)) return argument;
    if (hipmm_deallocate(NULL, ptr, 1000, NULL)) return argument;
  }
  return NULL;
}

static void finds_all_under_threads(void **state)
{
  pthread_t threads[THREADS];
  void *failure = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'guard', 'quarantine_size': '20KiB'}, 'pool', 'device']");
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, overrun, threads), 0);
  for (int i = 0; i < 10; i++) verify(HIPMM_OK);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &failure);
    assert_null(failure);
  }
  assert_finds(THREADS * ROUNDS / 10, 0, 0);
}

/* ---- Shape ---- */

static void keeps_alignment_and_size(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', {'type': 'guard', 'zone_size': 1000}, 'pool', 'device']");
  for (size_t alignment = 256; alignment <= MIB; alignment *= 4) {
    void *ptr = NULL;
    assert_ok(hipmm_allocate_aligned(NULL, 777, alignment, NULL, &ptr));
    assert_int_equal((uintptr_t)ptr % alignment, 0);
    assert_int_equal(fixture_value("statistics", "current_bytes"), 777);
    struct hipmm_block block;
    struct hipmm_resource *guard = fixture_resource("guard");
    assert_ok(guard->ops->find(guard->self, ptr, &block));
    assert_int_equal(block.bytes, 777);
    poke((char *)ptr + 777 + 999);
    poke((char *)ptr - 1000);
    assert_ok(hipmm_deallocate_aligned(NULL, ptr, 0, alignment, NULL));
    assert_int_equal(fixture_value("statistics", "current_bytes"), 0);
  }
  assert_finds(7, 7, 0);
}

struct seen {
  size_t live_bytes, pending_bytes;
  unsigned n;
};

static void see(void *closure, const struct hipmm_extent *extent)
{
  struct seen *seen = closure;
  seen->n++;
  *(extent->state == HIPMM_EXTENT_LIVE ? &seen->live_bytes : &seen->pending_bytes) += extent->bytes;
}

static void shows_its_blocks(void **state)
{
  struct seen seen = {0};
  (void)state;
  fixture_start(guarded);
  void *first = fixture_allocate(1000, NULL), *second = fixture_allocate(2000, NULL);
  fixture_free(first, 1000, NULL);
  struct hipmm_resource *guard = fixture_resource("guard");
  assert_ok(guard->ops->visit(guard->self, see, &seen));
  assert_int_equal(seen.n, 2);
  assert_int_equal(seen.live_bytes, 2000);
  assert_int_equal(seen.pending_bytes, fixture_value("guard", "quarantine_bytes"));
  fixture_free(second, 2000, NULL);
}

static void takes_new_options_while_in_use(void **state)
{
  (void)state;
  fixture_start(guarded);
  char *before = fixture_allocate(1000, NULL);
  assert_ok(hipmm_set("devices/0/guard/zone_size", "4KiB"));
  assert_ok(hipmm_set("devices/0/guard/on_damage", "error"));
  assert_ok(hipmm_set("devices/0/guard/quarantine_size", "0"));
  assert_status(hipmm_set("devices/0/guard/zone_size", "0"), HIPMM_E_CONFIG);
  char *after = fixture_allocate(1000, NULL);
  poke(before + 1000);
  poke(after + 1000 + 4095);
  assert_status(hipmm_deallocate(NULL, before, 1000, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, after, 1000, NULL), HIPMM_E_SIZE);
  assert_message("bytes 4095 to 4095 after its end");
  fixture_free(before, 1000, NULL);
  fixture_free(after, 1000, NULL);
  assert_int_equal(fixture_held_bytes(), 0);
}

/* A write past the requested size is inside a plain block of the pool, and a guarded one tells of it. */
static void guards_one_in_so_many(void **state)
{
  enum { COUNT = 400 };
  char *blocks[COUNT];
  int64_t n_guarded = 0;
  (void)state;
  fixture_start("'stack': [{'type': 'guard', 'on_damage': 'error', 'sample_interval': 8}, 'pool', 'device']");
  for (int i = 0; i < COUNT; i++) blocks[i] = fixture_allocate(1000, NULL);
  int64_t count = fixture_value("guard", "guarded_count");
  assert_in_range(count, 10, 150);
  assert_int_equal(fixture_value("guard", "guarded_bytes"), 1000 * count);
  assert_int_equal(fixture_value("pool", "live_bytes"), 1000 * (COUNT - count) + 1536 * count);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  for (int i = 0; i < COUNT; i++) {
    fixture_fill(blocks[i] + 1000, 7, 1);
    enum hipmm_status status = hipmm_deallocate(NULL, blocks[i], 1000, NULL);
    if (!status) continue;
    assert_int_equal(status, HIPMM_E_SIZE);
    n_guarded++;
    fixture_free(blocks[i], 1000, NULL);
  }
  assert_int_equal(n_guarded, count);
  assert_finds(count, 0, 0);
  for (int i = 0; i < COUNT; i++) assert_status(hipmm_deallocate(NULL, blocks[i], 1000, NULL), HIPMM_E_POINTER);
  assert_int_equal(fixture_value("guard", "double_frees"), count);
  assert_ok(hipmm_resource_trim(fixture_resource("guard"), 0));
  assert_int_equal(fixture_value("pool", "live_count"), 0);
}

/* Blocks of either time are freed as what they are. */
static void samples_more_or_less_while_in_use(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'guard', 'quarantine_size': 0}, 'device']");
  void *guarded_block = fixture_allocate(1000, NULL);
  assert_status(hipmm_deallocate(NULL, &state, 0, NULL), HIPMM_E_POINTER);
  assert_ok(hipmm_set("devices/0/guard/sample_interval", "1000000000"));
  void *plain = fixture_allocate(1000, NULL);
  assert_int_equal(fixture_value("guard", "guarded_count"), 1);
  assert_ok(hipmm_set("devices/0/guard/sample_interval", "1"));
  void *again = fixture_allocate(1000, NULL);
  assert_int_equal(fixture_value("guard", "guarded_count"), 2);
  fixture_free(plain, 1000, NULL);
  fixture_free(again, 1000, NULL);
  assert_status(hipmm_deallocate(NULL, guarded_block, 999, NULL), HIPMM_E_SIZE);
  fixture_free(guarded_block, 1000, NULL);
  assert_status(hipmm_deallocate(NULL, guarded_block, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, plain, 1000, NULL), HIPMM_E_POINTER);
  assert_int_equal(fixture_held_bytes(), 0);
}

static int64_t processor_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The processor's time for allocating and freeing many blocks that are not guarded. */
static int64_t time_plain_blocks(void)
{
  int64_t start = processor_ns();
  for (int i = 0; i < 4000; i++) fixture_free(fixture_allocate(100, NULL), 100, NULL);
  return processor_ns() - start;
}

/* No free of a block without a guard looks through the quarantine. */
static void frees_plain_blocks_at_once_however_many_are_kept(void **state)
{
  enum { KEPT = 16384 };
  (void)state;
  fixture_start("'stack': [{'type': 'guard', 'poison': false, 'zone_size': 8}, 'pool', 'device']");
  void **blocks = calloc(KEPT, sizeof *blocks);
  assert_non_null(blocks);
  assert_ok(hipmm_set("devices/0/guard/sample_interval", "1000000000"));
  int64_t empty = time_plain_blocks();
  assert_ok(hipmm_set("devices/0/guard/sample_interval", "1"));
  for (int i = 0; i < KEPT; i++) blocks[i] = fixture_allocate(1, NULL);
  for (int i = 0; i < KEPT; i++) fixture_free(blocks[i], 1, NULL);
  free(blocks);
  assert_int_equal(fixture_value("guard", "quarantine_count"), KEPT);
  assert_ok(hipmm_set("devices/0/guard/sample_interval", "1000000000"));
  assert_in_range(time_plain_blocks(), 1, 10 * empty + 10000000);
}

static void refuses_bad_options(void **state)
{
  static const struct fixture_refusal bad[] = {{"'zone_size': 0", "0 is"},      {"'zone_size': '2GiB'", "2GiB"},
                                               {"'quarantine_size': -1", "-1"}, {"'on_damage': 'abort'", "abort"},
                                               {"'stack_depth': 65", "65"},     {"'poison': 1", "poison"},
                                               {"'sample_interval': 0", "0"}};
  (void)state;
  fixture_refuses("guard", bad, sizeof bad / sizeof *bad);
}

/* ---- Failures ---- */

/* Tries everything twice, as far as a failing call leaves it. */
static void use_all(void)
{
  void *ptrs[6] = {NULL};
  for (int i = 0; i < 6; i++)
    for (int tries = 0; tries < 2 && hipmm_allocate(NULL, 3000, NULL, &ptrs[i]); tries++) continue;
  for (int i = 0; i < 5; i++)
    if (hipmm_deallocate(NULL, ptrs[i], 3000, NULL)) hipmm_deallocate(NULL, ptrs[i], 0, NULL);
  struct hipmm_resource *top = NULL;
  if (hipmm_resource_get_for_device(0, &top)) return;
  hipmm_resource_perform(top, "verify");
  hipmm_resource_trim(top, 0);
  hipmm_resource_release(top);
}

static void loses_nothing_whatever_fails(void **state)
{
  (void)state;
  assert_in_range(
      fixture_fail_each_call("", "'stack': [{'type': 'guard', 'quarantine_size': '8KiB'}, 'pool', 'device']", use_all),
      50, 100000);
  assert_in_range(fixture_fail_each_call("", "'stack': ['guard', 'pinned']", use_all), 50, 100000);
}

enum { UNKNOWN_ERROR = 999 };

/* What could not be compared was not found intact. */
static void fails_to_verify_if_it_cannot_compare(void **state)
{
  static const struct {
    const char *name;
    uint64_t nth;
  } failures[] = {{"hipDeviceSynchronize", 1}, {"hipDeviceSynchronize", 2}, {"hipMemcpyAsync", 1},
                  {"hipMemcpyAsync", 4},       {"hipStreamSynchronize", 1}, {"hipMemcpyAsync", 9}};
  char *blocks[4];
  (void)state;
  needs_software();
  fixture_start(guarded);
  for (int i = 0; i < 4; i++) blocks[i] = fixture_allocate(1000, NULL);
  fixture_free(blocks[3], 1000, NULL);
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    fixture_fail_call(failures[i].name, failures[i].nth, UNKNOWN_ERROR);
    assert_int_not_equal(hipmm_resource_perform(fixture_resource("guard"), "verify"), HIPMM_OK);
    assert_message(failures[i].name);
    verify(HIPMM_OK);
  }
  assert_finds(0, 0, 0);
  for (int i = 0; i < 3; i++) fixture_free(blocks[i], 1000, NULL);
}

/* A block stays allocated, and is checked when the free is tried again. */
static void fails_the_free_if_it_cannot_check_or_free(void **state)
{
  static const struct {
    const char *first, *second;
    int64_t found; /* before the free failed */
  } failures[] = {
      {"hipStreamSynchronize", "hipDeviceSynchronize", 0}, {"hipMemcpyAsync", NULL, 0}, {"hipFree", NULL, 1}};
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    fixture_start("'stack': [{'type': 'guard', 'quarantine_size': 0}, 'device']");
    char *ptr = fixture_allocate(1000, NULL);
    poke(ptr + 1000);
    fixture_fail_call(failures[i].first, 1, UNKNOWN_ERROR);
    if (failures[i].second) fixture_fail_call(failures[i].second, 1, UNKNOWN_ERROR);
    assert_int_not_equal(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_OK);
    assert_finds(failures[i].found, 0, 0);
    assert_int_equal(fixture_value("guard", "guarded_count"), 1);
    fixture_free(ptr, 1000, NULL);
    assert_finds(1, 0, 0);
    assert_int_equal(fixture_held_bytes(), 0);
    assert_ok(hipmm_finalize());
  }
}

enum { SIZE = 40000 };

/* In memory of any kind. */
static bool is_scribbled(const char *ptr)
{
  static char copy[SIZE];
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(fixture_hip()->Memcpy(copy, ptr, SIZE, HIPMM_HIP_MEMCPY_DEFAULT), 0);
  return *copy == 0x11 && !memcmp(copy, copy + 1, SIZE - 1);
}

/* Frees a block for each call of that name that a free makes, and lets the call fail. The number of frees that failed. */
static unsigned fail_each_call_of_a_free(const char *name)
{
  unsigned failed = 0;
  char *ptr = fixture_allocate(SIZE, NULL);
  uint64_t before = software()->calls(name);
  fixture_free(ptr, SIZE, NULL);
  uint64_t calls = software()->calls(name) - before;
  for (uint64_t nth = 1; nth <= calls; nth++) {
    ptr = fixture_allocate(SIZE, NULL);
    scribble(ptr, SIZE, NULL);
    fixture_fail_call(name, nth, UNKNOWN_ERROR);
    bool fails = hipmm_deallocate(NULL, ptr, SIZE, NULL);
    software()->fail_none();
    if (!fails) continue;
    if (!is_scribbled(ptr)) fail_msg("call %llu of %s", (unsigned long long)nth, name);
    fixture_free(ptr, SIZE, NULL);
    failed++;
  }
  return failed;
}

/* The content stays, and nothing that comes late overwrites it. A free that succeeds leaves a block that looks as it
 * should. */
static void keeps_the_content_if_the_free_fails(void **state)
{
  static const struct memory_row rows[] = {
      {"kept", STEPPED, "'stack': ['guard', 'device']"},
      {"kept, in a pool", STEPPED, "'stack': ['guard', 'pool', 'device']"},
      {"kept, filled by copies", STEPPED, "'stack': ['guard', 'host']"},
      {"kept for a short time", STEPPED, "'stack': [{'type': 'guard', 'quarantine_size': '64KiB'}, 'device']"},
      {"not kept", STEPPED, "'stack': [{'type': 'guard', 'quarantine_size': 0}, 'device']"}};
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    unsigned failed = 0;
    const char *name;
    fixture_start_with(rows[i].runtime, rows[i].graph);
    for (size_t row = 0; (name = software()->call(row, NULL)); row++) failed += fail_each_call_of_a_free(name);
    assert_in_range(failed, 5, 100);
    verify(HIPMM_OK);
    assert_finds(0, 0, 0);
    assert_ok(hipmm_resource_trim(fixture_resource("guard"), 0));
    assert_int_equal(fixture_held_bytes(), 0);
    assert_ok(hipmm_finalize());
  }
}

static const struct behaviour_stack stacks[] = {
    {"on a device", "'scheduler': 'threads'", "'stack': ['guard', 'device']", false},
    {"on a pool", "'scheduler': 'stepped', 'seed': 2",
     "'stack': ['guard', {'type': 'pool', 'growth': 'mapped'}, 'device']", true},
    {"on async", "'scheduler': 'stepped', 'seed': 3", "'stack': ['guard', 'async']", false},
};

enum { STACKS = sizeof stacks / sizeof *stacks, MEMORIES = sizeof memories / sizeof *memories };

static const struct CMUnitTest in_memory[] = {
    {.name = "finds writes past the end", .test_func = finds_writes_past_the_end},
    {.name = "finds writes before the start", .test_func = finds_writes_before_the_start},
    {.name = "finds writes after the free", .test_func = finds_writes_after_the_free},
    {.name = "mends what it found", .test_func = mends_what_it_found},
};

enum { IN_MEMORY = sizeof in_memory / sizeof *in_memory };

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest others[] = {
    TEST(tells_the_farthest_bytes),
    TEST(tells_nothing_of_what_is_intact),
    TEST(fails_the_free_if_so_configured),
    TEST(verifies_what_is_allocated),
    TEST(looks_at_what_is_left_in_the_end),
    TEST(says_who_it_was),
    TEST(keeps_back_no_more_than_configured),
    TEST(never_uses_a_block_again_while_it_is_kept),
    TEST(gives_back_what_is_kept_when_memory_is_short),
    TEST(can_do_without_quarantine_and_poison),
    TEST(poisons_what_is_freed),
    TEST(fills_zones_before_a_block_goes_on),
    TEST(finds_writes_that_come_late),
    TEST(finds_writes_of_another_stream_after_the_free),
    TEST(waits_for_no_other_stream),
    cmocka_unit_test_setup_teardown(leaves_captures_alone, fixture_setup, capture_teardown),
    cmocka_unit_test_setup_teardown(waits_beside_a_capture, fixture_setup, fixture_teardown),
    cmocka_unit_test_setup_teardown(accuses_no_graph_that_was_not_launched, fixture_setup, fixture_teardown),
    cmocka_unit_test_setup_teardown(frees_a_block_that_a_capture_met, fixture_setup, fixture_teardown),
    TEST(finds_nothing_where_nothing_is),
    TEST(finds_all_under_threads),
    TEST(keeps_alignment_and_size),
    TEST(shows_its_blocks),
    TEST(takes_new_options_while_in_use),
    TEST(guards_one_in_so_many),
    TEST(samples_more_or_less_while_in_use),
    TEST(frees_plain_blocks_at_once_however_many_are_kept),
    TEST(refuses_bad_options),
    TEST(loses_nothing_whatever_fails),
    TEST(fails_to_verify_if_it_cannot_compare),
    TEST(fails_the_free_if_it_cannot_check_or_free),
    TEST(keeps_the_content_if_the_free_fails),
};

enum { OTHERS = sizeof others / sizeof *others };

int main(void)
{
  static struct CMUnitTest tests[OTHERS + MEMORIES * IN_MEMORY + STACKS * BEHAVIOURS];
  static char names[MEMORIES * IN_MEMORY][100];
  log_to_file("error");
  size_t n = 0;
  for (; n < OTHERS; n++) tests[n] = others[n];
  for (size_t i = 0; i < MEMORIES * IN_MEMORY; i++, n++) {
    snprintf(names[i], sizeof names[i], "%s in memory of %s", in_memory[i % IN_MEMORY].name,
             memories[i / IN_MEMORY].name);
    tests[n] = in_memory[i % IN_MEMORY];
    tests[n].name = names[i];
    tests[n].setup_func = fixture_setup;
    tests[n].teardown_func = fixture_teardown;
    tests[n].initial_state = (void *)(uintptr_t)&memories[i / IN_MEMORY];
  }
  n += behaviour_tests(stacks, STACKS, tests + n);
  return _cmocka_run_group_tests("guard", tests, n, NULL, NULL);
}
