/* SPDX-License-Identifier: MIT */
/* driver_past.c: scenarios of driver.c about memory that does not come from hipmm: what is short of memory, and what the
 * program creates itself. */
#include "driver.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned properties[8] = {1, 0, 1, 0}; /* pinned memory of device 0 */

/* Afterwards hipmm holds 48 MiB that nobody uses. */
static void leave_idle(void)
{
  CUdeviceptr memory;
  GOOD(driver.cuMemAlloc_v2(&memory, 48 * MIB));
  GOOD(driver.cuMemFree_v2(memory));
}

/* Run on a device of 64 MiB: each function takes 48 MiB, whatever its arguments are. */
void be_hungry(void)
{
  typedef int any_function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                           uintptr_t, uintptr_t, uintptr_t);
  CUdeviceptr memory;
  start();
#define CALL(name, base, since, parameters, arguments)                               \
  {                                                                                  \
    any_function *function;                                                          \
    memcpy(&function, &driver.name, sizeof function);                                \
    leave_idle();                                                                    \
    GOOD(function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));                                 \
    GOOD(driver.cuMemAlloc_v2(&memory, 48 * MIB));                                   \
    EXPECT(MEMORY, function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)); /* nothing is idle */ \
    GOOD(driver.cuMemFree_v2(memory));                                               \
  }
  HUNGRY_FUNCTIONS(CALL)
}

/* While a stream is being captured, idle memory that needs no wait is given back. */
void capture_short(void)
{
  CUdeviceptr memory;
  CUstream stream;
  uint64_t handle;
  start();
  GOOD(driver.cuStreamCreate(&stream, 1));
  leave_idle();
  driver.fake_capture(stream);
  GOOD(driver.cuMemCreate(&handle, 48 * MIB, properties, 0));
  GOOD(driver.cuMemRelease(handle));
  driver.fake_capture(NULL);
  GOOD(driver.cuMemAlloc_v2(&memory, 48 * MIB));
  GOOD(driver.cuMemFree_v2(memory));
}

/* What is left below the limit of 64 MiB is so much, and not a granule more. */
static void expect_left(size_t bytes)
{
  uint64_t handle;
  EXPECT(MEMORY, driver.cuMemCreate(&handle, bytes + 2 * MIB, properties, 0));
  if (!bytes) return;
  GOOD(driver.cuMemCreate(&handle, bytes, properties, 0));
  GOOD(driver.cuMemRelease(handle));
}

/* The memory lives as long as a handle or a mapping of it. */
static void map_and_release(void)
{
  CUdeviceptr address;
  uint64_t first, second, again;
  GOOD(driver.cuMemAddressReserve(&address, 32 * MIB, 0, 0, 0));
  GOOD(driver.cuMemCreate(&first, 16 * MIB, properties, 0));
  GOOD(driver.cuMemCreate(&second, 16 * MIB, properties, 0));
  GOOD(driver.cuMemMap(address, 16 * MIB, 0, first, 0));
  GOOD(driver.cuMemMap(address + 16 * MIB, 16 * MIB, 0, second, 0));
  expect_left(32 * MIB);
  GOOD(driver.cuMemRelease(first));
  GOOD(driver.cuMemRelease(second));
  EXPECT(INVALID, driver.cuMemRelease(second));
  expect_left(32 * MIB);
  GOOD(driver.cuMemRetainAllocationHandle(&again, address + 2 * MIB));
  CHECK(driver.cuMemUnmap(address, 8 * MIB) != 0); /* a part of a mapping */
  expect_left(32 * MIB);
  GOOD(driver.cuMemUnmap(address, 32 * MIB));
  expect_left(48 * MIB);
  GOOD(driver.cuMemMap(address, 16 * MIB, 0, again, 0));
  GOOD(driver.cuMemRelease(again));
  expect_left(48 * MIB);
  GOOD(driver.cuMemUnmap(address, 16 * MIB));
  expect_left(64 * MIB);
  GOOD(driver.cuMemAddressFree(address, 32 * MIB));
}

/* Run with a limit of 64 MiB: hipmm's memory and the program's own count together. */
void pass_by(void)
{
  size_t free_bytes = 0, total = 0;
  CUdeviceptr memory;
  uint64_t handle;
  EXPECT(UNINITIALISED, driver.cuMemCreate(&handle, 2 * MIB, properties, 0));
  start();
  GOOD(driver.cuDeviceTotalMem_v2(&total, 0));
  CHECK(total == 64 * MIB);
  expect_left(64 * MIB);
  map_and_release();
  GOOD(driver.cuMemCreate(&handle, 20 * MIB, properties, 0));
  EXPECT(MEMORY, driver.cuMemAlloc_v2(&memory, 48 * MIB));
  GOOD(driver.cuMemAlloc_v2(&memory, 40 * MIB));
  GOOD(driver.cuMemGetInfo_v2(&free_bytes, &total));
  CHECK(total == 64 * MIB && free_bytes <= 4 * MIB);
  GOOD(driver.cuMemFree_v2(memory));
  GOOD(driver.cuMemGetInfo_v2(&free_bytes, &total));
  CHECK(total == 64 * MIB && free_bytes == 44 * MIB); /* idle memory counts as free */
  expect_left(44 * MIB);                              /* and makes room */
  EXPECT(INVALID, driver.cuMemRelease(handle + 1));
  EXPECT(INVALID, driver.cuMemCreate(&handle, 3, properties, 0)); /* the driver's own answer: no granule */
  GOOD(driver.cuMemRelease(handle));
  pid_t child = fork();
  if (!child) _exit(driver.cuMemCreate(&handle, 2 * MIB, properties, 0) == 0 ? 1 : 0);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && !WIFSIGNALED(status));
  expect_left(64 * MIB);
  GOOD(driver.cuMemCreate(&handle, 6 * MIB, properties, 0)); /* left at exit */
}

static void *create_in_thread(void *context)
{
  uint64_t handle;
  CUdeviceptr memory;
  GOOD(driver.cuCtxSetCurrent(context));
  for (int i = 0; i < 40; i++) {
    int code = driver.cuMemCreate(&handle, 20 * MIB, properties, 0);
    CHECK(code == 0 || code == MEMORY);
    if (!code) GOOD(driver.cuMemRelease(handle));
    code = driver.cuMemAlloc_v2(&memory, 20 * MIB);
    CHECK(code == 0 || code == MEMORY);
    if (!code) GOOD(driver.cuMemFree_v2(memory));
  }
  return NULL;
}

void pass_by_in_threads(void)
{
  enum { THREADS = 6 };
  pthread_t threads[THREADS];
  CUcontext context = start();
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, create_in_thread, context));
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
  expect_left(64 * MIB);
}
