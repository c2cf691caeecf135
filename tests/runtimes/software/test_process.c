/* SPDX-License-Identifier: MIT */
/* test_process.c: more than one process: memory shared through handles, the child of a fork, and exit with streams
 * live. The program starts itself again in another role, since a forked child cannot use the device. */
#include "../../../core/base/hip_layout.h"
#include "device.h"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* What the other process reads from a pipe on its standard input. */
struct message {
  hipIpcMemHandle_t ipc;
  hipMemPoolPtrExportData pointer;
  int pool_fd, handle_fd;
};

static int inheritable(int fd)
{
  assert_int_equal(fcntl(fd, F_SETFD, 0), 0);
  return fd;
}

/* Starts this program in `role`, with `message` on its standard input; returns its exit status. */
static int run_role(const char *role, const struct message *message)
{
  int pipes[2], status = -1;
  pid_t child;
  char program[4096] = "", role_copy[32];
  char *arguments[] = {program, role_copy, NULL};
  snprintf(role_copy, sizeof role_copy, "%s", role);
  assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
  assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipes[0], 0);
  assert_int_equal(posix_spawn(&child, program, &actions, NULL, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(pipes[0]);
  if (message) (void)!write(pipes[1], message, sizeof *message); /* the role says if it got less */
  close(pipes[1]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- The other process: each role returns 0, or the line that failed -------------------------------- */

#define CHECK(condition) \
  if (!(condition)) return __LINE__ % 250 + 1

static int role_open_ipc(const struct message *message)
{
  void *memory, *again;
  char host[1000];
  hipStream_t stream;
  struct rlimit before, none;
  CHECK(getrlimit(RLIMIT_AS, &before) == 0);
  none = (struct rlimit){4096, before.rlim_max};
  CHECK(hipDeviceSynchronize() == hipSuccess);
  CHECK(setrlimit(RLIMIT_AS, &none) == 0); /* no address space for a mapping */
  hipError_t error = hipIpcOpenMemHandle(&memory, message->ipc, 1);
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(error == hipErrorMapFailed);
  CHECK(hipIpcOpenMemHandle(&memory, message->ipc, 1) == hipSuccess);
  CHECK(hipMemcpy(host, memory, 1000, hipMemcpyDeviceToHost) == hipSuccess);
  CHECK(is_filled(host, 21, 1000));
  CHECK(hipMemset(memory, 1, 1001) == hipErrorInvalidValue);
  CHECK(hipStreamCreate(&stream) == hipSuccess);
  CHECK(hipMemsetAsync(memory, 22, 1000, stream) == hipSuccess);
  CHECK(hipFree(memory) == hipErrorInvalidValue);
  CHECK(hipIpcCloseMemHandle(memory) == hipSuccess);
  CHECK(hipIpcCloseMemHandle(memory) == hipErrorInvalidValue);
  CHECK(hipIpcOpenMemHandle(&again, message->ipc, 0) == hipSuccess);
  CHECK(is_filled(again, 22, 1000));
  CHECK(hipIpcCloseMemHandle(again) == hipSuccess);
  return 0;
}

/* The file that the handle names is closed, and its number is that of another file of the software device. */
static int role_open_ipc_of_lost(const struct message *message)
{
  void *memory = NULL;
  CHECK(hipIpcOpenMemHandle(&memory, message->ipc, 1) == hipErrorMapFailed);
  CHECK(memory == NULL);
  return 0;
}

static int role_open_pool(const struct message *message)
{
  hipMemPool_t pool;
  void *memory, *unused;
  hipMemPoolPtrExportData data = message->pointer, wrong = {{0}};
  CHECK(hipMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)0, hipMemHandleTypePosixFileDescriptor, 0) ==
        hipErrorInvalidValue);
  CHECK(hipMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)message->pool_fd,
                                            hipMemHandleTypePosixFileDescriptor, 0) == hipSuccess);
  CHECK(hipMemPoolImportPointer(&memory, pool, &wrong) == hipErrorInvalidValue);
  CHECK(hipMemPoolImportPointer(&memory, pool, &data) == hipSuccess);
  CHECK(is_filled(memory, 31, 5000));
  CHECK(hipMemsetAsync(memory, 32, 5000, NULL) == hipSuccess);
  CHECK(hipMallocFromPoolAsync(&unused, 10, pool, NULL) == hipErrorInvalidValue);
  CHECK(hipMemPoolDestroy(pool) == hipSuccess);
  CHECK(hipFreeAsync(memory, NULL) == hipSuccess);
  CHECK(hipDeviceSynchronize() == hipSuccess);
  return 0;
}

/* In the form that the device's HIP has. */
static hipError_t import_handle(hipMemGenericAllocationHandle_t *handle, int *fd)
{
  void *shareable = software_version() < HIP_LAYOUT_7_1 ? (void *)fd : (void *)(intptr_t)*fd;
  return hipMemImportFromShareableHandle(handle, shareable, hipMemHandleTypePosixFileDescriptor);
}

static int role_open_handle(const struct message *message)
{
  hipMemGenericAllocationHandle_t handle;
  void *start;
  int fd = message->handle_fd, none = -1;
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  CHECK(import_handle(&handle, &none) == hipErrorInvalidValue);
  CHECK(hipMemImportFromShareableHandle(&handle, NULL, hipMemHandleTypePosixFileDescriptor) == hipErrorInvalidValue);
  CHECK(hipMemImportFromShareableHandle(&handle, (void *)(intptr_t)4096, hipMemHandleTypePosixFileDescriptor) ==
        hipErrorInvalidValue);
  CHECK(import_handle(&handle, &fd) == hipSuccess);
  CHECK(hipMemAddressReserve(&start, 2 * MIB, 0, NULL, 0) == hipSuccess);
  CHECK(hipMemMap(start, 2 * MIB, 0, handle, 0) == hipSuccess);
  CHECK(hipMemSetAccess(start, 2 * MIB, &access, 1) == hipSuccess);
  CHECK(is_filled(start, 41, 2 * MIB));
  CHECK(hipMemset(start, 42, 2 * MIB) == hipSuccess);
  CHECK(hipMemUnmap(start, 2 * MIB) == hipSuccess);
  CHECK(hipMemRelease(handle) == hipSuccess);
  return 0;
}

static void sleep_long(void *unused)
{
  (void)unused;
  sleep(30);
}

/* HIPMM_SOFTWARE is wrong: each call fails. */
static int role_misconfigured(const struct message *message)
{
  (void)message;
  int count = -1;
  void *memory = NULL;
  CHECK(hipInit(0) == hipErrorNotInitialized);
  CHECK(hipGetDeviceCount(&count) == hipErrorNotInitialized && count == -1);
  CHECK(hipMalloc(&memory, 10) == hipErrorNotInitialized && !memory);
  return 0;
}

/* A program that has all keys of thread data leaves none for the default streams of threads. */
static int role_without_keys(const struct message *message)
{
  (void)message;
  pthread_key_t key;
  void *memory;
  while (!pthread_key_create(&key, NULL)) CHECK(pthread_setspecific(key, &key) == 0);
  CHECK(hipMalloc(&memory, 10) == hipSuccess);
  CHECK(hipMemsetAsync(memory, 1, 10, hipStreamPerThread) == hipErrorOutOfMemory);
  CHECK(hipMemset(memory, 1, 10) == hipSuccess);
  CHECK(hipFree(memory) == hipSuccess);
  return 0;
}

/* Exits while its streams run, with both schedulers. */
static int role_exit_at_work(const struct message *message)
{
  (void)message;
  void *memory;
  hipStream_t streams[8];
  CHECK(hipMalloc(&memory, MIB) == hipSuccess);
  for (int i = 0; i < 8; i++) {
    CHECK(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking) == hipSuccess);
    char *part = (char *)memory + (size_t)i * MIB / 8;
    for (int j = 0; j < 1000; j++) CHECK(hipMemsetAsync(part, j, MIB / 8, streams[i]) == hipSuccess);
  }
  CHECK(hipLaunchHostFunc(streams[0], sleep_long, NULL) == hipSuccess);
  CHECK(hipLaunchHostFunc(hipStreamPerThread, sleep_long, NULL) == hipSuccess);
  return 0;
}

static int role_exit_at_work_stepped(const struct message *message)
{
  struct software_config config = small_config(SOFTWARE_STEPPED);
  CHECK(software_configure(&config));
  return role_exit_at_work(message);
}

/* Forks while its streams run, so that a thread may hold the lock. The exit of the child must not hang. */
static int role_fork_at_work(const struct message *message)
{
  int status, error = role_exit_at_work(message);
  if (error) return error;
  for (int round = 0; round < 6; round++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      void *memory = NULL;
      CHECK(hipMalloc(&memory, 10) == hipErrorNotInitialized);
      CHECK(hipStreamSynchronize(NULL) == hipErrorNotInitialized);
      CHECK(hipGetDevice(&status) == hipErrorNotInitialized);
      CHECK(memory == NULL);
      exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return 0;
}

static const struct {
  const char *name;
  int (*run)(const struct message *message);
  bool reads;
} roles[] = {
    {"open_ipc", role_open_ipc, true},
    {"open_ipc_of_lost", role_open_ipc_of_lost, true},
    {"open_pool", role_open_pool, true},
    {"open_handle", role_open_handle, true},
    {"misconfigured", role_misconfigured, false},
    {"without_keys", role_without_keys, false},
    {"exit_at_work", role_exit_at_work, false},
    {"exit_at_work_stepped", role_exit_at_work_stepped, false},
    {"fork_at_work", role_fork_at_work, false},
};

static int play(const char *name)
{
  struct message message = {.pool_fd = -1};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (strcmp(roles[i].name, name) != 0) continue;
    if (roles[i].reads && read(0, &message, sizeof message) != sizeof message) return 254;
    return roles[i].run(&message);
  }
  return 255;
}

/* ---- This process ---------------------------------------------------------------------------------------------- */

static void memory_is_shared_through_ipc_handles(void **state)
{
  (void)state;
  struct message message = {.pool_fd = -1};
  allocate(5000);
  char *memory = allocate(1000);
  assert_ok(hipMemset(memory, 21, 1000));
  assert_ok(hipIpcGetMemHandle(&message.ipc, memory));
  assert_int_equal(run_role("open_ipc", &message), 0);
  assert_true(is_filled(memory, 22, 1000));
}

static void a_handle_is_of_one_file(void **state)
{
  (void)state;
  struct message message = {.pool_fd = -1};
  int first = open("/dev/null", O_RDONLY | O_CLOEXEC), fd = -1;
  hipMemGenericAllocationHandle_t handle;
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                     .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                     .location = {hipMemLocationTypeDevice, 0}};
  assert_int_equal(close(first), 0);
  char *memory = allocate(1000); /* its heap's file has the lowest number that is free */
  assert_ok(hipIpcGetMemHandle(&message.ipc, memory));
  assert_ok(hipMemCreate(&handle, 2 * MIB, &properties, 0));
  assert_ok(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0));
  assert_int_equal(dup2(fd, first), first);
  assert_int_equal(run_role("open_ipc_of_lost", &message), 0);
  assert_hip(hipIpcGetMemHandle(&message.ipc, memory), hipErrorOperatingSystem);
  assert_int_equal(close(fd), 0);
  assert_int_equal(close(first), 0);
  assert_ok(hipMemRelease(handle));
  assert_ok(hipFree(memory));
}

static void a_handle_is_of_one_allocation(void **state)
{
  (void)state;
  hipIpcMemHandle_t first, again, other;
  char *memory = allocate(1000);
  assert_ok(hipIpcGetMemHandle(&first, memory));
  assert_ok(hipIpcGetMemHandle(&again, memory));
  assert_memory_equal(&first, &again, sizeof first);
  assert_ok(hipFree(memory));
  assert_ptr_equal(allocate(1000), memory);
  assert_ok(hipIpcGetMemHandle(&other, memory));
  assert_memory_not_equal(&first, &other, sizeof first);
  assert_ok(hipFree(memory));
}

static void wrong_ipc_handles_are_refused(void **state)
{
  (void)state;
  int local;
  void *opened;
  hipIpcMemHandle_t handle = {{0}};
  char *memory = allocate(1000);
  assert_hip(hipIpcOpenMemHandle(&opened, handle, 0), hipErrorInvalidValue);
  assert_hip(hipIpcGetMemHandle(NULL, memory), hipErrorInvalidValue);
  assert_hip(hipIpcGetMemHandle(&handle, &local), hipErrorInvalidValue);
  assert_hip(hipIpcGetMemHandle(&handle, memory + 1), hipErrorInvalidValue);
  assert_hip(hipIpcCloseMemHandle(memory), hipErrorInvalidValue);
  assert_ok(hipIpcGetMemHandle(&handle, memory));
  assert_hip(hipIpcOpenMemHandle(NULL, handle, 0), hipErrorInvalidValue);
  assert_hip(hipIpcOpenMemHandle(&opened, handle, 7), hipErrorInvalidValue);
  assert_hip(hipIpcOpenMemHandle(&opened, handle, 0), hipErrorInvalidContext); /* by the process that made it */
  assert_ok(hipFree(memory));
}

static void pooled_memory_is_shared_through_its_pool(void **state)
{
  (void)state;
  struct message message = {.pool_fd = -1};
  hipMemPool_t pool, closed;
  void *memory;
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned,
                                .handleTypes = hipMemHandleTypePosixFileDescriptor,
                                .location = {hipMemLocationTypeDevice, 0}};
  assert_ok(hipMemPoolCreate(&pool, &properties));
  assert_ok(hipMemPoolExportToShareableHandle(&message.pool_fd, pool, hipMemHandleTypePosixFileDescriptor, 0));
  assert_ok(hipMallocFromPoolAsync(&memory, 5000, pool, NULL));
  assert_ok(hipMemPoolExportPointer(&message.pointer, memory));
  assert_ok(hipMemset(memory, 31, 5000));
  inheritable(message.pool_fd);
  assert_int_equal(run_role("open_pool", &message), 0);
  assert_true(is_filled(memory, 32, 5000));
  close(message.pool_fd);
  assert_ok(hipFreeAsync(memory, NULL));
  properties.handleTypes = hipMemHandleTypeNone;
  assert_ok(hipMemPoolCreate(&closed, &properties));
  assert_hip(hipMemPoolExportToShareableHandle(&message.pool_fd, closed, hipMemHandleTypePosixFileDescriptor, 0),
             hipErrorInvalidValue);
  assert_ok(hipMallocFromPoolAsync(&memory, 5000, closed, NULL));
  assert_hip(hipMemPoolExportPointer(&message.pointer, memory), hipErrorInvalidValue);
  assert_ok(hipFreeAsync(memory, NULL));
  assert_ok(hipMemPoolDestroy(pool));
  assert_ok(hipMemPoolDestroy(closed));
  assert_ok(hipDeviceSynchronize());
}

static void physical_memory_is_shared_through_its_handle(void **state)
{
  (void)state;
  struct message message = {.pool_fd = -1};
  void *start;
  hipMemGenericAllocationHandle_t handle, plain;
  hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                     .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                     .location = {hipMemLocationTypeDevice, 0}};
  assert_ok(hipMemCreate(&handle, 2 * MIB, &properties, 0));
  assert_ok(hipMemAddressReserve(&start, 2 * MIB, 0, NULL, 0));
  assert_ok(hipMemMap(start, 2 * MIB, 0, handle, 0));
  assert_ok(hipMemSetAccess(start, 2 * MIB, &access, 1));
  assert_ok(hipMemset(start, 41, 2 * MIB));
  assert_ok(hipMemExportToShareableHandle(&message.handle_fd, handle, hipMemHandleTypePosixFileDescriptor, 0));
  inheritable(message.handle_fd);
  assert_int_equal(run_role("open_handle", &message), 0);
  assert_true(is_filled(start, 42, 2 * MIB));
  close(message.handle_fd);
  assert_hip(import_handle(&plain, &(int){1}), hipErrorInvalidValue);
  assert_ok(hipMemUnmap(start, 2 * MIB));
  assert_ok(hipMemRelease(handle));
  assert_ok(hipMemAddressFree(start, 2 * MIB));
}

static void a_wrong_setting_of_the_environment_is_no_device(void **state)
{
  (void)state;
  setenv("HIPMM_SOFTWARE", "devices=many", 1);
  int status = run_role("misconfigured", NULL);
  unsetenv("HIPMM_SOFTWARE");
  assert_int_equal(status, 0);
}

static void a_process_may_have_no_key_for_thread_data(void **state)
{
  (void)state;
  assert_int_equal(run_role("without_keys", NULL), 0);
}

static void a_process_may_exit_while_its_streams_work(void **state)
{
  (void)state;
  assert_int_equal(run_role("exit_at_work", NULL), 0);
  assert_int_equal(run_role("exit_at_work_stepped", NULL), 0);
}

static void the_child_of_a_fork_gets_errors_and_exits(void **state)
{
  (void)state;
  assert_int_equal(run_role("fork_at_work", NULL), 0);
}

int main(int count, char **arguments)
{
  if (count > 1) return play(arguments[1]);
  signal(SIGPIPE, SIG_IGN);
  /* The leak check at exit waits for threads that a forked child does not have. */
  setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
  static const struct CMUnitTest tests[] = {
      {"memory is shared through ipc handles", memory_is_shared_through_ipc_handles, start_threads, finish_untidy,
       NULL},
      {"a handle is of one file", a_handle_is_of_one_file, start_threads, finish, NULL},
      {"a handle is of one allocation", a_handle_is_of_one_allocation, start_threads, finish, NULL},
      {"wrong ipc handles are refused", wrong_ipc_handles_are_refused, start_threads, finish, NULL},
      {"pooled memory is shared through its pool", pooled_memory_is_shared_through_its_pool, start_threads, finish,
       NULL},
      {"physical memory is shared through its handle", physical_memory_is_shared_through_its_handle, start_threads,
       finish, NULL},
      {"a process may exit while its streams work", a_process_may_exit_while_its_streams_work, start_threads, finish,
       NULL},
      {"the child of a fork gets errors and exits", the_child_of_a_fork_gets_errors_and_exits, start_threads, finish,
       NULL},
      {"a wrong setting of the environment is no device", a_wrong_setting_of_the_environment_is_no_device,
       start_threads, finish, NULL},
      {"a process may have no key for thread data", a_process_may_have_no_key_for_thread_data, start_threads, finish,
       NULL},
  };
  return cmocka_run_group_tests_name("software: processes", tests, NULL, NULL);
}
