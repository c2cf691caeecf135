/* SPDX-License-Identifier: MIT */
/* Tests of how memory goes from stream to stream: in order, with as little waiting as the option `record` allows, and
 * without a look at a stream that may be gone. What a stream finds in its blocks is the proof: the stepped scheduler runs
 * work in the order that hurts most. */
#include "../plugins/model.h"
#include "pattern.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEGACY     ((hipStream_t)1)
#define PER_THREAD ((hipStream_t)2)

enum { KIB = 1024 };

static const char *const growths[] = {"mapped", "segments"};
static const char *const records[] = {"auto", "lazy", "on_free"};
enum { GROWTHS = 2, RECORDS = 3, AUTO = 0, LAZY = 1, ON_FREE = 2 };

static void start(const char *runtime_options, int growth, int record, const char *options)
{
  char graph[300];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s', 'record': '%s'%s}, 'device']",
           growths[growth], records[record], options);
  rig_start_with(runtime_options, graph);
}

static void finish(void)
{
  assert_ok(hipmm_finalize());
  assert_int_equal(live_on_all_devices(), 0);
  software()->reset();
}

static uint64_t all_calls(void)
{
  uint64_t calls = 0, count;
  for (size_t row = 0; software()->call(row, &count); row++) calls += count;
  return calls;
}

/* ---- Work ---- */

struct look {
  const unsigned char *ptr;
  size_t bytes;
  unsigned char tag;
};

static atomic_uint wrong; /* looks that found something else */

static void look_at(void *argument)
{
  struct look *look = argument;
  if (!holds_pattern(look->ptr, look->bytes, look->tag)) atomic_fetch_add(&wrong, 1);
  free(look);
}

/* Work on the stream that fills the block, and later looks whether anybody else has written to it. */
static void use(void *ptr, size_t bytes, hipStream_t stream)
{
  static unsigned char last;
  struct look *look = malloc(sizeof *look);
  *look = (struct look){ptr, bytes, ++last};
  assert_int_equal(rig_hip()->MemsetAsync(ptr, look->tag, bytes, stream), 0);
  assert_int_equal(rig_hip()->LaunchHostFunc(stream, look_at, look), 0);
}

/* Allocates, uses and frees without waiting for anything. */
static void *use_and_free(size_t bytes, hipStream_t stream)
{
  void *ptr = rig_allocate(bytes, stream);
  use(ptr, bytes, stream);
  rig_free(ptr, bytes, stream);
  return ptr;
}

static void assert_undisturbed(void)
{
  assert_int_equal(rig_hip()->DeviceSynchronize(), 0);
  assert_int_equal(atomic_load(&wrong), 0);
  assert_int_equal(faults_on_all_devices(), 0);
}

/* ---- Dead handles. The table of HIP functions is the process's own: it is lent to these for a while. ---- */

static struct hipmm_hip original;
static hipStream_t dead;
static atomic_uint dead_uses;

static void note(hipStream_t stream)
{
  if (dead && stream == dead) atomic_fetch_add(&dead_uses, 1);
}

static int spy_on_record(hipEvent_t event, hipStream_t stream)
{
  note(stream);
  return original.EventRecord(event, stream);
}

static int spy_on_wait(hipStream_t stream, hipEvent_t event, unsigned flags)
{
  note(stream);
  return original.StreamWaitEvent(stream, event, flags);
}

static int spy_on_synchronize(hipStream_t stream)
{
  note(stream);
  return original.StreamSynchronize(stream);
}

static int spy_on_query(hipStream_t stream)
{
  note(stream);
  return original.StreamQuery(stream);
}

static int spy_on_id(hipStream_t stream, unsigned long long *id)
{
  note(stream);
  return original.StreamGetId(stream, id);
}

static void spy(void)
{
  struct hipmm_hip *table = (struct hipmm_hip *)(uintptr_t)rig_hip();
  original = *table;
  table->EventRecord = spy_on_record;
  table->StreamWaitEvent = spy_on_wait;
  table->StreamSynchronize = spy_on_synchronize;
  table->StreamQuery = spy_on_query;
  if (table->StreamGetId) table->StreamGetId = spy_on_id;
  atomic_store(&dead_uses, 0);
}

static int teardown(void **state)
{
  if (original.struct_size) *(struct hipmm_hip *)(uintptr_t)rig_hip() = original;
  original.struct_size = 0;
  dead = NULL;
  atomic_store(&wrong, 0);
  return rig_teardown(state);
}

/* ---- One stream ---- */

/* Allocates and frees on the stream in turn; returns how many calls of HIP that took. */
static uint64_t calls_of_reuse(size_t bytes, hipStream_t stream)
{
  struct hipmm_resource *pool = rig_resource("pool");
  rig_free(rig_allocate(bytes, stream), bytes, stream);
  software()->reset_calls();
  for (int round = 0; round < 50; round++) {
    void *ptr = NULL;
    assert_ok(hipmm_allocate(pool, bytes, stream, &ptr));
    assert_ok(hipmm_deallocate(pool, ptr, round % 2 ? bytes : 0, stream));
  }
  return all_calls();
}

/* Of a stream that may be gone HIP is asked whether it still is the one, and nothing else. */
static void reuses_on_the_same_stream_without_a_call(void **state)
{
  static const size_t sizes[] = {1, 1000, 4 * KIB, 64 * KIB, 512 * KIB};
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    start("", growth, AUTO, "");
    for (size_t bytes = 1; bytes <= 64 * MIB; bytes *= 8) assert_int_equal(calls_of_reuse(bytes, NULL), 0);
    hipStream_t retained = rig_stream(), other = rig_stream();
    assert_ok(hipmm_stream_retain(0, retained));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      assert_int_equal(calls_of_reuse(sizes[i], NULL), 0);
      assert_int_equal(calls_of_reuse(sizes[i], LEGACY), 0);
      assert_int_equal(calls_of_reuse(sizes[i], PER_THREAD), 0);
      assert_int_equal(calls_of_reuse(sizes[i], retained), 0);
      uint64_t calls = calls_of_reuse(sizes[i], other);
      assert_int_equal(calls, software()->calls("hipStreamGetId"));
      assert_ok(hipmm_resource_trim(rig_resource("pool"), 0));
    }
    assert_ok(hipmm_stream_retire(0, retained));
    rig_drop_stream(retained);
    rig_drop_stream(other);
    finish();
  }
}

static void knows_the_default_stream_by_both_its_names(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    start("'scheduler': 'stepped'", growth, AUTO, ", 'maximum_size': '4MiB'");
    struct hipmm_resource *pool = rig_resource("pool");
    void *large = use_and_free(4 * MIB, NULL);
    software()->reset_calls();
    for (int round = 0; round < 10; round++) {
      void *ptr = NULL;
      assert_ok(hipmm_allocate(pool, 4 * MIB, round % 2 ? NULL : LEGACY, &ptr));
      assert_ptr_equal(ptr, large);
      assert_ok(hipmm_deallocate(pool, ptr, 4 * MIB, round % 3 ? NULL : LEGACY));
    }
    for (int round = 0; round < 10; round++) {
      void *ptr = NULL;
      assert_ok(hipmm_allocate(pool, 1000, round % 2 ? NULL : LEGACY, &ptr));
      assert_ok(hipmm_deallocate(pool, ptr, 1000, round % 3 ? NULL : LEGACY));
    }
    assert_int_equal(all_calls(), 0);
    assert_undisturbed();
    finish();
  }
}

static void retires_the_default_stream_by_either_name(void **state)
{
  static const hipStream_t names[] = {NULL, LEGACY};
  (void)state;
  for (int i = 0; i < 2; i++) {
    start("'scheduler': 'stepped'", 0, LAZY, ", 'maximum_size': '4MiB'");
    hipStream_t stream = rig_stream();
    void *ptr = use_and_free(4 * MIB, names[1 - i]);
    assert_ok(hipmm_stream_retire(0, names[i]));
    software()->reset_calls();
    assert_ptr_equal(use_and_free(4 * MIB, stream), ptr);
    assert_int_equal(software()->calls("hipStreamWaitEvent") + software()->calls("hipEventRecord"), 0);
    assert_undisturbed();
    rig_drop_stream(stream);
    finish();
  }
}

/* ---- From stream to stream ---- */

/* The pool has room for one block, so that only reuse serves the next stream. */
static void hand_round(int growth, int record, uint64_t seed, bool retains)
{
  char runtime[100];
  snprintf(runtime, sizeof runtime, "'scheduler': 'stepped', 'seed': %llu", (unsigned long long)seed);
  start(runtime, growth, record, ", 'maximum_size': '2MiB'");
  hipStream_t streams[] = {rig_stream(), rig_stream(), NULL, PER_THREAD};
  if (retains) assert_ok(hipmm_stream_retain(0, streams[0]));
  if (retains) assert_ok(hipmm_stream_retain(0, streams[1]));
  static const size_t sizes[] = {2 * MIB, 1000, 80 * KIB};
  for (unsigned round = 0; round < 24; round++) use_and_free(sizes[round % 3], streams[(round * 7 + round / 5) % 4]);
  assert_undisturbed();
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_stream_retire(0, streams[i]));
    rig_drop_stream(streams[i]);
  }
  finish();
}

static void orders_streams_however_it_records(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++)
      for (uint64_t seed = 1; seed <= 4; seed++) hand_round(growth, record, seed, seed % 2);
}

/* A block in use that is freed on another stream is that stream's. */
static void orders_after_the_stream_that_it_was_freed_on(void **state)
{
  (void)state;
  for (int record = 0; record < RECORDS; record++) {
    start("'scheduler': 'stepped', 'seed': 2", 0, record, ", 'maximum_size': '2MiB'");
    hipStream_t first = rig_stream(), second = rig_stream();
    for (int round = 0; round < 20; round++) {
      void *ptr = rig_allocate(2 * MIB, first);
      use(ptr, 2 * MIB, first);
      assert_int_equal(rig_hip()->StreamSynchronize(first), 0);
      use(ptr, 2 * MIB, second);
      rig_free(ptr, 2 * MIB, second);
      assert_ptr_equal(use_and_free(2 * MIB, first), ptr);
    }
    assert_undisturbed();
    assert_ok(hipmm_stream_retire(0, first));
    assert_ok(hipmm_stream_retire(0, second));
    rig_drop_stream(first);
    rig_drop_stream(second);
    finish();
  }
}

/* ---- How it waits ---- */

static void has_a_stream_wait_for_a_retained_one(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++) {
      start("'scheduler': 'stepped'", growth, record, ", 'maximum_size': '4MiB'");
      hipStream_t first = rig_stream(), second = rig_stream();
      if (record == AUTO) assert_ok(hipmm_stream_retain(0, first));
      void *ptr = use_and_free(4 * MIB, first);
      software()->reset_calls();
      assert_ptr_equal(rig_allocate(4 * MIB, second), ptr);
      assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
      assert_int_equal(software()->calls("hipStreamSynchronize"), 0);
      assert_int_equal(software()->calls("hipEventSynchronize"), 0);
      assert_int_equal(software()->calls("hipStreamWaitEvent"), 1);
      assert_int_equal(software()->calls("hipEventRecord"), record != ON_FREE);
      assert_int_equal(rig_value("pool", "stream_waits"), 1);
      rig_free(ptr, 4 * MIB, second);
      assert_ok(hipmm_stream_retire(0, first));
      rig_drop_stream(first);
      rig_drop_stream(second);
      finish();
    }
}

static void waits_for_nothing_when_the_work_is_done(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    start("'scheduler': 'stepped'", growth, ON_FREE, ", 'maximum_size': '4MiB'");
    hipStream_t first = rig_stream(), second = rig_stream();
    void *ptr = use_and_free(4 * MIB, first);
    assert_int_equal(rig_hip()->StreamSynchronize(first), 0);
    software()->reset_calls();
    assert_ptr_equal(rig_allocate(4 * MIB, second), ptr);
    assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
    assert_int_equal(rig_value("pool", "stream_waits"), 0);
    rig_free(ptr, 4 * MIB, second);
    rig_drop_stream(first);
    rig_drop_stream(second);
    finish();
  }
}

static void records_once_for_each_free_if_told_to(void **state)
{
  (void)state;
  start("", 0, ON_FREE, "");
  hipStream_t streams[] = {rig_stream(), NULL, PER_THREAD};
  for (int s = 0; s < 3; s++) {
    software()->reset_calls();
    for (int i = 0; i < 20; i++) use_and_free(i % 2 ? 500 : 100 * KIB, streams[s]);
    assert_int_equal(software()->calls("hipEventRecord"), 20);
    assert_int_equal(software()->calls("hipEventCreateWithFlags"), 1);
    assert_undisturbed();
    assert_ok(hipmm_resource_trim(rig_resource("pool"), 0));
  }
  rig_drop_stream(streams[0]);
}

/* The stream that freed is not known to last: what it freed stays with it for as long as there is other memory. */
static void synchronises_the_device_only_instead_of_growing(void **state)
{
  enum { BLOCKS = 8, BYTES = 4 * MIB };
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    start("'scheduler': 'stepped'", growth, AUTO, ", 'initial_size': '32MiB'");
    hipStream_t first = rig_stream(), second = rig_stream();
    void *ptr[BLOCKS] = {rig_allocate(BYTES, second)};
    for (int i = 1; i < 3; i++) ptr[i] = rig_allocate(BYTES, first);
    for (int i = 1; i < 3; i++) rig_free(ptr[i], BYTES, first);
    software()->reset_calls();
    for (int i = 1; i < BLOCKS - 2; i++) ptr[i] = rig_allocate(BYTES, second);
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
    for (int i = BLOCKS - 2; i < BLOCKS; i++) ptr[i] = rig_allocate(BYTES, second);
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 1);
    assert_int_equal(software()->calls("hipEventRecord"), 0);
    assert_int_equal(rig_held_bytes(), 32 * MIB);
    void *more = rig_allocate(BYTES, second); /* nothing is withheld now: it grows at once */
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 1);
    rig_free(more, BYTES, second);
    for (int i = 0; i < BLOCKS; i++) rig_free(ptr[i], BYTES, second);
    rig_drop_stream(first);
    rig_drop_stream(second);
    finish();
  }
}

/* ---- Streams that end ---- */

static void makes_blocks_of_a_retired_stream_anybodys(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++) {
      start("'scheduler': 'stepped', 'seed': 4", growth, record, ", 'maximum_size': '4MiB'");
      spy();
      hipStream_t first = rig_stream();
      void *small = use_and_free(500, first), *large = use_and_free(3 * MIB, first);
      assert_ok(hipmm_stream_retire(0, first)); /* with work pending */
      rig_drop_stream(first);
      dead = first;
      software()->reset_calls();
      assert_ptr_equal(use_and_free(4 * MIB - 256, NULL), small < large ? small : large);
      assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
      assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
      assert_undisturbed();
      assert_int_equal(atomic_load(&dead_uses), 0);
      finish();
      assert_int_equal(teardown(state), 0);
    }
}

static void retires_streams_that_it_never_met(void **state)
{
  (void)state;
  start("", 0, AUTO, "");
  hipStream_t stream = rig_stream();
  assert_ok(hipmm_stream_retire(0, stream));
  assert_ok(hipmm_stream_retain(0, stream));
  assert_ok(hipmm_stream_retire(0, stream));
  assert_ok(hipmm_stream_retire(0, stream));
  rig_drop_stream(stream);
}

/* The stream was synchronised and destroyed, but hipmm was not told. */
static void never_uses_a_stream_that_may_be_gone(int growth, int record)
{
  start("'scheduler': 'stepped', 'seed': 5", growth, record, ", 'maximum_size': '16MiB'");
  spy();
  hipStream_t first = rig_stream(), second = rig_stream();
  for (int i = 0; i < 3; i++) use_and_free((size_t)(i * 3 + 1) * MIB, first);
  for (int i = 0; i < 30; i++) use_and_free(500 * (size_t)(i + 1), first);
  assert_int_equal(rig_hip()->StreamSynchronize(first), 0);
  rig_drop_stream(first);
  dead = first;
  for (int i = 0; i < 30; i++) use_and_free(500 * (size_t)(i + 1), second);
  for (int i = 0; i < 3; i++) use_and_free((size_t)(i * 3 + 1) * MIB, second);
  use_and_free(16 * MIB, NULL);
  use_and_free(16 * MIB, second);
  assert_ok(hipmm_resource_trim(rig_resource("pool"), 0));
  assert_int_equal(rig_held_bytes(), 0);
  assert_undisturbed();
  assert_ok(hipmm_finalize());
  assert_int_equal(atomic_load(&dead_uses), 0);
  assert_int_equal(teardown(NULL), 0);
  software()->reset(); /* with the second stream */
}

static void never_uses_a_stream_that_may_be_gone_under_auto_and_on_free(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    never_uses_a_stream_that_may_be_gone(growth, AUTO);
    never_uses_a_stream_that_may_be_gone(growth, ON_FREE);
  }
}

/* Its blocks are in use when the stream is destroyed, and the next stream has its handle. */
static void survives_a_stream_with_the_handle_of_a_dead_one(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++) {
      start("'scheduler': 'stepped', 'seed': 6", growth, record, ", 'maximum_size': '16MiB'");
      hipStream_t stream = rig_stream();
      for (int round = 0; round < 10; round++) {
        use_and_free(500, stream);
        use_and_free(5 * MIB, stream);
        if (record == LAZY) assert_ok(hipmm_stream_retire(0, stream));
        rig_drop_stream(stream);
        assert_ptr_equal(rig_stream(), stream);
        use_and_free(5 * MIB, stream);
        use_and_free(500, stream);
        if (round % 5 == 4) use_and_free(16 * MIB, round % 2 ? NULL : stream);
      }
      assert_undisturbed();
      assert_ok(hipmm_stream_retire(0, stream));
      rig_drop_stream(stream);
      finish();
    }
}

/* The thread's cache for a retired stream has come to serve another one, when a new stream has the first one's handle. */
static void mixes_up_no_caches_when_handles_come_again(void **state)
{
  (void)state;
  for (int record = 0; record < ON_FREE; record++) {
    start("'scheduler': 'stepped', 'seed': 11", 0, record, "");
    hipStream_t first = rig_stream(), second = rig_stream();
    assert_ok(hipmm_stream_retain(0, first));
    assert_ok(hipmm_stream_retain(0, second));
    for (int round = 0; round < 10; round++) {
      use_and_free(500, first);
      assert_ok(hipmm_stream_retire(0, first));
      rig_drop_stream(first);
      use_and_free(500, second);
      use_and_free(500, second);
      assert_ptr_equal(rig_stream(), first);
      assert_ok(hipmm_stream_retain(0, first));
      for (int i = 0; i < 4; i++) use_and_free(500, i % 2 ? second : first);
      assert_undisturbed();
    }
    for (int i = 0; i < 2; i++) assert_ok(hipmm_stream_retire(0, i ? first : second));
    rig_drop_stream(first);
    rig_drop_stream(second);
    finish();
  }
}

/* ---- Many streams ---- */

static void serves_thousands_of_streams(int growth, int record)
{
  enum { STREAMS = 5000 };
  static hipStream_t streams[STREAMS];
  start("'scheduler': 'stepped', 'seed': 7", growth, record, ", 'maximum_size': '8MiB'");
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = rig_stream();
    void *small = rig_allocate(300, streams[i]), *large = rig_allocate(100 * KIB, streams[i]);
    if (i % 64 == 0) use(large, 100 * KIB, streams[i]);
    rig_free(small, 300, streams[i]);
    rig_free(large, 100 * KIB, streams[i]);
  }
  use_and_free(8 * MIB, NULL);
  assert_undisturbed();
  assert_int_equal(rig_value("pool", "live_count"), 0);
  for (int i = 0; i < STREAMS; i += 100) use_and_free(8 * MIB, streams[i]);
  assert_undisturbed();
  for (int i = 0; i < STREAMS; i++) {
    if (i % 500 == 0) assert_ok(hipmm_stream_retire(0, streams[i]));
    rig_drop_stream(streams[i]);
  }
  finish();
}

static void serves_5000_streams(void **state)
{
  (void)state;
  serves_thousands_of_streams(0, AUTO);
}

/* ---- Per-thread default streams ---- */

static pthread_barrier_t turn;
static void *of_thread[2];

static void use_in_thread(size_t bytes, void **ptr_out)
{
  void *ptr = NULL;
  if (hipmm_allocate(NULL, bytes, PER_THREAD, &ptr)) return;
  use(ptr, bytes, PER_THREAD);
  if (!hipmm_deallocate(NULL, ptr, bytes, PER_THREAD)) *ptr_out = ptr;
}

static void *allocate_in_turns(void *unused)
{
  use_in_thread(1000, &of_thread[0]);
  use_in_thread(2 * MIB - 4096, &of_thread[1]);
  pthread_barrier_wait(&turn);
  pthread_barrier_wait(&turn); /* the main thread allocates */
  return unused;
}

/* Both call it 2, and mean two streams. */
static void tells_the_default_streams_of_threads_apart(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++)
      for (int ended = 0; ended < 2; ended++) {
        pthread_t thread;
        start("'scheduler': 'stepped', 'seed': 8", growth, record, ", 'maximum_size': '2MiB'");
        pthread_barrier_init(&turn, NULL, 2);
        memset(of_thread, 0, sizeof of_thread);
        assert_int_equal(pthread_create(&thread, NULL, allocate_in_turns, NULL), 0);
        pthread_barrier_wait(&turn);
        assert_true(of_thread[0] && of_thread[1]);
        if (ended) {
          pthread_barrier_wait(&turn);
          pthread_join(thread, NULL);
        }
        use_and_free(1000, PER_THREAD);
        use_and_free(2 * MIB, PER_THREAD); /* all of it: there is no other */
        use_and_free(2 * MIB, NULL);
        if (!ended) {
          pthread_barrier_wait(&turn);
          pthread_join(thread, NULL);
        }
        assert_undisturbed();
        pthread_barrier_destroy(&turn);
        finish();
      }
}

/* ---- Anything ---- */

static void passes_the_model(void **state)
{
  static const char *const schedulers[] = {"'scheduler': 'stepped', 'seed': 9", "'scheduler': 'threads'"};
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    const struct model model = {.seed = seed,
                                .steps = 1500,
                                .n_streams = 1 + (unsigned)seed % 5,
                                .most_live = 60,
                                .most_bytes = seed % 3 ? 400 * KIB : 8 * KIB,
                                .destroys_streams = seed % RECORDS != LAZY,
                                .ends_with_no_live = seed % 2};
    start(schedulers[seed % 4 == 0], (int)(seed / 2 % GROWTHS), (int)(seed % RECORDS),
          seed % 2 ? "" : ", 'maximum_size': '12MiB'");
    model_run(&model);
    finish();
  }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(reuses_on_the_same_stream_without_a_call),
      TEST(knows_the_default_stream_by_both_its_names),
      TEST(retires_the_default_stream_by_either_name),
      TEST(orders_streams_however_it_records),
      TEST(orders_after_the_stream_that_it_was_freed_on),
      TEST(has_a_stream_wait_for_a_retained_one),
      TEST(waits_for_nothing_when_the_work_is_done),
      TEST(records_once_for_each_free_if_told_to),
      TEST(synchronises_the_device_only_instead_of_growing),
      TEST(makes_blocks_of_a_retired_stream_anybodys),
      TEST(retires_streams_that_it_never_met),
      TEST(never_uses_a_stream_that_may_be_gone_under_auto_and_on_free),
      TEST(survives_a_stream_with_the_handle_of_a_dead_one),
      TEST(mixes_up_no_caches_when_handles_come_again),
      TEST(serves_5000_streams),
      TEST(tells_the_default_streams_of_threads_apart),
      TEST(passes_the_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
