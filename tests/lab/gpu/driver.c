/* SPDX-License-Identifier: MIT */
/* driver.c: a program that calls NVIDIA's driver alone and knows nothing of hipmm, for `hipmm run`. It takes each function
 * from cuGetProcAddress(), or with the word "dlsym" from dlsym(). Fills, copies and verifies memory of all kinds over
 * streams, threads and two contexts, and prints "all is well".
 *
 *   cc -O2 -pthread -o driver driver.c -ldl && hipmm run --strict --report -- ./driver
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t CUdeviceptr;

enum { KIB = 1 << 10, MIB = 1 << 20 };
enum { INVALID = 1, MEMORY = 2, UNINITIALISED = 3, NO_CONTEXT = 201 };

/* name, the name that cuGetProcAddress() takes, the release that brought it, parameters */
#define FUNCTIONS(X)                                                                                  \
  X(cuInit, "cuInit", 2000, (unsigned))                                                               \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, (void **, int))                       \
  X(cuCtxCreate_v2, "cuCtxCreate", 3020, (void **, unsigned, int))                                    \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, (void *))                                                  \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, (void **))                                              \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, (void *))                                               \
  X(cuCtxSynchronize, "cuCtxSynchronize", 2000, (void))                                               \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020, (CUdeviceptr *, size_t))                                       \
  X(cuMemFree_v2, "cuMemFree", 3020, (CUdeviceptr))                                                   \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, (CUdeviceptr *, size_t *, size_t, size_t, unsigned)) \
  X(cuMemAllocManaged, "cuMemAllocManaged", 6000, (CUdeviceptr *, size_t, unsigned))                  \
  X(cuMemHostAlloc, "cuMemHostAlloc", 2020, (void **, size_t, unsigned))                              \
  X(cuMemFreeHost, "cuMemFreeHost", 2000, (void *))                                                   \
  X(cuMemGetInfo_v2, "cuMemGetInfo", 3020, (size_t *, size_t *))                                      \
  X(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, (CUdeviceptr *, size_t *, CUdeviceptr))    \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", 4000, (void *, int, CUdeviceptr))                 \
  X(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020, (void *, CUdeviceptr, size_t))                             \
  X(cuMemsetD32Async, "cuMemsetD32Async", 3020, (CUdeviceptr, unsigned, size_t, void *))              \
  X(cuStreamCreate, "cuStreamCreate", 2000, (void **, unsigned))                                      \
  X(cuStreamDestroy_v2, "cuStreamDestroy", 4000, (void *))                                            \
  X(cuStreamSynchronize, "cuStreamSynchronize", 2000, (void *))                                       \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020, (CUdeviceptr *, size_t, void *))                       \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020, (CUdeviceptr, void *))                                   \
  X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020, (void **, int))                    \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, (CUdeviceptr *, size_t, void *, void *))

#define MEMBER(name, base, since, parameters) static int(*name) parameters;
FUNCTIONS(MEMBER)

static int same_addresses, addresses;

static void find(void *library, const char *name, const char *base, int since, int by_name, void *slot)
{
  typedef int lookup(const char *, void **, int, uint64_t, int *);
  lookup *ask = (lookup *)dlsym(library, "cuGetProcAddress_v2");
  void *named = dlsym(library, name), *asked = NULL;
  int status = 0, code = ask ? ask(base, &asked, since, 0, &status) : -1;
  if (code || !named || !asked) {
    fprintf(stderr, "driver.c: %s is not there: error %d\n", name, code);
    exit(1);
  }
  addresses++;
  same_addresses += named == asked;
  memcpy(slot, by_name ? &named : &asked, sizeof named);
}

static void expect(int line, const char *call, int code, int wanted)
{
  if (code == wanted) return;
  fprintf(stderr, "driver.c:%d: %s is %d and not %d\n", line, call, code, wanted);
  exit(1);
}

#define GOOD(call)           expect(__LINE__, #call, (call), 0)
#define EXPECT(wanted, call) expect(__LINE__, #call, (call), (wanted))
#define DEMAND(what)         expect(__LINE__, #what, !(what), 0)

static void verify(int line, CUdeviceptr memory, size_t bytes, unsigned word)
{
  unsigned *host = malloc(bytes);
  GOOD(cuMemcpyDtoH_v2(host, memory, bytes));
  for (size_t i = 0; i < bytes / 4; i++) {
    if (host[i] == word) continue;
    fprintf(stderr, "driver.c:%d: word %zu of %zu is %u and not %u\n", line, i, bytes / 4, host[i], word);
    exit(1);
  }
  free(host);
}

#define VERIFY(memory, bytes, word) verify(__LINE__, memory, bytes, word)

/* Live blocks of all sizes, each with its own content. */
static void check_blocks(unsigned seed)
{
  enum { BLOCKS = 40 };
  CUdeviceptr blocks[BLOCKS];
  for (unsigned i = 0; i < BLOCKS; i++) {
    GOOD(cuMemAlloc_v2(&blocks[i], 4 + 4 * (i * i * 211)));
    GOOD(cuMemsetD32Async(blocks[i], seed + i, 1 + i * i * 211, NULL));
  }
  for (unsigned i = 0; i < BLOCKS; i++) VERIFY(blocks[i], 4 + 4 * (i * i * 211), seed + i);
  for (unsigned i = 0; i < BLOCKS; i++) GOOD(cuMemFree_v2(blocks[(i * 7) % BLOCKS]));
}

static void check_streams(void)
{
  void *streams[3], *pool;
  CUdeviceptr ordered, pooled;
  for (int i = 0; i < 3; i++) GOOD(cuStreamCreate(&streams[i], 1));
  GOOD(cuDeviceGetDefaultMemPool(&pool, 0));
  for (unsigned i = 0; i < 100; i++) {
    GOOD(cuMemAllocAsync(&ordered, MIB, streams[i % 3]));
    GOOD(cuMemAllocFromPoolAsync(&pooled, MIB, pool, streams[i % 3]));
    GOOD(cuMemsetD32Async(ordered, i, MIB / 4, streams[i % 3]));
    GOOD(cuMemsetD32Async(pooled, ~i, MIB / 4, streams[i % 3]));
    if (i % 10 == 0) {
      GOOD(cuStreamSynchronize(streams[i % 3]));
      VERIFY(ordered, MIB, i);
      VERIFY(pooled, MIB, ~i);
    }
    GOOD(cuMemFreeAsync(ordered, streams[i % 3]));
    GOOD(cuMemFreeAsync(pooled, streams[i % 3]));
  }
  for (int i = 0; i < 3; i++) GOOD(cuStreamDestroy_v2(streams[i]));
}

static void check_kinds(void *context)
{
  CUdeviceptr memory, base, other = 0;
  void *pinned, *found = NULL;
  size_t pitch = 0, bytes = 0, free_bytes, total;
  GOOD(cuMemAllocPitch_v2(&memory, &pitch, 1000, 33, 4));
  printf("pitch of 1000: %zu\n", pitch);
  GOOD(cuMemGetAddressRange_v2(&base, &bytes, memory + 700));
  DEMAND(base == memory && bytes >= pitch * 33);
  GOOD(cuPointerGetAttribute(&found, 1, memory));
  DEMAND(found == context);
  GOOD(cuPointerGetAttribute(&other, 11, memory + 8));
  DEMAND(other == memory);
  GOOD(cuMemFree_v2(memory));
  GOOD(cuMemAllocManaged(&memory, MIB, 1));
  memset((void *)(uintptr_t)memory, 0, MIB);
  VERIFY(memory, MIB, 0);
  GOOD(cuMemFree_v2(memory));
  GOOD(cuMemHostAlloc(&pinned, MIB, 0));
  memset(pinned, 1, MIB);
  GOOD(cuMemFreeHost(pinned));
  GOOD(cuMemGetInfo_v2(&free_bytes, &total));
  DEMAND(free_bytes > 0 && free_bytes <= total);
  EXPECT(MEMORY, cuMemAlloc_v2(&memory, total * 2));
  EXPECT(INVALID, cuMemAlloc_v2(&memory, 0));
}

/* A context of the program's own, which hipmm leaves to the driver, and memory of the primary one freed from there. */
static void check_contexts(void *primary)
{
  CUdeviceptr ours, theirs;
  void *own = NULL, *found = NULL;
  GOOD(cuMemAlloc_v2(&ours, MIB));
  GOOD(cuCtxCreate_v2(&own, 0, 0));
  GOOD(cuMemAlloc_v2(&theirs, MIB));
  GOOD(cuMemsetD32Async(theirs, 3, MIB / 4, NULL));
  VERIFY(theirs, MIB, 3);
  GOOD(cuMemFree_v2(ours));
  GOOD(cuCtxGetCurrent(&found));
  DEMAND(found == own);
  GOOD(cuMemFree_v2(theirs));
  GOOD(cuCtxDestroy_v2(own));
  GOOD(cuCtxSetCurrent(primary));
}

static void *work(void *context)
{
  CUdeviceptr memory;
  EXPECT(NO_CONTEXT, cuMemAlloc_v2(&memory, KIB));
  GOOD(cuCtxSetCurrent(context));
  check_blocks(12345);
  return NULL;
}

int main(int argc, char **argv)
{
  int by_name = argc > 1 && !strcmp(argv[1], "dlsym");
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *context = NULL;
  CUdeviceptr memory;
  pthread_t threads[4];
  if (!library) fprintf(stderr, "%s\n", dlerror());
  if (!library) return 1;
#define FIND(name, base, since, parameters) find(library, #name, base, since, by_name, &name);
  FUNCTIONS(FIND)
  EXPECT(UNINITIALISED, cuMemAlloc_v2(&memory, KIB));
  GOOD(cuInit(0));
  EXPECT(NO_CONTEXT, cuMemAlloc_v2(&memory, KIB));
  GOOD(cuDevicePrimaryCtxRetain(&context, 0));
  GOOD(cuCtxSetCurrent(context));
  check_blocks(1);
  check_streams();
  check_kinds(context);
  check_contexts(context);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, context);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  GOOD(cuCtxSynchronize());
  fprintf(stderr, "%d of %d addresses are the same from dlsym() and cuGetProcAddress()\n", same_addresses, addresses);
  printf("all is well\n");
  return 0;
}
