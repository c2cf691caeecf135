/* SPDX-License-Identifier: MIT */
/* test_device.c: which device is current, for this runtime and for CUDA's own; names and attributes of devices. */
#include "runtime.h"
#include <pthread.h>
#include <string.h>

/* CMocka's assertions work in the main thread only, so a thread returns its results. */
struct seen {
  hipError_t errors[4];
  int devices[4];
  CUcontext contexts[4];
};

static void in_thread(void *(*function)(void *), void *argument)
{
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
  pthread_join(thread, NULL);
}

static void *ask(void *argument)
{
  struct seen *seen = argument;
  seen->errors[0] = hipGetDevice(&seen->devices[0]);
  seen->contexts[0] = current();
  return NULL;
}

/* The first test, since a context is never destroyed. */
static void to_ask_for_the_device_makes_no_context(void **state)
{
  (void)state;
  struct seen seen = {.devices = {7}};
  in_thread(ask, &seen);
  assert_ok(seen.errors[0]);
  assert_int_equal(seen.devices[0], 0);
  assert_null(seen.contexts[0]);
  assert_int_equal(fake->retained[0], 0);
}

static void *visit_device_1(void *argument)
{
  struct seen *seen = argument;
  seen->errors[0] = hipSetDevice(1);
  seen->errors[1] = hipGetDevice(&seen->devices[0]);
  seen->contexts[0] = current();
  seen->errors[2] = hipSetDevice(0);
  seen->errors[3] = hipGetDevice(&seen->devices[1]);
  seen->contexts[1] = current();
  return NULL;
}

/* As a stack of device 1 does in a new thread: it must not cost memory of device 0. */
static void a_visit_to_another_device_leaves_no_context_on_the_first(void **state)
{
  (void)state;
  struct seen seen = {.errors = {hipErrorUnknown}};
  in_thread(visit_device_1, &seen);
  for (int i = 0; i < 4; i++) assert_ok(seen.errors[i]);
  assert_int_equal(seen.devices[0], 1);
  assert_ptr_equal(seen.contexts[0], POINTER(FAKE_CONTEXT(1)));
  assert_int_equal(seen.devices[1], 0);
  assert_null(seen.contexts[1]);
  assert_int_equal(fake->retained[0], 0);
  assert_int_equal(fake->retained[1], 1);
}

static void *allocate(void *argument)
{
  struct seen *seen = argument;
  void *ptr;
  seen->errors[0] = hipMalloc(&ptr, 10);
  seen->contexts[0] = current();
  seen->errors[1] = hipMalloc(&ptr, 10);
  return NULL;
}

static void why_a_context_cannot_be_made_is_told(void **state)
{
  (void)state;
  struct seen seen = {.errors = {hipSuccess}};
  fake->fails = "cuDevicePrimaryCtxRetain";
  fake->failure = CUDA_ERROR_OUT_OF_MEMORY;
  in_thread(allocate, &seen);
  assert_error(seen.errors[0], hipErrorOutOfMemory);
  assert_null(seen.contexts[0]);
}

static void a_thread_gets_device_0_when_it_needs_one(void **state)
{
  (void)state;
  struct seen seen = {.errors = {hipErrorUnknown}};
  in_thread(allocate, &seen);
  assert_ok(seen.errors[0]);
  assert_ok(seen.errors[1]);
  assert_ptr_equal(seen.contexts[0], POINTER(FAKE_CONTEXT(0)));
  in_thread(allocate, &seen);
  assert_int_equal(fake->retained[0], 1);
}

/* Once device 0 has its context, the thread gets it, since it costs nothing more. */
static void a_visit_ends_on_the_first_device_if_that_is_in_use(void **state)
{
  (void)state;
  struct seen seen = {.errors = {hipErrorUnknown}};
  in_thread(visit_device_1, &seen);
  for (int i = 0; i < 4; i++) assert_ok(seen.errors[i]);
  assert_int_equal(seen.devices[1], 0);
  assert_ptr_equal(seen.contexts[1], POINTER(FAKE_CONTEXT(0)));
}

static void what_another_library_makes_current_is_seen(void **state)
{
  (void)state;
  int device = -1;
  set_current(POINTER(FAKE_CONTEXT(1)));
  assert_ok(hipGetDevice(&device));
  assert_int_equal(device, 1);
  set_current(POINTER(FAKE_CONTEXT(0)));
  assert_ok(hipGetDevice(&device));
  assert_int_equal(device, 0);
  assert_not_called();
}

static void what_is_set_here_is_the_primary_context(void **state)
{
  (void)state;
  assert_ok(hipSetDevice(1));
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(1)));
  assert_ok(hipSetDevice(0));
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(0)));
}

static void devices_that_are_not_there_are_refused(void **state)
{
  (void)state;
  int value;
  size_t bytes;
  char name[32];
  assert_error(hipSetDevice(2), hipErrorInvalidDevice);
  assert_error(hipSetDevice(-1), hipErrorInvalidDevice);
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(0)));
  assert_error(hipGetDevice(NULL), hipErrorInvalidValue);
  assert_error(hipDeviceGet(&value, 2), hipErrorInvalidDevice);
  assert_error(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 2), hipErrorInvalidDevice);
  assert_error(hipDeviceTotalMem(&bytes, 2), hipErrorInvalidDevice);
  assert_error(hipDeviceGetName(name, sizeof name, 2), hipErrorInvalidDevice);
  assert_error(hipDeviceEnablePeerAccess(2, 0), hipErrorInvalidDevice);
  assert_error(hipDeviceDisablePeerAccess(2), hipErrorInvalidDevice);
  assert_error(hipMemcpyPeer(POINTER(FAKE_ADDRESS), 0, POINTER(FAKE_HOST), 2, 1), hipErrorInvalidDevice);
  assert_error(hipMemcpyPeerAsync(POINTER(FAKE_ADDRESS), 2, POINTER(FAKE_HOST), 0, 1, NULL), hipErrorInvalidDevice);
  assert_not_called();
}

static void nowhere_to_put_the_answer_is_refused(void **state)
{
  (void)state;
  char text[8];
  assert_error(hipDriverGetVersion(NULL), hipErrorInvalidValue);
  assert_error(hipRuntimeGetVersion(NULL), hipErrorInvalidValue);
  assert_error(hipGetDeviceCount(NULL), hipErrorInvalidValue);
  assert_error(hipDeviceGet(NULL, 0), hipErrorInvalidValue);
  assert_error(hipDeviceGetName(NULL, 8, 0), hipErrorInvalidValue);
  assert_error(hipDeviceGetName(text, 0, 0), hipErrorInvalidValue);
  assert_error(hipDeviceGetPCIBusId(NULL, 8, 0), hipErrorInvalidValue);
  assert_error(hipDeviceGetPCIBusId(text, -1, 0), hipErrorInvalidValue);
  assert_error(hipDeviceTotalMem(NULL, 0), hipErrorInvalidValue);
  assert_error(hipDeviceCanAccessPeer(NULL, 0, 1), hipErrorInvalidValue);
  assert_error(hipGetLastError(), hipErrorInvalidValue);
  assert_not_called();
}

static void a_device_whose_context_is_unknown_is_not_set(void **state)
{
  (void)state;
  fake->fails = "cuCtxGetCurrent";
  fake->failure = CUDA_ERROR_DEINITIALIZED;
  assert_error(hipSetDevice(1), hipErrorDeinitialized);
  assert_ptr_equal(current(), POINTER(FAKE_CONTEXT(0)));
}

static void devices_say_what_they_are(void **state)
{
  (void)state;
  char name[32], id[32];
  hipUUID uuid;
  size_t bytes = 0;
  int version = 0, device = -1, least = 1, greatest = 1;
  assert_ok(hipInit(0));
  assert_ok(hipDeviceGet(&device, 1));
  assert_int_equal(device, 1);
  assert_ok(hipDeviceGetName(name, sizeof name, 1));
  assert_string_equal(name, "Fake GPU");
  assert_called("cuDeviceGetName", 1);
  assert_ok(hipDeviceGetPCIBusId(id, sizeof id, 1));
  assert_string_equal(id, "0000:17:00.0");
  assert_called("cuDeviceGetPCIBusId", 1);
  assert_ok(hipDeviceGetByPCIBusId(&device, "0000:17:00.0"));
  assert_int_equal(device, 1);
  assert_called("cuDeviceGetByPCIBusId", 0);
  assert_error(hipDeviceGetByPCIBusId(&device, "0000:18:00.0"), hipErrorInvalidDevice);
  assert_error(hipDeviceGetByPCIBusId(&device, NULL), hipErrorInvalidValue);
  assert_ok(hipDeviceGetUuid(&uuid, 1));
  assert_called("cuDeviceGetUuid", 1);
  assert_int_equal(uuid.bytes[15], 'u');
  assert_error(hipDeviceGetUuid(NULL, 1), hipErrorInvalidValue);
  assert_ok(hipDeviceTotalMem(&bytes, 0));
  assert_int_equal(bytes, 1 << 30);
  assert_ok(hipDriverGetVersion(&version));
  assert_int_equal(version, 13000);
  assert_ok(hipDeviceGetStreamPriorityRange(&least, &greatest));
  assert_int_equal(least, 0);
  assert_int_equal(greatest, -5);
}

static void flags_and_limits_are_the_drivers(void **state)
{
  (void)state;
  unsigned flags = 9;
  size_t value = 0;
  const enum hipLimit_t stack = (enum hipLimit_t)CU_LIMIT_STACK_SIZE; /* which HIP 5.2 has no name for */
  assert_ok(hipSetDevice(1));
  assert_ok(hipSetDeviceFlags(hipDeviceScheduleYield));
  assert_called("cuDevicePrimaryCtxSetFlags", 1, CU_CTX_SCHED_YIELD);
  assert_ok(hipGetDeviceFlags(&flags));
  assert_int_equal(flags, 0);
  assert_error(hipGetDeviceFlags(NULL), hipErrorInvalidValue);
  assert_ok(hipDeviceGetLimit(&value, stack));
  assert_called("cuCtxGetLimit", CU_LIMIT_STACK_SIZE);
  assert_int_equal(value, 1024);
  assert_ok(hipDeviceSetLimit(hipLimitMallocHeapSize, 5000));
  assert_called("cuCtxSetLimit", CU_LIMIT_MALLOC_HEAP_SIZE, 5000);
  assert_error(hipDeviceGetLimit(NULL, stack), hipErrorInvalidValue);
}

static void assert_attribute(int hip, CUdevice_attribute cuda)
{
  int value = -1;
  assert_ok(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)hip, 1));
  assert_int_equal(value, 2000 + (int)cuda);
}

static void attributes_are_asked_for_by_cudas_numbers(void **state)
{
  (void)state;
  assert_attribute(hipDeviceAttributeEccEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  assert_attribute(hipDeviceAttributeConcurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  assert_attribute(hipDeviceAttributeManagedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  assert_attribute(hipDeviceAttributePageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  assert_attribute(hipDeviceAttributeWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  assert_attribute(hipDeviceAttributeMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  assert_attribute(hipDeviceAttributeComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  assert_attribute(hipDeviceAttributeComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  assert_attribute(hipDeviceAttributeMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  assert_attribute(89, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  assert_attribute(90, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
  assert_attribute(91, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
}

/* No two attributes of HIP may be the same attribute of CUDA, except for the two that HIP has twice. */
static void no_attribute_stands_for_two(void **state)
{
  (void)state;
  unsigned used[256] = {0}, known = 0;
  for (int hip = 0; hip < 20000; hip++) {
    int value = -1;
    if (hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)hip, 0) != hipSuccess) continue;
    assert_in_range(value, 1001, 1255);
    known++;
    if (hip != hipDeviceAttributeMaxSharedMemoryPerMultiprocessor) assert_int_equal(used[value - 1000]++, 0);
  }
  assert_int_equal(known, 77);
}

static void attributes_of_amd_alone_are_no_attributes(void **state)
{
  (void)state;
  int value = 5;
  assert_error(hipDeviceGetAttribute(&value, hipDeviceAttributeHdpMemFlushCntl, 0), hipErrorInvalidValue);
  assert_error(hipDeviceGetAttribute(&value, hipDeviceAttributeTotalGlobalMem, 0), hipErrorInvalidValue);
  assert_error(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)-1, 0), hipErrorInvalidValue);
  assert_error(hipDeviceGetAttribute(NULL, hipDeviceAttributeWarpSize, 0), hipErrorInvalidValue);
  assert_int_equal(value, 5);
  assert_not_called();
}

static void peers_are_given_by_their_primary_contexts(void **state)
{
  (void)state;
  int can_access = -1;
  assert_ok(hipDeviceCanAccessPeer(&can_access, 0, 1));
  assert_int_equal(can_access, 1);
  assert_called("cuDeviceCanAccessPeer", 0, 1);
  assert_ok(hipDeviceEnablePeerAccess(1, 0));
  assert_called("cuCtxEnablePeerAccess", 1, 0);
  assert_ok(hipDeviceDisablePeerAccess(1));
  assert_called("cuCtxDisablePeerAccess", 1);
}

static void a_device_is_waited_for(void **state)
{
  (void)state;
  assert_ok(hipSetDevice(1));
  assert_ok(hipDeviceSynchronize());
  assert_called("cuCtxSynchronize", 1);
  fake->fails = "cuCtxSynchronize";
  fake->failure = CUDA_ERROR_ILLEGAL_ADDRESS;
  assert_error(hipDeviceSynchronize(), hipErrorIllegalAddress);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(to_ask_for_the_device_makes_no_context, start_test),
      cmocka_unit_test_setup(a_visit_to_another_device_leaves_no_context_on_the_first, start_test),
      cmocka_unit_test_setup(why_a_context_cannot_be_made_is_told, start_test),
      cmocka_unit_test_setup(a_thread_gets_device_0_when_it_needs_one, start_test),
      cmocka_unit_test_setup(a_visit_ends_on_the_first_device_if_that_is_in_use, start_test),
      cmocka_unit_test_setup(what_another_library_makes_current_is_seen, start_test),
      cmocka_unit_test_setup(what_is_set_here_is_the_primary_context, start_test),
      cmocka_unit_test_setup(devices_that_are_not_there_are_refused, start_test),
      cmocka_unit_test_setup(nowhere_to_put_the_answer_is_refused, start_test),
      cmocka_unit_test_setup(a_device_whose_context_is_unknown_is_not_set, start_test),
      cmocka_unit_test_setup(devices_say_what_they_are, start_test),
      cmocka_unit_test_setup(flags_and_limits_are_the_drivers, start_test),
      cmocka_unit_test_setup(attributes_are_asked_for_by_cudas_numbers, start_test),
      cmocka_unit_test_setup(no_attribute_stands_for_two, start_test),
      cmocka_unit_test_setup(attributes_of_amd_alone_are_no_attributes, start_test),
      cmocka_unit_test_setup(peers_are_given_by_their_primary_contexts, start_test),
      cmocka_unit_test_setup(a_device_is_waited_for, start_test),
  };
  return cmocka_run_group_tests_name("nvidia: devices", tests, start_runtime, NULL);
}
