/* SPDX-License-Identifier: MIT */
/* driver_contexts.c: scenarios of driver.c: contexts, devices, threads and processes. */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory of another context than the device's primary one stays with the driver, and hipmm's is freed from there too. */
void use_contexts(void)
{
  CUcontext primary = start(), own = NULL, found = NULL;
  CUdeviceptr ours, theirs;
  CUstream stream;
  GOOD(driver.cuMemAlloc_v2(&ours, KIB));
  fill(ours, 5, KIB, NULL);
  GOOD(driver.cuCtxCreate_v2(&own, 0, 0));
  unsigned before = driver.fake_allocations();
  GOOD(driver.cuStreamCreate(&stream, 1));
  GOOD(driver.cuMemAlloc_v2(&theirs, KIB));
  CHECK(driver.fake_allocations() == before + 1);
  GOOD(driver.cuMemFree_v2(theirs));
  GOOD(driver.cuMemAllocAsync(&theirs, KIB, stream)); /* passed on */
  GOOD(driver.cuMemFreeAsync(theirs, stream));
  verify(ours, 5, KIB);
  GOOD(driver.cuMemFree_v2(ours));
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(found == own);
  GOOD(driver.cuCtxSetCurrent(primary));
  GOOD(driver.cuMemAllocAsync(&theirs, KIB, stream)); /* passed on */
  GOOD(driver.cuMemFreeAsync(theirs, stream));
  GOOD(driver.cuMemAlloc_v2(&ours, KIB));
  GOOD(driver.cuMemFreeAsync(ours, stream)); /* after work of the other context, which hipmm's streams do not follow */
  CHECK(driver.fake_waited_for(stream));
  GOOD(driver.cuMemAlloc_v2(&ours, KIB));
  GOOD(driver.cuCtxSetCurrent(NULL));
  GOOD(driver.cuMemFree_v2(ours));
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(!found);
  GOOD(driver.cuCtxSetCurrent(own));
  GOOD(driver.cuStreamDestroy_v2(stream));
}

void reset(void)
{
  CUdeviceptr memory;
  CUmemoryPool pool;
  CUstream stream;
  CUcontext context = start(), found = NULL;
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 5; i++) GOOD(driver.cuStreamCreate(&stream, 1)); /* they end with the reset */
    GOOD(driver.cuMemAlloc_v2(&memory, MIB));
    GOOD(driver.cuDevicePrimaryCtxReset_v2(0));
    GOOD(driver.cuCtxGetCurrent(&found));
    CHECK(found == context);
  }
  GOOD(driver.cuMemAlloc_v2(&memory, MIB));
  unsigned before = driver.fake_frees();
  GOOD(driver.cuMemFree_v2(memory));
  GOOD(driver.cuDeviceGetDefaultMemPool(&pool, 0));
  GOOD(driver.cuMemPoolTrimTo(pool, 0));
  CHECK(driver.fake_frees() == before + 1);
}

/* Run with two devices: memory of both, wherever it is freed; and streams of the device that is not current. */
void use_devices(void)
{
  CUcontext contexts[2] = {start(), NULL}, found = NULL;
  CUdeviceptr memory[2], ordered;
  CUstream stream;
  GOOD(driver.cuDevicePrimaryCtxRetain(&contexts[1], 1));
  for (int device = 0; device < 2; device++) {
    GOOD(driver.cuCtxSetCurrent(contexts[device]));
    GOOD(driver.cuMemAlloc_v2(&memory[device], KIB));
    fill(memory[device], device + 1, KIB, NULL);
  }
  GOOD(driver.cuStreamCreate(&stream, 1));
  GOOD(driver.cuCtxSetCurrent(contexts[0]));
  GOOD(driver.cuPointerGetAttribute(&found, 1, memory[1]));
  CHECK(found == contexts[1]);
  GOOD(driver.cuMemAllocAsync(&ordered, KIB, stream));
  GOOD(driver.cuPointerGetAttribute(&found, 1, ordered));
  CHECK(found == contexts[1]);
  GOOD(driver.cuMemFreeAsync(ordered, stream));
  GOOD(driver.cuMemFree_v2(memory[1]));
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(found == contexts[0]);
  GOOD(driver.cuCtxSetCurrent(contexts[1]));
  GOOD(driver.cuMemFree_v2(memory[0]));
  GOOD(driver.cuDevicePrimaryCtxReset_v2(1)); /* the memory of both devices stays, which a message says */
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(found == contexts[1]);
  GOOD(driver.cuStreamDestroy_v2(stream));
}

/* Run with a graph whose device resource names peers: the program finds its own state of access all the same. */
void use_peers(void)
{
  CUcontext contexts[2] = {start(), NULL};
  CUdeviceptr memory;
  GOOD(driver.cuDevicePrimaryCtxRetain(&contexts[1], 1));
  GOOD(driver.cuMemAlloc_v2(&memory, KIB));
  GOOD(driver.cuCtxSetCurrent(contexts[1]));
  EXPECT(PEER_NOT_ENABLED, driver.cuCtxDisablePeerAccess(contexts[0]));
  GOOD(driver.cuCtxEnablePeerAccess(contexts[0], 0));
  EXPECT(PEER_ALREADY_ENABLED, driver.cuCtxEnablePeerAccess(contexts[0], 0));
  GOOD(driver.cuCtxDisablePeerAccess(contexts[0]));
  GOOD(driver.cuMemFree_v2(memory));
}

/* The child opens the handle of a block that begins within an allocation, and fills the block. */
static int open_part(int pipe_end)
{
  CUipcMemHandle handle;
  CUdeviceptr memory;
  if (read(pipe_end, &handle, sizeof handle) != (ssize_t)sizeof handle) return 1;
  start();
  if (driver.cuIpcOpenMemHandle_v2(&memory, handle, 1)) return 2;
  if (driver.cuMemsetD8_v2(memory, 9, KIB) || driver.cuCtxSynchronize()) return 3;
  return driver.cuIpcCloseMemHandle(memory) ? 4 : 0;
}

void share(void)
{
  CUipcMemHandle handle;
  CUdeviceptr first, memory;
  int ends[2], status = 1;
  CHECK(!pipe(ends));
  pid_t child = fork(); /* before the first call */
  if (!child) exit(open_part(ends[0]));
  start();
  GOOD(driver.cuMemAlloc_v2(&first, KIB));
  GOOD(driver.cuMemAlloc_v2(&memory, KIB));
  fill(first, 1, KIB, NULL);
  GOOD(driver.cuIpcGetMemHandle(&handle, memory));
  CHECK(write(ends[1], &handle, sizeof handle) == (ssize_t)sizeof handle);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  verify(memory, 9, KIB);
  verify(first, 1, KIB);
  GOOD(driver.cuMemFree_v2(memory));
  GOOD(driver.cuMemFree_v2(first));
}

/* Each thread has a context of its own choice, or none. */
static void *use_in_thread(void *context)
{
  CUdeviceptr memory;
  EXPECT(NO_CONTEXT, driver.cuMemAlloc_v2(&memory, KIB));
  GOOD(driver.cuCtxSetCurrent(context));
  for (int i = 0; i < 50; i++) {
    GOOD(driver.cuMemAlloc_v2(&memory, 4 * KIB));
    GOOD(driver.cuMemsetD8_v2(memory, (unsigned char)i, 4 * KIB));
    GOOD(driver.cuMemFree_v2(memory));
  }
  return NULL;
}

void use_threads(void)
{
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  CUcontext context = start();
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, use_in_thread, context));
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
}
