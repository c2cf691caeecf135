/* SPDX-License-Identifier: MIT */
/* test_stream.c: streams and events: handles and special streams pass unchanged, flags of HIP alone are removed. */
#include "runtime.h"

static void streams_are_the_drivers(void **state)
{
  (void)state;
  hipStream_t stream = NULL;
  assert_ok(hipStreamCreate(&stream));
  assert_called("cuStreamCreate", CU_STREAM_DEFAULT);
  assert_ptr_equal(stream, POINTER(FAKE_STREAM));
  assert_ok(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  assert_called("cuStreamCreate", CU_STREAM_NON_BLOCKING);
  assert_ok(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, -2));
  assert_called("cuStreamCreateWithPriority", CU_STREAM_NON_BLOCKING, (uint64_t)-2);
  assert_ok(hipStreamDestroy(stream));
  assert_called("cuStreamDestroy", FAKE_STREAM);
  assert_error(hipStreamCreate(NULL), hipErrorInvalidValue);
}

static void special_streams_keep_their_meaning(void **state)
{
  (void)state;
  static const uint64_t special[] = {0, 1, 2}; /* default, legacy, the thread's own */
  assert_int_equal((uintptr_t)CU_STREAM_LEGACY, 1);
  assert_int_equal((uintptr_t)CU_STREAM_PER_THREAD, (uintptr_t)hipStreamPerThread);
  for (size_t i = 0; i < 3; i++) {
    hipStream_t stream = POINTER(special[i]);
    assert_ok(hipEventRecord(POINTER(FAKE_EVENT), stream));
    assert_called("cuEventRecord", FAKE_EVENT, special[i]);
    assert_ok(hipStreamWaitEvent(stream, POINTER(FAKE_EVENT), 0));
    assert_called("cuStreamWaitEvent", special[i], FAKE_EVENT, 0);
    assert_ok(hipStreamSynchronize(stream));
    assert_called("cuStreamSynchronize", special[i]);
    assert_error(hipStreamDestroy(stream), hipErrorInvalidHandle);
    assert_not_called();
  }
}

static void streams_of_others_are_taken_as_they_are(void **state)
{
  (void)state;
  hipStream_t stream = POINTER(0x5555deadbee0);
  assert_ok(hipStreamQuery(stream));
  assert_called("cuStreamQuery", 0x5555deadbee0);
  assert_ok(hipMallocAsync(&(void *){NULL}, 9, stream));
  assert_called("cuMemAllocAsync", 9, 0x5555deadbee0);
}

static void nowhere_to_put_the_answer_is_refused(void **state)
{
  (void)state;
  hipStream_t stream = POINTER(FAKE_STREAM);
  assert_error(hipStreamCreateWithPriority(NULL, 0, 0), hipErrorInvalidValue);
  assert_error(hipStreamGetFlags(stream, NULL), hipErrorInvalidValue);
  assert_error(hipStreamGetPriority(stream, NULL), hipErrorInvalidValue);
  assert_error(hipStreamGetDevice(stream, NULL), hipErrorInvalidValue);
  assert_error(hipStreamGetId(stream, NULL), hipErrorInvalidValue);
  assert_error(hipStreamIsCapturing(stream, NULL), hipErrorInvalidValue);
  assert_error(hipThreadExchangeStreamCaptureMode(NULL), hipErrorInvalidValue);
  assert_error(hipStreamAddCallback(stream, NULL, NULL, 0), hipErrorInvalidValue);
  assert_error(hipEventElapsedTime(NULL, POINTER(FAKE_EVENT), POINTER(FAKE_EVENT)), hipErrorInvalidValue);
  assert_not_called();
}

static void a_stream_that_cannot_be_entered_has_no_device(void **state)
{
  (void)state;
  int device = 7;
  fake->fails = "cuCtxPushCurrent";
  fake->failure = CUDA_ERROR_OUT_OF_MEMORY;
  assert_error(hipStreamGetDevice(POINTER(FAKE_STREAM), &device), hipErrorOutOfMemory);
  assert_int_equal(device, 7);
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(0)));
}

static void streams_answer_questions(void **state)
{
  (void)state;
  hipStream_t stream = POINTER(FAKE_STREAM);
  unsigned flags = 0;
  unsigned long long id = 0;
  int priority = 0, device = -1;
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  assert_ok(hipStreamGetFlags(stream, &flags));
  assert_int_equal(flags, hipStreamNonBlocking);
  assert_ok(hipStreamGetPriority(stream, &priority));
  assert_int_equal(priority, -3);
  assert_ok(hipStreamGetId(stream, &id));
  assert_int_equal(id, 77);
  assert_ok(hipStreamIsCapturing(stream, &status));
  assert_int_equal(status, hipStreamCaptureStatusInvalidated);
  assert_ok(hipStreamGetDevice(stream, &device));
  assert_int_equal(device, 1);
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  assert_ok(hipThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, hipStreamCaptureModeGlobal);
  assert_ok(hipThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, hipStreamCaptureModeRelaxed);
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(0)));
}

static void events_drop_flags_that_are_hips_alone(void **state)
{
  (void)state;
  hipEvent_t event = NULL;
  assert_ok(hipEventCreate(&event));
  assert_called("cuEventCreate", CU_EVENT_DEFAULT);
  assert_ptr_equal(event, POINTER(FAKE_EVENT));
  assert_ok(hipEventCreateWithFlags(&event, hipEventDisableTiming | hipEventInterprocess | hipEventReleaseToSystem));
  assert_called("cuEventCreate", CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
  assert_error(hipEventCreateWithFlags(&event, 0x100), hipErrorInvalidValue);
  assert_ok(hipEventSynchronize(event));
  assert_called("cuEventSynchronize", FAKE_EVENT);
  assert_ok(hipEventDestroy(event));
  assert_called("cuEventDestroy", FAKE_EVENT);
}

static void events_that_are_not_ready_say_so(void **state)
{
  (void)state;
  float milliseconds = 0;
  assert_ok(hipEventQuery(POINTER(FAKE_EVENT)));
  assert_called("cuEventQuery", FAKE_EVENT);
  fake->fails = "cuEventQuery";
  fake->failure = CUDA_ERROR_NOT_READY;
  assert_error(hipEventQuery(POINTER(FAKE_EVENT)), hipErrorNotReady);
  assert_error(hipGetLastError(), hipErrorNotReady);
  fake->calls = 0;
  assert_ok(hipEventElapsedTime(&milliseconds, POINTER(FAKE_EVENT), POINTER(FAKE_EVENT + 8)));
  assert_called("cuEventElapsedTime", FAKE_EVENT, FAKE_EVENT + 8);
  assert_true(milliseconds == 2.5f);
}

static void count(void *number)
{
  ++*(int *)number;
}

struct called_back {
  hipStream_t stream;
  hipError_t error;
  int times;
};

static void note(hipStream_t stream, hipError_t error, void *argument)
{
  struct called_back *back = argument;
  *back = (struct called_back){stream, error, back->times + 1};
}

static void host_functions_are_called_with_their_argument(void **state)
{
  (void)state;
  int number = 0;
  assert_ok(hipLaunchHostFunc(POINTER(FAKE_STREAM), count, &number));
  assert_called("cuLaunchHostFunc", FAKE_STREAM);
  fake->host_function(fake->argument);
  assert_int_equal(number, 1);
  assert_error(hipLaunchHostFunc(NULL, NULL, NULL), hipErrorInvalidValue);
}

static void callbacks_get_hips_error_code(void **state)
{
  (void)state;
  struct called_back back = {.times = 0};
  assert_ok(hipStreamAddCallback(POINTER(FAKE_STREAM), note, &back, 0));
  assert_called("cuStreamAddCallback", FAKE_STREAM, 0);
  fake->callback(POINTER(FAKE_STREAM), CUDA_ERROR_MISALIGNED_ADDRESS, fake->argument);
  assert_int_equal(back.times, 1);
  assert_ptr_equal(back.stream, POINTER(FAKE_STREAM));
  assert_error(back.error, hipErrorLaunchFailure);
  fake->fails = "cuStreamAddCallback";
  fake->failure = CUDA_ERROR_INVALID_HANDLE;
  assert_error(hipStreamAddCallback(POINTER(9), note, &back, 0), hipErrorInvalidHandle);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(streams_are_the_drivers, start_test),
      cmocka_unit_test_setup(special_streams_keep_their_meaning, start_test),
      cmocka_unit_test_setup(streams_of_others_are_taken_as_they_are, start_test),
      cmocka_unit_test_setup(nowhere_to_put_the_answer_is_refused, start_test),
      cmocka_unit_test_setup(a_stream_that_cannot_be_entered_has_no_device, start_test),
      cmocka_unit_test_setup(streams_answer_questions, start_test),
      cmocka_unit_test_setup(events_drop_flags_that_are_hips_alone, start_test),
      cmocka_unit_test_setup(events_that_are_not_ready_say_so, start_test),
      cmocka_unit_test_setup(host_functions_are_called_with_their_argument, start_test),
      cmocka_unit_test_setup(callbacks_get_hips_error_code, start_test),
  };
  return cmocka_run_group_tests_name("nvidia: streams and events", tests, start_runtime, NULL);
}
