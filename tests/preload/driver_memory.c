/* SPDX-License-Identifier: MIT */
/* driver_memory.c: scenarios of driver.c: memory of all kinds, pools, captures, what a program asks, and errors. */
#include "driver.h"

#include <string.h>

void use_memory(void)
{
  CUdeviceptr memory, ordered;
  CUstream stream;
  start();
  GOOD(driver.cuStreamCreate(&stream, 1));
  for (int i = 0; i < 10; i++) {
    GOOD(driver.cuMemAlloc_v2(&memory, 64 * KIB));
    GOOD(driver.cuMemAllocAsync(&ordered, 64 * KIB, stream));
    fill(memory, i, 64 * KIB, stream);
    fill(ordered, i + 1, 64 * KIB, stream);
    verify(memory, i, 64 * KIB);
    GOOD(driver.cuMemFree_v2(memory));
    GOOD(driver.cuMemFreeAsync(ordered, stream));
    GOOD(driver.cuMemAllocAsync_ptsz(&ordered, 32 * KIB, NULL)); /* stream 0 is the thread's own default stream */
    fill(ordered, i + 2, 32 * KIB, (CUstream)2);
    GOOD(driver.cuMemFreeAsync_ptsz(ordered, NULL));
  }
  GOOD(driver.cuStreamDestroy_v2(stream));
}

/* With a graph that has resources for managed and pinned memory, and a pool below a limit of 4 MiB. */
void use_kinds(void)
{
  CUdeviceptr memory, base;
  void *pinned;
  size_t pitch = 0, bytes = 0, total = 0;
  unsigned flags = 9;
  start();
  GOOD(driver.cuMemAllocPitch_v2(&memory, &pitch, 100, 20, 4));
  CHECK(pitch == 512 && memory % 512 == 0);
  fill(memory, 3, pitch * 20, NULL);
  GOOD(driver.cuMemGetAddressRange_v2(&base, &bytes, memory + 700));
  CHECK(base == memory && bytes == pitch * 20);
  GOOD(driver.cuMemFree_v2(memory));
  EXPECT(INVALID, driver.cuMemAllocPitch_v2(&memory, &pitch, 100, 20, 5)); /* passed on */
  GOOD(driver.cuMemAllocManaged(&memory, KIB, 1));
  memset((void *)(uintptr_t)memory, 1, KIB);
  GOOD(driver.cuMemFree_v2(memory));
  EXPECT(INVALID, driver.cuMemAllocManaged(&memory, KIB, 0)); /* passed on */
  GOOD(driver.cuMemHostAlloc(&pinned, KIB, 1));
  memset(pinned, 1, KIB);
  GOOD(driver.cuMemHostGetFlags(&flags, pinned));
  CHECK(flags == 1);
  EXPECT(INVALID, driver.cuMemFree_v2((CUdeviceptr)(uintptr_t)pinned));
  GOOD(driver.cuMemFreeHost(pinned));
  GOOD(driver.cuMemAllocHost_v2(&pinned, KIB));
  GOOD(driver.cuMemFreeHost(pinned));
  GOOD(driver.cuMemGetInfo_v2(&bytes, &total));
  CHECK(total == 4 * MIB && bytes == 4 * MIB);
  GOOD(driver.cuDeviceTotalMem_v2(&total, 0));
  CHECK(total == 4 * MIB);
}

/* What the program asks of a pointer. */
void ask(void)
{
  int attributes[] = {2, 7, 11, 12};
  uint32_t type = 0;
  uint64_t id = 1;
  CUdeviceptr memory, other, start_found = 0;
  size_t bytes = 0;
  void *values[] = {&type, &id, &start_found, &bytes};
  CUcontext context = start(), found = NULL;
  GOOD(driver.cuMemAlloc_v2(&other, KIB));
  GOOD(driver.cuMemAlloc_v2(&memory, 3 * KIB));
  GOOD(driver.cuPointerGetAttributes(4, attributes, values, memory + 8));
  CHECK(type == 2 && start_found == memory && bytes == 3 * KIB && id >> 31 == 1);
  bytes = 0;
  GOOD(driver.cuPointerGetAttribute(&bytes, 12, memory));
  CHECK(bytes == 3 * KIB);
  GOOD(driver.cuPointerGetAttribute(&found, 1, memory));
  CHECK(found == context);
  GOOD(driver.cuMemFree_v2(memory));
  EXPECT(NOT_FOUND, driver.cuMemGetAddressRange_v2(&start_found, &bytes, memory)); /* idle in the stack */
  EXPECT(INVALID, driver.cuPointerGetAttribute(&bytes, 12, memory));
  EXPECT(INVALID, driver.cuPointerGetAttribute(&bytes, 12, (CUdeviceptr)(uintptr_t)&bytes));
  GOOD(driver.cuMemFree_v2(other));
}

/* Run with a limit of 4 MiB. */
void be_wrong(void)
{
  CUdeviceptr memory = 5, inner;
  CUcontext context = NULL;
  EXPECT(UNINITIALISED, driver.cuMemAlloc_v2(&memory, KIB));
  CHECK(memory == 5);
  GOOD(driver.cuInit(0));
  EXPECT(NO_CONTEXT, driver.cuMemAlloc_v2(&memory, KIB));
  GOOD(driver.cuDevicePrimaryCtxRetain(&context, 0));
  GOOD(driver.cuCtxSetCurrent(context));
  EXPECT(INVALID, driver.cuMemAlloc_v2(&memory, 0));
  EXPECT(INVALID, driver.cuMemAlloc_v2(NULL, KIB));
  EXPECT(MEMORY, driver.cuMemAlloc_v2(&memory, 5 * MIB));
  CHECK(memory == 5);
  GOOD(driver.cuMemAlloc_v2(&memory, KIB));
  inner = memory + 256;
  EXPECT(INVALID, driver.cuMemFree_v2(inner));
  GOOD(driver.cuMemFree_v2(memory));
  EXPECT(INVALID, driver.cuMemFree_v2(memory));
  EXPECT(INVALID, driver.cuMemFree_v2((CUdeviceptr)(uintptr_t)&memory));
  GOOD(driver.cuMemFree_v2(0));
}

/* Memory allocated in a capture belongs to the graph, and a capture can only free memory of its graph. */
void use_capture(void)
{
  CUstream stream;
  CUdeviceptr ours, graphs;
  start();
  GOOD(driver.cuStreamCreate(&stream, 1));
  GOOD(driver.cuMemAllocAsync(&ours, KIB, stream));
  driver.fake_capture(stream);
  GOOD(driver.cuMemAllocAsync(&graphs, KIB, stream)); /* passed on */
  GOOD(driver.cuMemFreeAsync(graphs, stream));        /* passed on */
  EXPECT(CAPTURE, driver.cuMemFreeAsync(ours, stream));
  driver.fake_capture(NULL);
  GOOD(driver.cuMemFreeAsync(ours, stream));
  GOOD(driver.cuStreamDestroy_v2(stream));
}

/* Allocates and frees on streams that are forked off `origin`, joined to it again and destroyed at once, as the sample
 * graphMemoryNodes of CUDA does. */
static void fork_streams(CUstream origin)
{
  enum { BYTES = 64 * KIB, DISABLE_TIMING = 2 };
  CUstream streams[2];
  CUevent events[3];
  CUdeviceptr input, square, result;
  for (unsigned i = 0; i < 2; i++) GOOD(driver.cuStreamCreate(&streams[i], i)); /* one of them blocks */
  for (int i = 0; i < 3; i++) GOOD(driver.cuEventCreate(&events[i], DISABLE_TIMING));
  GOOD(driver.cuMemAllocAsync(&input, BYTES, origin));
  GOOD(driver.cuMemAllocAsync(&square, BYTES, origin));
  GOOD(driver.cuMemsetD8Async(input, 3, BYTES, origin));
  GOOD(driver.cuMemcpyAsync(square, input, BYTES, origin));
  GOOD(driver.cuEventRecord(events[0], origin));
  for (int i = 0; i < 2; i++) GOOD(driver.cuStreamWaitEvent(streams[i], events[0], 0));
  GOOD(driver.cuMemFreeAsync(input, origin));
  GOOD(driver.cuMemAllocAsync(&result, BYTES, streams[1]));
  GOOD(driver.cuMemcpyAsync(result, square, BYTES, streams[1]));
  GOOD(driver.cuEventRecord(events[1], streams[1]));
  GOOD(driver.cuStreamWaitEvent(streams[0], events[1], 0));
  GOOD(driver.cuMemFreeAsync(square, streams[0]));
  GOOD(driver.cuMemFreeAsync(result, streams[0]));
  GOOD(driver.cuEventRecord(events[2], streams[0]));
  GOOD(driver.cuStreamWaitEvent(origin, events[2], 0));
  for (int i = 0; i < 2; i++) GOOD(driver.cuStreamDestroy_v2(streams[i]));
  for (int i = 0; i < 3; i++) GOOD(driver.cuEventDestroy_v2(events[i]));
}

/* Nothing that hipmm does when a stream begins or ends invalidates a capture. */
void fork_capture(void)
{
  enum { GLOBAL = 0 };
  CUstream origin, other;
  CUdeviceptr memory;
  void *graph = NULL;
  start();
  GOOD(driver.cuStreamCreate(&origin, 1));
  GOOD(driver.cuStreamCreate(&other, 1));
  fork_streams(origin);
  GOOD(driver.cuMemAllocAsync(&memory, KIB, other));
  GOOD(driver.cuMemFreeAsync(memory, other));
  GOOD(driver.cuStreamBeginCapture_v2(origin, GLOBAL));
  fork_streams(origin);
  GOOD(driver.cuStreamDestroy_v2(other)); /* that is not captured */
  GOOD(driver.cuStreamEndCapture(origin, &graph));
  CHECK(graph);
  GOOD(driver.cuGraphDestroy(graph));
  fork_streams(origin);
  GOOD(driver.cuStreamDestroy_v2(origin));
}

void use_pools(void)
{
  enum { RELEASE_THRESHOLD = 4, USED_CURRENT = 7 };
  struct {
    int type, handles, location, device;
    char rest[120];
  } props = {.type = 1, .location = 1, .device = 0};
  CUmemoryPool pool;
  CUdeviceptr memory;
  uint64_t used = 0;
  start();
  GOOD(driver.cuMemPoolCreate(&pool, &props));
  GOOD(driver.cuMemAllocFromPoolAsync(&memory, KIB, pool, NULL));
  GOOD(driver.cuMemPoolGetAttribute(pool, USED_CURRENT, &used));
  CHECK(used == KIB);
  GOOD(driver.cuMemFreeAsync(memory, NULL));
  GOOD(driver.cuMemPoolDestroy(pool));
  GOOD(driver.cuDeviceGetDefaultMemPool(&pool, 0));
  GOOD(driver.cuMemAllocFromPoolAsync(&memory, KIB, pool, NULL));
  GOOD(driver.cuMemFreeAsync(memory, NULL));
  GOOD(driver.cuCtxSynchronize());
  GOOD(driver.cuMemPoolTrimTo(pool, 0));
  EXPECT(INVALID, driver.cuMemAllocFromPoolAsync(&memory, KIB, NULL, NULL));
}

/* CUDA 13 names the pools of a device in another way, too. */
void use_locations(void)
{
  struct {
    int type, handles, location, device;
    void *security;
    size_t maximum_bytes;
    char rest[100];
  } props = {.type = 1, .location = 1, .device = 0, .maximum_bytes = MIB};
  const struct {
    int type, id;
  } device = {1, 0}, host = {2, 0};
  CUmemoryPool pool, limited;
  CUdeviceptr memory;
  start();
  EXPECT(UNSUPPORTED, driver.cuMemGetDefaultMemPool(&pool, &host, 1));
  GOOD(driver.cuMemGetDefaultMemPool(&pool, &device, 1));
  GOOD(driver.cuMemAllocFromPoolAsync(&memory, KIB, pool, NULL));
  GOOD(driver.cuMemFreeAsync(memory, NULL));
  GOOD(driver.cuMemPoolCreate(&limited, &props));
  GOOD(driver.cuMemSetMemPool(&device, 1, limited));
  GOOD(driver.cuMemAllocAsync(&memory, KIB, NULL)); /* passed on: the pool has a limit of its own */
  GOOD(driver.cuMemFreeAsync(memory, NULL));
  GOOD(driver.cuMemSetMemPool(&device, 1, pool));
  GOOD(driver.cuMemAllocAsync(&memory, KIB, NULL));
  GOOD(driver.cuMemFreeAsync(memory, NULL));
}

/* A device of 64 MiB, whose memory hipmm keeps after the program's free: calls that hipmm does not serve get it. */
void run_short(void)
{
  const unsigned properties[8] = {1, 0, 1, 0}; /* pinned memory of device 0 */
  CUdeviceptr memory;
  uint64_t handle;
  void *executable = NULL;
  CUcontext primary = start(), own = NULL, found = NULL;
  CUstream stream;
  GOOD(driver.cuMemAlloc_v2(&memory, 48 * MIB));
  EXPECT(MEMORY, driver.cuMemCreate(&handle, 48 * MIB, properties, 0)); /* nothing is idle */
  EXPECT(MEMORY, driver.cuGraphInstantiateWithFlags(&executable, &memory, 0));
  CHECK(!executable);
  GOOD(driver.cuMemFree_v2(memory));
  GOOD(driver.cuMemCreate(&handle, 48 * MIB, properties, 0));
  GOOD(driver.cuMemRelease(handle));
  GOOD(driver.cuMemAlloc_v2(&memory, 48 * MIB));
  GOOD(driver.cuMemFree_v2(memory));
  GOOD(driver.cuGraphInstantiateWithFlags(&executable, &memory, 0));
  CHECK(executable == &memory);
  GOOD(driver.cuStreamCreate(&stream, 1));
  GOOD(driver.cuMemAllocAsync(&memory, 48 * MIB, stream));
  GOOD(driver.cuMemFreeAsync(memory, stream));
  GOOD(driver.cuCtxCreate_v2(&own, 0, 0));
  GOOD(driver.cuGraphInstantiateWithFlags(&executable, &memory, 0));
  CHECK(driver.fake_synchronized() == primary); /* where the work is behind which hipmm may give the block back */
  GOOD(driver.cuCtxGetCurrent(&found));
  CHECK(found == own);
}
