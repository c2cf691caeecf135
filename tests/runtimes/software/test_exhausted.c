/* SPDX-License-Identifier: MIT */
/* test_exhausted.c: the software device when the host has no memory, no thread, no file or no space left: a call fails as a
 * whole, nothing of it runs, and the same call then succeeds. */
#include "failures.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

extern const struct hipmm_plugin software_LTX_hipmm_plugin;

/* ---- Work ---- */

/* What could not be submitted is not in the stream, and no later work waits for it. */
static void work_is_in_its_stream_or_was_refused(void **state)
{
  enum { STREAMS = 12, BYTES = 1000 };
  (void)state;
  int steps = 0, runs = 0;
  hipEvent_t event;
  char *memory = allocate(BYTES), result[BYTES];
  assert_ok(hipEventCreate(&event));
  for (int i = 0; i < STREAMS; i++) { /* new ones, which have no thread yet */
    hipStream_t stream;
    steps += FAIL_EACH_STEP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    steps += FAIL_EACH_STEP(hipMemsetAsync(memory, i, BYTES, stream));
    steps += FAIL_EACH_STEP(hipEventRecord(event, stream));
    steps += FAIL_EACH_STEP(hipStreamWaitEvent(NULL, event, 0));
    steps += FAIL_EACH_STEP(hipLaunchHostFunc(stream, count_up, &runs));
    steps += FAIL_EACH_STEP(hipMemcpyAsync(result, memory, BYTES, hipMemcpyDeviceToHost, stream));
    assert_ok(hipStreamSynchronize(stream));
    assert_ok(hipStreamSynchronize(NULL));
    assert_int_equal(runs, i + 1);
    assert_true(is_filled(result, i, BYTES));
    if (i % 2) assert_ok(hipStreamDestroy(stream));
  }
  assert_true(steps > 4 * STREAMS);
  assert_ok(hipEventDestroy(event));
  assert_ok(hipFree(memory));
}

/* A process that has all the mappings which the kernel allows can still unmap memory. */
static void memory_is_unmapped_whatever_is_left(void **state)
{
  enum { BYTES = 2 * MIB };
  const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                           .location = {hipMemLocationTypeDevice, 0}};
  const hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  (void)state;
  hipMemGenericAllocationHandle_t handle;
  char *start;
  assert_ok(hipMemCreate(&handle, BYTES, &properties, 0));
  assert_ok(hipMemAddressReserve((void **)&start, BYTES, 0, NULL, 0));
  for (int i = 0; i < 3; i++) {
    assert_in_range(FAIL_EACH_STEP(hipMemMap(start, BYTES, 0, handle, 0)), 1, 5);
    assert_ok(hipMemSetAccess(start, BYTES, &access, 1));
    if (i) assert_true(is_filled(start, i, BYTES));
    assert_ok(hipMemset(start, i + 1, BYTES));
    assert_ok(hipDeviceSynchronize());
    until_failure = 1;
    assert_ok(hipMemUnmap(start, BYTES));
    until_failure = 0;
    assert_hip(hipMemset(start, 9, BYTES), hipErrorInvalidValue);
  }
  assert_ok(hipMemAddressFree(start, BYTES));
  assert_ok(hipMemRelease(handle));
}

/* The kernel sends SIGXFSZ to a process whose file would be larger than it may be. */
static void a_limit_of_files_does_not_end_the_program(void **state)
{
  const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                           .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                           .location = {hipMemLocationTypeDevice, 0}};
  struct rlimit before, small;
  hipMemGenericAllocationHandle_t handle;
  (void)state;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = (struct rlimit){4096, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  hipError_t error = hipMemCreate(&handle, 2 * MIB, &properties, 0);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_hip(error, hipErrorOutOfMemory);
  assert_ok(hipMemCreate(&handle, 2 * MIB, &properties, 0));
  assert_ok(hipMemRelease(handle));
}

/* Puts the file in the place of all files of the device, as a program does that closes all files. */
static void take_place_of_files(int own)
{
  char link[64], target[64];
  int n = 0;
  for (int file = STDERR_FILENO + 1; file < 200; file++) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, target, sizeof target);
    if (length <= 0 || strncmp(target, "/memfd:hipmm-software", strlen("/memfd:hipmm-software")) != 0) continue;
    assert_int_equal(dup2(own, file), file);
    n++;
  }
  assert_int_not_equal(n, 0);
}

enum { OWN_BYTES = 4 << 20 };

/* A file of the program's own, all bytes 7, which has no name. */
static int create_own_file(void)
{
  char name[] = "/tmp/hipmm-own-XXXXXX", *content = malloc(OWN_BYTES);
  int own = mkstemp(name);
  assert_int_equal(unlink(name), 0);
  memset(content, 7, OWN_BYTES);
  assert_int_equal(write(own, content, OWN_BYTES), OWN_BYTES);
  free(content);
  return own;
}

static void assert_own_file_is_whole(int own)
{
  char *content = malloc(OWN_BYTES);
  assert_int_equal(lseek(own, 0, SEEK_END), OWN_BYTES);
  assert_int_equal(pread(own, content, OWN_BYTES, 0), OWN_BYTES);
  assert_true(is_filled(content, 7, OWN_BYTES));
  free(content);
}

/* How many descriptors the process has of the file. */
static int count_descriptors(int own)
{
  struct output_file_identity identity;
  int n = 0;
  assert_true(output_file_identify(own, &identity));
  for (int file = 0; file < 200; file++) n += output_file_is(file, &identity);
  return n;
}

static void writes_into_no_file_of_the_program(void **state)
{
  enum { BYTES = 4 * MIB };
  struct software_config config = software.config;
  config.memory_bytes = 4096u * MIB;
  restart(&config);
  void *memory, *more;
  hipStream_t stream = create_stream();
  int own = create_own_file();
  (void)state;
  assert_ok(hipMalloc(&memory, BYTES));
  take_place_of_files(own);
  assert_ok(hipFree(memory));             /* would punch a hole */
  assert_ok(hipMalloc(&memory, 4 * MIB)); /* in what is mapped */
  hipError_t error = hipMalloc(&more, 2048u * MIB);
  assert_own_file_is_whole(own); /* would be longer */
  assert_hip(error, hipErrorOperatingSystem);
  assert_hip(hipMallocAsync(&more, 2048u * MIB, stream), hipErrorOperatingSystem);
  assert_hip(hipMalloc(&more, 8192u * MIB), hipErrorOutOfMemory);
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
  close(own);
}

static hipMemPool_t create_shareable_pool(void)
{
  hipMemPool_t pool;
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned,
                                .handleTypes = hipMemHandleTypePosixFileDescriptor,
                                .location = {hipMemLocationTypeDevice, 0}};
  assert_ok(hipMemPoolCreate(&pool, &properties));
  return pool;
}

static hipError_t export_pool(hipMemPool_t pool, int *fd)
{
  return hipMemPoolExportToShareableHandle(fd, pool, hipMemHandleTypePosixFileDescriptor, 0);
}

static hipError_t import_pool(hipMemPool_t *pool, int fd)
{
  return hipMemPoolImportFromShareableHandle(pool, (void *)(intptr_t)fd, hipMemHandleTypePosixFileDescriptor, 0);
}

/* Memory that other processes can have is in files of its own. */
static void shares_no_file_of_the_program(void **state)
{
  enum { BYTES = 2 * MIB };
  const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                           .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                           .location = {hipMemLocationTypeDevice, 0}};
  hipMemGenericAllocationHandle_t handle;
  hipMemPoolPtrExportData data;
  hipIpcMemHandle_t ipc;
  void *start, *device_memory, *memory, *opened;
  int fd, own = create_own_file();
  (void)state;
  assert_ok(hipMemCreate(&handle, BYTES, &properties, 0));
  assert_ok(hipMemAddressReserve(&start, BYTES, 0, NULL, 0));
  hipMemPool_t pool = create_shareable_pool(), imported;
  assert_ok(hipMallocFromPoolAsync(&memory, 1000, pool, NULL));
  assert_ok(hipMemPoolExportPointer(&data, memory));
  assert_ok(export_pool(pool, &fd));
  assert_ok(import_pool(&imported, fd));
  assert_ok(hipMalloc(&device_memory, 1000));
  take_place_of_files(own);
  int n_own = count_descriptors(own);
  assert_in_range(n_own, 6, 100);
  assert_hip(hipMemMap(start, BYTES, 0, handle, 0), hipErrorOperatingSystem);
  assert_hip(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0),
             hipErrorOperatingSystem);
  assert_hip(hipMemPoolImportPointer(&opened, imported, &data), hipErrorOperatingSystem);
  assert_hip(export_pool(pool, &fd), hipErrorOperatingSystem);
  assert_hip(hipIpcGetMemHandle(&ipc, device_memory), hipErrorOperatingSystem);
  assert_ok(hipMemRelease(handle));
  assert_ok(hipMemPoolDestroy(imported));
  assert_ok(hipFreeAsync(memory, NULL));
  assert_ok(hipStreamSynchronize(NULL));
  assert_ok(hipMemPoolDestroy(pool));
  assert_int_equal(count_descriptors(own), n_own); /* none was closed */
  assert_own_file_is_whole(own);
  assert_ok(hipFree(device_memory));
  assert_ok(hipMemAddressFree(start, BYTES));
  close(own);
}

/* Where the host cannot touch the memory, it is read and written through the file. */
static void work_without_its_file_is_a_fault(void **state)
{
  enum { BYTES = 2 * MIB };
  const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                           .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                           .location = {hipMemLocationTypeDevice, 0}};
  const hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  struct software_config config = software.config;
  (void)state;
  config.no_host_access = true;
  for (int is_of_heap = 0; is_of_heap < 2; is_of_heap++) {
    hipMemGenericAllocationHandle_t handle;
    void *start;
    char said[400] = "";
    restart(&config);
    if (is_of_heap) {
      assert_ok(hipMalloc(&start, BYTES));
    } else {
      assert_ok(hipMemCreate(&handle, BYTES, &properties, 0));
      assert_ok(hipMemAddressReserve(&start, BYTES, 0, NULL, 0));
      assert_ok(hipMemMap(start, BYTES, 0, handle, 0));
      assert_ok(hipMemSetAccess(start, BYTES, &access, 1));
    }
    int own = create_own_file(), spoken = memfd_create("spoken", MFD_CLOEXEC), before = dup(STDERR_FILENO);
    take_place_of_files(own);
    assert_int_equal(dup2(spoken, STDERR_FILENO), STDERR_FILENO);
    hipError_t error = hipMemset(start, 1, BYTES);
    if (error == hipSuccess) error = hipDeviceSynchronize();
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    assert_hip(error, hipErrorIllegalAddress);
    assert_true(pread(spoken, said, sizeof said - 1, 0) > 0);
    assert_non_null(strstr(said, "cannot be reached: the program has closed the device's file that holds it\n"));
    assert_own_file_is_whole(own);
    close(before);
    close(spoken);
    close(own);
  }
}

/* ---- Calls that give or take memory ---- */

static void memory_is_given_whole_or_not_at_all(void **state)
{
  (void)state;
  int steps = 0;
  size_t pitch, before = free_bytes();
  void *memory;
  hipStream_t stream = create_stream();
  for (int i = 0; i < 2; i++) { /* with and without an arena to cut the block from */
    steps += FAIL_ALL_STEPS(hipMalloc(&memory, 10000), hipFree(memory));
    assert_ok(hipFree(memory));
  }
  steps += FAIL_ALL_STEPS(hipMallocPitch(&memory, &pitch, 1000, 10), hipFree(memory));
  assert_ok(hipFree(memory));
  steps += FAIL_ALL_STEPS(hipMallocManaged(&memory, 10000, hipMemAttachGlobal), hipFree(memory));
  assert_ok(hipFree(memory));
  for (int i = 0; i < 2; i++) { /* a new block of the pool, and an idle one */
    steps += FAIL_ALL_STEPS(hipMallocAsync(&memory, 10000, stream), hipFree(memory));
    steps += FAIL_EACH_STEP(hipFreeAsync(memory, stream));
  }
  assert_in_range(steps, 6, 100);
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipStreamDestroy(stream));
  assert_int_equal(free_bytes(), before);
}

static void pages_are_advised_whole_or_not_at_all(void **state)
{
  (void)state;
  enum { PAGE = 4096 };
  char *memory;
  int first, second, runs = 0;
  assert_ok(hipLaunchHostFunc(NULL, count_up, &runs)); /* so that the default stream has its thread */
  assert_ok(hipStreamSynchronize(NULL));
  assert_ok(hipMallocManaged((void **)&memory, 4 * PAGE, hipMemAttachGlobal));
  assert_in_range(FAIL_EACH_STEP(hipMemAdvise(memory + PAGE, PAGE, hipMemAdviseSetReadMostly, 0)), 2, 3);
  /* The operation, and a range that ends behind the page; one ends before it already. */
  assert_int_equal(FAIL_EACH_STEP(hipMemPrefetchAsync(memory + 2 * PAGE, PAGE, 0, NULL)), 2);
  for (int page = 0; page < 4; page++) {
    char *start = memory + page * PAGE;
    assert_ok(hipMemRangeGetAttribute(&first, sizeof first, hipMemRangeAttributeReadMostly, start, PAGE));
    assert_ok(hipMemRangeGetAttribute(&second, sizeof second, hipMemRangeAttributeLastPrefetchLocation, start, PAGE));
    assert_int_equal(first, page == 1);
    assert_int_equal(second, page == 2 ? 0 : hipInvalidDeviceId);
  }
  assert_ok(hipFree(memory));
}

static void addresses_are_reserved_or_not(void **state)
{
  (void)state;
  void *start;
  assert_in_range(FAIL_ALL_STEPS(hipMemAddressReserve(&start, 2 * MIB, 0, NULL, 0), hipMemAddressFree(start, 2 * MIB)),
                  2, 3);
  assert_ok(hipMemAddressFree(start, 2 * MIB));
}

static void pageable_memory_is_copied_or_not(void **state)
{
  (void)state;
  char *memory = allocate(1000), source[1000];
  hipStream_t stream = create_stream();
  memset(source, 5, sizeof source);
  assert_in_range(FAIL_EACH_STEP(hipMemcpyAsync(memory, source, 1000, hipMemcpyHostToDevice, stream)), 2, 4);
  memset(source, 6, sizeof source);
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(memory, 5, 1000));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipFree(memory));
}

static void a_failure_is_scheduled_or_not(void **state)
{
  (void)state;
  until_failure = 1;
  assert_false(hipmm_software_fail("hipMalloc", 1, 0));
  until_failure = 0;
  assert_ok(hipFree(allocate(10)));
  assert_true(hipmm_software_fail("hipMalloc", 1, 0));
  hipmm_software_fail_none();
}

static enum hipmm_status accept_status(const struct hipmm_services *services, enum hipmm_status status,
                                       const char *option, const char *format, ...)
{
  (void)services, (void)option, (void)format;
  return status;
}

static void options_come_into_force_or_not(void **state)
{
  (void)state;
  void *self = NULL;
  uint64_t count = 0;
  const char *const items[] = {"hipMalloc:1", "hipMalloc:2"};
  struct hipmm_services services = {.struct_size = sizeof services, .device = -1, .fail = accept_status};
  struct software_options options = {.devices = 0};
  software_environment_default(software_option_table, SOFTWARE_N_OPTIONS, &options);
  options.devices = 3;
  options.fail = (struct hipmm_strings){.items = items, .count = 2};
  for (int step = 1; step <= 2; step++) { /* at the one failure, and at the other */
    until_failure = step;
    assert_int_equal(software_LTX_hipmm_plugin.create(&services, &options, NULL, 0, &self), HIPMM_E_OUT_OF_MEMORY);
    assert_int_equal(until_failure, 0);
    assert_null(self);
    assert_int_equal(software.config.devices, 2);
  }
  assert_ok(hipFree(allocate(10))); /* no failure is left */
  assert_int_equal(software_LTX_hipmm_plugin.create(&services, &options, NULL, 0, &self), HIPMM_OK);
  assert_int_equal(software.config.devices, 3);
  assert_true(hipmm_software_live(0, &count, NULL));
  assert_int_equal(count, 0);
}

/* Work spans neighbouring mappings, and not neighbouring reservations, of which each has its own life. */
static void reservations_side_by_side_stay_apart(void **state)
{
  (void)state;
  enum { BYTES = 2 << 20 };
  const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                           .location = {hipMemLocationTypeDevice, 0}};
  const hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  hipMemGenericAllocationHandle_t handles[2];
  char *starts[2], *space = mmap(NULL, 8 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(space, MAP_FAILED);
  assert_int_equal(munmap(space, 8 * BYTES), 0);
  wanted_address = space + (BYTES - (uintptr_t)space % BYTES) % BYTES;
  for (int i = 0; i < 2; i++) {
    hipError_t error = hipMemAddressReserve((void **)&starts[i], BYTES, 0, NULL, 0);
    wanted_address = i ? NULL : (char *)wanted_address + BYTES;
    assert_ok(error);
    assert_ok(hipMemCreate(&handles[i], BYTES, &properties, 0));
    assert_ok(hipMemMap(starts[i], BYTES, 0, handles[i], 0));
    assert_ok(hipMemSetAccess(starts[i], BYTES, &access, 1));
  }
  assert_ptr_equal(starts[1], starts[0] + BYTES);
  assert_hip(hipMemset(starts[0] + BYTES - 1, 1, 2), hipErrorInvalidValue);
  for (int i = 0; i < 2; i++) {
    assert_ok(hipMemset(starts[i], 1, BYTES));
    assert_ok(hipDeviceSynchronize());
    assert_ok(hipMemUnmap(starts[i], BYTES));
    assert_ok(hipMemRelease(handles[i]));
    assert_ok(hipMemAddressFree(starts[i], BYTES));
  }
}

/* ---- Waiting for memory ---- */

static void a_block_stays_that_cannot_be_freed(void **state)
{
  (void)state;
  enum { BYTES = 10000 };
  char result[BYTES];
  int n_failed = 0;
  char *memory = allocate_on(NULL, BYTES);
  assert_ok(hipMemset(memory, 3, BYTES));
  hipStream_t stream = create_stream_without_thread(hipStreamNonBlocking);
  while (until_failure = n_failed + 1, hipFreeAsync(memory, stream)) {
    assert_int_equal(until_failure, 0);
    memset(result, 0, BYTES);
    assert_ok(hipMemcpy(result, memory, BYTES, hipMemcpyDeviceToHost));
    assert_true(is_filled(result, 3, BYTES));
    n_failed++;
  }
  until_failure = 0;
  assert_in_range(n_failed, software.config.scheduler == SOFTWARE_THREADS ? 2 : 1, 10);
  assert_ok(hipStreamSynchronize(stream));
  assert_hip(hipFree(memory), hipErrorInvalidValue);
  assert_ok(hipStreamDestroy(stream));
}

static void nap(void *unused)
{
  const struct timespec time = {.tv_nsec = 50000000};
  (void)unused;
  nanosleep(&time, NULL);
}

static void wait_until_open(void *gate)
{
  sem_wait(gate);
}

/* The free waits for work of the default stream, so that its own stream needs a thread. */
static void a_block_stays_whose_free_needs_a_thread(void **state)
{
  (void)state;
  sem_t gate;
  uint64_t count = 0;
  hipStream_t stream = create_stream_without_thread(hipStreamDefault);
  char *memory = allocate_on(stream, 10000);
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(sem_init(&gate, 0, 0), 0);
  assert_ok(hipLaunchHostFunc(NULL, wait_until_open, &gate));
  int n_failed = FAIL_EACH_STEP(({
    assert_true(hipmm_software_live(0, &count, NULL));
    assert_int_equal(count, 1);
    hipFreeAsync(memory, stream);
  }));
  assert_true(hipmm_software_live(0, &count, NULL));
  assert_int_equal(count, 0);
  assert_int_equal(sem_post(&gate), 0);
  assert_in_range(n_failed, 3, 10);
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipStreamDestroy(stream));
  sem_destroy(&gate);
}

/* The device is full, and the memory is that of a free which has not executed. If the wait for it cannot be submitted, the call
 * itself waits. */
static void a_stream_waits_for_the_memory_it_gets(void **state)
{
  (void)state;
  enum { BYTES = 4 << 20, STEPS = 6 };
  struct software_config config = software.config;
  config.memory_bytes = BYTES;
  restart(&config);
  hipStream_t first = create_stream();
  for (int step = 1; step <= STEPS; step++) {
    hipStream_t stream = create_stream_without_thread(hipStreamNonBlocking);
    char *memory = allocate_on(first, BYTES), *again = NULL;
    assert_ok(hipLaunchHostFunc(first, nap, NULL));
    assert_ok(hipMemsetAsync(memory, 1, BYTES, first));
    assert_ok(hipFreeAsync(memory, first));
    until_failure = step;
    hipError_t error = hipMallocAsync((void **)&again, BYTES, stream);
    until_failure = 0;
    if (error != hipSuccess) {
      assert_hip(error, hipErrorOutOfMemory);
      assert_ok(hipMallocAsync((void **)&again, BYTES, stream));
    }
    assert_ok(hipMemsetAsync(again, 2, BYTES, stream));
    assert_ok(hipDeviceSynchronize());
    assert_true(is_filled(again, 2, BYTES));
    assert_ok(hipFreeAsync(again, stream));
    assert_ok(hipDeviceSynchronize());
    assert_ok(hipStreamDestroy(stream));
  }
  assert_ok(hipStreamDestroy(first));
}

/* ---- Work that cannot be done ---- */

/* The host cannot touch the memory, so work needs a buffer, and the file of the memory space. */
static void work_that_cannot_be_done_is_a_fault(void **state)
{
  (void)state;
  enum { COPY, FILL, FILL_WITHOUT_SPACE, WORKS };
  struct software_config config = small_config(SOFTWARE_STEPPED);
  config.no_host_access = true;
  for (int work = 0; work < WORKS; work++) {
    void *pinned;
    restart(&config);
    char *memory = allocate(1000);
    assert_ok(hipHostMalloc(&pinned, 1000, 0));
    if (work == COPY)
      assert_ok(hipMemcpyAsync(memory, pinned, 1000, hipMemcpyHostToDevice, NULL));
    else
      assert_ok(hipMemsetAsync(memory, 1, 1000, NULL));
    until_failure = work == FILL_WITHOUT_SPACE ? 2 : 1;
    assert_hip(hipStreamSynchronize(NULL), hipErrorIllegalAddress);
    assert_int_equal(until_failure, 0);
    assert_int_equal(hipmm_software_faults(0), 1);
  }
}

/* ---- No files ---- */

static void a_process_without_another_file_gets_errors(void **state)
{
  const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                           .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                           .location = {hipMemLocationTypeDevice, 0}};
  hipMemGenericAllocationHandle_t handle;
  hipMemPool_t imported;
  void *memory;
  int fd = -1;
  (void)state;
  FAIL_WITHOUT_FILES(hipMalloc(&memory, 1000), hipErrorOutOfMemory);
  assert_ok(hipMalloc(&memory, 1000));
  assert_ok(hipFree(memory));
  FAIL_WITHOUT_FILES(hipMemCreate(&handle, 2 * MIB, &properties, 0), hipErrorOutOfMemory);
  assert_ok(hipMemCreate(&handle, 2 * MIB, &properties, 0));
  FAIL_WITHOUT_FILES(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0),
                     hipErrorOperatingSystem);
  assert_ok(hipMemRelease(handle));
  hipMemPool_t pool = create_shareable_pool();
  FAIL_WITHOUT_FILES(export_pool(pool, &fd), hipErrorOutOfMemory); /* it has no memory yet */
  assert_ok(export_pool(pool, &fd));
  close(fd);
  FAIL_WITHOUT_FILES(export_pool(pool, &fd), hipErrorOperatingSystem);
  assert_ok(export_pool(pool, &fd));
  FAIL_WITHOUT_FILES(import_pool(&imported, fd), hipErrorOperatingSystem);
  assert_ok(import_pool(&imported, fd));
  assert_ok(hipMemPoolDestroy(imported));
  assert_ok(hipMemPoolDestroy(pool));
  close(fd);
}

static void a_pointer_is_imported_or_not(void **state)
{
  (void)state;
  int fd;
  void *memory, *again;
  hipMemPool_t pool = create_shareable_pool(), imported;
  hipMemPoolPtrExportData data;
  hipStream_t stream = create_stream();
  assert_ok(hipMallocFromPoolAsync(&memory, 1000, pool, stream));
  assert_ok(hipMemPoolExportPointer(&data, memory));
  assert_ok(export_pool(pool, &fd));
  assert_ok(import_pool(&imported, fd));
  assert_in_range(FAIL_EACH_STEP(hipMemPoolImportPointer(&again, imported, &data)), 2, 2);
  assert_ok(hipMemsetAsync(memory, 3, 1000, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(again, 3, 1000));
  assert_ok(hipFreeAsync(again, stream));
  assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipMemPoolDestroy(imported));
  assert_ok(hipMemPoolDestroy(pool));
  assert_ok(hipStreamDestroy(stream));
  close(fd);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"work is in its stream or was refused (threads)", work_is_in_its_stream_or_was_refused, start_threads, finish,
       NULL},
      {"work is in its stream or was refused (stepped)", work_is_in_its_stream_or_was_refused, start_stepped, finish,
       NULL},
      {"memory is unmapped whatever is left", memory_is_unmapped_whatever_is_left, start_threads, finish, NULL},
      {"a limit of files does not end the program", a_limit_of_files_does_not_end_the_program, start_threads, finish,
       NULL},
      {"writes into no file of the program", writes_into_no_file_of_the_program, start_threads, finish, NULL},
      {"shares no file of the program", shares_no_file_of_the_program, start_threads, finish, NULL},
      {"work without its file is a fault", work_without_its_file_is_a_fault, start_stepped, finish_untidy, NULL},
      BOTH(memory_is_given_whole_or_not_at_all),
      BOTH(pages_are_advised_whole_or_not_at_all),
      BOTH(addresses_are_reserved_or_not),
      BOTH(pageable_memory_is_copied_or_not),
      BOTH(a_failure_is_scheduled_or_not),
      BOTH(a_block_stays_that_cannot_be_freed),
      {"a block stays whose free needs a thread", a_block_stays_whose_free_needs_a_thread, start_threads, finish, NULL},
      BOTH(a_stream_waits_for_the_memory_it_gets),
      {"work that cannot be done is a fault", work_that_cannot_be_done_is_a_fault, start_stepped, finish_untidy, NULL},
      BOTH(a_process_without_another_file_gets_errors),
      BOTH(a_pointer_is_imported_or_not),
      BOTH(options_come_into_force_or_not),
      {"reservations side by side stay apart", reservations_side_by_side_stay_apart, start_threads, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: no host memory", tests, NULL, NULL);
}
