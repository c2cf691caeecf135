/* SPDX-License-Identifier: MIT */
/* Tests of how memory goes from stream to stream: in order, with as little waiting as the option `record` allows, and
 * on one stream without any call. */
#include "../../support/stream_program.h"
#include "work.h"

#include <stdio.h>

/* ---- One stream ---- */

/* Allocates and frees on the stream in turn; returns how many calls of HIP that took. */
static uint64_t calls_of_reuse(size_t bytes, hipmm_stream_t stream)
{
  struct hipmm_resource *pool = fixture_resource("pool");
  fixture_free(fixture_allocate(bytes, stream), bytes, stream);
  software()->reset_calls();
  for (int round = 0; round < 50; round++) {
    void *ptr = NULL;
    assert_ok(hipmm_allocate(pool, bytes, stream, &ptr));
    assert_ok(hipmm_deallocate(pool, ptr, round % 2 ? bytes : 0, stream));
  }
  return fixture_all_calls();
}

/* Of a stream that may be gone HIP is asked whether it still is the one, which it may be while it is not captured. */
static void reuses_on_the_same_stream_without_a_call(void **state)
{
  static const size_t sizes[] = {1, 1000, 4 * KIB, 64 * KIB, 512 * KIB};
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    start("", growth, AUTO, "");
    for (size_t bytes = 1; bytes <= 64 * MIB; bytes *= 8) assert_int_equal(calls_of_reuse(bytes, NULL), 0);
    hipmm_stream_t retained = fixture_stream(), other = fixture_stream();
    assert_ok(hipmm_stream_retain(0, retained));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      assert_int_equal(calls_of_reuse(sizes[i], NULL), 0);
      assert_int_equal(calls_of_reuse(sizes[i], LEGACY), 0);
      assert_int_equal(calls_of_reuse(sizes[i], PER_THREAD), 0);
      assert_int_equal(calls_of_reuse(sizes[i], retained), 0);
      uint64_t calls = calls_of_reuse(sizes[i], other);
      assert_int_equal(calls, software()->calls("hipStreamGetId") + software()->calls("hipStreamIsCapturing"));
      assert_ok(hipmm_resource_trim(fixture_resource("pool"), 0));
    }
    assert_ok(hipmm_stream_retire(0, retained));
    fixture_drop_stream(retained);
    fixture_drop_stream(other);
    finish();
  }
}

static void knows_the_default_stream_by_both_its_names(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    start("'scheduler': 'stepped'", growth, AUTO, ", 'maximum_size': '4MiB'");
    struct hipmm_resource *pool = fixture_resource("pool");
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
    assert_int_equal(fixture_all_calls(), 0);
    assert_undisturbed();
    finish();
  }
}

static void retires_the_default_stream_by_either_name(void **state)
{
  static const hipmm_stream_t names[] = {NULL, LEGACY};
  (void)state;
  for (int i = 0; i < 2; i++) {
    start("'scheduler': 'stepped'", 0, LAZY, ", 'maximum_size': '4MiB'");
    hipmm_stream_t stream = fixture_stream();
    void *ptr = use_and_free(4 * MIB, names[1 - i]);
    assert_ok(hipmm_stream_retire(0, names[i]));
    software()->reset_calls();
    assert_ptr_equal(use_and_free(4 * MIB, stream), ptr);
    assert_int_equal(software()->calls("hipStreamWaitEvent") + software()->calls("hipEventRecord"), 0);
    assert_undisturbed();
    fixture_drop_stream(stream);
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
  hipmm_stream_t streams[] = {fixture_stream(), fixture_stream(), NULL, PER_THREAD};
  if (retains) assert_ok(hipmm_stream_retain(0, streams[0]));
  if (retains) assert_ok(hipmm_stream_retain(0, streams[1]));
  static const size_t sizes[] = {2 * MIB, 1000, 80 * KIB};
  for (unsigned round = 0; round < 24; round++) use_and_free(sizes[round % 3], streams[(round * 7 + round / 5) % 4]);
  assert_undisturbed();
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
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
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    for (int round = 0; round < 20; round++) {
      void *ptr = fixture_allocate(2 * MIB, first);
      use(ptr, 2 * MIB, first);
      assert_int_equal(fixture_hip()->StreamSynchronize(first), 0);
      use(ptr, 2 * MIB, second);
      fixture_free(ptr, 2 * MIB, second);
      assert_ptr_equal(use_and_free(2 * MIB, first), ptr);
    }
    assert_undisturbed();
    assert_ok(hipmm_stream_retire(0, first));
    assert_ok(hipmm_stream_retire(0, second));
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    finish();
  }
}

/* ---- How it waits ---- */

static void has_a_stream_wait_for_a_retained_one(void **state)
{
  needs_software();
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++) {
      start("'scheduler': 'stepped'", growth, record, ", 'maximum_size': '4MiB'");
      hipmm_stream_t first = fixture_stream(), second = fixture_stream();
      if (record == AUTO) assert_ok(hipmm_stream_retain(0, first));
      void *ptr = use_and_free(4 * MIB, first);
      software()->reset_calls();
      assert_ptr_equal(fixture_allocate(4 * MIB, second), ptr);
      assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
      assert_int_equal(software()->calls("hipStreamSynchronize"), 0);
      assert_int_equal(software()->calls("hipEventSynchronize"), 0);
      assert_int_equal(software()->calls("hipStreamWaitEvent"), 1);
      assert_int_equal(software()->calls("hipEventRecord"), record != ON_FREE);
      assert_int_equal(fixture_value("pool", "stream_waits"), 1);
      fixture_free(ptr, 4 * MIB, second);
      assert_ok(hipmm_stream_retire(0, first));
      fixture_drop_stream(first);
      fixture_drop_stream(second);
      finish();
    }
}

static void waits_for_nothing_when_the_work_is_done(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    start("'scheduler': 'stepped'", growth, ON_FREE, ", 'maximum_size': '4MiB'");
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    void *ptr = use_and_free(4 * MIB, first);
    assert_int_equal(fixture_hip()->StreamSynchronize(first), 0);
    software()->reset_calls();
    assert_ptr_equal(fixture_allocate(4 * MIB, second), ptr);
    assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
    assert_int_equal(fixture_value("pool", "stream_waits"), 0);
    fixture_free(ptr, 4 * MIB, second);
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    finish();
  }
}

static void records_once_for_each_free_if_told_to(void **state)
{
  needs_software();
  (void)state;
  start("", 0, ON_FREE, "");
  hipmm_stream_t streams[] = {fixture_stream(), NULL, PER_THREAD};
  for (int s = 0; s < 3; s++) {
    software()->reset_calls();
    for (int i = 0; i < 20; i++) use_and_free(i % 2 ? 500 : 100 * KIB, streams[s]);
    assert_int_equal(software()->calls("hipEventRecord"), 20);
    assert_int_equal(software()->calls("hipEventCreateWithFlags"), 1);
    assert_undisturbed();
    assert_ok(hipmm_resource_trim(fixture_resource("pool"), 0));
  }
  fixture_drop_stream(streams[0]);
}

/* The stream that freed is not known to last: what it freed stays with it for as long as there is other memory. */
static void synchronises_the_device_only_instead_of_growing(void **state)
{
  needs_software();
  enum { BLOCKS = 8, BYTES = 4 * MIB };
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    start("'scheduler': 'stepped'", growth, AUTO, ", 'initial_size': '32MiB', 'slack': 0");
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    void *ptr[BLOCKS] = {fixture_allocate(BYTES, second)};
    for (int i = 1; i < 3; i++) ptr[i] = fixture_allocate(BYTES, first);
    for (int i = 1; i < 3; i++) fixture_free(ptr[i], BYTES, first);
    software()->reset_calls();
    for (int i = 1; i < BLOCKS - 2; i++) ptr[i] = fixture_allocate(BYTES, second);
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
    for (int i = BLOCKS - 2; i < BLOCKS; i++) ptr[i] = fixture_allocate(BYTES, second);
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 1);
    assert_int_equal(software()->calls("hipEventRecord"), 0);
    assert_int_equal(fixture_held_bytes(), 32 * MIB);
    void *more = fixture_allocate(BYTES, second); /* nothing is withheld now: it grows at once */
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 1);
    fixture_free(more, BYTES, second);
    for (int i = 0; i < BLOCKS; i++) fixture_free(ptr[i], BYTES, second);
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    finish();
  }
}

/* ---- Anything ---- */

static void passes_the_model(void **state)
{
  static const char *const schedulers[] = {"'scheduler': 'stepped', 'seed': 9", "'scheduler': 'threads'"};
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    const struct stream_program program = {.seed = seed,
                                           .steps = 1500,
                                           .n_streams = 1 + (unsigned)seed % 5,
                                           .most_live = 60,
                                           .most_bytes = seed % 3 ? 400 * KIB : 8 * KIB,
                                           .destroys_streams = seed % RECORDS != LAZY,
                                           .ends_with_no_live = seed % 2};
    start(schedulers[seed % 4 == 0], (int)(seed / 2 % GROWTHS), (int)(seed % RECORDS),
          seed % 2 ? "" : ", 'maximum_size': '12MiB'");
    stream_program_run(&program);
    finish();
  }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(reuses_on_the_same_stream_without_a_call),        TEST(knows_the_default_stream_by_both_its_names),
      TEST(retires_the_default_stream_by_either_name),       TEST(orders_streams_however_it_records),
      TEST(orders_after_the_stream_that_it_was_freed_on),    TEST(has_a_stream_wait_for_a_retained_one),
      TEST(waits_for_nothing_when_the_work_is_done),         TEST(records_once_for_each_free_if_told_to),
      TEST(synchronises_the_device_only_instead_of_growing), TEST(passes_the_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
