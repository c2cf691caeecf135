/* SPDX-License-Identifier: MIT */
/* test_device.c: what devices there are, what they say of themselves, which is current, and what is refused. */
#include "device.h"

static void there_are_as_many_devices_as_configured(void **state)
{
  (void)state;
  int count, device = -1;
  assert_ok(hipInit(0));
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 2);
  assert_ok(hipDeviceGet(&device, 1));
  assert_int_equal(device, 1);
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.devices = 64;
  restart(&config);
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 64);
  assert_ok(hipSetDevice(63));
  hipFree(allocate(100));
}

static void *current_of_thread(void *argument)
{
  hipGetDevice(argument);
  return NULL;
}

static void each_thread_has_its_current_device(void **state)
{
  (void)state;
  int mine, theirs = -1;
  pthread_t thread;
  assert_ok(hipSetDevice(1));
  assert_int_equal(pthread_create(&thread, NULL, current_of_thread, &theirs), 0);
  pthread_join(thread, NULL);
  assert_ok(hipGetDevice(&mine));
  assert_int_equal(mine, 1);
  assert_int_equal(theirs, 0);
}

static void devices_say_what_they_are(void **state)
{
  (void)state;
  char name[64], bus[16];
  size_t bytes;
  int version, value;
  assert_ok(hipDeviceGetName(name, sizeof name, 0));
  assert_string_equal(name, "hipmm software device");
  assert_ok(hipDeviceGetName(name, 6, 0));
  assert_string_equal(name, "hipmm");
  assert_ok(hipDeviceGetPCIBusId(bus, sizeof bus, 1));
  assert_string_equal(bus, "0000:01:00.0");
  assert_ok(hipDeviceTotalMem(&bytes, 1));
  assert_int_equal(bytes, 64 * MIB);
  assert_ok(hipRuntimeGetVersion(&version));
  assert_int_equal(version, HIP_VERSION);
  assert_ok(hipDriverGetVersion(&version));
  assert_ok(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
  assert_int_equal(value, 64);
  hipDeviceProp_t properties;
  assert_ok(hipGetDeviceProperties(&properties, 1));
  assert_int_equal(properties.totalGlobalMem, 64 * MIB);
  assert_string_equal(properties.name, "hipmm software device");
}

static int attribute(int which)
{
  int value = -1;
  assert_ok(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)which, 0));
  return value;
}

static void attributes_follow_the_configuration(void **state)
{
  (void)state;
  const int virtual_memory = hipDeviceAttributeMemoryPoolsSupported + 1;
  assert_int_equal(attribute(hipDeviceAttributeMemoryPoolsSupported), 1);
  assert_int_equal(attribute(virtual_memory), 1);
  assert_int_equal(attribute(hipDeviceAttributeManagedMemory), 1);
  assert_int_equal(attribute(hipDeviceAttributePageableMemoryAccess), 0);
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.memory_pools = config.virtual_memory = config.managed_memory = false;
  config.pageable_memory_access = true;
  restart(&config);
  assert_int_equal(attribute(hipDeviceAttributeMemoryPoolsSupported), 0);
  assert_int_equal(attribute(virtual_memory), 0);
  assert_int_equal(attribute(hipDeviceAttributeManagedMemory), 0);
  assert_int_equal(attribute(hipDeviceAttributeConcurrentManagedAccess), 0);
  assert_int_equal(attribute(hipDeviceAttributePageableMemoryAccess), 1);
}

static void what_the_device_lacks_is_not_supported(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.memory_pools = config.virtual_memory = config.managed_memory = false;
  restart(&config);
  void *memory = NULL;
  hipMemPool_t pool;
  assert_hip(hipMallocManaged(&memory, 10, hipMemAttachGlobal), hipErrorNotSupported);
  assert_hip(hipMallocAsync(&memory, 10, NULL), hipErrorNotSupported);
  assert_hip(hipFreeAsync(memory, NULL), hipErrorNotSupported);
  assert_hip(hipDeviceGetDefaultMemPool(&pool, 0), hipErrorNotSupported);
  assert_hip(hipMemAddressReserve(&memory, 2 * MIB, 0, NULL, 0), hipErrorNotSupported);
  assert_null(memory);
}

static void devices_that_do_not_exist_are_refused(void **state)
{
  (void)state;
  char text[16];
  size_t bytes;
  int value;
  hipDeviceProp_t properties;
  hipMemPool_t pool;
  const int wrong[] = {-1, 2, 64, 1000000};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_hip(hipSetDevice(wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceGet(&value, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceGetName(text, sizeof text, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceGetPCIBusId(text, sizeof text, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceTotalMem(&bytes, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipGetDeviceProperties(&properties, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceCanAccessPeer(&value, 0, wrong[i]), hipErrorInvalidDevice);
    assert_hip(hipDeviceEnablePeerAccess(wrong[i], 0), hipErrorInvalidDevice);
    assert_hip(hipDeviceGetMemPool(&pool, wrong[i]), hipErrorInvalidDevice);
  }
  assert_ok(hipGetDevice(&value));
  assert_int_equal(value, 0);
}

static void missing_outputs_are_refused(void **state)
{
  (void)state;
  char text[16];
  assert_hip(hipInit(1), hipErrorInvalidValue);
  assert_hip(hipGetDeviceCount(NULL), hipErrorInvalidValue);
  assert_hip(hipGetDevice(NULL), hipErrorInvalidValue);
  assert_hip(hipDeviceGet(NULL, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetName(NULL, 5, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetName(text, 0, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetPCIBusId(NULL, 5, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceTotalMem(NULL, 0), hipErrorInvalidValue);
  assert_hip(hipRuntimeGetVersion(NULL), hipErrorInvalidValue);
  assert_hip(hipDriverGetVersion(NULL), hipErrorInvalidValue);
  assert_hip(hipGetDeviceProperties(NULL, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceGetAttribute(NULL, hipDeviceAttributeWarpSize, 0), hipErrorInvalidValue);
  assert_hip(hipDeviceCanAccessPeer(NULL, 0, 1), hipErrorInvalidValue);
  int value;
  assert_hip(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)9998, 0), hipErrorInvalidValue);
}

static void peer_access_is_switched_on_and_off_once(void **state)
{
  (void)state;
  int can;
  assert_ok(hipDeviceCanAccessPeer(&can, 0, 1));
  assert_int_equal(can, 1);
  assert_ok(hipDeviceCanAccessPeer(&can, 1, 1));
  assert_int_equal(can, 0);
  assert_hip(hipDeviceDisablePeerAccess(1), hipErrorPeerAccessNotEnabled);
  assert_ok(hipDeviceEnablePeerAccess(1, 0));
  assert_hip(hipDeviceEnablePeerAccess(1, 0), hipErrorPeerAccessAlreadyEnabled);
  assert_ok(hipDeviceDisablePeerAccess(1));
  assert_hip(hipDeviceEnablePeerAccess(0, 0), hipErrorInvalidDevice);
  assert_hip(hipDeviceEnablePeerAccess(1, 7), hipErrorInvalidValue);
}

static void devices_of_other_groups_are_out_of_reach(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  hipMemPool_t pool;
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, 2}, hipMemAccessFlagsProtReadWrite};
  int can = -1;
  config.devices = 4;
  config.peer_group = 2;
  restart(&config);
  for (int i = 0; i < 16; i++) {
    assert_ok(hipDeviceCanAccessPeer(&can, i / 4, i % 4));
    assert_int_equal(can, i / 4 != i % 4 && i / 4 / 2 == i % 4 / 2);
  }
  assert_hip(hipDeviceEnablePeerAccess(2, 0), hipErrorPeerAccessUnsupported);
  assert_ok(hipDeviceEnablePeerAccess(1, 0));
  assert_ok(hipDeviceGetDefaultMemPool(&pool, 0));
  assert_hip(hipMemPoolSetAccess(pool, &access, 1), hipErrorInvalidDevice);
  char *memory = allocate(100), host[100] = "hipmm";
  assert_ok(hipSetDevice(2));
  assert_ok(hipMemcpy(memory, host, 100, hipMemcpyHostToDevice)); /* by staging */
  assert_hip(hipMemset(memory, 1, 100), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
}

static void a_device_reset_takes_all_of_that_device(void **state)
{
  (void)state;
  hipStream_t stream, other_stream;
  hipEvent_t event;
  void *pooled;
  size_t free_bytes, total_bytes;
  assert_ok(hipSetDevice(1));
  char *other = allocate(100);
  assert_ok(hipStreamCreate(&other_stream));
  assert_ok(hipSetDevice(0));
  char *memory = allocate(MIB);
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipEventCreate(&event));
  assert_ok(hipMallocAsync(&pooled, 1000, stream));
  assert_ok(hipMemsetAsync(memory, 1, MIB, stream));
  assert_ok(hipDeviceReset());
  assert_hip(hipFree(memory), hipErrorInvalidValue);
  assert_hip(hipStreamSynchronize(stream), hipErrorInvalidHandle);
  assert_hip(hipEventQuery(event), hipErrorInvalidHandle);
  assert_ok(hipMemGetInfo(&free_bytes, &total_bytes));
  assert_int_equal(free_bytes, total_bytes);
  assert_ok(hipStreamSynchronize(other_stream));
  assert_ok(hipStreamDestroy(other_stream));
  assert_ok(hipFree(other));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"there are as many devices as configured", there_are_as_many_devices_as_configured, start_threads, finish, NULL},
      {"each thread has its current device", each_thread_has_its_current_device, start_threads, finish, NULL},
      {"devices say what they are", devices_say_what_they_are, start_threads, finish, NULL},
      {"attributes follow the configuration", attributes_follow_the_configuration, start_threads, finish, NULL},
      {"what the device lacks is not supported", what_the_device_lacks_is_not_supported, start_threads, finish, NULL},
      {"devices that do not exist are refused", devices_that_do_not_exist_are_refused, start_threads, finish, NULL},
      {"missing outputs are refused", missing_outputs_are_refused, start_threads, finish, NULL},
      {"peer access is switched on and off once", peer_access_is_switched_on_and_off_once, start_threads, finish, NULL},
      {"devices of other groups are out of reach", devices_of_other_groups_are_out_of_reach, start_threads, finish,
       NULL},
      {"a device reset takes all of that device (threads)", a_device_reset_takes_all_of_that_device, start_threads,
       finish, NULL},
      {"a device reset takes all of that device (stepped)", a_device_reset_takes_all_of_that_device, start_stepped,
       finish, NULL},
  };
  return cmocka_run_group_tests_name("software: devices", tests, NULL, NULL);
}
