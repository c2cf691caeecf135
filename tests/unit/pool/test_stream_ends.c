/* SPDX-License-Identifier: MIT */
/* Tests of streams that come and go: retired, destroyed without a word, with the handle of an earlier one, by the
 * thousand, and the per-thread default streams of threads. No stream is looked at that may be gone. */
#include "../../support/stream_watch.h"
#include "work.h"

#include <pthread.h>
#include <string.h>

/* ---- Streams that end ---- */

static void makes_blocks_of_a_retired_stream_anybodys(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++) {
      start("'scheduler': 'stepped', 'seed': 4", growth, record, ", 'maximum_size': '4MiB'");
      watch_begin();
      hipmm_stream_t first = fixture_stream();
      void *small = use_and_free(500, first), *large = use_and_free(3 * MIB, first);
      assert_ok(hipmm_stream_retire(0, first)); /* with work pending */
      fixture_drop_stream(first);
      watch_stream(first);
      software()->reset_calls();
      void *all = use_and_free(4 * MIB - 256, NULL);
      if (on_software()) assert_ptr_equal(all, small < large ? small : large); /* other segments may lie elsewhere */
      assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
      assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
      assert_undisturbed();
      assert_int_equal(watch_count(), 0);
      finish();
      assert_int_equal(fixture_teardown(state), 0);
    }
}

static void retires_streams_that_it_never_met(void **state)
{
  (void)state;
  start("", 0, AUTO, "");
  hipmm_stream_t stream = fixture_stream();
  assert_ok(hipmm_stream_retire(0, stream));
  assert_ok(hipmm_stream_retain(0, stream));
  assert_ok(hipmm_stream_retire(0, stream));
  assert_ok(hipmm_stream_retire(0, stream));
  fixture_drop_stream(stream);
}

/* The stream was synchronised and destroyed, but hipmm was not told. */
static void never_uses_a_stream_that_may_be_gone(int growth, int record)
{
  start("'scheduler': 'stepped', 'seed': 5", growth, record, ", 'maximum_size': '16MiB'");
  watch_begin();
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  for (int i = 0; i < 3; i++) use_and_free((size_t)(i * 3 + 1) * MIB, first);
  for (int i = 0; i < 30; i++) use_and_free(500 * (size_t)(i + 1), first);
  assert_int_equal(fixture_hip()->StreamSynchronize(first), 0);
  fixture_drop_stream(first);
  watch_stream(first);
  for (int i = 0; i < 30; i++) use_and_free(500 * (size_t)(i + 1), second);
  for (int i = 0; i < 3; i++) use_and_free((size_t)(i * 3 + 1) * MIB, second);
  use_and_free(16 * MIB, NULL);
  use_and_free(16 * MIB, second);
  assert_ok(hipmm_resource_trim(fixture_resource("pool"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
  assert_undisturbed();
  assert_ok(hipmm_finalize());
  assert_int_equal(watch_count(), 0);
  assert_int_equal(fixture_teardown(NULL), 0);
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

/* The software device gives a handle to the next stream at once; a GPU's driver as it likes. */
static hipmm_stream_t successor_of(hipmm_stream_t old)
{
  hipmm_stream_t stream = fixture_stream();
  if (on_software()) assert_ptr_equal(stream, old);
  return stream;
}

/* Its blocks are in use when the stream is destroyed, and the next stream has its handle. */
static void survives_a_stream_with_the_handle_of_a_dead_one(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++)
    for (int record = 0; record < RECORDS; record++) {
      start("'scheduler': 'stepped', 'seed': 6", growth, record, ", 'maximum_size': '16MiB'");
      hipmm_stream_t stream = fixture_stream();
      for (int round = 0; round < 10; round++) {
        use_and_free(500, stream);
        use_and_free(5 * MIB, stream);
        if (record == LAZY) assert_ok(hipmm_stream_retire(0, stream));
        fixture_drop_stream(stream);
        stream = successor_of(stream);
        use_and_free(5 * MIB, stream);
        use_and_free(500, stream);
        if (round % 5 == 4) use_and_free(16 * MIB, round % 2 ? NULL : stream);
      }
      assert_undisturbed();
      assert_ok(hipmm_stream_retire(0, stream));
      fixture_drop_stream(stream);
      finish();
    }
}

/* The thread's cache for a retired stream has come to serve another one, when a new stream has the first one's
 * handle. */
static void mixes_up_no_caches_when_handles_come_again(void **state)
{
  (void)state;
  for (int record = 0; record < ON_FREE; record++) {
    start("'scheduler': 'stepped', 'seed': 11", 0, record, "");
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    assert_ok(hipmm_stream_retain(0, first));
    assert_ok(hipmm_stream_retain(0, second));
    for (int round = 0; round < 10; round++) {
      use_and_free(500, first);
      assert_ok(hipmm_stream_retire(0, first));
      fixture_drop_stream(first);
      use_and_free(500, second);
      use_and_free(500, second);
      first = successor_of(first);
      assert_ok(hipmm_stream_retain(0, first));
      for (int i = 0; i < 4; i++) use_and_free(500, i % 2 ? second : first);
      assert_undisturbed();
    }
    for (int i = 0; i < 2; i++) assert_ok(hipmm_stream_retire(0, i ? first : second));
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    finish();
  }
}

/* ---- Many streams ---- */

static void serves_thousands_of_streams(int growth, int record)
{
  enum { STREAMS = 5000 };
  static hipmm_stream_t streams[STREAMS];
  start("'scheduler': 'stepped', 'seed': 7", growth, record, ", 'maximum_size': '8MiB'");
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = fixture_stream();
    void *small = fixture_allocate(300, streams[i]), *large = fixture_allocate(100 * KIB, streams[i]);
    if (i % 64 == 0) use(large, 100 * KIB, streams[i]);
    fixture_free(small, 300, streams[i]);
    fixture_free(large, 100 * KIB, streams[i]);
  }
  use_and_free(8 * MIB, NULL);
  assert_undisturbed();
  assert_int_equal(fixture_value("pool", "live_count"), 0);
  for (int i = 0; i < STREAMS; i += 100) use_and_free(8 * MIB, streams[i]);
  assert_undisturbed();
  for (int i = 0; i < STREAMS; i++) {
    if (i % 500 == 0) assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
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

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(makes_blocks_of_a_retired_stream_anybodys),
      TEST(retires_streams_that_it_never_met),
      TEST(never_uses_a_stream_that_may_be_gone_under_auto_and_on_free),
      TEST(survives_a_stream_with_the_handle_of_a_dead_one),
      TEST(mixes_up_no_caches_when_handles_come_again),
      TEST(serves_5000_streams),
      TEST(tells_the_default_streams_of_threads_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
