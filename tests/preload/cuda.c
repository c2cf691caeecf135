/* SPDX-License-Identifier: MIT */
/* cuda.c: a CUDA program that knows nothing of hipmm, like program.c, over the fake runtime of cudart.c. */
#include "cudart.h"
#include "scenario.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  KIB = 1 << 10,
  MIB = 1 << 20,
  INVALID = 1,
  MEMORY = 2,
  NO_SUCH_DEVICE = 101,
  UNSUPPORTED = 801,
  CAPTURE = 900,
  TO_HOST = 2
};

#define EXPECT(wanted, call) CHECK((call) == (wanted))
#define GOOD(call)           EXPECT(0, call)

static void fill(void *memory, int value, size_t bytes, cudaStream_t stream)
{
  unsigned char host[64 * KIB];
  GOOD(cudaMemsetAsync(memory, value, bytes, stream));
  GOOD(cudaMemcpyAsync(host, memory, bytes, TO_HOST, stream));
  GOOD(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < bytes; i++)
    if (host[i] != (unsigned char)value) {
      complain(__FILE__, __LINE__, "other data");
      return;
    }
}

static void use_memory(void)
{
  void *memory, *ordered;
  cudaStream_t stream, other;
  GOOD(cudaFree(NULL));
  GOOD(cudaStreamCreate(&stream));
  GOOD(cudaStreamCreateWithPriority(&other, 1, 0));
  for (int i = 0; i < 10; i++) {
    GOOD(cudaMalloc(&memory, 64 * KIB));
    GOOD(cudaMallocAsync(&ordered, 64 * KIB, stream));
    fill(memory, i, 64 * KIB, other);
    fill(ordered, i + 1, 64 * KIB, stream);
    GOOD(cudaFree(memory));
    GOOD(cudaFreeAsync(ordered, stream));
    GOOD(cudaMallocAsync_ptsz(&ordered, 32 * KIB, NULL)); /* stream 0 is the thread's own default stream */
    fill(ordered, i + 2, 32 * KIB, (cudaStream_t)2);
    GOOD(cudaFreeAsync_ptsz(ordered, NULL));
  }
  GOOD(cudaStreamDestroy(other));
  GOOD(cudaStreamDestroy(stream));
}

static uint64_t reserved_bytes(cudaMemPool_t pool)
{
  enum { RESERVED_CURRENT = 5 };
  uint64_t bytes = 0;
  GOOD(cudaMemPoolGetAttribute(pool, RESERVED_CURRENT, &bytes));
  return bytes;
}

/* Memory that the program has freed is reserved by the stack, if it is at all, until the pool is trimmed. */
static void trim(cudaMemPool_t pool)
{
  enum { BYTES = 8 * KIB * KIB };
  void *memory;
  GOOD(cudaMallocFromPoolAsync(&memory, BYTES, pool, NULL));
  uint64_t most = reserved_bytes(pool);
  CHECK(most >= BYTES);
  GOOD(cudaFreeAsync(memory, NULL));
  GOOD(cudaDeviceSynchronize());
  GOOD(cudaMemPoolTrimTo(pool, 0));
  CHECK(reserved_bytes(pool) <= most - BYTES);
}

static void use_pools(void)
{
  struct {
    int type, handles, location, device;
    char rest[120];
  } props = {.type = 1, .location = 1, .device = 0};
  cudaMemPool_t pool;
  void *memory;
  GOOD(cudaMemPoolCreate(&pool, &props));
  GOOD(cudaMallocFromPoolAsync(&memory, KIB, pool, NULL));
  GOOD(cudaFreeAsync(memory, NULL));
  GOOD(cudaMallocFromPoolAsync_ptsz(&memory, KIB, pool, NULL));
  GOOD(cudaFreeAsync_ptsz(memory, NULL));
  GOOD(cudaMemPoolDestroy(pool));
  GOOD(cudaDeviceGetMemPool(&pool, 0));
  GOOD(cudaMallocFromPoolAsync(&memory, KIB, pool, NULL));
  GOOD(cudaFreeAsync(memory, NULL));
  trim(pool);
  EXPECT(INVALID, cudaMallocFromPoolAsync(&memory, KIB, NULL, NULL));
  EXPECT(INVALID, cudaGetLastError());
}

/* Memory allocated in a capture belongs to the graph, and a capture can only free memory of its graph. */
static void use_capture(void)
{
  cudaStream_t stream;
  void *ours, *graphs;
  GOOD(cudaStreamCreateWithFlags(&stream, 1));
  GOOD(cudaMallocAsync(&ours, KIB, stream));
  fake_capture(stream);
  GOOD(cudaMallocAsync(&graphs, KIB, stream)); /* passed on */
  GOOD(cudaFreeAsync(graphs, stream));         /* passed on */
  EXPECT(CAPTURE, cudaFreeAsync(ours, stream));
  EXPECT(CAPTURE, cudaGetLastError());
  fake_capture(NULL);
  GOOD(cudaFreeAsync(ours, stream));
  GOOD(cudaStreamDestroy(stream));
}

enum { SHARED = 1 << 20 };

/* The child opens the handle of a block that begins within an allocation, or in mapped memory, and fills the block. */
static int open_part(int pipe_end)
{
  cudaIpcMemHandle_t handle;
  void *memory;
  if (read(pipe_end, &handle, sizeof handle) != (ssize_t)sizeof handle) return 1;
  if (cudaIpcOpenMemHandle(&memory, handle, 1)) return 2;
  if (cudaMemsetAsync(memory, 9, SHARED, NULL) || cudaDeviceSynchronize()) return 3;
  return cudaIpcCloseMemHandle(memory) ? 4 : 0;
}

/* Run with a pool that holds segments, and with one whose blocks are exportable. */
static void share(void)
{
  cudaIpcMemHandle_t handle;
  void *first, *memory;
  static unsigned char host[SHARED];
  int ends[2], status = 1;
  CHECK(!pipe(ends));
  pid_t child = fork(); /* before the first call */
  if (!child) exit(open_part(ends[0]));
  GOOD(cudaMalloc(&first, KIB));
  GOOD(cudaMalloc(&memory, SHARED));
  GOOD(cudaMemsetAsync(first, 1, KIB, NULL));
  GOOD(cudaMemsetAsync(memory, 1, SHARED, NULL));
  GOOD(cudaDeviceSynchronize());
  GOOD(cudaIpcGetMemHandle(&handle, memory));
  CHECK(write(ends[1], &handle, sizeof handle) == (ssize_t)sizeof handle);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  GOOD(cudaMemcpyAsync(host, memory, SHARED, 2, NULL));
  GOOD(cudaDeviceSynchronize());
  CHECK(host[0] == 9 && !memcmp(host, host + 1, SHARED - 1));
  GOOD(cudaMemcpyAsync(host, first, KIB, 2, NULL));
  GOOD(cudaDeviceSynchronize());
  CHECK(host[0] == 1 && host[KIB - 1] == 1);
  GOOD(cudaFree(memory));
  GOOD(cudaFree(first));
}

/* Run with a limit of 4 MiB. */
static void be_wrong(void)
{
  void *memory = NULL, *pinned;
  size_t free_bytes, total_bytes;
  char handle[64];
  EXPECT(MEMORY, cudaMalloc(&memory, 5 * MIB));
  CHECK(!memory);
  EXPECT(MEMORY, cudaPeekAtLastError());
  EXPECT(MEMORY, cudaGetLastError());
  GOOD(cudaGetLastError());
  GOOD(cudaMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == 4 * MIB && free_bytes == 4 * MIB);
  for (int i = 0; i < 2; i++) {
    static char properties[1024];
    GOOD((i ? cudaGetDeviceProperties : cudaGetDeviceProperties_v2)(properties, 0));
    memcpy(&total_bytes, properties + 288, sizeof total_bytes);
    CHECK(total_bytes == 4 * MIB);
  }
  EXPECT(INVALID, cudaFree(&memory));
  GOOD(cudaMalloc(&memory, KIB));
  GOOD(cudaMalloc(&pinned, KIB));
  EXPECT(UNSUPPORTED, cudaMemPoolExportPointer(handle, memory));
  GOOD(cudaFree(memory));
  EXPECT(INVALID, cudaFree(memory));
  GOOD(cudaFree(pinned));
  GOOD(cudaMallocHost(&pinned, KIB));
  memset(pinned, 1, KIB);
  EXPECT(INVALID, cudaFree(pinned));
  GOOD(cudaFreeHost(pinned));
  GOOD(cudaHostAlloc(&pinned, KIB, 4));
  GOOD(cudaFreeHost(pinned));
  GOOD(cudaMallocManaged(&memory, KIB, 1));
  memset(memory, 1, KIB);
  GOOD(cudaFree(memory));
}

static void reset(void)
{
  void *memory;
  for (int round = 0; round < 2; round++) {
    GOOD(cudaSetDevice(0));
    GOOD(cudaMalloc(&memory, MIB));
    GOOD(cudaDeviceReset());
  }
}

/* There is one device: the runtime's errors reach the program. */
static void use_peers(void)
{
  EXPECT(NO_SUCH_DEVICE, cudaDeviceEnablePeerAccess(1, 0));
  EXPECT(NO_SUCH_DEVICE, cudaGetLastError());
  EXPECT(NO_SUCH_DEVICE, cudaDeviceDisablePeerAccess(1));
  EXPECT(NO_SUCH_DEVICE, cudaGetLastError());
}

int main(int argc, char **argv)
{
  static const struct scenario scenarios[] = {{"memory", use_memory}, {"pools", use_pools}, {"capture", use_capture},
                                              {"wrong", be_wrong},    {"reset", reset},     {"peers", use_peers},
                                              {"share", share}};
  return scenario_main(scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
