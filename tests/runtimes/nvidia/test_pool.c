/* SPDX-License-Identifier: MIT */
/* test_pool.c: stream-ordered pools and virtual memory: the structs that the driver gets. */
#include "../../../core/base/hip_layout.h"
#include "runtime.h"
#include <string.h>

static void pools_are_made_with_cudas_properties(void **state)
{
  (void)state;
  hipMemPool_t pool = NULL;
  CUmemPoolProps given;
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned,
                                .handleTypes = hipMemHandleTypeWin32Kmt,
                                .location = {.type = hipMemLocationTypeDevice, .id = 3}};
  assert_ok(hipMemPoolCreate(&pool, &properties));
  assert_called("cuMemPoolCreate", 0);
  assert_ptr_equal(pool, POINTER(FAKE_POOL));
  memcpy(&given, fake->last.data, sizeof given);
  assert_int_equal(given.allocType, CU_MEM_ALLOCATION_TYPE_PINNED);
  assert_int_equal(given.handleTypes, CU_MEM_HANDLE_TYPE_WIN32_KMT);
  assert_int_equal(given.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  assert_int_equal(given.location.id, 3);
  for (size_t i = offsetof(CUmemPoolProps, win32SecurityAttributes); i < sizeof given; i++)
    assert_int_equal(fake->last.data[i], 0);
  properties.location.type = (hipMemLocationType)CU_MEM_LOCATION_TYPE_HOST_NUMA; /* of the host */
  assert_ok(hipMemPoolCreate(&pool, &properties));
  assert_called("cuMemPoolCreate", 0);
  memcpy(&given, fake->last.data, sizeof given);
  assert_int_equal(given.location.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
  assert_int_equal(given.location.id, 3);
  assert_ok(hipMemPoolDestroy(pool));
  assert_called("cuMemPoolDestroy", FAKE_POOL);
  assert_error(hipMemPoolCreate(&pool, NULL), hipErrorInvalidValue);
  assert_error(hipMemPoolDestroy(NULL), hipErrorInvalidValue);
}

static void pools_give_memory_in_stream_order(void **state)
{
  (void)state;
  void *ptr = NULL;
  assert_ok(hipMallocFromPoolAsync(&ptr, 100, POINTER(FAKE_POOL), POINTER(FAKE_STREAM)));
  assert_called("cuMemAllocFromPoolAsync", 100, FAKE_POOL, FAKE_STREAM);
  assert_ptr_equal(ptr, POINTER(FAKE_ADDRESS));
  assert_ok(hipFreeAsync(ptr, hipStreamPerThread));
  assert_called("cuMemFreeAsync", FAKE_ADDRESS, 2);
  assert_error(hipFreeAsync(NULL, NULL), hipErrorInvalidValue);
  assert_error(hipMallocFromPoolAsync(&ptr, 100, NULL, NULL), hipErrorInvalidValue);
  assert_not_called();
}

static void calls_without_a_pool_or_a_place_are_refused(void **state)
{
  (void)state;
  hipMemPool_t pool = POINTER(FAKE_POOL);
  hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
  hipMemLocation location = {.type = hipMemLocationTypeDevice, .id = 1};
  uint64_t value = 0;
  assert_error(hipMallocAsync(NULL, 8, NULL), hipErrorInvalidValue);
  assert_error(hipMallocFromPoolAsync(NULL, 8, pool, NULL), hipErrorInvalidValue);
  assert_error(hipMemPoolSetAttribute(NULL, hipMemPoolAttrReleaseThreshold, &value), hipErrorInvalidValue);
  assert_error(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, NULL), hipErrorInvalidValue);
  assert_error(hipMemPoolGetAttribute(NULL, hipMemPoolAttrReleaseThreshold, &value), hipErrorInvalidValue);
  assert_error(hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, NULL), hipErrorInvalidValue);
  assert_error(hipMemPoolTrimTo(NULL, 0), hipErrorInvalidValue);
  assert_error(hipMemPoolSetAccess(NULL, NULL, 0), hipErrorInvalidValue);
  assert_error(hipMemPoolSetAccess(pool, NULL, 1), hipErrorInvalidValue);
  assert_error(hipMemPoolGetAccess(NULL, pool, &location), hipErrorInvalidValue);
  assert_error(hipMemPoolGetAccess(&flags, NULL, &location), hipErrorInvalidValue);
  assert_error(hipMemPoolGetAccess(&flags, pool, NULL), hipErrorInvalidValue);
  assert_error(hipDeviceGetDefaultMemPool(NULL, 0), hipErrorInvalidValue);
  assert_error(hipDeviceGetMemPool(NULL, 0), hipErrorInvalidValue);
  assert_error(hipDeviceSetMemPool(0, NULL), hipErrorInvalidValue);
  assert_not_called();
}

static void pools_are_not_shared_without_arguments(void **state)
{
  (void)state;
  const hipMemAllocationHandleType fd = hipMemHandleTypePosixFileDescriptor;
  int file = -1;
  void *ptr = NULL;
  hipMemPool_t pool = POINTER(FAKE_POOL);
  hipMemPoolPtrExportData data;
  memset(&data, 0, sizeof data);
  assert_error(hipMemPoolExportToShareableHandle(NULL, pool, fd, 0), hipErrorInvalidValue);
  assert_error(hipMemPoolExportToShareableHandle(&file, NULL, fd, 0), hipErrorInvalidValue);
  assert_error(hipMemPoolImportFromShareableHandle(NULL, POINTER(5), fd, 0), hipErrorInvalidValue);
  assert_error(hipMemPoolExportPointer(NULL, POINTER(FAKE_ADDRESS)), hipErrorInvalidValue);
  assert_error(hipMemPoolExportPointer(&data, NULL), hipErrorInvalidValue);
  assert_error(hipMemPoolImportPointer(NULL, pool, &data), hipErrorInvalidValue);
  assert_error(hipMemPoolImportPointer(&ptr, NULL, &data), hipErrorInvalidValue);
  assert_error(hipMemPoolImportPointer(&ptr, pool, NULL), hipErrorInvalidValue);
  assert_not_called();
}

static void virtual_memory_without_a_place_is_refused(void **state)
{
  (void)state;
  const hipMemAllocationHandleType fd = hipMemHandleTypePosixFileDescriptor;
  hipMemGenericAllocationHandle_t handle = POINTER(FAKE_HANDLE);
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned};
  hipMemLocation location = {.type = hipMemLocationTypeDevice, .id = 1};
  size_t bytes = 0;
  unsigned long long bits = 0;
  assert_error(hipMemGetAllocationGranularity(NULL, &properties, hipMemAllocationGranularityMinimum),
               hipErrorInvalidValue);
  assert_error(hipMemGetAllocationGranularity(&bytes, NULL, hipMemAllocationGranularityMinimum), hipErrorInvalidValue);
  assert_error(hipMemGetAllocationPropertiesFromHandle(NULL, handle), hipErrorInvalidValue);
  assert_error(hipMemAddressReserve(NULL, 8, 0, NULL, 0), hipErrorInvalidValue);
  assert_error(hipMemCreate(NULL, 8, &properties, 0), hipErrorInvalidValue);
  assert_error(hipMemRetainAllocationHandle(NULL, POINTER(FAKE_ADDRESS)), hipErrorInvalidValue);
  assert_error(hipMemRetainAllocationHandle(&handle, NULL), hipErrorInvalidValue);
  assert_error(hipMemExportToShareableHandle(NULL, handle, fd, 0), hipErrorInvalidValue);
  assert_error(hipMemImportFromShareableHandle(NULL, POINTER(6), fd), hipErrorInvalidValue);
  assert_error(hipMemSetAccess(POINTER(FAKE_ADDRESS), 8, &(hipMemAccessDesc){.location = location}, 0),
               hipErrorInvalidValue);
  assert_error(hipMemGetAccess(NULL, &location, POINTER(FAKE_ADDRESS)), hipErrorInvalidValue);
  assert_error(hipMemGetAccess(&bits, NULL, POINTER(FAKE_ADDRESS)), hipErrorInvalidValue);
  assert_not_called();
}

static void pool_attributes_are_numbered_alike(void **state)
{
  (void)state;
  uint64_t value = 0;
  for (int i = hipMemPoolReuseFollowEventDependencies; i <= hipMemPoolAttrUsedMemHigh; i++) {
    assert_ok(hipMemPoolSetAttribute(POINTER(FAKE_POOL), (hipMemPoolAttr)i, &value));
    assert_called("cuMemPoolSetAttribute", FAKE_POOL, (uint64_t)i, (uintptr_t)&value);
    assert_ok(hipMemPoolGetAttribute(POINTER(FAKE_POOL), (hipMemPoolAttr)i, &value));
    assert_called("cuMemPoolGetAttribute", FAKE_POOL, (uint64_t)i, (uintptr_t)&value);
  }
  assert_int_equal(hipMemPoolAttrReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
  assert_ok(hipMemPoolTrimTo(POINTER(FAKE_POOL), 4096));
  assert_called("cuMemPoolTrimTo", FAKE_POOL, 4096);
}

static void devices_have_pools(void **state)
{
  (void)state;
  hipMemPool_t pool = NULL;
  assert_ok(hipDeviceGetDefaultMemPool(&pool, 1));
  assert_called("cuDeviceGetDefaultMemPool", 1);
  assert_ptr_equal(pool, POINTER(FAKE_POOL));
  assert_ok(hipDeviceGetMemPool(&pool, 1));
  assert_called("cuDeviceGetMemPool", 1);
  assert_ok(hipDeviceSetMemPool(1, pool));
  assert_called("cuDeviceSetMemPool", 1, FAKE_POOL);
}

/* All fields differ, so that no field can be mistaken for another. */
static hipMemAllocationProp memory_of_device_3(void)
{
  hipMemAllocationProp properties;
  memset(&properties, 0, sizeof properties);
  properties.type = hipMemAllocationTypePinned;
  properties.requestedHandleType = hipMemHandleTypeWin32Kmt;
  properties.location.type = hipMemLocationTypeDevice;
  properties.location.id = 3;
  return properties;
}

static void locations_have_pools(void **state)
{
  (void)state;
  hipMemPool_t pool = NULL;
  hipMemLocation node = {(hipMemLocationType)CU_MEM_LOCATION_TYPE_HOST_NUMA, 1};
  const hipMemAllocationType managed = (hipMemAllocationType)2;
  assert_ok(hipMemGetDefaultMemPool(&pool, &node, managed));
  assert_called("cuMemGetDefaultMemPool", node.type, 1, 2);
  assert_ptr_equal(pool, POINTER(FAKE_POOL));
  assert_ok(hipMemGetMemPool(&pool, &node, hipMemAllocationTypePinned));
  assert_called("cuMemGetMemPool", node.type, 1, 1);
  assert_ok(hipMemSetMemPool(&node, managed, pool));
  assert_called("cuMemSetMemPool", node.type, 1, 2, FAKE_POOL);
  assert_error(hipMemGetDefaultMemPool(NULL, &node, managed), hipErrorInvalidValue);
  assert_error(hipMemGetDefaultMemPool(&pool, NULL, managed), hipErrorInvalidValue);
  assert_error(hipMemGetMemPool(NULL, &node, managed), hipErrorInvalidValue);
  assert_error(hipMemGetMemPool(&pool, NULL, managed), hipErrorInvalidValue);
  assert_error(hipMemSetMemPool(NULL, managed, pool), hipErrorInvalidValue);
  assert_error(hipMemSetMemPool(&node, managed, NULL), hipErrorInvalidValue);
  assert_not_called();
}

/* The driver writes a descriptor of a dma-buf. */
static void ranges_of_addresses_have_descriptors(void **state)
{
  (void)state;
  int fd = -1;
  assert_ok(hipMemGetHandleForAddressRange(&fd, POINTER(FAKE_ADDRESS), 1 << 21, hipMemRangeHandleTypeDmaBufFd, 1));
  assert_called("cuMemGetHandleForAddressRange", FAKE_ADDRESS, 1 << 21, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1);
  assert_int_equal(fd, 8);
  assert_error(hipMemGetHandleForAddressRange(NULL, POINTER(FAKE_ADDRESS), 8, hipMemRangeHandleTypeDmaBufFd, 0),
               hipErrorInvalidValue);
  assert_not_called();
}

/* Memory of the host has no such flag; and no chunk takes a descriptor of the process. */
static void physical_memory_may_be_of_a_node_of_the_host(void **state)
{
  (void)state;
  int takes = -1;
  CUmemAllocationProp given;
  hipMemGenericAllocationHandle_t handle = NULL;
  hipMemAllocationProp properties = memory_of_device_3();
  properties.location.type = (hipMemLocationType)CU_MEM_LOCATION_TYPE_HOST_NUMA;
  properties.location.id = 1;
  assert_ok(hipMemCreate(&handle, 2 << 20, &properties, 0));
  memcpy(&given, fake->last.data, sizeof given);
  assert_int_equal(given.location.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
  assert_int_equal(given.location.id, 1);
  assert_int_equal(given.allocFlags.gpuDirectRDMACapable, 0);
  assert_ok(hipDeviceGetAttribute(&takes, (hipDeviceAttribute_t)HIP_LAYOUT_DEVICE_CHUNK_DESCRIPTORS, 0));
  assert_int_equal(takes, 0);
}

static const hipMemAccessDesc both[] = {
    {.location = {.type = hipMemLocationTypeDevice, .id = 0}, .flags = hipMemAccessFlagsProtReadWrite},
    {.location = {.type = hipMemLocationTypeDevice, .id = 1}, .flags = hipMemAccessFlagsProtRead}};

static void assert_given_access_of_both(void)
{
  CUmemAccessDesc given[2];
  memcpy(given, fake->last.data, sizeof given);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(given[i].location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(given[i].location.id, i);
  }
  assert_int_equal(given[0].flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  assert_int_equal(given[1].flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
}

static void access_is_given_per_device(void **state)
{
  (void)state;
  hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
  hipMemLocation location = {.type = hipMemLocationTypeDevice, .id = 1};
  unsigned long long bits = 0;
  assert_ok(hipMemPoolSetAccess(POINTER(FAKE_POOL), both, 2));
  assert_called("cuMemPoolSetAccess", FAKE_POOL, 2);
  assert_given_access_of_both();
  assert_ok(hipMemPoolGetAccess(&flags, POINTER(FAKE_POOL), &location));
  assert_called("cuMemPoolGetAccess", FAKE_POOL, CU_MEM_LOCATION_TYPE_DEVICE, 1);
  assert_int_equal(flags, hipMemAccessFlagsProtReadWrite);
  assert_ok(hipMemSetAccess(POINTER(FAKE_ADDRESS), 4096, both, 2));
  assert_called("cuMemSetAccess", FAKE_ADDRESS, 4096, 2);
  assert_given_access_of_both();
  assert_ok(hipMemGetAccess(&bits, &location, POINTER(FAKE_ADDRESS)));
  assert_called("cuMemGetAccess", FAKE_ADDRESS, CU_MEM_LOCATION_TYPE_DEVICE, 1);
  assert_int_equal(bits, hipMemAccessFlagsProtRead);
  assert_error(hipMemSetAccess(POINTER(FAKE_ADDRESS), 4096, NULL, 1), hipErrorInvalidValue);
}

static void pools_are_shared_with_other_processes(void **state)
{
  (void)state;
  const hipMemAllocationHandleType fd = hipMemHandleTypePosixFileDescriptor;
  int file = -1;
  void *ptr = NULL;
  hipMemPool_t pool = NULL;
  hipMemPoolPtrExportData data;
  assert_ok(hipMemPoolExportToShareableHandle(&file, POINTER(FAKE_POOL), fd, 0));
  assert_called("cuMemPoolExportToShareableHandle", FAKE_POOL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  assert_int_equal(file, 5);
  assert_ok(hipMemPoolImportFromShareableHandle(&pool, POINTER(file), fd, 0));
  assert_called("cuMemPoolImportFromShareableHandle", 5, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  assert_ok(hipMemPoolExportPointer(&data, POINTER(FAKE_ADDRESS)));
  assert_called("cuMemPoolExportPointer", FAKE_ADDRESS);
  assert_ok(hipMemPoolImportPointer(&ptr, pool, &data));
  assert_memory_equal(fake->last.data, &data, sizeof data);
  assert_ptr_equal(ptr, POINTER(FAKE_ADDRESS));
}

static void assert_given_memory_of_device_3(int for_rdma)
{
  CUmemAllocationProp given;
  memcpy(&given, fake->last.data, sizeof given);
  assert_int_equal(given.type, CU_MEM_ALLOCATION_TYPE_PINNED);
  assert_int_equal(given.requestedHandleTypes, CU_MEM_HANDLE_TYPE_WIN32_KMT);
  assert_int_equal(given.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  assert_int_equal(given.location.id, 3);
  assert_null(given.win32HandleMetaData);
  assert_int_equal(given.allocFlags.compressionType, 0);
  assert_int_equal(given.allocFlags.gpuDirectRDMACapable, for_rdma);
  assert_int_equal(given.allocFlags.usage, 0);
}

/* HIP 5.2 and CUDA order the fields differently. */
static void physical_memory_is_made_with_cudas_properties(void **state)
{
  (void)state;
  hipMemAllocationProp properties = memory_of_device_3(), found;
  hipMemGenericAllocationHandle_t handle = NULL;
  size_t granularity = 0;
  assert_ok(hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityRecommended));
  assert_called("cuMemGetAllocationGranularity", CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  assert_given_memory_of_device_3(0);
  assert_int_equal(granularity, 2 << 20);
  assert_ok(hipMemCreate(&handle, 2 << 20, &properties, 0));
  assert_called("cuMemCreate", 2 << 20, 0);
  assert_given_memory_of_device_3(0); /* that device cannot have RDMA: the driver does not know it */
  fake->n_devices = 4;
  assert_ok(hipMemCreate(&handle, 2 << 20, &properties, 0));
  assert_given_memory_of_device_3(1);
  fake->n_devices = 2;
  fake->calls = 0;
  assert_ptr_equal(handle, POINTER(FAKE_HANDLE));
  assert_ok(hipMemGetAllocationPropertiesFromHandle(&found, handle));
  assert_called("cuMemGetAllocationPropertiesFromHandle", FAKE_HANDLE);
  assert_int_equal(found.type, hipMemAllocationTypePinned);
  assert_int_equal(found.requestedHandleType, hipMemHandleTypeWin32Kmt);
  assert_int_equal(found.location.id, 3);
#if HIP_VERSION < 50300000
  assert_int_equal(found.compressionType, 1);
  assert_int_equal(found.usage, 9);
#else
  assert_int_equal(found.allocFlags.compressionType, 1);
  assert_int_equal(found.allocFlags.usage, 9);
#endif
  assert_error(hipMemCreate(&handle, 2 << 20, NULL, 0), hipErrorInvalidValue);
}

/* Not whether the driver takes the request, but what the memory says. */
static void memory_tells_whether_it_has_rdma(void **state)
{
  (void)state;
  int has_rdma = -1;
  for (int is_given = 0; is_given < 2; is_given++) {
    fake->ignores_rdma = !is_given;
    assert_ok(hipDeviceGetAttribute(&has_rdma, (hipDeviceAttribute_t)HIP_LAYOUT_DEVICE_RDMA, 1));
    assert_int_equal(has_rdma, is_given);
    assert_string_equal(fake->last.name, "cuMemRelease");
  }
  assert_ok(hipDeviceGetAttribute(&has_rdma, (hipDeviceAttribute_t)HIP_LAYOUT_DEVICE_RDMA, 7));
  assert_int_equal(has_rdma, 0);
}

static void physical_memory_is_mapped_at_addresses(void **state)
{
  (void)state;
  void *ptr = NULL;
  hipMemGenericAllocationHandle_t handle = POINTER(FAKE_HANDLE), found = NULL;
  int file = -1;
  assert_ok(hipMemAddressReserve(&ptr, 1 << 30, 1 << 21, POINTER(FAKE_HOST), 0));
  assert_called("cuMemAddressReserve", 1 << 30, 1 << 21, FAKE_HOST, 0);
  assert_ptr_equal(ptr, POINTER(FAKE_ADDRESS));
  assert_ok(hipMemMap(ptr, 1 << 21, 0, handle, 0));
  assert_called("cuMemMap", FAKE_ADDRESS, 1 << 21, 0, FAKE_HANDLE, 0);
  assert_ok(hipMemRetainAllocationHandle(&found, ptr));
  assert_called("cuMemRetainAllocationHandle", FAKE_ADDRESS);
  assert_ptr_equal(found, handle);
  assert_ok(hipMemExportToShareableHandle(&file, handle, hipMemHandleTypePosixFileDescriptor, 0));
  assert_called("cuMemExportToShareableHandle", FAKE_HANDLE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  assert_ok(hipMemImportFromShareableHandle(&found, POINTER(file), hipMemHandleTypePosixFileDescriptor));
  assert_called("cuMemImportFromShareableHandle", 6, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  file = 7;
  assert_ok(hipMemImportFromShareableHandle(&found, &file, hipMemHandleTypePosixFileDescriptor));
  assert_called("cuMemImportFromShareableHandle", 7, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  assert_ok(hipMemUnmap(ptr, 1 << 21));
  assert_called("cuMemUnmap", FAKE_ADDRESS, 1 << 21);
  assert_ok(hipMemRelease(handle));
  assert_called("cuMemRelease", FAKE_HANDLE);
  assert_ok(hipMemAddressFree(ptr, 1 << 30));
  assert_called("cuMemAddressFree", FAKE_ADDRESS, 1 << 30);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(pools_are_made_with_cudas_properties, start_test),
      cmocka_unit_test_setup(pools_give_memory_in_stream_order, start_test),
      cmocka_unit_test_setup(calls_without_a_pool_or_a_place_are_refused, start_test),
      cmocka_unit_test_setup(pools_are_not_shared_without_arguments, start_test),
      cmocka_unit_test_setup(virtual_memory_without_a_place_is_refused, start_test),
      cmocka_unit_test_setup(pool_attributes_are_numbered_alike, start_test),
      cmocka_unit_test_setup(devices_have_pools, start_test),
      cmocka_unit_test_setup(locations_have_pools, start_test),
      cmocka_unit_test_setup(ranges_of_addresses_have_descriptors, start_test),
      cmocka_unit_test_setup(physical_memory_may_be_of_a_node_of_the_host, start_test),
      cmocka_unit_test_setup(access_is_given_per_device, start_test),
      cmocka_unit_test_setup(pools_are_shared_with_other_processes, start_test),
      cmocka_unit_test_setup(physical_memory_is_made_with_cudas_properties, start_test),
      cmocka_unit_test_setup(memory_tells_whether_it_has_rdma, start_test),
      cmocka_unit_test_setup(physical_memory_is_mapped_at_addresses, start_test),
  };
  return cmocka_run_group_tests_name("nvidia: pools and virtual memory", tests, start_runtime, NULL);
}
