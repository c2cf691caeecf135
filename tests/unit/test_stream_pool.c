/* SPDX-License-Identifier: MIT */
/* Tests of core/stream/stream_pool.c: streams in turn and by index, made when they are asked for, from any thread. */
#include "../support/both_schedulers.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static int last_device(void)
{
  int count = 0;
  assert_ok(hipmm_device_count(&count));
  return count - 1;
}

/* Of the last device. */
static struct hipmm_stream_pool *make(size_t size)
{
  struct hipmm_stream_pool *pool = NULL;
  assert_ok(hipmm_stream_pool_create(last_device(), size, HIPMM_STREAM_NON_BLOCKING, &pool));
  return pool;
}

static hipmm_stream_t get(struct hipmm_stream_pool *pool)
{
  hipmm_stream_t stream = NULL;
  assert_ok(hipmm_stream_pool_get(pool, &stream));
  assert_non_null(stream);
  return stream;
}

static void gives_sixteen_streams_in_turn(void **state)
{
  hipmm_stream_t streams[16], stream;
  int device = -1;
  both_start(state, "'stack': ['device']");
  struct hipmm_stream_pool *pool = make(0);
  assert_int_equal(hipmm_stream_pool_size(pool), 16);
  assert_int_equal(hipmm_stream_pool_device(pool), last_device());
  for (int i = 0; i < 16; i++) {
    streams[i] = get(pool);
    for (int j = 0; j < i; j++) assert_ptr_not_equal(streams[i], streams[j]);
    assert_ok(hipmm_stream_device(streams[i], &device));
    assert_int_equal(device, last_device());
  }
  for (size_t i = 0; i < 40; i++) {
    assert_ptr_equal(get(pool), streams[i % 16]);
    assert_ok(hipmm_stream_pool_get_at(pool, i, &stream));
    assert_ptr_equal(stream, streams[i % 16]);
  }
  assert_ok(hipmm_stream_pool_get_at(pool, SIZE_MAX, &stream));
  assert_ptr_equal(stream, streams[SIZE_MAX % 16]);
  assert_ok(hipmm_stream_pool_destroy(pool));
}

static void makes_a_stream_when_it_is_asked_for(void **state)
{
  hipmm_stream_t stream;
  needs_software();
  both_start(state, "'stack': ['device']");
  software()->reset_calls();
  struct hipmm_stream_pool *pool = make(1000);
  assert_int_equal(software()->calls("hipStreamCreateWithFlags"), 0);
  assert_ok(hipmm_stream_pool_get_at(pool, 999, &stream));
  assert_ok(hipmm_stream_pool_get_at(pool, 1999, &stream));
  assert_int_equal(software()->calls("hipStreamCreateWithFlags"), 1);
  get(pool);
  assert_int_equal(software()->calls("hipStreamCreateWithFlags"), 2);
  assert_ok(hipmm_stream_pool_destroy(pool));
  assert_int_equal(software()->calls("hipStreamDestroy"), 2);
}

static void keeps_its_streams_to_itself(void **state)
{
  both_start(state, "'stack': ['device']");
  struct hipmm_stream_pool *pool = make(2);
  hipmm_stream_t stream = get(pool);
  assert_status(hipmm_stream_destroy(stream), HIPMM_E_ARGUMENT);
  assert_message("belongs to a pool");
  assert_ok(hipmm_stream_synchronize(hipmm_stream_pool_device(pool), stream));
  assert_ok(hipmm_stream_pool_destroy(pool));
  assert_status(hipmm_stream_destroy(stream), HIPMM_E_POINTER);
}

static void minds_its_arguments(void **state)
{
  struct hipmm_stream_pool *pool = (void *)(uintptr_t)0x5a5a, *untouched = pool;
  hipmm_stream_t stream = NULL;
  both_start(state, "'stack': ['device']");
  assert_status(hipmm_stream_pool_create(1000, 0, 0, &pool), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_pool_create(0, 0, 4, &pool), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_pool_create(0, HIPMM_STREAM_POOL_MAX_SIZE + 1, 0, &pool), HIPMM_E_ARGUMENT);
  assert_message("at most 65536 are allowed");
  assert_status(hipmm_stream_pool_create(0, SIZE_MAX, 0, &pool), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_pool_create(0, 0, 0, NULL), HIPMM_E_ARGUMENT);
  assert_ptr_equal(pool, untouched);
  assert_status(hipmm_stream_pool_get(NULL, &stream), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_pool_get_at(NULL, 0, &stream), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_stream_pool_destroy(NULL));
  assert_int_equal(hipmm_stream_pool_size(NULL), 0);
  assert_int_equal(hipmm_stream_pool_device(NULL), -1);
  pool = make(1);
  assert_status(hipmm_stream_pool_get(pool, NULL), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_stream_pool_destroy(pool));
  assert_status(hipmm_stream_pool_destroy(pool), HIPMM_E_POINTER);
  assert_message("not a stream pool, or already destroyed");
  assert_status(hipmm_stream_pool_get(pool, &stream), HIPMM_E_POINTER);
  assert_int_equal(hipmm_stream_pool_size(pool), 0);
  assert_null(stream);
}

static void works_past_finalize(void **state)
{
  both_start(state, "'stack': ['pool', 'device']");
  struct hipmm_stream_pool *pool = make(4);
  hipmm_stream_t stream = get(pool);
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_stream_synchronize(hipmm_stream_pool_device(pool), stream));
  get(pool);
  assert_ok(hipmm_stream_pool_destroy(pool));
}

static void a_failure_loses_no_stream(void **state)
{
  hipmm_stream_t stream = NULL;
  needs_software();
  both_start(state, "'stack': ['pool', 'device']");
  struct hipmm_stream_pool *pool = make(5);
  fixture_fail_call("hipStreamCreateWithFlags", 1, 0);
  assert_true(hipmm_stream_pool_get(pool, &stream) != HIPMM_OK);
  assert_null(stream);
  for (int i = 0; i < 5; i++) get(pool);
  software()->reset_calls();
  fixture_fail_call("hipStreamDestroy", 3, 0);
  assert_status(hipmm_stream_pool_destroy(pool), HIPMM_E_HIP);
  assert_message("hipStreamDestroy failed");
  assert_int_equal(software()->calls("hipStreamDestroy"), 5);
  assert_int_equal(hipmm_stream_pool_size(pool), 5);
  assert_ok(hipmm_stream_pool_destroy(pool));
  assert_int_equal(software()->calls("hipStreamDestroy"), 6);
}

/* ---- Threads ---- */

enum { THREADS = 6, TURNS = 700, SIZE = 7 };

struct taker {
  struct hipmm_stream_pool *pool;
  hipmm_stream_t taken[TURNS];
  int failures;
};

static void *take(void *argument)
{
  struct taker *taker = argument;
  for (int i = 0; i < TURNS; i++)
    if (hipmm_stream_pool_get(taker->pool, &taker->taken[i])) taker->failures++;
  return NULL;
}

static void serves_threads_evenly(void **state)
{
  pthread_t threads[THREADS];
  struct taker *takers = calloc(THREADS, sizeof *takers);
  int counts[SIZE] = {0};
  both_start(state, "'stack': ['device']");
  struct hipmm_stream_pool *pool = make(SIZE);
  for (int i = 0; i < THREADS; i++) takers[i].pool = pool;
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, take, &takers[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (size_t at = 0; at < SIZE; at++) {
    hipmm_stream_t stream = NULL;
    assert_ok(hipmm_stream_pool_get_at(pool, at, &stream));
    for (int i = 0; i < THREADS * TURNS; i++)
      if (takers[i / TURNS].taken[i % TURNS] == stream) counts[at]++;
    assert_int_equal(counts[at], THREADS * TURNS / SIZE);
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(takers[i].failures, 0);
  assert_ok(hipmm_stream_pool_destroy(pool));
  free(takers);
}

/* ---- A function of the program that gets a stream ---- */

/* An allocator below a `pool`, which holds its lock meanwhile. */
static struct allocator {
  struct hipmm_stream_pool *streams;
  hipmm_stream_t stream, others;
  enum hipmm_status status, others_status;
  pthread_t other;
  _Alignas(256) char memory[1 << 20];
} allocator;

static void *get_first(void *argument)
{
  struct allocator *self = argument;
  self->others_status = hipmm_stream_pool_get_at(self->streams, 0, &self->others);
  return NULL;
}

/* Another thread creates the stream too; to tell the `pool` of it, that thread must wait for this one. */
static enum hipmm_status allocate_with_stream(void *argument, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                              void **ptr_out)
{
  struct allocator *self = argument;
  (void)stream;
  if (bytes > sizeof self->memory || alignment > 256) return HIPMM_E_OUT_OF_MEMORY;
  if (pthread_create(&self->other, NULL, get_first, self)) return HIPMM_E_INTERNAL;
  while (!software()->calls("hipStreamCreateWithFlags")) sched_yield();
  self->status = hipmm_stream_pool_get_at(self->streams, 0, &self->stream);
  *ptr_out = self->memory;
  return HIPMM_OK;
}

static void free_nothing(void *argument, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)argument, (void)ptr, (void)bytes, (void)alignment, (void)stream;
}

static void an_allocator_gets_a_stream_that_another_thread_creates(void **state)
{
  const struct hipmm_allocator functions = {
      .struct_size = sizeof functions, .allocate = allocate_with_stream, .deallocate = free_nothing, .arg = &allocator};
  needs_software();
  assert_ok(hipmm_allocator_register("program", &functions));
  both_start(state,
             "'stack': [{'type': 'pool', 'maximum_size': '1MiB'}, {'type': 'callback', 'allocator': 'program'}]");
  assert_ok(hipmm_stream_pool_create(0, 1, HIPMM_STREAM_NON_BLOCKING, &allocator.streams));
  fixture_resource("pool"); /* builds the stack */
  software()->reset_calls();
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  pthread_join(allocator.other, NULL);
  assert_ok(allocator.status);
  assert_ok(allocator.others_status);
  assert_non_null(allocator.stream);
  assert_ptr_equal(allocator.stream, allocator.others);
  assert_int_equal(software()->calls("hipStreamCreateWithFlags"), software()->calls("hipStreamDestroy") + 1);
  assert_ok(hipmm_stream_pool_destroy(allocator.streams));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(gives_sixteen_streams_in_turn), BOTH(makes_a_stream_when_it_is_asked_for),
      BOTH(keeps_its_streams_to_itself),   BOTH(minds_its_arguments),
      BOTH(works_past_finalize),           BOTH(a_failure_loses_no_stream),
      BOTH(serves_threads_evenly),         BOTH(an_allocator_gets_a_stream_that_another_thread_creates),
  };
  return cmocka_run_group_tests_name("stream_pool", tests, NULL, NULL);
}
