/* SPDX-License-Identifier: MIT */
/* test_threads.c: many threads use the device at once, under both schedulers. Each thread has its own memory and checks
 * it; the threads share the device. Mainly for ThreadSanitizer. */
#include "../../../plugins/race/race_detector.h"
#include "device.h"
#include <stdlib.h>
#include <unistd.h>

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

/* ---- A thread that waits does the work that comes then ---- */

static void *synchronize(void *stream)
{
  (void)!hipStreamSynchronize(stream);
  return NULL;
}

static void *synchronize_device(void *unused)
{
  (void)!hipDeviceSynchronize();
  return unused;
}

/* One thread runs what waits for a flag, another one waits with nothing to do, and gets the work that sets the flag. */
static void a_wait_goes_on_with_new_work(void **state)
{
  (void)state;
  int go = 0;
  hipStream_t first = create_stream(), second = create_stream();
  pthread_t threads[2];
  alarm(60);
  assert_ok(hipLaunchHostFunc(first, wait_until_set, &go));
  assert_int_equal(pthread_create(&threads[0], NULL, synchronize, first), 0);
  usleep(30000); /* later both are waiting, as a rule */
  assert_int_equal(pthread_create(&threads[1], NULL, synchronize_device, NULL), 0);
  usleep(30000);
  assert_ok(hipLaunchHostFunc(second, count_up, &go));
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  alarm(0);
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
}

/* ---- Each call beside each other one: a lock that is missing is a data race, which ThreadSanitizer reports ---- */

static struct software_config checked;

static bool use_a_stream(void)
{
  const struct memory_observer *observer = hipmm_software_observer();
  hipStream_t stream;
  void *memory = NULL;
  if (hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) != hipSuccess) return false;
  bool is_good = hipMalloc(&memory, 1000) == hipSuccess;
  const struct memory_event event = {
      .owner = &checked, .resource = "one", .ptr = memory, .bytes = 1000, .stream = (hipmm_stream_t)stream};
  observer->allocated(&event);
  is_good = hipMemsetAsync(memory, 1, 1000, stream) == hipSuccess && is_good;
  void *token = observer->freeing(&event);
  is_good = hipFree(memory) == hipSuccess && is_good;
  observer->freed(token, false);
  return hipStreamDestroy(stream) == hipSuccess && is_good;
}

static bool ask_for_counts(void)
{
  uint64_t count, bytes;
  bool is_good = hipmm_software_live(0, &count, &bytes) && count >= 1;
  is_good = hipmm_software_faults(1) == 0 && is_good;
  (void)hipmm_software_pending();
  return !hipmm_software_race(0, NULL) && is_good;
}

static bool schedule_failures(void)
{
  return hipmm_software_fail("hipRuntimeGetVersion", 2, 0);
}

static bool cancel_failures(void)
{
  hipmm_software_fail_none();
  return true;
}

static bool call_what_may_fail(void)
{
  int version;
  hipError_t error = hipRuntimeGetVersion(&version);
  return error == hipSuccess || error == hipErrorUnknown;
}

static uint64_t choose_the_first(void *arg, uint64_t limit)
{
  (void)arg, (void)limit;
  return 0;
}

static bool steer(void)
{
  hipmm_software_choose(choose_the_first, NULL);
  (void)hipmm_software_step(1);
  hipmm_software_choose(NULL, NULL);
  return true;
}

static bool configure_again(void)
{
  races_start(false);
  return software_configure(&checked);
}

static bool reset_the_other_device(void)
{
  return hipSetDevice(1) == hipSuccess && hipDeviceReset() == hipSuccess;
}

static bool (*const calls[])(void) = {
    use_a_stream,    ask_for_counts,         schedule_failures, cancel_failures,    call_what_may_fail, steer,
    configure_again, reset_the_other_device, use_a_stream,      call_what_may_fail, schedule_failures};

enum { CALLS = sizeof calls / sizeof *calls, CALL_ROUNDS = 100 };

struct caller {
  pthread_t thread;
  bool (*call)(void);
  int failures;
};

static void *call_again_and_again(void *argument)
{
  struct caller *caller = argument;
  for (int round = 0; round < CALL_ROUNDS; round++) caller->failures += !caller->call();
  return NULL;
}

static void each_call_is_good_beside_each_other(void **state)
{
  (void)state;
  struct caller callers[CALLS] = {0};
  char *memory = allocate(10); /* so that no configuration begins anew */
  for (int i = 0; i < CALLS; i++) {
    callers[i].call = calls[i];
    assert_int_equal(pthread_create(&callers[i].thread, NULL, call_again_and_again, &callers[i]), 0);
  }
  for (int i = 0; i < CALLS; i++) pthread_join(callers[i].thread, NULL);
  for (int i = 0; i < CALLS; i++) assert_int_equal(callers[i].failures, 0);
  hipmm_software_fail_none();
  assert_ok(hipFree(memory));
}

/* From here on all streams are checked, until the process ends. */
static int start_checked(enum software_scheduler scheduler)
{
  checked = small_config(scheduler);
  checked.check_streams = true;
  restart(&checked);
  return 0;
}

static int start_checked_threads(void **state)
{
  (void)state;
  return start_checked(SOFTWARE_THREADS);
}

static int start_checked_stepped(void **state)
{
  (void)state;
  return start_checked(SOFTWARE_STEPPED);
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
      {"a wait goes on with new work (threads)", a_wait_goes_on_with_new_work, start_threads, finish, NULL},
      {"a wait goes on with new work (stepped)", a_wait_goes_on_with_new_work, start_stepped, finish, NULL},
      {"each call is good beside each other (threads)", each_call_is_good_beside_each_other, start_checked_threads,
       finish, NULL},
      {"each call is good beside each other (stepped)", each_call_is_good_beside_each_other, start_checked_stepped,
       finish, NULL},
  };
  return cmocka_run_group_tests_name("software: threads", tests, NULL, NULL);
}
