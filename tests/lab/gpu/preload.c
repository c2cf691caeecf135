/* SPDX-License-Identifier: MIT */
/* preload.c: a plain CUDA program that knows nothing of hipmm, for `hipmm run` on a machine with a GPU. It fills,
 * copies and verifies memory of all kinds over several streams and threads, also in ways that show a wrong reuse, and
 * prints "all is well". CUDA's headers are used where they are found, else what is needed is declared here.
 *
 *   cc -O2 -pthread -o preload preload.c -I/usr/local/cuda/include -L/usr/local/cuda/lib64 -lcudart
 *   hipmm run --strict --report -- ./preload
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaMemAttachGlobal = 1 };
cudaError_t cudaMalloc(void **ptr, size_t bytes);
cudaError_t cudaFree(void *ptr);
cudaError_t cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream);
cudaError_t cudaMallocManaged(void **ptr, size_t bytes, unsigned flags);
cudaError_t cudaMallocHost(void **ptr, size_t bytes);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMemsetAsync(void *ptr, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorName(cudaError_t code);
#endif

enum { KIB = 1 << 10, MIB = 1 << 20 };

static void expect(int line, const char *call, cudaError_t code, cudaError_t wanted)
{
  if (code == wanted) return;
  fprintf(stderr, "preload.c:%d: %s is %s\n", line, call, cudaGetErrorName(code));
  exit(1);
}

#define GOOD(call)           expect(__LINE__, #call, (call), cudaSuccess)
#define EXPECT(wanted, call) expect(__LINE__, #call, (call), (wanted))

static void verify(int line, const unsigned char *bytes, size_t count, int value)
{
  for (size_t i = 0; i < count; i++) {
    if (bytes[i] == (unsigned char)value) continue;
    fprintf(stderr, "preload.c:%d: byte %zu of %zu is %d and not %d\n", line, i, count, bytes[i], value);
    exit(1);
  }
}

#define VERIFY(bytes, count, value) verify(__LINE__, bytes, count, value)

static cudaStream_t new_stream(void)
{
  cudaStream_t stream;
  GOOD(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/* Blocks of all sizes, each with its own content, all live at once. */
static void check_blocks(void)
{
  enum { BLOCKS = 24 };
  void *blocks[BLOCKS];
  unsigned char *host = malloc((size_t)BLOCKS * BLOCKS * 64 * KIB);
  for (int i = 0; i < BLOCKS; i++) GOOD(cudaMalloc(&blocks[i], (size_t)(i * i + 1) * 37 * KIB));
  for (int i = 0; i < BLOCKS; i++) GOOD(cudaMemsetAsync(blocks[i], i, (size_t)(i * i + 1) * 37 * KIB, NULL));
  for (int i = 0; i < BLOCKS; i++) {
    size_t bytes = (size_t)(i * i + 1) * 37 * KIB;
    GOOD(cudaMemcpyAsync(host, blocks[i], bytes, cudaMemcpyDeviceToHost, NULL));
    GOOD(cudaStreamSynchronize(NULL));
    VERIFY(host, bytes, i);
    GOOD(cudaFree(blocks[i]));
  }
  free(host);
}

/* A block that is freed while one stream still writes it, and had by another stream. */
static void check_reuse(void)
{
  enum { ROUNDS = 100, BYTES = 64 * MIB };
  cudaStream_t busy = new_stream(), other = new_stream();
  unsigned char *host;
  GOOD(cudaMallocHost((void **)&host, BYTES));
  for (int round = 0; round < ROUNDS; round++) {
    void *first, *second;
    GOOD(cudaMalloc(&first, BYTES));
    for (int i = 0; i < 20; i++) GOOD(cudaMemsetAsync(first, 1, BYTES, busy));
    if (round % 2)
      GOOD(cudaFree(first));
    else
      GOOD(cudaFreeAsync(first, busy));
    if (round % 4 < 2)
      GOOD(cudaMalloc(&second, BYTES));
    else
      GOOD(cudaMallocAsync(&second, BYTES, other));
    GOOD(cudaMemsetAsync(second, 2, BYTES, other));
    GOOD(cudaStreamSynchronize(other));
    GOOD(cudaDeviceSynchronize());
    GOOD(cudaMemcpyAsync(host, second, BYTES, cudaMemcpyDeviceToHost, other));
    GOOD(cudaStreamSynchronize(other));
    VERIFY(host, round < 8 ? BYTES : MIB, 2);
    GOOD(cudaFreeAsync(second, other));
  }
  GOOD(cudaFreeHost(host));
  GOOD(cudaStreamDestroy(busy));
  GOOD(cudaStreamDestroy(other));
}

/* From stream to stream, in order by events, with streams that come and go. */
static void check_streams(void)
{
  enum { ROUNDS = 200, BYTES = 3 * MIB };
  unsigned char *host = malloc(BYTES);
  for (int round = 0; round < ROUNDS; round++) {
    cudaStream_t from = new_stream(), to = new_stream();
    cudaEvent_t event;
    void *source, *copy;
    GOOD(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    GOOD(cudaMallocAsync(&source, BYTES, from));
    GOOD(cudaMemsetAsync(source, round, BYTES, from));
    GOOD(cudaEventRecord(event, from));
    GOOD(cudaStreamWaitEvent(to, event, 0));
    GOOD(cudaMallocAsync(&copy, BYTES, to));
    GOOD(cudaMemcpyAsync(copy, source, BYTES, cudaMemcpyDeviceToDevice, to));
    GOOD(cudaFreeAsync(source, to));
    GOOD(cudaStreamDestroy(from));
    GOOD(cudaMemcpyAsync(host, copy, BYTES, cudaMemcpyDeviceToHost, to));
    GOOD(cudaFreeAsync(copy, to));
    GOOD(cudaStreamSynchronize(to));
    VERIFY(host, BYTES, round);
    GOOD(cudaEventDestroy(event));
    GOOD(cudaStreamDestroy(to));
  }
  free(host);
}

static void *work(void *closure)
{
  enum { ROUNDS = 300, BYTES = 200 * KIB };
  int value = (int)(intptr_t)closure;
  cudaStream_t stream = new_stream();
  unsigned char *host = malloc(BYTES);
  for (int round = 0; round < ROUNDS; round++) {
    void *memory;
    if (round % 10)
      GOOD(cudaMallocAsync(&memory, BYTES, stream));
    else
      GOOD(cudaMalloc(&memory, BYTES));
    GOOD(cudaMemsetAsync(memory, value + round, BYTES, stream));
    GOOD(cudaMemcpyAsync(host, memory, BYTES, cudaMemcpyDeviceToHost, stream));
    if (round % 10)
      GOOD(cudaFreeAsync(memory, stream));
    else
      GOOD(cudaFree(memory));
    GOOD(cudaStreamSynchronize(stream));
    VERIFY(host, BYTES, value + round);
  }
  free(host);
  GOOD(cudaStreamDestroy(stream));
  return NULL;
}

static void check_threads(void)
{
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)(i * 31))) exit(1);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void check_other_memory(void)
{
  unsigned char *managed, *pinned;
  GOOD(cudaMallocManaged((void **)&managed, MIB, cudaMemAttachGlobal));
  GOOD(cudaMallocHost((void **)&pinned, MIB));
  memset(pinned, 5, MIB);
  GOOD(cudaMemcpyAsync(managed, pinned, MIB, cudaMemcpyHostToDevice, NULL));
  GOOD(cudaDeviceSynchronize());
  VERIFY(managed, MIB, 5);
  GOOD(cudaFree(managed));
  GOOD(cudaFreeHost(pinned));
}

static void check_errors(void)
{
  size_t free_bytes, total_bytes;
  void *memory;
  GOOD(cudaMemGetInfo(&free_bytes, &total_bytes));
  if (free_bytes > total_bytes) exit(1);
  EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&memory, total_bytes + MIB));
  EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
  GOOD(cudaGetLastError());
  GOOD(cudaMalloc(&memory, KIB));
  GOOD(cudaFree(memory));
  EXPECT(cudaErrorInvalidValue, cudaFree(memory));
  EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  GOOD(cudaMalloc(&memory, 0));
  GOOD(cudaFree(NULL));
}

int main(int argc, char **argv)
{
  check_blocks();
  check_reuse();
  check_streams();
  check_threads();
  check_other_memory();
  check_errors();
  GOOD(cudaDeviceReset());
  check_blocks(); /* the device is there again */
  if (argc > 1 && !strcmp(argv[1], "--reset")) GOOD(cudaDeviceReset());
  printf("all is well\n");
  return 0;
}
