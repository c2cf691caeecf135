/* SPDX-License-Identifier: MIT */
/* test_race_detector.c: the race detector itself, as runtimes and the hooks of `hipmm run` call it: what it takes note of, what
 * it forgets, and what it does beside threads, in a child of a fork, and without host memory. tests/model/test_races.c has
 * whole programs.
 *
 * The detector is on until its process ends. So each test runs in a child, and this process never calls the detector. */
#include "../../../plugins/race/race_detector.h"
#include "../../../plugins/race/race_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { MEMORY = 1 << 20, STREAMS = 40 };

/* ---- Host memory, by the linker's --wrap ---- */

static int until_failure; /* 0: none fails */
static int n_allocations;

static bool fails_now(void)
{
  n_allocations++;
  return until_failure && !--until_failure;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
  return fails_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
  return fails_now() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
  return fails_now() ? NULL : __real_realloc(memory, bytes);
}

/* ---- A child for each test: its status is 0 if all is so ---- */

static int own_stderr = STDERR_FILENO;

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      dprintf(own_stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                   \
    }                                                                             \
  } while (0)

/* What the detector tells goes nowhere. */
static int run_silently(int (*run)(int), int argument)
{
  int nowhere = open("/dev/null", O_WRONLY);
  if (own_stderr == STDERR_FILENO) own_stderr = dup(STDERR_FILENO);
  if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0) return 1;
  return run(argument);
}

static int status_of_child(int (*run)(int), int argument)
{
  int status = 0;
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) exit(run_silently(run, argument));
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- What programs do, on addresses that are compared only ---- */

static char memory[MEMORY];
static char keys[STREAMS], events[STREAMS];
static const char plain[] = "plain", inner[] = "inner";
static size_t n_seen;

static struct race_stream stream(int number)
{
  return (struct race_stream){.key = &keys[number], .handle = &keys[number], .kind = RACE_STREAM_APART};
}

static void start(void)
{
  races_start(true);
  races_driver_gave(memory, MEMORY);
}

static void allocate_from(const char *resource, char *ptr, size_t bytes, int number)
{
  const struct race_stream on = stream(number);
  const struct memory_event event = {.owner = resource, .resource = resource, .ptr = ptr, .bytes = bytes};
  races_allocated(&event, &on);
}

static void allocate(char *ptr, size_t bytes, int number)
{
  allocate_from(plain, ptr, bytes, number);
}

static void release(char *ptr, int number)
{
  const struct race_stream on = stream(number);
  const struct memory_event event = {.owner = plain, .resource = plain, .ptr = ptr};
  races_freed(races_freeing(&event, &on), false);
}

static void work(char *ptr, size_t bytes, int number)
{
  const struct race_stream on = stream(number);
  races_work(&on, "work", (struct race_access){.start = ptr, .bytes = bytes},
             (struct race_access){.start = NULL, .bytes = 0});
}

static void order(int before, int after)
{
  const struct race_stream first = stream(before), second = stream(after);
  races_record(&first, &events[before]);
  races_wait(&second, &events[before]);
}

/* The next report, and only that one, is of this kind. NULL: there is none. */
static bool is_told(const char *kind)
{
  const char *found = NULL;
  bool is_there = races_report(n_seen, &found) != NULL;
  if (is_there) n_seen++;
  bool is_alone = !races_report(n_seen, NULL);
  return is_alone && (kind ? is_there && !strcmp(found, kind) : !is_there);
}

/* ---- Order ---- */

static int knows_the_last_work_of_each_stream(int last)
{
  start();
  allocate(memory, 5000, 0);
  order(0, 1);
  order(0, 2);
  work(memory, 100, 1);
  for (int i = 0; i < 5; i++) work(memory + 100, 100, 2); /* more work than that of the other stream */
  order(last, 0);
  release(memory, 0); /* not after the other one */
  CHECK(is_told("free_in_use"));
  allocate(memory, 5000, 0);
  order(0, 1);
  order(0, 2);
  work(memory, 100, 1);
  work(memory + 100, 100, 2);
  order(1, 0);
  order(2, 0);
  release(memory, 0);
  CHECK(is_told(NULL));
  return 0;
}

static void the_last_work_of_each_stream_is_known(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(knows_the_last_work_of_each_stream, 1), 0);
  assert_int_equal(status_of_child(knows_the_last_work_of_each_stream, 2), 0);
}

/* In a row: each comes after the one before. */
static int orders_many_streams(int unused)
{
  (void)unused;
  start();
  allocate(memory, 5000, 0);
  for (int i = 0; i + 1 < STREAMS; i++) {
    work(memory, 5000, i);
    order(i, i + 1);
    order(0, i + 1); /* known already, with fewer streams */
  }
  races_host_after_event(&events[3]);
  release(memory, STREAMS - 1);
  CHECK(is_told(NULL));
  allocate(memory, 5000, STREAMS - 1);
  CHECK(is_told(NULL));
  work(memory, 5000, STREAMS - 2);
  CHECK(is_told("early_use"));
  return 0;
}

static void many_streams_are_ordered(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(orders_many_streams, 0), 0);
}

static int forgets_streams_and_events(int unused)
{
  (void)unused;
  start();
  races_end_event(&events[0]); /* nothing is known of it */
  races_end_stream(&keys[0]);
  const struct race_stream one = stream(1);
  for (int i = 0; i < 1000; i++) {
    if (i == 10) n_allocations = 0;
    races_add_stream(&one);
    work(memory, 100, 1);
    races_record(&one, &events[1]);
    races_host_after_stream(&one);
    races_end_stream(one.key);
  }
  CHECK(n_allocations == 0);
  return 0;
}

static void streams_that_come_and_go_need_no_more_memory(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(forgets_streams_and_events, 0), 0);
}

/* ---- Blocks ---- */

static int tells_memory_that_is_given_twice_from_memory_that_is_divided(int unused)
{
  (void)unused;
  start();
  allocate(memory, 5000, 0);
  allocate(memory, 5000, 0);
  CHECK(is_told("overlap"));
  allocate(memory + 1000, 100, 0); /* of the same resource */
  CHECK(is_told("overlap"));
  allocate(memory + 10000, 5000, 0);
  allocate_from(inner, memory + 11000, 100, 0);
  CHECK(is_told(NULL));
  return 0;
}

static void memory_that_is_given_twice_is_told_from_memory_that_is_divided(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(tells_memory_that_is_given_twice_from_memory_that_is_divided, 0), 0);
}

static int keeps_blocks_of_other_resources(int unused)
{
  (void)unused;
  start();
  allocate(memory, 1000, 0);
  allocate_from(inner, memory + 1000, 1000, 0);
  races_destroyed(inner);
  work(memory + 1000, 1001, 0); /* nothing is known of it any more */
  CHECK(is_told(NULL));
  work(memory, 1001, 0);
  CHECK(is_told("past_end"));
  return 0;
}

static void blocks_outlive_other_resources(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(keeps_blocks_of_other_resources, 0), 0);
}

/* A runtime has the memory back and gives it again out of the detector's sight. */
static int says_nothing_of_memory_that_was_returned(int unused)
{
  (void)unused;
  start();
  allocate(memory, 5000, 0);
  work(memory, 5000, 0);
  release(memory, 0);
  races_driver_took(memory, MEMORY);
  allocate(memory, 5000, 1);
  work(memory, 5000, 1);
  CHECK(is_told(NULL));
  return 0;
}

static void nothing_is_said_of_memory_that_was_returned(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(says_nothing_of_memory_that_was_returned, 0), 0);
}

/* ---- Reports ---- */

static int tells_a_hundred(int unused)
{
  enum { N = 150, TOLD = 100 };
  static char names[N][16];
  (void)unused;
  const struct race_stream on = stream(0);
  start();
  allocate(memory, 5000, 0);
  for (int i = 0; i < N; i++) {
    snprintf(names[i], sizeof names[i], "work%d", i);
    races_work(&on, names[i], (struct race_access){.start = memory, .bytes = 5001},
               (struct race_access){.start = NULL, .bytes = 0});
  }
  CHECK(races_count() == N);
  for (int i = 0; i < TOLD; i++) CHECK(strstr(races_report((size_t)i, NULL), names[i]));
  CHECK(!races_report(TOLD, NULL));
  return 0;
}

static void a_hundred_reports_are_told(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(tells_a_hundred, 0), 0);
}

/* ---- When the detector is on ---- */

static int sees_nothing_before_its_start(int unused)
{
  (void)unused;
  races_driver_gave(memory, MEMORY);
  allocate(memory, 5000, 0);
  races_start(true);
  work(memory, 5001, 0);
  CHECK(is_told(NULL));
  return 0;
}

static void nothing_is_seen_before_the_start(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(sees_nothing_before_its_start, 0), 0);
}

static int makes_a_mistake(int unused)
{
  (void)unused;
  start();
  allocate(memory, 5000, 0);
  work(memory, 5001, 0);
  return races_count() == 1 ? 0 : 1;
}

static int makes_no_known_mistake(int unused)
{
  return makes_a_mistake(unused) && races_count() == 0 ? 0 : 1;
}

static int forks(int unused)
{
  (void)unused;
  races_start(true);
  CHECK(status_of_child(makes_a_mistake, 0) == 0); /* nothing was known */
  start();
  CHECK(status_of_child(makes_no_known_mistake, 0) == 0);
  work(memory, 100, 0);
  CHECK(is_told(NULL));
  return 0;
}

static void a_child_is_watched_if_nothing_was_known_before(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(forks, 0), 0);
}

/* ---- All functions ---- */

static void *freed_token;

static void call_work(void)
{
  work(memory, 100, 9);
}

static void call_record(void)
{
  const struct race_stream on = stream(9);
  races_record(&on, &events[9]);
}

static void call_wait(void)
{
  const struct race_stream on = stream(9);
  races_wait(&on, &events[8]);
}

static void call_end_event(void)
{
  races_end_event(&events[8]);
}

static void call_add_stream(void)
{
  const struct race_stream on = stream(7);
  races_add_stream(&on);
}

static void call_end_stream(void)
{
  races_end_stream(&keys[7]);
}

static void call_host_after_event(void)
{
  races_host_after_event(&events[9]);
}

static void call_host_after_stream(void)
{
  const struct race_stream on = stream(9);
  races_host_after_stream(&on);
}

static void call_host_after_device(void)
{
  races_host_after_device(0);
}

static void call_driver_gave(void)
{
  races_driver_gave(memory + MEMORY / 2, 1000);
}

static void call_driver_took(void)
{
  races_driver_took(memory + MEMORY / 2, 1000);
}

static void call_share(void)
{
  races_share(memory + 8000, 100);
}

static void call_allocated(void)
{
  allocate(memory + 20000, 100, 9);
}

static void call_freed(void)
{
  races_freed(freed_token, true);
}

static void call_destroyed(void)
{
  races_destroyed(inner);
}

static void call_report(void)
{
  races_report(0, NULL);
}

static void (*const calls[])(void) = {call_work,
                                      call_record,
                                      call_wait,
                                      call_end_event,
                                      call_add_stream,
                                      call_end_stream,
                                      call_host_after_event,
                                      call_host_after_stream,
                                      call_host_after_device,
                                      call_driver_gave,
                                      call_driver_took,
                                      call_share,
                                      call_allocated,
                                      call_freed,
                                      call_destroyed,
                                      call_report};

enum { CALLS = sizeof calls / sizeof *calls };

static void free_a_block_later(void)
{
  const struct race_stream on = stream(0);
  const struct memory_event event = {.owner = plain, .resource = plain, .ptr = memory + 5000};
  allocate(memory + 5000, 100, 0);
  freed_token = races_freeing(&event, &on);
}

static int keeps_errno(int unused)
{
  (void)unused;
  start();
  free_a_block_later();
  for (int i = 0; i < CALLS; i++) {
    errno = 1000 + i;
    calls[i]();
    CHECK(errno == 1000 + i);
  }
  return 0;
}

static void a_call_leaves_errno_as_it_was(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(keeps_errno, 0), 0);
}

static int n_returned;

static void *call_in_thread(void *number)
{
  calls[(intptr_t)number]();
  __atomic_fetch_add(&n_returned, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void *tell_in_thread(void *unused)
{
  (void)unused;
  work(memory, 5001, 0);
  return NULL;
}

/* A thread writes its report to a full pipe, and so stays in the detector. No other one gets in meanwhile. */
static int lets_one_thread_in(int unused)
{
  enum { MOST = 1 << 17 };
  static char drained[MOST];
  const struct timespec short_while = {.tv_nsec = 100000000};
  int ends[2];
  pthread_t teller, threads[CALLS];
  (void)unused;
  start();
  allocate(memory, 5000, 0);
  free_a_block_later();
  CHECK(pipe(ends) == 0);
  CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
  while (write(ends[1], drained, 1) > 0) continue;
  CHECK(fcntl(ends[1], F_SETFL, 0) == 0);
  dup2(ends[1], STDERR_FILENO);
  CHECK(pthread_create(&teller, NULL, tell_in_thread, NULL) == 0);
  while (races_count() == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* it is in */
  for (intptr_t i = 0; i < CALLS; i++) CHECK(pthread_create(&threads[i], NULL, call_in_thread, (void *)i) == 0);
  nanosleep(&short_while, NULL);
  int n_early = __atomic_load_n(&n_returned, __ATOMIC_SEQ_CST);
  CHECK(read(ends[0], drained, MOST) > 0);
  pthread_join(teller, NULL);
  for (int i = 0; i < CALLS; i++) pthread_join(threads[i], NULL);
  CHECK(n_early == 0);
  CHECK(n_returned == CALLS);
  return 0;
}

static void one_thread_is_let_in(void **state)
{
  (void)state;
  assert_int_equal(status_of_child(lets_one_thread_in, 0), 0);
}

/* ---- No host memory ---- */

/* Right and wrong programs. Returns whether an allocation failed. */
static bool run_programs(int step)
{
  enum { ROUNDS = 3 };
  static char host[400];
  until_failure = step;
  races_driver_gave(memory, MEMORY);
  for (int i = 0; i < ROUNDS; i++) {
    const struct race_stream on = stream(i);
    char *ptr = memory + i * 1000, *copy = ptr + 500;
    allocate_from(i % 2 ? plain : inner, ptr, 400, i);
    allocate(copy, 400, i);
    work(ptr + 100, 100, i);
    races_work(&on, "copy", (struct race_access){.start = copy, .bytes = 400},
               (struct race_access){.start = ptr, .bytes = 400});
    races_work(&on, "read", (struct race_access){.start = host, .bytes = 150},
               (struct race_access){.start = ptr, .bytes = 150});
    order(i, i + 1);
    work(ptr, 100, i + 1);
    work(ptr, 401, i + 2);
    release(ptr, i);
    work(ptr, 100, i);
    release(ptr, i);
    allocate(ptr + 100, 100, i + 1);
    races_share(ptr, 100);
    races_driver_took(copy + 100, 100);
    races_driver_gave(copy + 50, 20);
  }
  races_host_after_device(-1);
  for (int i = 0; i < ROUNDS; i++) races_end_event(&events[i]);
  races_driver_took(memory, 0);
  bool has_failed = until_failure == 0;
  until_failure = 0;
  return has_failed;
}

/* Nothing false is said of what came before. */
static int lacks_memory(int step)
{
  races_start(true);
  bool has_failed = run_programs(step);
  size_t before = races_count();
  char *ptr = memory + MEMORY / 2;
  allocate(ptr, 5000, STREAMS - 1);
  work(ptr, 5000, STREAMS - 1);
  release(ptr, STREAMS - 1);
  allocate(ptr, 5000, STREAMS - 1);
  CHECK(races_count() == before);
  return has_failed ? 0 : 2;
}

static void a_host_without_memory_loses_reports_only(void **state)
{
  (void)state;
  int step = 1, status;
  while ((status = status_of_child(lacks_memory, step)) == 0) step++;
  assert_int_equal(status, 2); /* no step failed any more */
  assert_in_range(step, 30, 1000);
}

/* ---- The parts of a block that were never written ---- */

enum { OFFSETS = 200 };

/* Compares the list with a flag for each offset. In a long list, the smallest parts count as written. */
static void compare_parts(const struct race_unwritten *unwritten, const bool *is_unwritten, bool is_exact)
{
  bool listed[OFFSETS] = {false};
  assert_in_range(unwritten->count, 0, RACE_UNWRITTEN_MOST);
  for (size_t i = 0; i < unwritten->count; i++) {
    const struct race_part *part = &unwritten->parts[i];
    assert_true(part->start < part->end && part->end <= OFFSETS);
    if (i) assert_true(part->start > unwritten->parts[i - 1].end); /* parts that touch are one */
    memset(&listed[part->start], true, part->end - part->start);
  }
  for (size_t offset = 0; offset < OFFSETS; offset++)
    if (is_exact || listed[offset]) assert_int_equal(listed[offset], is_unwritten[offset]);
}

static void parts_are_those_of_a_model(void **state)
{
  (void)state;
  struct race_unwritten unwritten = {NULL, 0, 0};
  bool is_unwritten[OFFSETS] = {false};
  unsigned random = 1;
  for (int i = 0; i < 20000; i++) {
    random = random * 1103515245u + 12345u;
    size_t start = (random >> 8) % OFFSETS, end = start + 1 + (random >> 20) % 20;
    if (end > OFFSETS) end = OFFSETS;
    bool adds = random >> 31;
    if (adds) race_unwritten_add(&unwritten, start, end);
    if (!adds) race_unwritten_remove(&unwritten, start, end);
    memset(&is_unwritten[start], adds, end - start);
    compare_parts(&unwritten, is_unwritten, true); /* so few offsets never have 33 parts by chance */
  }
  race_unwritten_clear(&unwritten);
}

static void the_smallest_part_counts_as_written(void **state)
{
  (void)state;
  struct race_unwritten unwritten = {NULL, 0, 0};
  bool is_unwritten[OFFSETS] = {false};
  struct race_part part;
  for (size_t i = 0; i <= RACE_UNWRITTEN_MOST; i++) { /* parts of three offsets, and one of two */
    size_t start = 6 * i, end = start + (i == 9 ? 2 : 3);
    race_unwritten_add(&unwritten, start, end);
    memset(&is_unwritten[start], true, end - start);
  }
  compare_parts(&unwritten, is_unwritten, false);
  assert_int_equal(unwritten.count, RACE_UNWRITTEN_MOST);
  assert_false(race_unwritten_find(&unwritten, 6 * 9, 6 * 10, &part));
  assert_true(race_unwritten_find(&unwritten, 6 * 9, OFFSETS, &part));
  assert_int_equal(part.start, 6 * 10);
  race_unwritten_clear(&unwritten);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_last_work_of_each_stream_is_known),
      cmocka_unit_test(many_streams_are_ordered),
      cmocka_unit_test(streams_that_come_and_go_need_no_more_memory),
      cmocka_unit_test(memory_that_is_given_twice_is_told_from_memory_that_is_divided),
      cmocka_unit_test(blocks_outlive_other_resources),
      cmocka_unit_test(nothing_is_said_of_memory_that_was_returned),
      cmocka_unit_test(a_hundred_reports_are_told),
      cmocka_unit_test(nothing_is_seen_before_the_start),
      cmocka_unit_test(a_child_is_watched_if_nothing_was_known_before),
      cmocka_unit_test(a_call_leaves_errno_as_it_was),
      cmocka_unit_test(one_thread_is_let_in),
      cmocka_unit_test(a_host_without_memory_loses_reports_only),
      cmocka_unit_test(parts_are_those_of_a_model),
      cmocka_unit_test(the_smallest_part_counts_as_written),
  };
  return cmocka_run_group_tests_name("race detector", tests, NULL, NULL);
}
