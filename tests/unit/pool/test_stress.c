/* SPDX-License-Identifier: MIT */
/* Eight threads on eight streams at once: they allocate, hand over, free on other streams, trim and end, in a pool or
 * an arena that is too small for them. What a stream has written into a block must be there when it looks again, and in
 * the end everything is free in one chunk. */
#include "../../support/fixture.h"
#include "../../support/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  THREADS = 8,
  STREAMS = 8,
  GENERATIONS = 3,
  STEPS = 300,
  HELD = 8,
  SHARED = 16,
  KIB = 1024,
  MOST = 6,
  MOST_WITH_HEAPS = 64
};

struct block {
  unsigned char *ptr; /* NULL: none */
  size_t bytes;
  unsigned stream;
  unsigned char tag;
};

struct world {
  hipmm_stream_t streams[STREAMS];
  pthread_mutex_t lock;
  pthread_barrier_t all_are_done; /* until then no thread gets what one that ends has left */
  struct block shared[SHARED];    /* blocks that wait for a thread to take them */
  atomic_uint wrong, failed, refused, allocated;
};

static struct world world;

struct worker {
  pthread_t thread;
  uint64_t random;
  struct block held[HELD];
};

static void expect(int code)
{
  if (code) atomic_fetch_add(&world.failed, 1);
}

static void submit_look(const struct block *block)
{
  expect(fixture_look(block->ptr, block->tag, block->bytes, world.streams[block->stream], &world.wrong));
}

/* What the program owes when it goes on with a block on another stream. */
static void move_to(struct block *block, unsigned stream)
{
  const struct hipmm_hip *hip = fixture_hip();
  hipmm_hip_event_t event;
  if (stream == block->stream) return;
  expect(hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING));
  expect(hip->EventRecord(event, world.streams[block->stream]));
  expect(hip->StreamWaitEvent(world.streams[stream], event, 0));
  expect(hip->EventDestroy(event));
  block->stream = stream;
}

static void allocate_one(struct worker *worker, struct block *block)
{
  static atomic_uchar last_tag;
  void *ptr = NULL;
  block->bytes = 1 + (size_t)random_below(&worker->random, random_below(&worker->random, 4) ? 4 * KIB : 2048 * KIB);
  block->stream = (unsigned)random_below(&worker->random, STREAMS);
  block->tag = ++last_tag;
  enum hipmm_status status = hipmm_allocate(NULL, block->bytes, world.streams[block->stream], &ptr);
  atomic_fetch_add(status ? &world.refused : &world.allocated, 1);
  if (status == HIPMM_E_OUT_OF_MEMORY) return;
  expect(status);
  block->ptr = ptr;
  if (!ptr) return;
  expect(fixture_hip()->MemsetAsync(ptr, block->tag, block->bytes, world.streams[block->stream]));
}

static void free_one(struct worker *worker, struct block *block)
{
  if (!random_below(&worker->random, 4)) move_to(block, (unsigned)random_below(&worker->random, STREAMS));
  submit_look(block);
  size_t bytes = random_below(&worker->random, 2) ? block->bytes : 0;
  expect(hipmm_deallocate(NULL, block->ptr, bytes, world.streams[block->stream]));
  block->ptr = NULL;
}

static void exchange(struct worker *worker, struct block *block)
{
  struct block *shared = &world.shared[random_below(&worker->random, SHARED)];
  pthread_mutex_lock(&world.lock);
  struct block mine = *block;
  *block = *shared;
  *shared = mine;
  pthread_mutex_unlock(&world.lock);
}

static void *work(void *closure)
{
  struct worker *worker = closure;
  struct hipmm_resource *pool;
  expect(hipmm_resource_get_for_device(0, &pool));
  for (unsigned i = 0; i < STEPS; i++) {
    struct block *block = &worker->held[random_below(&worker->random, HELD)];
    uint64_t lot = random_below(&worker->random, 100);
    if (lot < 1)
      expect(hipmm_resource_trim(pool, (size_t)random_below(&worker->random, 3) * MIB));
    else if (lot < 20)
      exchange(worker, block);
    else if (block->ptr)
      free_one(worker, block);
    else
      allocate_one(worker, block);
  }
  for (unsigned i = 0; i < HELD; i++)
    if (worker->held[i].ptr) free_one(worker, &worker->held[i]);
  pthread_barrier_wait(&world.all_are_done);
  hipmm_resource_release(pool);
  return NULL;
}

static void run_threads(uint64_t seed)
{
  static struct worker workers[THREADS];
  assert_int_equal(pthread_barrier_init(&world.all_are_done, NULL, THREADS), 0);
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){.random = seed * 100 + i};
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
  pthread_barrier_destroy(&world.all_are_done);
}

static void assert_all_is_free(const char *type, size_t most_bytes)
{
  assert_int_equal(fixture_value(type, "live_count"), 0);
  assert_int_equal(fixture_value(type, "live_bytes"), 0);
  if (!strcmp(type, "pool")) assert_int_equal(fixture_value(type, "cached_bytes"), 0); /* those threads have ended */
  fixture_free(fixture_allocate(most_bytes, NULL), most_bytes, NULL);
  assert_int_equal(fixture_peak_held_bytes(), most_bytes);
  assert_ok(hipmm_resource_trim(fixture_resource(type), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

struct stress {
  const char *name, *scheduler, *type, *options;
  bool retains;   /* every other stream */
  bool has_heaps; /* each thread gets a local arena at once (eager/pool.c), unless memory is short */
};

static void survives(void **state)
{
  const struct stress *row = *state;
  struct worker sweeper = {.random = 99};
  char runtime[100], graph[300];
  int most = row->has_heaps ? MOST_WITH_HEAPS : MOST; /* threads whose pool is short of mapped memory share it */
  world = (struct world){.lock = PTHREAD_MUTEX_INITIALIZER};
  snprintf(runtime, sizeof runtime, "'scheduler': '%s'", row->scheduler);
  snprintf(graph, sizeof graph, "'stack': [{'type': '%s', %s, 'maximum_size': '%dMiB'}, 'device']", row->type,
           row->options, most);
  fixture_start_with(runtime, graph);
  for (unsigned i = 1; i < STREAMS; i++) world.streams[i] = fixture_stream();
  for (unsigned i = 1; i < STREAMS && row->retains; i += 2) assert_ok(hipmm_stream_retain(0, world.streams[i]));
  for (unsigned generation = 0; generation < GENERATIONS; generation++) run_threads(generation + 1);
  for (unsigned i = 0; i < SHARED; i++)
    if (world.shared[i].ptr) free_one(&sweeper, &world.shared[i]);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(world.failed, 0);
  assert_int_equal(world.wrong, 0);
  assert_true(world.allocated > 500);
  assert_true(row->has_heaps ? fixture_value("pool", "thread_heaps") > 1 : world.refused > 0);
  for (unsigned i = 1; i < STREAMS; i++) {
    assert_ok(hipmm_stream_retire(0, world.streams[i]));
    fixture_drop_stream(world.streams[i]);
  }
  assert_ok(hipmm_stream_retire(0, NULL));
  assert_all_is_free(row->type, (size_t)most * MIB);
}

static const struct stress rows[] = {
    {"survives it: mapped, auto, stepped", "stepped", "pool", "'growth': 'mapped', 'record': 'auto'", true, false},
    {"survives it: mapped, lazy, stepped", "stepped", "pool", "'growth': 'mapped', 'record': 'lazy'", false, false},
    {"survives it: segments, auto, stepped", "stepped", "pool", "'growth': 'segments', 'record': 'auto'", false, false},
    {"survives it: segments, on_free, stepped", "stepped", "pool", "'growth': 'segments', 'record': 'on_free'", false,
     false},
    {"survives it: mapped, auto, threads", "threads", "pool", "'growth': 'mapped', 'record': 'auto'", true, false},
    {"survives it: segments, lazy, threads", "threads", "pool", "'growth': 'segments', 'record': 'lazy'", false, false},
    {"survives it: exportable, auto, stepped", "stepped", "pool", "'growth': 'mapped', 'exportable': true", true,
     false},
    {"survives it: exportable, lazy, threads", "threads", "pool", "'exportable': true, 'record': 'lazy'", false, false},
    {"survives it: for drivers' handles, stepped", "stepped", "pool", "'ipc': 'legacy', 'record': 'lazy'", false,
     false},
    {"survives it: mapped, heaps of threads, stepped", "stepped", "pool", "'growth': 'mapped'", true, true},
    {"survives it: mapped, heaps of threads, threads", "threads", "pool", "'growth': 'mapped'", true, true},
    {"survives it: segments, heaps of threads, threads", "threads", "pool", "'growth': 'segments'", true, true},
    {"survives it: arena, auto, stepped", "stepped", "arena", "'record': 'auto'", true, false},
    {"survives it: arena, lazy, stepped", "stepped", "arena", "'record': 'lazy'", false, false},
    {"survives it: arena, on_free, stepped", "stepped", "arena", "'record': 'on_free'", false, false},
    {"survives it: arena, auto, threads", "threads", "arena", "'record': 'auto'", true, false},
    {"survives it: arena, lazy, threads", "threads", "arena", "'record': 'lazy'", false, false},
};

/* In a process of its own, which loads that pool. */
static void survives_elsewhere(void **state)
{
  const struct stress *row = *state;
  const char *top = getenv("top_builddir"), *ours = getenv("HIPMM_PLUGIN_PATH");
  char number[20], path[2000];
  /* There cache_new() is inlined, so that nothing replaces it; and there the kernel cannot run the program again. */
  if (getenv("HIPMM_TEST_LTO") || getenv("HIPMM_TEST_EMULATED")) skip();
  snprintf(number, sizeof number, "%zu", (size_t)(row - rows));
  snprintf(path, sizeof path, "HIPMM_PLUGIN_PATH=%s/tests/unit/pool/eager/.libs:%s", top ? top : ".", ours ? ours : "");
  const char *const arguments[] = {number, NULL}, *const environment[] = {path, NULL};
  struct outcome outcome = run_again(arguments, environment);
  if (outcome.status) print_error("%s%s", outcome.out, outcome.error);
  assert_int_equal(outcome.status, 0);
}

/* All rows, or that of the number. */
int main(int argc, char **argv)
{
  enum { ROWS = sizeof rows / sizeof *rows };
  struct CMUnitTest tests[ROWS];
  for (size_t i = 0; i < ROWS; i++)
    tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                   .test_func = argc < 2 && rows[i].has_heaps ? survives_elsewhere : survives,
                                   .setup_func = fixture_setup,
                                   .teardown_func = fixture_teardown,
                                   .initial_state = (void *)(uintptr_t)&rows[i]};
  const struct CMUnitTest *first = argc < 2 ? tests : &tests[atoi(argv[1]) % ROWS];
  return _cmocka_run_group_tests("stress", first, argc < 2 ? ROWS : 1, NULL, NULL);
}
