/* SPDX-License-Identifier: MIT */
/* test_virtual.c: virtual memory management: physical memory keeps its data wherever it is mapped, access is enforced
 * for operations and for the host, and every invalid argument is refused. */
#include "../../../core/base/hip_layout.h"
#include "device.h"
#include "virtual.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRANULE (2 * MIB)

static const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                                .location = {hipMemLocationTypeDevice, 0}};

static char *reserve(size_t bytes)
{
  void *start;
  assert_ok(hipMemAddressReserve(&start, bytes, 0, NULL, 0));
  assert_int_equal((uintptr_t)start % GRANULE, 0);
  return start;
}

static hipMemGenericAllocationHandle_t create(size_t bytes)
{
  hipMemGenericAllocationHandle_t handle;
  assert_ok(hipMemCreate(&handle, bytes, &properties, 0));
  return handle;
}

static void allow(void *start, size_t bytes, int device, hipMemAccessFlags flags)
{
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, device}, flags};
  assert_ok(hipMemSetAccess(start, bytes, &access, 1));
}

static void map(void *start, size_t bytes, hipMemGenericAllocationHandle_t handle)
{
  assert_ok(hipMemMap(start, bytes, 0, handle, 0));
  allow(start, bytes, 0, hipMemAccessFlagsProtReadWrite);
}

static void physical_memory_keeps_its_data_where_it_is_mapped(void **state)
{
  (void)state;
  char *start = reserve(8 * GRANULE);
  hipMemGenericAllocationHandle_t first = create(GRANULE), second = create(2 * GRANULE);
  map(start, GRANULE, first);
  map(start + GRANULE, 2 * GRANULE, second);
  assert_ok(hipMemset(start, 1, GRANULE));
  assert_ok(hipMemset(start + GRANULE, 2, 2 * GRANULE));
  hipMemRangeCoherencyMode mode = hipMemRangeCoherencyModeIndeterminate;
  assert_ok(hipMemRangeGetAttribute(&mode, sizeof mode, hipMemRangeAttributeCoherencyMode, start, 3 * GRANULE));
  assert_int_equal(mode, hipMemRangeCoherencyModeCoarseGrain);
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipMemUnmap(start, 3 * GRANULE));
  map(start + 4 * GRANULE, 2 * GRANULE, second);
  map(start + 7 * GRANULE, GRANULE, first);
  map(start, GRANULE, first); /* twice at once */
  assert_true(is_filled(start + 4 * GRANULE, 2, 2 * GRANULE));
  assert_true(is_filled(start + 7 * GRANULE, 1, GRANULE));
  volatile char *twice = start; /* to the compiler they are two places */
  twice[5] = 77;
  assert_int_equal(twice[7 * GRANULE + 5], 77);
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_ok(hipMemUnmap(start + 4 * GRANULE, 2 * GRANULE));
  assert_ok(hipMemUnmap(start + 7 * GRANULE, GRANULE));
  assert_ok(hipMemRelease(first));
  assert_ok(hipMemRelease(second));
  assert_ok(hipMemAddressFree(start, 8 * GRANULE));
  assert_int_equal(free_bytes(), 64 * MIB);
}

static void operations_may_span_neighbouring_mappings(void **state)
{
  (void)state;
  char *start = reserve(3 * GRANULE), *plain = allocate(3 * GRANULE);
  hipMemGenericAllocationHandle_t handles[3];
  for (size_t i = 0; i < 3; i++) {
    handles[i] = create(GRANULE);
    map(start + i * GRANULE, GRANULE, handles[i]);
    assert_ok(hipMemRelease(handles[i])); /* the mapping keeps it */
  }
  assert_ok(hipMemset(start + 100, 5, 3 * GRANULE - 100));
  assert_ok(hipMemcpy(plain, start + 100, 3 * GRANULE - 100, hipMemcpyDeviceToDevice));
  assert_ok(hipDeviceSynchronize());
  assert_true(is_filled(plain, 5, 3 * GRANULE - 100));
  assert_hip(hipMemset(start + 100, 5, 3 * GRANULE), hipErrorInvalidValue);
  assert_ok(hipMemUnmap(start + GRANULE, GRANULE));
  assert_hip(hipMemset(start, 5, 3 * GRANULE), hipErrorInvalidValue);
  assert_ok(hipMemset(start, 5, GRANULE));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_ok(hipMemUnmap(start + 2 * GRANULE, GRANULE));
  assert_ok(hipMemAddressFree(start, 3 * GRANULE));
  assert_ok(hipFree(plain));
}

static void access_is_by_device_and_by_kind(void **state)
{
  (void)state;
  char *start = reserve(GRANULE), host[10] = "";
  hipMemGenericAllocationHandle_t handle = create(GRANULE);
  hipMemLocation here = {hipMemLocationTypeDevice, 0}, there = {hipMemLocationTypeDevice, 1};
  unsigned long long flags;
  assert_ok(hipMemMap(start, GRANULE, 0, handle, 0));
  assert_hip(hipMemset(start, 1, 10), hipErrorInvalidValue);
  allow(start, GRANULE, 0, hipMemAccessFlagsProtRead);
  assert_hip(hipMemset(start, 1, 10), hipErrorInvalidValue);
  assert_ok(hipMemcpy(host, start, 10, hipMemcpyDeviceToHost));
  assert_ok(hipMemGetAccess(&flags, &here, start + 10));
  assert_int_equal(flags, hipMemAccessFlagsProtRead);
  assert_ok(hipMemGetAccess(&flags, &there, start));
  assert_int_equal(flags, hipMemAccessFlagsProtNone);
  assert_ok(hipSetDevice(1));
  assert_hip(hipMemcpy(host, start, 10, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  assert_ok(hipDeviceEnablePeerAccess(0, 0)); /* is for memory of hipMalloc */
  assert_hip(hipMemcpy(host, start, 10, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  allow(start, GRANULE, 1, hipMemAccessFlagsProtReadWrite);
  assert_ok(hipMemcpy(host, start, 10, hipMemcpyDeviceToHost));
  assert_ok(hipMemset(start, 1, 10));
  assert_ok(hipSetDevice(0));
  assert_hip(hipMemset(start, 1, 10), hipErrorInvalidValue);
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_ok(hipMemRelease(handle));
  assert_ok(hipMemAddressFree(start, GRANULE));
}

/* With the other device current, which has no access, only copies that name both devices succeed. */
static void copies_between_devices_need_no_access_for_the_other(void **state)
{
  (void)state;
  char *start = reserve(GRANULE), host[10] = "hipmm", back[10] = "";
  hipMemGenericAllocationHandle_t handle = create(GRANULE);
  map(start, GRANULE, handle);
  assert_ok(hipSetDevice(1));
  char *other = allocate(10);
  assert_hip(hipMemcpy(start, host, 10, hipMemcpyHostToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpy(start, other, 10, hipMemcpyDeviceToDevice), hipErrorInvalidValue);
  assert_hip(hipMemcpyAsync(other, start, 10, hipMemcpyDefault, NULL), hipErrorInvalidValue);
  assert_hip(hipMemset(start, 1, 10), hipErrorInvalidValue);
  assert_ok(hipMemcpy(other, host, 10, hipMemcpyHostToDevice));
  assert_ok(hipMemcpyPeer(start, 0, other, 1, 10));
  assert_ok(hipMemset(other, 0, 10));
  assert_ok(hipMemcpyPeerAsync(other, 1, start, 0, 10, NULL));
  assert_ok(hipMemcpy(back, other, 10, hipMemcpyDeviceToHost));
  assert_memory_equal(back, host, 10);
  assert_hip(hipMemcpyPeer(other, 1, start, 1, 10), hipErrorInvalidValue);
  assert_ok(hipFree(other));
  assert_ok(hipSetDevice(0));
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_ok(hipMemRelease(handle));
  assert_ok(hipMemAddressFree(start, GRANULE));
}

/* The signal that ends a child that writes one byte at `address`; 0 for none. */
static int touch(char *address)
{
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    *(volatile char *)address = 1;
    _exit(0);
  }
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void the_host_faults_where_nothing_is_mapped(void **state)
{
  (void)state;
  char *start = reserve(2 * GRANULE);
  hipMemGenericAllocationHandle_t handle = create(GRANULE);
  map(start, GRANULE, handle);
  assert_int_equal(touch(start), 0);
  assert_int_not_equal(touch(start + GRANULE), 0);
  allow(start, GRANULE, 0, hipMemAccessFlagsProtNone);
  assert_int_not_equal(touch(start), 0);
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_int_not_equal(touch(start), 0);
  assert_ok(hipMemRelease(handle));
  assert_ok(hipMemAddressFree(start, 2 * GRANULE));
}

static void physical_memory_is_charged_until_its_last_use(void **state)
{
  (void)state;
  char *start = reserve(GRANULE);
  hipMemGenericAllocationHandle_t handle, again, refused;
  handle = create(60 * MIB);
  assert_int_equal(free_bytes(), 4 * MIB);
  assert_hip(hipMemCreate(&refused, 6 * MIB, &properties, 0), hipErrorOutOfMemory);
  assert_hip(hipMemCreate(&refused, (size_t)1 << 50, &properties, 0), hipErrorOutOfMemory);
  assert_ok(hipMemRelease(handle));
  handle = create(GRANULE);
  map(start, GRANULE, handle);
  assert_ok(hipMemRelease(handle));
  assert_hip(hipMemRelease(handle), hipErrorInvalidValue);
  assert_int_equal(free_bytes(), 64 * MIB - GRANULE);
  assert_ok(hipMemRetainAllocationHandle(&again, start + 5));
  assert_ptr_equal(again, handle);
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_int_equal(free_bytes(), 64 * MIB - GRANULE);
  assert_ok(hipMemRelease(again));
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipMemAddressFree(start, GRANULE));
}

static void large_reservations_cost_nothing(void **state)
{
  (void)state;
  size_t bytes = (size_t)1 << 37; /* within what sanitizers and valgrind leave free */
  void *probe;
  if (hipMemAddressReserve(&probe, bytes, 0, NULL, 0) != hipSuccess)
    bytes = (size_t)1 << 33;
  else
    assert_ok(hipMemAddressFree(probe, bytes));
  char *start = reserve(bytes);
  hipMemGenericAllocationHandle_t handle = create(GRANULE);
  map(start + bytes - GRANULE, GRANULE, handle);
  assert_ok(hipMemset(start + bytes - 1, 3, 1));
  assert_int_equal(start[bytes - 1], 3);
  assert_ok(hipMemUnmap(start + bytes - GRANULE, GRANULE));
  assert_ok(hipMemRelease(handle));
  assert_ok(hipMemAddressFree(start, bytes));
}

static void many_handles_need_few_files(void **state)
{
  (void)state;
  enum { COUNT = 5000 };
  static hipMemGenericAllocationHandle_t handles[COUNT];
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.memory_bytes = (size_t)1 << 40;
  restart(&config);
  for (int i = 0; i < COUNT; i++) handles[i] = create(GRANULE);
  int fd = open("/dev/null", O_RDONLY);
  assert_in_range(fd, 0, 100);
  close(fd);
  for (int i = 0; i < COUNT; i++) assert_ok(hipMemRelease(handles[i]));
}

static void unmapping_under_pending_work_is_a_fault(void **state)
{
  (void)state;
  int go = 0;
  hipStream_t stream;
  char *start = reserve(GRANULE);
  hipMemGenericAllocationHandle_t handle = create(GRANULE);
  map(start, GRANULE, handle);
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipLaunchHostFunc(stream, wait_until_set, &go));
  assert_ok(hipMemsetAsync(start, 1, 10, stream));
  assert_ok(hipMemUnmap(start, GRANULE));
  map(start, GRANULE, handle); /* mapped again, but not what the operation was given */
  count_up(&go);
  assert_hip(hipStreamSynchronize(stream), hipErrorIllegalAddress);
  assert_int_equal(hipmm_software_faults(0), 1);
}

static void protect(void *start, size_t bytes)
{
  allow(start, bytes, 0, hipMemAccessFlagsProtRead);
}

static void unmap(void *start, size_t bytes)
{
  assert_ok(hipMemUnmap(start, bytes));
}

/* Until the fill runs that was submitted last. */
static void await_work(const void *start)
{
  bool is_busy = false;
  while (!is_busy && hipmm_software_pending()) {
    pthread_mutex_lock(&software.lock);
    is_busy = software_reservation_at((uintptr_t)start)->busy > 0;
    pthread_mutex_unlock(&software.lock);
  }
}

/* The fill takes long enough to change the mapping meanwhile. */
static void changes_wait_for_work_that_runs(void **state)
{
  enum { ROUNDS = 8, BYTES = 16 * GRANULE };
  static void (*const changes[])(void *start, size_t bytes) = {protect, unmap};
  (void)state;
  char *start = reserve(BYTES);
  alarm(60);
  for (int round = 0; round < ROUNDS; round++) {
    hipMemGenericAllocationHandle_t handle = create(BYTES);
    map(start, BYTES, handle);
    for (int i = 0; i < 2; i++) {
      allow(start, BYTES, 0, hipMemAccessFlagsProtReadWrite);
      assert_ok(hipMemsetAsync(start, i, BYTES, NULL));
      await_work(start);
      changes[i](start, BYTES);
    }
    assert_ok(hipDeviceSynchronize());
    assert_ok(hipMemRelease(handle));
  }
  alarm(0);
  assert_ok(hipMemAddressFree(start, BYTES));
}

static void wrong_reservations_are_refused(void **state)
{
  (void)state;
  void *start = (void *)1;
  assert_hip(hipMemAddressReserve(NULL, GRANULE, 0, NULL, 0), hipErrorInvalidValue);
  assert_hip(hipMemAddressReserve(&start, 0, 0, NULL, 0), hipErrorInvalidValue);
  assert_hip(hipMemAddressReserve(&start, GRANULE + 4096, 0, NULL, 0), hipErrorInvalidValue);
  assert_hip(hipMemAddressReserve(&start, GRANULE, 3, NULL, 0), hipErrorInvalidValue);
  assert_hip(hipMemAddressReserve(&start, GRANULE, 0, NULL, 1), hipErrorInvalidValue);
  assert_hip(hipMemAddressReserve(&start, (size_t)1 << 60, 0, NULL, 0), hipErrorOutOfMemory);
  assert_hip(hipMemAddressReserve(&start, SIZE_MAX - GRANULE + 1, 64 * MIB, NULL, 0), hipErrorOutOfMemory);
  assert_ptr_equal(start, (void *)1);
  assert_ok(hipMemAddressReserve(&start, GRANULE, 64 * MIB, NULL, 0));
  assert_int_equal((uintptr_t)start % (64 * MIB), 0);
  assert_hip(hipMemAddressFree(start, 2 * GRANULE), hipErrorInvalidValue);
  assert_hip(hipMemAddressFree((char *)start + 4096, GRANULE), hipErrorInvalidValue);
  assert_hip(hipMemAddressFree(NULL, GRANULE), hipErrorInvalidValue);
  hipMemGenericAllocationHandle_t handle = create(GRANULE);
  map(start, GRANULE, handle);
  assert_hip(hipMemAddressFree(start, GRANULE), hipErrorInvalidValue);
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_ok(hipMemAddressFree(start, GRANULE));
  assert_hip(hipMemAddressFree(start, GRANULE), hipErrorInvalidValue);
  assert_ok(hipMemRelease(handle));
}

/* A descriptor is passed by its address up to HIP 7.0, and by its value from HIP 7.1 on; a program that passes it in the other
 * form is refused, as by ROCm. */
static void check_import(int version, int fd)
{
  hipMemGenericAllocationHandle_t handle;
  void *value = (void *)(intptr_t)fd;
  bool is_by_value = version >= HIP_LAYOUT_7_1;
  assert_ok(hipMemImportFromShareableHandle(&handle, is_by_value ? value : &fd, hipMemHandleTypePosixFileDescriptor));
  assert_ok(hipMemRelease(handle));
  assert_hip(hipMemImportFromShareableHandle(&handle, is_by_value ? &fd : value, hipMemHandleTypePosixFileDescriptor),
             hipErrorInvalidValue);
}

static void physical_memory_is_described_as_in_the_programs_hip(void **state)
{
  (void)state;
  const struct hip_layout_location location = {hipMemLocationTypeDevice, 1};
  const union hip_layout_prop old = {.up_to_5_2 = {.location = location, .type = 1, .handle_type = 1}},
                              new = {.from_5_3 = {.location = location, .type = 1, .handle_type = 1}};
  static const int versions[] = {50200000, 50300000, 70000000, 70100000};
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    bool is_old = versions[i] < HIP_LAYOUT_5_3;
    struct software_config config = small_config(SOFTWARE_THREADS);
    union hip_layout_prop found;
    hipMemGenericAllocationHandle_t handle;
    int fd = -1;
    config.hip_version = versions[i];
    restart(&config);
    assert_hip(hipMemCreate(&handle, 2 * MIB, (const void *)(is_old ? &new : &old), 0), hipErrorInvalidValue);
    assert_ok(hipMemCreate(&handle, 2 * MIB, (const void *)(is_old ? &old : &new), 0));
    assert_ok(hipMemGetAllocationPropertiesFromHandle((void *)&found, handle));
    assert_memory_equal(&found, is_old ? &old : &new, sizeof found);
    assert_ok(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0));
    check_import(versions[i], fd);
    close(fd);
    assert_ok(hipMemRelease(handle));
  }
}

static void wrong_physical_memory_is_refused(void **state)
{
  (void)state;
  int local = 0, fd;
  size_t granularity;
  hipMemGenericAllocationHandle_t handle = NULL;
  hipMemAllocationProp wrong = properties;
  assert_ok(hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityRecommended));
  assert_int_equal(granularity, GRANULE);
  assert_hip(hipMemGetAllocationGranularity(NULL, &properties, hipMemAllocationGranularityMinimum),
             hipErrorInvalidValue);
  assert_hip(hipMemGetAllocationGranularity(&granularity, NULL, hipMemAllocationGranularityMinimum),
             hipErrorInvalidValue);
  assert_hip(hipMemCreate(&handle, 4096, &properties, 0), hipErrorInvalidValue);
  assert_hip(hipMemCreate(&handle, 0, &properties, 0), hipErrorInvalidValue);
  assert_hip(hipMemCreate(&handle, GRANULE, &properties, 1), hipErrorInvalidValue);
  assert_hip(hipMemCreate(NULL, GRANULE, &properties, 0), hipErrorInvalidValue);
  assert_hip(hipMemCreate(&handle, GRANULE, NULL, 0), hipErrorInvalidValue);
  wrong.location.id = 2;
  assert_hip(hipMemCreate(&handle, GRANULE, &wrong, 0), hipErrorInvalidValue);
  assert_hip(hipMemGetAllocationGranularity(&granularity, &wrong, hipMemAllocationGranularityMinimum),
             hipErrorInvalidValue);
  wrong = properties;
  wrong.requestedHandleType = hipMemHandleTypeWin32;
  assert_hip(hipMemCreate(&handle, GRANULE, &wrong, 0), hipErrorNotSupported);
  assert_ok(hipMemGetAllocationGranularity(&granularity, &wrong, hipMemAllocationGranularityMinimum));
  wrong = properties;
  wrong.type = hipMemAllocationTypeInvalid;
  assert_hip(hipMemCreate(&handle, GRANULE, &wrong, 0), hipErrorInvalidValue);
  assert_null(handle);
  assert_hip(hipMemRelease(NULL), hipErrorInvalidValue);
  assert_hip(hipMemRelease((hipMemGenericAllocationHandle_t)&local), hipErrorInvalidValue);
  assert_hip(hipMemRetainAllocationHandle(&handle, &local), hipErrorInvalidValue);
  handle = create(GRANULE);
  assert_ok(hipMemGetAllocationPropertiesFromHandle(&wrong, handle));
  assert_int_equal(wrong.type, hipMemAllocationTypePinned);
  assert_hip(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0), hipErrorInvalidValue);
  assert_ok(hipMemRelease(handle));
}

static void wrong_mappings_are_refused(void **state)
{
  (void)state;
  char *start = reserve(4 * GRANULE), *plain = allocate(10);
  unsigned long long flags;
  hipMemGenericAllocationHandle_t handle = create(2 * GRANULE);
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  assert_hip(hipMemMap(start, GRANULE, 0, NULL, 0), hipErrorInvalidValue);
  assert_hip(hipMemMap(start, GRANULE, GRANULE, handle, 0), hipErrorInvalidValue);
  assert_hip(hipMemMap(start, GRANULE, 0, handle, 1), hipErrorInvalidValue);
  assert_hip(hipMemMap(start, 3 * GRANULE, 0, handle, 0), hipErrorInvalidValue);
  assert_hip(hipMemMap(start, 0, 0, handle, 0), hipErrorInvalidValue);
  assert_hip(hipMemMap(start + 4096, GRANULE, 0, handle, 0), hipErrorInvalidValue);
  assert_hip(hipMemMap(start + 3 * GRANULE, 2 * GRANULE, 0, handle, 0), hipErrorInvalidValue);
  assert_hip(hipMemMap(plain, GRANULE, 0, handle, 0), hipErrorInvalidValue);
  assert_hip(hipMemMap(NULL, GRANULE, 0, handle, 0), hipErrorInvalidValue);
  map(start + GRANULE, 2 * GRANULE, handle);
  assert_hip(hipMemMap(start, 2 * GRANULE, 0, handle, 0), hipErrorInvalidValue);
  assert_hip(hipMemMap(start + 2 * GRANULE, GRANULE, 0, handle, 0), hipErrorInvalidValue);
  assert_hip(hipMemUnmap(start + GRANULE, GRANULE), hipErrorInvalidValue);
  assert_hip(hipMemUnmap(start, 3 * GRANULE), hipErrorInvalidValue);
  assert_hip(hipMemUnmap(start + GRANULE, 0), hipErrorInvalidValue);
  assert_hip(hipMemSetAccess(start, GRANULE, &access, 1), hipErrorInvalidValue);
  assert_hip(hipMemSetAccess(start + GRANULE, 2 * GRANULE, NULL, 1), hipErrorInvalidValue);
  assert_hip(hipMemSetAccess(start + GRANULE, 2 * GRANULE, &access, 0), hipErrorInvalidValue);
  access.location.id = 5;
  assert_hip(hipMemSetAccess(start + GRANULE, 2 * GRANULE, &access, 1), hipErrorInvalidValue);
  assert_hip(hipMemGetAccess(&flags, &access.location, start + GRANULE), hipErrorInvalidValue);
  access = (hipMemAccessDesc){{hipMemLocationTypeDevice, 0}, (hipMemAccessFlags)2};
  assert_hip(hipMemSetAccess(start + GRANULE, 2 * GRANULE, &access, 1), hipErrorInvalidValue);
  assert_hip(hipFree(start + GRANULE), hipErrorInvalidValue);
  assert_hip(hipHostRegister(start + GRANULE, 4096, 0), hipErrorInvalidValue);
  const hipPointer_attribute of_allocations[] = {HIP_POINTER_ATTRIBUTE_BUFFER_ID, HIP_POINTER_ATTRIBUTE_RANGE_SIZE,
                                                 HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR};
  for (int i = 0; i < 3; i++)
    assert_hip(hipPointerGetAttribute(&flags, of_allocations[i], start + GRANULE), hipErrorInvalidValue);
  assert_ok(hipMemUnmap(start + GRANULE, 2 * GRANULE));
  assert_ok(hipMemRelease(handle));
  assert_ok(hipMemAddressFree(start, 4 * GRANULE));
  assert_ok(hipFree(plain));
}

/* Its file has no place for so much, and the memory before keeps its place. */
static void physical_memory_beyond_all_files_is_refused(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  config.memory_bytes = SIZE_MAX;
  restart(&config);
  hipMemGenericAllocationHandle_t first = create(GRANULE), refused;
  char *start = reserve(GRANULE);
  map(start, GRANULE, first);
  memset(start, 7, GRANULE);
  const size_t sizes[] = {(size_t)1 << 62, SIZE_MAX - 2 * GRANULE + 1};
  for (int i = 0; i < 2; i++) assert_hip(hipMemCreate(&refused, sizes[i], &properties, 0), hipErrorOutOfMemory);
  hipMemGenericAllocationHandle_t second = create(GRANULE);
  assert_true(is_filled(start, 7, GRANULE));
  assert_ok(hipMemUnmap(start, GRANULE));
  assert_ok(hipMemRelease(first));
  assert_ok(hipMemRelease(second));
  assert_ok(hipMemAddressFree(start, GRANULE));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"physical memory keeps its data where it is mapped (threads)", physical_memory_keeps_its_data_where_it_is_mapped,
       start_threads, finish, NULL},
      {"physical memory keeps its data where it is mapped (stepped)", physical_memory_keeps_its_data_where_it_is_mapped,
       start_stepped, finish, NULL},
      {"operations may span neighbouring mappings (threads)", operations_may_span_neighbouring_mappings, start_threads,
       finish, NULL},
      {"operations may span neighbouring mappings (stepped)", operations_may_span_neighbouring_mappings, start_stepped,
       finish, NULL},
      {"access is by device and by kind", access_is_by_device_and_by_kind, start_threads, finish, NULL},
      {"copies between devices need no access for the other", copies_between_devices_need_no_access_for_the_other,
       start_threads, finish, NULL},
      {"copies between devices need no access for the other (stepped)",
       copies_between_devices_need_no_access_for_the_other, start_stepped, finish, NULL},
      {"the host faults where nothing is mapped", the_host_faults_where_nothing_is_mapped, start_threads, finish, NULL},
      {"physical memory is charged until its last use", physical_memory_is_charged_until_its_last_use, start_threads,
       finish, NULL},
      {"large reservations cost nothing", large_reservations_cost_nothing, start_threads, finish, NULL},
      {"many handles need few files", many_handles_need_few_files, start_threads, finish, NULL},
      {"unmapping under pending work is a fault", unmapping_under_pending_work_is_a_fault, start_threads, finish_untidy,
       NULL},
      {"changes wait for work that runs", changes_wait_for_work_that_runs, start_threads, finish, NULL},
      {"wrong reservations are refused", wrong_reservations_are_refused, start_threads, finish, NULL},
      {"physical memory is described as in the programs HIP", physical_memory_is_described_as_in_the_programs_hip,
       start_threads, finish, NULL},
      {"wrong physical memory is refused", wrong_physical_memory_is_refused, start_threads, finish, NULL},
      {"wrong mappings are refused", wrong_mappings_are_refused, start_threads, finish, NULL},
      {"physical memory beyond all files is refused", physical_memory_beyond_all_files_is_refused, start_threads,
       finish, NULL},
  };
  return cmocka_run_group_tests_name("software: virtual memory", tests, NULL, NULL);
}
