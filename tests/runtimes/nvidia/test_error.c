/* SPDX-License-Identifier: MIT */
/* test_error.c: HIP's error codes for the driver's, and the last error of each thread. */
#include "runtime.h"
#include <pthread.h>
#include <string.h>

static hipError_t told_for(int code)
{
  fake->fails = "cuMemAlloc";
  fake->failure = (CUresult)code;
  void *ptr = POINTER(1);
  hipError_t error = hipMalloc(&ptr, 1);
  assert_ptr_equal(ptr, POINTER(1));
  assert_error(hipGetLastError(), error);
  fake->fails = NULL;
  return error;
}

/* HIP has CUDA's numbers: a code that HIP has a name for must not change, and no other code may have its number. */
static void codes_that_hip_has_keep_their_number(void **state)
{
  (void)state;
  unsigned kept = 0;
  for (int code = 1; code < 1000; code++) {
    hipError_t error = told_for(code);
    assert_int_not_equal(error, hipSuccess);
    if ((int)error == code && error != hipErrorUnknown) {
      assert_string_not_equal(hipGetErrorName(error), "hipErrorUnknown");
      kept++;
    }
  }
  assert_int_equal(kept, 69); /* so many have a name in HIP 5.2; nine of them only CUDA's runtime returns */
}

static void every_code_that_both_have_is_mapped(void **state)
{
  (void)state;
  static const struct {
    CUresult code;
    hipError_t error;
  } rows[] = {
      {CUDA_ERROR_INVALID_VALUE, hipErrorInvalidValue},
      {CUDA_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory},
      {CUDA_ERROR_NOT_INITIALIZED, hipErrorNotInitialized},
      {CUDA_ERROR_DEINITIALIZED, hipErrorDeinitialized},
      {CUDA_ERROR_NO_DEVICE, hipErrorNoDevice},
      {CUDA_ERROR_INVALID_DEVICE, hipErrorInvalidDevice},
      {CUDA_ERROR_MAP_FAILED, hipErrorMapFailed},
      {CUDA_ERROR_ALREADY_MAPPED, hipErrorAlreadyMapped},
      {CUDA_ERROR_NOT_MAPPED, hipErrorNotMapped},
      {CUDA_ERROR_ECC_UNCORRECTABLE, hipErrorECCNotCorrectable},
      {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, hipErrorPeerAccessUnsupported},
      {CUDA_ERROR_OPERATING_SYSTEM, hipErrorOperatingSystem},
      {CUDA_ERROR_INVALID_HANDLE, hipErrorInvalidHandle},
      {CUDA_ERROR_ILLEGAL_STATE, hipErrorIllegalState},
      {CUDA_ERROR_NOT_FOUND, hipErrorNotFound},
      {CUDA_ERROR_NOT_READY, hipErrorNotReady},
      {CUDA_ERROR_ILLEGAL_ADDRESS, hipErrorIllegalAddress},
      {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, hipErrorPeerAccessAlreadyEnabled},
      {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, hipErrorPeerAccessNotEnabled},
      {CUDA_ERROR_CONTEXT_IS_DESTROYED, hipErrorContextIsDestroyed},
      {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, hipErrorHostMemoryAlreadyRegistered},
      {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, hipErrorHostMemoryNotRegistered},
      {CUDA_ERROR_LAUNCH_FAILED, hipErrorLaunchFailure},
      {CUDA_ERROR_NOT_SUPPORTED, hipErrorNotSupported},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, hipErrorStreamCaptureUnsupported},
      {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, hipErrorStreamCaptureImplicit},
      {CUDA_ERROR_CAPTURED_EVENT, hipErrorCapturedEvent},
      {CUDA_ERROR_UNKNOWN, hipErrorUnknown},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_error(told_for((int)rows[i].code), rows[i].error);
}

static void codes_that_hip_lacks_become_the_nearest(void **state)
{
  (void)state;
  assert_error(told_for(CUDA_ERROR_MISALIGNED_ADDRESS), hipErrorLaunchFailure);
  assert_error(told_for(CUDA_ERROR_ILLEGAL_INSTRUCTION), hipErrorLaunchFailure);
  assert_error(told_for(CUDA_ERROR_DEVICE_UNAVAILABLE), hipErrorContextAlreadyInUse);
  assert_error(told_for(CUDA_ERROR_TOO_MANY_PEERS), hipErrorPeerAccessUnsupported);
  assert_error(told_for(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH), hipErrorInsufficientDriver);
  *logged_text = '\0';
  assert_error(told_for(CUDA_ERROR_NOT_PERMITTED), hipErrorUnknown);
  assert_non_null(strstr(logged_text, "CUDA's error 800, CUDA_ERROR_OF_FAKE"));
  assert_error(told_for(4711), hipErrorUnknown);
}

static void the_last_error_stays_until_it_is_taken(void **state)
{
  (void)state;
  void *ptr;
  fake->fails = "cuMemAlloc";
  fake->failure = CUDA_ERROR_OUT_OF_MEMORY;
  assert_error(hipMalloc(&ptr, 1), hipErrorOutOfMemory);
  fake->fails = NULL;
  assert_ok(hipMalloc(&ptr, 1));
  assert_error(hipPeekAtLastError(), hipErrorOutOfMemory);
  assert_error(hipGetLastError(), hipErrorOutOfMemory);
  assert_ok(hipGetLastError());
}

static void *last_error(void *error)
{
  *(hipError_t *)error = hipGetLastError();
  return NULL;
}

static void each_thread_has_its_own_last_error(void **state)
{
  (void)state;
  hipError_t theirs = hipErrorUnknown;
  pthread_t thread;
  assert_error(hipMalloc(NULL, 1), hipErrorInvalidValue);
  assert_int_equal(pthread_create(&thread, NULL, last_error, &theirs), 0);
  pthread_join(thread, NULL);
  assert_ok(theirs);
  assert_error(hipGetLastError(), hipErrorInvalidValue);
}

static void unknown_codes_have_a_name_and_a_text(void **state)
{
  (void)state;
  assert_string_equal(hipGetErrorName((hipError_t)4711), "hipErrorUnknown");
  assert_string_equal(hipGetErrorString((hipError_t)4711), "unknown error");
  assert_string_equal(hipGetErrorName(hipErrorOutOfMemory), "hipErrorOutOfMemory");
  assert_string_equal(hipGetErrorString(hipErrorNoDevice), "no device");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(codes_that_hip_has_keep_their_number, start_test),
      cmocka_unit_test_setup(every_code_that_both_have_is_mapped, start_test),
      cmocka_unit_test_setup(codes_that_hip_lacks_become_the_nearest, start_test),
      cmocka_unit_test_setup(the_last_error_stays_until_it_is_taken, start_test),
      cmocka_unit_test_setup(each_thread_has_its_own_last_error, start_test),
      cmocka_unit_test_setup(unknown_codes_have_a_name_and_a_text, start_test),
  };
  return cmocka_run_group_tests_name("nvidia: errors", tests, start_runtime, NULL);
}
