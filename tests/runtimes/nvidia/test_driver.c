/* SPDX-License-Identifier: MIT */
/* test_driver.c: loading the driver: everything that can be wrong with it, and a driver that lacks a few functions. The
 * order of the tests matters: a process never unloads a driver. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

/* Both reports of the error: when hipmm creates the runtime, and from HIP's functions without hipmm. */
static void assert_refused(const char *library, hipError_t error, const char *text)
{
  int count = 7;
  assert_int_equal(create_runtime(library), HIPMM_E_NO_DEVICE);
  assert_non_null(strstr(failed_text, text));
  assert_error(hipGetLastError(), hipSuccess);
  assert_error(hipGetDeviceCount(&count), error);
  assert_int_equal(count, 0);
  assert_non_null(strstr(hipGetErrorString(error), text));
  assert_error(hipMalloc(&(void *){NULL}, 1), error);
  assert_error(hipGetLastError(), error);
}

static void without_a_driver_there_is_no_device_and_a_reason(void **state)
{
  (void)state;
  int version = 0;
  assert_refused("libcuda-that-is-not-there.so.1", hipErrorNoDevice, "libcuda-that-is-not-there.so.1");
  assert_refused("/dev/null", hipErrorNoDevice, "/dev/null");
  assert_ok(hipRuntimeGetVersion(&version));
  assert_int_equal(version, HIP_VERSION);
  assert_string_equal(hipGetErrorName(hipErrorNoDevice), "hipErrorNoDevice");
  assert_error(hipGetDevice(&version), hipErrorNoDevice);
  assert_error(hipEventQuery(POINTER(FAKE_EVENT)), hipErrorNoDevice);
}

static void a_library_that_is_no_driver_is_refused(void **state)
{
  (void)state;
  assert_refused("libm.so.6", hipErrorInsufficientDriver, "cuGetProcAddress");
}

static void a_name_that_is_empty_or_too_long_is_refused(void **state)
{
  (void)state;
  char name[8192];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  assert_int_equal(create_runtime(""), HIPMM_E_CONFIG);
  assert_string_equal(failed_option, "library");
  assert_int_equal(create_runtime(name), HIPMM_E_STATE);
  assert_string_equal(failed_option, "library");
}

static void the_toolkits_stub_is_told_from_the_driver(void **state)
{
  (void)state;
  fake->is_stub = true;
  assert_refused(fake_path("fake_cuda"), hipErrorNoDevice, "stub");
  fake->is_stub = false;
  fake->init_result = CUDA_ERROR_STUB_LIBRARY;
  assert_refused(fake_path("fake_cuda"), hipErrorNoDevice, "stub");
  fake->init_result = CUDA_SUCCESS;
}

static void a_driver_without_what_is_needed_is_too_old(void **state)
{
  (void)state;
  fake->hidden[0] = "cuEventRecord";
  fake->hidden[1] = "cuMemAlloc";
  assert_refused(fake_path("fake_cuda"), hipErrorInsufficientDriver, "cuMemAlloc, cuEventRecord");
  fake->hidden[0] = fake->hidden[1] = NULL;
}

/* The message is as long as fits, and says that it does not name all. */
static void many_missing_functions_are_named_in_part(void **state)
{
  (void)state;
  size_t n_hidden = 0;
  for (size_t i = 0; i < nvidia_n_symbols && n_hidden < FAKE_HIDDEN; i++)
    if (!nvidia_symbols[i].optional) fake->hidden[n_hidden++] = nvidia_symbols[i].name;
  assert_int_equal(n_hidden, FAKE_HIDDEN);
  assert_refused(fake_path("fake_cuda"), hipErrorInsufficientDriver, "lacks cuInit, cuDriverGetVersion, ");
  assert_refused(fake_path("fake_cuda"), hipErrorInsufficientDriver, ", and more, which hipmm needs");
  assert_null(strstr(strstr(failed_text, "and more") + 1, "and more"));
  memset(fake->hidden, 0, sizeof fake->hidden);
}

static void a_driver_without_devices_says_what_hides_them(void **state)
{
  (void)state;
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  fake->init_result = CUDA_ERROR_NO_DEVICE;
  assert_refused(fake_path("fake_cuda"), hipErrorNoDevice, "CUDA_VISIBLE_DEVICES is \"7\"");
  fake->init_result = CUDA_SUCCESS;
  fake->n_devices = 0;
  assert_refused(fake_path("fake_cuda"), hipErrorNoDevice, "CUDA_VISIBLE_DEVICES is \"7\"");
  fake->n_devices = 2;
  unsetenv("CUDA_VISIBLE_DEVICES");
}

static void a_driver_that_does_not_start_says_why(void **state)
{
  (void)state;
  fake->init_result = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  assert_refused(fake_path("fake_cuda"), hipErrorInsufficientDriver, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
  fake->init_result = (CUresult)802;
  assert_refused(fake_path("fake_cuda"), hipErrorNotInitialized, "CUDA_ERROR_OF_FAKE (as the test wants it)");
  fake->init_result = CUDA_SUCCESS;
}

/* The driver of CUDA 11, which has one cuGetProcAddress. From here on there is a driver. */
static void a_driver_without_the_newest_functions_works_without_them(void **state)
{
  (void)state;
  unsigned long long id = 0;
  hipMemPool_t pool = NULL;
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned};
  int count = 0;
  open_fake("fake_cuda_11");
  fake->hidden[0] = "cuStreamGetId";
  fake->hidden[1] = "cuMemPoolCreate";
  assert_int_equal(create_runtime(fake_path("fake_cuda_11")), HIPMM_OK);
  assert_non_null(strstr(logged_text, "lacks cuStreamGetId, cuMemPoolCreate;"));
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 2);
  assert_error(hipStreamGetId(NULL, &id), hipErrorNotSupported);
  assert_error(hipMemPoolCreate(&pool, &properties), hipErrorNotSupported);
  assert_error(hipGetLastError(), hipErrorNotSupported);
  assert_null(pool);
  assert_ok(hipMemPoolTrimTo(POINTER(FAKE_POOL), 0));
  assert_string_equal(hipGetErrorString(hipErrorNoDevice), "no device");
}

static void a_driver_in_use_is_not_exchanged(void **state)
{
  (void)state;
  int count = 0;
  assert_int_equal(create_runtime(fake_path("fake_cuda_11")), HIPMM_OK);
  assert_int_equal(create_runtime(fake_path("fake_cuda")), HIPMM_E_STATE);
  assert_string_equal(failed_option, "library");
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 2);
}

static int start(void **state)
{
  (void)state;
  open_fake("fake_cuda");
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_driver_there_is_no_device_and_a_reason),
      cmocka_unit_test(a_library_that_is_no_driver_is_refused),
      cmocka_unit_test(a_name_that_is_empty_or_too_long_is_refused),
      cmocka_unit_test(the_toolkits_stub_is_told_from_the_driver),
      cmocka_unit_test(a_driver_without_what_is_needed_is_too_old),
      cmocka_unit_test(many_missing_functions_are_named_in_part),
      cmocka_unit_test(a_driver_without_devices_says_what_hides_them),
      cmocka_unit_test(a_driver_that_does_not_start_says_why),
      cmocka_unit_test(a_driver_without_the_newest_functions_works_without_them),
      cmocka_unit_test(a_driver_in_use_is_not_exchanged),
  };
  return cmocka_run_group_tests_name("nvidia: the driver", tests, start, NULL);
}
