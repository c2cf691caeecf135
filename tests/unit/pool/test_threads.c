/* SPDX-License-Identifier: MIT */
/* Tests of the pool in threads: what a thread keeps for itself is bounded, counted, and there for others when they need
 * it; and every block has one owner, whoever frees it. Threads tell what happened, the main thread asserts. */
#include "../../support/fixture.h"
#include "../../support/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_THREAD ((hipmm_stream_t)2)

enum { KIB = 1024, SMALL = 1000, SMALL_ROUNDED = 1024 };

static void start(const char *options)
{
  char graph[300];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool'%s}, 'device']", options);
  fixture_start(graph);
}

static int64_t value(const char *name)
{
  return fixture_value("pool", name);
}

static void trim(void)
{
  assert_ok(hipmm_resource_trim(fixture_resource("pool"), 0));
}

/* ---- A thread that does what it is told ---- */

struct worker {
  pthread_t thread;
  pthread_barrier_t turn;
  void (*task)(struct worker *worker); /* NULL: to end */
  hipmm_stream_t stream;
  size_t bytes;
  unsigned count;
  void *ptr[4096];
  unsigned failures;
};

static void *work(void *closure)
{
  struct worker *worker = closure;
  for (;;) {
    pthread_barrier_wait(&worker->turn);
    if (!worker->task) return NULL;
    worker->task(worker);
    pthread_barrier_wait(&worker->turn);
  }
}

static void start_worker(struct worker *worker, hipmm_stream_t stream)
{
  memset(worker, 0, sizeof *worker);
  worker->stream = stream;
  pthread_barrier_init(&worker->turn, NULL, 2);
  assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static void tell(struct worker *worker, void (*task)(struct worker *worker), unsigned count, size_t bytes)
{
  worker->task = task;
  worker->count = count;
  worker->bytes = bytes;
  pthread_barrier_wait(&worker->turn);
  pthread_barrier_wait(&worker->turn);
  assert_int_equal(worker->failures, 0);
}

static void end_worker(struct worker *worker)
{
  worker->task = NULL;
  pthread_barrier_wait(&worker->turn);
  pthread_join(worker->thread, NULL);
  pthread_barrier_destroy(&worker->turn);
}

static void allocate_all(struct worker *worker)
{
  for (unsigned i = 0; i < worker->count; i++)
    worker->failures += hipmm_allocate(NULL, worker->bytes, worker->stream, &worker->ptr[i]) != HIPMM_OK;
}

static void free_all(struct worker *worker)
{
  for (unsigned i = 0; i < worker->count; i++)
    worker->failures += hipmm_deallocate(NULL, worker->ptr[i], worker->bytes, worker->stream) != HIPMM_OK;
}

static void allocate_and_free_all(struct worker *worker)
{
  allocate_all(worker);
  free_all(worker);
}

/* ---- What a thread keeps ---- */

static void counts_what_threads_keep_and_hold(void **state)
{
  static struct worker workers[3];
  (void)state;
  start("");
  for (unsigned i = 0; i < 3; i++) start_worker(&workers[i], NULL);
  for (unsigned i = 0; i < 3; i++) {
    tell(&workers[i], allocate_all, 10, SMALL);
    assert_int_equal(value("live_count"), 10 * (i + 1));
    assert_int_equal(value("live_bytes"), 10 * SMALL * (i + 1));
    assert_int_equal(value("cached_bytes"), 0);
  }
  for (unsigned i = 0; i < 3; i++) {
    tell(&workers[i], free_all, 10, SMALL);
    assert_int_equal(value("live_count"), 10 * (2 - i));
    assert_int_equal(value("live_bytes"), 10 * SMALL * (2 - i));
    assert_int_equal(value("cached_bytes"), 10 * SMALL_ROUNDED * (i + 1));
    assert_int_equal(value("free_bytes"), value("reserved_bytes") - 10 * SMALL_ROUNDED * (2 - i));
  }
  tell(&workers[1], allocate_all, 7, SMALL); /* of its own */
  assert_int_equal(value("cached_bytes"), 23 * SMALL_ROUNDED);
  tell(&workers[1], free_all, 7, SMALL);
  for (unsigned i = 0; i < 3; i++) {
    end_worker(&workers[i]);
    assert_int_equal(value("cached_bytes"), 10 * SMALL_ROUNDED * (2 - i));
    assert_int_equal(value("live_count"), 0);
    assert_int_equal(value("live_bytes"), 0);
  }
}

/* Another thread frees it: it is that one's then. */
static void counts_what_is_freed_by_another_thread(void **state)
{
  static struct worker giver, taker;
  (void)state;
  start("");
  start_worker(&giver, NULL);
  start_worker(&taker, NULL);
  for (int round = 0; round < 20; round++) {
    tell(&giver, allocate_all, 100, SMALL);
    assert_int_equal(value("live_count"), 100);
    assert_int_equal(value("live_bytes"), 100 * SMALL);
    memcpy(taker.ptr, giver.ptr, 100 * sizeof *giver.ptr);
    tell(&taker, free_all, 100, SMALL);
    assert_int_equal(value("live_count"), 0);
    assert_int_equal(value("live_bytes"), 0);
  }
  assert_in_range(fixture_held_bytes(), 1, 4 * MIB);
  end_worker(&giver);
  end_worker(&taker);
  assert_int_equal(value("cached_bytes"), 0);
}

/* A thread frees more than its cache holds, of what another one allocates: that one gets it again. */
static void passes_on_what_a_cache_has_too_much_of(void **state)
{
  enum { COUNT = 4096, BYTES = COUNT * SMALL_ROUNDED };
  static struct worker giver, taker;
  (void)state;
  start("");
  start_worker(&giver, NULL);
  start_worker(&taker, NULL);
  tell(&giver, allocate_all, COUNT, SMALL);
  memcpy(taker.ptr, giver.ptr, sizeof giver.ptr);
  tell(&taker, free_all, COUNT, SMALL);
  assert_int_equal(value("cached_bytes"), BYTES);
  tell(&giver, allocate_all, COUNT / 2, SMALL);
  assert_int_equal(value("cached_bytes"), BYTES / 2);
  assert_int_equal(value("live_count"), COUNT / 2);
  assert_int_equal(value("live_bytes"), COUNT / 2 * SMALL);
  tell(&giver, free_all, COUNT / 2, SMALL);
  assert_int_equal(value("cached_bytes"), BYTES);
  assert_int_equal(value("live_count"), 0);
  end_worker(&giver);
  assert_in_range(value("cached_bytes"), 1, MIB); /* no other thread uses the stream */
  trim();
  assert_int_equal(value("cached_bytes"), 0);
  assert_int_equal(fixture_held_bytes(), 0);
  end_worker(&taker);
}

static void passes_on_no_more_than_its_bound(void **state)
{
  static struct worker giver, taker;
  (void)state;
  start("");
  start_worker(&giver, NULL);
  start_worker(&taker, NULL);
  for (int round = 0; round < 3; round++) {
    tell(&giver, allocate_all, 4096, 4 * KIB);
    memcpy(taker.ptr, giver.ptr, sizeof giver.ptr);
    tell(&taker, free_all, 4096, 4 * KIB);
    assert_in_range(value("cached_bytes"), 4 * MIB, 5 * MIB);
  }
  void *large = fixture_allocate(14 * MIB, NULL);
  assert_int_equal(value("cached_bytes"), 0); /* rather than more memory */
  fixture_free(large, 14 * MIB, NULL);
  end_worker(&giver);
  end_worker(&taker);
}

static void keeps_no_more_than_its_bound(void **state)
{
  static struct worker worker;
  (void)state;
  start("");
  start_worker(&worker, NULL);
  for (size_t bytes = 256; bytes <= 4096; bytes += 256) tell(&worker, allocate_and_free_all, 4096, bytes);
  assert_in_range(value("cached_bytes"), 1, 2 * MIB);
  end_worker(&worker);
}

static void gives_back_what_a_thread_kept_when_it_ends(void **state)
{
  static const hipmm_stream_t streams[] = {NULL, PER_THREAD};
  (void)state;
  for (int i = 0; i < 2; i++) {
    static struct worker worker;
    start(", 'maximum_size': '2MiB'");
    start_worker(&worker, streams[i]);
    tell(&worker, allocate_and_free_all, 500, 4 * KIB);
    assert_true(value("cached_bytes") > 0);
    end_worker(&worker);
    assert_int_equal(value("cached_bytes"), 0);
    fixture_free(fixture_allocate(2 * MIB, NULL), 2 * MIB, NULL);
    assert_ok(hipmm_finalize());
  }
}

/* The others live on, and need not do anything. */
static void uses_what_other_threads_keep_before_it_grows(void **state)
{
  static const hipmm_stream_t streams[] = {NULL, PER_THREAD};
  (void)state;
  for (int i = 0; i < 2; i++) {
    static struct worker workers[2];
    start(", 'maximum_size': '2MiB'");
    for (int k = 0; k < 2; k++) start_worker(&workers[k], streams[i]);
    for (int k = 0; k < 2; k++) tell(&workers[k], allocate_all, 200, 4 * KIB);
    for (int k = 0; k < 2; k++) tell(&workers[k], free_all, 200, 4 * KIB);
    assert_int_equal(value("cached_bytes"), 400 * 4 * KIB);
    void *all = fixture_allocate(2 * MIB, NULL);
    assert_int_equal(value("cached_bytes"), 0);
    fixture_free(all, 2 * MIB, NULL);
    for (int k = 0; k < 2; k++) tell(&workers[k], allocate_and_free_all, 100, 4 * KIB);
    for (int k = 0; k < 2; k++) end_worker(&workers[k]);
    assert_ok(hipmm_finalize());
  }
}

static void trims_what_other_threads_keep(void **state)
{
  static struct worker worker;
  (void)state;
  start("");
  start_worker(&worker, NULL);
  tell(&worker, allocate_and_free_all, 100, 4 * KIB);
  assert_int_equal(value("cached_bytes"), 100 * 4 * KIB);
  trim();
  assert_int_equal(value("cached_bytes"), 0);
  assert_int_equal(fixture_held_bytes(), 0);
  tell(&worker, allocate_and_free_all, 100, 4 * KIB);
  assert_int_equal(value("live_count"), 0);
  end_worker(&worker);
}

static void needs_no_more_for_threads_that_come_and_go(void **state)
{
  (void)state;
  start("");
  int64_t metadata = 0;
  size_t held = 0;
  for (int round = 0; round < 300; round++) {
    static struct worker worker;
    start_worker(&worker, NULL);
    tell(&worker, allocate_and_free_all, 50, 700);
    end_worker(&worker);
    if (round == 9) metadata = value("metadata_bytes"), held = fixture_held_bytes();
  }
  assert_in_range(value("metadata_bytes"), 1, metadata + 4 * KIB);
  assert_int_equal(fixture_held_bytes(), held);
  assert_int_equal(value("cached_bytes"), 0);
}

/* ---- Many streams ---- */

/* More than there are caches, and enough for many to share a place in their index. */
static void keeps_a_block_for_each_of_many_streams(void **state)
{
  enum { STREAMS = 4200, MOST_CACHES = 4096, BYTES = 256, ALIGNED = 100, PAGE = 4096 };
  static hipmm_stream_t streams[STREAMS];
  static void *blocks[STREAMS];
  (void)state;
  start(", 'record': 'lazy'");
  for (int i = 0; i < STREAMS; i++) streams[i] = fixture_stream();
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < STREAMS; i++) blocks[i] = fixture_allocate(BYTES, streams[i]);
    assert_int_equal(value("cached_bytes"), 0);
    for (int i = 0; i < STREAMS; i++) {
      if (i == 600) assert_int_equal(value("cached_bytes"), 600 * BYTES);
      fixture_free(blocks[i], BYTES, streams[i]);
    }
    assert_int_equal(value("cached_bytes"), MOST_CACHES * BYTES);
    assert_int_equal(value("live_count"), 0);
  }
  for (int i = 0; i < ALIGNED; i++) { /* none of what is kept */
    assert_ok(hipmm_allocate_aligned(NULL, BYTES, PAGE, streams[i], &blocks[i]));
    assert_int_equal((uintptr_t)blocks[i] % PAGE, 0);
  }
  for (int i = 0; i < ALIGNED; i++) assert_ok(hipmm_deallocate_aligned(NULL, blocks[i], BYTES, PAGE, streams[i]));
  for (int i = 0; i < STREAMS; i++) {
    assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
  }
  assert_int_equal(value("cached_bytes"), 0);
}

/* ---- Allocating while a thread ends, after the pool was told ---- */

static pthread_key_t last_words;
static atomic_int late_failures;

static void use_pool_late(void *rounds)
{
  void *ptr = NULL;
  if (hipmm_allocate(NULL, SMALL, NULL, &ptr) || hipmm_deallocate(NULL, ptr, SMALL, NULL)) late_failures++;
  if ((uintptr_t)rounds > 1) pthread_setspecific(last_words, (void *)((uintptr_t)rounds - 1));
}

static void leave_last_words(struct worker *worker)
{
  worker->failures += pthread_setspecific(last_words, (void *)2) != 0;
  allocate_and_free_all(worker);
}

static void serves_a_thread_while_it_ends(void **state)
{
  static struct worker worker;
  (void)state;
  start("");
  fixture_free(fixture_allocate(SMALL, NULL), SMALL, NULL); /* the pool is told first */
  trim();
  assert_int_equal(pthread_key_create(&last_words, use_pool_late), 0);
  start_worker(&worker, NULL);
  tell(&worker, leave_last_words, 10, SMALL);
  end_worker(&worker);
  assert_int_equal(late_failures, 0);
  assert_int_equal(value("live_count"), 0);
  assert_int_equal(value("cached_bytes"), 0);
  pthread_key_delete(last_words);
}

/* ---- From thread to thread ---- */

enum { QUEUE = 64, HANDED = 60000 };

struct handoff {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  void *ptr[QUEUE];
  size_t bytes[QUEUE];
  unsigned written, read, failures;
  hipmm_stream_t stream;
};

static void *hand_out(void *closure)
{
  struct handoff *handoff = closure;
  uint64_t random = 1;
  for (unsigned i = 0; i < HANDED; i++) {
    void *ptr = NULL;
    size_t bytes = 1 + (size_t)random_below(&random, i % 16 ? 4 * KIB : 100 * KIB);
    unsigned failed = hipmm_allocate(NULL, bytes, handoff->stream, &ptr) != HIPMM_OK;
    pthread_mutex_lock(&handoff->lock);
    while (handoff->written - handoff->read == QUEUE) pthread_cond_wait(&handoff->changed, &handoff->lock);
    handoff->failures += failed;
    handoff->ptr[handoff->written % QUEUE] = ptr;
    handoff->bytes[handoff->written++ % QUEUE] = bytes;
    pthread_cond_signal(&handoff->changed);
    pthread_mutex_unlock(&handoff->lock);
  }
  return NULL;
}

/* Returns how many frees failed. */
static unsigned free_what_is_handed(struct handoff *handoff)
{
  unsigned failures = 0;
  for (unsigned i = 0; i < HANDED; i++) {
    pthread_mutex_lock(&handoff->lock);
    while (handoff->written == handoff->read) pthread_cond_wait(&handoff->changed, &handoff->lock);
    void *ptr = handoff->ptr[handoff->read % QUEUE];
    size_t bytes = handoff->bytes[handoff->read++ % QUEUE];
    pthread_cond_signal(&handoff->changed);
    pthread_mutex_unlock(&handoff->lock);
    if (hipmm_deallocate(NULL, ptr, bytes, handoff->stream)) failures++;
  }
  return failures;
}

/* One thread only allocates, the other only frees. */
static void stays_small_when_one_thread_frees_what_another_allocates(void **state)
{
  static const char *const options[] = {"", ", 'growth': 'segments'"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct handoff handoff = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    start(options[i]);
    assert_int_equal(pthread_create(&thread, NULL, hand_out, &handoff), 0);
    assert_int_equal(free_what_is_handed(&handoff), 0);
    pthread_join(thread, NULL);
    assert_int_equal(handoff.failures, 0);
    assert_int_equal(value("live_count"), 0);
    assert_int_equal(value("live_bytes"), 0);
    assert_in_range(value("peak_reserved_bytes"), 1, 16 * MIB); /* at most 6 MiB are live, 1 MiB is kept */
    trim();
    assert_int_equal(fixture_held_bytes(), 0);
    assert_ok(hipmm_finalize());
  }
}

/* ---- Pools that go and come ---- */

/* Threads remember their caches of a pool; there may be another at its address by then. */
static void forgets_pools_that_are_gone(void **state)
{
  static struct worker workers[3];
  (void)state;
  start("");
  for (int i = 0; i < 3; i++) start_worker(&workers[i], NULL);
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 3; i++) tell(&workers[i], allocate_and_free_all, 20, SMALL);
    assert_int_equal(value("cached_bytes"), 60 * SMALL_ROUNDED);
    assert_ok(hipmm_finalize());
    assert_int_equal(live_on_all_devices(), 0);
    start(round % 2 ? "" : ", 'growth': 'segments'");
    assert_int_equal(value("cached_bytes"), 0);
  }
  tell(&workers[0], allocate_and_free_all, 20, SMALL);
  assert_ok(hipmm_finalize());
  end_worker(&workers[0]); /* without any pool */
  start("");
  end_worker(&workers[1]); /* with one that it never met */
  tell(&workers[2], allocate_and_free_all, 20, SMALL);
  assert_int_equal(value("cached_bytes"), 20 * SMALL_ROUNDED);
  end_worker(&workers[2]);
  assert_int_equal(value("cached_bytes"), 0);
}

static struct hipmm_resource *remaining;

static void use_remaining_pool(struct worker *worker)
{
  void *ptr = NULL;
  worker->failures += hipmm_allocate(remaining, SMALL, NULL, &ptr) != HIPMM_OK;
  worker->failures += hipmm_deallocate(remaining, ptr, SMALL, NULL) != HIPMM_OK;
}

/* A pool that goes is told of no thread any more; those made before and after it still are. */
static void tells_of_a_threads_end_where_another_pool_is_gone(void **state)
{
  static struct worker worker;
  struct hipmm_resource *pools_made[3];
  (void)state;
  start("");
  struct hipmm_resource *device = fixture_resource("device");
  for (int i = 0; i < 3; i++) assert_ok(hipmm_resource_create(0, "pool", NULL, &device, 1, &pools_made[i]));
  hipmm_resource_release(pools_made[1]);
  for (int i = 0; i < 3; i += 2) {
    remaining = pools_made[i];
    start_worker(&worker, NULL);
    tell(&worker, use_remaining_pool, 1, SMALL);
    assert_int_equal(resource_value(remaining, "cached_bytes"), SMALL_ROUNDED);
    end_worker(&worker);
    assert_int_equal(resource_value(remaining, "cached_bytes"), 0);
    hipmm_resource_release(remaining);
  }
}

static struct hipmm_resource *pools[2];

static void use_both_pools(struct worker *worker)
{
  for (unsigned i = 0; i < worker->count; i++) {
    void *ptr[2] = {0};
    for (int device = 0; device < 2; device++)
      worker->failures += hipmm_allocate(pools[device], SMALL, NULL, &ptr[device]) != HIPMM_OK;
    for (int device = 0; device < 2; device++)
      worker->failures += hipmm_deallocate(pools[device], ptr[1 - device], SMALL, NULL) != HIPMM_E_POINTER;
    for (int device = 0; device < 2; device++)
      worker->failures += hipmm_deallocate(pools[device], ptr[device], SMALL, NULL) != HIPMM_OK;
  }
}

static void keeps_pools_of_two_devices_apart(void **state)
{
  static struct worker workers[2];
  (void)state;
  start("");
  needs_devices(2);
  for (int i = 0; i < 2; i++) assert_ok(hipmm_resource_get_for_device(i, &pools[i]));
  for (int i = 0; i < 2; i++) start_worker(&workers[i], NULL);
  for (int i = 0; i < 2; i++) tell(&workers[i], use_both_pools, 500, 0);
  for (int i = 0; i < 2; i++) {
    int64_t cached = 0;
    assert_ok(hipmm_resource_query(pools[i], "cached_bytes", &cached));
    assert_int_equal(cached, 2 * SMALL_ROUNDED);
  }
  for (int i = 0; i < 2; i++) end_worker(&workers[i]);
  for (int i = 0; i < 2; i++) {
    int64_t cached = 1;
    assert_ok(hipmm_resource_query(pools[i], "cached_bytes", &cached));
    assert_int_equal(cached, 0);
    hipmm_resource_release(pools[i]);
  }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(counts_what_threads_keep_and_hold),
      TEST(counts_what_is_freed_by_another_thread),
      TEST(passes_on_what_a_cache_has_too_much_of),
      TEST(passes_on_no_more_than_its_bound),
      TEST(keeps_no_more_than_its_bound),
      TEST(gives_back_what_a_thread_kept_when_it_ends),
      TEST(uses_what_other_threads_keep_before_it_grows),
      TEST(trims_what_other_threads_keep),
      TEST(needs_no_more_for_threads_that_come_and_go),
      TEST(keeps_a_block_for_each_of_many_streams),
      TEST(serves_a_thread_while_it_ends),
      TEST(stays_small_when_one_thread_frees_what_another_allocates),
      TEST(forgets_pools_that_are_gone),
      TEST(tells_of_a_threads_end_where_another_pool_is_gone),
      TEST(keeps_pools_of_two_devices_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
