/* SPDX-License-Identifier: MIT */
/* Tests of statistics: what is counted when, scopes as RMM's, and exactness under threads. */
#include "../support/fixture.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static const char counted[] = "'stack': ['statistics', 'device']";

static struct hipmm_statistics counters(void)
{
  struct hipmm_statistics now = {0};
  assert_ok(hipmm_statistics_get(fixture_resource("statistics"), &now));
  return now;
}

static void assert_counters(struct hipmm_statistics is, struct hipmm_statistics wanted)
{
  assert_int_equal(is.current_bytes, wanted.current_bytes);
  assert_int_equal(is.current_count, wanted.current_count);
  assert_int_equal(is.peak_bytes, wanted.peak_bytes);
  assert_int_equal(is.peak_count, wanted.peak_count);
  assert_int_equal(is.total_bytes, wanted.total_bytes);
  assert_int_equal(is.total_count, wanted.total_count);
}

static void counts_requested_bytes(void **state)
{
  (void)state;
  fixture_start(counted);
  void *first = fixture_allocate(100, NULL), *second = fixture_allocate(1000, NULL);
  assert_counters(counters(), (struct hipmm_statistics){1100, 2, 1100, 2, 1100, 2});
  fixture_free(first, 100, NULL);
  assert_counters(counters(), (struct hipmm_statistics){1000, 1, 1100, 2, 1100, 2});
  void *third = fixture_allocate(50, NULL);
  assert_counters(counters(), (struct hipmm_statistics){1050, 2, 1100, 2, 1150, 3});
  fixture_free(second, 1000, NULL);
  fixture_free(third, 50, NULL);
  assert_counters(counters(), (struct hipmm_statistics){0, 0, 1100, 2, 1150, 3});
}

static void counts_zero_bytes_as_an_allocation(void **state)
{
  (void)state;
  fixture_start(counted);
  assert_null(fixture_allocate(0, NULL));
  assert_counters(counters(), (struct hipmm_statistics){0, 1, 0, 1, 0, 1});
  fixture_free(NULL, 0, NULL);
  assert_counters(counters(), (struct hipmm_statistics){0, 0, 0, 1, 0, 1});
}

static void finds_the_size_of_a_free_without_one(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', 'pool', 'device']");
  fixture_free(fixture_allocate(1000, NULL), 0, NULL);
  assert_counters(counters(), (struct hipmm_statistics){0, 0, 1000, 1, 1000, 1});
}

static void counts_nothing_that_was_refused(void **state)
{
  const struct hipmm_statistics one = {1000, 1, 1000, 1, 1000, 1};
  void *other = NULL;
  (void)state;
  fixture_start(counted);
  char *ptr = fixture_allocate(1000, NULL);
  assert_status(hipmm_allocate(NULL, SIZE_MAX, NULL, &other), HIPMM_E_OUT_OF_MEMORY);
  assert_counters(counters(), one);
  assert_status(hipmm_deallocate(NULL, ptr, 999, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, ptr + 256, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr + 256, 0, NULL), HIPMM_E_POINTER);
  assert_counters(counters(), one);
  fixture_free(ptr, 1000, NULL);
}

/* Neither does its upstream, and nothing is counted. */
static void serves_nothing_at_once_where_its_upstream_does_not(void **state)
{
  const struct hipmm_statistics one = {1000, 1, 1000, 1, 1000, 1};
  void *other = NULL;
  (void)state;
  fixture_start(counted);
  const struct hipmm_resource *resource = fixture_resource("statistics");
  void *ptr = fixture_allocate(1000, NULL);
  assert_int_equal(resource->ops->try_allocate(resource->self, 1000, HIPMM_ALIGNMENT, NULL, &other), 0);
  assert_int_equal(resource->ops->try_deallocate(resource->self, ptr, 1000, HIPMM_ALIGNMENT, NULL), 0);
  assert_int_equal(resource->ops->try_deallocate(resource->self, NULL, 0, HIPMM_ALIGNMENT, NULL), 0);
  assert_counters(counters(), one);
  fixture_free(ptr, 1000, NULL);
}

static void gives_the_scope_before_when_pushed(void **state)
{
  struct hipmm_statistics before = {0};
  (void)state;
  fixture_start(counted);
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_statistics_push(fixture_resource("statistics"), &before));
  assert_counters(before, (struct hipmm_statistics){1000, 1, 1000, 1, 1000, 1});
  assert_counters(counters(), (struct hipmm_statistics){0});
  fixture_free(ptr, 1000, NULL);
  assert_counters(counters(), (struct hipmm_statistics){-1000, -1, 0, 0, 0, 0});
}

static void merges_a_scope_into_the_one_before(void **state)
{
  struct hipmm_statistics popped = {0};
  (void)state;
  fixture_start(counted);
  void *outer = fixture_allocate(1000, NULL);
  assert_ok(hipmm_statistics_push(fixture_resource("statistics"), NULL));
  void *first = fixture_allocate(300, NULL), *second = fixture_allocate(200, NULL);
  fixture_free(first, 300, NULL);
  assert_ok(hipmm_statistics_pop(fixture_resource("statistics"), &popped));
  assert_counters(popped, (struct hipmm_statistics){200, 1, 500, 2, 500, 2});
  assert_counters(counters(), (struct hipmm_statistics){1200, 2, 1500, 3, 1500, 3});
  fixture_free(outer, 1000, NULL);
  fixture_free(second, 200, NULL);
}

/* A child that only ever went down reached its peak, 0, at its start. */
static void merges_a_scope_that_freed_older_memory(void **state)
{
  (void)state;
  fixture_start(counted);
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_statistics_push(fixture_resource("statistics"), NULL));
  fixture_free(ptr, 1000, NULL);
  void *small = fixture_allocate(10, NULL);
  assert_ok(hipmm_statistics_pop(fixture_resource("statistics"), NULL));
  assert_counters(counters(), (struct hipmm_statistics){10, 1, 1000, 1, 1010, 2});
  fixture_free(small, 10, NULL);
}

/* Peaks that start again in a scope are those that a query shows: the scope ends with its own, and no outer scope loses any. */
static void resets_no_peak_of_a_whole_scope(void **state)
{
  struct hipmm_statistics popped = {0};
  (void)state;
  fixture_start(counted);
  void *outer = fixture_allocate(100, NULL);
  assert_ok(hipmm_statistics_push(fixture_resource("statistics"), NULL));
  void *middle = fixture_allocate(10, NULL);
  assert_ok(hipmm_statistics_push(fixture_resource("statistics"), NULL));
  for (size_t bytes = 300; bytes >= 100; bytes -= 100) {
    assert_ok(hipmm_resource_reset_peaks(NULL));
    fixture_free(fixture_allocate(bytes, NULL), bytes, NULL);
    assert_int_equal(counters().peak_bytes, bytes);
  }
  assert_ok(hipmm_resource_reset_peaks(NULL));
  assert_counters(counters(), (struct hipmm_statistics){0, 0, 0, 0, 600, 3});
  assert_ok(hipmm_statistics_pop(fixture_resource("statistics"), &popped));
  assert_counters(popped, (struct hipmm_statistics){0, 0, 300, 1, 600, 3});
  assert_counters(counters(), (struct hipmm_statistics){10, 1, 310, 2, 610, 4});
  assert_ok(hipmm_resource_reset_peaks(NULL));
  assert_counters(counters(), (struct hipmm_statistics){10, 1, 10, 1, 610, 4});
  assert_ok(hipmm_statistics_pop(fixture_resource("statistics"), &popped));
  assert_counters(popped, (struct hipmm_statistics){10, 1, 310, 2, 610, 4});
  assert_counters(counters(), (struct hipmm_statistics){110, 2, 410, 3, 710, 5});
  assert_ok(hipmm_resource_reset_peaks(NULL));
  assert_ok(hipmm_statistics_push(fixture_resource("statistics"), NULL));
  assert_ok(hipmm_statistics_pop(fixture_resource("statistics"), &popped));
  assert_counters(popped, (struct hipmm_statistics){0});
  assert_counters(counters(), (struct hipmm_statistics){110, 2, 110, 2, 710, 5});
  fixture_free(middle, 10, NULL);
  fixture_free(outer, 100, NULL);
}

static struct hipmm_statistics counters_of(const char *name)
{
  struct hipmm_statistics now = {0};
  assert_ok(hipmm_statistics_get(fixture_resource(name), &now));
  return now;
}

/* Blocks of the lower one that are freed through the upper one, which never saw them: it counts below zero. And the
 * other way round: what is freed past the upper one stays in its counters. */
static void counts_what_goes_past_one_of_two(void **state)
{
  enum { BELOW = 10, ABOVE = 5, BYTES = 1 << 20 };
  void *blocks[BELOW + ABOVE];
  (void)state;
  fixture_start("'resources': {'memory': {'type': 'pool', 'upstream': 'device'}, 'device': {'type': 'device'}, "
                "'lower': {'type': 'statistics', 'upstream': 'memory'}, "
                "'upper': {'type': 'statistics', 'upstream': 'lower'}}, 'devices': {'default': 'upper'}");
  struct hipmm_resource *lower = fixture_resource("lower");
  for (int i = 0; i < BELOW; i++) assert_ok(hipmm_allocate(lower, BYTES, NULL, &blocks[i]));
  for (int i = BELOW; i < BELOW + ABOVE; i++) blocks[i] = fixture_allocate(BYTES, NULL);
  assert_counters(counters_of("lower"), (struct hipmm_statistics){15 * BYTES, 15, 15 * BYTES, 15, 15 * BYTES, 15});
  assert_counters(counters_of("upper"), (struct hipmm_statistics){5 * BYTES, 5, 5 * BYTES, 5, 5 * BYTES, 5});
  for (int i = 0; i < BELOW + ABOVE; i++) fixture_free(blocks[i], i % 2 ? 0 : BYTES, NULL);
  assert_counters(counters_of("lower"), (struct hipmm_statistics){0, 0, 15 * BYTES, 15, 15 * BYTES, 15});
  assert_counters(counters_of("upper"), (struct hipmm_statistics){-10 * BYTES, -10, 5 * BYTES, 5, 5 * BYTES, 5});
  void *past = fixture_allocate(100, NULL);
  assert_ok(hipmm_deallocate(lower, past, 100, NULL));
  assert_counters(counters_of("lower"), (struct hipmm_statistics){0, 0, 15 * BYTES, 15, 15 * BYTES + 100, 16});
  assert_counters(counters_of("upper"),
                  (struct hipmm_statistics){100 - 10 * BYTES, -9, 5 * BYTES, 5, 5 * BYTES + 100, 6});
}

static void cannot_pop_the_last_scope(void **state)
{
  struct hipmm_statistics popped = {1, 2, 3, 4, 5, 6};
  (void)state;
  fixture_start(counted);
  assert_status(hipmm_statistics_pop(fixture_resource("statistics"), &popped), HIPMM_E_STATE);
  assert_message("cannot pop the last counter pair");
  assert_counters(popped, (struct hipmm_statistics){1, 2, 3, 4, 5, 6});
  for (int i = 0; i < 3; i++) assert_ok(hipmm_statistics_push(fixture_resource("statistics"), NULL));
  for (int i = 0; i < 3; i++) assert_ok(hipmm_statistics_pop(fixture_resource("statistics"), NULL));
  assert_status(hipmm_statistics_pop(fixture_resource("statistics"), NULL), HIPMM_E_STATE);
}

static void is_taken_down_with_scopes_open(void **state)
{
  (void)state;
  fixture_start(counted);
  for (int i = 0; i < 100; i++) assert_ok(hipmm_statistics_push(fixture_resource("statistics"), NULL));
  assert_ok(hipmm_finalize());
}

enum { THREADS = 4, ROUNDS = 5000 };

static void allocate_and_free(int *failures)
{
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr;
    size_t bytes = 256 + (size_t)i % 7;
    enum hipmm_status status = hipmm_allocate(NULL, bytes, NULL, &ptr);
    if (!status) status = hipmm_deallocate(NULL, ptr, bytes, NULL);
    *failures += status != HIPMM_OK;
  }
}

/* With scopes coming and going meanwhile, nothing is counted twice or lost between two of them. */
static void is_exact_under_threads(void **state)
{
  int64_t bytes = 0;
  (void)state;
  fixture_start("'stack': ['statistics', 'pool', 'device']");
  fixture_start_threads(THREADS, allocate_and_free);
  for (int i = 0; i < 300; i++) assert_ok(hipmm_statistics_push(fixture_resource("statistics"), NULL));
  for (int i = 0; i < 300; i++) assert_ok(hipmm_statistics_pop(fixture_resource("statistics"), NULL));
  fixture_join_threads();
  for (int i = 0; i < ROUNDS; i++) bytes += 256 + i % 7;
  struct hipmm_statistics end = counters();
  assert_int_equal(end.current_bytes, 0);
  assert_int_equal(end.current_count, 0);
  assert_int_equal(end.total_count, THREADS * ROUNDS);
  assert_int_equal(end.total_bytes, THREADS * bytes);
  assert_in_range(end.peak_count, 1, THREADS);
  assert_in_range(end.peak_bytes, 262, THREADS * 262);
}

/* ---- Threads that count in one place ---- */

enum { PLACES = 64, FRESH = 40, FEW = 20 };

static pthread_barrier_t both;
static sem_t has_place;
static struct hipmm_resource *fresh;

static void *count_one(void *failures)
{
  void *ptr = NULL;
  enum hipmm_status status = hipmm_allocate(NULL, 300, NULL, &ptr);
  if (!status) status = hipmm_deallocate(NULL, ptr, 300, NULL);
  if (status) atomic_fetch_add((atomic_int *)failures, 1);
  return NULL;
}

static void *count_a_few_each_time(void *failures)
{
  count_one(failures);
  sem_post(&has_place);
  for (int round = 0; round < FRESH; round++) {
    pthread_barrier_wait(&both);
    for (int i = 0; i < FEW; i++) {
      void *ptr = NULL;
      enum hipmm_status status = hipmm_allocate(fresh, 300, NULL, &ptr);
      if (!status) status = hipmm_deallocate(fresh, ptr, 300, NULL);
      if (status) atomic_fetch_add((atomic_int *)failures, 1);
    }
    pthread_barrier_wait(&both);
  }
  return NULL;
}

/* There are fewer places to count in than threads: the first and the last thread here have the same. Nothing is lost where
 * both begin with a resource at once. */
static void is_exact_where_threads_share_a_place(void **state)
{
  (void)state;
  static atomic_int failures;
  pthread_t threads[PLACES + 1];
  struct hipmm_resource *pool = NULL;
  fixture_start("'stack': ['statistics', 'pool', 'device']");
  assert_ok(hipmm_resource_get_by_name(0, "pool", &pool));
  pthread_barrier_init(&both, NULL, 3);
  sem_init(&has_place, 0, 0);
  for (int i = 0; i <= PLACES; i++) {
    bool is_apart = i % PLACES;
    assert_int_equal(pthread_create(&threads[i], NULL, is_apart ? count_one : count_a_few_each_time, &failures), 0);
    if (is_apart)
      pthread_join(threads[i], NULL);
    else
      sem_wait(&has_place);
  }
  for (int round = 0; round < FRESH; round++) {
    assert_ok(hipmm_resource_create(0, "statistics", NULL, &pool, 1, &fresh));
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    assert_int_equal(resource_value(fresh, "total_count"), 2 * FEW);
    assert_int_equal(resource_value(fresh, "current_count"), 0);
    hipmm_resource_release(fresh);
  }
  pthread_join(threads[0], NULL);
  pthread_join(threads[PLACES], NULL);
  pthread_barrier_destroy(&both);
  sem_destroy(&has_place);
  assert_int_equal(atomic_load(&failures), 0);
  hipmm_resource_release(pool);
}

/* ---- The peak of several threads ---- */

enum { BLOCKS = 50 };

static pthread_barrier_t all;

/* All threads hold all their blocks at once, in whatever order they come by them; then they go up and down below. */
static void climb_together(int *failures)
{
  void *blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) *failures += hipmm_allocate(NULL, 100 + i, NULL, &blocks[i]) != 0;
  pthread_barrier_wait(&all);
  for (size_t i = 0; i < BLOCKS; i++) *failures += hipmm_deallocate(NULL, blocks[i], 100 + i, NULL) != 0;
  pthread_barrier_wait(&all);
  allocate_and_free(failures);
}

static void knows_the_peak_that_threads_reach_together(void **state)
{
  int64_t bytes = 0;
  (void)state;
  fixture_start("'stack': ['statistics', 'pool', 'device']");
  pthread_barrier_init(&all, NULL, THREADS);
  fixture_run_threads(THREADS, climb_together);
  pthread_barrier_destroy(&all);
  for (int i = 0; i < BLOCKS; i++) bytes += 100 + i;
  struct hipmm_statistics end = counters();
  assert_int_equal(end.current_count, 0);
  assert_int_equal(end.peak_count, THREADS * BLOCKS);
  assert_int_equal(end.peak_bytes, THREADS * bytes);
  assert_int_equal(end.total_count, THREADS * (BLOCKS + ROUNDS));
}

/* A thread that does what it is told, one thing at a time. */
struct worker {
  pthread_t thread;
  sem_t start, done;
  void *free; /* what to free; NULL: allocate */
  size_t bytes;
  void *allocated;
  bool ends;
  enum hipmm_status status;
};

static void *take_turns(void *argument)
{
  struct worker *worker = argument;
  for (sem_wait(&worker->start); !worker->ends; sem_wait(&worker->start)) {
    worker->status = worker->free ? hipmm_deallocate(NULL, worker->free, worker->bytes, NULL)
                                  : hipmm_allocate(NULL, worker->bytes, NULL, &worker->allocated);
    sem_post(&worker->done);
  }
  return NULL;
}

static void give_turn(struct worker *worker)
{
  sem_post(&worker->start);
  sem_wait(&worker->done);
  assert_ok(worker->status);
}

static void count_in_model(struct hipmm_statistics *model, int64_t bytes)
{
  model->current_bytes += bytes;
  model->current_count += bytes < 0 ? -1 : 1;
  if (model->current_bytes > model->peak_bytes) model->peak_bytes = model->current_bytes;
  if (model->current_count > model->peak_count) model->peak_count = model->current_count;
  if (bytes < 0) return;
  model->total_bytes += bytes;
  model->total_count++;
}

enum { TURNS = 4000, MOST_LIVE = 40 };

struct held {
  void *ptr;
  size_t bytes;
};

/* One thing that a thread drawn by lot does: it allocates, or frees what any thread allocated. */
static void take_a_turn(struct worker *worker, struct held *live, size_t *n_live, struct hipmm_statistics *model)
{
  bool frees = *n_live == MOST_LIVE || (*n_live && random() % 2);
  struct held *held = &live[frees ? (size_t)random() % *n_live : *n_live];
  if (!frees) *held = (struct held){NULL, 1 + (size_t)random() % 5000};
  worker->free = frees ? held->ptr : NULL;
  worker->bytes = held->bytes;
  give_turn(worker);
  count_in_model(model, frees ? -(int64_t)worker->bytes : (int64_t)worker->bytes);
  if (frees)
    *held = live[--*n_live];
  else
    live[(*n_live)++].ptr = worker->allocated;
}

/* Where threads come one after another there is one order only, and every counter is known at each step. */
static void counts_as_one_thread_where_threads_take_turns(void **state)
{
  struct worker workers[THREADS] = {{0}};
  struct held live[MOST_LIVE + 1];
  struct hipmm_statistics model = {0};
  size_t n_live = 0;
  (void)state;
  srandom(7);
  fixture_start("'stack': ['statistics', 'pool', 'device']");
  for (int i = 0; i < THREADS; i++) {
    sem_init(&workers[i].start, 0, 0);
    sem_init(&workers[i].done, 0, 0);
    assert_int_equal(pthread_create(&workers[i].thread, NULL, take_turns, &workers[i]), 0);
  }
  for (int turn = 0; turn < TURNS; turn++) {
    /* Only two of the threads for a while, so that the others' shares close. */
    take_a_turn(&workers[random() % (turn % 1000 < 500 ? THREADS : 2)], live, &n_live, &model);
    assert_counters(counters(), model);
  }
  for (int i = 0; i < THREADS; i++) {
    workers[i].ends = true;
    sem_post(&workers[i].start);
    pthread_join(workers[i].thread, NULL);
    sem_destroy(&workers[i].start);
    sem_destroy(&workers[i].done);
  }
  while (n_live--) fixture_free(live[n_live].ptr, live[n_live].bytes, NULL);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(counts_requested_bytes),
      TEST(counts_zero_bytes_as_an_allocation),
      TEST(finds_the_size_of_a_free_without_one),
      TEST(counts_nothing_that_was_refused),
      TEST(serves_nothing_at_once_where_its_upstream_does_not),
      TEST(gives_the_scope_before_when_pushed),
      TEST(merges_a_scope_into_the_one_before),
      TEST(merges_a_scope_that_freed_older_memory),
      TEST(resets_no_peak_of_a_whole_scope),
      TEST(counts_what_goes_past_one_of_two),
      TEST(cannot_pop_the_last_scope),
      TEST(is_taken_down_with_scopes_open),
      TEST(is_exact_under_threads),
      TEST(is_exact_where_threads_share_a_place),
      TEST(knows_the_peak_that_threads_reach_together),
      TEST(counts_as_one_thread_where_threads_take_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
