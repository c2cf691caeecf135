/* SPDX-License-Identifier: MIT */
/* program_share.c: memory that the HIP program shares with another process. Each scenario forks before its first call. */
#include "program.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* The child runs `work` with the pipe; the parent gets its other end, and joins with finish(). */
static int start(int (*work)(int pipe_end), pid_t *child_out)
{
  int ends[2];
  if (pipe(ends)) abort();
  *child_out = fork();
  if (*child_out) {
    close(ends[0]);
    return ends[1];
  }
  close(ends[1]);
  int bad = work(ends[0]);
  exit(bad);
}

static void finish(pid_t child, int pipe_end)
{
  int status = 0;
  close(pipe_end);
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void send_bytes(int pipe_end, const void *data, size_t bytes)
{
  CHECK(write(pipe_end, data, bytes) == (ssize_t)bytes);
}

static bool get_bytes(int pipe_end, void *data, size_t bytes)
{
  return read(pipe_end, data, bytes) == (ssize_t)bytes;
}

static bool device_holds(const void *memory, int value, size_t bytes)
{
  unsigned char *host = malloc(bytes);
  hipError_t code = hipMemcpy(host, memory, bytes, hipMemcpyDeviceToHost);
  bool are = !code && all_are(host, bytes, value);
  free(host);
  return are;
}

/* ---- Parts of an allocation ---- */

enum { PARTS = 4, PART_BYTES = 64 * KIB };

#define MUST(condition) \
  if (!(condition)) return fprintf(stderr, "child: %s\n", #condition), 1

/* Behind the first 16 bytes, by which hipmm knows its handles, each of these words is something else in the maker's process. */
static int refuse_changed_handles(const hipIpcMemHandle_t *handle)
{
  for (size_t at = 16; at < 48; at += 8) {
    hipIpcMemHandle_t changed = *handle;
    void *part = NULL;
    memset((char *)&changed + at, 0x7f, 8);
    MUST(hipIpcOpenMemHandle(&part, changed, hipIpcMemLazyEnablePeerAccess) == hipErrorMapFailed && !part);
    MUST(hipGetLastError() == hipErrorMapFailed);
  }
  return 0;
}

/* Opens the parts, sees what is in them, and fills one; opens one twice. */
static int open_parts(int pipe_end)
{
  hipIpcMemHandle_t handles[PARTS];
  char *parts[PARTS], *again;
  void *own;
  MUST(get_bytes(pipe_end, handles, sizeof handles));
  MUST(!hipMalloc(&own, KIB));
  MUST(!refuse_changed_handles(&handles[0]));
  for (int i = 0; i < PARTS; i++) {
    MUST(!hipIpcOpenMemHandle((void **)&parts[i], handles[i], hipIpcMemLazyEnablePeerAccess));
    MUST(device_holds(parts[i], i + 1, PART_BYTES));
  }
  MUST(!hipIpcOpenMemHandle((void **)&again, handles[1], hipIpcMemLazyEnablePeerAccess));
  MUST(again == parts[1]);
  MUST(!hipIpcCloseMemHandle(parts[1]));
  MUST(!hipMemset(again, 77, PART_BYTES));
  MUST(!hipDeviceSynchronize());
  for (int i = 0; i < PARTS; i++) MUST(!hipIpcCloseMemHandle(parts[i]));
  MUST(hipIpcCloseMemHandle(parts[0]) == hipErrorInvalidValue);
  MUST(hipIpcOpenMemHandle(NULL, handles[0], hipIpcMemLazyEnablePeerAccess) == hipErrorInvalidValue);
  MUST(!hipIpcOpenMemHandle((void **)&again, handles[1], hipIpcMemLazyEnablePeerAccess)); /* after all were closed */
  MUST(device_holds(again, 77, PART_BYTES));
  MUST(!hipIpcCloseMemHandle(again));
  MUST(!hipFree(own));
  return 0;
}

/* Run with a pool that holds segments. */
void scenario_share_parts(void)
{
  hipIpcMemHandle_t handles[PARTS], other;
  char *parts[PARTS];
  void *opened;
  pid_t child;
  int pipe_end = start(open_parts, &child);
  for (int i = 0; i < PARTS; i++) {
    GOOD(hipMalloc((void **)&parts[i], PART_BYTES));
    GOOD(hipMemset(parts[i], i + 1, PART_BYTES));
    GOOD(hipIpcGetMemHandle(&handles[i], parts[i]));
    GOOD(hipIpcGetMemHandle(&other, parts[i]));
    CHECK(!memcmp(&other, &handles[i], sizeof other));
    for (int before = 0; before < i; before++) CHECK(memcmp(&handles[before], &handles[i], sizeof other) != 0);
  }
  GOOD(hipDeviceSynchronize());
  EXPECT(hipErrorInvalidContext, hipIpcOpenMemHandle(&opened, handles[0], hipIpcMemLazyEnablePeerAccess));
  EXPECT(hipErrorInvalidContext, hipGetLastError());
  send_bytes(pipe_end, handles, sizeof handles);
  finish(child, pipe_end);
  CHECK(device_holds(parts[0], 1, PART_BYTES));
  CHECK(device_holds(parts[1], 77, PART_BYTES));
  CHECK(device_holds(parts[2], 3, PART_BYTES));
  GOOD(hipFree(parts[3]));
  EXPECT(hipErrorInvalidValue, hipIpcGetMemHandle(&other, parts[3]));
  hipGetLastError();
  GOOD(hipMalloc((void **)&parts[3], PART_BYTES)); /* the same address, another block */
  GOOD(hipIpcGetMemHandle(&other, parts[3]));
  CHECK(memcmp(&other, &handles[3], sizeof other) != 0);
  for (int i = 0; i < PARTS; i++) GOOD(hipFree(parts[i]));
}

/* Mapped memory, the program's own and imported: the runtime is not asked for a handle. */
void scenario_share_mapped(void)
{
  const hipMemAllocationProp props = {.type = hipMemAllocationTypePinned,
                                      .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                      .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  hipMemGenericAllocationHandle_t handles[2];
  hipIpcMemHandle_t handle;
  char *start;
  int file = -1;
  GOOD(hipMemAddressReserve((void **)&start, 4 * MIB, 0, NULL, 0));
  GOOD(hipMemCreate(&handles[0], 2 * MIB, &props, 0));
  GOOD(hipMemExportToShareableHandle(&file, handles[0], hipMemHandleTypePosixFileDescriptor, 0));
  GOOD(hipMemImportFromShareableHandle(&handles[1], HIP_VERSION >= 70100000 ? (void *)(intptr_t)file : &file,
                                       hipMemHandleTypePosixFileDescriptor));
  close(file);
  for (int i = 0; i < 2; i++) {
    GOOD(hipMemMap(start + i * 2 * MIB, 2 * MIB, 0, handles[i], 0));
    EXPECT(hipErrorNotSupported, hipIpcGetMemHandle(&handle, start + i * 2 * MIB));
    EXPECT(hipErrorNotSupported, hipGetLastError());
  }
  GOOD(hipMemUnmap(start, 4 * MIB));
  EXPECT(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, start)); /* the runtime's own answer */
  EXPECT(hipErrorInvalidValue, hipGetLastError());
  for (int i = 0; i < 2; i++) GOOD(hipMemRelease(handles[i]));
  GOOD(hipMemAddressFree(start, 4 * MIB));
}

/* Puts a file of the program's own in the place of the one that hipmm keeps for handles, as a program does that closes all
 * files. */
static void take_place_of_records(int own)
{
  char link[64], target[64];
  for (int file = STDERR_FILENO + 1; file < 200; file++) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, target, sizeof target);
    if (length <= 0 || strncmp(target, "/memfd:hipmm-ipc", strlen("/memfd:hipmm-ipc")) != 0) continue;
    CHECK(dup2(own, file) == file);
    return;
  }
  CHECK(false && "there is such a file");
}

/* Opens one handle that was made before the files were closed, and one made afterwards. */
static int open_what_is_left(int pipe_end)
{
  hipIpcMemHandle_t handles[2];
  void *own, *parts[2];
  MUST(get_bytes(pipe_end, handles, sizeof handles));
  MUST(!hipMalloc(&own, KIB));
  MUST(hipIpcOpenMemHandle(&parts[0], handles[0], hipIpcMemLazyEnablePeerAccess));
  hipGetLastError();
  MUST(!hipIpcOpenMemHandle(&parts[1], handles[1], hipIpcMemLazyEnablePeerAccess));
  MUST(device_holds(parts[1], 2, PART_BYTES));
  MUST(!hipIpcCloseMemHandle(parts[1]));
  return hipFree(own) != hipSuccess;
}

/* Run with a pool that holds segments. */
void scenario_share_closed(void)
{
  hipIpcMemHandle_t handles[2];
  char *parts[2], *unused, name[] = "/tmp/hipmm-own-XXXXXX";
  pid_t child;
  int own = mkstemp(name), pipe_end = start(open_what_is_left, &child);
  CHECK(own >= 0 && !unlink(name) && write(own, "mine", 4) == 4);
  GOOD(hipMalloc((void **)&unused, PART_BYTES));
  for (int i = 0; i < 2; i++) {
    GOOD(hipMalloc((void **)&parts[i], PART_BYTES));
    GOOD(hipMemset(parts[i], i + 1, PART_BYTES));
    GOOD(hipIpcGetMemHandle(&handles[i], parts[i]));
    if (!i) take_place_of_records(own);
  }
  GOOD(hipDeviceSynchronize());
  CHECK(lseek(own, 0, SEEK_END) == 4);
  send_bytes(pipe_end, handles, sizeof handles);
  finish(child, pipe_end);
  for (int i = 0; i < 2; i++) GOOD(hipFree(parts[i]));
  GOOD(hipFree(unused));
}

static atomic_bool has_no_random; /* as in a process whose system call is forbidden */

/* In the place of libc's, for all libraries of the process. */
__attribute__((visibility("default"))) ssize_t getrandom(void *buffer, size_t bytes, unsigned flags)
{
  if (!atomic_load(&has_no_random)) return syscall(SYS_getrandom, buffer, bytes, flags);
  errno = ENOSYS;
  return -1;
}

/* Opens a handle that was made anew, and that of a block which got its first in the new file. */
static int open_blocks_of_two_segments(int pipe_end)
{
  hipIpcMemHandle_t handles[2];
  void *own, *blocks[2];
  MUST(get_bytes(pipe_end, handles, sizeof handles));
  MUST(!hipMalloc(&own, KIB));
  for (int i = 0; i < 2; i++) {
    MUST(!hipIpcOpenMemHandle(&blocks[i], handles[i], hipIpcMemLazyEnablePeerAccess));
    MUST(device_holds(blocks[i], i + 1, MIB));
    MUST(!hipIpcCloseMemHandle(blocks[i]));
  }
  return hipFree(own) != hipSuccess;
}

/* Run with a pool that holds segments. The new file for handles fails at first. */
void scenario_share_reopened(void)
{
  enum { BLOCKS = 64, LAST = BLOCKS - 1 }; /* of many segments */
  static char *blocks[BLOCKS];
  hipIpcMemHandle_t handles[2];
  char name[] = "/tmp/hipmm-own-XXXXXX";
  pid_t child;
  int own = mkstemp(name), pipe_end = start(open_blocks_of_two_segments, &child);
  CHECK(own >= 0 && !unlink(name));
  for (int i = 0; i < BLOCKS; i++) GOOD(hipMalloc((void **)&blocks[i], MIB));
  GOOD(hipMemset(blocks[0], 1, MIB));
  GOOD(hipMemset(blocks[LAST], 2, MIB));
  GOOD(hipDeviceSynchronize());
  GOOD(hipIpcGetMemHandle(&handles[0], blocks[0]));
  take_place_of_records(own);
  atomic_store(&has_no_random, true);
  EXPECT(hipErrorOutOfMemory, hipIpcGetMemHandle(&handles[1], blocks[LAST]));
  atomic_store(&has_no_random, false);
  hipGetLastError();
  GOOD(hipIpcGetMemHandle(&handles[1], blocks[LAST]));
  GOOD(hipIpcGetMemHandle(&handles[0], blocks[0]));
  send_bytes(pipe_end, handles, sizeof handles);
  finish(child, pipe_end);
  for (int i = 0; i < BLOCKS; i++) GOOD(hipFree(blocks[i]));
}

/* ---- What cannot be shared ---- */

/* The child makes a handle and ends. */
static int make_handle(int pipe_end)
{
  hipIpcMemHandle_t handle;
  void *first, *memory;
  int to_parent;
  MUST(get_bytes(pipe_end, &to_parent, sizeof to_parent));
  MUST(!hipMalloc(&first, KIB));
  MUST(!hipMalloc(&memory, KIB));
  MUST(!hipIpcGetMemHandle(&handle, memory));
  MUST(write(to_parent, &handle, sizeof handle) == (ssize_t)sizeof handle);
  return 0;
}

/* Run with a pool that holds segments. */
void scenario_share_ended(void)
{
  hipIpcMemHandle_t handle;
  void *opened = NULL;
  pid_t child;
  int back[2];
  CHECK(!pipe(back));
  int pipe_end = start(make_handle, &child);
  send_bytes(pipe_end, &back[1], sizeof back[1]);
  CHECK(get_bytes(back[0], &handle, sizeof handle));
  finish(child, pipe_end);
  GOOD(hipMalloc(&opened, KIB));
  EXPECT(hipErrorMapFailed, hipIpcOpenMemHandle(&opened, handle, hipIpcMemLazyEnablePeerAccess));
  EXPECT(hipErrorMapFailed, hipGetLastError());
  GOOD(hipFree(opened));
}

/* Run with a pool, whose blocks are parts of allocations, and with `device`, whose blocks are whole allocations. */
void scenario_share(void)
{
  hipIpcMemHandle_t handle;
  void *first, *memory;
  GOOD(hipMalloc(&first, KIB));
  GOOD(hipMalloc(&memory, 4 * MIB));
  hipError_t code = hipIpcGetMemHandle(&handle, memory);
  CHECK(code == hipSuccess || code == hipErrorNotSupported);
  printf("%s\n", code ? "refused" : "shared");
  if (code) EXPECT(code, hipGetLastError());
  EXPECT(hipErrorInvalidValue, hipIpcGetMemHandle(NULL, memory));
  hipGetLastError();
  GOOD(hipFree(memory));
  GOOD(hipFree(first));
  EXPECT(hipErrorInvalidValue, hipIpcGetMemHandle(&handle, first));
  EXPECT(hipErrorInvalidValue, hipGetLastError());
}
