/* SPDX-License-Identifier: MIT */
/* test_stream.c: streams run after the call, in their order; the default stream orders itself with blocking streams;
 * handles are reused; an invalid stream is refused. Under both schedulers. */
#include "device.h"
#include <limits.h>
#include <time.h>

static hipStream_t create(unsigned flags)
{
  hipStream_t stream;
  assert_ok(hipStreamCreateWithFlags(&stream, flags));
  return stream;
}

static void work_runs_after_the_call(void **state)
{
  (void)state;
  int go = 0, done = 0;
  hipStream_t stream = create(0);
  if (software.config.scheduler == SOFTWARE_THREADS) assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
  assert_ok(hipLaunchHostFunc(stream, count_up, &done));
  assert_int_equal(__atomic_load_n(&done, __ATOMIC_SEQ_CST), 0);
  count_up(&go);
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(done, 1);
  assert_ok(hipStreamDestroy(stream));
}

static void a_stream_keeps_its_order(void **state)
{
  (void)state;
  hipStream_t stream = create(0);
  char *memory = allocate(2000);
  for (int i = 0; i < 100; i++) {
    assert_ok(hipMemsetAsync(memory, i, 1000, stream));
    assert_ok(hipMemcpyAsync(memory + 1000, memory, 1000, hipMemcpyDeviceToDevice, stream));
  }
  assert_ok(hipMemsetAsync(memory, 55, 1000, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(memory, 55, 1000));
  assert_true(is_filled(memory + 1000, 99, 1000));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipFree(memory));
}

static void a_query_says_not_ready_until_the_work_is_done(void **state)
{
  (void)state;
  int go = 0;
  hipStream_t stream = create(0);
  assert_ok(hipStreamQuery(stream));
  if (software.config.scheduler == SOFTWARE_THREADS) {
    assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
    assert_hip(hipStreamQuery(stream), hipErrorNotReady);
    count_up(&go);
  }
  for (int i = 0; i < 50; i++) assert_ok(hipLaunchHostFunc(stream, count_up, &go));
  hipError_t error;
  int looks = 0;
  while ((error = hipStreamQuery(stream)) == hipErrorNotReady) looks++;
  assert_hip(error, hipSuccess);
  if (software.config.scheduler == SOFTWARE_STEPPED) assert_true(looks >= 25 && go == 50);
  hipGetLastError();
  assert_ok(hipStreamDestroy(stream));
}

/* The default stream and blocking streams, each after the other's earlier work. */
static void the_default_stream_orders_itself_with_blocking_streams(void **state)
{
  (void)state;
  hipStream_t first = create(0), second = create(0);
  char *memory = allocate(3000);
  for (int round = 0; round < 20; round++) {
    assert_ok(hipMemsetAsync(memory, round, 1000, first));
    assert_ok(hipMemcpyAsync(memory + 1000, memory, 1000, hipMemcpyDeviceToDevice, NULL));
    assert_ok(hipMemcpyAsync(memory + 2000, memory + 1000, 1000, hipMemcpyDeviceToDevice, second));
    assert_ok(hipMemsetAsync(memory + 1000, 0, 1000, (hipStream_t)1));
    assert_ok(hipStreamSynchronize(round % 2 ? NULL : second));
    assert_true(is_filled(memory + 2000, round, 1000));
  }
  assert_ok(hipStreamSynchronize(NULL));
  assert_true(is_filled(memory + 1000, 0, 1000));
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
  assert_ok(hipFree(memory));
}

static void a_non_blocking_stream_does_not_wait_for_the_default_stream(void **state)
{
  (void)state;
  int go = 0;
  hipStream_t stream = create(hipStreamNonBlocking);
  assert_ok(hipLaunchHostFunc(NULL, wait_until_set, &go));
  assert_ok(hipLaunchHostFunc(stream, count_up, &go));
  assert_ok(hipStreamSynchronize(NULL));
  assert_int_equal(go, 1);
  assert_ok(hipStreamDestroy(stream));
}

static void the_default_stream_does_not_wait_for_a_non_blocking_stream(void **state)
{
  (void)state;
  int go = 0;
  hipStream_t stream = create(hipStreamNonBlocking);
  assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
  assert_ok(hipLaunchHostFunc(NULL, count_up, &go));
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipStreamDestroy(stream));
}

static void default_streams_of_two_devices_do_not_wait_for_each_other(void **state)
{
  (void)state;
  int go = 0;
  assert_ok(hipLaunchHostFunc(NULL, wait_until_set, &go));
  assert_ok(hipSetDevice(1));
  assert_ok(hipLaunchHostFunc(NULL, count_up, &go));
  assert_ok(hipSetDevice(0));
  assert_ok(hipDeviceSynchronize());
}

static void a_stream_is_of_the_device_it_was_made_on(void **state)
{
  (void)state;
  hipDevice_t device = -1;
  int ran = 0;
  assert_ok(hipSetDevice(1));
  hipStream_t stream = create(0);
  assert_ok(hipSetDevice(0));
  assert_ok(hipStreamGetDevice(stream, &device));
  assert_int_equal(device, 1);
  assert_ok(hipStreamGetDevice(NULL, &device));
  assert_int_equal(device, 0);
  assert_ok(hipLaunchHostFunc(stream, count_up, &ran));
  assert_ok(hipSetDevice(1));
  assert_ok(hipDeviceSynchronize());
  assert_int_equal(ran, 1);
  assert_ok(hipStreamDestroy(stream));
}

struct seen {
  hipStream_t stream;
  hipError_t status;
};

static void see(hipStream_t stream, hipError_t status, void *argument)
{
  *(struct seen *)argument = (struct seen){stream, status};
}

static void a_destroyed_stream_is_refused_and_its_work_goes_on(void **state)
{
  (void)state;
  unsigned flags;
  int priority, go = 0;
  char *memory = allocate(1000);
  hipStream_t stream = create(0);
  if (software.config.scheduler == SOFTWARE_THREADS) assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
  assert_ok(hipMemsetAsync(memory, 9, 1000, stream));
  assert_ok(hipStreamDestroy(stream));
  assert_hip(hipStreamDestroy(stream), hipErrorInvalidHandle);
  assert_hip(hipStreamSynchronize(stream), hipErrorInvalidHandle);
  assert_hip(hipStreamQuery(stream), hipErrorInvalidHandle);
  assert_hip(hipStreamGetFlags(stream, &flags), hipErrorInvalidHandle);
  assert_hip(hipStreamGetPriority(stream, &priority), hipErrorInvalidHandle);
  assert_hip(hipMemsetAsync(memory, 1, 10, stream), hipErrorInvalidHandle);
  assert_hip(hipLaunchHostFunc(stream, count_up, &go), hipErrorInvalidHandle);
  assert_hip(hipStreamAddCallback(stream, see, NULL, 0), hipErrorInvalidHandle);
  count_up(&go);
  assert_ok(hipDeviceSynchronize());
  assert_true(is_filled(memory, 9, 1000));
  assert_ok(hipFree(memory));
}

static void what_is_no_stream_is_refused(void **state)
{
  (void)state;
  int local = 0;
  hipEvent_t event;
  assert_ok(hipEventCreate(&event));
  hipStream_t stream = create(0);
  const hipStream_t wrong[] = {(hipStream_t)3, (hipStream_t)-1, (hipStream_t)&local, (hipStream_t)event,
                               (hipStream_t)((char *)stream + 8)};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_hip(hipStreamSynchronize(wrong[i]), hipErrorInvalidHandle);
    assert_hip(hipStreamDestroy(wrong[i]), hipErrorInvalidHandle);
    assert_hip(hipEventRecord(event, wrong[i]), hipErrorInvalidHandle);
  }
  assert_hip(hipStreamDestroy(NULL), hipErrorInvalidHandle);
  assert_hip(hipStreamDestroy(hipStreamPerThread), hipErrorInvalidHandle);
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipEventDestroy(event));
}

static void handles_are_reused_last_in_first_out(void **state)
{
  (void)state;
  unsigned long long before, after;
  hipStream_t first = create(0), second = create(0);
  assert_ok(hipStreamGetId(second, &before));
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
  assert_ptr_equal(create(0), second);
  assert_ptr_equal(create(0), first);
  assert_ok(hipStreamGetId(second, &after));
  assert_true(after > before);
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
}

/* The error of a program that records an event on a handle of a destroyed stream. */
static void a_new_stream_with_an_old_handle_does_not_wait_for_the_old_one(void **state)
{
  (void)state;
  int go = 0;
  hipStream_t old = create(hipStreamNonBlocking);
  assert_ok(hipLaunchHostFunc(old, wait_until_set, &go));
  assert_ok(hipStreamDestroy(old));
  hipStream_t young = create(hipStreamNonBlocking);
  assert_ptr_equal(young, old);
  assert_ok(hipStreamSynchronize(young));
  count_up(&go);
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(young));
}

static void *per_thread_work(void *argument)
{
  hipSetDevice(0);
  hipLaunchHostFunc(hipStreamPerThread, wait_until_set, argument);
  return NULL;
}

static void the_per_thread_stream_is_the_threads_own(void **state)
{
  (void)state;
  int go = 0, done = 0;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, per_thread_work, &go), 0);
  pthread_join(thread, NULL); /* its stream's work survives it */
  assert_ok(hipLaunchHostFunc(hipStreamPerThread, count_up, &done));
  assert_ok(hipStreamSynchronize(hipStreamPerThread));
  assert_int_equal(done, 1);
  count_up(&go);
  assert_ok(hipDeviceSynchronize());
}

static void the_per_thread_stream_orders_itself_with_the_default_stream(void **state)
{
  (void)state;
  char *memory = allocate(1000);
  for (int i = 0; i < 10; i++) {
    assert_ok(hipMemsetAsync(memory, 1, 1000, NULL));
    assert_ok(hipMemsetAsync(memory, 2, 1000, hipStreamPerThread));
    assert_ok(hipStreamSynchronize(hipStreamPerThread));
    assert_true(is_filled(memory, 2, 1000));
  }
  assert_ok(hipFree(memory));
}

static void streams_have_flags_and_priorities(void **state)
{
  (void)state;
  hipStream_t stream;
  unsigned flags;
  int priority, least, greatest;
  hipStreamCaptureStatus capture;
  assert_ok(hipDeviceGetStreamPriorityRange(&least, &greatest));
  assert_ok(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, -1));
  assert_ok(hipStreamGetFlags(stream, &flags));
  assert_ok(hipStreamGetPriority(stream, &priority));
  assert_ok(hipStreamIsCapturing(stream, &capture));
  assert_int_equal(flags, hipStreamNonBlocking);
  assert_int_equal(priority, -1);
  assert_int_equal(capture, hipStreamCaptureStatusNone);
  assert_hip(hipStreamCreateWithFlags(&stream, 2), hipErrorInvalidValue);
  assert_hip(hipStreamCreate(NULL), hipErrorInvalidValue);
  assert_hip(hipStreamGetFlags(stream, NULL), hipErrorInvalidValue);
  assert_hip(hipStreamGetFlags(NULL, &flags), hipErrorInvalidValue); /* as with ROCm; other calls take it */
  assert_ok(hipStreamGetFlags(hipStreamPerThread, &flags));
  assert_hip(hipLaunchHostFunc(stream, NULL, NULL), hipErrorInvalidValue);
  assert_hip(hipStreamAddCallback(stream, NULL, NULL, 0), hipErrorInvalidValue);
  assert_ok(hipStreamDestroy(stream));
}

static int priority_given(int wanted)
{
  hipStream_t stream;
  int priority;
  assert_ok(hipStreamCreateWithPriority(&stream, hipStreamDefault, wanted));
  assert_ok(hipStreamGetPriority(stream, &priority));
  assert_ok(hipStreamDestroy(stream));
  return priority;
}

static void priorities_are_clamped_to_the_range(void **state)
{
  (void)state;
  int least, greatest, priority;
  assert_ok(hipDeviceGetStreamPriorityRange(&least, &greatest));
  assert_int_equal(least, 1);
  assert_int_equal(greatest, -1);
  for (priority = greatest; priority <= least; priority++) assert_int_equal(priority_given(priority), priority);
  assert_int_equal(priority_given(2), least);
  assert_int_equal(priority_given(INT_MAX), least);
  assert_int_equal(priority_given(INT_MIN), greatest);
  assert_ok(hipStreamGetPriority(NULL, &priority));
  assert_int_equal(priority, 0);
}

static void threads_have_capture_modes(void **state)
{
  (void)state;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  assert_ok(hipThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, hipStreamCaptureModeGlobal);
  assert_hip(hipThreadExchangeStreamCaptureMode(NULL), hipErrorInvalidValue);
  hipStreamCaptureMode none = hipStreamCaptureModeRelaxed + 1;
  assert_hip(hipThreadExchangeStreamCaptureMode(&none), hipErrorInvalidValue);
  assert_ok(hipThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, hipStreamCaptureModeRelaxed);
}

static void callbacks_get_their_stream(void **state)
{
  (void)state;
  struct seen seen = {NULL, hipErrorUnknown};
  hipStream_t stream = create(0);
  assert_ok(hipStreamAddCallback(stream, see, &seen, 0));
  assert_ok(hipStreamSynchronize(stream));
  assert_ptr_equal(seen.stream, stream);
  assert_hip(seen.status, hipSuccess);
  assert_ok(hipStreamDestroy(stream));
}

/* With the stepped scheduler, a wait for one stream does not run another stream. */
static void waiting_for_one_stream_does_not_finish_all(void **state)
{
  (void)state;
  int left_undone = 0;
  for (int round = 0; round < 20; round++) {
    int first = 0, second = 0;
    hipStream_t one = create(hipStreamNonBlocking), other = create(hipStreamNonBlocking);
    for (int i = 0; i < 10; i++) assert_ok(hipLaunchHostFunc(one, count_up, &first));
    for (int i = 0; i < 10; i++) assert_ok(hipLaunchHostFunc(other, count_up, &second));
    assert_ok(hipStreamSynchronize(one));
    assert_int_equal(first, 10);
    left_undone += second < 10;
    assert_ok(hipDeviceSynchronize());
    assert_int_equal(second, 10);
    assert_ok(hipStreamDestroy(one));
    assert_ok(hipStreamDestroy(other));
  }
  assert_true(left_undone > 2); /* half of them, but for the luck of the draw */
}

/* Ten operations on each of three streams store the number of their stream, in the order in which they run. */
struct track {
  struct course *course;
  int number;
};

struct course {
  struct track tracks[3];
  int order[30], length;
};

static void run_on(void *argument)
{
  const struct track *track = argument;
  track->course->order[track->course->length++] = track->number;
}

static void run_course(uint64_t seed, struct course *course)
{
  struct software_config config = small_config(SOFTWARE_STEPPED);
  config.seed = seed;
  restart(&config);
  *course = (struct course){.length = 0};
  for (int stream = 0; stream < 3; stream++) {
    hipStream_t handle = create(0);
    course->tracks[stream] = (struct track){course, stream};
    for (int i = 0; i < 10; i++) assert_ok(hipLaunchHostFunc(handle, run_on, &course->tracks[stream]));
  }
  assert_ok(hipDeviceSynchronize());
  assert_int_equal(course->length, 30);
}

static void a_seed_repeats_its_order_and_another_differs(void **state)
{
  (void)state;
  struct course first, again, other;
  run_course(5, &first);
  run_course(5, &again);
  run_course(6, &other);
  assert_memory_equal(first.order, again.order, sizeof first.order);
  assert_memory_not_equal(first.order, other.order, sizeof first.order);
}

static void steps_can_be_taken_one_by_one(void **state)
{
  (void)state;
  int ran = 0;
  hipStream_t stream = create(0);
  for (int i = 0; i < 5; i++) assert_ok(hipLaunchHostFunc(stream, count_up, &ran));
  assert_int_equal(hipmm_software_pending(), 5);
  assert_int_equal(hipmm_software_step(2), 2);
  assert_int_equal(ran, 2);
  assert_int_equal(hipmm_software_pending(), 3);
  assert_int_equal(hipmm_software_step(10), 3);
  assert_int_equal(hipmm_software_step(10), 0);
  assert_ok(hipStreamDestroy(stream));
}

/* ---- What waits costs nothing ---- */

enum { STEPS = 1500, MANY = 1500 };

static double cpu_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The processor time of STEPS operations of one stream while `n` others wait for it: by an event, or as blocking streams for
 * the default stream. */
static double time_of_steps(unsigned n, bool is_held)
{
  static hipStream_t waiting[MANY];
  hipStream_t stream = is_held ? NULL : create(hipStreamNonBlocking);
  hipEvent_t event;
  int done = 0;
  assert_ok(hipEventCreate(&event));
  for (int i = 0; i < STEPS; i++) assert_ok(hipLaunchHostFunc(stream, count_up, &done));
  assert_ok(hipEventRecord(event, stream));
  for (unsigned i = 0; i < n; i++) {
    waiting[i] = create(is_held ? hipStreamDefault : hipStreamNonBlocking);
    if (!is_held) assert_ok(hipStreamWaitEvent(waiting[i], event, 0));
    assert_ok(hipLaunchHostFunc(waiting[i], count_up, &done));
  }
  double start = cpu_seconds();
  assert_int_equal(hipmm_software_step(STEPS), STEPS);
  double spent = cpu_seconds() - start;
  assert_int_equal(done, STEPS);
  assert_ok(hipDeviceSynchronize());
  assert_int_equal(done, STEPS + n);
  for (unsigned i = 0; i < n; i++) assert_ok(hipStreamDestroy(waiting[i]));
  if (stream) assert_ok(hipStreamDestroy(stream));
  assert_ok(hipEventDestroy(event));
  return spent;
}

static void streams_that_wait_cost_no_step(void **state)
{
  (void)state;
  for (int is_held = 0; is_held < 2; is_held++) {
    double one = time_of_steps(1, is_held), many = time_of_steps(MANY, is_held);
    if (many > 10 * one + 0.01) fail_msg("%d held: %g s instead of %g s", is_held, many, one);
  }
}

static uint64_t order_hash;

static void note_order(void *argument)
{
  order_hash = (order_hash ^ *(uint64_t *)argument) * 0x100000001b3U;
}

/* Streams of all kinds that wait for each other: the seed alone decides the order, in each release. */
static void a_seed_gives_the_order_that_it_always_gave(void **state)
{
  (void)state;
  enum { N = 12, WORK = 500 };
  static uint64_t numbers[WORK];
  hipStream_t streams[N] = {NULL};
  hipEvent_t events[4];
  uint64_t random = 7;
  order_hash = 0;
  for (int i = 1; i < N; i++) streams[i] = create(i % 2 ? hipStreamNonBlocking : hipStreamDefault);
  for (int i = 0; i < 4; i++) assert_ok(hipEventCreate(&events[i]));
  for (int i = 0; i < WORK; i++) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    hipStream_t stream = streams[(random >> 33) % (i % 20 ? N - 1 : N)];
    hipEvent_t event = events[random >> 40 & 3];
    if (i % 5 == 1) assert_ok(hipEventRecord(event, stream));
    if (i % 5 == 3) assert_ok(hipStreamWaitEvent(stream, event, 0));
    numbers[i] = (uint64_t)i;
    assert_ok(hipLaunchHostFunc(stream, note_order, &numbers[i]));
    if (i % 50 == 49) hipmm_software_step(30);
    if (i % 90 == 89) assert_ok(hipStreamSynchronize(streams[(random >> 50) % N]));
  }
  assert_ok(hipDeviceSynchronize());
  assert_int_equal(order_hash, 0xb53c24d0a1bdb9deU);
  for (int i = 1; i < N; i++) assert_ok(hipStreamDestroy(streams[i]));
  for (int i = 0; i < 4; i++) assert_ok(hipEventDestroy(events[i]));
}

static void many_streams_come_and_go(void **state)
{
  (void)state;
  int ran = 0;
  for (int i = 0; i < 2000; i++) {
    hipStream_t stream = create(i % 2 ? hipStreamNonBlocking : 0);
    assert_ok(hipLaunchHostFunc(stream, count_up, &ran));
    assert_ok(hipStreamDestroy(stream));
    if (i % 100 == 99) assert_ok(hipDeviceSynchronize()); /* a stream whose work has not begun keeps its thread */
  }
  assert_int_equal(ran, 2000);
}

static uint64_t choose_first(void *unused, uint64_t limit)
{
  (void)unused, (void)limit;
  return 0;
}

static uint64_t choose_last(void *calls, uint64_t limit)
{
  ++*(int *)calls;
  return limit - 1;
}

/* The streams are in the order of their first work, the newest first: so the oldest one runs to its end. */
static void a_program_may_choose_the_order(void **state)
{
  (void)state;
  enum { STREAMS = 3, RUNS = 4 };
  int counts[STREAMS] = {0}, calls = 0;
  hipStream_t streams[STREAMS];
  for (int i = 0; i < STREAMS; i++) streams[i] = create(hipStreamNonBlocking);
  for (int i = 0; i < STREAMS * RUNS; i++)
    assert_ok(hipLaunchHostFunc(streams[i % STREAMS], count_up, &counts[i % STREAMS]));
  hipmm_software_choose(choose_last, &calls);
  for (int step = 0; step < STREAMS * RUNS; step++) {
    assert_int_equal(hipmm_software_step(1), 1);
    for (int i = 0; i < STREAMS; i++)
      assert_int_equal(counts[i], step + 1 < i * RUNS ? 0 : step + 1 - i * RUNS < RUNS ? step + 1 - i * RUNS : RUNS);
  }
  assert_int_equal(calls, (STREAMS - 1) * RUNS); /* not where there is one stream left */
  hipmm_software_choose(NULL, NULL);
  for (int i = 0; i < STREAMS; i++) assert_ok(hipStreamDestroy(streams[i]));
}

/* A query of the stepped scheduler runs work, which may be wrong. */
static void a_query_tells_of_a_fault_that_it_met(void **state)
{
  (void)state;
  hipStream_t stream = create(hipStreamNonBlocking);
  char *memory = allocate_on(stream, 100);
  hipError_t error;
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipMemsetAsync(memory, 1, 100, stream));
  assert_ok(hipFreeAsync(memory, NULL)); /* not after the fill */
  hipmm_software_choose(choose_first, NULL);
  assert_ok(hipStreamSynchronize(NULL));
  hipmm_software_choose(NULL, NULL);
  while ((error = hipStreamQuery(stream)) == hipErrorNotReady) continue;
  assert_hip(error, hipErrorIllegalAddress);
  assert_int_equal(hipmm_software_faults(0), 1);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"work runs after the call (threads)", work_runs_after_the_call, start_threads, finish, NULL},
      {"work runs after the call (stepped)", work_runs_after_the_call, start_stepped, finish, NULL},
      {"a stream keeps its order (threads)", a_stream_keeps_its_order, start_threads, finish, NULL},
      {"a stream keeps its order (stepped)", a_stream_keeps_its_order, start_stepped, finish, NULL},
      {"a query says not ready until the work is done (threads)", a_query_says_not_ready_until_the_work_is_done,
       start_threads, finish, NULL},
      {"a query says not ready until the work is done (stepped)", a_query_says_not_ready_until_the_work_is_done,
       start_stepped, finish, NULL},
      {"the default stream orders itself with blocking streams (threads)",
       the_default_stream_orders_itself_with_blocking_streams, start_threads, finish, NULL},
      {"the default stream orders itself with blocking streams (stepped)",
       the_default_stream_orders_itself_with_blocking_streams, start_stepped, finish, NULL},
      {"a non blocking stream does not wait for the default stream",
       a_non_blocking_stream_does_not_wait_for_the_default_stream, start_threads, finish, NULL},
      {"the default stream does not wait for a non blocking stream",
       the_default_stream_does_not_wait_for_a_non_blocking_stream, start_threads, finish, NULL},
      {"default streams of two devices do not wait for each other",
       default_streams_of_two_devices_do_not_wait_for_each_other, start_threads, finish, NULL},
      {"a stream is of the device it was made on (threads)", a_stream_is_of_the_device_it_was_made_on, start_threads,
       finish, NULL},
      {"a stream is of the device it was made on (stepped)", a_stream_is_of_the_device_it_was_made_on, start_stepped,
       finish, NULL},
      {"a destroyed stream is refused and its work goes on (threads)",
       a_destroyed_stream_is_refused_and_its_work_goes_on, start_threads, finish, NULL},
      {"a destroyed stream is refused and its work goes on (stepped)",
       a_destroyed_stream_is_refused_and_its_work_goes_on, start_stepped, finish, NULL},
      {"what is no stream is refused (threads)", what_is_no_stream_is_refused, start_threads, finish, NULL},
      {"what is no stream is refused (stepped)", what_is_no_stream_is_refused, start_stepped, finish, NULL},
      {"handles are reused last in first out (threads)", handles_are_reused_last_in_first_out, start_threads, finish,
       NULL},
      {"handles are reused last in first out (stepped)", handles_are_reused_last_in_first_out, start_stepped, finish,
       NULL},
      {"a new stream with an old handle does not wait for the old one",
       a_new_stream_with_an_old_handle_does_not_wait_for_the_old_one, start_threads, finish, NULL},
      {"the per thread stream is the threads own", the_per_thread_stream_is_the_threads_own, start_threads, finish,
       NULL},
      {"the per thread stream orders itself with the default stream (threads)",
       the_per_thread_stream_orders_itself_with_the_default_stream, start_threads, finish, NULL},
      {"the per thread stream orders itself with the default stream (stepped)",
       the_per_thread_stream_orders_itself_with_the_default_stream, start_stepped, finish, NULL},
      {"streams have flags and priorities (threads)", streams_have_flags_and_priorities, start_threads, finish, NULL},
      {"streams have flags and priorities (stepped)", streams_have_flags_and_priorities, start_stepped, finish, NULL},
      {"priorities are clamped to the range", priorities_are_clamped_to_the_range, start_threads, finish, NULL},
      {"threads have capture modes", threads_have_capture_modes, start_threads, finish, NULL},
      {"callbacks get their stream (threads)", callbacks_get_their_stream, start_threads, finish, NULL},
      {"callbacks get their stream (stepped)", callbacks_get_their_stream, start_stepped, finish, NULL},
      {"waiting for one stream does not finish all", waiting_for_one_stream_does_not_finish_all, start_stepped, finish,
       NULL},
      {"a seed repeats its order and another differs", a_seed_repeats_its_order_and_another_differs, start_stepped,
       finish, NULL},
      {"steps can be taken one by one", steps_can_be_taken_one_by_one, start_stepped, finish, NULL},
      {"streams that wait cost no step", streams_that_wait_cost_no_step, start_stepped, finish, NULL},
      {"a seed gives the order that it always gave", a_seed_gives_the_order_that_it_always_gave, start_stepped, finish,
       NULL},
      {"many streams come and go (threads)", many_streams_come_and_go, start_threads, finish, NULL},
      {"many streams come and go (stepped)", many_streams_come_and_go, start_stepped, finish, NULL},
      {"a program may choose the order", a_program_may_choose_the_order, start_stepped, finish, NULL},
      {"a query tells of a fault that it met", a_query_tells_of_a_fault_that_it_met, start_stepped, finish_untidy,
       NULL},
  };
  return cmocka_run_group_tests_name("software: streams", tests, NULL, NULL);
}
