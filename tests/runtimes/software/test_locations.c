/* SPDX-License-Identifier: MIT */
/* test_locations.c: what HIP 7 names by its location: pools, memory of the host behind handles, access for the host; and
 * descriptors for ranges of addresses. */
#include "device.h"
#include <fcntl.h>
#include <unistd.h>

#define GRANULE (2 * MIB)

static const hipMemAllocationType pinned = hipMemAllocationTypePinned, managed = (hipMemAllocationType)2;
static hipMemLocation here = {hipMemLocationTypeDevice, 0}, there = {hipMemLocationTypeDevice, 1},
                      host = {(hipMemLocationType)SOFTWARE_LOCATION_HOST, 0},
                      node = {(hipMemLocationType)SOFTWARE_LOCATION_HOST_NUMA, 0},
                      other_node = {(hipMemLocationType)SOFTWARE_LOCATION_HOST_NUMA, 1};

/* ---- Pools ---- */

static void a_device_has_two_pools_by_location(void **state)
{
  (void)state;
  hipMemPool_t one, other;
  assert_ok(hipMemGetDefaultMemPool(&one, &here, pinned));
  assert_ptr_equal(one, default_pool());
  assert_ok(hipMemGetMemPool(&other, &here, pinned));
  assert_ptr_equal(other, one);
  assert_ok(hipMemGetDefaultMemPool(&other, &here, managed));
  assert_ptr_not_equal(other, one);
  assert_ok(hipMemGetDefaultMemPool(&one, &here, managed));
  assert_ptr_equal(other, one);
  assert_ok(hipMemGetDefaultMemPool(&one, &there, managed));
  assert_ptr_not_equal(other, one);
  char *memory;
  size_t before = free_bytes();
  assert_ok(hipMallocFromPoolAsync((void **)&memory, MIB, other, NULL));
  assert_ok(hipStreamSynchronize(NULL));
  assert_int_equal(free_bytes(), before); /* managed memory is the host's */
  memset(memory, 3, MIB);
  assert_ok(hipFreeAsync(memory, NULL));
  assert_ok(hipStreamSynchronize(NULL));
}

static void the_current_pool_is_set_by_location(void **state)
{
  (void)state;
  hipMemPoolProps properties = {.allocType = pinned, .location = here};
  hipMemPool_t own, managed_own, found;
  assert_ok(hipMemPoolCreate(&own, &properties));
  properties.allocType = managed;
  assert_ok(hipMemPoolCreate(&managed_own, &properties));
  assert_ok(hipMemSetMemPool(&here, pinned, own));
  assert_ok(hipMemSetMemPool(&here, managed, managed_own));
  assert_ok(hipDeviceGetMemPool(&found, 0));
  assert_ptr_equal(found, own);
  assert_ok(hipMemGetMemPool(&found, &here, managed));
  assert_ptr_equal(found, managed_own);
  void *memory;
  assert_ok(hipMallocAsync(&memory, MIB, NULL));
  assert_int_equal(pool_amount(own, hipMemPoolAttrUsedMemCurrent), MIB);
  assert_ok(hipFree(memory));
  assert_hip(hipMemSetMemPool(&here, managed, own), hipErrorInvalidValue);
  assert_hip(hipMemSetMemPool(&there, pinned, own), hipErrorInvalidValue);
  assert_hip(hipMemSetMemPool(&here, pinned, NULL), hipErrorInvalidValue);
  assert_ok(hipMemPoolDestroy(own)); /* the default pools are current again */
  assert_ok(hipMemPoolDestroy(managed_own));
  assert_hip(hipMemSetMemPool(&here, pinned, own), hipErrorInvalidValue);
  assert_ok(hipMemGetMemPool(&found, &here, pinned));
  assert_ptr_equal(found, default_pool());
  assert_ok(hipMemGetDefaultMemPool(&found, &here, managed));
  assert_hip(hipMemPoolDestroy(found), hipErrorInvalidValue);
}

static void other_locations_have_no_pools(void **state)
{
  (void)state;
  hipMemLocation nowhere = {hipMemLocationTypeInvalid, 0}, absent = {hipMemLocationTypeDevice, 2},
                 negative = {hipMemLocationTypeDevice, -1};
  hipMemLocation *const wrong[] = {NULL, &nowhere, &absent, &negative, &host, &node};
  hipMemPool_t pool;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_hip(hipMemGetDefaultMemPool(&pool, wrong[i], pinned), hipErrorInvalidValue);
    assert_hip(hipMemGetMemPool(&pool, wrong[i], pinned), hipErrorInvalidValue);
    assert_hip(hipMemSetMemPool(wrong[i], pinned, default_pool()), hipErrorInvalidValue);
  }
  assert_hip(hipMemGetDefaultMemPool(NULL, &here, pinned), hipErrorInvalidValue);
  assert_hip(hipMemGetMemPool(NULL, &here, pinned), hipErrorInvalidValue);
  assert_hip(hipMemGetMemPool(&pool, &here, hipMemAllocationTypeInvalid), hipErrorInvalidValue);
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.managed_memory = false;
  restart(&config);
  assert_hip(hipMemGetDefaultMemPool(&pool, &here, managed), hipErrorNotSupported);
  config.memory_pools = false;
  restart(&config);
  assert_hip(hipMemGetDefaultMemPool(&pool, &here, pinned), hipErrorNotSupported);
}

/* ---- Memory of the host ---- */

static hipMemGenericAllocationHandle_t create_at(hipMemLocation location)
{
  hipMemGenericAllocationHandle_t handle;
  const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned, .location = location};
  assert_ok(hipMemCreate(&handle, GRANULE, &properties, 0));
  return handle;
}

static char *map(hipMemGenericAllocationHandle_t handle)
{
  void *start;
  assert_ok(hipMemAddressReserve(&start, GRANULE, 0, NULL, 0));
  assert_ok(hipMemMap(start, GRANULE, 0, handle, 0));
  assert_ok(hipMemRelease(handle));
  return start;
}

static void allow(char *start, hipMemLocation location, hipMemAccessFlags flags)
{
  hipMemAccessDesc access = {location, flags};
  unsigned long long found = 77;
  assert_ok(hipMemSetAccess(start, GRANULE, &access, 1));
  assert_ok(hipMemGetAccess(&found, &location, start));
  assert_int_equal(found, flags);
}

static void unmap(char *start)
{
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_ok(hipMemAddressFree(start, GRANULE));
}

static void physical_memory_may_be_the_hosts(void **state)
{
  (void)state;
  const hipMemLocation locations[] = {host, node, {(hipMemLocationType)SOFTWARE_LOCATION_HOST_NEAR, 9}};
  hipPointerAttribute_t attributes;
  size_t before = free_bytes();
  for (size_t i = 0; i < 3; i++) {
    char *start = map(create_at(locations[i]));
    assert_int_equal(free_bytes(), before);
    assert_int_equal(software.host_used_bytes, GRANULE);
    allow(start, host, hipMemAccessFlagsProtReadWrite);
    memset(start, (int)i + 1, GRANULE);
    assert_hip(hipMemset(start, 9, GRANULE), hipErrorInvalidValue); /* no device has access */
    allow(start, there, hipMemAccessFlagsProtReadWrite);
    allow(start, here, hipMemAccessFlagsProtReadWrite);
    assert_true(is_filled(start, (int)i + 1, GRANULE));
    assert_ok(hipMemset(start, 9, GRANULE));
    assert_ok(hipDeviceSynchronize());
    assert_int_equal(start[GRANULE - 1], 9);
    assert_ok(hipPointerGetAttributes(&attributes, start + 5));
    assert_int_equal(memory_type(&attributes), hipMemoryTypeHost);
    assert_ptr_equal(attributes.hostPointer, start + 5);
    unmap(start);
    assert_int_equal(software.host_used_bytes, 0);
  }
}

static void the_host_has_access_of_its_own(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.no_host_access = true; /* or the host had the device's access */
  restart(&config);
  char *start = map(create_at(here));
  unsigned long long found = 77;
  allow(start, here, hipMemAccessFlagsProtReadWrite);
  assert_ok(hipMemGetAccess(&found, &host, start));
  assert_int_equal(found, hipMemAccessFlagsProtNone);
  assert_ok(hipMemset(start, 5, GRANULE));
  assert_ok(hipDeviceSynchronize());
  allow(start, host, hipMemAccessFlagsProtRead);
  assert_int_equal(start[GRANULE - 1], 5);
  allow(start, here, hipMemAccessFlagsProtReadWrite); /* leaves the host's */
  assert_int_equal(start[0], 5);
  unmap(start);
}

static void other_nodes_and_too_much_are_refused(void **state)
{
  (void)state;
  hipMemGenericAllocationHandle_t handle;
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned, .location = other_node};
  hipMemAccessDesc access = {other_node, hipMemAccessFlagsProtReadWrite};
  unsigned long long flags;
  size_t granularity;
  assert_hip(hipMemCreate(&handle, GRANULE, &properties, 0), hipErrorInvalidValue);
  assert_hip(hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityMinimum),
             hipErrorInvalidValue);
  properties.location = node;
  assert_ok(hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityMinimum));
  assert_hip(hipMemCreate(&handle, software.config.host_memory_bytes + GRANULE, &properties, 0), hipErrorOutOfMemory);
  char *start = map(create_at(node));
  assert_hip(hipMemSetAccess(start, GRANULE, &access, 1), hipErrorInvalidValue);
  assert_hip(hipMemGetAccess(&flags, &other_node, start), hipErrorInvalidValue);
  unmap(start);
}

/* ---- Ranges of addresses ---- */

static int range_of(void *start, size_t bytes)
{
  int fd = -1;
  assert_ok(hipMemGetHandleForAddressRange(&fd, start, bytes, hipMemRangeHandleTypeDmaBufFd, 0));
  assert_true(fd > STDERR_FILENO);
  assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  return fd;
}

/* What is read and written through the descriptor is the memory. */
static void assert_range(char *start, size_t bytes)
{
  static char data[8 * 4096];
  assert_true(bytes <= sizeof data);
  assert_ok(hipMemset(start, 7, bytes));
  assert_ok(hipDeviceSynchronize());
  int fd = range_of(start, bytes);
  off_t begin = lseek(fd, 0, SEEK_CUR);
  assert_int_equal(read(fd, data, bytes), (ssize_t)bytes);
  for (size_t i = 0; i < bytes; i++) assert_int_equal(data[i], 7);
  memset(data, 9, bytes);
  assert_int_equal(pwrite(fd, data, bytes, begin), (ssize_t)bytes);
  assert_true(is_filled(start, 9, bytes));
  close(fd);
}

static void ranges_of_device_memory_have_descriptors(void **state)
{
  (void)state;
  char *plain = allocate(MIB), *pooled = allocate_on(NULL, MIB), *mapped = map(create_at(here));
  allow(mapped, here, hipMemAccessFlagsProtReadWrite);
  char *const starts[] = {plain, pooled, mapped};
  for (int i = 0; i < 3; i++) {
    assert_range(starts[i], 8 * 4096);
    assert_range(starts[i] + 4096, 4096);
    assert_range(starts[i] + 100, 10);
    int one = range_of(starts[i], 4096), other = range_of(starts[i] + 4096, 4096);
    assert_int_not_equal(lseek(one, 0, SEEK_CUR), lseek(other, 0, SEEK_CUR)); /* each has a position of its own */
    close(one);
    close(other);
  }
  assert_ok(hipFree(plain));
  assert_ok(hipFree(pooled));
  unmap(mapped);
}

static void assert_no_range(const void *start, size_t bytes)
{
  int fd = -1;
  assert_hip(
      hipMemGetHandleForAddressRange(&fd, (hipDeviceptr_t)(uintptr_t)start, bytes, hipMemRangeHandleTypeDmaBufFd, 0),
      hipErrorInvalidValue);
  assert_int_equal(fd, -1);
}

static void other_ranges_have_none(void **state)
{
  (void)state;
  int fd;
  void *pinned_memory, *managed_memory;
  char *memory = allocate(MIB), *freed = allocate(MIB), *mapped = map(create_at(here)), *of_host = map(create_at(host));
  assert_ok(hipFree(freed));
  assert_ok(hipHostMalloc(&pinned_memory, MIB, 0));
  assert_ok(hipMallocManaged(&managed_memory, MIB, hipMemAttachGlobal));
  assert_no_range(NULL, MIB);
  assert_no_range(memory, 0);
  assert_no_range(memory, MIB + 1);
  assert_no_range(memory + MIB - 10, 11);
  assert_no_range(freed, MIB);
  assert_no_range(&fd, sizeof fd);
  assert_no_range(pinned_memory, MIB);
  assert_no_range(managed_memory, MIB);
  assert_no_range(of_host, GRANULE);
  assert_no_range(mapped, GRANULE + 1);
  const hipMemRangeHandleType dmabuf = hipMemRangeHandleTypeDmaBufFd, wrong = (hipMemRangeHandleType)2;
  assert_hip(hipMemGetHandleForAddressRange(NULL, memory, MIB, dmabuf, 0), hipErrorInvalidValue);
  assert_hip(hipMemGetHandleForAddressRange(&fd, memory, MIB, wrong, 0), hipErrorInvalidValue);
  assert_hip(hipMemGetHandleForAddressRange(&fd, memory, MIB, dmabuf, 2), hipErrorInvalidValue);
  unmap(mapped);
  unmap(of_host);
  assert_ok(hipFree(memory));
  assert_ok(hipHostFree(pinned_memory));
  assert_ok(hipFree(managed_memory));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_device_has_two_pools_by_location, start_threads, finish),
      cmocka_unit_test_setup_teardown(the_current_pool_is_set_by_location, start_threads, finish),
      cmocka_unit_test_setup_teardown(other_locations_have_no_pools, start_threads, finish),
      cmocka_unit_test_setup_teardown(physical_memory_may_be_the_hosts, start_threads, finish),
      cmocka_unit_test_setup_teardown(the_host_has_access_of_its_own, start_threads, finish),
      cmocka_unit_test_setup_teardown(other_nodes_and_too_much_are_refused, start_threads, finish),
      cmocka_unit_test_setup_teardown(ranges_of_device_memory_have_descriptors, start_threads, finish),
      cmocka_unit_test_setup_teardown(other_ranges_have_none, start_threads, finish),
  };
  return cmocka_run_group_tests_name("software: locations", tests, NULL, NULL);
}
