/* SPDX-License-Identifier: MIT */
/* test_host.c: pinned, registered and managed memory. */
#include "device.h"
#include <stdlib.h>

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
  assert_hip(hipHostMalloc(&pinned, 10, hipHostMallocCoherent | hipHostMallocNonCoherent), hipErrorInvalidValue);
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
  assert_hip(hipHostUnregister(NULL), hipErrorInvalidValue);
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
  assert_hip(hipMallocManaged(&managed, 0, hipMemAttachGlobal), hipErrorInvalidValue);
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

#define PAGE 4096

static int attribute_of(const char *memory, size_t bytes, hipMemRangeAttribute attribute)
{
  int value = -99;
  assert_ok(hipMemRangeGetAttribute(&value, sizeof value, attribute, memory, bytes));
  return value;
}

/* Advice for a part is advice for the pages that it touches. A range has an attribute if all its pages have it. */
static void advice_is_kept_by_page(void **state)
{
  (void)state;
  void *managed;
  int devices[2];
  assert_ok(hipMallocManaged(&managed, 4 * PAGE, hipMemAttachGlobal));
  char *memory = managed;
  assert_ok(hipMemAdvise(memory + PAGE + 1, PAGE, hipMemAdviseSetReadMostly, 0)); /* of pages 1 and 2 */
  assert_int_equal(attribute_of(memory, PAGE, hipMemRangeAttributeReadMostly), 0);
  assert_int_equal(attribute_of(memory + PAGE, 2 * PAGE, hipMemRangeAttributeReadMostly), 1);
  assert_int_equal(attribute_of(memory + PAGE, 3 * PAGE, hipMemRangeAttributeReadMostly), 0);
  assert_int_equal(attribute_of(memory, 4 * PAGE, hipMemRangeAttributeReadMostly), 0);
  assert_ok(hipMemAdvise(memory, 2 * PAGE, hipMemAdviseSetPreferredLocation, 1));
  assert_ok(hipMemAdvise(memory + 2 * PAGE, 2 * PAGE, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
  assert_int_equal(attribute_of(memory, 2 * PAGE, hipMemRangeAttributePreferredLocation), 1);
  assert_int_equal(attribute_of(memory + 2 * PAGE, PAGE, hipMemRangeAttributePreferredLocation), hipCpuDeviceId);
  assert_int_equal(attribute_of(memory, 3 * PAGE, hipMemRangeAttributePreferredLocation), hipInvalidDeviceId);
  assert_int_equal(attribute_of(memory + PAGE, PAGE, hipMemRangeAttributeReadMostly), 1);
  assert_ok(hipMemPrefetchAsync(memory, PAGE, 0, NULL));
  assert_int_equal(attribute_of(memory, 1, hipMemRangeAttributeLastPrefetchLocation), 0);
  assert_int_equal(attribute_of(memory, PAGE + 1, hipMemRangeAttributeLastPrefetchLocation), hipInvalidDeviceId);
  assert_ok(hipMemAdvise(memory, PAGE, hipMemAdviseSetCoarseGrain, 0));
  assert_int_equal(attribute_of(memory, PAGE, hipMemRangeAttributeCoherencyMode), hipMemRangeCoherencyModeCoarseGrain);
  assert_int_equal(attribute_of(memory + PAGE, PAGE, hipMemRangeAttributeCoherencyMode),
                   hipMemRangeCoherencyModeFineGrain);
  assert_int_equal(attribute_of(memory, 2 * PAGE, hipMemRangeAttributeCoherencyMode),
                   hipMemRangeCoherencyModeIndeterminate);
  assert_ok(hipMemAdvise(memory, 4 * PAGE, hipMemAdviseSetAccessedBy, 1));
  assert_ok(hipMemAdvise(memory, 2 * PAGE, hipMemAdviseSetAccessedBy, 0));
  assert_ok(hipMemRangeGetAttribute(devices, sizeof devices, hipMemRangeAttributeAccessedBy, memory, 4 * PAGE));
  assert_int_equal(devices[0], 1);
  assert_int_equal(devices[1], hipInvalidDeviceId);
  assert_ok(hipMemRangeGetAttribute(devices, sizeof devices, hipMemRangeAttributeAccessedBy, memory, 2 * PAGE));
  assert_int_equal(devices[0], 0);
  assert_int_equal(devices[1], 1);
  assert_ok(hipFree(managed));
}

/* Advice that is for no device ignores the device. */
static void read_mostly_is_of_no_device(void **state)
{
  (void)state;
  void *managed;
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseSetReadMostly, 99));
  assert_int_equal(attribute_of(managed, 100, hipMemRangeAttributeReadMostly), 1);
  assert_ok(hipMemAdvise(managed, 100, hipMemAdviseUnsetReadMostly, -7));
  assert_int_equal(attribute_of(managed, 100, hipMemRangeAttributeReadMostly), 0);
  assert_hip(hipMemAdvise(managed, 100, hipMemAdviseSetAccessedBy, 99), hipErrorInvalidDevice);
  assert_hip(hipMemAdvise(managed, 100, hipMemAdviseSetPreferredLocation, 2), hipErrorInvalidDevice);
  assert_ok(hipFree(managed));
}

#define MODEL_PAGES 37

/* Random advice on a range of pages, compared with an array that has an entry for each page. */
static void random_advice_is_what_a_page_was_told(void **state)
{
  (void)state;
  void *managed;
  int preferred[MODEL_PAGES];
  assert_ok(hipMallocManaged(&managed, MODEL_PAGES * PAGE - 5, hipMemAttachGlobal));
  for (int page = 0; page < MODEL_PAGES; page++) preferred[page] = hipInvalidDeviceId;
  srand(11);
  for (int round = 0; round < 500; round++) {
    int first = rand() % MODEL_PAGES, count = 1 + rand() % (MODEL_PAGES - first), device = rand() % 4 - 2;
    char *start = (char *)managed + (size_t)first * PAGE;
    size_t bytes = (size_t)count * PAGE - 5;
    assert_ok(hipMemAdvise(start, bytes,
                           device == hipInvalidDeviceId ? hipMemAdviseUnsetPreferredLocation
                                                        : hipMemAdviseSetPreferredLocation,
                           device == hipInvalidDeviceId ? 0 : device));
    for (int page = first; page < first + count; page++) preferred[page] = device;
    first = rand() % MODEL_PAGES;
    count = 1 + rand() % (MODEL_PAGES - first);
    int expected = preferred[first];
    for (int page = first; page < first + count; page++)
      if (preferred[page] != expected) expected = hipInvalidDeviceId;
    assert_int_equal(attribute_of((char *)managed + (size_t)first * PAGE, (size_t)count * PAGE - 5,
                                  hipMemRangeAttributePreferredLocation),
                     expected);
  }
  assert_ok(hipFree(managed));
}

static void attributes_can_be_asked_for_together(void **state)
{
  (void)state;
  void *managed;
  char *memory = allocate(100);
  int read_mostly = -9, preferred = -9, accessors[3] = {-9, -9, -9};
  void *data[] = {&read_mostly, accessors, &preferred};
  size_t sizes[] = {sizeof read_mostly, sizeof accessors, sizeof preferred};
  hipMemRangeAttribute attributes[] = {hipMemRangeAttributeReadMostly, hipMemRangeAttributeAccessedBy,
                                       hipMemRangeAttributePreferredLocation};
  assert_ok(hipMallocManaged(&managed, 2 * PAGE, hipMemAttachGlobal));
  assert_ok(hipMemAdvise(managed, PAGE, hipMemAdviseSetReadMostly, 0));
  assert_ok(hipMemAdvise(managed, 2 * PAGE, hipMemAdviseSetAccessedBy, 1));
  assert_ok(hipMemAdvise(managed, 2 * PAGE, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
  assert_ok(hipMemRangeGetAttributes(data, sizes, attributes, 3, managed, 2 * PAGE));
  assert_int_equal(read_mostly, 0);
  assert_int_equal(preferred, hipCpuDeviceId);
  assert_int_equal(accessors[0], 1);
  assert_int_equal(accessors[1], hipInvalidDeviceId);
  assert_int_equal(accessors[2], hipInvalidDeviceId);
  assert_hip(hipMemRangeGetAttributes(NULL, sizes, attributes, 3, managed, PAGE), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttributes(data, NULL, attributes, 3, managed, PAGE), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttributes(data, sizes, NULL, 3, managed, PAGE), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttributes(data, sizes, attributes, 0, managed, PAGE), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttributes(data, sizes, attributes, 3, NULL, PAGE), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttributes(data, sizes, attributes, 3, managed, 0), hipErrorInvalidValue);
  assert_hip(hipMemRangeGetAttributes(data, sizes, attributes, 3, memory, 100), hipErrorInvalidValue);
  sizes[2] = 5;
  assert_hip(hipMemRangeGetAttributes(data, sizes, attributes, 3, managed, PAGE), hipErrorInvalidValue);
  sizes[2] = sizeof preferred;
  data[1] = NULL;
  assert_hip(hipMemRangeGetAttributes(data, sizes, attributes, 3, managed, PAGE), hipErrorInvalidValue);
  data[1] = accessors;
  attributes[0] = (hipMemRangeAttribute)999;
  assert_hip(hipMemRangeGetAttributes(data, sizes, attributes, 3, managed, PAGE), hipErrorInvalidValue);
  assert_ok(hipFree(managed));
  assert_ok(hipFree(memory));
}

/* Fills the stack of the calls that follow, so that a variable which they leave unset is no pointer. */
__attribute__((noinline)) static void dirty_stack(void)
{
  volatile char bytes[4096];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)0xA5;
}

/* The one attribute of a range that HIP has for all memory. */
static void all_memory_has_a_coherency_mode(void **state)
{
  (void)state;
  void *fine, *coherent, *other, *managed;
  int value;
  char *memory = allocate(100), local[10];
  assert_ok(hipExtMallocWithFlags(&fine, 100, hipDeviceMallocFinegrained));
  assert_ok(hipHostMalloc(&coherent, 100, hipHostMallocDefault));
  assert_ok(hipHostMalloc(&other, 100, hipHostMallocNonCoherent));
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_int_equal(range_attribute(memory, hipMemRangeAttributeCoherencyMode), hipMemRangeCoherencyModeCoarseGrain);
  assert_int_equal(range_attribute(fine, hipMemRangeAttributeCoherencyMode), hipMemRangeCoherencyModeFineGrain);
  assert_int_equal(range_attribute(coherent, hipMemRangeAttributeCoherencyMode), hipMemRangeCoherencyModeFineGrain);
  assert_int_equal(range_attribute(other, hipMemRangeAttributeCoherencyMode), hipMemRangeCoherencyModeCoarseGrain);
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeCoherencyMode), hipMemRangeCoherencyModeFineGrain);
  assert_hip(hipMemRangeGetAttribute(&value, 4, hipMemRangeAttributeReadMostly, memory, 10), hipErrorInvalidValue);
  dirty_stack();
  assert_hip(hipMemRangeGetAttribute(&value, 4, hipMemRangeAttributeCoherencyMode, memory, 101), hipErrorInvalidValue);
  dirty_stack();
  assert_hip(hipMemRangeGetAttribute(&value, 4, hipMemRangeAttributeCoherencyMode, local, 10), hipErrorInvalidValue);
  assert_ok(hipFree(memory));
  assert_ok(hipFree(fine));
  assert_ok(hipHostFree(coherent));
  assert_ok(hipHostFree(other));
  assert_ok(hipFree(managed));
}

static void managed_memory_is_attached_to_streams(void **state)
{
  (void)state;
  void *managed;
  char local[10], *memory = allocate(100);
  hipStream_t stream;
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachHost));
  assert_ok(hipStreamAttachMemAsync(stream, managed, 0, hipMemAttachSingle));
  assert_ok(hipStreamAttachMemAsync(stream, managed, 100, hipMemAttachHost));
  assert_ok(hipStreamAttachMemAsync(NULL, managed, 0, hipMemAttachGlobal));
  assert_ok(hipStreamSynchronize(stream));
  assert_hip(hipStreamAttachMemAsync(NULL, managed, 0, hipMemAttachSingle), hipErrorInvalidValue);
  assert_hip(hipStreamAttachMemAsync(stream, managed, 50, hipMemAttachSingle), hipErrorInvalidValue);
  assert_hip(hipStreamAttachMemAsync(stream, managed, 0, 7), hipErrorInvalidValue);
  assert_hip(hipStreamAttachMemAsync(stream, NULL, 0, hipMemAttachSingle), hipErrorInvalidValue);
  dirty_stack();
  assert_hip(hipStreamAttachMemAsync(stream, local, 10, hipMemAttachSingle), hipErrorInvalidValue);
  assert_hip(hipStreamAttachMemAsync(stream, memory, 100, hipMemAttachSingle), hipErrorInvalidValue);
  assert_hip(hipStreamAttachMemAsync((hipStream_t)local, managed, 0, hipMemAttachHost), hipErrorInvalidHandle);
  assert_ok(hipFree(managed));
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
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

#if HIP_VERSION_MAJOR >= 7
#define LOCATION(type, id) ((hipMemLocation){(hipMemLocationType)(type), id})
#else
#define LOCATION(type, id) ((struct software_location){type, id})
#endif

static void advice_and_prefetches_take_a_location(void **state)
{
  (void)state;
  void *managed;
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_ok(hipMemPrefetchAsync_v2(managed, 100, LOCATION(SOFTWARE_LOCATION_DEVICE, 1), 0, NULL));
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeLastPrefetchLocation), 1);
  assert_ok(hipMemPrefetchAsync_v2(managed, 100, LOCATION(SOFTWARE_LOCATION_HOST, 0), 0, NULL));
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeLastPrefetchLocation), hipCpuDeviceId);
  assert_ok(hipMemAdvise_v2(managed, 100, hipMemAdviseSetPreferredLocation, LOCATION(SOFTWARE_LOCATION_HOST_NUMA, 0)));
  assert_int_equal(range_attribute(managed, hipMemRangeAttributePreferredLocation), hipCpuDeviceId);
  assert_ok(hipMemAdvise_v2(managed, 100, hipMemAdviseSetReadMostly, LOCATION(0, 0)));
  assert_int_equal(range_attribute(managed, hipMemRangeAttributeReadMostly), 1);
  assert_hip(hipMemAdvise_v2(managed, 100, hipMemAdviseSetAccessedBy, LOCATION(0, 0)), hipErrorInvalidValue);
  assert_hip(hipMemAdvise_v2(managed, 100, hipMemAdviseSetAccessedBy, LOCATION(SOFTWARE_LOCATION_DEVICE, 2)),
             hipErrorInvalidDevice);
  assert_hip(hipMemPrefetchAsync_v2(managed, 100, LOCATION(9, 0), 0, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync_v2(managed, 100, LOCATION(SOFTWARE_LOCATION_DEVICE, -1), 0, NULL),
             hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync_v2(managed, 100, LOCATION(SOFTWARE_LOCATION_DEVICE, 0), 1, NULL),
             hipErrorInvalidValue);
  assert_ok(hipFree(managed));
}

static void wrong_advice_and_prefetches_are_refused(void **state)
{
  (void)state;
  char *memory = allocate(100), local[10];
  void *managed;
  int value;
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_true(hipmm_software_fail("hipMemRangeGetAttribute", 1, hipErrorNotReady));
  assert_hip(hipMemRangeGetAttribute(&value, 4, hipMemRangeAttributeReadMostly, managed, 10), hipErrorNotReady);
  assert_hip(hipMemPrefetchAsync(memory, 100, 0, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync(local, 10, 0, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync(managed, 101, 0, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync(managed, 100, 2, NULL), hipErrorInvalidDevice);
  assert_hip(hipMemPrefetchAsync(managed, 0, 2, NULL), hipErrorInvalidValue);
  assert_hip(hipMemPrefetchAsync(NULL, 100, 2, NULL), hipErrorInvalidValue);
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
  char other[100] = "";
  assert_ok(hipMemset(local, 6, 100));
  assert_true(is_filled(local, 6, 100));
  assert_ok(hipMemcpy(other, local, 100, hipMemcpyDeviceToDevice));
  assert_true(is_filled(other, 6, 100));
  assert_ok(hipMemPrefetchAsync(local, 100, 0, NULL));
  assert_ok(hipMemAdvise(local, 100, hipMemAdviseSetPreferredLocation, 0));
  assert_ok(hipStreamAttachMemAsync(NULL, local, 100, hipMemAttachHost));
  assert_ok(hipDeviceSynchronize());
}

/* The memory of the host is limited, too: pinned and managed memory are charged to it. */
static void host_memory_is_limited(void **state)
{
  (void)state;
  void *pinned, *managed, *refused = NULL;
  assert_hip(hipHostMalloc(&refused, software.config.host_memory_bytes + 1, 0), hipErrorOutOfMemory);
  assert_hip(hipMallocManaged(&refused, (size_t)32 << 40, hipMemAttachGlobal), hipErrorOutOfMemory);
  assert_null(refused);
  struct software_config config = small_config(SOFTWARE_STEPPED);
  config.host_memory_bytes = 8 * MIB;
  restart(&config);
  assert_ok(hipMallocManaged(&managed, software.config.host_memory_bytes, hipMemAttachGlobal));
  assert_hip(hipHostMalloc(&refused, 1, 0), hipErrorOutOfMemory);
  assert_hip(hipGetLastError(), hipErrorOutOfMemory);
  assert_ok(hipFree(managed));
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

/* Memory that a managed pool holds in reserve is freed when it is needed. */
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

/* A prefetch is work of its stream. */
static void a_prefetch_runs_in_its_stream(void **state)
{
  (void)state;
  void *managed;
  hipStream_t stream = create_stream();
  assert_ok(hipMallocManaged(&managed, 100, hipMemAttachGlobal));
  assert_ok(hipMemPrefetchAsync(managed, 100, 0, stream));
  assert_int_equal(hipmm_software_pending(), 1);
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(hipmm_software_pending(), 0);
  assert_ok(hipFree(managed));
  assert_ok(hipStreamDestroy(stream));
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
      {"advice is kept by page", advice_is_kept_by_page, start_threads, finish, NULL},
      {"read mostly is of no device", read_mostly_is_of_no_device, start_threads, finish, NULL},
      {"random advice is what a page was told", random_advice_is_what_a_page_was_told, start_threads, finish, NULL},
      {"attributes can be asked for together", attributes_can_be_asked_for_together, start_threads, finish, NULL},
      {"all memory has a coherency mode", all_memory_has_a_coherency_mode, start_threads, finish, NULL},
      {"managed memory is attached to streams", managed_memory_is_attached_to_streams, start_threads, finish, NULL},
      {"who accesses managed memory is kept", who_accesses_managed_memory_is_kept, start_stepped, finish, NULL},
      {"advice and prefetches take a location (threads)", advice_and_prefetches_take_a_location, start_threads, finish,
       NULL},
      {"advice and prefetches take a location (stepped)", advice_and_prefetches_take_a_location, start_stepped, finish,
       NULL},
      {"wrong advice and prefetches are refused", wrong_advice_and_prefetches_are_refused, start_threads, finish, NULL},
      {"devices reach pageable memory if configured (threads)", devices_reach_pageable_memory_if_configured,
       start_threads, finish, NULL},
      {"devices reach pageable memory if configured (stepped)", devices_reach_pageable_memory_if_configured,
       start_stepped, finish, NULL},
      {"a prefetch runs in its stream", a_prefetch_runs_in_its_stream, start_stepped, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: host memory", tests, NULL, NULL);
}
