/* SPDX-License-Identifier: MIT */
/* test_event.c: events are snapshots of a stream, other streams wait for them, and they measure time. Under both
 * schedulers. */
#include "device.h"
#include <time.h>

#define DISABLE_SYSTEM_FENCE 0x20000000U /* hipEventDisableSystemFence, of HIP 5.4 */

struct pair {
  hipStream_t first, second;
  hipEvent_t event;
};

static struct pair create_pair(void)
{
  struct pair pair;
  assert_ok(hipStreamCreateWithFlags(&pair.first, hipStreamNonBlocking));
  assert_ok(hipStreamCreateWithFlags(&pair.second, hipStreamNonBlocking));
  assert_ok(hipEventCreateWithFlags(&pair.event, hipEventDisableTiming));
  return pair;
}

static void destroy_pair(struct pair pair)
{
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(pair.first));
  assert_ok(hipStreamDestroy(pair.second));
  assert_ok(hipEventDestroy(pair.event));
}

static void a_stream_waits_for_another_streams_event(void **state)
{
  (void)state;
  struct pair pair = create_pair();
  char *memory = allocate(2000);
  for (int round = 1; round < 50; round++) {
    assert_ok(hipMemsetAsync(memory, round, 1000, pair.first));
    assert_ok(hipEventRecord(pair.event, pair.first));
    assert_ok(hipStreamWaitEvent(pair.second, pair.event, 0));
    assert_ok(hipMemcpyAsync(memory + 1000, memory, 1000, hipMemcpyDeviceToDevice, pair.second));
    assert_ok(hipStreamSynchronize(pair.second));
    assert_true(is_filled(memory + 1000, round, 1000));
  }
  destroy_pair(pair);
  assert_ok(hipFree(memory));
}

static void a_wait_is_for_the_record_before_it(void **state)
{
  (void)state;
  int go = 0, second = 0;
  struct pair pair = create_pair();
  assert_ok(hipEventRecord(pair.event, pair.first));
  assert_ok(hipStreamWaitEvent(pair.second, pair.event, 0));
  assert_ok(hipLaunchHostFunc(pair.first, wait_until_set, &go));
  assert_ok(hipEventRecord(pair.event, pair.first)); /* later, and not what the second stream waits for */
  assert_ok(hipLaunchHostFunc(pair.second, count_up, &second));
  if (software.config.scheduler == SOFTWARE_STEPPED) count_up(&go);
  assert_ok(hipStreamSynchronize(pair.second));
  assert_int_equal(second, 1);
  if (software.config.scheduler == SOFTWARE_THREADS) {
    assert_hip(hipEventQuery(pair.event), hipErrorNotReady);
    count_up(&go);
  }
  assert_ok(hipEventSynchronize(pair.event));
  assert_ok(hipEventQuery(pair.event));
  destroy_pair(pair);
}

static void an_event_not_yet_recorded_is_done(void **state)
{
  (void)state;
  struct pair pair = create_pair();
  assert_ok(hipEventQuery(pair.event));
  assert_ok(hipEventSynchronize(pair.event));
  assert_ok(hipStreamWaitEvent(pair.first, pair.event, 0));
  assert_ok(hipStreamSynchronize(pair.first));
  destroy_pair(pair);
}

static void polling_an_event_comes_to_an_end(void **state)
{
  (void)state;
  int ran = 0;
  hipError_t error;
  struct pair pair = create_pair();
  for (int i = 0; i < 20; i++) assert_ok(hipLaunchHostFunc(pair.first, count_up, &ran));
  assert_ok(hipEventRecord(pair.event, pair.first));
  while ((error = hipEventQuery(pair.event)) == hipErrorNotReady) continue;
  assert_hip(error, hipSuccess);
  assert_int_equal(ran, 20);
  destroy_pair(pair);
}

/* Without a call, until it has seen what a host function does. */
static void a_flag_of_a_host_function_comes(void **state)
{
  (void)state;
  int ran = 0;
  const struct timespec pause = {.tv_nsec = 1000000};
  struct pair pair = create_pair();
  assert_ok(hipLaunchHostFunc(pair.first, count_up, &ran));
  assert_ok(hipLaunchHostFunc(pair.second, count_up, &ran));
  for (int i = 0; i < 30000 && __atomic_load_n(&ran, __ATOMIC_SEQ_CST) < 2; i++) nanosleep(&pause, NULL);
  assert_int_equal(__atomic_load_n(&ran, __ATOMIC_SEQ_CST), 2);
  destroy_pair(pair);
}

static void a_destroyed_event_still_holds_who_waits_for_it(void **state)
{
  (void)state;
  struct pair pair = create_pair();
  hipEvent_t event;
  char *memory = allocate(1000);
  assert_ok(hipEventCreate(&event));
  assert_ok(hipMemsetAsync(memory, 1, 1000, pair.first));
  assert_ok(hipEventRecord(event, pair.first));
  assert_ok(hipStreamWaitEvent(pair.second, event, 0));
  assert_ok(hipEventDestroy(event));
  assert_ok(hipMemsetAsync(memory, 2, 1000, pair.second));
  assert_ok(hipStreamSynchronize(pair.second));
  assert_true(is_filled(memory, 2, 1000));
  destroy_pair(pair);
  assert_ok(hipFree(memory));
}

static void a_recorded_event_outlives_its_stream(void **state)
{
  (void)state;
  int ran = 0;
  hipStream_t stream;
  hipEvent_t event;
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipEventCreate(&event));
  assert_ok(hipLaunchHostFunc(stream, count_up, &ran));
  assert_ok(hipEventRecord(event, stream));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipEventSynchronize(event));
  assert_int_equal(ran, 1);
  assert_ok(hipEventDestroy(event));
}

static void events_order_streams_of_two_devices(void **state)
{
  (void)state;
  hipStream_t near, far;
  hipEvent_t event;
  int go = 0;
  assert_ok(hipStreamCreate(&near));
  assert_ok(hipEventCreate(&event));
  assert_ok(hipSetDevice(1));
  assert_ok(hipStreamCreate(&far));
  char *memory = allocate(1000);
  assert_ok(hipSetDevice(0));
  char *source = allocate(1000);
  if (software.config.scheduler == SOFTWARE_STEPPED) go = 1;
  assert_ok(hipLaunchHostFunc(near, wait_until_set, &go));
  assert_ok(hipMemsetAsync(source, 3, 1000, near));
  assert_ok(hipEventRecord(event, near));
  assert_ok(hipStreamWaitEvent(far, event, 0));
  assert_ok(hipMemcpyPeerAsync(memory, 1, source, 0, 1000, far));
  count_up(&go);
  assert_ok(hipStreamSynchronize(far));
  assert_true(is_filled(memory, 3, 1000));
  assert_hip(hipEventRecord(event, far), hipErrorInvalidHandle);
  assert_ok(hipStreamDestroy(near));
  assert_ok(hipStreamDestroy(far));
  assert_ok(hipEventDestroy(event));
  assert_ok(hipFree(memory));
  assert_ok(hipFree(source));
}

static void nap(void *unused)
{
  struct timespec time = {.tv_nsec = 20000000};
  (void)unused;
  nanosleep(&time, NULL);
}

static void events_tell_the_time_between(void **state)
{
  (void)state;
  float ms = -1;
  hipEvent_t start, stop, untimed;
  assert_ok(hipEventCreate(&start));
  assert_ok(hipEventCreate(&stop));
  assert_ok(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
  assert_hip(hipEventElapsedTime(&ms, start, stop), hipErrorInvalidHandle);
  assert_ok(hipEventRecord(start, NULL));
  assert_ok(hipLaunchHostFunc(NULL, nap, NULL));
  assert_ok(hipEventRecord(stop, NULL));
  assert_ok(hipEventRecord(untimed, NULL));
  assert_hip(hipEventElapsedTime(&ms, start, stop), hipErrorNotReady);
  assert_ok(hipEventSynchronize(stop));
  assert_ok(hipEventElapsedTime(&ms, start, stop));
  assert_true(ms >= 19 && ms < 60000);
  assert_hip(hipEventElapsedTime(&ms, start, untimed), hipErrorInvalidHandle);
  assert_hip(hipEventElapsedTime(NULL, start, stop), hipErrorInvalidValue);
  assert_ok(hipEventDestroy(start));
  assert_ok(hipEventDestroy(stop));
  assert_ok(hipEventDestroy(untimed));
}

static void what_is_no_event_is_refused(void **state)
{
  (void)state;
  int local;
  float ms;
  hipEvent_t event;
  hipStream_t stream;
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipEventCreate(&event));
  assert_ok(hipEventDestroy(event));
  const hipEvent_t wrong[] = {NULL, event, (hipEvent_t)stream, (hipEvent_t)&local, (hipEvent_t)-1};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_hip(hipEventRecord(wrong[i], NULL), hipErrorInvalidHandle);
    assert_hip(hipEventQuery(wrong[i]), hipErrorInvalidHandle);
    assert_hip(hipEventSynchronize(wrong[i]), hipErrorInvalidHandle);
    assert_hip(hipEventDestroy(wrong[i]), hipErrorInvalidHandle);
    assert_hip(hipStreamWaitEvent(NULL, wrong[i], 0), hipErrorInvalidHandle);
    assert_hip(hipEventElapsedTime(&ms, wrong[i], wrong[i]), hipErrorInvalidHandle);
  }
  assert_hip(hipEventCreate(NULL), hipErrorInvalidValue);
  assert_hip(hipEventCreateWithFlags(&event, 0x100), hipErrorInvalidValue);
  assert_hip(hipEventCreateWithFlags(&event, hipEventInterprocess), hipErrorInvalidValue);
  assert_hip(hipEventCreateWithFlags(&event, hipEventReleaseToDevice | hipEventReleaseToSystem), hipErrorInvalidValue);
  assert_hip(hipEventCreateWithFlags(&event, hipEventReleaseToDevice | DISABLE_SYSTEM_FENCE), hipErrorInvalidValue);
  assert_hip(hipStreamWaitEvent(NULL, event, 1), hipErrorInvalidValue);
  assert_ok(hipStreamDestroy(stream));
}

static void an_event_has_one_release_flag_at_most(void **state)
{
  (void)state;
  const unsigned flags[] = {hipEventReleaseToDevice, hipEventReleaseToSystem, DISABLE_SYSTEM_FENCE,
                            DISABLE_SYSTEM_FENCE | hipEventDisableTiming};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    hipEvent_t event;
    assert_ok(hipEventCreateWithFlags(&event, flags[i]));
    assert_ok(hipEventRecord(event, NULL));
    assert_ok(hipEventSynchronize(event));
    assert_ok(hipEventDestroy(event));
  }
}

static void a_hundred_thousand_events_are_as_many_handles(void **state)
{
  (void)state;
  enum { COUNT = 100000 };
  static hipEvent_t events[COUNT];
  for (int i = 0; i < COUNT; i++) assert_ok(hipEventCreateWithFlags(&events[i], hipEventDisableTiming));
  for (int i = 0; i < COUNT; i += 7) assert_ok(hipEventRecord(events[i], NULL));
  assert_ok(hipDeviceSynchronize());
  for (int i = 0; i < COUNT; i++) assert_ok(hipEventQuery(events[i]));
  for (int i = 0; i < COUNT; i++) assert_ok(hipEventDestroy(events[i]));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"a stream waits for another streams event (threads)", a_stream_waits_for_another_streams_event, start_threads,
       finish, NULL},
      {"a stream waits for another streams event (stepped)", a_stream_waits_for_another_streams_event, start_stepped,
       finish, NULL},
      {"a wait is for the record before it (threads)", a_wait_is_for_the_record_before_it, start_threads, finish, NULL},
      {"a wait is for the record before it (stepped)", a_wait_is_for_the_record_before_it, start_stepped, finish, NULL},
      {"an event not yet recorded is done (threads)", an_event_not_yet_recorded_is_done, start_threads, finish, NULL},
      {"an event not yet recorded is done (stepped)", an_event_not_yet_recorded_is_done, start_stepped, finish, NULL},
      {"polling an event comes to an end (threads)", polling_an_event_comes_to_an_end, start_threads, finish, NULL},
      {"polling an event comes to an end (stepped)", polling_an_event_comes_to_an_end, start_stepped, finish, NULL},
      {"a flag of a host function comes (threads)", a_flag_of_a_host_function_comes, start_threads, finish, NULL},
      {"a flag of a host function comes (stepped)", a_flag_of_a_host_function_comes, start_stepped, finish, NULL},
      {"a destroyed event still holds who waits for it (threads)", a_destroyed_event_still_holds_who_waits_for_it,
       start_threads, finish, NULL},
      {"a destroyed event still holds who waits for it (stepped)", a_destroyed_event_still_holds_who_waits_for_it,
       start_stepped, finish, NULL},
      {"a recorded event outlives its stream (threads)", a_recorded_event_outlives_its_stream, start_threads, finish,
       NULL},
      {"a recorded event outlives its stream (stepped)", a_recorded_event_outlives_its_stream, start_stepped, finish,
       NULL},
      {"events order streams of two devices (threads)", events_order_streams_of_two_devices, start_threads, finish,
       NULL},
      {"events order streams of two devices (stepped)", events_order_streams_of_two_devices, start_stepped, finish,
       NULL},
      {"events tell the time between (threads)", events_tell_the_time_between, start_threads, finish, NULL},
      {"events tell the time between (stepped)", events_tell_the_time_between, start_stepped, finish, NULL},
      {"what is no event is refused (threads)", what_is_no_event_is_refused, start_threads, finish, NULL},
      {"what is no event is refused (stepped)", what_is_no_event_is_refused, start_stepped, finish, NULL},
      {"an event has one release flag at most", an_event_has_one_release_flag_at_most, start_threads, finish, NULL},
      {"a hundred thousand events are as many handles", a_hundred_thousand_events_are_as_many_handles, start_threads,
       finish, NULL},
  };
  return cmocka_run_group_tests_name("software: events", tests, NULL, NULL);
}
