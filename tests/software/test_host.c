/* SPDX-License-Identifier: MIT */
/* test_host.c: pinned, registered and managed memory. */
#include "device.h"
#include <stdlib.h>

static size_t free_bytes(void)
{
  size_t available, total;
  assert_ok(hipMemGetInfo(&available, &total));
  return available;
}

static void pinned_memory_is_for_host_and_device(void **state)
{
  (void)state;
  void *pinned, *seen;
  unsigned flags;
  hipPointerAttribute_t attributes;
  assert_ok(hipHostMalloc(&pinned, 1000, hipHostMallocPortable));
  assert_ok(hipHostGetDevicePointer(&seen, (char *)pinned + 10, 0));
  assert_ptr_equal(seen, (char *)pinned + 10);
  assert_ok(hipMemset(seen, 7, 100));
  assert_true(is_filled(seen, 7, 100));
  assert_ok(hipHostGetFlags(&flags, pinned));
  assert_int_equal(flags, hipHostMallocPortable);
  assert_ok(hipPointerGetAttributes(&attributes, pinned));
  assert_int_equal(memory_type(&attributes), hipMemoryTypeHost);
  assert_ptr_equal(attributes.hostPointer, pinned);
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipHostFree(pinned));
  assert_hip(hipHostFree(pinned), hipErrorInvalidValue);
}

static void pinned_memory_has_three_names(void **state)
{
  (void)state;
  void *pinned;
  assert_ok(hipMallocHost(&pinned, 10));
  assert_ok(hipFreeHost(pinned));
  assert_ok(hipHostAlloc(&pinned, 10, 0));
  assert_ok(hipHostFree(pinned));
  assert_ok(hipHostMalloc(&pinned, 0, 0));
  assert_null(pinned);
  assert_ok(hipHostFree(NULL));
}

static void wrong_pinned_memory_is_refused(void **state)
{
  (void)state;
  void *pinned = (void *)1, *device_pointer;
  unsigned flags;
  char *memory = allocate(100), local;
  assert_hip(hipHostMalloc(NULL, 10, 0), hipErrorInvalidValue);
  assert_hip(hipHostMalloc(&pinned, 10, 0x100), hipErrorInvalidValue);
  assert_hip(hipHostMalloc(&pinned, SIZE_MAX, 0), hipErrorOutOfMemory);
  assert_ptr_equal(pinned, (void *)1);
  assert_hip(hipHostFree(memory), hipErrorInvalidValue);
  assert_hip(hipHostFree(&local), hipErrorInvalidValue);
  assert_hip(hipHostGetDevicePointer(&device_pointer, &local, 0), hipErrorInvalidValue);
  assert_hip(hipHostGetFlags(&flags, memory), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
}

static void registered_memory_is_asynchronous_until_unregistered(void **state)
{
  (void)state;
  int go = 0;
  hipStream_t stream;
  char *memory = allocate(1000), *host = malloc(1000);
  assert_ok(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  assert_ok(hipHostRegister(host, 1000, hipHostRegisterDefault));
  assert_hip(hipHostRegister(host + 500, 1000, 0), hipErrorHostMemoryAlreadyRegistered);
  assert_hip(hipHostRegister(host + 500, 10, 0), hipErrorHostMemoryAlreadyRegistered);
  assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
  assert_ok(hipMemsetAsync(memory, 3, 1000, stream));
  assert_ok(hipMemcpyAsync(host, memory, 1000, hipMemcpyDeviceToHost, stream));
  count_up(&go);
  assert_ok(hipHostUnregister(host)); /* waits */
  assert_true(is_filled(host, 3, 1000));
  assert_hip(hipHostUnregister(host), hipErrorHostMemoryNotRegistered);
  assert_hip(hipHostUnregister(memory), hipErrorHostMemoryNotRegistered);
  assert_hip(hipHostRegister(NULL, 10, 0), hipErrorInvalidValue);
  assert_hip(hipHostRegister(host, 0, 0), hipErrorInvalidValue);
  assert_hip(hipHostRegister(host, 10, 0x1000), hipErrorInvalidValue);
  assert_hip(hipHostRegister(memory, 10, 0), hipErrorHostMemoryAlreadyRegistered);
  free(host);
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipFree(memory));
}

static void managed_memory_may_exceed_the_device(void **state)
{
  (void)state;
  void *managed;
  hipPointerAttribute_t attributes;
  assert_ok(hipMallocManaged(&managed, 100 * MIB, hipMemAttachGlobal));
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipMemset((char *)managed + 99 * MIB, 4, MIB));
  assert_true(is_filled((char *)managed + 99 * MIB, 4, MIB));
  assert_ok(hipPointerGetAttributes(&attributes, managed));
  assert_int_equal(attributes.isManaged, 1);
  assert_ok(hipFree(managed));
  assert_hip(hipMallocManaged(&managed, 10, 0), hipErrorInvalidValue);
  assert_hip(hipMallocManaged(NULL, 10, hipMemAttachGlobal), hipErrorInvalidValue);
}

static int range_attribute(const void *memory, hipMemRangeAttribute attribute)
{
  int value = -99;
  assert_ok(hipMemRangeGetAttribute(&value, sizeof value, attribute, memory, 10));
  return value;
}

static void advice_and_prefetches_are_kept(void **state)
{
  (void)state;
  void *managed;
  assert_ok(hipMallocManaged(&managed, 10000, hipMemAttachGlobal));
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeLastPrefetchLocation), hipInvalidDeviceId);
  assert_ok(hipMemPrefetchAsync(managed, 10000, 1, NULL));
  assert_ok(hipMemAdvise(managed, 10000, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseSetReadMostly, 0));
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseSetCoarseGrain, 0));
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeLastPrefetchLocation), 1);
  assert_int_equal(range_attribute(managed, hipMemRangeAttributePreferredLocation), hipCpuDeviceId);
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeReadMostly), 1);
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseUnsetReadMostly, 0));
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeReadMostly), 0);
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeCoherencyMode), hipMemRangeCoherencyModeCoarseGrain);
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseUnsetCoarseGrain, 0));
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeCoherencyMode), hipMemRangeCoherencyModeFineGrain);
  assert_ok(hipFree(managed));
}

static void who_accesses_managed_memory_is_kept(void **state)
{
  (void)state;
  void *managed;
  int devices[4];
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseSetAccessedBy, 1));
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseSetAccessedBy, 0));
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseSetAccessedBy, hipCpuDeviceId));
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseUnsetAccessedBy, 0));
  assert_ok(hipMemRangeGetAttribute(devices, sizeof devices, hipMemRangeAttributeAccessedBy, managed, 10));
  assert_int_equal(devices[0], hipCpuDeviceId);
  assert_int_equal(devices[1], 1);
  assert_int_equal(devices[2], hipInvalidDeviceId);
  assert_int_equal(devices[3], hipInvalidDeviceId);
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeAccessedBy), hipCpuDeviceId);
  assert_hip(hipMemRangeGetAttribute(devices, 0, hipMemRangeAttributeAccessedBy, managed, 10), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttribute(devices, 7, hipMemRangeAttributeAccessedBy, managed, 10), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttribute(devices, 8, hipMemRangeAttributeReadMostly, managed, 10), hipErrorInvalidValue);
  assert_ok(hipFree(managed));
}

static void wrong_advice_and_prefetches_are_refused(void **state)
{
  (void)state;
  char *memory = allocate(100), local[10];
  void *managed;
  int value;
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_hip(hipMemPrefetchAsync(memory, 100, 0, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync(local, 10, 0, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync(managed, 101, 0, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync(managed, 100, 2, NULL), hipErrorInvalidDevice);
  assert_hip(hipMemAdvise(managed, 100, (hipMemoryAdvise)99, 0), hipErrorInvalidValue);
  assert_hip(hipMemAdvise(memory, 100, hipMemAdviseSetReadMostly, 0), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttribute(&value, 1, hipMemRangeAttributeReadMostly, managed, 10), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttribute(&value, 4, (hipMemRangeAttribute)50, managed, 10), hipErrorInvalidValue);
  assert_ok(hipFree(managed));
  assert_ok(hipFree(memory));
}

static void devices_reach_pageable_memory_if_configured(void **state)
{
  (void)state;
  char local[100] = "";
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.pageable_memory_access = true;
  restart(&config);
  assert_ok(hipMemset(local, 6, 100));
  assert_true(is_filled(local, 6, 100));
  assert_ok(hipMemPrefetchAsync(local, 100, 0, NULL));
  assert_ok(hipMemAdvise(local, 100, hipMemAdviseSetPreferredLocation, 0));
  assert_ok(hipDeviceSynchronize());
}

/* The host is as finite as a device: what is pinned, and what managed memory lies on, are taken from its memory. */
static void host_memory_is_limited(void **state)
{
  (void)state;
  void *pinned, *managed, *refused = NULL;
  assert_hip(hipHostMalloc(&refused, software.config.host_memory_bytes + 1, 0), hipErrorOutOfMemory);
  assert_hip(hipMallocManaged(&refused, (size_t)32 << 40, hipMemAttachGlobal), hipErrorOutOfMemory);
  assert_null(refused);
  assert_ok(hipMallocManaged(&managed, software.config.host_memory_bytes, hipMemAttachGlobal));
  assert_hip(hipHostMalloc(&refused, 1, 0), hipErrorOutOfMemory);
  assert_hip(hipGetLastError(), hipErrorOutOfMemory);
  assert_ok(hipFree(managed));
  struct software_config config = small_config(SOFTWARE_STEPPED);
  config.host_memory_bytes = 8 * MIB;
  restart(&config);
  assert_ok(hipHostMalloc(&pinned, 3 * MIB, 0));
  assert_ok(hipSetDevice(1));
  assert_ok(hipMallocManaged(&managed, 4 * MIB, hipMemAttachGlobal));
  assert_hip(hipMallocManaged(&refused, MIB + 1, hipMemAttachGlobal), hipErrorOutOfMemory);
  assert_ok(hipHostFree(pinned));
  assert_ok(hipHostMalloc(&pinned, 4 * MIB, 0));
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipHostFree(pinned));
  assert_ok(hipFree(managed));
}

/* Memory that a managed pool keeps in reserve is had back when it is wanted. */
static void host_memory_of_pools_is_had_back(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_STEPPED);
  hipMemPoolProps properties = {.allocType = (hipMemAllocationType)2, .location = {hipMemLocationTypeDevice, 0}};
  uint64_t threshold = UINT64_MAX;
  hipMemPool_t pool;
  void *pooled, *refused = NULL, *pinned;
  config.host_memory_bytes = 8 * MIB;
  restart(&config);
  assert_ok(hipMemPoolCreate(&pool, &properties));
  assert_ok(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
  assert_hip(hipMallocFromPoolAsync(&refused, 9 * MIB, pool, NULL), hipErrorOutOfMemory);
  assert_ok(hipMallocFromPoolAsync(&pooled, 6 * MIB, pool, NULL));
  assert_hip(hipHostMalloc(&refused, 3 * MIB, 0), hipErrorOutOfMemory);
  assert_ok(hipFreeAsync(pooled, NULL));
  assert_ok(hipSetDevice(1));
  assert_ok(hipHostMalloc(&pinned, 3 * MIB, 0));
  assert_ok(hipHostFree(pinned));
  assert_ok(hipMemPoolDestroy(pool));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"pinned memory is for host and device (threads)", pinned_memory_is_for_host_and_device, start_threads, finish,
       NULL},
      {"pinned memory is for host and device (stepped)", pinned_memory_is_for_host_and_device, start_stepped, finish,
       NULL},
      {"pinned memory has three names", pinned_memory_has_three_names, start_threads, finish, NULL},
      {"wrong pinned memory is refused", wrong_pinned_memory_is_refused, start_threads, finish, NULL},
      {"host memory is limited", host_memory_is_limited, start_threads, finish, NULL},
      {"host memory of pools is had back", host_memory_of_pools_is_had_back, start_threads, finish, NULL},
      {"registered memory is asynchronous until unregistered", registered_memory_is_asynchronous_until_unregistered,
       start_threads, finish, NULL},
      {"managed memory may exceed the device (threads)", managed_memory_may_exceed_the_device, start_threads, finish,
       NULL},
      {"managed memory may exceed the device (stepped)", managed_memory_may_exceed_the_device, start_stepped, finish,
       NULL},
      {"advice and prefetches are kept (threads)", advice_and_prefetches_are_kept, start_threads, finish, NULL},
      {"advice and prefetches are kept (stepped)", advice_and_prefetches_are_kept, start_stepped, finish, NULL},
      {"who accesses managed memory is kept", who_accesses_managed_memory_is_kept, start_stepped, finish, NULL},
      {"wrong advice and prefetches are refused", wrong_advice_and_prefetches_are_refused, start_threads, finish, NULL},
      {"devices reach pageable memory if configured (threads)", devices_reach_pageable_memory_if_configured,
       start_threads, finish, NULL},
      {"devices reach pageable memory if configured (stepped)", devices_reach_pageable_memory_if_configured,
       start_stepped, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: host memory", tests, NULL, NULL);
}
