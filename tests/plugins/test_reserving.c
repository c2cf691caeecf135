/* SPDX-License-Identifier: MIT */
/* Tests of reserving: what a reservation may spend, who gets memory next, what happens when nobody moves, and bad input. Blocks
 * carry data, which must be whole when they are freed. */
#include "../support/fixture.h"

#include <hipmm/buffer.h>
#include <hipmm/reserve.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char stacked[] =
    "'stack': [{'type': 'reserving', 'limit': '8MiB', 'progress_timeout': '200s'}, 'pool', 'device']";

enum { FOR_EVER = -1 };
#define MS ((int64_t)1000000)

static enum hipmm_status try_reserve(size_t bytes, int64_t timeout_ns, int64_t priority,
                                     struct hipmm_resource **reservation_out)
{
  const struct hipmm_reserve_request request = {
      .struct_size = sizeof request, .bytes = bytes, .timeout_ns = timeout_ns, .priority = priority};
  return hipmm_reserve(&request, reservation_out);
}

static struct hipmm_resource *reserve(size_t bytes)
{
  struct hipmm_resource *reservation = NULL;
  assert_ok(try_reserve(bytes, 0, 0, &reservation));
  assert_string_equal(hipmm_resource_type(reservation), "reserving");
  return reservation;
}

static int64_t value(const char *name)
{
  return fixture_value("reserving", name);
}

static void *allocate(struct hipmm_resource *reservation, size_t bytes, unsigned char fill)
{
  void *ptr = NULL;
  assert_ok(hipmm_allocate(reservation, bytes, NULL, &ptr));
  fixture_fill(ptr, fill, bytes);
  return ptr;
}

static void free_full(struct hipmm_resource *resource, void *ptr, size_t bytes, unsigned char fill)
{
  assert_true(fixture_holds(ptr, fill, bytes));
  assert_ok(hipmm_deallocate(resource, ptr, bytes, NULL));
}

/* ---- One reservation ---- */

static void spends_what_it_has_and_no_more(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *reservation = reserve(3 * MIB);
  assert_int_equal(value("held_bytes"), 3 * MIB);
  assert_int_equal(value("used_bytes"), 0);
  void *first = allocate(reservation, 2 * MIB, 1), *second = allocate(reservation, MIB, 2);
  assert_status(hipmm_allocate(reservation, 1, NULL, &ptr), HIPMM_E_LIMIT);
  assert_message("3 MiB of the 3 MiB of this reservation are in use");
  assert_int_equal(value("held_bytes"), 3 * MIB);
  free_full(reservation, first, 2 * MIB, 1);
  ptr = allocate(reservation, 2 * MIB, 3); /* what is freed can be spent again */
  free_full(reservation, ptr, 2 * MIB, 3);
  free_full(reservation, second, MIB, 2);
  assert_int_equal(value("held_bytes"), 3 * MIB);
  assert_ok(hipmm_reservation_release(reservation));
  assert_int_equal(value("held_bytes"), 0);
}

static void leaves_others_what_is_not_reserved(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *reservation = reserve(6 * MIB);
  void *loose = allocate(NULL, 2 * MIB, 7);
  assert_status(hipmm_allocate(NULL, 256, NULL, &ptr), HIPMM_E_LIMIT);
  assert_message("cannot allocate 256 bytes without a reservation: 8 MiB of 8 MiB are reserved or in use");
  ptr = allocate(reservation, 6 * MIB, 8); /* and what is reserved is there */
  free_full(reservation, ptr, 6 * MIB, 8);
  free_full(NULL, loose, 2 * MIB, 7);
  assert_ok(hipmm_reservation_release(reservation));
}

static void takes_part_by_set_current(void **state)
{
  struct hipmm_resource *before = NULL;
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *reservation = reserve(2 * MIB);
  assert_ok(hipmm_resource_set_current(reservation, &before));
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(MIB, stream);
  assert_int_equal(value("used_bytes"), MIB);
  assert_int_equal(value("held_bytes"), 2 * MIB);
  struct hipmm_resource *second = reserve(6 * MIB); /* of the budget, not of the current reservation */
  assert_int_equal(value("held_bytes"), 8 * MIB);
  fixture_free(ptr, MIB, stream);
  assert_ok(hipmm_resource_set_current(before, NULL));
  hipmm_resource_release(before);
  fixture_drop_stream(stream);
  assert_ok(hipmm_reservation_release(second));
  assert_ok(hipmm_reservation_release(reservation));
  assert_int_equal(value("held_bytes"), 0);
}

static void lets_live_blocks_keep_what_they_use(void **state)
{
  struct hipmm_resource *next = NULL;
  struct hipmm_buffer *buffer = NULL;
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *reservation = reserve(8 * MIB);
  void *block = allocate(reservation, 2 * MIB, 5);
  assert_ok(hipmm_buffer_create(reservation, MIB, NULL, &buffer)); /* which keeps the reservation */
  assert_ok(hipmm_reservation_release(reservation));
  assert_int_equal(value("held_bytes"), 3 * MIB);
  assert_int_equal(value("used_bytes"), 3 * MIB);
  assert_status(try_reserve(6 * MIB, 0, 0, &next), HIPMM_E_LIMIT);
  struct hipmm_resource *fits = reserve(5 * MIB);
  free_full(NULL, block, 2 * MIB, 5); /* through the budget */
  assert_int_equal(value("held_bytes"), 6 * MIB);
  assert_status(hipmm_buffer_resize(buffer, 4 * MIB, NULL), HIPMM_E_STATE);
  assert_message("this reservation was released, or never had memory");
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_int_equal(value("held_bytes"), 5 * MIB);
  assert_ok(hipmm_reservation_release(fits));
  assert_int_equal(value("held_bytes"), 0);
}

static void frees_a_block_of_a_reservation_that_is_gone(void **state)
{
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *reservation = reserve(4 * MIB);
  void *ptr = allocate(reservation, MIB, 9);
  assert_ok(hipmm_reservation_release(reservation)); /* the last reference */
  assert_int_equal(value("held_bytes"), MIB);
  assert_status(hipmm_deallocate(NULL, ptr, 100, NULL), HIPMM_E_SIZE);
  free_full(NULL, ptr, MIB, 9);
  assert_status(hipmm_deallocate(NULL, ptr, MIB, NULL), HIPMM_E_POINTER);
  assert_int_equal(value("held_bytes"), 0);
  assert_int_equal(value("used_bytes"), 0);
}

static void resizes_without_a_wait(void **state)
{
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *first = reserve(4 * MIB), *second = reserve(2 * MIB);
  assert_ok(hipmm_reservation_resize(first, 6 * MIB));
  assert_int_equal(value("held_bytes"), 8 * MIB);
  assert_status(hipmm_reservation_resize(second, 3 * MIB), HIPMM_E_LIMIT);
  assert_message(
      "cannot grow from 2 MiB to 3 MiB now: of 8 MiB, 8 MiB are held, and 0 requests wait; a second reservation "
      "can wait for more");
  void *ptr = allocate(first, 3 * MIB, 4);
  assert_status(hipmm_reservation_resize(first, 2 * MIB), HIPMM_E_LIMIT);
  assert_message("3 MiB are in use; free some first");
  assert_ok(hipmm_reservation_resize(first, 3 * MIB));
  assert_ok(hipmm_reservation_resize(second, 5 * MIB));
  free_full(first, ptr, 3 * MIB, 4);
  assert_ok(hipmm_reservation_resize(first, 0));
  assert_ok(hipmm_reservation_release(first));
  assert_ok(hipmm_reservation_release(second));
  assert_int_equal(value("held_bytes"), 0);
}

/* ---- Many ---- */

/* A request in a thread of its own. */
struct task {
  pthread_t thread;
  size_t bytes;
  int64_t timeout_ns, priority;
  struct hipmm_resource *reservation;
  enum hipmm_status status;
  char message[1024];
  int turn; /* 1 for the first whose request ended */
};
static atomic_int turns;

static void *run_task(void *task_)
{
  struct task *task = task_;
  task->status = try_reserve(task->bytes, task->timeout_ns, task->priority, &task->reservation);
  if (task->status) snprintf(task->message, sizeof task->message, "%s", hipmm_last_error_message());
  task->turn = atomic_fetch_add(&turns, 1) + 1;
  return NULL;
}

static void pause_until(const char *name, int64_t wanted)
{
  for (int i = 0; i < 20000 && value(name) != wanted; i++) usleep(1000);
  assert_int_equal(value(name), wanted);
}

/* Starts it, and returns once it waits. */
static void start_waiting(struct task *task)
{
  int64_t waiting = value("waiting");
  assert_int_equal(pthread_create(&task->thread, NULL, run_task, task), 0);
  pause_until("waiting", waiting + 1);
}

static void join(struct task *task)
{
  assert_int_equal(pthread_join(task->thread, NULL), 0);
}

static void goes_by_arrival_and_priority(void **state)
{
  struct task large = {.bytes = 7 * MIB, .timeout_ns = FOR_EVER}, small = {.bytes = MIB, .timeout_ns = FOR_EVER},
              urgent = {.bytes = 6 * MIB, .timeout_ns = FOR_EVER, .priority = 1};
  struct hipmm_resource *none = NULL;
  (void)state;
  fixture_start(stacked);
  atomic_store(&turns, 0);
  struct hipmm_resource *first = reserve(6 * MIB);
  start_waiting(&large);
  start_waiting(&small); /* would fit, and came later */
  assert_status(try_reserve(MIB, 0, 0, &none), HIPMM_E_LIMIT);
  assert_status(hipmm_reservation_resize(first, 7 * MIB), HIPMM_E_LIMIT);
  assert_message("2 requests wait");
  start_waiting(&urgent);
  assert_ok(hipmm_reservation_release(first));
  join(&urgent);
  assert_int_equal(urgent.turn, 1);
  assert_int_equal(value("waiting"), 2);
  assert_ok(hipmm_reservation_release(urgent.reservation));
  join(&large);
  join(&small);
  assert_int_equal(value("held_bytes"), 8 * MIB);
  assert_int_equal(value("waits"), 3);
  assert_true(value("waited_ns") > 0);
  assert_ok(hipmm_reservation_release(large.reservation));
  assert_ok(hipmm_reservation_release(small.reservation));
  assert_int_equal(value("overbooked"), 0);
}

/* Frees count too, once their reservation is released; and so does shrinking. */
static void goes_on_when_something_is_given_back(void **state)
{
  struct task task = {.bytes = 8 * MIB, .timeout_ns = FOR_EVER};
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *first = reserve(4 * MIB), *second = reserve(2 * MIB);
  void *ptr = allocate(first, MIB, 6), *loose = allocate(NULL, MIB, 7);
  start_waiting(&task);
  assert_ok(hipmm_reservation_release(first));
  free_full(NULL, loose, MIB, 7);
  free_full(NULL, ptr, MIB, 6);
  assert_int_equal(value("waiting"), 1);
  assert_ok(hipmm_reservation_resize(second, 0));
  join(&task);
  assert_ok(task.status);
  assert_ok(hipmm_reservation_release(second));
  assert_ok(hipmm_reservation_release(task.reservation));
}

static void ends_a_wait_in_time(void **state)
{
  struct timespec before, after;
  struct hipmm_resource *none = NULL;
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *first = reserve(5 * MIB);
  clock_gettime(CLOCK_MONOTONIC, &before);
  assert_status(try_reserve(4 * MIB, 50 * MS, 0, &none), HIPMM_E_LIMIT);
  clock_gettime(CLOCK_MONOTONIC, &after);
  assert_message(
      "cannot reserve 4 MiB now: of 8 MiB, 5 MiB are held, and 0 other requests wait; the timeout of 0.05 s is "
      "over; holders: ");
  assert_message("(5 MiB, 0 bytes of it in use)");
  assert_true((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 49);
  assert_null(none);
  assert_int_equal(value("waiting"), 0);
  assert_int_equal(value("held_bytes"), 5 * MIB);
  assert_ok(hipmm_reservation_release(first));
}

/* Two holders that each want more would wait for each other for ever. */
static void overbooks_when_nobody_moves(void **state)
{
  struct task large = {.bytes = 4 * MIB, .timeout_ns = FOR_EVER}, small = {.bytes = 2 * MIB, .timeout_ns = FOR_EVER};
  (void)state;
  fixture_start("'stack': [{'type': 'reserving', 'limit': '8MiB', 'progress_timeout': '100ms'}, 'pool', 'device']");
  atomic_store(&turns, 0);
  struct hipmm_resource *first = reserve(4 * MIB), *second = reserve(4 * MIB);
  start_waiting(&large);
  start_waiting(&small);
  join(&small);
  assert_int_equal(small.turn, 1);
  assert_ok(small.status);
  assert_true(value("overbooked_bytes") >= (int64_t)(2 * MIB));
  void *ptr = allocate(small.reservation, 2 * MIB, 3);
  free_full(small.reservation, ptr, 2 * MIB, 3);
  assert_ok(hipmm_reservation_release(small.reservation));
  assert_ok(hipmm_reservation_release(first));
  join(&large); /* by its turn, or above the limit: as the time went */
  assert_ok(large.status);
  assert_true(value("overbooked") >= 1);
  assert_ok(hipmm_reservation_release(second));
  assert_ok(hipmm_reservation_release(large.reservation));
  assert_int_equal(value("overbooked_bytes"), 0);
}

static void fails_when_nobody_moves_if_asked_to(void **state)
{
  struct task task = {.bytes = 4 * MIB, .timeout_ns = FOR_EVER};
  const struct hipmm_reserve_request request = {.struct_size = sizeof request, .bytes = 6 * MIB, .name = "sort"};
  struct hipmm_resource *first = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'reserving', 'limit': '8MiB', 'progress_timeout': '50ms', 'when_stuck': 'fail'}, "
                "'pool', 'device']");
  assert_ok(hipmm_reserve(&request, &first));
  void *ptr = allocate(first, MIB, 2);
  start_waiting(&task);
  join(&task);
  assert_int_equal(task.status, HIPMM_E_LIMIT);
  assert_contains(task.message, "nobody gave anything back for 0.05 s; holders: sort (6 MiB, 1 MiB of it in use)");
  assert_int_equal(value("held_bytes"), 6 * MIB);
  assert_int_equal(value("overbooked"), 0);
  free_full(first, ptr, MIB, 2);
  assert_ok(hipmm_reservation_release(first));
}

static void takes_another_limit_while_some_wait(void **state)
{
  struct task task = {.bytes = 8 * MIB, .timeout_ns = FOR_EVER}, late = task;
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *first = reserve(4 * MIB);
  start_waiting(&task);
  assert_ok(hipmm_set("devices/0/reserving/limit", "12MiB"));
  join(&task);
  assert_ok(task.status);
  assert_ok(hipmm_set("devices/0/reserving/limit", "8MiB"));
  assert_int_equal(value("overbooked_bytes"), 4 * MIB);
  assert_ok(hipmm_reservation_release(task.reservation));
  start_waiting(&late);
  assert_ok(hipmm_set("devices/0/reserving/limit", "7MiB")); /* never fits now: the request fails */
  join(&late);
  assert_int_equal(late.status, HIPMM_E_LIMIT);
  assert_contains(late.message, "7 MiB can be reserved in all");
  assert_ok(hipmm_reservation_release(first));
}

/* ---- Eight at random ---- */

enum { ROUNDS = 60 };

static atomic_int seeds, in_use_mib;

static bool fill_block(void *ptr, unsigned char fill)
{
  return !fixture_hip()->MemsetAsync(ptr, fill, 2 * MIB, NULL);
}

/* By its first and its last byte. */
static bool block_holds(const void *ptr, unsigned char fill)
{
  unsigned char ends[2] = {0, 0};
  const struct hipmm_hip *hip = fixture_hip();
  return !hip->Memcpy(&ends[0], ptr, 1, HIPMM_HIP_MEMCPY_DEFAULT) &&
         !hip->Memcpy(&ends[1], (const char *)ptr + 2 * MIB - 1, 1, HIPMM_HIP_MEMCPY_DEFAULT) && ends[0] == fill &&
         ends[1] == fill;
}

static int one_round(unsigned *seed)
{
  struct hipmm_resource *reservation = NULL;
  void *blocks[4] = {NULL};
  size_t mib = 1 + (unsigned)rand_r(seed) % 8, used = 0;
  unsigned char fill = (unsigned char)rand_r(seed);
  int failures = 0;
  int64_t timeout = rand_r(seed) % 4 ? FOR_EVER : rand_r(seed) % 2 ? MS : 0;
  enum hipmm_status status = try_reserve(mib * MIB, timeout, rand_r(seed) % 2, &reservation);
  if (status) return !timeout || timeout == MS ? status != HIPMM_E_LIMIT : 1;
  failures += atomic_fetch_add(&in_use_mib, (int)mib) + (int)mib > 8;
  for (int i = 0; i < 4 && (i + 1) * 2 <= (int)mib; i++) {
    if (hipmm_allocate(reservation, 2 * MIB, NULL, &blocks[i])) return failures + 1;
    used += 2;
    failures += !fill_block(blocks[i], (unsigned char)(fill + i));
  }
  if (rand_r(seed) % 2) {
    atomic_fetch_sub(&in_use_mib, (int)(mib - used)); /* before others can have it */
    failures += hipmm_reservation_resize(reservation, used * MIB) != HIPMM_OK;
    mib = used;
  }
  if (rand_r(seed) % 2) usleep((unsigned)rand_r(seed) % 300);
  for (int i = 0; i < 4 && blocks[i]; i++) {
    failures += !block_holds(blocks[i], (unsigned char)(fill + i));
    failures += hipmm_deallocate(reservation, blocks[i], 2 * MIB, NULL) != HIPMM_OK;
  }
  atomic_fetch_sub(&in_use_mib, (int)mib);
  return failures + (hipmm_reservation_release(reservation) != HIPMM_OK);
}

static void run_eighth(int *failures)
{
  unsigned seed = (unsigned)atomic_fetch_add(&seeds, 1);
  for (int i = 0; i < ROUNDS; i++) *failures += one_round(&seed);
}

static void serves_eight_at_random(void **state)
{
  (void)state;
  fixture_start(stacked);
  atomic_store(&seeds, 1);
  fixture_run_threads(8, run_eighth);
  assert_int_equal(value("held_bytes"), 0);
  assert_int_equal(value("used_bytes"), 0);
  assert_int_equal(value("waiting"), 0);
  assert_int_equal(value("overbooked"), 0);
}

/* ---- Bad input ---- */

static void refuses_what_is_no_request(void **state)
{
  struct hipmm_resource *none = NULL, *device;
  struct hipmm_reserve_request request = {.bytes = 1};
  (void)state;
  fixture_start(stacked);
  device = fixture_resource("device");
  assert_status(hipmm_reserve(NULL, &none), HIPMM_E_ARGUMENT);
  assert_status(hipmm_reserve(&request, &none), HIPMM_E_ARGUMENT);
  assert_message("struct_size of the request is 0; set it to sizeof(struct hipmm_reserve_request)");
  request.struct_size = sizeof request;
  assert_status(hipmm_reserve(&request, NULL), HIPMM_E_ARGUMENT);
  request.resource = device;
  assert_status(hipmm_reserve(&request, &none), HIPMM_E_ARGUMENT);
  assert_message("neither it nor a resource below it is a reserving resource");
  assert_status(hipmm_reservation_release(NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_reservation_release(device), HIPMM_E_ARGUMENT);
  assert_message("device is no reservation; hipmm_reserve() makes one");
  assert_status(hipmm_reservation_release(fixture_resource("reserving")), HIPMM_E_ARGUMENT);
  assert_message("is no reservation; hipmm_reserve() makes one");
  assert_status(hipmm_reservation_resize(fixture_resource("reserving"), 1), HIPMM_E_ARGUMENT);
  assert_null(none);
}

/* A budget over another is one of its own. */
static void stands_over_another_budget(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'reserving', 'limit': '4MiB'}, {'type': 'reserving', 'limit': '2MiB'}, 'device']");
  struct hipmm_resource *reservation = reserve(3 * MIB);
  assert_status(hipmm_allocate(reservation, 3 * MIB, NULL, &ptr), HIPMM_E_LIMIT);
  assert_message("cannot allocate 3 MiB without a reservation: 0 bytes of 2 MiB");
  ptr = allocate(reservation, 2 * MIB, 1);
  assert_int_equal(fixture_value("reserving.2", "held_bytes"), 2 * MIB);
  free_full(reservation, ptr, 2 * MIB, 1);
  assert_ok(hipmm_reservation_release(reservation));
}

static void refuses_what_never_fits(void **state)
{
  struct hipmm_resource *none = NULL;
  (void)state;
  fixture_start(stacked);
  for (int64_t timeout = FOR_EVER; timeout <= 0; timeout++) { /* at once, however long it might wait */
    assert_status(try_reserve(8 * MIB + 1, timeout, 0, &none), HIPMM_E_LIMIT);
    assert_message("8 MiB can be reserved in all; reserve less, or set a higher \"limit\" of reserving");
    assert_status(try_reserve(SIZE_MAX, timeout, 0, &none), HIPMM_E_LIMIT);
  }
  assert_null(none);
  assert_int_equal(value("held_bytes"), 0);
}

static void refuses_a_second_release(void **state)
{
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *reservation = reserve(4 * MIB);
  hipmm_resource_retain(reservation);
  assert_ok(hipmm_reservation_release(reservation));
  assert_status(hipmm_reservation_release(reservation), HIPMM_E_STATE);
  assert_message("was released already");
  assert_status(hipmm_reservation_resize(reservation, MIB), HIPMM_E_STATE);
  assert_int_equal(value("held_bytes"), 0);
  hipmm_resource_release(reservation);
  assert_status(hipmm_reservation_release(reservation), HIPMM_E_ARGUMENT); /* a stale handle */
}

static struct hipmm_resource *contended;
static atomic_int releases;

static void release_contended(int *failures)
{
  enum hipmm_status status = hipmm_reservation_release(contended);
  if (!status) atomic_fetch_add(&releases, 1);
  *failures += status && status != HIPMM_E_STATE;
}

/* Any thread may release it, and one of several does. */
static void is_released_once_by_many_threads(void **state)
{
  (void)state;
  fixture_start(stacked);
  for (int i = 0; i < 50; i++) {
    contended = reserve(4 * MIB);
    hipmm_resource_retain(contended);
    atomic_store(&releases, 0);
    fixture_run_threads(4, release_contended);
    assert_int_equal(atomic_load(&releases), 1);
    assert_int_equal(value("held_bytes"), 0);
    hipmm_resource_release(contended);
  }
}

static int reserve_in_child(const void *reservation)
{
  struct hipmm_resource *other = NULL;
  if (try_reserve(MIB, FOR_EVER, 0, &other) != HIPMM_E_STATE) return 1;
  return hipmm_reservation_release((struct hipmm_resource *)(uintptr_t)reservation) != HIPMM_E_STATE;
}

static void is_refused_in_a_forks_child(void **state)
{
  struct task task = {.bytes = 8 * MIB, .timeout_ns = FOR_EVER};
  (void)state;
  fixture_start(stacked);
  struct hipmm_resource *reservation = reserve(4 * MIB);
  start_waiting(&task);
  struct outcome outcome = run_forked(reserve_in_child, reservation);
  assert_int_equal(outcome.status, 0);
  assert_ok(hipmm_reservation_release(reservation)); /* the parent goes on */
  join(&task);
  assert_ok(task.status);
  assert_ok(hipmm_reservation_release(task.reservation));
}

static void loses_nothing_when_the_upstream_fails(void **state)
{
  needs_software();
  void *ptr = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'reserving', 'limit': '8MiB'}, 'device']");
  struct hipmm_resource *reservation = reserve(4 * MIB);
  fixture_fail_call("hipMalloc", 1, 0);
  assert_status(hipmm_allocate(reservation, MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(value("used_bytes"), 0);
  assert_int_equal(value("held_bytes"), 4 * MIB);
  ptr = allocate(reservation, 4 * MIB, 1);
  free_full(reservation, ptr, 4 * MIB, 1);
  assert_ok(hipmm_reservation_release(reservation));
}

static void refuses_wrong_options(void **state)
{
  static const struct fixture_refusal refusals[] = {
      {"'limit': '8 gigs'", "\"8 gigs\" is not a size"},
      {"'reservation': true", "needs a reserving resource as the upstream"},
      {"'progress_timeout': 10", "10 is not a duration"},
      {"'when_stuck': 'overbok'", "\"overbok\" is not allowed; did you mean \"overbook\"?"},
  };
  (void)state;
  fixture_refuses("reserving", refusals, sizeof refusals / sizeof *refusals);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
  const struct CMUnitTest tests[] = {
      TEST(spends_what_it_has_and_no_more),
      TEST(leaves_others_what_is_not_reserved),
      TEST(takes_part_by_set_current),
      TEST(lets_live_blocks_keep_what_they_use),
      TEST(frees_a_block_of_a_reservation_that_is_gone),
      TEST(resizes_without_a_wait),
      TEST(goes_by_arrival_and_priority),
      TEST(goes_on_when_something_is_given_back),
      TEST(ends_a_wait_in_time),
      TEST(overbooks_when_nobody_moves),
      TEST(fails_when_nobody_moves_if_asked_to),
      TEST(takes_another_limit_while_some_wait),
      TEST(serves_eight_at_random),
      TEST(refuses_what_is_no_request),
      TEST(stands_over_another_budget),
      TEST(refuses_what_never_fits),
      TEST(refuses_a_second_release),
      TEST(is_released_once_by_many_threads),
      TEST(is_refused_in_a_forks_child),
      TEST(loses_nothing_when_the_upstream_fails),
      TEST(refuses_wrong_options),
  };
  return cmocka_run_group_tests_name("reserving", tests, NULL, NULL);
}
