/* SPDX-License-Identifier: MIT */
/* How memory goes from stream to stream in each sub-allocator: in order, with as little waiting as the option `record`
 * allows, and on one stream without any call; whatever becomes of the streams. */
#include "../support/captures.h"
#include "../support/stream_program.h"
#include "../support/stream_watch.h"
#include "../support/sub_allocators.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void stepped(char text[100], uint64_t seed)
{
  snprintf(text, 100, "'scheduler': 'stepped', 'seed': %llu", (unsigned long long)seed);
}

static void retire_and_drop(hipmm_stream_t stream)
{
  assert_ok(hipmm_stream_retire(0, stream));
  fixture_drop_stream(stream);
}

/* ---- One stream ---- */

/* Allocates and frees on the stream in turn, always the same block; returns how many calls of HIP that took. */
static uint64_t calls_of_reuse(const struct sub_allocator *row, size_t bytes, hipmm_stream_t stream)
{
  struct hipmm_resource *resource = resource_of(row);
  void *first = fixture_allocate(bytes, stream);
  fixture_free(first, bytes, stream);
  software()->reset_calls();
  for (int round = 0; round < 50; round++) {
    void *ptr = NULL;
    assert_ok(hipmm_allocate(resource, bytes, stream, &ptr));
    assert_ptr_equal(ptr, first);
    assert_ok(hipmm_deallocate(resource, ptr, round % 2 ? bytes : 0, stream));
  }
  return fixture_all_calls();
}

/* Of a stream that may be gone HIP is asked whether it still is the one, which it may be while it is not captured. */
static void reuses_on_the_same_stream_without_a_call(const struct sub_allocator *row)
{
  static const size_t sizes[] = {1, 1000, 4 * KIB, 64 * KIB, 512 * KIB};
  begin("", row, row->usual, AUTO);
  for (size_t bytes = 1; bytes <= (row->can & DIVIDES ? 64 * MIB : MIB); bytes *= 4)
    assert_int_equal(calls_of_reuse(row, bytes, NULL), 0);
  hipmm_stream_t retained = fixture_stream(), other = fixture_stream();
  assert_ok(hipmm_stream_retain(0, retained));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(calls_of_reuse(row, sizes[i], NULL), 0);
    assert_int_equal(calls_of_reuse(row, sizes[i], LEGACY), 0);
    assert_int_equal(calls_of_reuse(row, sizes[i], PER_THREAD), 0);
    assert_int_equal(calls_of_reuse(row, sizes[i], retained), 0);
    uint64_t calls = calls_of_reuse(row, sizes[i], other);
    assert_int_equal(calls, software()->calls("hipStreamGetId") + software()->calls("hipStreamIsCapturing"));
    trim(row, 0);
  }
  retire_and_drop(retained);
  fixture_drop_stream(other);
}

static void knows_the_default_stream_by_both_its_names(const struct sub_allocator *row)
{
  begin("'scheduler': 'stepped'", row, row->full, AUTO);
  struct hipmm_resource *resource = resource_of(row);
  const size_t sizes[] = {row->full_bytes, 1000};
  void *first = use_and_free(row->full_bytes, NULL);
  software()->reset_calls();
  for (int round = 0; round < 20; round++) {
    void *ptr = NULL;
    size_t bytes = sizes[round / 10];
    assert_ok(hipmm_allocate(resource, bytes, round % 2 ? NULL : LEGACY, &ptr));
    if (bytes == row->full_bytes) assert_ptr_equal(ptr, first);
    assert_ok(hipmm_deallocate(resource, ptr, bytes, round % 3 ? NULL : LEGACY));
  }
  assert_int_equal(fixture_all_calls(), 0);
  assert_undisturbed();
}

static void retires_the_default_stream_by_either_name(const struct sub_allocator *row)
{
  static const hipmm_stream_t names[] = {NULL, LEGACY};
  for (int i = 0; i < 2; i++) {
    begin("'scheduler': 'stepped'", row, row->full, LAZY);
    hipmm_stream_t stream = fixture_stream();
    void *ptr = use_and_free(row->full_bytes, names[1 - i]);
    assert_ok(hipmm_stream_retire(0, names[i]));
    software()->reset_calls();
    assert_ptr_equal(use_and_free(row->full_bytes, stream), ptr);
    assert_int_equal(software()->calls("hipStreamWaitEvent") + software()->calls("hipEventRecord"), 0);
    assert_undisturbed();
    fixture_drop_stream(stream);
    finish();
  }
}

/* ---- From stream to stream ---- */

/* There is room for one block, so that only reuse serves the next stream. */
static void hand_round(const struct sub_allocator *row, int record, uint64_t seed, bool retains)
{
  const size_t sizes[] = {row->full_bytes, 1000, 80 * KIB};
  char runtime[100];
  stepped(runtime, seed);
  begin(runtime, row, row->full, record);
  hipmm_stream_t streams[] = {fixture_stream(), fixture_stream(), NULL, PER_THREAD};
  if (retains) assert_ok(hipmm_stream_retain(0, streams[0]));
  if (retains) assert_ok(hipmm_stream_retain(0, streams[1]));
  for (unsigned round = 0; round < 24; round++) use_and_free(sizes[round % 3], streams[(round * 7 + round / 5) % 4]);
  assert_undisturbed();
  assert_int_equal(fixture_peak_held_bytes(), row->full_bytes);
  for (int i = 0; i < 2; i++) retire_and_drop(streams[i]);
  finish();
}

static void orders_streams_however_it_records(const struct sub_allocator *row)
{
  for (int record = 0; record < RECORDS; record++)
    for (uint64_t seed = 1; seed <= 2; seed++) hand_round(row, record, seed, seed % 2);
}

/* A block in use that is freed on another stream is that stream's. */
static void orders_after_the_stream_that_it_was_freed_on(const struct sub_allocator *row)
{
  const size_t bytes = row->full_bytes;
  for (int record = 0; record < RECORDS; record++) {
    begin("'scheduler': 'stepped', 'seed': 2", row, row->full, record);
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    for (int round = 0; round < 20; round++) {
      void *ptr = fixture_allocate(bytes, first);
      use(ptr, bytes, first);
      assert_int_equal(fixture_hip()->StreamSynchronize(first), 0);
      use(ptr, bytes, second);
      fixture_free(ptr, bytes, second);
      assert_ptr_equal(use_and_free(bytes, first), ptr);
    }
    assert_undisturbed();
    retire_and_drop(first);
    retire_and_drop(second);
    finish();
  }
}

/* ---- How it waits ---- */

static void has_a_stream_wait_for_a_retained_one(const struct sub_allocator *row)
{
  needs_software();
  for (int record = 0; record < RECORDS; record++) {
    begin("'scheduler': 'stepped'", row, row->full, record);
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    if (record == AUTO) assert_ok(hipmm_stream_retain(0, first));
    void *ptr = fixture_allocate(row->full_bytes, second); /* which an arena of a stream then holds */
    use(ptr, row->full_bytes, first);
    fixture_free(ptr, row->full_bytes, first);
    software()->reset_calls();
    assert_ptr_equal(fixture_allocate(row->full_bytes, second), ptr);
    assert_int_equal(fixture_calls_that_wait(), 0);
    assert_int_equal(software()->calls("hipStreamWaitEvent"), 1);
    assert_in_range(software()->calls("hipEventRecord"), record != ON_FREE, 1);
    if (row->can & HAS_WAITS) assert_int_equal(value_of(row, "stream_waits"), 1);
    use(ptr, row->full_bytes, second);
    fixture_free(ptr, row->full_bytes, second);
    assert_undisturbed();
    retire_and_drop(first);
    fixture_drop_stream(second);
    finish();
  }
}

static void waits_for_nothing_when_the_work_is_done(const struct sub_allocator *row)
{
  begin("'scheduler': 'stepped'", row, row->full, ON_FREE);
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  void *ptr = fixture_allocate(row->full_bytes, second);
  use(ptr, row->full_bytes, first);
  fixture_free(ptr, row->full_bytes, first);
  assert_int_equal(fixture_hip()->StreamSynchronize(first), 0);
  software()->reset_calls();
  assert_ptr_equal(fixture_allocate(row->full_bytes, second), ptr);
  assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  if (row->can & HAS_WAITS) assert_int_equal(value_of(row, "stream_waits"), 0);
  fixture_free(ptr, row->full_bytes, second);
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

static void records_once_for_each_free_if_told_to(const struct sub_allocator *row)
{
  needs_software();
  begin("", row, row->usual, ON_FREE);
  hipmm_stream_t streams[] = {fixture_stream(), NULL, PER_THREAD};
  for (int s = 0; s < 3; s++) {
    software()->reset_calls();
    for (int i = 0; i < 20; i++) use_and_free(i % 2 ? 500 : 100 * KIB, streams[s]);
    assert_in_range(software()->calls("hipEventRecord"), 20, 21); /* one more to see whether another stream's is done */
    assert_int_equal(software()->calls("hipEventCreateWithFlags"), 1);
    assert_undisturbed();
    trim(row, 0);
  }
  fixture_drop_stream(streams[0]);
}

/* RMM synchronizes a stream on the host for half of these. */
static void never_waits_on_the_host_when_it_frees(const struct sub_allocator *row)
{
  static const size_t sizes[] = {1000, 300000, MIB};
  begin("'scheduler': 'stepped'", row, row->usual, AUTO);
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  assert_ok(hipmm_stream_retain(0, first));
  for (int round = 0; round < 30; round++) {
    void *ptr = fixture_allocate(sizes[round % 3], first);
    use(ptr, sizes[round % 3], first);
    software()->reset_calls();
    fixture_free(ptr, sizes[round % 3], round % 2 ? first : second);
    assert_int_equal(fixture_calls_that_wait(), 0);
  }
  retire_and_drop(first);
  fixture_drop_stream(second);
}

/* A trim must not take memory from under work. */
static void waits_for_work_before_it_gives_memory_back(const struct sub_allocator *row)
{
  begin("'scheduler': 'stepped', 'seed': 3", row, row->full, AUTO);
  hipmm_stream_t stream = fixture_stream();
  use_and_free(row->full_bytes, stream);
  trim(row, 0);
  assert_int_equal(fixture_held_bytes(), 0);
  assert_undisturbed();
  fixture_drop_stream(stream);
}

/* ---- Streams that end ---- */

static void makes_blocks_of_a_retired_stream_anybodys(const struct sub_allocator *row)
{
  for (int record = 0; record < RECORDS; record++) {
    begin("'scheduler': 'stepped', 'seed': 4", row, row->full, record);
    watch_begin();
    hipmm_stream_t first = fixture_stream();
    if (strcmp(row->name, "arena")) use_and_free(500, first); /* which it has of a superblock of the stream's own */
    use_and_free(row->full_bytes / 4 * 3, first);
    assert_ok(hipmm_stream_retire(0, first)); /* with work pending */
    fixture_drop_stream(first);
    watch_stream(first);
    software()->reset_calls();
    use_and_free(row->full_bytes, NULL);
    assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
    assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
    assert_undisturbed();
    assert_int_equal(watch_count(), 0);
    assert_int_equal(fixture_peak_held_bytes(), row->full_bytes);
    finish();
    assert_int_equal(fixture_teardown(NULL), 0);
  }
}

static void retires_streams_that_it_never_met(const struct sub_allocator *row)
{
  begin("", row, row->usual, AUTO);
  hipmm_stream_t stream = fixture_stream();
  assert_ok(hipmm_stream_retire(0, stream));
  assert_ok(hipmm_stream_retain(0, stream));
  assert_ok(hipmm_stream_retire(0, stream));
  retire_and_drop(stream);
}

/* A block that was freed on a stream which is gone, of which nobody said that it lasts, comes again on another when the
 * device has done its work. */
static void outlives_a_stream(const struct sub_allocator *row)
{
  needs_software();
  begin("", row, row->full, AUTO);
  hipmm_stream_t first = fixture_stream();
  void *ptr = fixture_allocate(row->full_bytes, first);
  fixture_free(ptr, row->full_bytes, first);
  fixture_drop_stream(first);
  software()->reset_calls();
  void *again = fixture_allocate(row->full_bytes, NULL);
  if (row->can & GROWS) assert_ptr_equal(again, ptr); /* mapped memory may move */
  assert_int_equal(software()->calls("hipEventRecord"), 0);
  assert_in_range(software()->calls("hipDeviceSynchronize"), 1, 2);
  assert_int_equal(fixture_peak_held_bytes(), row->full_bytes);
  fixture_free(again, 0, NULL);
}

/* The stream was synchronised and destroyed, but hipmm was not told. */
static void never_uses_a_stream_that_may_be_gone(const struct sub_allocator *row)
{
  for (int record = 0; record < RECORDS; record++) {
    if (record == LAZY) continue; /* which relies on being told */
    begin("'scheduler': 'stepped', 'seed': 5", row, row->usual, record);
    watch_begin();
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    for (size_t i = 0; i < 3; i++) use_and_free(MIB >> i, first);
    for (size_t i = 0; i < 30; i++) use_and_free(500 * (i + 1), first);
    assert_int_equal(fixture_hip()->StreamSynchronize(first), 0);
    fixture_drop_stream(first);
    watch_stream(first);
    for (size_t i = 0; i < 30; i++) use_and_free(500 * (i + 1), second);
    for (size_t i = 0; i < 3; i++) use_and_free(MIB >> i, second);
    for (int i = 0; row->can & DIVIDES && i < 2; i++) use_and_free(16 * MIB, i ? second : NULL);
    trim(row, 0);
    assert_int_equal(fixture_held_bytes(), 0);
    assert_undisturbed();
    assert_ok(hipmm_finalize());
    assert_int_equal(watch_count(), 0);
    assert_int_equal(fixture_teardown(NULL), 0);
    software()->reset(); /* with the second stream */
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
static void survives_a_stream_with_the_handle_of_a_dead_one(const struct sub_allocator *row)
{
  const size_t large = row->full_bytes / 3;
  for (int record = 0; record < RECORDS; record++) {
    begin("'scheduler': 'stepped', 'seed': 6", row, row->full, record);
    hipmm_stream_t stream = fixture_stream();
    for (int round = 0; round < 10; round++) {
      use_and_free(500, stream);
      use_and_free(large, stream);
      if (record == LAZY) assert_ok(hipmm_stream_retire(0, stream));
      fixture_drop_stream(stream);
      stream = successor_of(stream);
      use_and_free(large, stream);
      use_and_free(500, stream);
      if (round % 5 == 4) use_and_free(row->full_bytes, round % 2 ? NULL : stream);
    }
    assert_undisturbed();
    retire_and_drop(stream);
    finish();
  }
}

/* The thread's cache for a retired stream has come to serve another one, when a new stream has the first one's
 * handle. */
static void mixes_up_no_caches_when_handles_come_again(const struct sub_allocator *row)
{
  for (int record = 0; record < ON_FREE; record++) {
    begin("'scheduler': 'stepped', 'seed': 11", row, row->usual, record);
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    assert_ok(hipmm_stream_retain(0, first));
    assert_ok(hipmm_stream_retain(0, second));
    for (int round = 0; round < 10; round++) {
      use_and_free(500, first);
      retire_and_drop(first);
      use_and_free(500, second);
      use_and_free(500, second);
      first = successor_of(first);
      assert_ok(hipmm_stream_retain(0, first));
      for (int i = 0; i < 4; i++) use_and_free(500, i % 2 ? second : first);
      assert_undisturbed();
    }
    retire_and_drop(first);
    retire_and_drop(second);
    finish();
  }
}

/* ---- Many streams ---- */

enum { STREAMS = 5000 };

static hipmm_stream_t streams[STREAMS];

static void serves_thousands_of_streams(const struct sub_allocator *row)
{
  begin("'scheduler': 'stepped', 'seed': 7", row, row->full, AUTO);
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = fixture_stream();
    fixture_free(fixture_allocate(300, streams[i]), 300, streams[i]);
    void *large = fixture_allocate(100 * KIB, streams[i]);
    if (i % 64 == 0) use(large, 100 * KIB, streams[i]);
    fixture_free(large, 100 * KIB, streams[i]);
  }
  use_and_free(row->full_bytes, NULL);
  assert_undisturbed();
  assert_int_equal(value_of(row, "live_count"), 0);
  for (int i = 0; i < STREAMS; i += 100) use_and_free(row->full_bytes, streams[i]);
  assert_undisturbed();
  for (int i = 0; i < STREAMS; i++) {
    if (i % 500 == 0) assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
  }
}

static int n_streams;

static void run_pairs(void)
{
  for (int i = 0; i < 4000; i++) {
    hipmm_stream_t stream = streams[i % n_streams];
    fixture_free(fixture_allocate(1000, stream), 1000, stream);
  }
}

static uint64_t time_of_pairs(const struct sub_allocator *row, int count)
{
  begin("'scheduler': 'threads'", row, row->usual, AUTO);
  for (n_streams = 0; n_streams < count; n_streams++) {
    streams[n_streams] = fixture_stream();
    assert_ok(hipmm_stream_retain(0, streams[n_streams]));
  }
  uint64_t least = least_time(5, run_pairs);
  for (int i = 0; i < count; i++) retire_and_drop(streams[i]);
  finish();
  return least;
}

/* An allocation and a free, on each stream in turn. */
static void costs_the_same_however_many_streams_there_are(const struct sub_allocator *row)
{
  needs_software();
  uint64_t few = time_of_pairs(row, 8), many = time_of_pairs(row, STREAMS);
  assert_in_range(many, 0, 15 * few); /* a step for each stream makes it 50 times as much and more */
}

/* ---- Per-thread default streams ---- */

static pthread_barrier_t turn;
static void *of_thread[2];
static size_t full_bytes;

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
  use_in_thread(full_bytes / 4 * 3, &of_thread[1]);
  pthread_barrier_wait(&turn);
  pthread_barrier_wait(&turn); /* the main thread allocates */
  return unused;
}

static void let_it_end(pthread_t thread)
{
  pthread_barrier_wait(&turn);
  pthread_join(thread, NULL);
}

/* Both call it 2, and mean two streams. */
static void tells_the_default_streams_of_threads_apart(const struct sub_allocator *row)
{
  full_bytes = row->full_bytes;
  for (int record = 0; record < RECORDS; record++)
    for (int ended = 0; ended < 2; ended++) {
      pthread_t thread;
      begin("'scheduler': 'stepped', 'seed': 8", row, row->full, record);
      pthread_barrier_init(&turn, NULL, 2);
      memset(of_thread, 0, sizeof of_thread);
      assert_int_equal(pthread_create(&thread, NULL, allocate_in_turns, NULL), 0);
      pthread_barrier_wait(&turn);
      assert_true(of_thread[0] && of_thread[1]);
      if (ended) let_it_end(thread);
      use_and_free(1000, PER_THREAD);
      use_and_free(full_bytes, PER_THREAD); /* all of it: there is no other */
      use_and_free(full_bytes, NULL);
      if (!ended) let_it_end(thread);
      assert_undisturbed();
      pthread_barrier_destroy(&turn);
      finish();
    }
}

/* ---- Captures ---- */

enum { SIZES = 3 };

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
  return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* What is pending elsewhere is left alone, though it would fit. */
static void takes_nothing_that_would_have_to_be_waited_for(const size_t *sizes, hipmm_stream_t first,
                                                           hipmm_stream_t second)
{
  void *pending[SIZES], *mine[SIZES];
  for (int i = 0; i < SIZES; i++) pending[i] = use_and_free(sizes[i], first);
  capture_begin(second);
  for (int i = 0; i < SIZES; i++) {
    mine[i] = fixture_allocate(sizes[i], second);
    for (int k = 0; k < SIZES; k++)
      if (overlap(mine[i], sizes[i], pending[k], sizes[k])) assert_int_equal(fixture_hip()->StreamQuery(first), 0);
  }
  for (int i = 0; i < SIZES; i++) fixture_free(mine[i], sizes[i], second);
}

/* The capture goes on: its blocks serve its own stream and no other. Only of a stream that lasts can that be known. */
static void keeps_to_itself(const size_t *sizes, hipmm_stream_t first, hipmm_stream_t second)
{
  void *mine[SIZES], *others[SIZES];
  for (int i = 0; i < SIZES; i++) mine[i] = fixture_allocate(sizes[i], second);
  for (int i = 0; i < SIZES; i++) fixture_free(mine[i], sizes[i], second);
  for (int i = 0; i < SIZES; i++) {
    others[i] = fixture_allocate(sizes[i], first);
    for (int k = 0; k < SIZES; k++) assert_false(overlap(others[i], sizes[i], mine[k], sizes[k]));
    use(others[i], sizes[i], first);
  }
  for (int i = 0; i < SIZES; i++) fixture_free(others[i], sizes[i], first);
}

static void lets_a_capture_be(const struct sub_allocator *row, int record, bool retained)
{
  const size_t sizes[SIZES] = {500, 100 * KIB, row->can & DIVIDES ? 3 * MIB : MIB};
  begin("'scheduler': 'stepped', 'seed': 9", row, row->usual, record);
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  if (retained) assert_ok(hipmm_stream_retain(0, first)); /* as the hooks of frameworks do */
  if (retained) assert_ok(hipmm_stream_retain(0, second));
  use_and_free(sizes[SIZES - 1], second);
  takes_nothing_that_would_have_to_be_waited_for(sizes, first, second);
  if (retained) keeps_to_itself(sizes, first, second);
  assert_true(capture_end());
  assert_undisturbed();
  /* Afterwards all memory is anybody's again. */
  uint64_t held = fixture_held_bytes();
  for (int i = 0; i < SIZES; i++) use_and_free(sizes[i], second);
  for (int i = 0; i < SIZES; i++) use_and_free(sizes[i], first);
  assert_int_equal(fixture_held_bytes(), held);
  assert_undisturbed();
  fixture_drop_stream(first);
  fixture_drop_stream(second);
  finish();
  capture_forget();
  assert_int_equal(fixture_teardown(NULL), 0);
}

static void lets_captures_be(const struct sub_allocator *row)
{
  needs_software();
  for (int record = 0; record < RECORDS; record++)
    for (int retained = 0; retained < 2; retained++) lets_a_capture_be(row, record, retained);
}

/* ---- Anything ---- */

static void runs_random_programs(const struct sub_allocator *row)
{
  static const char *const schedulers[] = {"'scheduler': 'stepped', 'seed': 9", "'scheduler': 'threads'"};
  static const char *const upstreams[] = {"'device'", "'pool', 'device'", "'async'"};
  for (uint64_t seed = 1; seed <= 6; seed++) {
    const struct stream_program program = {.seed = seed,
                                           .steps = 1500,
                                           .n_streams = 1 + (unsigned)seed % 5,
                                           .most_live = row->most_live,
                                           .most_bytes = seed % 3 ? row->random_bytes : row->random_bytes / 15,
                                           .destroys_streams = seed % RECORDS != LAZY,
                                           .ends_with_no_live = seed % 2};
    const char *upstream = upstreams[row->can & GROWS && strcmp(row->type, "pool") ? seed / 2 % 3 : 0];
    begin_over(schedulers[seed % 4 == 0], row, row->random, (int)(seed % RECORDS), upstream);
    stream_program_run(&program);
    if (!(row->can & REUSES)) assert_in_range(value_of(row, "rewinds"), 50, 10000); /* so few blocks are live */
    finish();
  }
}

int main(void)
{
  static const struct sub_allocator_case cases[] = {
      EACH(reuses_on_the_same_stream_without_a_call, 0),
      EACH(knows_the_default_stream_by_both_its_names, 0),
      EACH(retires_the_default_stream_by_either_name, 0),
      EACH(orders_streams_however_it_records, 0),
      EACH(orders_after_the_stream_that_it_was_freed_on, 0),
      EACH(has_a_stream_wait_for_a_retained_one, 0),
      EACH(waits_for_nothing_when_the_work_is_done, 0),
      EACH(records_once_for_each_free_if_told_to, 0),
      EACH(never_waits_on_the_host_when_it_frees, 0),
      EACH(waits_for_work_before_it_gives_memory_back, 0),
      EACH(makes_blocks_of_a_retired_stream_anybodys, 0),
      EACH(retires_streams_that_it_never_met, 0),
      EACH(outlives_a_stream, 0),
      EACH(never_uses_a_stream_that_may_be_gone, 0),
      EACH(survives_a_stream_with_the_handle_of_a_dead_one, 0),
      EACH(mixes_up_no_caches_when_handles_come_again, 0),
      EACH(serves_thousands_of_streams, 0),
      EACH(costs_the_same_however_many_streams_there_are, SCALES),
      EACH(tells_the_default_streams_of_threads_apart, 0),
      EACH(lets_captures_be, REUSES),
      EACH(runs_random_programs, 0),
  };
  return sub_allocators_run("reuse in stream order", cases, sizeof cases / sizeof *cases, fixture_setup,
                            capture_teardown);
}
