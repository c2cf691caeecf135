/* SPDX-License-Identifier: MIT */
/* test_threads.c: many threads use the device at once, under both schedulers. Each thread has its own memory and checks
 * it; the threads share the device. Mainly for ThreadSanitizer. */
#include "device.h"
#include <stdlib.h>

enum { THREADS = 6, ROUNDS = 150, BYTES = 20000 };

struct worker {
  pthread_t thread;
  int number;
  int wrong_line; /* 0: all was well */
};

#define CHECK(worker, condition)       \
  do {                                 \
    if (!(condition)) {                \
      (worker)->wrong_line = __LINE__; \
      return;                          \
    }                                  \
  } while (0)

static void copy_round(struct worker *worker, hipStream_t stream, hipStream_t other, int value)
{
  void *memory, *more;
  char host[BYTES];
  hipEvent_t event;
  CHECK(worker, hipEventCreateWithFlags(&event, hipEventDisableTiming) == hipSuccess);
  CHECK(worker, hipMalloc(&memory, BYTES) == hipSuccess);
  CHECK(worker, hipMallocAsync(&more, BYTES, other) == hipSuccess);
  CHECK(worker, hipMemsetAsync(memory, value, BYTES, stream) == hipSuccess);
  CHECK(worker, hipEventRecord(event, stream) == hipSuccess);
  CHECK(worker, hipStreamWaitEvent(other, event, 0) == hipSuccess);
  CHECK(worker, hipMemcpyAsync(more, memory, BYTES, hipMemcpyDeviceToDevice, other) == hipSuccess);
  CHECK(worker, hipMemcpyAsync(host, more, BYTES, hipMemcpyDeviceToHost, other) == hipSuccess);
  CHECK(worker, is_filled(host, value, BYTES));
  CHECK(worker, hipFreeAsync(more, other) == hipSuccess);
  CHECK(worker, hipEventDestroy(event) == hipSuccess);
  CHECK(worker, hipFree(memory) == hipSuccess);
}

static void map_round(struct worker *worker, int value)
{
  hipMemGenericAllocationHandle_t handle;
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                     .location = {hipMemLocationTypeDevice, worker->number % 2}};
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, worker->number % 2}, hipMemAccessFlagsProtReadWrite};
  void *start;
  CHECK(worker, hipMemCreate(&handle, 2 * MIB, &properties, 0) == hipSuccess);
  CHECK(worker, hipMemAddressReserve(&start, 2 * MIB, 0, NULL, 0) == hipSuccess);
  CHECK(worker, hipMemMap(start, 2 * MIB, 0, handle, 0) == hipSuccess);
  CHECK(worker, hipMemSetAccess(start, 2 * MIB, &access, 1) == hipSuccess);
  CHECK(worker, hipMemset(start, value, 1000) == hipSuccess);
  CHECK(worker, hipStreamSynchronize(NULL) == hipSuccess);
  CHECK(worker, is_filled(start, value, 1000));
  CHECK(worker, hipMemUnmap(start, 2 * MIB) == hipSuccess);
  CHECK(worker, hipMemAddressFree(start, 2 * MIB) == hipSuccess);
  CHECK(worker, hipMemRelease(handle) == hipSuccess);
}

static void *work(void *argument)
{
  struct worker *worker = argument;
  hipStream_t stream, other;
  hipSetDevice(worker->number % 2);
  hipStreamCreateWithFlags(&other, hipStreamNonBlocking);
  for (int round = 0; round < ROUNDS && !worker->wrong_line; round++) {
    hipStreamCreate(&stream);
    copy_round(worker, round % 5 ? stream : hipStreamPerThread, round % 7 ? other : NULL,
               (worker->number + round) & 127);
    if (round % 10 == 0 && !worker->wrong_line) map_round(worker, round & 127);
    hipStreamDestroy(stream);
  }
  hipStreamSynchronize(other);
  hipStreamDestroy(other);
  return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
  (void)state;
  struct worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){.number = i};
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < THREADS; i++) assert_int_equal(workers[i].wrong_line, 0);
  for (int device = 0; device < 2; device++) {
    assert_ok(hipSetDevice(device));
    assert_ok(hipDeviceSynchronize());
  }
}

struct contest {
  pthread_barrier_t start;
  void *memory;
  int freed;
};

static void *free_it(void *argument)
{
  struct contest *contest = argument;
  pthread_barrier_wait(&contest->start);
  if (hipFree(contest->memory) == hipSuccess) count_up(&contest->freed);
  return NULL;
}

static void only_one_of_two_threads_frees_a_block(void **state)
{
  (void)state;
  for (int round = 0; round < 50; round++) {
    struct contest contest = {.memory = allocate(1000)};
    pthread_t threads[2];
    assert_ok(hipMemsetAsync(contest.memory, 1, 1000, NULL));
    pthread_barrier_init(&contest.start, NULL, 2);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, free_it, &contest), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&contest.start);
    assert_int_equal(contest.freed, 1);
  }
}

static void *count_devices(void *argument)
{
  (void)argument;
  int device;
  for (int i = 0; i < 100000; i++) hipGetDevice(&device);
  return NULL;
}

static void no_call_is_lost_in_the_count(void **state)
{
  (void)state;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, count_devices, NULL), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(hipmm_software_calls("hipGetDevice"), 400000);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"threads do not disturb each other (threads)", threads_do_not_disturb_each_other, start_threads, finish, NULL},
      {"threads do not disturb each other (stepped)", threads_do_not_disturb_each_other, start_stepped, finish, NULL},
      {"only one of two threads frees a block (threads)", only_one_of_two_threads_frees_a_block, start_threads, finish,
       NULL},
      {"only one of two threads frees a block (stepped)", only_one_of_two_threads_frees_a_block, start_stepped, finish,
       NULL},
      {"no call is lost in the count", no_call_is_lost_in_the_count, start_threads, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: threads", tests, NULL, NULL);
}
