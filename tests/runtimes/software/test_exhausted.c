/* SPDX-License-Identifier: MIT */
/* test_exhausted.c: the software device when the host has no memory, or no thread, left: a call fails as a whole, nothing of it
 * runs, and the same call then succeeds. */
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Failures: the functions of libc that the device calls, by the linker's --wrap ---- */

static _Thread_local int until_failure; /* calls of this thread; 0: none fails */

static bool fails_now(void)
{
  return until_failure && !--until_failure;
}

void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
  if (!fails_now()) return __real_mmap(address, bytes, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

void *__wrap_malloc(size_t bytes)
{
  return fails_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
  return fails_now() ? NULL : __real_calloc(n, bytes);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
  return fails_now() ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

/* Makes each step of the call fail in turn, until the call succeeds: without a step that fails, or although one does. Returns
 * how often it has failed. */
#define FAIL_EACH_STEP(call)                                         \
  ({                                                                 \
    int n_failed_ = 0;                                               \
    hipError_t error_;                                               \
    while (until_failure = n_failed_ + 1, error_ = (call), error_) { \
      assert_int_equal(until_failure, 0);                            \
      assert_hip(error_, hipErrorOutOfMemory);                       \
      n_failed_++;                                                   \
    }                                                                \
    until_failure = 0;                                               \
    n_failed_;                                                       \
  })

/* ---- Tests ---- */

/* Fills memory of its own, copies it out and counts; the memory is freed by the graph, or by its next launch. */
static hipGraphExec_t new_instance(bool is_freed, char *result, int *runs, void **memory_out)
{
  hipGraph_t graph;
  hipGraphExec_t instance;
  void *memory;
  hipStream_t stream = create_stream();
  assert_ok(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  assert_ok(hipMallocAsync(&memory, 4096, stream));
  assert_ok(hipMemsetAsync(memory, 7, 4096, stream));
  assert_ok(hipMemcpyAsync(result, memory, 4096, hipMemcpyDeviceToHost, stream));
  assert_ok(hipLaunchHostFunc(stream, count_up, runs));
  if (is_freed) assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipStreamEndCapture(stream, &graph));
  assert_ok(hipGraphInstantiateWithFlags(&instance, graph, is_freed ? 0 : hipGraphInstantiateFlagAutoFreeOnLaunch));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipStreamDestroy(stream));
  *memory_out = memory;
  return instance;
}

/* The second launch waits for the first, and frees its memory. */
static void a_launch_runs_whole_or_not_at_all(void **state)
{
  (void)state;
  for (int is_freed = 0; is_freed < 2; is_freed++) {
    char result[4096] = {0};
    int runs = 0;
    void *memory;
    hipStream_t stream = create_stream();
    hipGraphExec_t instance = new_instance(is_freed, result, &runs, &memory);
    for (int launches = 1; launches <= 3; launches++) {
      assert_in_range(FAIL_EACH_STEP(hipGraphLaunch(instance, stream)), 5, 50);
      if (launches == 2) continue;
      assert_ok(hipStreamSynchronize(stream));
      assert_int_equal(runs, launches);
      assert_true(is_filled(result, 7, sizeof result));
      memset(result, 0, sizeof result);
    }
    if (!is_freed) assert_ok(hipFree(memory));
    assert_ok(hipGraphExecDestroy(instance));
    assert_ok(hipStreamDestroy(stream));
  }
}

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

static void writes_into_no_file_of_the_program(void **state)
{
  enum { BYTES = 4 * MIB };
  char name[] = "/tmp/hipmm-own-XXXXXX", *content = malloc(2 * (size_t)BYTES);
  void *memory;
  int own = mkstemp(name);
  (void)state;
  assert_int_equal(unlink(name), 0);
  memset(content, 7, BYTES);
  assert_int_equal(write(own, content, BYTES), BYTES);
  assert_ok(hipMalloc(&memory, BYTES));
  take_place_of_files(own);
  assert_ok(hipFree(memory));                                       /* would punch a hole */
  assert_hip(hipMalloc(&memory, 2048u * MIB), hipErrorOutOfMemory); /* would make it longer */
  assert_int_equal(pread(own, content + BYTES, BYTES + 1, 0), BYTES);
  assert_memory_equal(content, content + BYTES, BYTES);
  free(content);
  close(own);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"a launch runs whole or not at all (threads)", a_launch_runs_whole_or_not_at_all, start_threads, finish, NULL},
      {"a launch runs whole or not at all (stepped)", a_launch_runs_whole_or_not_at_all, start_stepped, finish, NULL},
      {"work is in its stream or was refused (threads)", work_is_in_its_stream_or_was_refused, start_threads, finish,
       NULL},
      {"work is in its stream or was refused (stepped)", work_is_in_its_stream_or_was_refused, start_stepped, finish,
       NULL},
      {"memory is unmapped whatever is left", memory_is_unmapped_whatever_is_left, start_threads, finish, NULL},
      {"a limit of files does not end the program", a_limit_of_files_does_not_end_the_program, start_threads, finish,
       NULL},
      {"writes into no file of the program", writes_into_no_file_of_the_program, start_threads, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: no host memory", tests, NULL, NULL);
}
